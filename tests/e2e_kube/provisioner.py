"""A storage driver's provisioner, as far as claims and schedulers see one."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tests.e2e_kube.kubectl import Kubectl, documents

SELECTED: Final = "volume.kubernetes.io/selected-node"
_MADE_BY: Final = "volume.kubernetes.io/storage-provisioner"
_PAUSE_S: Final = 0.1


class Provisioner:
    """Makes a local volume for each claim of its name once a node is selected for it."""

    def __init__(self, kubectl: Kubectl, name: str) -> None:
        self._kubectl = kubectl
        self._name = name
        self._served: set[str] = set()
        self.rejects = 0
        """How many claims are still to be refused, by taking the selection back."""

    @contextmanager
    def running(self) -> Iterator["Provisioner"]:
        """Look for claims until the end."""
        stop = threading.Event()
        thread = threading.Thread(target=self._run, args=(stop,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            stop.set()
            thread.join(10)

    def _run(self, stop: threading.Event) -> None:
        while not stop.wait(_PAUSE_S):
            for claim in self._kubectl.items("pvc"):
                marks = claim["metadata"].get("annotations") or {}
                mine = marks.get(_MADE_BY) == self._name and not claim["spec"].get("volumeName")
                if mine and SELECTED in marks and claim["metadata"]["uid"] not in self._served:
                    self._serve(claim, marks[SELECTED])

    def _serve(self, claim: dict[str, Any], node: str) -> None:
        meta, spec = claim["metadata"], claim["spec"]
        if self.rejects:
            self.rejects -= 1
            self._kubectl("annotate", "pvc", meta["name"], f"{SELECTED}-")
            return
        place = {key: meta[key] for key in ("namespace", "name", "uid")}
        volume = local_volume(
            f"pvc-{meta['uid']}",
            node,
            storage_class=spec["storageClassName"],
            size=spec["resources"]["requests"]["storage"],
            accessModes=spec["accessModes"],
            claimRef={"kind": "PersistentVolumeClaim", "apiVersion": "v1", **place},
        )
        volume["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": self._name}
        if self._kubectl.run("create", "-f", "-", given=documents([volume])).returncode == 0:
            self._served.add(meta["uid"])


def local_volume(
    name: str, *nodes: str, storage_class: str, size: str = "1Gi", **spec: Any
) -> dict[str, Any]:
    """Build a volume that some nodes reach."""
    only = {"key": "kubernetes.io/hostname", "operator": "In", "values": [*nodes]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
            "storageClassName": storage_class,
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": f"/disks/{name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [only]}]}},
            **spec,
        },
    }
