"""Volumes of a pod: one source each, and the requirements of every source."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pumice.api.patterns import occurs_in
from pumice.api.quantity import amount
from pumice.webhooks.fields import (
    FieldError,
    Key,
    Path,
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
    unsupported,
)
from pumice.webhooks.names import between, dns_label, dns_subdomain, each
from pumice.webhooks.pods.claims import check_claim_template
from pumice.webhooks.pods.paths import descending, no_steps_back
from pumice.webhooks.pods.projected import (
    BAD_MODE,
    check_files,
    check_items,
    check_projected,
    is_mode,
)

Source = Mapping[str, Any]
Rule = Callable[[Source, Path], Iterator[FieldError]]
_ORDER: Final = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret",
    "nfs", "iscsi", "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs",
    "quobyte", "downwardAPI", "fc", "flexVolume", "configMap", "azureFile", "vsphereVolume",
    "photonPersistentDisk", "portworxVolume", "azureDisk", "storageos", "projected", "scaleIO",
    "csi", "ephemeral", "image",
)  # fmt: skip
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "glusterfs": ("endpoints", "path"),
    "persistentVolumeClaim": ("claimName",),
    "rbd": ("monitors", "image"),
    "cinder": ("volumeID",),
    "cephfs": ("monitors",),
    "azureFile": ("secretName", "shareName"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "scaleIO": ("gateway", "system", "volumeName"),
}
"""Sources for which it is enough that some fields are given."""
_SPELLED: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""Kubernetes' misspelt names of sources in messages about a second source."""
_CHECKED_AS: Final = {"gcePersistentDisk": "persistentDisk"}
_HOST_TYPES: Final = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate",
    "Socket",
)  # fmt: skip
_PULL: Final = ("Always", "IfNotPresent", "Never")
_INITIATORS: Final = {
    "iqn": r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$",
    "eui": r"^eui.[A-Za-z0-9]{16}$",
    "naa": r"^naa.[A-Za-z0-9]{32}$",
}


def check_volumes(volumes: list[Source], path: Path) -> tuple[dict[str, Source], list[FieldError]]:
    """Check the volumes of a pod; return the valid ones by name, and the findings."""
    known: dict[str, Source] = {}
    found: list[FieldError] = []
    for index, volume in enumerate(volumes):
        place, name = (*path, index), volume["name"]
        own = list(_volume(volume, place))
        if name:
            own += each(dns_label(name), (*place, "name"), name)
        else:
            own.append(required((*place, "name")))
        if name in known:
            own.append(duplicate((*place, "name"), name))
        if not own:
            known[name] = volume
        found += own
    return known, found


def _volume(volume: Source, path: Path) -> Iterator[FieldError]:
    given = [name for name in _ORDER if volume.get(name) is not None]
    if not given:
        yield required(path, "must specify a volume type")
        return
    first = given[0]
    yield from _checked(first, volume[first], (*path, _CHECKED_AS.get(first, first)))
    yield from _initiator_length(volume, path) if first == "iscsi" else ()
    for name in given[1:]:
        place = (*path, _SPELLED.get(name, name))
        yield forbidden(place, "may not specify more than 1 volume type")
        yield from _initiator_length(volume, path) if name == "iscsi" else ()


def _checked(name: str, source: Source, path: Path) -> Iterator[FieldError]:
    for key in _NEEDED.get(name, ()):
        if not source.get(key):
            yield required((*path, key))
    rule = _RULES.get(name)
    if rule is not None:
        yield from rule(source, path)


def _empty_dir(source: Source, path: Path) -> Iterator[FieldError]:
    size = source.get("sizeLimit")
    if size is not None and amount(size).nano < 0:
        text = "SizeLimit field must be a valid resource quantity"
        yield forbidden((*path, "sizeLimit"), text)


def _host_path(source: Source, path: Path) -> Iterator[FieldError]:
    if not source["path"]:
        yield required((*path, "path"))
        return
    yield from no_steps_back(source["path"], (*path, "path"))
    kind = source.get("type")
    if kind is not None and kind not in _HOST_TYPES:
        yield unsupported((*path, "type"), kind, _HOST_TYPES)


def _git(source: Source, path: Path) -> Iterator[FieldError]:
    if not source["repository"]:
        yield required((*path, "repository"))
    yield from descending(source.get("directory", ""), (*path, "directory"))


def _disk(key: str) -> Rule:
    def check(source: Source, path: Path) -> Iterator[FieldError]:
        if not source[key]:
            yield required((*path, key))
        partition = source.get("partition", 0)
        if not 0 <= partition <= 255:
            yield invalid((*path, "partition"), partition, between(1, 255))

    return check


def _keys(key: str) -> Rule:
    def check(source: Source, path: Path) -> Iterator[FieldError]:
        if not source.get(key):
            yield required((*path, key))
        mode = source.get("defaultMode")
        if mode is not None and not is_mode(mode):
            yield invalid((*path, "defaultMode"), mode, BAD_MODE)
        yield from check_items(source.get("items") or [], (*path, "items"))

    return check


def _nfs(source: Source, path: Path) -> Iterator[FieldError]:
    for key in ("server", "path"):
        if not source[key]:
            yield required((*path, key))
    if not source["path"].startswith("/"):
        yield invalid((*path, "path"), source["path"], "must be an absolute path")


def _iscsi(source: Source, path: Path) -> Iterator[FieldError]:
    if not source["targetPortal"]:
        yield required((*path, "targetPortal"))
    if not source["iqn"]:
        yield required((*path, "iqn"))
    else:
        yield from _initiator(source["iqn"], (*path, "iqn"))
    if not 0 <= source["lun"] <= 255:
        yield invalid((*path, "lun"), source["lun"], between(0, 255))
    authenticated = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if authenticated and source.get("secretRef") is None:
        yield required((*path, "secretRef"))
    name = source.get("initiatorName")
    if name is not None:
        yield from _initiator(name, (*path, "initiatorname"))


def _initiator(name: str, path: Path) -> Iterator[FieldError]:
    pattern = _INITIATORS.get(name[:3])
    if pattern is None:
        yield invalid(path, name, "must be valid format starting with iqn, eui, or naa")
    elif not occurs_in(name, pattern):
        yield invalid(path, name, "must be valid format")


def _initiator_length(volume: Source, path: Path) -> Iterator[FieldError]:
    source = volume["iscsi"]
    long = len(f"{volume['name']}:{source['targetPortal']}") > 64
    if source.get("initiatorName") is not None and long:
        text = (
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
            "if iscsi.initiatorName is specified."
        )
        yield invalid((*path, "name"), volume["name"], text)


def _named_secret(source: Source, path: Path) -> Iterator[FieldError]:
    secret = source.get("secretRef")
    if secret is not None and not secret.get("name"):
        yield required((*path, "secretRef", "name"))


def _downward(source: Source, path: Path) -> Iterator[FieldError]:
    mode = source.get("defaultMode")
    if mode is not None and not is_mode(mode):
        yield invalid((*path, "defaultMode"), mode, BAD_MODE)
    yield from check_files(source.get("items") or [], path)


def _fc(source: Source, path: Path) -> Iterator[FieldError]:
    names, ids = source.get("targetWWNs") or [], source.get("wwids") or []
    if not names and not ids:
        text = "must specify either targetWWNs or wwids, but not both"
        yield required((*path, "targetWWNs"), text)
    if names and ids:
        text = "targetWWNs and wwids can not be specified simultaneously"
        yield invalid((*path, "targetWWNs"), names, text)
    lun = source.get("lun")
    if names and lun is None:
        yield required((*path, "lun"), "lun is required if targetWWNs is specified")
    elif names and lun is not None and not 0 <= lun <= 255:
        yield invalid((*path, "lun"), lun, between(0, 255))


def _flex(source: Source, path: Path) -> Iterator[FieldError]:
    if not source["driver"]:
        yield required((*path, "driver"))
    for key in sorted(source.get("options") or {}):
        owner = f".{key.partition('/')[0].lower()}"
        if owner.endswith((".kubernetes.io", ".k8s.io")):
            text = "kubernetes.io and k8s.io namespaces are reserved"
            yield invalid((*path, "options", Key(key)), key, text)


def _azure_disk(source: Source, path: Path) -> Iterator[FieldError]:
    for key in ("diskName", "diskURI"):
        if not source[key]:
            yield required((*path, key))
    for key, known in (
        ("cachingMode", ("None", "ReadOnly", "ReadWrite")),
        ("kind", ("Dedicated", "Managed", "Shared")),
    ):
        if source[key] not in known:
            yield unsupported((*path, key), source[key], known)
    managed, address = source["kind"] == "Managed", source["diskURI"]
    start = "/subscriptions/" if managed else "https://"
    if not address.startswith(start):
        shape = (
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/"
            "disks/{disk-id}"
            if managed
            else "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
        )
        yield unsupported((*path, "diskURI"), address, (shape,))


def _csi(source: Source, path: Path) -> Iterator[FieldError]:
    driver = source["driver"]
    if not driver:
        yield required((*path, "driver"))
    elif len(driver) > 63:
        yield too_long((*path, "driver"), 63)
    if driver:
        yield from each(dns_subdomain(driver.lower()), (*path, "driver"), driver)
    secret = source.get("nodePublishSecretRef")
    if secret is not None:
        name = secret.get("name", "")
        if name:
            yield from each(dns_subdomain(name), (*path, "name"), name)
        else:
            yield required((*path, "nodePublishSecretRef", "name"))


def _ephemeral(source: Source, path: Path) -> Iterator[FieldError]:
    template, place = source.get("volumeClaimTemplate"), (*path, "volumeClaimTemplate")
    if template is None:
        yield required(place)
    else:
        yield from check_claim_template(template, place)


def _image(source: Source, path: Path) -> Iterator[FieldError]:
    if source["pullPolicy"] not in _PULL:
        yield unsupported((*path, "pullPolicy"), source["pullPolicy"], _PULL)


_RULES: Final[Mapping[str, Rule]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git,
    "gcePersistentDisk": _disk("pdName"),
    "awsElasticBlockStore": _disk("volumeID"),
    "secret": _keys("secretName"),
    "nfs": _nfs,
    "iscsi": _iscsi,
    "cinder": _named_secret,
    "downwardAPI": _downward,
    "fc": _fc,
    "flexVolume": _flex,
    "configMap": _keys("name"),
    "azureDisk": _azure_disk,
    "projected": check_projected,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
