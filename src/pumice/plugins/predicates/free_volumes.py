"""Volumes that nodes reach, and the free one that suits a claim best on each node.

Volumes are columns too, the smallest first, so that a claim is matched with all of them and all
nodes at once.
"""

from collections.abc import Hashable, Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from pumice.api.pods import NodeSelector
from pumice.api.storage import PersistentVolume, PersistentVolumeClaim
from pumice.core.labels import NodeLabels, selects
from pumice.core.resources import Mask

Rows = NDArray[np.intp]
Pick = NDArray[np.int32]
"""For each node the number of a volume, -1 for none (n,)."""

_Kind = tuple[str, tuple[str, str], tuple[str, ...]]


class Reach:
    """Which nodes reach which volume, computed once for each volume."""

    def __init__(self, labels: NodeLabels, n: int) -> None:
        self._labels, self._n = labels, n
        self._known: dict[str, Rows | None] = {}

    def rows(self, volume: PersistentVolume) -> Rows | None:
        """Return the nodes that reach a volume; None: all do."""
        name, affinity = volume.metadata.name, volume.spec.node_affinity
        if affinity is None or affinity.required is None:
            return None
        if name not in self._known:
            self._known[name] = self._selected(affinity.required)
        return self._known[name]

    def mask(self, volume: PersistentVolume | None) -> Mask:
        """Mark the nodes that reach a volume; none reaches one that does not exist (n,)."""
        rows = None if volume is None else self.rows(volume)
        if rows is None:
            return np.full(self._n, volume is not None)
        mask = np.zeros(self._n, dtype=bool)
        mask[rows] = True
        return mask

    def _selected(self, selector: NodeSelector) -> Rows:
        """Return the nodes of a selector; a label with one value, as of local disks, is quick."""
        if len(selector.node_selector_terms) == 1:
            term = selector.node_selector_terms[0]
            if len(term.match_expressions) == 1 and not term.match_fields:
                only = term.match_expressions[0]
                if only.operator == "In" and len(only.values) == 1:
                    column = self._labels.column(only.key)
                    return column.rows_of(column.code_of.get(only.values[0], -2))
        return np.flatnonzero(self._labels.selected(selector))


class FreeVolumes:
    """The volumes that claims may still get, and those that are reserved for a claim."""

    def __init__(self, volumes: Iterable[PersistentVolume], reach: Reach, n: int) -> None:
        self._reach, self._n = reach, n
        there = [each for each in volumes if not each.metadata.deletion_timestamp]
        there.sort(key=lambda each: (each.size, each.metadata.name))
        free = [v for v in there if v.spec.claim_ref is None and v.status.phase == "Available"]
        kept = [each for each in there if each.spec.claim_ref is not None]
        self._volumes = [*free, *kept]
        self._number = {v.metadata.name: i for i, v in enumerate(self._volumes)}
        self._kept_for: dict[str, list[int]] = {}
        for volume in kept:
            owner = volume.spec.claim_ref
            if owner is not None:
                key = f"{owner.namespace}/{owner.name}"
                self._kept_for.setdefault(key, []).append(self._number[volume.metadata.name])
        self._free = len(free)
        self._taken = np.zeros(len(self._volumes), dtype=bool)
        self._suiting: dict[Hashable, tuple[Pick, Rows, Rows]] = {}
        self._sizes = np.array([each.size for each in free], dtype=np.float64)
        kinds: dict[_Kind, int] = {}
        self._kind = np.array([kinds.setdefault(_kind(v), len(kinds)) for v in free], dtype=np.intp)
        self._kinds = list(kinds)
        self._index(free)

    def _index(self, free: Sequence[PersistentVolume]) -> None:
        """Record which node reaches which volume, except those that all nodes reach."""
        found = [self._reach.rows(each) for each in free]
        local = [(i, rows) for i, rows in enumerate(found) if rows is not None]
        self._everywhere = np.array([i for i, rows in enumerate(found) if rows is None], dtype=int)
        lengths = [len(rows) for _, rows in local]
        self._local = np.repeat(np.array([i for i, _ in local], dtype=np.int32), lengths)
        nothing = np.zeros(0, dtype=np.intp)
        self._at = np.concatenate([rows for _, rows in local]) if local else nothing

    def name(self, number: int) -> str:
        """Return the name of a volume by its number, empty for -1."""
        return "" if number < 0 else self._volumes[number].metadata.name

    def take(self, name: str, *, taken: bool) -> None:
        """Promise a volume to a claim, or withdraw that."""
        if name in self._number:
            self._taken[self._number[name]] = taken

    def pick(self, claim: PersistentVolumeClaim, earlier: Sequence[Pick]) -> Pick:
        """Return the volume that a claim takes on each node.

        The one reserved for it, else the smallest that suits; none that is promised, and on no
        node one that an earlier claim of the same pod takes there.
        """
        meta = claim.metadata
        for number in self._kept_for.get(f"{meta.namespace}/{meta.name}", ()):
            volume = self._volumes[number]
            if _can_be_bound(volume, claim):
                return np.where(self._reach.mask(volume), number, -1).astype(np.int32)
        best = np.full(self._n, self._free, dtype=np.int32)
        local, at, everywhere = self._that_suit(claim)
        left = ~self._taken[local]
        for picked in earlier:
            left &= picked[at] != local
        best[at[left][::-1]] = local[left][::-1]  # of several the first, which is the smallest
        # claims before this one take at most one each
        for number in everywhere[~self._taken[everywhere]][: len(earlier) + 1].tolist():
            better = best > number
            for picked in earlier:
                better &= picked != number
            best[better] = number
        best[best == self._free] = -1
        return best

    def _that_suit(self, claim: PersistentVolumeClaim) -> tuple[Pick, Rows, Rows]:
        """List the free volumes that suit a claim: local ones with the nodes they are on, others.

        Claims with equal requests find the same.
        """
        selector = claim.spec.selector
        asked = None if selector is None else msgspec.json.encode(selector)
        key = (claim.class_name, claim.sort, claim.spec.access_modes, claim.size, asked)
        found = self._suiting.get(key)
        if found is None:
            suits = self._suits(claim)
            here = suits[self._local]
            everywhere = self._everywhere[suits[self._everywhere]]
            found = self._suiting[key] = (self._local[here], self._at[here], everywhere)
        return found

    def _suits(self, claim: PersistentVolumeClaim) -> Mask:
        """Mark free volumes that suit a claim, including those that are reserved (v,)."""
        suits = np.zeros(len(self._volumes), dtype=bool)
        alike = np.array([_suits_kind(claim, kind) for kind in self._kinds], dtype=bool)
        if not alike.any():
            return suits
        suits[: self._free] = alike[self._kind] & (self._sizes >= claim.size)
        if claim.spec.selector is not None:
            for number in np.flatnonzero(suits).tolist():
                labels = self._volumes[number].metadata.labels
                suits[number] = selects(claim.spec.selector, labels)
        return suits


def _kind(volume: PersistentVolume) -> _Kind:
    """Return a claim's requirements on a volume except size and labels."""
    return volume.class_name, volume.sort, volume.spec.access_modes


def _suits_kind(claim: PersistentVolumeClaim, kind: _Kind) -> bool:
    class_name, sort, access_modes = kind
    alike = (class_name, sort) == (claim.class_name, claim.sort)
    return alike and set(claim.spec.access_modes) <= set(access_modes)


def _can_be_bound(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume that names a claim can be bound to it."""
    alike = (volume.class_name, volume.sort) == (claim.class_name, claim.sort)
    return volume.is_for(claim) and alike and volume.size >= claim.size
