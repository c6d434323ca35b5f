"""Mounts of a pod's volumes in a container."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pumice.webhooks.fields import (
    FieldError,
    Path,
    forbidden,
    invalid,
    not_found,
    required,
    unsupported,
)
from pumice.webhooks.pods.paths import descending

_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE: Final = ("Disabled", "Enabled", "IfPossible")
Volumes = Mapping[str, Mapping[str, Any]]


def check_mounts(
    container: Mapping[str, Any], volumes: Volumes, path: Path
) -> Iterator[FieldError]:
    """Check the mounts of a container."""
    devices = {one["name"]: one["devicePath"] for one in container.get("volumeDevices") or ()}
    places: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        place = (*path, index)
        name, where = mount["name"], mount["mountPath"]
        if not name:
            yield required((*place, "name"))
        if name not in volumes:
            yield not_found((*place, "name"), name)
        if not where:
            yield required((*place, "mountPath"))
        if where in places:
            yield invalid((*place, "mountPath"), where, "must be unique")
        places.add(where)
        if name in devices:
            text = "must not already exist in volumeDevices"
            yield invalid((*place, "name"), name, text)
        if where in devices.values():
            text = "must not already exist as a path in volumeDevices"
            yield invalid((*place, "mountPath"), where, text)
        yield from _inside(mount, path, place)
        yield from _propagation(mount, container, path)


def _inside(mount: Mapping[str, Any], path: Path, place: Path) -> Iterator[FieldError]:
    """Check the path inside the volume; its findings name the list, not the item."""
    inner, expression = mount.get("subPath"), mount.get("subPathExpr")
    if inner:
        yield from descending(inner, (*path, "subPath"))
    if expression:
        if inner:
            text = "subPathExpr and subPath are mutually exclusive"
            yield invalid((*place, "subPathExpr"), expression, text)
        yield from descending(expression, (*path, "subPathExpr"))


def _propagation(
    mount: Mapping[str, Any], container: Mapping[str, Any], path: Path
) -> Iterator[FieldError]:
    mode, place = mount.get("mountPropagation"), (*path, "mountPropagation")
    if mode is not None and mode not in _PROPAGATIONS:
        yield unsupported(place, mode, _PROPAGATIONS)
    privileged = (container.get("securityContext") or {}).get("privileged")
    if mode == "Bidirectional" and not privileged:
        text = "Bidirectional mount propagation is available only to privileged containers"
        yield forbidden(place, text)
    recursive, place = mount.get("recursiveReadOnly"), (*path, "recursiveReadOnly")
    if recursive is not None and recursive not in _RECURSIVE:
        yield unsupported(place, recursive, _RECURSIVE)
    elif recursive in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            yield forbidden(place, "may only be specified when readOnly is true")
        if mode not in (None, "None"):
            text = "may only be specified when mountPropagation is None or not specified"
            yield forbidden(place, text)


def check_devices(
    container: Mapping[str, Any], volumes: Volumes, path: Path
) -> Iterator[FieldError]:
    """Check the block devices of a container."""
    mounts = {one["name"]: one["mountPath"] for one in container.get("volumeMounts") or ()}
    names: set[str] = set()
    places: set[str] = set()
    for index, device in enumerate(container.get("volumeDevices") or ()):
        place = (*path, index)
        name, where = device["name"], device["devicePath"]
        yield from _device_name(name, names, volumes, (*place, "name"))
        if not where:
            yield required((*place, "devicePath"))
        if where in places:
            yield invalid((*place, "devicePath"), where, "must be unique")
        if ".." in where.split("/"):
            text = "can not contain backsteps ('..')"
            yield invalid((*place, "devicePath"), where, text)
        else:
            places.add(where)
        if name in mounts:
            text = "must not already exist in volumeMounts"
            yield invalid((*place, "name"), name, text)
        if where in mounts.values():
            text = "must not already exist as a path in volumeMounts"
            yield invalid((*place, "devicePath"), where, text)
        if name:
            names.add(name)


def _device_name(name: str, names: set[str], volumes: Volumes, path: Path) -> Iterator[FieldError]:
    if not name:
        yield required(path)
    if name in names:
        yield invalid(path, name, "must be unique")
    if name not in volumes:
        yield not_found(path, name)
    elif not {"persistentVolumeClaim", "ephemeral"} & set(volumes[name]):
        text = (
            "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        )
        yield invalid(path, name, text)
