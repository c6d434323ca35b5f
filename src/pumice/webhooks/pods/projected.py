"""Volumes made of keys, fields and tokens: their items, and projections of several."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pumice.webhooks.fields import (
    FieldError,
    Path,
    Shown,
    forbidden,
    go_json,
    invalid,
    quoted,
    required,
    too_long,
    unsupported,
)
from pumice.webhooks.names import dns_label, dns_subdomain, each, qualified_name
from pumice.webhooks.pods.affinity import check_selector
from pumice.webhooks.pods.environment import FILE_FIELDS, check_field, check_resource_field
from pumice.webhooks.pods.paths import local

BAD_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
_TWICE: Final = "conflicting duplicate paths"
_KEY_TYPES: Final = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_SHORTEST_TOKEN: Final = 600
_LONGEST_TOKEN: Final = 2**32
_DAY: Final = 86400
_LARGEST_NOTES: Final = 256 * 1024
_CERTIFICATE_PATHS: Final = ("credentialBundlePath", "keyPath", "certificateChainPath")


def is_mode(mode: int) -> bool:
    """Return whether a number is a file mode."""
    return 0 <= mode <= 0o777


def check_items(items: list[Mapping[str, Any]], path: Path) -> Iterator[FieldError]:
    """Check keys and the paths they appear under."""
    for index, item in enumerate(items):
        yield from _item(item, (*path, index))


def _item(item: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    for key in ("key", "path"):
        if not item[key]:
            yield required((*path, key))
    yield from local(item["path"], (*path, "path"))
    mode = item.get("mode")
    if mode is not None and not is_mode(mode):
        yield invalid((*path, "mode"), mode, BAD_MODE)


def check_files(files: list[Mapping[str, Any]], path: Path) -> Iterator[FieldError]:
    """Check fields of the pod and the paths they appear under; findings name the volume."""
    for file in files:
        yield from _file(file, path)


def _file(file: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    if not file["path"]:
        yield required((*path, "path"))
    yield from local(file["path"], (*path, "path"))
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        yield from check_field(field, (*path, "fieldRef"), FILE_FIELDS)
        if resource is not None:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield invalid(path, "resource", text)
    elif resource is not None:
        yield from check_resource_field(resource, (*path, "resourceFieldRef"), in_volume=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    mode = file.get("mode")
    if mode is not None and not is_mode(mode):
        yield invalid((*path, "mode"), mode, BAD_MODE)


def check_projected(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    """Check a volume that shows several sources."""
    mode = source.get("defaultMode")
    if mode is not None and not is_mode(mode):
        yield invalid((*path, "defaultMode"), mode, BAD_MODE)
    taken: set[str] = set()
    for index, one in enumerate(source["sources"] or ()):
        place = (*path, "sources", index)
        for name in ("secret", "configMap"):
            if one.get(name) is not None:
                yield from _keys(one[name], (*place, name), path, taken)
        if one.get("downwardAPI") is not None:
            for file in one["downwardAPI"].get("items") or ():
                yield from _file(file, (*place, "downwardAPI"))
                yield from _once(file["path"], file["path"], path, taken)
        yield from _others(one, place, path, taken)
        if len(one) > 1:
            yield forbidden(place, "may not specify more than 1 volume type per source")


def _others(
    one: Mapping[str, Any], place: Path, volume: Path, taken: set[str]
) -> Iterator[FieldError]:
    if one.get("serviceAccountToken") is not None:
        token = (*place, "serviceAccountToken")
        yield from _token(one["serviceAccountToken"], token, volume)
    if one.get("clusterTrustBundle") is not None:
        bundle = (*place, "clusterTrustBundle")
        yield from _bundle(one["clusterTrustBundle"], bundle)
        path = one["clusterTrustBundle"]["path"]
        if path in taken:
            yield invalid(volume, path, _TWICE)
        taken.add(path)
    if one.get("podCertificate") is not None:
        certificate = (*place, "podCertificate")
        yield from _certificate(one["podCertificate"], certificate, volume, taken)


def _keys(
    source: Mapping[str, Any], path: Path, volume: Path, taken: set[str]
) -> Iterator[FieldError]:
    name = source.get("name", "")
    if not name:
        yield required((*path, "name"))
    for index, item in enumerate(source.get("items") or ()):
        yield from _item(item, (*path, "items", index))
        yield from _once(item["path"], name, volume, taken)


def _once(path: str, shown_path: str, volume: Path, taken: set[str]) -> Iterator[FieldError]:
    if path and path in taken:
        yield invalid(volume, shown_path, _TWICE)
    if path:
        taken.add(path)


def _token(token: Mapping[str, Any], path: Path, volume: Path) -> Iterator[FieldError]:
    seconds, place = token["expirationSeconds"], (*path, "expirationSeconds")
    if seconds < _SHORTEST_TOKEN:
        yield invalid(place, seconds, "may not specify a duration less than 10 minutes")
    if seconds > _LONGEST_TOKEN:
        yield invalid(place, seconds, "may not specify a duration larger than 2^32 seconds")
    if token["path"]:
        yield from local(token["path"], (*volume, "path"))
    else:
        yield required((*volume, "path"))


def _bundle(bundle: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
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
        yield from _bundle_name(name, (*path, "name"))
        if bundle.get("labelSelector") is not None:
            text = "labelSelector must be unset if name is specified"
            shown = Shown(go_json(bundle["labelSelector"], sort=False))
            yield invalid((*path, "labelSelector"), shown, text)
    elif signer is not None:
        if not signer:
            yield required((*path, "signerName"), "must be a valid signer name")
        yield from _signer(signer, (*path, "signerName"))
        yield from check_selector(bundle.get("labelSelector"), (*path, "labelSelector"))
    else:
        yield required(path, "either name or signerName must be specified")
    if not bundle["path"]:
        yield required((*path, "path"))
    yield from local(bundle["path"], (*path, "path"))


def _bundle_name(name: str, path: Path) -> Iterator[FieldError]:
    if not name:
        yield required(path, "must be a valid object name")
    own = name.rpartition(":")[2]
    for text in dns_subdomain(own):
        yield invalid(path, name, f"not a valid clustertrustbundlename: {text}")


def _signer(name: str, path: Path) -> Iterator[FieldError]:
    if not name:
        yield required(path)
        return
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        text = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield invalid(path, name, text)
        return
    if len(domain) > 253:
        yield too_long(path, 253)
    parts = domain.split(".")
    bad = next((part for part in parts if dns_label(part)), None)
    if bad is not None:
        for text in dns_label(bad):
            yield invalid(path, domain, f"validating label {quoted(bad)}: {text}")
    if len(parts) < 2:
        text = "should be a domain with at least two segments separated by dots"
        yield invalid(path, domain, text)
    bad = next((part for part in rest.split(".") if dns_subdomain(part)), None)
    if bad is not None:
        for text in dns_subdomain(bad):
            yield invalid(path, rest, f"validating label {quoted(bad)}: {text}")


def _own_keys(given: Mapping[str, str], path: Path) -> Iterator[FieldError]:
    for key in sorted(given):
        name = key.lower()
        if not name:
            yield required(path)
            continue
        messages = qualified_name(name)
        if not messages and "/" not in name:
            messages = ['must be a domain-prefixed key (such as "acme.io/foo")']
        yield from each(messages, path, name)
    if sum(len(key) + len(value) for key, value in given.items()) > _LARGEST_NOTES:
        yield too_long(path, _LARGEST_NOTES)


def _certificate(
    given: Mapping[str, Any], path: Path, volume: Path, taken: set[str]
) -> Iterator[FieldError]:
    signer = given.get("signerName", "")
    yield from _signer(signer, (*path, "signerName"))
    yield from _own_keys(given.get("userAnnotations") or {}, (*path, "userAnnotations"))
    kind = given.get("keyType", "")
    if kind not in _KEY_TYPES:
        yield unsupported((*path, "keyType"), kind, _KEY_TYPES)
    longest = given.get("maxExpirationSeconds")
    if longest is not None:
        place, limit = (*path, "maxExpirationSeconds"), 91 * _DAY
        if signer.startswith("kubernetes.io/"):
            limit = _DAY
        if longest < 3600:
            text = "if provided, maxExpirationSeconds must be >= 3600"
            yield invalid(place, longest, text)
        if longest > limit:
            text = f"if provided, maxExpirationSeconds must be <= {limit}"
            yield invalid(place, longest, text)
    files = [name for name in _CERTIFICATE_PATHS if given.get(name)]
    for name in files:
        yield from local(given[name], (*path, name))
        yield from _once(given[name], given[name], volume, taken)
    if not files:
        text = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
        yield required(path, text)
