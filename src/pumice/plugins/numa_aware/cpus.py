"""The cpus of one machine: their places, and those that the kubelet would pick.

Used by the numa-aware plugin alone.  Sets of cpus go in and come out; nothing is kept.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pumice.api.nodes import CpuPlace, Numatopology
from pumice.api.quantity import milli_value

Cpus = frozenset[int]
NOTHING: Cpus = frozenset()
_DIGITS = 20
"""Of the number of a cpu; nothing that is longer is one."""


@dataclass(frozen=True, slots=True)
class Hint:
    """NUMA nodes to take cpus from, and whether fewer could never suffice."""

    numas: frozenset[int]
    preferred: bool


@dataclass(frozen=True)
class CpuLayout:
    """Sockets, cores and NUMA nodes of a machine by cpu number."""

    places: dict[int, CpuPlace]
    numas: tuple[int, ...]
    per_socket: int
    per_core: int
    totals: dict[int, int] = field(default_factory=dict)
    """Number of cpus by NUMA node."""

    def numas_of(self, cpus: Iterable[int]) -> set[int]:
        """Return the NUMA nodes that some cpus belong to."""
        return {self.places[cpu].numa for cpu in cpus}

    def best_hint(self, free: Cpus, wanted: int) -> Hint:
        """Find the fewest NUMA nodes with enough free cpus; of equal ones the lowest numbers.

        They are preferred if even an empty machine needs as many.  All NUMA nodes, not
        preferred, if the machine has too few free cpus.
        """
        counts = dict.fromkeys(self.numas, 0)
        for cpu in free:
            counts[self.places[cpu].numa] += 1
        size = _fewest(counts, wanted)
        if size is None:
            return Hint(frozenset(self.numas), preferred=False)
        return Hint(_lowest(counts, wanted, size), size == _fewest(self.totals, wanted))

    def take(self, free: Cpus, wanted: int) -> Cpus | None:
        """Pick cpus as the kubelet does: whole sockets, whole cores, single ones; None: too few."""
        if wanted < 1:
            return NOTHING
        if wanted > len(free):
            return None
        picking = _Picking(self, set(free), wanted)
        picking.take_whole(self.per_socket, picking.free_sockets, lambda place: place.socket)
        picking.take_whole(self.per_core, picking.free_cores, lambda place: place.core)
        picking.take_single()
        return frozenset(picking.taken)


@dataclass
class _Picking:
    """Cpus taken so far; Volcano compares ids of cores and sockets with ids of free cpus."""

    layout: CpuLayout
    free: set[int]
    wanted: int
    taken: set[int] = field(default_factory=set)

    def take_whole(
        self, size: int, groups: Callable[[], list[int]], group_of: Callable[[CpuPlace], int]
    ) -> None:
        """Take what is free of group after group while a whole one is needed."""
        if self.wanted < max(size, 1):
            return
        places = self.layout.places
        for group in groups():
            self._take({cpu for cpu in self.free if group_of(places[cpu]) == group})
            if self.wanted < max(size, 1):
                return

    def _take(self, cpus: set[int]) -> None:
        self.taken |= cpus
        self.free -= cpus
        self.wanted -= len(cpus)

    def free_sockets(self) -> list[int]:
        """List sockets, lowest number first."""
        return sorted({self.layout.places[cpu].socket for cpu in self.free} & self.free)

    def free_cores(self) -> list[int]:
        """List cores: those of sockets with few free cores first."""
        cores: dict[int, set[int]] = {}
        for cpu in self.free:
            place = self.layout.places[cpu]
            cores.setdefault(place.socket, set()).add(place.core)
        usable = {socket: sorted(found & self.free) for socket, found in cores.items()}
        sockets = sorted(usable, key=lambda socket: (len(usable[socket]), socket))
        return [core for socket in sockets for core in usable[socket]]

    def take_single(self) -> None:
        """Take cpu by cpu, where sockets are already in use and cores are nearly full."""
        if self.wanted < 1:
            return
        places = self.layout.places
        order = self._sorted_cores()
        cpus = [cpu for core in order for cpu in sorted(self.free) if places[cpu].core == core]
        self._take(set(cpus[: self.wanted]))

    def _sorted_cores(self) -> list[int]:
        """Sort cores by insertion; Volcano: the comparison is no total order, so this matters."""
        traits = {
            core: self._traits(core) for core in {self.layout.places[c].core for c in self.free}
        }
        cores = sorted(traits)
        for end in range(1, len(cores)):
            at = end
            while at and _goes_before(traits[cores[at]], traits[cores[at - 1]]):
                cores[at - 1], cores[at] = cores[at], cores[at - 1]
                at -= 1
        return cores

    def _traits(self, core: int) -> tuple[int, int, int, int, int]:
        """Describe a core; lower numbers are better, trait by trait."""
        places = self.layout.places
        socket = places[min(cpu for cpu, place in places.items() if place.core == core)].socket
        return (
            -sum(1 for cpu in self.taken if places[cpu].socket == socket),
            sum(1 for cpu in self.free if places[cpu].socket == socket),
            sum(1 for cpu in self.free if places[cpu].core == core),
            socket,
            core,
        )


def _goes_before(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    return any(one < other for one, other in zip(left, right, strict=True))


def _fewest(counts: dict[int, int], wanted: int) -> int | None:
    """Return the minimum number of NUMA nodes, None if all are too few."""
    total = 0
    for size, count in enumerate(sorted(counts.values(), reverse=True), start=1):
        total += count
        if total >= wanted:
            return size
    return None


def _lowest(counts: dict[int, int], wanted: int, size: int) -> frozenset[int]:
    """Choose the given number of NUMA nodes with enough cpus, low numbers first."""
    chosen: set[int] = set()
    rest = sorted(counts, reverse=True)
    while len(chosen) < size:
        highest = rest.pop(0)
        lower = sorted((counts[numa] for numa in rest), reverse=True)[: size - len(chosen)]
        have = sum(counts[numa] for numa in chosen)
        if len(lower) < size - len(chosen) or have + sum(lower) < wanted:
            chosen.add(highest)
    return frozenset(chosen)


def _is_number(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) <= _DIGITS


def parse_cpus(text: str, known: Iterable[int]) -> Cpus:
    """Read a list such as "0,2-5"; only known cpus count, and a malformed list is empty."""
    ranges = []
    for part in filter(None, text.split(",")):
        first, dash, last = part.partition("-")
        if not (_is_number(first) and (_is_number(last) or not dash)):
            return NOTHING
        ranges.append((int(first), int(last or first)))
    return frozenset(cpu for cpu in known if any(low <= cpu <= high for low, high in ranges))


def read_layout(topology: Numatopology) -> CpuLayout:
    """Lay out the cpus that a Numatopology lists."""
    detail = topology.spec.cpu_detail
    places = {int(cpu): place for cpu, place in detail.items() if _is_number(cpu)}
    totals: dict[int, int] = {}
    for place in places.values():
        totals[place.numa] = totals.get(place.numa, 0) + 1
    n_sockets = len({place.socket for place in places.values()})
    n_cores = len({(place.socket, place.core) for place in places.values()})
    return CpuLayout(
        places=places,
        numas=tuple(sorted(totals)),
        per_socket=len(places) // n_sockets if n_sockets else 0,
        per_core=len(places) // n_cores if n_cores else 0,
        totals=totals,
    )


def reserved_cpus(topology: Numatopology, layout: CpuLayout) -> Cpus:
    """Pick the cpus that are reserved for the machine itself."""
    amount = topology.spec.res_reserved.get("cpu")
    if amount is None:
        return NOTHING
    wanted = math.ceil(milli_value(amount) / 1000)
    return layout.take(frozenset(layout.places), wanted) or NOTHING
