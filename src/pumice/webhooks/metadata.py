"""Checks of the metadata that every object has, in Kubernetes' words."""

from collections.abc import Callable, Iterable, Iterator, Mapping
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
)
from pumice.webhooks.names import (
    Messages,
    byte_size,
    dns_label,
    dns_prefix,
    dns_subdomain,
    each,
    labels,
    qualified_name,
)

_LARGEST: Final = 256 * 1024  # bytes of all annotations
_ORPHAN: Final = "orphan"
_FOREGROUND: Final = "foregroundDeletion"
_OWN: Final = ("name", "namespace", "uid", "creationTimestamp")


def check_metadata(
    metadata: Mapping[str, Any],
    *,
    namespaced: bool,
    path: Path = ("metadata",),
    name_rule: Callable[[str], Messages] = dns_subdomain,
) -> Iterator[FieldError]:
    """Check the metadata of a new object."""
    prefix = metadata.get("generateName", "")
    if prefix:
        yield from each(dns_prefix(prefix), (*path, "generateName"), prefix)
    name = metadata.get("name", "")
    if name:
        yield from each(name_rule(name), (*path, "name"), name)
    elif not prefix:
        yield required((*path, "name"), "name or generateName is required")
    namespace = metadata.get("namespace", "")
    if not namespaced:
        if namespace:
            yield forbidden((*path, "namespace"), "not allowed on this type")
    elif not namespace:
        yield required((*path, "namespace"))
    else:
        yield from each(dns_label(namespace), (*path, "namespace"), namespace)
    generation = metadata.get("generation", 0)
    if generation < 0:
        text = "must be greater than or equal to 0"
        yield invalid((*path, "generation"), generation, text)
    yield from _shared(metadata, path)
    yield from _finalizers(metadata.get("finalizers") or [], (*path, "finalizers"))


def check_metadata_update(
    metadata: Mapping[str, Any], old: Mapping[str, Any], path: Path = ("metadata",)
) -> Iterator[FieldError]:
    """Check the metadata of a changed object."""
    for key in _OWN:
        if metadata.get(key) != old.get(key) and (metadata.get(key) or key == "name"):
            yield invalid((*path, key), metadata.get(key, ""), "field is immutable")
    yield from _shared(metadata, path)


def _shared(metadata: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    yield from labels(metadata.get("labels"), (*path, "labels"))
    yield from check_annotations(metadata.get("annotations"), (*path, "annotations"))
    yield from _owners(metadata.get("ownerReferences") or [], (*path, "ownerReferences"))


def check_annotations(given: Mapping[str, str] | None, path: Path) -> Iterator[FieldError]:
    """Check the keys of annotations and their size."""
    total = 0
    for key, value in sorted((given or {}).items()):
        if wrong := qualified_name(key.lower()):
            yield from each(wrong, path, key)
        total += byte_size(key) + byte_size(value)
    if total > _LARGEST:
        yield too_long(path, _LARGEST)


def _owners(given: list[Mapping[str, Any]], path: Path) -> Iterator[FieldError]:
    first = ""
    for owner in given:
        version = owner["apiVersion"].rpartition("/")[2]
        if not version:
            text = "version must not be empty"
            yield invalid((*path, "apiVersion"), owner["apiVersion"], text)
        for key in ("kind", "name", "uid"):
            if not owner[key]:
                yield invalid((*path, key), owner[key], "must not be empty")
        if (owner["apiVersion"], owner["kind"]) == ("v1", "Event"):
            text = "/v1, Kind=Event is disallowed from being an owner"
            yield invalid(path, dict(owner), text)
        if owner.get("controller"):
            named = f"{owner['kind']}/{owner['name']}"
            if first:
                text = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {first} and {named}'
                )
                yield invalid(path, Shown(go_json(given, sort=False)), text)
            first = first or named


def _finalizers(given: list[str], path: Path) -> Iterator[FieldError]:
    for name in given:
        yield from each(qualified_name(name), path, name)
    if _ORPHAN in given and _FOREGROUND in given:
        text = f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set"
        yield invalid(path, given, text)


def finalizer_warnings(given: Iterable[str]) -> list[str]:
    """Warn about finalizers of a custom resource that do not name their owner."""
    found = []
    for name in sorted(set(given)):
        start = f"metadata.finalizers: {quoted(name)}: "
        found += [f"{start}{text}" for text in qualified_name(name)]
        if "/" not in name and name not in (_ORPHAN, _FOREGROUND, "kubernetes"):
            path = " including a path (/)" if "." in name else ""
            found.append(
                f"{start}prefer a domain-qualified finalizer name{path} to avoid accidental "
                "conflicts with other finalizer writers"
            )
    return found
