"""Where a storage class can provision a volume: its topologies, and the storage that is left."""

from typing import Any

import numpy as np

from pumice.api.storage import STATIC_ONLY, PersistentVolumeClaim
from pumice.core.labels import NodeLabels
from pumice.core.resources import Mask
from pumice.core.snapshot import Snapshot


class Provisioning:
    """Answers for the storage classes of a session."""

    def __init__(self, snapshot: Snapshot, labels: NodeLabels) -> None:
        self._labels, self._n = labels, snapshot.nodes.n
        self._classes: dict[str, Any] = snapshot.kind("StorageClass")
        self._drivers: dict[str, Any] = snapshot.kind("CSIDriver")
        self._capacities: dict[str, Any] = snapshot.kind("CSIStorageCapacity")
        self._topologies: dict[str, Mask] = {}
        self._rooms: dict[tuple[str, int], Mask] = {}

    def can_make(self, claim: PersistentVolumeClaim) -> Mask:
        """Mark nodes for which the class of a claim can provision (n,)."""
        name = claim.class_name
        if name not in self._topologies:
            self._topologies[name] = self._allowed(name)
        fits, chosen = self._topologies[name], claim.selected_node
        if chosen is None:
            return fits
        return fits & self._labels.names().where(lambda node: node == chosen)

    def has_room(self, claim: PersistentVolumeClaim) -> Mask:
        """Mark nodes with storage for a claim, as far as its driver reports (n,)."""
        name, size = claim.class_name, claim.size
        if (name, size) not in self._rooms:
            self._rooms[name, size] = self._roomy(claim)
        return self._rooms[name, size]

    def _allowed(self, name: str) -> Mask:
        known = self._classes.get(name)
        if known is None or known.provisioner in ("", STATIC_ONLY):
            return np.zeros(self._n, dtype=bool)
        fits = np.full(self._n, not known.allowed_topologies)
        for term in known.allowed_topologies:
            here = np.full(self._n, bool(term.match_label_expressions))
            for each in term.match_label_expressions:
                values = set(each.values)
                here &= self._labels.column(each.key).where(values.__contains__)
            fits |= here
        return fits

    def _roomy(self, claim: PersistentVolumeClaim) -> Mask:
        known = self._classes.get(claim.class_name)
        driver = None if known is None else self._drivers.get(known.provisioner)
        asks = "storage" in claim.spec.resources.requests
        if driver is None or not driver.spec.storage_capacity or not asks:
            return np.ones(self._n, dtype=bool)
        found = np.zeros(self._n, dtype=bool)
        for each in self._capacities.values():
            if each.storage_class_name == claim.class_name and each.largest >= claim.size:
                found |= self._labels.labelled(each.node_topology)
        return found
