"""The numa-aware plugin itself: which nodes can give whole cpus, and from how few NUMA nodes."""

from dataclasses import dataclass, field

import numpy as np

from pumice.api.annotations import NUMA_POLICY
from pumice.api.codes import Cause
from pumice.api.nodes import Numatopology
from pumice.api.pods import Container
from pumice.api.quantity import milli_value
from pumice.core.qos import QosClass, qos_class
from pumice.core.resources import Column
from pumice.core.shapes import Shape
from pumice.core.views import Nodes, Task
from pumice.framework.arguments import arg
from pumice.framework.plugin import Codes, Plugin, Reason
from pumice.framework.plugin_session import PluginSession
from pumice.framework.simulator_assumptions import SimulatorAssumptions
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
_FITS, _NO_TOPOLOGY, _NOT_STATIC, _OTHER_POLICY, _NO_CPUS, _REFUSED = range(6)
_MAX_SCORE = 100


@dataclass
class _Machine:
    """What a Numatopology says of a node."""

    policy: str
    static: bool
    layout: CpuLayout
    reserved: Cpus
    has_cpus: bool
    """Whether cpu is among the resources told by NUMA."""
    answers: dict[int, tuple[Cpus, Cpus | None]] = field(default_factory=dict)
    """By shape: the free cpus it was asked with, and the cpus it would give."""


@dataclass(frozen=True)
class _Wish:
    """What a shape wants: its policy, and whole cpus container by container."""

    policy: str
    cpus: tuple[int, ...]


@dataclass(kw_only=True)
class NumaAware(Plugin, name="numa-aware"):
    """Admit Guaranteed pods where the kubelet's topology manager will; prefer few NUMA nodes."""

    # cpus given away count until the cycle ends; from then on only what the kubelet reports does
    simulator = SimulatorAssumptions(bounded=True, forgets=True)
    reasons = (
        Reason("numa info is empty", curable=False, code=Cause.NUMA_POLICY),
        Reason("cpu manager policy isn't static", curable=False, code=Cause.NUMA_POLICY),
        Reason(
            "task topology policy is different with node", curable=False, code=Cause.NUMA_POLICY
        ),
        Reason("cpu allocatable map is empty", curable=False, code=Cause.NUMA_POLICY),
        Reason("container cannot be assigned by numa", curable=False, code=Cause.NUMA_POLICY),
    )
    weight: int = arg("weight", default=1, doc="weight of this plugin's score")

    def on_open(self, ssn: PluginSession) -> None:
        """Read the layout of every node that has one."""
        nodes = ssn.snapshot.nodes
        self._journal = ssn.journal
        self._machines: dict[int, _Machine] = {}
        self._free: dict[int, Cpus] = {}
        self._given: dict[int, Cpus] = {}
        for name, topology in ssn.snapshot.kind("Numatopology").items():
            row = nodes.row_of.get(name)
            if row is not None:
                self._machines[row], self._free[row] = _read_machine(topology)

    def filter_nodes(self, task: Task, nodes: Nodes) -> Codes | None:
        """Ask each node whether its policy and free cpus admit the task."""
        wish = _wish(task.shape)
        if wish is None or not (wish.policy or self._machines):
            return None
        codes = [self._test(task.shape, wish, row) for row in nodes.index.tolist()]
        return np.array(codes, dtype=np.int16)

    def _test(self, shape: Shape, wish: _Wish, row: int) -> int:
        machine = self._machines.get(row)
        if machine is None:
            return _NO_TOPOLOGY if wish.policy else _FITS
        if wish.policy:
            if not machine.static:
                return _NOT_STATIC
            if wish.policy != machine.policy:
                return _OTHER_POLICY
            if not self._free[row]:
                return _NO_CPUS
        elif not machine.static or machine.policy in ("", "none"):
            return _FITS
        return _REFUSED if self._assignment(shape, wish, row) is None else _FITS

    def _assignment(self, shape: Shape, wish: _Wish, row: int) -> Cpus | None:
        """Say which cpus a node would give a shape now, None if it refuses."""
        machine, free = self._machines[row], self._free[row]
        known = machine.answers.get(shape.id)
        if known is None or known[0] is not free:
            known = machine.answers[shape.id] = (free, _assign(machine, free, wish.cpus))
        return known[1]

    def rank_nodes(self, task: Task, nodes: Nodes) -> Column | None:
        """Prefer assignments from few NUMA nodes; only for tasks with a policy."""
        wish = _wish(task.shape)
        if wish is None or not wish.policy:
            return None
        counts = np.zeros(len(nodes), dtype=np.int64)
        for i, row in enumerate(nodes.index.tolist()):
            if self._test(task.shape, wish, row) == _FITS:
                cpus = self._assignment(task.shape, wish, row) or NOTHING
                counts[i] = len(self._machines[row].layout.numas_of(cpus))
        most = counts.max(initial=0)
        used = _MAX_SCORE * counts // most if most else np.zeros_like(counts)
        return ((_MAX_SCORE - used) * self.weight).astype(np.float64)

    def on_place(self, task: Task, node: int) -> None:
        """Book the cpus that the task will get."""
        wish = _wish(task.shape)
        machine = self._machines.get(node)
        if wish is None or machine is None or not machine.static:
            return
        if machine.policy in ("", "none") or self._test(task.shape, wish, node) != _FITS:
            return
        cpus = self._assignment(task.shape, wish, node) or NOTHING
        self._journal.put(self._given, task.row, cpus)
        self._journal.put(self._free, node, self._free[node] - cpus)

    def on_evict(self, task: Task, node: int) -> None:
        """Give back what this session booked."""
        cpus = self._given.get(task.row, NOTHING)
        if cpus:
            self._journal.put(self._given, task.row, NOTHING)
            self._journal.put(self._free, node, self._free[node] | cpus)


def _read_machine(topology: Numatopology) -> tuple[_Machine, Cpus]:
    spec, layout = topology.spec, read_layout(topology)
    machine = _Machine(
        policy=spec.policies.get("TopologyManagerPolicy", ""),
        static=spec.policies.get("CPUManagerPolicy") == "static",
        layout=layout,
        reserved=reserved_cpus(topology, layout),
        has_cpus="cpu" in spec.numares,
    )
    listed = spec.numares["cpu"].allocatable if machine.has_cpus else ""
    return machine, parse_cpus(listed, layout.places)


def _assign(machine: _Machine, free: Cpus, wanted: tuple[int, ...]) -> Cpus | None:
    """Give each container its cpus in turn; None if the node's policy refuses one of them."""
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


def _pick(machine: _Machine, hint: Hint, free: Cpus, number: int) -> Cpus:
    """Take cpus from the hinted NUMA nodes first; none at all if there are too few."""
    layout, near = machine.layout, NOTHING
    if machine.policy in (BEST_EFFORT, RESTRICTED, SINGLE):
        near = frozenset(cpu for cpu in free if layout.places[cpu].numa in hint.numas)
    first = layout.take(near, min(number, len(near))) or NOTHING
    rest = layout.take(free - first, number - len(first))
    return NOTHING if rest is None else first | rest


def _wish(shape: Shape) -> _Wish | None:
    """Read what a shape wants; None unless its pods are Guaranteed."""
    memo = shape.memo
    if "numa-aware" not in memo:
        policy = shape.annotations.get(NUMA_POLICY, "")
        wish = _Wish(
            "" if policy == "none" else policy,
            tuple(_whole_cpus(container) for container in shape.spec.containers),
        )
        guaranteed = qos_class(shape.spec) is QosClass.GUARANTEED
        memo["numa-aware"] = wish if guaranteed else None
    found: _Wish | None = memo["numa-aware"]
    return found


def _whole_cpus(container: Container) -> int:
    """Read a cpu request; a fraction of a cpu wants no cpu of its own."""
    milli = milli_value(container.resources.requests.get("cpu", 0))
    return int(milli // 1000) if milli % 1000 == 0 else 0
