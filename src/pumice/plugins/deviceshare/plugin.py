"""The deviceshare plugin itself: which nodes have cards to share, and which cards a pod gets."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pumice.api.codes import Cause
from pumice.api.nodes import LOCK_LASTS, Node, is_locked
from pumice.core.resources import Column
from pumice.core.views import Nodes, Task
from pumice.errors import PluginError
from pumice.framework.arguments import Fault, arg
from pumice.framework.plugin import Codes, Plugin, Reason
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession
from pumice.plugins.deviceshare.ascend import AscendSharing
from pumice.plugins.deviceshare.cards import Choice, Grant, Held, Lack, Sharing, read_count
from pumice.plugins.deviceshare.device_config import DeviceConfig, device_config
from pumice.plugins.deviceshare.gpushare import GpuSharing
from pumice.plugins.deviceshare.vgpu import ALLOCATING, VirtualSharing

_LOCKED = 4
_MOST_LACKING = 3
"""Nodes and cards that a refusal names."""

_Wishes = tuple[Hashable, ...]
"""The request of a pod for each mode of sharing, None for nothing."""
_Place = tuple[int, int]
"""A mode of sharing, by its number, and a node."""


@dataclass(kw_only=True)
class DeviceShare(Plugin, name="deviceshare"):
    """Test, score and assign cards; the assignment is written on the pod when it is bound."""

    simulator = SimulatorAssumptions()
    reasons = (
        Reason("GpuShare no enough gpu memory", code=Cause.DEVICE, vetoes=True),
        Reason("GpuNumber no enough gpu number", code=Cause.DEVICE, vetoes=True),
        Reason("hami-vgpuDeviceSharing error", code=Cause.DEVICE, vetoes=True),
        Reason("node is locked while devices are allocated", curable=False, code=Cause.DEVICE),
        Reason("no ascend device available", code=Cause.DEVICE, vetoes=True),
        Reason(
            "no ascend device available",
            curable=False,
            code=Cause.DEVICE,
            lasting=False,
            vetoes=True,
        ),
    )
    gpu_sharing: bool = arg(
        "deviceshare.GPUSharingEnable", default=False, doc="share cards by gpu-memory"
    )
    gpu_number: bool = arg(
        "deviceshare.GPUNumberEnable", default=False, doc="allocate whole cards by gpu-number"
    )
    vgpu: bool = arg(
        "deviceshare.VGPUEnable", default=False, doc="share cards by vgpu-memory and vgpu-cores"
    )
    ascend: bool = arg(
        "deviceshare.AscendHAMiVNPUEnable", default=False, doc="share Ascend cards as HAMi does"
    )
    mind_cluster: bool = arg(
        "deviceshare.AscendMindClusterVNPUEnable",
        default=False,
        doc="accepted and without effect: MindCluster's sharing of Ascend cards is not supported",
    )
    config_name: str = arg(
        "deviceshare.KnownGeometriesCMName",
        default="volcano-vgpu-device-config",
        doc="the ConfigMap with MIG geometries and Ascend chips",
    )
    config_namespace: str = arg(
        "deviceshare.KnownGeometriesCMNamespace", default="kube-system", doc="its namespace"
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
        """Refuse modes of sharing that exclude each other.

        Raises:
            PluginError: more than one is switched on.
        """
        if self.gpu_sharing + self.gpu_number + self.vgpu > 1:
            problem = "GPUSharingEnable, GPUNumberEnable and VGPUEnable exclude each other"
            raise PluginError(self.name, problem=problem)

    def faults(self) -> Iterable[Fault]:
        """Report the mode of sharing that is not supported."""
        if self.mind_cluster:
            key = "deviceshare.AscendMindClusterVNPUEnable"
            hint = "cards are allocated as HAMi does, or by number alone"
            yield Fault(key, "false", self.mind_cluster, hint, severity="odd")

    def config_maps(self) -> Iterable[str]:
        """Return the ConfigMap of the device plugins where it matters."""
        if self.vgpu or self.ascend:
            yield f"{self.config_namespace}/{self.config_name}"

    def on_open(self, ssn: PluginSession) -> None:
        """Read the cards of nodes and the grants of their pods."""
        self._ssn = ssn
        self._cards: dict[_Place, Any] = {}
        self._held: dict[int, Held] = {}
        self._busy: dict[_Place, bool] = {}
        self._wishes: dict[int, _Wishes | None] = {}
        self._answers: dict[tuple[int, int, Hashable], tuple[Held, Choice | None]] = {}
        found = (ssn.snapshot.kind("ConfigMap").get(key) for key in self.config_maps())
        self._sharings = self._chosen_sharings(device_config(next(found, None)))
        if self._sharings:
            for row, node in enumerate(ssn.nodes().objects):
                self._read_node(row, node)

    def _chosen_sharings(self, config: DeviceConfig) -> list[Sharing[Any, Any]]:
        chosen: list[Sharing[Any, Any]] = []
        if self.vgpu:
            rules = [rule for rule in self.exclusive if isinstance(rule, dict) and rule]
            chosen.append(VirtualSharing(self.policy, tuple(rules), config.nvidia))
        if self.gpu_sharing or self.gpu_number:
            chosen.append(GpuSharing(by_memory=self.gpu_sharing))
        if self.ascend:
            in_software = config.vnpus.hami_vnpu_core
            chosen += [
                AscendSharing(chip, self.policy, in_software) for chip in config.vnpus.configs
            ]
        return chosen

    def _read_node(self, row: int, node: Node) -> None:
        held: list[Grant] = []
        for number, sharing in enumerate(self._sharings):
            cards = sharing.read_node(node)
            if cards is not None:
                self._cards[number, row] = cards
                self._busy[number, row] = self.node_lock and self._is_busy(sharing, row, node)
                for task in self._tasks_on(row):
                    held += sharing.read_grants(cards, task.pod, task.key)
        self._held[row] = tuple(held)

    def _tasks_on(self, row: int) -> Iterator[Task]:
        snapshot = self._ssn.snapshot
        return (Task(snapshot, task) for task in snapshot.nodes.tasks[row])

    def _is_busy(self, sharing: Sharing[Any, Any], row: int, node: Node) -> bool:
        """Return whether a node is locked, or a device plugin works for a pod there."""
        now, (phase, since) = self._ssn.now, sharing.phase
        if is_locked(node.metadata.annotations.get(sharing.lock, ""), now):
            return True
        marks = (task.pod.metadata.annotations for task in self._tasks_on(row))
        begun = [each.get(since, "") for each in marks if each.get(phase) == ALLOCATING]
        return any(not each or now - read_count(each) <= LOCK_LASTS for each in begun)

    def changes_at(self, ssn: PluginSession) -> float | None:
        """Return the next second if a node is locked: locks expire."""
        return ssn.now + 1.0 if any(self._busy.values()) else None

    def vary_by(self, task: Task) -> Hashable:
        """Distinguish pods whose requests differ; annotations and labels count, not only specs."""
        return self._wish(task)

    def _wish(self, task: Task) -> _Wishes | None:
        """Return the request of a task, None if it asks for no card."""
        row = task.row
        if row not in self._wishes:
            wishes = tuple(sharing.read_wish(task.pod) for sharing in self._sharings)
            self._wishes[row] = wishes if any(each is not None for each in wishes) else None
        return self._wishes[row]

    def _wanted(self, task: Task, row: int) -> Iterator[tuple[int, Any]]:
        """Yield the modes of sharing that matter for a task on a node, with its request."""
        for number, wish in enumerate(self._wish(task) or ()):
            if wish is not None and (number, row) in self._cards:
                yield number, wish

    def _held_of(self, number: int, row: int) -> Held:
        held, family = self._held[row], self._sharings[number].family
        if len(self._sharings) == 1:
            return held
        return tuple(grant for grant in held if grant.family == family)

    def _choice(self, number: int, wish: Hashable, row: int) -> Choice | None:
        place, held = (number, row, wish), self._held[row]
        known = self._answers.get(place)
        if known is None or known[0] is not held:
            cards, mine = self._cards[number, row], self._held_of(number, row)
            chosen = self._sharings[number].choose(cards, wish, mine, "")
            known = self._answers[place] = (held, chosen)
        return known[1]

    def filter_nodes(self, task: Task, nodes: Nodes) -> Codes | None:
        """Test nodes that have cards; on others the plain resource fit decides."""
        if self._wish(task) is None:
            return None
        return np.array([self._test(task, row) for row in nodes.index.tolist()], dtype=np.int16)

    def score_nodes(self, task: Task, nodes: Nodes) -> Column | None:
        """Prefer nodes whose cards get full, or are idle, by policy."""
        if self.weight <= 0 or not (self.policy or self.ascend) or self._wish(task) is None:
            return None
        values = [self._value(task, row) for row in nodes.index.tolist()]
        return np.array(values, dtype=np.float64) * self.weight

    def _test(self, task: Task, row: int) -> int:
        for number, wish in self._wanted(task, row):
            if self._busy[number, row]:
                return _LOCKED
            if self._choice(number, wish, row) is None:
                return self._sharings[number].refusal(self._cards[number, row], wish)
        return 0

    def _value(self, task: Task, row: int) -> float:
        choices = [self._choice(number, wish, row) for number, wish in self._wanted(task, row)]
        return float(np.floor(sum(each.score for each in choices if each is not None) + 0.5))

    def on_place(self, task: Task, node: int) -> None:
        """Assign the task its cards and record the annotations of its pod and its node."""
        journal, ssn = self._ssn.journal, self._ssn
        for number, wish in self._wanted(task, node):
            sharing, cards = self._sharings[number], self._cards[number, node]
            choice = sharing.choose(cards, wish, self._held_of(number, node), task.key)
            if choice is None:
                continue
            journal.put(self._held, node, (*self._held[node], *choice.grants))
            if self.node_lock:
                journal.put(self._busy, (number, node), True)  # noqa: FBT003  a value, no switch
                ssn.lock_node(task.row, sharing.lock)
            name = ssn.snapshot.nodes.names[node]
            ssn.annotate(task.row, sharing.annotations(choice, cards, wish, name, ssn.now))

    def on_evict(self, task: Task, node: int) -> None:
        """Release the cards of a task that leaves."""
        held = self._held.get(node, ())
        left = tuple(grant for grant in held if grant.pod != task.key)
        if len(left) < len(held):
            self._ssn.journal.put(self._held, node, left)
            self._ssn.drop_annotations(task.row)

    def refusal_numbers(self, task: Task) -> dict[str, Any]:
        """Return what cards lack for a task, of the first nodes that refuse it."""
        lacking: dict[str, list[str]] = {}
        if self._wish(task) is not None:
            for row, name in enumerate(self._ssn.snapshot.nodes.names):
                lacks = self._lacks(task, row)
                if lacks:
                    lacking[name] = [str(each) for each in lacks[:_MOST_LACKING]]
                if len(lacking) == _MOST_LACKING:
                    break
        return {"cards": lacking} if lacking else {}

    def _lacks(self, task: Task, row: int) -> list[Lack]:
        """Return what the cards of a node lack; a node without cards is not judged."""
        for number, wish in self._wanted(task, row):
            if self._busy[number, row]:
                return [Lack("", "is locked while devices are allocated")]
            if self._choice(number, wish, row) is None:
                mine = self._held_of(number, row)
                lacks = self._sharings[number].lacks(self._cards[number, row], wish, mine)
                return lacks or [Lack("", "has no healthy card")]
        return []
