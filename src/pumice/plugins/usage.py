"""usage: consider the measured load of nodes, and estimate pods too young to be measured."""

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pumice.api.codes import Cause
from pumice.api.duration import parse_duration
from pumice.api.pod_resources import add_up
from pumice.api.pods import PodSpec
from pumice.api.quantity import Quantity, milli_value, value
from pumice.core.resources import CPU, MEMORY, Column
from pumice.core.status import ALLOCATED_CLASS, Status
from pumice.core.tables import NOWHERE, Shape
from pumice.core.views import ALL, NodeFacts, Nodes, Rows, Task
from pumice.errors import InputError
from pumice.framework.arguments import arg
from pumice.framework.placement.kernel import ColumnTerm, NodeTerm
from pumice.framework.plugin import Codes, Plugin, Reason
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession, node_load

_LONGEST_AGE = 300.0
"""Age in seconds at which a measurement is stale."""
_INTERVAL = 30.0
"""Seconds between measurements, unless configured."""
_CPU_HIGH, _MEMORY_HIGH = 1, 2
_BOTH = slice(CPU, MEMORY + 1)
_SCORE = "usage_score"


@dataclass(kw_only=True, frozen=True)
class Thresholds:
    """Measured percent above which a node takes no more pods."""

    cpu: int = arg("cpu", default=80, minimum=0, maximum=100, doc="percent of CPU")
    memory: int = arg("mem", default=80, minimum=0, maximum=100, doc="percent of memory")


@dataclass(kw_only=True, frozen=True)
class Estimator:
    """How the use of a pod is estimated from its requests."""

    request_ratio: float = arg(
        "request_ratio", default=0.7, minimum=0, maximum=1, doc="part of the request"
    )
    burst_ratio: float = arg(
        "burst_ratio", default=0.0, minimum=0, maximum=1, doc="part of limit less request"
    )
    risk_threshold: float = arg(
        "risk_threshold", default=0.6, minimum=0, maximum=1, doc="load that calls for caution"
    )
    risk_factor: float = arg(
        "risk_factor", default=1.2, minimum=1, doc="factor of estimates from that load on"
    )
    best_effort_cpu: Any = arg(
        "be_cpu", default="250m", doc="of a pod without requests: quantity, or integer milli-CPU"
    )
    best_effort_memory: Any = arg(
        "be_mem", default="200Mi", doc="of a pod without requests: quantity, or integer MiB"
    )


@dataclass(kw_only=True)
class Usage(Plugin, name="usage"):
    """Close nodes whose measured load is high; score by measured load plus estimates.

    An estimate is fixed when its pod is added, and subtracted unchanged when the pod leaves.
    """

    simulator = SimulatorAssumptions()
    reasons: ClassVar[tuple[Reason, ...]] = (
        Reason(
            "the CPU load of the node exceeds the upper limit.",
            curable=False,
            code=Cause.NODE_USAGE,
        ),
        Reason(
            "the memory load of the node exceeds the upper limit.",
            curable=False,
            code=Cause.NODE_USAGE,
        ),
    )
    weight: int = arg("usage.weight", default=5, minimum=0, doc="weight of this plugin's score")
    cpu: int = arg("cpu.weight", default=1, minimum=0, doc="weight of CPU")
    memory: int = arg("memory.weight", default=1, minimum=0, doc="weight of memory")
    thresholds: Thresholds = arg("thresholds", default_factory=Thresholds)
    estimator: Estimator = arg("estimator", default_factory=Estimator)

    def on_open(self, ssn: PluginSession) -> None:
        """Lay out measured load, and estimate pods that measurements do not include yet."""
        nodes = ssn.snapshot.nodes
        load = node_load(ssn)
        self._snapshot, self._journal = ssn.snapshot, ssn.journal
        self._fresh = load.fresh(ssn.now, _LONGEST_AGE)
        capacity = nodes.capacity_amounts[_BOTH, : nodes.n]
        self._known = capacity > 0
        self._capacity = np.where(self._known, capacity, 1.0)
        self._measured = load.percent / 100.0 * capacity
        high = load.percent > [[self.thresholds.cpu], [self.thresholds.memory]]
        codes = np.where(high[CPU], _CPU_HIGH, np.where(high[MEMORY], _MEMORY_HIGH, 0))
        self._codes = np.where(self._fresh, codes, 0).astype(np.int16)
        self._expected: dict[int, Column] = {}
        self._of_node = np.zeros((2, nodes.n))
        self._of_task = np.zeros((2, ssn.snapshot.tasks.n))
        self._score = ssn.add_node_column(_SCORE)
        self._guess_unseen(ssn)
        self._score[:] = self._scores(ALL)

    def _guess_unseen(self, ssn: PluginSession) -> None:
        """Add running pods that started after the last measurement, and bound ones."""
        tasks, n = ssn.snapshot.tasks, ssn.snapshot.tasks.n
        status, started = tasks.status[:n], tasks.started[:n]
        young = np.isnan(started) | (ssn.now - started < _interval(ssn))
        placed = np.isin(status, [int(s) for s in ALLOCATED_CLASS])
        unseen = placed & ((status != Status.RUNNING) | young) & (tasks.node[:n] != NOWHERE)
        rows = np.flatnonzero(unseen)
        rows = rows[np.argsort(tasks.node[rows], kind="stable")]
        nodes = tasks.node[rows]
        rank = np.arange(len(rows)) - np.searchsorted(nodes, nodes)
        for k in range(int(rank.max(initial=-1)) + 1):  # one pod of each node at a time
            self._add(rows[rank == k], nodes[rank == k])

    def filter_shape(self, shape: Shape, facts: NodeFacts) -> Codes:
        """Close nodes measured above a threshold; stale measurements close nothing."""
        return self._codes[facts.rows]

    def score_nodes(self, task: Task, nodes: Nodes) -> Column:
        """Prefer the node with the least load, the pod itself not counted."""
        return nodes.column(_SCORE)

    def node_terms(self, task: Task) -> list[NodeTerm]:
        """State that scores stand in a column."""
        return [ColumnTerm(_SCORE)]

    def on_place(self, task: Task, node: int) -> None:
        """Estimate the use of a placed pod."""
        here = slice(node, node + 1)
        self._save(task.row, node)
        self._add(slice(task.row, task.row + 1), here)
        self._score[here] = self._scores(here)

    def on_evict(self, task: Task, node: int) -> None:
        """Subtract the estimate of a pod that leaves."""
        guess = self._of_task[:, task.row]
        if guess.any():
            self._save(task.row, node)
            self._of_node[:, node] = np.maximum(self._of_node[:, node] - guess, 0.0)
            self._of_task[:, task.row] = 0.0
            here = slice(node, node + 1)
            self._score[here] = self._scores(here)

    def _save(self, task: int, node: int) -> None:
        save = self._journal.save
        save(self._of_task, (slice(None), task))
        save(self._of_node, (slice(None), node))
        save(self._score, node)

    def _add(self, tasks: Rows, nodes: Rows) -> None:
        """Add estimates of tasks on distinct nodes, by the load their nodes have before."""
        total = self.cpu + self.memory
        cpu, memory = self._load(nodes)
        load = (cpu * self.cpu + memory * self.memory) / total if total else cpu * 0.0
        risky = load >= self.estimator.risk_threshold
        risk = np.where(risky, self.estimator.risk_factor, 1.0)
        shapes = self._snapshot.tasks.shape[tasks].tolist()
        expected = np.concatenate([self._expect(shape) for shape in shapes], axis=-1)  # (2, 2, n)
        guess = np.minimum(expected[0] * risk, expected[1])
        self._of_task[:, tasks] = guess
        self._of_node[:, nodes] += guess

    def _load(self, nodes: Rows) -> Column:
        """Return the load of some nodes, measured and estimated, 0 to 1 (2, n)."""
        load: Column = self._measured[:, nodes] + self._of_node[:, nodes]
        load /= self._capacity[:, nodes]
        np.maximum(load, 0.0, out=load)
        np.minimum(load, 1.0, out=load)
        load *= self._known[:, nodes]
        return load

    def _scores(self, nodes: Rows) -> Column | float:
        total = self.cpu + self.memory
        if not total:
            return 0.0
        cpu, memory = 1.0 - self._load(nodes)
        score = (cpu * self.cpu + memory * self.memory) / total * 100.0 * self.weight
        return np.where(self._fresh[nodes], score, 0.0)

    def _expect(self, number: int) -> Column:
        """Return the expected use of a pod of a shape without risk, and its bound (2, 2, 1)."""
        found = self._expected.get(number)
        if found is None:
            shape, how = self._snapshot.shapes[number], self.estimator
            request = shape.request[_BOTH, 0]
            if shape.best_effort:
                likely, most = _best_effort(how), np.full(2, np.inf)
            else:
                most = np.maximum(_limits(shape.spec), request)
                likely = request * how.request_ratio + (most - request) * how.burst_ratio
            found = self._expected[number] = np.stack([likely, most])[:, :, np.newaxis]
        return found


def _interval(ssn: PluginSession) -> float:
    try:
        seconds = parse_duration(ssn.metrics.get("interval", ""))
    except InputError:
        return _INTERVAL
    return seconds if seconds > 0 else _INTERVAL


def _best_effort(how: Estimator) -> Column:
    """Read what a pod without requests is expected to use (2,); the default if unreadable."""
    cpu, memory = how.best_effort_cpu, how.best_effort_memory
    out = np.array([250.0, 200.0 * (1 << 20)])
    for i, (given, unit, read) in enumerate(((cpu, 1, milli_value), (memory, 1 << 20, value))):
        if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
            out[i] = given * unit
        elif isinstance(given, str):
            try:
                out[i] = read(given)
            except InputError:
                continue
    return out


def _limits(spec: PodSpec) -> Column:
    """Return a pod's limits of cpu and memory (2,).

    A pod without a limit has none, whatever its overhead.
    """
    total = add_up(
        [_limit(each.resources.limits) for each in spec.containers],
        [(_limit(c.resources.limits), c.restart_policy == "Always") for c in spec.init_containers],
        np.zeros(2),
        operator.add,
        np.maximum,
    )
    if spec.resources is not None:
        whole = spec.resources.limits
        total = np.where([name in whole for name in ("cpu", "memory")], _limit(whole), total)
    return np.where(total > 0, total + _limit(spec.overhead), 0.0)


def _limit(amounts: Mapping[str, Quantity]) -> Column:
    return np.array([milli_value(amounts.get("cpu", 0)), value(amounts.get("memory", 0))], float)
