"""Claims of a pod: on devices, and on volumes of its own."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pumice.api.quantity import amount
from pumice.webhooks.fields import (
    FieldError,
    Key,
    Path,
    Shown,
    duplicate,
    forbidden,
    go_json,
    invalid,
    required,
    unsupported,
)
from pumice.webhooks.metadata import check_annotations
from pumice.webhooks.names import dns_label, dns_subdomain, each, labels
from pumice.webhooks.pods.affinity import check_selector
from pumice.webhooks.pods.resources import check_amount

_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES: Final = ("Block", "Filesystem")
_META_ORDER: Final = ("name", "generateName", "namespace", "finalizers")


def check_resource_claims(given: list[Mapping[str, Any]], path: Path) -> Iterator[FieldError]:
    """Check the claims on devices that a pod makes."""
    names: set[str] = set()
    for index, claim in enumerate(given):
        place, name = (*path, index), claim["name"]
        if not name:
            yield required((*place, "name"))
        elif name in names:
            yield duplicate((*place, "name"), name)
        else:
            yield from each(dns_label(name), (*place, "name"), name)
            names.add(name)
        yield from _claimed(claim, place)


def _claimed(claim: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    direct, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
    fields = {
        "Name": claim["name"],
        "ResourceClaimName": direct,
        "ResourceClaimTemplateName": template,
    }
    shown = Shown(go_json(fields, sort=False))
    if direct is not None and template is not None:
        text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        yield invalid(path, shown, text)
    if direct is None and template is None:
        text = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        yield invalid(path, shown, text)
    for key, value in (("resourceClaimName", direct), ("resourceClaimTemplateName", template)):
        if value is not None:
            yield from each(dns_subdomain(value), (*path, key), value)


def check_claim_template(template: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    """Check the template of a claim on a volume."""
    metadata, place = template["metadata"], (*path, "metadata")
    yield from check_annotations(metadata.get("annotations"), (*place, "annotations"))
    yield from labels(metadata.get("labels"), (*place, "labels"))
    for key in _META_ORDER:
        if metadata.get(key):
            yield forbidden((*place, key), "cannot be set")
    yield from check_claim_spec(template["spec"], (*path, "spec"))


def check_claim_spec(spec: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    """Check a claim on a volume."""
    modes, place = spec.get("accessModes") or [], (*path, "accessModes")
    if not modes:
        yield required(place, "at least 1 access mode is required")
    yield from check_selector(spec.get("selector"), (*path, "selector"))
    for mode in modes:
        if mode not in _MODES:
            yield unsupported(place, mode, _MODES)
    if "ReadWriteOncePod" in modes and set(modes) & set(_MODES[:3]):
        yield forbidden(place, "may not use ReadWriteOncePod with other access modes")
    yield from _storage(spec, path)
    yield from _class_name(spec, "storageClassName", path)
    mode = spec.get("volumeMode")
    if mode is not None and mode not in _VOLUME_MODES:
        yield unsupported((*path, "volumeMode"), mode, _VOLUME_MODES)
    yield from _sources(spec, path)
    yield from _class_name(spec, "volumeAttributesClassName", path)


def _storage(spec: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
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


def _class_name(spec: Mapping[str, Any], key: str, path: Path) -> Iterator[FieldError]:
    if spec.get(key):
        yield from each(dns_subdomain(spec[key]), (*path, key), spec[key])


def _sources(spec: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for key, given in (("dataSource", source), ("dataSourceRef", reference)):
        if given is not None:
            yield from _source(given, (*path, key))
    if source is None or reference is None:
        return
    if reference.get("namespace"):
        text = "may not be specified when dataSourceRef.namespace is specified"
        yield invalid(path, Shown("{}"), text)
    elif any(source.get(key) != reference.get(key) for key in ("apiGroup", "kind", "name")):
        yield invalid(path, Shown("{}"), "must match dataSourceRef")


def _source(given: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    for key in ("name", "kind"):
        if not given[key]:
            yield required((*path, key))
    group = given.get("apiGroup") or ""
    if not group and given["kind"] != "PersistentVolumeClaim":
        text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        yield invalid(path, given["kind"], text)
    if group:
        yield from each(dns_subdomain(group), (*path, "apiGroup"), group)
    namespace = given.get("namespace")
    if namespace:
        yield from each(dns_label(namespace), (*path, "namespace"), namespace)
