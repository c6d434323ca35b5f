"""Devices for the claims of a session's pods: the nodes that have them, and their allocation.

Nothing is computed before the first pod with claims.  Promises made to placed pods are
journaled; the answer of a node is kept until one of its devices is taken or freed.
"""

from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property
from typing import Any, Final

import msgspec
import numpy as np
from msgspec.structs import asdict
from numpy.typing import NDArray

from pumice.api.cel import SelectorError
from pumice.api.devices import Allocation, ClaimReservation, ResourceClaim
from pumice.core.labels import node_labels
from pumice.core.resources import Column, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.status import PENDING
from pumice.core.views import Task
from pumice.framework.plugin_session import PluginSession
from pumice.plugins.predicates.devices.demands import Demand, UnmetDemandError, Way
from pumice.plugins.predicates.devices.inventory import Counters, DeviceId, Inventory, KnownDevice
from pumice.plugins.predicates.devices.pod_claims import ClaimProblem, PodClaims
from pumice.plugins.predicates.devices.search import STEPS, Grant, Lack, Search, Stock
from pumice.plugins.predicates.neighbours import refuse
from pumice.plugins.predicates.reasons import Code

_EVERY_NODE: Final = -1
_LEAST_STEPS: Final = 128
"""Devices that may always be tried for a node: enough wherever little has to be tried again."""
_HARD_STEPS: Final = 100_000
"""Devices tried beyond that in a session, for all nodes and claims together."""


class Promise(msgspec.Struct, frozen=True, eq=False):
    """A claim's result of placing a pod, and the devices that it takes."""

    allocation: Allocation
    devices: tuple[KnownDevice, ...]


class _Column(msgspec.Struct):
    """The answers of all nodes to equal claims, up to a place in the log of changes."""

    answers: list[list[Grant] | Lack]
    lacks: Mask
    worth: Column
    """How good the alternatives are that each node meets (n,)."""
    cursor: int
    nearest: int | None = None
    """The node that comes nearest, once requested."""


class DeviceAllocations:
    """The claims and devices of one session."""

    def __init__(self, ssn: PluginSession) -> None:
        self._ssn = ssn
        self._snapshot: Snapshot = ssn.snapshot
        self.claims = PodClaims(ssn.snapshot)
        self._promises: dict[str, Promise] = {}
        self._users: dict[str, frozenset[int]] = {}
        """Claims to the pods of this session that were placed with them."""
        self._used: dict[tuple[str, str], Counters] = {}
        self._moved: list[int] = []
        """Nodes whose devices were taken or freed, in order."""
        self._candidates: dict[Hashable, list[KnownDevice]] = {}
        self._columns: dict[Hashable, _Column] = {}
        self._asked: set[int] = set()
        self._steps = _HARD_STEPS
        self._kinds: dict[str, bytes] = {}

    @cached_property
    def _inventory(self) -> Inventory:
        return Inventory(self._snapshot)

    @cached_property
    def _in_use(self) -> dict[DeviceId, str]:
        """Devices to the claims that hold them."""
        held = dict(self.claims.held())
        for device in self._inventory.all() if self._inventory.counters else ():
            if device.id in held:
                self._count(device, 1)
        return held

    def vary_by(self, task: Task) -> Hashable:
        """Distinguish pods of one shape by what their claims request or have."""
        keys = self.claims.keys(task)
        if isinstance(keys, ClaimProblem):
            return task.row
        return tuple(self._kind(key) for key in keys)

    def _kind(self, key: str) -> Hashable:
        """Return what a claim's answers depend on: its devices, or its request."""
        claim = self.claims.by_key[key]
        if key in self._promises or claim.status.allocation is not None:
            return key
        return self._asked_for(key, claim)

    def _asked_for(self, key: str, claim: ResourceClaim) -> bytes:
        found = self._kinds.get(key)
        if found is None:
            found = msgspec.json.encode((claim.metadata.namespace, claim.spec.devices))
            self._kinds[key] = found
        return found

    def problem(self, task: Task) -> ClaimProblem | None:
        """Return why no node can meet a pod's claims; None if one may."""
        keys = self.claims.keys(task)
        if isinstance(keys, ClaimProblem):
            return keys
        used = self._users
        found = (self.claims.problem(task, key, len(used.get(key, ()))) for key in keys)
        return next((each for each in found if each is not None), None)

    def settle(self, codes: NDArray[np.int16], task: Task, rows: Any) -> None:
        """Write into the codes of some nodes where a pod's claims cannot be used or met."""
        self._asked.add(task.row)
        keys = self.claims.keys(task)
        if isinstance(keys, ClaimProblem):
            return
        for key in keys:
            allocation = self._allocation(key)
            if allocation is not None and allocation.node_selector is not None:
                fits = node_labels(self._snapshot).selected(allocation.node_selector)
                refuse(codes, ~fits[rows], Code.CLAIM_NODE)
        unmet = self._unmet(keys)
        if unmet:
            refuse(codes, self._column(unmet).lacks[rows], Code.DEVICES)

    def has_alternatives(self, task: Task) -> bool:
        """Return whether claims of a pod that have no devices yet name alternatives."""
        return any(
            way.worth for each in self._asked_by(task) for ways in each.requests for way in ways
        )

    def rank(self, task: Task, rows: Any) -> Column | None:
        """Score some nodes by the alternatives that they meet, 100 for the best; None: none."""
        worth = self._column(self._asked_by(task)).worth[rows]
        best = worth.max(initial=0.0)
        return None if best <= 0 else np.floor(100.0 * worth / best)

    def _asked_by(self, task: Task) -> list[Demand]:
        keys = self.claims.keys(task)
        return [] if isinstance(keys, ClaimProblem) else self._unmet(keys)

    def _allocation(self, key: str) -> Allocation | None:
        promise = self._promises.get(key)
        return self.claims.by_key[key].status.allocation if promise is None else promise.allocation

    def _unmet(self, keys: list[str]) -> list[Demand]:
        """List the requests of claims without devices."""
        found = [self.claims.demand(key) for key in keys if self._allocation(key) is None]
        return [each for each in found if not isinstance(each, UnmetDemandError)]

    def _column(self, demands: list[Demand]) -> _Column:
        """Return the answers of all nodes to claims like these; they may name other such claims."""
        by_key, n = self.claims.by_key, self._snapshot.nodes.n
        kinds = tuple(self._asked_for(each.claim, by_key[each.claim]) for each in demands)
        column = self._columns.get(kinds)
        changed: Iterable[int] = range(n)
        if column is None:
            lacks, worth = np.zeros(n, dtype=bool), np.zeros(n)
            column = self._columns[kinds] = _Column([[]] * n, lacks, worth, 0)
        else:
            rows = set(self._moved[column.cursor :])
            changed = changed if _EVERY_NODE in rows else rows
        for row in changed:
            column.answers[row] = found = self._search(demands, row)
            column.lacks[row] = isinstance(found, Lack)
            column.worth[row] = _worth(found)
            column.nearest = None
        column.cursor = len(self._moved)
        return column

    def _search(self, demands: list[Demand], row: int) -> list[Grant] | Lack:
        inventory = self._inventory
        for demand in demands:
            for way in (way for ways in demand.requests for way in ways if way.wants_all):
                broken = inventory.broken_on(row)
                if broken:
                    return Lack(demand.claim, way.name, way.class_name, 0, 0, 0, broken[0])
        stock = Stock(
            lambda way: self._matching(way, row), self._in_use, inventory.counters, self._used
        )
        search = Search(demands, stock, min(STEPS, max(self._steps, _LEAST_STEPS)))
        try:
            found = search.run()
        except SelectorError as error:
            first = demands[0].claim
            return Lack(first, "", "", 0, 0, 0, f"a selector fails: {error}")
        self._steps -= max(search.steps - _LEAST_STEPS, 0)
        if found is not None:
            return found
        return search.lack or Lack(demands[0].claim, "", "", 0, 0, 0)

    def _matching(self, way: Way, row: int) -> list[KnownDevice]:
        """List the devices of a node that match a request; kept for the session."""
        key = (row, way.class_name, way.expressions, way.tolerations)
        found = self._candidates.get(key)
        if found is None:
            found = [each for each in self._inventory.on(row) if way.takes(each)]
            self._candidates[key] = found
        return found

    # Following moves

    def follow(self, task: int, node: int, sign: int) -> None:
        """Follow a change of the view: promise devices to claims that have none."""
        view = Task(self._snapshot, task)
        if not view.shape.spec.resource_claims:
            return
        keys = self.claims.keys(view)
        if isinstance(keys, ClaimProblem):
            return
        if sign > 0:
            self._promise(view, keys, node)
        else:
            self._give_back(task, keys)

    def _promise(self, task: Task, keys: list[str], node: int) -> None:
        journal, unmet = self._snapshot.journal, self._unmet(keys)
        grants = self._search(unmet, node) if unmet else []
        if isinstance(grants, list):  # else it was placed without a check
            name = self._snapshot.nodes.names[node]
            for key in (demand.claim for demand in unmet):
                taken = tuple(
                    grant.device for grant in grants if grant.claim == key and not grant.way.admin
                )
                promise = Promise(self.claims.allocation(key, grants, name), taken)
                journal.put(self._promises, key, promise)
                self._hand_over(key, taken, node)
        for key in keys:
            journal.put(self._users, key, self._users.get(key, frozenset()) | {task.row})
        self._ssn.reserve_claims(task.row, tuple(self._reservation(key) for key in keys))

    def _reservation(self, key: str) -> ClaimReservation:
        promise = self._promises.get(key)
        uid = self.claims.by_key[key].metadata.uid if key in self.claims.by_key else ""
        allocation = None if promise is None else promise.allocation
        return ClaimReservation(claim=key, uid=uid, allocation=allocation)

    def _hand_over(self, key: str, devices: tuple[KnownDevice, ...], node: int) -> None:
        """Remove devices from the free ones."""
        journal = self._snapshot.journal
        for device in devices:
            journal.put(self._in_use, device.id, key)
            self._count(device, 1)
            journal.on_rollback(self._count, device, -1)
        shared = not all(device.reach.node for device in devices)
        self._changed(_EVERY_NODE if shared or self._inventory.counters else node)

    def _give_back(self, task: int, keys: list[str]) -> None:
        """Free the devices promised to claims whose last pod has left again."""
        journal = self._snapshot.journal
        for key in keys:
            users = self._users.get(key, frozenset())
            if task not in users:
                continue
            journal.put(self._users, key, users - {task})
            promise = self._promises.get(key) if users == {task} else None
            if promise is None:
                continue
            journal.on_rollback(self._promises.__setitem__, key, promise)
            del self._promises[key]
            for device in promise.devices:
                journal.on_rollback(self._in_use.__setitem__, device.id, key)
                del self._in_use[device.id]
                self._count(device, -1)
                journal.on_rollback(self._count, device, 1)
            self._changed(_EVERY_NODE)
        self._ssn.reserve_claims(task, ())

    def _changed(self, node: int) -> None:
        """Forget the answers of a node, or of every node; a roll-back does so again."""
        journal = self._snapshot.journal
        self._moved.append(node)
        journal.on_rollback(self._moved.append, node)
        if node == _EVERY_NODE:
            journal.touch(np.arange(self._snapshot.nodes.n))

    def _count(self, device: KnownDevice, sign: int) -> None:
        used = self._used.setdefault(device.id[:2], {})
        for key, n in device.consumes.items():
            used[key] = used.get(key, 0) + sign * n

    # Explaining

    def lack(self, task: Task) -> Mapping[str, Any] | None:
        """Return what a pod's claims lack: everywhere, or on the node that comes nearest."""
        problem = self.problem(task)
        if problem is not None:
            return asdict(problem)
        unmet = self._asked_by(task)
        if not unmet:
            return None
        column = self._column(unmet)
        if not column.lacks.any():
            return None
        if column.nearest is None:
            answers = enumerate(column.answers)
            known = ((each, row) for row, each in answers if isinstance(each, Lack))
            _, column.nearest = max(known, key=lambda pair: (_nearness(pair[0]), -pair[1]))
        nearest = self._search(unmet, column.nearest)  # by the names of its own claims
        numbers = asdict(nearest) if isinstance(nearest, Lack) else {}
        name = self._snapshot.nodes.names[column.nearest]
        return {**numbers, "node": name, "nodes": int(column.lacks.sum())}

    def left_over(self) -> list[str]:
        """List claims whose devices are held only for a pod that was considered and still waits."""
        tasks = self._snapshot.tasks
        found: dict[str, None] = {}
        for row in self._asked:
            keys = self.claims.keys(Task(self._snapshot, row))
            if isinstance(keys, ClaimProblem) or tasks.status[row] != PENDING:
                continue
            for key in keys:
                status = self.claims.by_key[key].status
                users = {each.uid for each in status.reserved_for}
                if status.allocation is not None and users <= {tasks.uids[row]}:
                    found[key] = None
        return list(found)


def _worth(answer: list[Grant] | Lack) -> int:
    """Add up how good the alternatives are that a node meets, each once."""
    if isinstance(answer, Lack):
        return 0
    return sum({(grant.claim, grant.way.name): grant.way.worth for grant in answer}.values())


def _nearness(lack: Lack) -> tuple[int, int, int]:
    """Order nodes by how far they got: in requests, then in devices."""
    return lack.at, lack.free, lack.matching
