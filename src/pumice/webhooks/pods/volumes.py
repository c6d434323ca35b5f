"""Volumes of a pod: the requirements of every source, and claims on volumes and devices."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pumice.api.patterns import occurs_in
from pumice.api.quantity import amount
from pumice.webhooks.field_rules import (
    Rule,
    Struct,
    items,
    label_map,
    needed,
    one_of,
    part,
    passes,
    refused_here,
    walk,
)
from pumice.webhooks.fields import (
    FieldError,
    Key,
    Path,
    Shown,
    duplicate,
    forbidden,
    go_json,
    invalid,
    quoted,
    required,
    too_long,
    unsupported,
)
from pumice.webhooks.metadata import check_annotations
from pumice.webhooks.names import (
    Messages,
    between,
    descending,
    dns_label,
    dns_subdomain,
    each,
    file_mode,
    in_range,
    local,
    no_steps_back,
    qualified_name,
)
from pumice.webhooks.pods.containers import PULL, check_resource_field, file_field
from pumice.webhooks.pods.placement import SELECTOR
from pumice.webhooks.pods.resources import check_amount

_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_NAMES: Final = ("resourceClaimName", "resourceClaimTemplateName")


def resource_claims(spec: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    """Check the claims on devices that a pod makes."""
    names: set[str] = set()
    for index, claim in enumerate(spec.get("resourceClaims") or ()):
        place, name = (*path, "resourceClaims", index), claim["name"]
        if not name:
            yield required((*place, "name"))
        elif name in names:
            yield duplicate((*place, "name"), name)
        else:
            yield from each(dns_label(name), (*place, "name"), name)
            names.add(name)
        yield from walk((_one_name, passes(dns_subdomain, *_NAMES)), claim, place)


def _one_name(claim: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    direct, template = (claim.get(key) for key in _NAMES)
    if (direct is None) != (template is None):
        return
    fields = {
        "Name": claim["name"],
        "ResourceClaimName": direct,
        "ResourceClaimTemplateName": template,
    }
    text = (
        "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        if direct is None
        else "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
    )
    yield invalid(path, Shown(go_json(fields, sort=False)), text)


def _access_modes(spec: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    modes, place = spec.get("accessModes") or [], (*path, "accessModes")
    for mode in modes:
        if mode not in _MODES:
            yield unsupported(place, mode, _MODES)
    if "ReadWriteOncePod" in modes and set(modes) & set(_MODES[:3]):
        yield forbidden(place, "may not use ReadWriteOncePod with other access modes")


def _storage(spec: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    place = (*path, "resources", Key("storage"))
    asked = (spec["resources"].get("requests") or {}).get("storage")
    if asked is None:
        yield FieldError("Required value", place)
        return
    given = amount(asked)
    if given.nano <= 0:
        yield invalid(place, str(given), "must be greater than zero")
    else:
        yield from check_amount("storage", given, place)


def _default_group(source: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    if not source.get("apiGroup") and source["kind"] != "PersistentVolumeClaim":
        text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        yield invalid(path, source["kind"], text)


def _same_source(spec: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is None or reference is None:
        return
    if reference.get("namespace"):
        text = "may not be specified when dataSourceRef.namespace is specified"
        yield invalid(path, Shown("{}"), text)
    elif any(source.get(key) != reference.get(key) for key in ("apiGroup", "kind", "name")):
        yield invalid(path, Shown("{}"), "must match dataSourceRef")


_SOURCE: Final = (
    needed("name", "kind"),
    _default_group,
    passes(dns_subdomain, "apiGroup", when="filled"),
    passes(dns_label, "namespace", when="filled"),
)
_SPEC: Final = (
    needed("accessModes", detail="at least 1 access mode is required"),
    part("selector", *SELECTOR),
    _access_modes,
    _storage,
    passes(dns_subdomain, "storageClassName", when="filled"),
    one_of("volumeMode", ("Block", "Filesystem")),
    part("dataSource", *_SOURCE),
    part("dataSourceRef", *_SOURCE),
    _same_source,
    passes(dns_subdomain, "volumeAttributesClassName", when="filled"),
)
_UNSET: Final = ("name", "generateName", "namespace", "finalizers")
CLAIM_TEMPLATE: Final = (
    part(
        "metadata",
        lambda own, path, _: check_annotations(own.get("annotations"), (*path, "annotations")),
        label_map("labels"),
        refused_here(*_UNSET, detail="cannot be set", when="filled"),
    ),
    part("spec", *_SPEC),
)


_KEY_TYPES: Final = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_TWICE: Final = "conflicting duplicate paths"
_DAY: Final = 86400
_LARGEST_NOTES: Final = 256 * 1024
_CERTIFICATE_PATHS: Final = ("credentialBundlePath", "keyPath", "certificateChainPath")
_PATH: Final = (needed("path"), passes(local, "path"))
ITEMS: Final = (needed("key", "path"), passes(local, "path"), passes(file_mode, "mode"))
"""The rules of a key and the path it appears under."""


def _field_or_resource(file: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        yield from file_field(field, (*path, "fieldRef"), None)
        if resource is not None:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield invalid(path, "resource", text)
    elif resource is not None:
        yield from check_resource_field(resource, (*path, "resourceFieldRef"), in_volume=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")


_FILE: Final = (*_PATH, _field_or_resource, passes(file_mode, "mode"))


def check_file(file: Struct, path: Path, around: Any) -> list[FieldError]:
    """Check a field of the pod and the path it appears under."""
    return walk(_FILE, file, path, around)


def projected(source: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    """Check a volume that shows several sources, each path once."""
    taken: set[str] = set()
    for index, one in enumerate(source["sources"] or ()):
        place = (*path, "sources", index)
        for name in ("secret", "configMap"):
            if one.get(name) is not None:
                yield from _keys(one[name], (*place, name), path, taken)
        for file in (one.get("downwardAPI") or {}).get("items") or ():
            yield from check_file(file, (*place, "downwardAPI"), None)
            yield from _once(file["path"], file["path"], path, taken)
        yield from walk((part("serviceAccountToken", _token),), one, place, path)
        yield from _others(one, place, path, taken)
        if len(one) > 1:
            yield forbidden(place, "may not specify more than 1 volume type per source")


def _others(one: Struct, place: Path, volume: Path, taken: set[str]) -> Iterator[FieldError]:
    bundle, certificate = one.get("clusterTrustBundle"), one.get("podCertificate")
    if bundle is not None:
        yield from walk((_bundle, *_PATH), bundle, (*place, "clusterTrustBundle"))
        if bundle["path"] in taken:
            yield invalid(volume, bundle["path"], _TWICE)
        taken.add(bundle["path"])
    if certificate is not None:
        inner = (*place, "podCertificate")
        yield from walk(_CERTIFICATE, certificate, inner)
        files = [name for name in _CERTIFICATE_PATHS if certificate.get(name)]
        for name in files:
            yield from each(local(certificate[name]), (*inner, name), certificate[name])
            yield from _once(certificate[name], certificate[name], volume, taken)
        if not files:
            text = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
            yield required(inner, text)


def _keys(source: Struct, path: Path, volume: Path, taken: set[str]) -> Iterator[FieldError]:
    name = source.get("name", "")
    if not name:
        yield required((*path, "name"))
    for index, item in enumerate(source.get("items") or ()):
        yield from walk(ITEMS, item, (*path, "items", index))
        yield from _once(item["path"], name, volume, taken)


def _once(path: str, shown: str, volume: Path, taken: set[str]) -> Iterator[FieldError]:
    if path and path in taken:
        yield invalid(volume, shown, _TWICE)
    if path:
        taken.add(path)


def _token(token: Struct, path: Path, volume: Path) -> Iterator[FieldError]:
    seconds, place = token["expirationSeconds"], (*path, "expirationSeconds")
    if seconds < 600:
        yield invalid(place, seconds, "may not specify a duration less than 10 minutes")
    if seconds > 2**32:
        yield invalid(place, seconds, "may not specify a duration larger than 2^32 seconds")
    yield from needed("path", test=local)(token, volume, None)


def _bundle(bundle: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    name, signer = bundle.get("name"), bundle.get("signerName")
    if name is not None and signer is not None:
        fields = {
            "Name": name, "SignerName": signer,
            "LabelSelector": bundle.get("labelSelector"),
            "Optional": bundle.get("optional"), "Path": bundle["path"],
        }  # fmt: skip
        shown = Shown(go_json(fields, sort=False))
        yield invalid(path, shown, "only one of name and signerName may be used")
    elif name is not None:
        if not name:
            yield required((*path, "name"), "must be a valid object name")
        for text in dns_subdomain(name.rpartition(":")[2]):
            yield invalid((*path, "name"), name, f"not a valid clustertrustbundlename: {text}")
        if bundle.get("labelSelector") is not None:
            text = "labelSelector must be unset if name is specified"
            shown = Shown(go_json(bundle["labelSelector"], sort=False))
            yield invalid((*path, "labelSelector"), shown, text)
    elif signer is not None:
        if not signer:
            yield required((*path, "signerName"), "must be a valid signer name")
        yield from walk((_signer, part("labelSelector", *SELECTOR)), bundle, path)
    else:
        yield required(path, "either name or signerName must be specified")


def _signer(given: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    name, place = given.get("signerName", ""), (*path, "signerName")
    if not name:
        yield required(place)
        return
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        text = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield invalid(place, name, text)
        return
    if len(domain) > 253:
        yield too_long(place, 253)
    for whole, test in ((domain, dns_label), (rest, dns_subdomain)):
        bad = next((one for one in whole.split(".") if test(one)), None)
        if bad is not None:
            for text in test(bad):
                yield invalid(place, whole, f"validating label {quoted(bad)}: {text}")
        if whole is domain and "." not in domain:
            text = "should be a domain with at least two segments separated by dots"
            yield invalid(place, domain, text)


def _own_keys(certificate: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    given, place = certificate.get("userAnnotations") or {}, (*path, "userAnnotations")
    for key in sorted(given):
        name = key.lower()
        if not name:
            yield required(place)
            continue
        messages = qualified_name(name)
        if not messages and "/" not in name:
            messages = ['must be a domain-prefixed key (such as "acme.io/foo")']
        yield from each(messages, place, name)
    if sum(len(key) + len(value) for key, value in given.items()) > _LARGEST_NOTES:
        yield too_long(place, _LARGEST_NOTES)


def _longest(certificate: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    longest, place = certificate.get("maxExpirationSeconds"), (*path, "maxExpirationSeconds")
    if longest is None:
        return
    own = certificate.get("signerName", "").startswith("kubernetes.io/")
    limit = _DAY if own else 91 * _DAY
    if longest < 3600:
        yield invalid(place, longest, "if provided, maxExpirationSeconds must be >= 3600")
    if longest > limit:
        yield invalid(place, longest, f"if provided, maxExpirationSeconds must be <= {limit}")


_CERTIFICATE: Final = (
    _signer,
    _own_keys,
    one_of("keyType", _KEY_TYPES, when="always"),
    _longest,
)


_SPELLED: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""Kubernetes' misspelt names of sources in messages about a second source."""
_CHECKED_AS: Final = {"gcePersistentDisk": "persistentDisk"}
_HOST_TYPES: Final = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate",
    "Socket",
)  # fmt: skip
_INITIATORS: Final = {
    "iqn": r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$",
    "eui": r"^eui.[A-Za-z0-9]{16}$",
    "naa": r"^naa.[A-Za-z0-9]{32}$",
}


def check_volumes(spec: Struct, path: Path, around: Any) -> Iterator[FieldError]:
    """Check the volumes of a pod, and note the valid ones by name in ``around.volumes``."""
    known: dict[str, Struct] = around.volumes
    for index, volume in enumerate(spec.get("volumes") or ()):
        place, name = (*path, "volumes", index), volume["name"]
        found = [*_volume(volume, place), *walk((needed("name", test=dns_label),), volume, place)]
        if name in known:
            found.append(duplicate((*place, "name"), name))
        if not found:
            known[name] = volume
        yield from found


def _volume(volume: Struct, path: Path) -> Iterator[FieldError]:
    given = [name for name in _SOURCES if volume.get(name) is not None]
    if not given:
        yield required(path, "must specify a volume type")
    for number, name in enumerate(given):
        if number:
            place = (*path, _SPELLED.get(name, name))
            yield forbidden(place, "may not specify more than 1 volume type")
        else:
            yield from walk(_SOURCES[name], volume[name], (*path, _CHECKED_AS.get(name, name)))
        if name == "iscsi":
            yield from _initiator_length(volume, path)


def _size_limit(source: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    size = source.get("sizeLimit")
    if size is not None and amount(size).nano < 0:
        text = "SizeLimit field must be a valid resource quantity"
        yield forbidden((*path, "sizeLimit"), text)


def _host_path(source: Struct, path: Path, _: Any) -> list[FieldError]:
    rules = [needed("path", test=no_steps_back)]
    if source["path"]:
        rules.append(one_of("type", _HOST_TYPES))
    return walk(rules, source, path)


def _partition(number: int) -> Messages:
    return [] if 0 <= number <= 255 else [between(1, 255)]


def _absolute(path: str) -> Messages:
    return [] if path.startswith("/") else ["must be an absolute path"]


def _initiator(name: str) -> Messages:
    pattern = _INITIATORS.get(name[:3])
    if pattern is None:
        return ["must be valid format starting with iqn, eui, or naa"]
    return [] if occurs_in(name, pattern) else ["must be valid format"]


def _iscsi_access(source: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    authenticated = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if authenticated and source.get("secretRef") is None:
        yield required((*path, "secretRef"))
    name = source.get("initiatorName")
    if name is not None:
        yield from each(_initiator(name), (*path, "initiatorname"), name)


def _initiator_length(volume: Struct, path: Path) -> Iterator[FieldError]:
    source = volume["iscsi"]
    long = len(f"{volume['name']}:{source['targetPortal']}") > 64
    if source.get("initiatorName") is not None and long:
        text = (
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
            "if iscsi.initiatorName is specified."
        )
        yield invalid((*path, "name"), volume["name"], text)


def _files(source: Struct, path: Path, around: Any) -> Iterator[FieldError]:
    """Check fields of the pod that a volume shows; findings name the volume."""
    for file in source.get("items") or ():
        yield from check_file(file, path, around)


def _fc(source: Struct, path: Path, _: Any) -> Iterator[FieldError]:
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
    elif names and lun is not None:
        yield from each(_LUN(lun), (*path, "lun"), lun)


def _options(source: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    for key in sorted(source.get("options") or {}):
        owner = f".{key.partition('/')[0].lower()}"
        if owner.endswith((".kubernetes.io", ".k8s.io")):
            text = "kubernetes.io and k8s.io namespaces are reserved"
            yield invalid((*path, "options", Key(key)), key, text)


def _disk_address(source: Struct, path: Path, _: Any) -> Iterator[FieldError]:
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


def _driver(source: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    driver = source["driver"]
    if len(driver) > 63:
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


def _claimed(source: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    if source.get("volumeClaimTemplate") is None:
        yield required((*path, "volumeClaimTemplate"))


_LUN: Final = in_range(0, 255)
_DISK: Final = passes(_partition, "partition")
_MODE: Final = passes(file_mode, "defaultMode")
_SOURCES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "emptyDir": (_size_limit,),
    "hostPath": (_host_path,),
    "gitRepo": (needed("repository"), passes(descending, "directory")),
    "gcePersistentDisk": (needed("pdName"), _DISK),
    "awsElasticBlockStore": (needed("volumeID"), _DISK),
    "secret": (needed("secretName"), _MODE, items("items", *ITEMS)),
    "nfs": (needed("server", "path"), passes(_absolute, "path")),
    "iscsi": (
        needed("targetPortal"),
        needed("iqn", test=_initiator),
        passes(_LUN, "lun"),
        _iscsi_access,
    ),
    "glusterfs": (needed("endpoints", "path"),),
    "flocker": (),
    "persistentVolumeClaim": (needed("claimName"),),
    "rbd": (needed("monitors", "image"),),
    "cinder": (needed("volumeID"), part("secretRef", needed("name"))),
    "cephfs": (needed("monitors"),),
    "quobyte": (),
    "downwardAPI": (_MODE, _files),
    "fc": (_fc,),
    "flexVolume": (needed("driver"), _options),
    "configMap": (needed("name"), _MODE, items("items", *ITEMS)),
    "azureFile": (needed("secretName", "shareName"),),
    "vsphereVolume": (needed("volumePath"),),
    "photonPersistentDisk": (needed("pdID"),),
    "portworxVolume": (needed("volumeID"),),
    "azureDisk": (
        needed("diskName", "diskURI"),
        one_of("cachingMode", ("None", "ReadOnly", "ReadWrite")),
        one_of("kind", ("Dedicated", "Managed", "Shared")),
        _disk_address,
    ),
    "storageos": (),
    "projected": (_MODE, projected),
    "scaleIO": (needed("gateway", "system", "volumeName"),),
    "csi": (needed("driver"), _driver),
    "ephemeral": (_claimed, part("volumeClaimTemplate", *CLAIM_TEMPLATE)),
    "image": (one_of("pullPolicy", PULL),),
}
"""The rules of each source, in the order in which Kubernetes looks for one."""
