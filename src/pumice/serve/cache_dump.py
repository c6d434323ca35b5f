"""The cache of a process, written to a file on a signal.

Parts that do not matter for scheduling and may be confidential are left out: commands, environments
and volumes of pods, templates of pods, and annotations other than those of schedulers.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from pumice import logs
from pumice.api.kinds import Manifest
from pumice.api.output_files import replacing
from pumice.cluster.base import Cluster
from pumice.errors import ClusterError

BIGGEST: Final = 100 << 20
"""Bytes of a dump; the folder of a container has room for two."""
_KEPT: Final = 2
_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "Pod": frozenset(
        (
            "nodeName",
            "nodeSelector",
            "schedulerName",
            "priority",
            "priorityClassName",
            "schedulingGates",
            "tolerations",
            "affinity",
        )
    ),
    "PersistentVolume": frozenset(
        ("accessModes", "capacity", "claimRef", "nodeAffinity", "storageClassName", "volumeMode")
    ),
}
"""Fields of a spec that are kept, if not all are."""
_LEFT_OUT: Final = frozenset(
    ("jobTemplate", "tasks", "template", "templates", "volumeClaimTemplates", "volumes")
)
_METADATA: Final = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "ownerReferences",
    "finalizers",
)
_CONTAINER_STATUSES: Final = "containerstatuses"
"""Suffixes, in lower case, of status fields with termination messages of containers."""
_OURS: Final = ("volcano.sh", "scheduling.k8s.io")

_encode: Final = msgspec.json.Encoder(enc_hook=str).encode
_log = logs.get("dump")


def write_dump(
    cluster: Cluster, kinds: Iterable[str], folder: str, name: str, *, biggest: int = BIGGEST
) -> Path:
    """Write the known objects of some kinds to a new file that only its owner can read.

    Objects beyond ``biggest`` bytes are left out, and counted at its end.  Of the
    dumps of one process the last two are kept.
    """
    mine = f"{name}-{os.getpid()}-"
    path = Path(folder) / f"{mine}{int(cluster.now())}.json"
    size = left_out = 0
    with replacing(path, private=True) as file:
        file.write(b'{"at":%s,"objects":{' % _encode(cluster.now()))
        for number, kind in enumerate(kinds):
            file.write(b"%s\n%s:[" % (b"," if number else b"", _encode(kind)))
            separator = b"\n"
            for kept in _known(cluster, kind):
                line = _encode(kept)
                if size + len(line) > biggest:
                    left_out += 1
                    continue
                size += file.write(separator + line)
                separator = b",\n"
            file.write(b"]")
        file.write(b'},"left_out":%d}\n' % left_out)
    for old in sorted(Path(folder).glob(f"{mine}*.json"))[:-_KEPT]:
        with suppress(OSError):
            old.unlink()
    _log.info("wrote the cache dump", file=path, left_out=left_out)
    return path


def _known(cluster: Cluster, kind: str) -> Iterator[Manifest]:
    try:
        found = cluster.list(kind)[0]
    except ClusterError as error:
        _log.warning("left out of the dump", kind=kind, error=error)
        return
    for manifest in found:
        yield _trimmed(kind, manifest)


def _trimmed(kind: str, manifest: Manifest) -> Manifest:
    known = manifest["metadata"]
    metadata = {name: known[name] for name in _METADATA if name in known}
    annotations = {
        name: value for name, value in (known.get("annotations") or {}).items() if _is_ours(name)
    }
    if annotations:
        metadata["annotations"] = annotations
    spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
    kept = {"metadata": metadata, "spec": _spec(kind, spec)}
    if status:
        kept["status"] = {
            name: value
            for name, value in status.items()
            if not name.lower().endswith(_CONTAINER_STATUSES)
        }
    if "value" in manifest:
        kept["value"] = manifest["value"]
    return kept


def _is_ours(annotation: str) -> bool:
    """Return whether an annotation is for schedulers; others may hold even whole manifests."""
    domain, slash, _ = annotation.partition("/")
    return bool(slash) and (domain in _OURS or domain.endswith(".volcano.sh"))


def _spec(kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    fields = _FIELDS.get(kind)
    if fields is None:
        return {name: value for name, value in spec.items() if name not in _LEFT_OUT}
    kept: dict[str, Any] = {name: spec[name] for name in spec if name in fields}
    for group in ("initContainers", "containers") if kind == "Pod" else ():
        kept[group] = [
            {"name": one.get("name"), "resources": one.get("resources") or {}}
            for one in spec.get(group) or ()
        ]
    return kept
