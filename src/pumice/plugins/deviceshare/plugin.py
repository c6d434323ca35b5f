"""The deviceshare plugin itself: which nodes have cards to share, and which cards a pod gets."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pumice.api.codes import Cause
from pumice.api.times import epoch
from pumice.core.resources import Column
from pumice.core.views import Nodes, Task
from pumice.errors import InputError, PluginError
from pumice.framework.arguments import arg
from pumice.framework.plugin import Codes, Plugin, Reason
from pumice.framework.plugin_session import PluginSession
from pumice.framework.simulator_assumptions import SimulatorAssumptions
from pumice.plugins.deviceshare.cards import Choice, Held, Sharing
from pumice.plugins.deviceshare.gpushare import GpuSharing
from pumice.plugins.deviceshare.vgpu import ALLOCATING, BIND_PHASE, VirtualSharing

_LOCKED = 4
_LOCK_LASTS = 300.0


@dataclass(kw_only=True)
class DeviceShare(Plugin, name="deviceshare"):
    """Test, score and assign cards; the assignment is written on the pod when it is bound."""

    simulator = SimulatorAssumptions(bounded=True)
    reasons = (
        Reason("GpuShare no enough gpu memory", code=Cause.DEVICE),
        Reason("GpuNumber no enough gpu number", code=Cause.DEVICE),
        Reason("hami-vgpuDeviceSharing error", code=Cause.DEVICE),
        Reason("node is locked while devices are handed out", curable=False, code=Cause.DEVICE),
    )
    gpu_sharing: bool = arg(
        "deviceshare.GPUSharingEnable", default=False, doc="share cards by gpu-memory"
    )
    gpu_number: bool = arg(
        "deviceshare.GPUNumberEnable", default=False, doc="hand out whole cards by gpu-number"
    )
    vgpu: bool = arg(
        "deviceshare.VGPUEnable", default=False, doc="share cards by vgpu-memory and vgpu-cores"
    )
    node_lock: bool = arg(
        "deviceshare.NodeLockEnable",
        default=False,
        doc="one pod with devices at a time on a node, until its device plugin is done",
    )
    policy: str = arg(
        "deviceshare.SchedulePolicy", default="", doc="which cards first: binpack or spread"
    )
    weight: int = arg("deviceshare.ScheduleWeight", default=0, doc="weight of the score")
    exclusive: list[Any] = arg(
        "deviceshare.GPUExclusiveRules",
        default_factory=list,
        doc="mappings of labels; pods that have all labels of one never share a virtual card",
    )

    def __post_init__(self) -> None:
        """Refuse ways of sharing that exclude each other.

        Raises:
            PluginError: more than one is switched on.
        """
        if self.gpu_sharing + self.gpu_number + self.vgpu > 1:
            problem = "GPUSharingEnable, GPUNumberEnable and VGPUEnable exclude each other"
            raise PluginError(self.name, problem=problem)

    def on_open(self, ssn: PluginSession) -> None:
        """Read the cards of nodes and what pods on them hold."""
        self._ssn = ssn
        self._sharing = self._chosen_sharing()
        self._cards: dict[int, Any] = {}
        self._held: dict[int, Held] = {}
        self._busy: dict[int, bool] = {}
        self._wishes: dict[int, Hashable] = {}
        self._answers: dict[tuple[int, Hashable], tuple[Held, Choice | None]] = {}
        if self._sharing is None:
            return
        for row, node in enumerate(ssn.nodes().objects):
            cards = self._sharing.read_node(node)
            if cards is not None:
                self._cards[row] = cards
                self._read_pods(self._sharing, row)

    def _chosen_sharing(self) -> Sharing[Any, Any] | None:
        if self.vgpu:
            rules = [rule for rule in self.exclusive if isinstance(rule, dict) and rule]
            return VirtualSharing(self.policy, tuple(rules))
        if self.gpu_sharing or self.gpu_number:
            return GpuSharing(by_memory=self.gpu_sharing)
        return None

    def _read_pods(self, sharing: Sharing[Any, Any], row: int) -> None:
        tasks, nodes = self._ssn.snapshot.tasks, self._ssn.snapshot.nodes
        held: list[Any] = []
        busy = self.node_lock and self._is_locked(nodes.objects[row], sharing.lock)
        for task in nodes.tasks[row]:
            pod: Any = tasks.pods[task]
            held += sharing.read_grants(self._cards[row], pod, tasks.keys[task])
            if self.node_lock and pod.metadata.annotations.get(BIND_PHASE) == ALLOCATING:
                busy = True
        self._held[row] = tuple(held)
        self._busy[row] = busy

    def _is_locked(self, node: Any, lock: str) -> bool:
        since = node.metadata.annotations.get(lock, "")
        try:
            return bool(since) and self._ssn.now - epoch(since) <= _LOCK_LASTS
        except InputError:
            return False

    def vary_by(self, task: Task) -> Hashable:
        """Tell apart pods whose wishes differ; annotations and labels count, not only specs."""
        return self._wish(task)

    def _wish(self, task: Task) -> Hashable:
        row = task.row
        if row not in self._wishes:
            sharing = self._sharing
            self._wishes[row] = None if sharing is None else sharing.read_wish(task.pod)
        return self._wishes[row]

    def _choice(self, task: Task, row: int) -> Choice | None:
        wish, held, sharing = self._wish(task), self._held[row], self._sharing
        known = self._answers.get((row, wish))
        if known is None or known[0] is not held:
            chosen = None if sharing is None else sharing.choose(self._cards[row], wish, held, "")
            known = self._answers[row, wish] = (held, chosen)
        return known[1]

    def filter_nodes(self, task: Task, nodes: Nodes) -> Codes | None:
        """Test nodes that have cards; on others the plain resource fit decides."""
        if self._wish(task) is None:
            return None
        return np.array(self._each(task, nodes, self._test), dtype=np.int16)

    def score_nodes(self, task: Task, nodes: Nodes) -> Column | None:
        """Prefer nodes whose cards get full, or are idle, as the policy says."""
        if self.weight <= 0 or not self.policy or self._wish(task) is None:
            return None
        return np.array(self._each(task, nodes, self._value), dtype=np.float64) * self.weight

    def _each(self, task: Task, nodes: Nodes, ask: Callable[[Task, int], float]) -> list[float]:
        return [ask(task, row) if row in self._cards else 0 for row in nodes.index.tolist()]

    def _test(self, task: Task, row: int) -> int:
        if self._busy[row]:
            return _LOCKED
        if self._sharing is None or self._choice(task, row) is not None:
            return 0
        return self._sharing.refusal

    def _value(self, task: Task, row: int) -> float:
        choice = self._choice(task, row)
        return 0.0 if choice is None else float(np.floor(choice.score + 0.5))

    def on_place(self, task: Task, node: int) -> None:
        """Give the task its cards and note what its pod has to be told."""
        sharing = self._sharing
        if sharing is None or self._wish(task) is None or node not in self._cards:
            return
        cards = self._cards[node]
        choice = sharing.choose(cards, self._wish(task), self._held[node], task.key)
        if choice is None:
            return
        journal, ssn = self._ssn.journal, self._ssn
        journal.put(self._held, node, (*self._held[node], *choice.grants))
        if self.node_lock:
            journal.put(self._busy, node, True)  # noqa: FBT003  a value, not a switch
        name = ssn.snapshot.nodes.names[node]
        ssn.annotate(task.row, sharing.annotations(choice, cards, name, ssn.now))

    def on_evict(self, task: Task, node: int) -> None:
        """Take back the cards of a task that leaves."""
        held = self._held.get(node, ())
        left = tuple(grant for grant in held if grant.pod != task.key)
        if len(left) < len(held):
            self._ssn.journal.put(self._held, node, left)
            self._ssn.drop_annotations(task.row)
