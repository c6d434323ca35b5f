"""Devices of queues: what they hold, and limits as ``deviceclass/<class>`` in their capability.

A claim counts once in a queue, however many of its pods share it.  Limits cost something only for
tasks with claims, and only where a queue states one.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pumice.api.decisions import Short
from pumice.api.devices import ExactRequest, ResourceClaim
from pumice.api.quantity import milli_value
from pumice.core.pod_claims import PodClaimKeys, UnmadeClaim
from pumice.core.resources import Column
from pumice.core.snapshot import Snapshot
from pumice.core.status import ALLOCATED_CLASS, BOOKED_CLASS
from pumice.core.tables import NOWHERE
from pumice.core.views import Task
from pumice.framework.queue_limits.limits import QueueTree
from pumice.framework.refusals import Verdict, over_quota

COUNT: Final = "deviceclass/"
CAPACITY: Final = ".deviceclass/"
"""The key of a limit of devices, and of a capacity of devices, in a queue."""
_KEPT: Final = "claims of pods"
"""Pods and their claims by task: what a pod's claims are called stays once they are made."""


class HeldClaims:
    """The resource claims of a session's tasks, as their queues count them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._keys = PodClaimKeys(snapshot)
        self.numbers: dict[str, int] = {}
        """Claims by number."""
        self.tasks, self.claims = self._pairs()
        """Each task paired with each of its claims."""

    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        snapshot, numbers = self._snapshot, self.numbers
        shapes = [i for i, shape in enumerate(snapshot.shapes) if shape.spec.resource_claims]
        table, pairs = snapshot.tasks, []
        before, kept = snapshot.derived.get(_KEPT, {}), {}
        if shapes:
            jobs = table.job[: table.n] != NOWHERE
            for row in np.flatnonzero(np.isin(table.shape[: table.n], shapes) & jobs).tolist():
                pod, known = table.pods[row], before.get(row)
                stays = known is not None and known[0] is pod and known[1]
                keys = known[1] if stays else self.of(Task(snapshot, row))
                kept[row] = pod, keys
                there = self._keys.by_key.keys() & keys
                pairs += [(row, numbers.setdefault(key, len(numbers))) for key in sorted(there)]
        snapshot.derived[_KEPT] = kept
        made = np.array(pairs, dtype=np.intp).reshape(-1, 2)
        return made[:, 0], made[:, 1]

    def of(self, task: Task) -> list[str]:
        """Name the claims of a task; none if one is not made yet: it is not placed anyway."""
        keys = self._keys.of(task)
        return [] if isinstance(keys, UnmadeClaim) else keys

    def homes(self, statuses: Iterable[int]) -> NDArray[np.int32]:
        """Return the queue of each pair whose task has one of some statuses, else NOWHERE."""
        table, jobs = self._snapshot.tasks, self._snapshot.jobs
        holds = np.isin(table.status[self.tasks], [*statuses])
        return np.where(holds, jobs.queue[table.job[self.tasks]], np.int32(NOWHERE))

    @cached_property
    def amounts(self) -> list[dict[str, float]]:
        """The amounts of each claim by name, in thousandths."""
        out: list[dict[str, float]] = []
        for key in self.numbers:
            found: dict[str, float] = {}
            for name, amount in claim_amounts(self._keys.by_key[key]):
                found[name] = found.get(name, 0.0) + amount
            out.append(found)
        return out


def held_devices(snapshot: Snapshot, tree: QueueTree | None) -> dict[int, dict[str, float]]:
    """Return the devices that queues hold by claims, with those of all under them in a tree.

    Queue to amounts by name, in thousandths.
    """
    held = HeldClaims(snapshot)
    by_queue: dict[int, set[int]] = {}
    pairs = zip(held.homes(ALLOCATED_CLASS).tolist(), held.claims.tolist(), strict=True)
    for home, claim in set(pairs):
        if home != NOWHERE:
            for queue in _with_ancestors(tree, home):
                by_queue.setdefault(queue, set()).add(claim)
    out: dict[int, dict[str, float]] = {}
    for queue, claims in by_queue.items():
        sums = out[queue] = {}
        for claim in sorted(claims):
            for name, amount in held.amounts[claim].items():
                sums[name] = sums.get(name, 0.0) + amount
    return out


def _with_ancestors(tree: QueueTree | None, queue: int) -> list[int]:
    return [queue] if tree is None or queue not in tree.ancestors else tree.chain(queue)


class DeviceQuota:
    """Holds queues to their limits on the claims of tasks."""

    def __init__(self, snapshot: Snapshot, tree: QueueTree, *, capacities: bool) -> None:
        """Make one; without ``capacities`` only devices are counted."""
        self._snapshot = snapshot
        self._tree = tree
        names = snapshot.resources.names
        self._rows = [
            row
            for row, name in enumerate(names)
            if name.startswith(COUNT) or (capacities and CAPACITY in name)
        ]
        self._at = {names[row]: i for i, row in enumerate(self._rows)}

    @property
    def states_limits(self) -> bool:
        """Whether any queue states such a limit."""
        return bool(self._rows)

    def allows(self, queue: int, task: Task) -> Verdict:
        """Allow a task whose claims keep its queue, and all above it, within their limits."""
        claims = self._claims
        asked = {claims.numbers[key] for key in claims.of(task) if key in claims.numbers}
        queues, tree = self._snapshot.queues, self._tree
        homes = claims.homes(BOOKED_CLASS)
        for row in tree.chain(queue):
            held = set(claims.claims[np.isin(homes, tree.subtree[row])].tolist())
            used = self._sum(held)
            request = self._sum(asked - held)
            limit = queues.capability[self._rows, row]
            over = np.flatnonzero((request > 0) & (used + request > limit)).tolist()
            if over:
                names = self._snapshot.resources.names
                short = [
                    Short(names[self._rows[j]], float(used[j]), float(request[j]), float(limit[j]))
                    for j in over
                ]
                return over_quota(short, queue=queue, at=queues.names[row])
        return True

    @cached_property
    def _claims(self) -> HeldClaims:
        return HeldClaims(self._snapshot)

    @cached_property
    def _amounts(self) -> Column:
        """The amounts of each claim (C, r), in the units of the tables."""
        out = np.zeros((len(self._claims.amounts), len(self._rows)))
        for number, amounts in enumerate(self._claims.amounts):
            for name, amount in amounts.items():
                if name in self._at:
                    out[number, self._at[name]] = amount
        return out

    def _sum(self, claims: set[int]) -> Column:
        return np.asarray(self._amounts[sorted(claims)].sum(axis=0))


def claim_amounts(claim: ResourceClaim) -> Iterator[tuple[str, float]]:
    """Yield the amounts of a claim: devices by class, and their capacities, in thousandths.

    Devices that it has decide where it has any; until then the first of alternatives counts.
    """
    allocation = claim.status.allocation
    results = [] if allocation is None else [one.request for one in allocation.devices.results]
    for request in claim.spec.devices.requests:
        taken = [(name, way) for name, way in request.ways if name in results]
        for name, way in taken or request.ways[:1]:
            if not way.admin_access:
                number = results.count(name) or (1 if way.wants_all else way.number)
                yield from _way_amounts(way, number)


def _way_amounts(way: ExactRequest, number: int) -> Iterator[tuple[str, float]]:
    yield f"{COUNT}{way.device_class_name}", 1000.0 * number
    for dimension, each in way.capacity.requests.items():
        yield f"{dimension}{CAPACITY}{way.device_class_name}", float(milli_value(each)) * number
