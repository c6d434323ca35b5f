"""Volumes: their zones, where they are reachable or available, and how many a node takes."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.api.annotations import OLD_ZONE, ZONE
from pumice.core.labels import node_labels
from pumice.core.resources import Column, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.views import Task
from pumice.plugins.predicates.claims import Claims, Offer, Promise
from pumice.plugins.predicates.neighbours import refuse
from pumice.plugins.predicates.reasons import Code

_ZONE, _REGION = ZONE, "topology.kubernetes.io/region"
_OLD_ZONE, _OLD_REGION = OLD_ZONE, "failure-domain.beta.kubernetes.io/region"
_TODAY = {_OLD_ZONE: _ZONE, _OLD_REGION: _REGION, _ZONE: _ZONE, _REGION: _REGION}
"""Labels with the place of a volume, with the present name of each."""

_SEPARATOR = "__"
"""Separates several zones in one label of a volume."""


class Volumes:
    """Tests the requirements of a pod's volumes on a node."""

    def __init__(self, snapshot: Snapshot, *, limits: bool, zones: bool, binding: bool) -> None:
        self._snapshot = snapshot
        self._labels = node_labels(snapshot)
        self.claims = Claims(snapshot)
        self._zones, self._binding = zones, binding
        self._counts = AttachedVolumes(snapshot, self.claims) if limits else None
        self._zone_masks: dict[Any, Mask | None] = {}
        self._masks: dict[Any, tuple[int, Mask | None, Offer]] = {}

    def problem(self, task: Task) -> str:
        """Return why no node can provide a pod's volumes; empty if one may."""
        return self.claims.problem(task, binding=self._binding, zones=self._zones)

    def settle(self, codes: NDArray[np.int16], task: Task, rows: Any) -> None:
        """Write reasons into the codes of some nodes."""
        full = None if self._counts is None else self._counts.over_limit(task)
        if full is not None:
            refuse(codes, full[rows], Code.VOLUME_LIMIT)
        if self._zones:
            keys = self.claims.named(task)
            if keys not in self._zone_masks:
                self._zone_masks[keys] = self._in_zone(keys)
            near = self._zone_masks[keys]
            if near is not None:
                refuse(codes, ~near[rows], Code.VOLUME_ZONE)

    def settle_binding(self, codes: NDArray[np.int16], task: Task, rows: Any) -> None:
        """Write reasons of volume binding, which comes last, into the codes of some nodes."""
        if not self._binding:
            return
        bound, offer = self._matched(task)
        if bound is not None:
            refuse(codes, ~bound[rows], Code.VOLUME_NODE)
        refuse(codes, ~offer.fits[rows], Code.VOLUME_BINDING)
        refuse(codes, ~offer.has_room[rows], Code.VOLUME_CAPACITY)

    def _matched(self, task: Task) -> tuple[Mask | None, Offer]:
        """Return where a pod's volumes are reachable or available, given the present promises."""
        keys, version = self.claims.keys(task), self.claims.version
        kept = self._masks.get(keys)
        if kept is None or kept[0] != version:
            bound, offer = self.claims.bound_fits(task), self.claims.offer(task)
            kept = self._masks[keys] = (version, bound, offer)
        return kept[1], kept[2]

    def _in_zone(self, keys: tuple[str, ...]) -> Mask | None:
        """Mark nodes in the zones of claims' volumes, or in none at all (n,); None: all."""
        volumes = [
            each for each in self.claims.volumes(keys) if _TODAY.keys() & each.metadata.labels
        ]
        if not volumes:
            return None
        fits = np.ones(self._snapshot.nodes.n, dtype=bool)
        nowhere = fits.copy()
        for key in _TODAY:
            nowhere &= self._labels.column(key).codes < 0
        for volume in volumes:
            for key, today in _TODAY.items():
                text = volume.metadata.labels.get(key)
                if text is not None:
                    fits &= self._labelled(key, today, set(text.split(_SEPARATOR)))
        return fits | nowhere

    def _labelled(self, key: str, today: str, values: set[str]) -> Mask:
        """Mark nodes whose label has one of the values; without it, the present name is matched."""
        column, newer = self._labels.column(key), self._labels.column(today)
        is_one_of: Callable[[str | None], bool] = values.__contains__
        return np.where(column.codes < 0, newer.where(is_one_of), column.where(is_one_of))

    # Following moves

    def follow(self, task: int, node: int, sign: int) -> None:
        """Follow a change of the view: count volumes, promise them to claims that wait."""
        view = Task(self._snapshot, task)
        keys = self.claims.keys(view) if view.shape.spec.volumes else ()
        if not keys:
            return
        journal = self._snapshot.journal
        if self._counts is not None:
            self._counts.add(keys, node, sign)
            journal.on_rollback(self._counts.add, keys, node, -sign)
        changes = self._promises(view, node) if sign > 0 else self._returned(task, keys)
        if not changes:
            return
        changed = self.claims.changed_by(changes)
        for key, promise in changes.items():
            journal.on_rollback(self.claims.promise, key, self.claims.promises.get(key))
            self.claims.promise(key, promise)
        if changed is None:
            changed = np.arange(self._snapshot.nodes.n)
        if len(changed):
            journal.touch(changed)

    def _promises(self, task: Task, node: int) -> Mapping[str, Promise | None]:
        """Return the promises to the waiting claims of a pod on its node."""
        return self.claims.promised(task, node, self._matched(task)[1]) if self._binding else {}

    def _returned(self, task: int, keys: tuple[str, ...]) -> dict[str, Promise | None]:
        """Return the promises that end because their last pod left again."""
        promised = [key for key in keys if key in self.claims.promises]
        if not promised:
            return {}
        tasks = self._snapshot.tasks
        others = np.flatnonzero(tasks.in_view[: tasks.n]).tolist()
        used = {
            key
            for row in others
            if row != task and self._snapshot.shapes[tasks.shape[row]].spec.volumes
            for key in self.claims.keys(Task(self._snapshot, row))
        }
        return {key: None for key in promised if key not in used}


class AttachedVolumes:
    """How many volumes of each driver are attached to each node, a shared one counted once.

    Nothing is counted before the first question; from then on moves are followed.
    """

    def __init__(self, snapshot: Snapshot, claims: Claims) -> None:
        self._snapshot = snapshot
        self._claims = claims
        self._limits: dict[str, Column] | None = None
        self._counts: dict[str, Column] = {}
        self._holders: dict[tuple[str, str], dict[int, int]] = {}

    def _count_all(self) -> dict[str, Column]:
        """Read the limits of nodes and count what is attached now."""
        n, row_of = self._snapshot.nodes.n, self._snapshot.nodes.row_of
        limits: dict[str, Column] = {}
        for node in self._snapshot.kind("CSINode").values():
            row = row_of.get(node.metadata.name)
            for driver in node.spec.drivers if row is not None else ():
                if driver.allocatable is not None and driver.allocatable.count is not None:
                    limits.setdefault(driver.name, np.full(n, np.inf))[row] = (
                        driver.allocatable.count
                    )
        self._limits = limits
        self._counts = {name: np.zeros(n) for name in limits}
        for row in self._holding() if limits else ():
            task = Task(self._snapshot, row)
            self.add(self._claims.keys(task), task.node, 1)
        return limits

    def _holding(self) -> list[int]:
        tasks, shapes = self._snapshot.tasks, self._snapshot.shapes
        rows = np.flatnonzero(tasks.in_view[: tasks.n])
        claiming = [i for i in np.unique(tasks.shape[rows]).tolist() if shapes[i].spec.volumes]
        return rows[np.isin(tasks.shape[rows], claiming)].tolist()

    def _handles(self, keys: tuple[str, ...]) -> set[tuple[str, str]]:
        limits = self._limits or {}
        handles = {self._claims.handle(key) for key in keys} if limits else set()
        return {each for each in handles if each is not None and each[0] in limits}

    def add(self, keys: tuple[str, ...], node: int, sign: int) -> None:
        """Follow the volumes of a pod that was added to a node or left it."""
        for handle in self._handles(keys):
            holders = self._holders.setdefault(handle, {})
            users = holders.pop(node, 0) + sign
            if users > 0:
                holders[node] = users
            if users == 0 or (sign > 0 and users == 1):
                self._counts[handle[0]][node] += sign

    def over_limit(self, task: Task) -> Mask | None:
        """Mark nodes that cannot attach all volumes of a pod (n,); None: none is limited."""
        limits = self._count_all() if self._limits is None else self._limits
        handles = self._handles(self._claims.keys(task))
        if not handles:
            return None
        full = np.zeros(self._snapshot.nodes.n, dtype=bool)
        for driver in {each[0] for each in handles}:
            added = np.zeros(len(full))
            for handle in handles:
                if handle[0] == driver:
                    added += 1
                    added[list(self._holders.get(handle, ()))] -= 1
            full |= (added > 0) & (self._counts[driver] + added > limits[driver])
        return full
