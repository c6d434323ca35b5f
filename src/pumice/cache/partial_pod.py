"""The parts that count of a pod that cannot be read or applied as a whole.

Used by the informer.  A pod on a node takes room there whatever its other fields are; only its
name, its node, its annotations and its requests are read, each as far as possible.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pumice.api.annotations import GROUP_NAME, PREEMPTABLE
from pumice.api.meta import ObjectMeta, ResourceList
from pumice.api.pods import Container, Pod, PodSpec, PodStatus, ResourceRequirements, SchedulingGate
from pumice.api.quantity import parse_quantity
from pumice.core.resources import is_schedulable_name

_UNREADABLE: Final = (SchedulingGate(name="pumice.dev/not-readable"),)
"""Keeps it from being placed, and distinguishes it from a pod that was read."""


def partial_pod(pod: Mapping[str, Any] | Pod) -> Pod | None:
    """Read the parts of a pod that count on its node; None if not even its name can be read."""
    manifest = msgspec.to_builtins(pod) if isinstance(pod, Pod) else pod
    meta, spec, status = (_mapping(manifest.get(key)) for key in ("metadata", "spec", "status"))
    if not _text(meta, "name"):
        return None
    return Pod(
        metadata=_metadata(meta),
        spec=PodSpec(
            node_name=_text(spec, "nodeName"),
            scheduler_name=_text(spec, "schedulerName"),
            containers=_containers(spec.get("containers")),
            init_containers=_containers(spec.get("initContainers")),
            resources=_resources(spec),
            overhead=_amounts(spec.get("overhead")),
            priority=_int32(spec.get("priority")),
            priority_class_name=_text(spec, "priorityClassName"),
            scheduling_gates=_UNREADABLE,
        ),
        status=PodStatus(phase=_text(status, "phase")),
    )


def is_partial(pod: Pod) -> bool:
    """Return whether a pod was only read in part."""
    return pod.spec.scheduling_gates == _UNREADABLE


def _metadata(meta: Mapping[str, Any]) -> ObjectMeta:
    notes = _texts(meta.get("annotations"))
    return ObjectMeta(
        name=_text(meta, "name"),
        namespace=_text(meta, "namespace"),
        uid=_text(meta, "uid"),
        resource_version=_text(meta, "resourceVersion"),
        # only that there is one matters
        deletion_timestamp="1970-01-01T00:00:00Z" if meta.get("deletionTimestamp") else "",
        labels=_texts(meta.get("labels")),
        annotations={key: notes[key] for key in (GROUP_NAME, PREEMPTABLE) if key in notes},
    )


def _containers(containers: object) -> tuple[Container, ...]:
    items = containers if isinstance(containers, list | tuple) else ()
    return tuple(
        Container(
            resources=_resources(container),
            restart_policy="Always" if container.get("restartPolicy") == "Always" else "",
        )
        for container in map(_mapping, items)
    )


def _resources(part: Mapping[str, Any]) -> ResourceRequirements:
    requests = _mapping(part.get("resources")).get("requests")
    return ResourceRequirements(requests=_amounts(requests))


def _amounts(amounts: object) -> ResourceList:
    """Return the amounts that can be read."""
    out: ResourceList = {}
    for name, quantity in _mapping(amounts).items():
        try:
            parse_quantity(quantity)
        except (ValueError, TypeError):
            continue
        if isinstance(name, str) and name.isascii() and is_schedulable_name(name):
            out[name] = quantity
    return out


def _mapping(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(mapping: Mapping[str, Any], key: str) -> str:
    value = mapping.get(key)
    return value if isinstance(value, str) else ""


def _texts(mapping: object) -> dict[str, str]:
    pairs = _mapping(mapping).items()
    return {key: value for key, value in pairs if isinstance(key, str) and isinstance(value, str)}


def _int32(value: object) -> int | None:
    return value if isinstance(value, int) and -(2**31) <= value < 2**31 else None
