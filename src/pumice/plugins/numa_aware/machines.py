"""Machines as kubelets describe them, kept from cycle to cycle; equal ones are known by one number.

Used by the numa-aware plugin alone.  A state is a machine with its free cpus; its answer
to a pod is computed once, however many nodes are in that state.
"""

from dataclasses import dataclass, field
from operator import is_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.api.nodes import Numatopology
from pumice.core.snapshot import Snapshot
from pumice.core.tables import Ints
from pumice.plugins.numa_aware.cpus import (
    NOTHING,
    CpuLayout,
    Cpus,
    Hint,
    parse_cpus,
    read_layout,
    reserved_cpus,
)

BEST_EFFORT, RESTRICTED, SINGLE = "best-effort", "restricted", "single-numa-node"
FITS, NO_TOPOLOGY, NOT_STATIC, OTHER_POLICY, NO_CPUS, REFUSED = range(6)
DIFFERENT_POLICIES = tuple(
    (task, node)
    for task in (BEST_EFFORT, RESTRICTED, SINGLE)
    for node in ("none", BEST_EFFORT, RESTRICTED, SINGLE)
    if task != node
)
"""Policies of a pod and of a node that go not together; their codes follow those above."""
NO_MACHINE = -1
"""The state of a node that no Numatopology describes."""

_UNKNOWN = -1
_DERIVED = "plugins.numa_aware"
_MOST = 4
"""States to remember for each machine, with a thousand more, before all are forgotten."""


@dataclass(frozen=True, eq=False)
class Machine:
    """A node's Numatopology, except its free cpus."""

    policy: str
    static: bool
    has_cpus: bool
    """Whether cpu is among the resources by NUMA."""
    layout: CpuLayout
    reserved: Cpus

    @property
    def has_policy(self) -> bool:
        """Whether the kubelet places cpus by a policy."""
        return self.static and self.policy not in ("", "none")


@dataclass(frozen=True)
class Wish:
    """The request of a shape: its policy, and whole cpus container by container."""

    policy: str
    cpus: tuple[int, ...]


class States:
    """Numbers machines with their free cpus."""

    def __init__(self) -> None:
        self._all: list[tuple[Machine, Cpus]] = []
        self._numbers: dict[tuple[Machine, Cpus], int] = {}
        self._answers: dict[Wish, Answers] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, number: int) -> tuple[Machine, Cpus]:
        return self._all[number]

    def number(self, machine: Machine, free: Cpus) -> int:
        """Return the number of a state."""
        state = (machine, free)
        found = self._numbers.get(state)
        if found is None:
            found = self._numbers[state] = len(self._all)
            self._all.append(state)
        return found

    def answers(self, wish: Wish) -> "Answers":
        """Return the answers of machines to a request."""
        found = self._answers.get(wish)
        if found is None:
            found = self._answers[wish] = Answers(self, wish)
        return found

    def outgrow(self, machines: int) -> bool:
        """Return whether more states are remembered than the given number of machines needs."""
        return max(len(self._all), len(self._answers)) > _MOST * (machines + 1000)


class Answers:
    """The answers of states to one request, computed on first use."""

    def __init__(self, states: States, wish: Wish) -> None:
        self._states = states
        self._wish = wish
        self._codes = np.zeros(0, dtype=np.int16)
        self._numas = np.zeros(0, dtype=np.int64)
        self._cpus: dict[int, Cpus] = {}

    def codes(self, states: Ints) -> NDArray[np.int16]:
        """Return why nodes in some states refuse (n,)."""
        self._learn(states)
        without = NO_TOPOLOGY if self._wish.policy else FITS
        if not len(self._codes):
            return np.full(len(states), without, dtype=np.int16)
        return np.where(states == NO_MACHINE, without, self._codes[states]).astype(np.int16)

    def numas(self, states: Ints) -> NDArray[np.int64]:
        """Return the number of NUMA nodes that they would use; 0 where they refuse (n,)."""
        self._learn(states)
        if not len(self._numas):
            return np.zeros(len(states), dtype=np.int64)
        return np.where(states == NO_MACHINE, 0, self._numas[states])

    def cpus(self, state: int) -> Cpus | None:
        """Return the cpus that a machine assigns, None if it refuses."""
        self._learn(np.array([state], dtype=np.int32))
        return self._cpus.get(state, NOTHING) if self._codes[state] == FITS else None

    def _learn(self, states: Ints) -> None:
        if len(self._codes) < len(self._states):
            more = len(self._states) - len(self._codes)
            self._codes = np.append(self._codes, np.full(more, _UNKNOWN, dtype=np.int16))
            self._numas = np.append(self._numas, np.zeros(more, dtype=np.int64))
        known = states[states != NO_MACHINE]
        for state in np.unique(known[self._codes[known] == _UNKNOWN]).tolist():
            self._codes[state] = self._ask(state)

    def _ask(self, state: int) -> int:
        machine, free = self._states[state]
        wish = self._wish
        if wish.policy:
            if not machine.static:
                return NOT_STATIC
            if wish.policy != machine.policy:
                return _different(wish.policy, machine.policy)
            if not free:
                return NO_CPUS
        elif not machine.has_policy:
            return FITS
        cpus = _assign(machine, free, wish.cpus)
        if cpus is None:
            return REFUSED
        self._cpus[state] = cpus
        self._numas[state] = len(machine.layout.numas_of(cpus))
        return FITS


def _different(task: str, node: str) -> int:
    pair = task, node
    known = pair in DIFFERENT_POLICIES
    return REFUSED + 1 + DIFFERENT_POLICIES.index(pair) if known else OTHER_POLICY


@dataclass
class KnownMachines:
    """The states in which kubelets report their machines."""

    states: States = field(default_factory=States)
    _machines: dict[Any, Machine] = field(default_factory=dict)
    _seen: list[Numatopology] = field(default_factory=list)
    _state_of: dict[int, int] = field(default_factory=dict)
    """The state of each Numatopology, by its identity."""
    _generation: int = -1
    _column: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int32))

    def follow(self, snapshot: Snapshot) -> Ints:
        """Read changes since the last call, and return the states of all nodes (N,)."""
        found: list[Numatopology] = list(snapshot.kind("Numatopology").values())
        same = len(found) == len(self._seen) and all(map(is_, found, self._seen))
        if self.states.outgrow(len(found)):
            self.states, self._machines, self._state_of = States(), {}, {}
            same = False
        if not same or self._generation != snapshot.nodes.generation:
            self._read(found)
            self._generation = snapshot.nodes.generation
            self._column = np.full(snapshot.nodes.n, NO_MACHINE, dtype=np.int32)
            for topology in found:
                row = snapshot.nodes.row_of.get(topology.metadata.name)
                if row is not None:
                    self._column[row] = self._state_of[id(topology)]
        return self._column

    def _read(self, found: list[Numatopology]) -> None:
        self._state_of = {
            id(each): self._state_of[id(each)] if id(each) in self._state_of else self._state(each)
            for each in found
        }
        self._seen = found

    def _state(self, topology: Numatopology) -> int:
        spec, layout = topology.spec, read_layout(topology)
        machine = Machine(
            policy=spec.policies.get("TopologyManagerPolicy", ""),
            static=spec.policies.get("CPUManagerPolicy") == "static",
            has_cpus="cpu" in spec.numares,
            layout=layout,
            reserved=reserved_cpus(topology, layout),
        )
        places = tuple((cpu, *_where(place)) for cpu, place in sorted(layout.places.items()))
        alike = (machine.policy, machine.static, machine.has_cpus, machine.reserved, places)
        machine = self._machines.setdefault(alike, machine)
        listed = spec.numares["cpu"].allocatable if machine.has_cpus else ""
        return self.states.number(machine, parse_cpus(listed, layout.places))


class NodeMachines:
    """The machines of all nodes in one session, as they are at this moment."""

    def __init__(self, snapshot: Snapshot) -> None:
        known: KnownMachines | None = snapshot.derived.get(_DERIVED)
        if known is None:
            known = snapshot.derived[_DERIVED] = KnownMachines()
        self.column = known.follow(snapshot).copy()
        """The state of each node (N,)."""
        self.states = known.states
        self.exist = bool((self.column != NO_MACHINE).any())
        """Whether any node is described."""

    def free(self, node: int) -> Cpus:
        """Return the free cpus of a node that has a machine."""
        return self.states[int(self.column[node])][1]

    def set_free(self, node: int, free: Cpus) -> None:
        """Set the free cpus of a node."""
        machine, _ = self.states[int(self.column[node])]
        self.column[node] = self.states.number(machine, free)


def _where(place: Any) -> tuple[int, int, int]:
    return place.numa, place.socket, place.core


def _assign(machine: Machine, free: Cpus, wanted: tuple[int, ...]) -> Cpus | None:
    """Assign each container its cpus in turn; None if the node's policy refuses one of them."""
    layout, given = machine.layout, NOTHING
    for number in wanted:
        left = free - given - machine.reserved
        choosy = number > 0 and machine.has_cpus
        anywhere = Hint(frozenset(layout.numas), preferred=bool(layout.numas))
        hint = layout.best_hint(left, number) if choosy else anywhere
        if machine.policy in (RESTRICTED, SINGLE) and not hint.preferred:
            return None
        if machine.policy == SINGLE and choosy and len(hint.numas) > 1:
            return None
        given |= _pick(machine, hint, left, number)
    return given


def _pick(machine: Machine, hint: Hint, free: Cpus, number: int) -> Cpus:
    """Take cpus from the hinted NUMA nodes first; none at all if there are too few."""
    layout, near = machine.layout, NOTHING
    if machine.policy in (BEST_EFFORT, RESTRICTED, SINGLE):
        near = frozenset(cpu for cpu in free if layout.places[cpu].numa in hint.numas)
    first = layout.take(near, min(number, len(near))) or NOTHING
    rest = layout.take(free - first, number - len(first))
    return NOTHING if rest is None else first | rest
