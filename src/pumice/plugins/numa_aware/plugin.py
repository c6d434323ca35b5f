"""The numa-aware plugin itself: which nodes can provide whole cpus, and from how few NUMA nodes."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from pumice.api.annotations import NUMA_POLICY
from pumice.api.codes import Cause
from pumice.api.pods import Container
from pumice.api.qos import QosClass, qos_class
from pumice.api.quantity import milli_value
from pumice.core.resources import Column
from pumice.core.shapes import Shape
from pumice.core.status import FINISHED, Status
from pumice.core.views import Nodes, Task
from pumice.framework.arguments import arg
from pumice.framework.plugin import Codes, Plugin, Reason
from pumice.framework.plugin_session import PluginSession
from pumice.framework.simulator_assumptions import SimulatorAssumptions
from pumice.plugins.numa_aware.cpus import NOTHING, Cpus
from pumice.plugins.numa_aware.machines import DIFFERENT_POLICIES, NO_MACHINE, NodeMachines, Wish
from pumice.plugins.numa_aware.unreported import PlacedPod, UnreportedPods

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
