"""Finds devices on one node for all claims of a pod, by trying them in order and backtracking.

Devices of one request are interchangeable, so each set of them is tried once, and where one
fails an equal one is not tried.  The number of steps is bounded; a search that runs out of
steps finds nothing and reports it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from pumice.plugins.predicates.devices.demands import Constraint, Demand, Way
from pumice.plugins.predicates.devices.inventory import Counters, DeviceId, KnownDevice

STEPS: Final = 5_000
"""Devices tried for one node at most."""


class Grant(msgspec.Struct, frozen=True):
    """A device for a request of a claim."""

    claim: str
    way: Way
    device: KnownDevice


class Lack(msgspec.Struct, frozen=True):
    """Why a node cannot meet the claims of a pod: the request that failed."""

    claim: str
    request: str
    class_name: str
    wanted: int
    """How many devices it asks for; 0: all of them."""
    matching: int
    free: int
    problem: str = ""
    at: int = 0
    """Its index among all requests of the pod: the higher, the nearer the node comes."""


class Stock(msgspec.Struct, frozen=True):
    """The devices of a node: those that match a request, and which are free."""

    candidates: Callable[[Way], Sequence[KnownDevice]]
    in_use: Mapping[DeviceId, object]
    limits: Mapping[tuple[str, str], Counters]
    used: Mapping[tuple[str, str], Counters]


class Search:
    """One search on one node."""

    def __init__(self, demands: Sequence[Demand], stock: Stock, steps: int = STEPS) -> None:
        self._stock = stock
        self._line = [(demand, ways) for demand in demands for ways in demand.requests]
        self._grants: list[Grant] = []
        self._taken: set[DeviceId] = set()
        self._values: dict[Constraint, list[object]] = {
            each: [] for demand in demands for each in demand.constraints
        }
        self._allowed = self._steps = steps
        self._takers: dict[DeviceId, int] | None = None
        self._furthest = -1
        self.lack: Lack | None = None
        """Why nothing was found: of the last request that was reached."""

    def run(self) -> list[Grant] | None:
        """Return a device for every demand, or None."""
        if self._meet(0):
            return list(self._grants)
        if self._steps <= 0 and self.lack is not None:
            self.lack = replace(self.lack, problem=f"gave up after {self._allowed} steps")
        return None

    def _meet(self, at: int) -> bool:
        """Meet the requests from a number on."""
        if at == len(self._line):
            return True
        demand, ways = self._line[at]
        return any(self._go(at, demand, way) for way in ways)

    def _go(self, at: int, demand: Demand, way: Way) -> bool:
        """Meet a request by one alternative, and all that follow it."""
        candidates = self._stock.candidates(way)
        wanted = len(candidates) if way.wants_all else way.number
        free = [each for each in candidates if way.admin or self._is_free(each)]
        found = wanted > 0 and len(free) >= wanted and self._pick(at, demand, way, free, wanted)
        if not found and at > self._furthest:
            self._furthest = at
            problem = self._problem(demand, way, len(free), wanted)
            number = 0 if way.wants_all else way.number
            self.lack = Lack(
                demand.claim,
                way.name,
                way.class_name,
                number,
                len(candidates),
                len(free),
                problem,
                at,
            )
        return found

    def _pick(
        self, at: int, demand: Demand, way: Way, devices: Sequence[KnownDevice], n: int
    ) -> bool:
        """Take n of some devices, in order, then meet the requests that follow."""
        if n == 0:
            return self._meet(at + 1)
        failed: set[object] = set()
        for i in range(len(devices) - n + 1):
            if self._steps <= 0:
                return False
            self._steps -= 1
            device = devices[i]
            if failed and self._likeness(device) in failed:
                continue
            if not self._suits(demand, way, device):
                continue
            self._take(demand, way, device)
            if self._pick(at, demand, way, devices[i + 1 :], n - 1):
                return True
            self._put_back(demand, way, device)
            failed.add(self._likeness(device))
        return False

    @property
    def steps(self) -> int:
        """How many devices were tried."""
        return self._allowed - self._steps

    def _likeness(self, device: KnownDevice) -> object:
        """Return the key of equal devices: values, counters, and the matching requests."""
        if self._takers is None:
            self._takers = {}
            for bit, (_, ways) in enumerate(self._line):
                for way in ways:
                    for each in self._stock.candidates(way):
                        self._takers[each.id] = self._takers.get(each.id, 0) | 1 << bit
        values = tuple(device.attribute(each.attribute) for each in self._values)
        counters = (device.id[:2], *sorted(device.consumes.items())) if device.consumes else ()
        return self._takers.get(device.id), values, counters

    def _is_free(self, device: KnownDevice) -> bool:
        return device.id not in self._stock.in_use and device.id not in self._taken

    def _suits(self, demand: Demand, way: Way, device: KnownDevice) -> bool:
        """Return whether a device is compatible with those taken so far."""
        if not way.admin and not self._has_counters(device):
            return False
        return all(
            each.allows(self._values[each], device.attribute(each.attribute))
            for each in demand.constraints
            if each.is_about(way.name)
        )

    def _has_counters(self, device: KnownDevice) -> bool:
        if not device.consumes:
            return True
        pool = device.id[:2]
        limits, used = self._stock.limits.get(pool, {}), self._stock.used.get(pool, {})
        mine = [
            grant.device.consumes
            for grant in self._grants
            if grant.device.id[:2] == pool and not grant.way.admin
        ]
        return all(
            used.get(key, 0) + sum(each.get(key, 0) for each in mine) + n <= limits.get(key, 0)
            for key, n in device.consumes.items()
        )

    def _take(self, demand: Demand, way: Way, device: KnownDevice) -> None:
        self._grants.append(Grant(demand.claim, way, device))
        if not way.admin:
            self._taken.add(device.id)
        for each in demand.constraints:
            if each.is_about(way.name):
                self._values[each].append(device.attribute(each.attribute))

    def _put_back(self, demand: Demand, way: Way, device: KnownDevice) -> None:
        self._grants.pop()
        if not way.admin:
            self._taken.discard(device.id)
        for each in demand.constraints:
            if each.is_about(way.name):
                self._values[each].pop()

    def _problem(self, demand: Demand, way: Way, free: int, wanted: int) -> str:
        """Return why existing free devices are not enough."""
        if not wanted or free < wanted:
            return ""
        needs = [
            f"{'different' if each.distinct else 'the same'} {each.attribute}"
            for each in demand.constraints
            if each.is_about(way.name)
        ]
        if needs:
            return f"devices need {' and '.join(needs)}"
        return "what the devices share is used up"
