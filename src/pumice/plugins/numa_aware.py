"""numa-aware: place pods that want whole cpus where NUMA nodes can provide them."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import is_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.api.annotations import NUMA_POLICY
from pumice.api.codes import Cause
from pumice.api.nodes import CpuPlace, Numatopology
from pumice.api.pods import Container, Pod
from pumice.api.qos import QosClass, qos_class
from pumice.api.quantity import milli_value
from pumice.core.resources import Column
from pumice.core.snapshot import Snapshot
from pumice.core.status import FINISHED, Status
from pumice.core.tables import Ints, Shape
from pumice.core.views import Nodes, Task
from pumice.framework.arguments import arg
from pumice.framework.plugin import Codes, Plugin, Reason
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession

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


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A pod with assigned cpus."""

    key: str
    """ "namespace/name"."""
    uid: str
    cpus: Cpus
    reported_free: str
    """The free cpus that its node reported when they were assigned."""


@dataclass(slots=True)
class UnreportedPods:
    """The pods of one node that wait to be reported."""

    pods: dict[str, PlacedPod] = field(default_factory=dict)
    lists_pods: bool = False
    """Whether the exporter of the node reports which pods have cpus; old ones do not."""

    def add(self, pod: Pod, cpus: Cpus, topology: Numatopology) -> None:
        """Remember a pod with assigned cpus."""
        meta = pod.metadata
        key = f"{meta.namespace}/{meta.name}"
        self.lists_pods |= bool(topology.spec.pod_allocations)
        self.pods[key] = PlacedPod(key, meta.uid, cpus, _free_text(topology))

    def taken(self, topology: Numatopology, is_there: Callable[[PlacedPod], bool]) -> Cpus:
        """Return the cpus that count as taken besides the reported ones; forget reported pods.

        The kubelet may have picked other cpus than those that were counted, so the pods are
        forgotten together: once all that still exist are reported.
        """
        self.lists_pods |= bool(topology.spec.pod_allocations)
        self.pods = {key: pod for key, pod in self.pods.items() if is_there(pod)}
        if all(self._is_reported(pod, topology) for pod in self.pods.values()):
            self.pods = {}
        return NOTHING.union(*(pod.cpus for pod in self.pods.values()))

    def _is_reported(self, pod: PlacedPod, topology: Numatopology) -> bool:
        """Look for a pod in the list; without a list, any other free cpus are a report."""
        if not self.lists_pods:
            return _free_text(topology) != pod.reported_free
        return any(
            each.uid == pod.uid or f"{each.namespace}/{each.name}" == pod.key
            for each in topology.spec.pod_allocations
        )


def _free_text(topology: Numatopology) -> str:
    """Return the free cpus in a node's report."""
    cpus = topology.spec.numares.get("cpu")
    return "" if cpus is None else cpus.allocatable


_MAX_SCORE = 100
_MOST_NODES = 3
"""Nodes whose free cpus an explanation names."""
_NOT_ADMITTED = "container cannot be assigned by numa"


@dataclass(kw_only=True)
class NumaAware(Plugin, name="numa-aware"):
    """Admit Guaranteed pods where the kubelet's topology manager will; prefer few NUMA nodes."""

    simulator = SimulatorAssumptions()
    reasons = tuple(
        Reason(
            text, curable=False, code=Cause.NUMA_POLICY, lasting=text == _NOT_ADMITTED
        )  # in Volcano all others are errors
        for text in (
            "numa info is empty",
            "cpu manager policy isn't static",
            "task topology policy is different with node",
            "cpu allocatable map is empty",
            _NOT_ADMITTED,
            *(
                f"task topology policy[{task}] is different with node[{node}]"
                for task, node in DIFFERENT_POLICIES
            ),
        )
    )
    weight: int = arg("weight", default=1, doc="weight of this plugin's score")

    def on_open(self, ssn: PluginSession) -> None:
        """Prepare to read machines once a pod requests whole cpus."""
        self._snapshot, self._journal = ssn.snapshot, ssn.journal
        self._given: dict[int, Cpus] = {}
        self._unreported: dict[str, UnreportedPods] = ssn.memory.setdefault(self.name, {})
        """By node."""

    @cached_property
    def _machines(self) -> NodeMachines:
        """The machines as kubelets report them, without the cpus of pods not reported yet."""
        machines, topologies = NodeMachines(self._snapshot), self._snapshot.kind("Numatopology")
        for name, pods in self._unreported.items():
            row, topology = self._snapshot.nodes.row_of.get(name), topologies.get(name)
            if row is not None and topology is not None:
                taken = pods.taken(topology, partial(self._is_on, row))
                machines.set_free(row, machines.free(row) - taken)
        return machines

    def _is_on(self, node: int, pod: PlacedPod) -> bool:
        tasks = self._snapshot.tasks
        row = tasks.row_of.get(pod.key)
        if row is None or tasks.node[row] != node or int(tasks.status[row]) in FINISHED:
            return False
        return Task(self._snapshot, row).pod.metadata.uid == pod.uid

    def on_close(self, ssn: PluginSession) -> None:
        """Remember the cpus of pods that are to be bound until the kubelet reports them."""
        tasks, names = ssn.snapshot.tasks, ssn.snapshot.nodes.names
        topologies, known = ssn.snapshot.kind("Numatopology"), self._unreported
        for name in known.keys() - topologies.keys():
            del known[name]
        for task, cpus in self._given.items():
            if cpus and int(tasks.status[task]) == Status.BINDING:
                name, pod = names[tasks.node[task]], Task(ssn.snapshot, task).pod
                known.setdefault(name, UnreportedPods()).add(pod, cpus, topologies[name])

    def filter_nodes(self, task: Task, nodes: Nodes) -> Codes | None:
        """Ask each node whether its policy and free cpus admit the task."""
        wish = _wish(task.shape)
        if wish is None or not (wish.policy or self._machines.exist):
            return None
        machines = self._machines
        return machines.states.answers(wish).codes(machines.column[nodes.rows])

    def refusal_numbers(self, task: Task) -> dict[str, Any]:
        """Return the request of a task, and the free cpus by NUMA node of the first nodes."""
        wish = _wish(task.shape)
        if wish is None or not self._machines.exist:
            return {}
        free: dict[str, dict[str, int]] = {}
        rows = np.flatnonzero(self._machines.column != NO_MACHINE)[:_MOST_NODES].tolist()
        for row in rows:
            machine, cpus = self._machines.states[int(self._machines.column[row])]
            counts = dict.fromkeys(map(str, machine.layout.numas), 0)
            for cpu in cpus:
                counts[str(machine.layout.places[cpu].numa)] += 1
            free[self._snapshot.nodes.names[row]] = counts
        return {"numa": {"policy": wish.policy, "request": max(wish.cpus, default=0), "free": free}}

    def rank_nodes(self, task: Task, nodes: Nodes) -> Column | None:
        """Prefer assignments from few NUMA nodes; only for tasks with a policy."""
        wish = _wish(task.shape)
        if wish is None or not wish.policy:
            return None
        machines = self._machines
        counts = machines.states.answers(wish).numas(machines.column[nodes.rows])
        most = counts.max(initial=0)
        used = _MAX_SCORE * counts // most if most else np.zeros_like(counts)
        return ((_MAX_SCORE - used) * self.weight).astype(np.float64)

    def on_place(self, task: Task, node: int) -> None:
        """Book the cpus that the task will get."""
        wish = _wish(task.shape)
        state = NO_MACHINE if wish is None else int(self._machines.column[node])
        if wish is None or state == NO_MACHINE:
            return
        machine, free = self._machines.states[state]
        cpus = self._machines.states.answers(wish).cpus(state) if machine.has_policy else None
        if cpus is not None:
            self._book(task, node, cpus, free - cpus)

    def on_evict(self, task: Task, node: int) -> None:
        """Release the cpus that this session booked."""
        cpus = self._given.get(task.row, NOTHING)
        if cpus:
            self._book(task, node, NOTHING, self._machines.free(node) | cpus)

    def _book(self, task: Task, node: int, given: Cpus, free: Cpus) -> None:
        self._journal.put(self._given, task.row, given)
        self._journal.save(self._machines.column, node)
        self._machines.set_free(node, free)


def _wish(shape: Shape) -> Wish | None:
    """Read the request of a shape; None unless its pods are Guaranteed."""
    memo = shape.memo
    if "numa-aware" not in memo:
        policy = shape.annotations.get(NUMA_POLICY, "")
        wish = Wish(
            "" if policy == "none" else policy,
            tuple(_whole_cpus(container) for container in shape.spec.containers),
        )
        guaranteed = qos_class(shape.spec) is QosClass.GUARANTEED
        memo["numa-aware"] = wish if guaranteed else None
    found: Wish | None = memo["numa-aware"]
    return found


def _whole_cpus(container: Container) -> int:
    """Read a cpu request; a fraction of a cpu needs no cpu of its own."""
    milli = milli_value(container.resources.requests.get("cpu", 0))
    return int(milli // 1000) if milli % 1000 == 0 else 0
