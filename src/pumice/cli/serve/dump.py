"""What a process knows of the cluster, written to a file when a signal asks for it.

Commands, environments and volumes of pods are left out: they may hold what is not for everybody.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from pumice import logs
from pumice.cluster.base import Cluster, Manifest
from pumice.errors import ClusterError

_POD_SPEC: Final = (
    "nodeName",
    "nodeSelector",
    "schedulerName",
    "priority",
    "priorityClassName",
    "schedulingGates",
    "tolerations",
    "affinity",
)
_log = logs.get("dump")


def write_dump(cluster: Cluster, kinds: Iterable[str], folder: str, name: str) -> Path:
    """Write what is known of some kinds to a new file that only its owner can read."""
    known: dict[str, list[Manifest]] = {}
    for kind in kinds:
        try:
            known[kind] = [_told(kind, manifest) for manifest in cluster.list(kind)[0]]
        except ClusterError as error:
            _log.warning("left out of the dump", kind=kind, error=error)
    path = Path(folder) / f"{name}-{os.getpid()}-{int(cluster.now())}.json"
    text = json.dumps({"at": cluster.now(), "objects": known}, indent=1, default=str)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    _log.info("wrote what is known", file=path)
    return path


def _told(kind: str, manifest: Manifest) -> Manifest:
    metadata = {
        name: value for name, value in manifest["metadata"].items() if name != "managedFields"
    }
    spec = manifest.get("spec") or {}
    if kind == "Pod":
        spec = _pod_spec(spec)
    told = {"metadata": metadata, "spec": spec}
    told.update({name: manifest[name] for name in ("status", "value") if name in manifest})
    return told


def _pod_spec(spec: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {name: spec[name] for name in _POD_SPEC if name in spec}
    for group in ("initContainers", "containers"):
        kept[group] = [
            {"name": one.get("name"), "resources": one.get("resources") or {}}
            for one in spec.get(group) or ()
        ]
    return kept
