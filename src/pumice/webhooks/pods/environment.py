"""Environment variables of a container, and references to fields of the pod."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pumice.api.quantity import amount
from pumice.webhooks.fields import FieldError, Path, invalid, required, unsupported
from pumice.webhooks.names import (
    config_key,
    dns_label,
    dns_prefix,
    dns_subdomain,
    each,
    env_name,
    qualified_name,
    relaxed_env_name,
)
from pumice.webhooks.pods.paths import no_steps_back

_ENV_FIELDS: Final = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
    "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
FILE_FIELDS: Final = (
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace",
    "metadata.uid",
)  # fmt: skip
_KNOWN_FIELDS: Final = frozenset(
    {*_ENV_FIELDS, *FILE_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"}
)
_RESOURCES: Final = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory",
    "requests.cpu", "requests.ephemeral-storage", "requests.memory",
)  # fmt: skip
_HUGE: Final = ("requests.hugepages-", "limits.hugepages-")
_BYTES: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_ONE_OF: Final = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
)
_SEVERAL: Final = "may not have more than one field specified at a time"


def check_env(given: list[Mapping[str, Any]], path: Path, *, relaxed: bool) -> Iterator[FieldError]:
    """Check the variables of a container; relaxed, almost any name is allowed."""
    rule = relaxed_env_name if relaxed else env_name
    for index, variable in enumerate(given):
        place = (*path, index)
        if variable["name"]:
            yield from each(rule(variable["name"]), (*place, "name"), variable["name"])
        else:
            yield required((*place, "name"))
        if variable.get("valueFrom") is not None:
            yield from _source(variable, (*place, "valueFrom"))


def _source(variable: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    source = variable["valueFrom"]
    if source.get("fieldRef") is not None:
        yield from check_field(source["fieldRef"], (*path, "fieldRef"), _ENV_FIELDS)
    if source.get("resourceFieldRef") is not None:
        place = (*path, "resourceFieldRef")
        yield from check_resource_field(source["resourceFieldRef"], place, in_volume=False)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if source.get(name) is not None:
            yield from _key(source[name], (*path, name))
    if source.get("fileKeyRef") is not None:
        yield from _file(source["fileKeyRef"], (*path, "fileKeyRef"))
    number = len(source)
    if not number:
        yield invalid(path, "", _ONE_OF)
    elif variable.get("value"):
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif number > 1:
        yield invalid(path, "", _SEVERAL)


def _key(given: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    name = given.get("name", "")
    yield from each(dns_subdomain(name), (*path, "name"), name)
    if given["key"]:
        yield from each(config_key(given["key"]), (*path, "key"), given["key"])
    else:
        yield required((*path, "key"))


def _file(given: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    if given["key"]:
        yield from each(relaxed_env_name(given["key"]), (*path, "key"), given["key"])
    else:
        yield required((*path, "key"))
    volume = given["volumeName"]
    if volume:
        yield from each(dns_label(volume), (*path, "volumeName"), volume)
    else:
        yield required((*path, "volumeName"))
    if given["path"]:
        yield from no_steps_back(given["path"], (*path, "path"))
    else:
        yield required((*path, "path"))


def check_field(
    given: Mapping[str, Any], path: Path, allowed: tuple[str, ...]
) -> Iterator[FieldError]:
    """Check a reference to a field of the pod."""
    for key in ("apiVersion", "fieldPath"):
        if not given.get(key):
            yield required((*path, key))
            return
    field = given["fieldPath"]
    problem = _unknown_field(given["apiVersion"], field)
    if problem:
        text = f"error converting fieldPath: {problem}"
        yield invalid((*path, "fieldPath"), field, text)
        return
    owner, key = _subscript(field)
    if owner is not None:
        key = key.lower() if owner == "metadata.annotations" else key
        yield from each(qualified_name(key), path, key)
        return
    field = "spec.nodeName" if field == "spec.host" else field
    if field not in allowed:
        yield unsupported((*path, "fieldPath"), field, allowed)


def _subscript(field: str) -> tuple[str | None, str]:
    """Split ``metadata.labels['key']``; None and an empty text without a subscript."""
    owner, opened, rest = field.partition("['")
    return (owner, rest[:-2]) if opened and rest.endswith("']") else (None, "")


def _unknown_field(version: str, field: str) -> str:
    if version != "v1":
        return f"unsupported pod version: {version}"
    owner, _ = _subscript(field)
    if owner is not None:
        if owner in ("metadata.annotations", "metadata.labels"):
            return ""
        return f"field label does not support subscript: {field}"
    return (
        ""
        if field in _KNOWN_FIELDS or field == "spec.host"
        else f"field label not supported: {field}"
    )


def check_resource_field(
    given: Mapping[str, Any], path: Path, *, in_volume: bool
) -> Iterator[FieldError]:
    """Check a reference to a request or limit of a container."""
    resource = given["resource"]
    if in_volume and not given.get("containerName"):
        yield required((*path, "containerName"))
    elif not resource:
        yield required((*path, "resource"))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE):
        yield unsupported((*path, "resource"), resource, _RESOURCES)
    divisor = amount(given.get("divisor", "0"))
    if divisor.nano:
        yield from _divisor(resource, str(divisor), (*path, "divisor"))


def _divisor(resource: str, divisor: str, path: Path) -> Iterator[FieldError]:
    name = resource.partition(".")[2]
    listed = ", ".join(_BYTES)
    if name == "cpu" and divisor not in ("1m", "1"):
        text = "only divisor's values 1m and 1 are supported with the cpu resource"
        yield invalid(path, resource, text)
    kind = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(name, "")
    if resource not in _RESOURCES:
        kind = "hugepages" if resource.startswith(_HUGE) else ""
    if kind and divisor not in _BYTES:
        text = f"only divisor's values {listed} are supported with the {kind} resource"
        yield invalid(path, resource, text)


def check_env_from(
    given: list[Mapping[str, Any]], path: Path, *, relaxed: bool
) -> Iterator[FieldError]:
    """Check the sources of many variables at once."""
    rule = relaxed_env_name if relaxed else env_name
    for index, source in enumerate(given):
        place = (*path, index)
        if source.get("prefix"):
            yield from each(rule(source["prefix"]), (*place, "prefix"), source["prefix"])
        number = 0
        for name in ("configMapRef", "secretRef"):
            reference = source.get(name)
            if reference is None:
                continue
            number += 1
            if reference.get("name"):
                named = reference["name"]
                yield from each(dns_prefix(named), (*place, name, "name"), named)
            else:
                yield required((*place, name, "name"))
        if number != 1:
            one = "must specify one of: `configMapRef` or `secretRef`"
            yield invalid(path, "", _SEVERAL if number else one)
