"""Limits of queues on device classes: ``deviceclass/<class>`` in their capability.

A claim counts once in a queue, however many of its pods share it.  Used only for tasks with
claims, and only where a queue states such a limit.
"""

from collections.abc import Iterator
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
from pumice.core.status import BOOKED_CLASS
from pumice.core.tables import NOWHERE
from pumice.core.views import Task
from pumice.framework.queue_limits.tree import QueueTree
from pumice.framework.refusals import Verdict, over_quota

COUNT: Final = "deviceclass/"
CAPACITY: Final = ".deviceclass/"
"""The key of a limit of devices, and of a capacity of devices, in a queue."""


class DeviceQuota:
    """The claims of a session's tasks, as their queues count them."""

    def __init__(self, snapshot: Snapshot, tree: QueueTree, *, capacities: bool) -> None:
        """Make one; without ``capacities`` only devices are counted."""
        self._snapshot = snapshot
        self._tree = tree
        self._keys = PodClaimKeys(snapshot)
        names = snapshot.resources.names
        self._rows = [
            row
            for row, name in enumerate(names)
            if name.startswith(COUNT) or (capacities and CAPACITY in name)
        ]
        self._at = {names[row]: i for i, row in enumerate(self._rows)}
        self._booked = np.array([int(status) for status in BOOKED_CLASS])

    @property
    def states_limits(self) -> bool:
        """Whether any queue states such a limit."""
        return bool(self._rows)

    def allows(self, queue: int, task: Task) -> Verdict:
        """Allow a task whose claims keep its queue, and all above it, within their limits."""
        keys = self._keys.of(task)
        if isinstance(keys, UnmadeClaim):
            return True  # it is not placed anyway
        known, tasks, claims = self._table
        asked = {known[key] for key in keys if key in known}
        queues, table, tree = self._snapshot.queues, self._snapshot.tasks, self._tree
        holds = np.isin(table.status[tasks], self._booked)
        homes = self._snapshot.jobs.queue[table.job[tasks]]
        for row in tree.chain(queue):
            here = holds & np.isin(homes, tree.subtree[row])
            held = set(claims[here].tolist())
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
    def _table(self) -> tuple[dict[str, int], NDArray[np.intp], NDArray[np.intp]]:
        """Numbers of the claims of tasks, and each task paired with each of its claims."""
        snapshot = self._snapshot
        pairs: list[tuple[int, int]] = []
        known: dict[str, int] = {}
        shapes = [i for i, shape in enumerate(snapshot.shapes) if shape.spec.resource_claims]
        table = snapshot.tasks
        jobs = table.job[: table.n] != NOWHERE
        for row in np.flatnonzero(np.isin(table.shape[: table.n], shapes) & jobs).tolist():
            keys = self._keys.of(Task(snapshot, row))
            there = () if isinstance(keys, UnmadeClaim) else self._keys.by_key.keys() & keys
            pairs += [(row, known.setdefault(key, len(known))) for key in sorted(there)]
        made = np.array(pairs, dtype=np.intp).reshape(-1, 2)
        return known, made[:, 0], made[:, 1]

    @cached_property
    def _amounts(self) -> Column:
        """The amounts of each claim (C, r), in the units of the tables."""
        known = self._table[0]
        out = np.zeros((len(known), len(self._rows)))
        for key, number in known.items():
            for name, amount in claim_amounts(self._keys.by_key[key]):
                if name in self._at:
                    out[number, self._at[name]] += amount
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
