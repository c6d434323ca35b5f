"""predicates: Kubernetes' own filters, each with its switch."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pumice.api.codes import Cause
from pumice.core.labels import UNSCHEDULABLE_TAINT, node_labels, tolerates, untolerated
from pumice.core.pod_terms import pod_terms
from pumice.core.resources import PODS, Column, Mask
from pumice.core.status import Status
from pumice.core.tables import Shape
from pumice.core.views import NodeFacts, Nodes, Task
from pumice.framework.arguments import arg
from pumice.framework.placement.kernel import POD_LIMIT, NodeTerm
from pumice.framework.plugin import Codes, Plugin, Reason
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession
from pumice.plugins.predicates.claims import names_its_pod
from pumice.plugins.predicates.devices.allocations import DeviceAllocations
from pumice.plugins.predicates.neighbours import Demand, Demands
from pumice.plugins.predicates.node_tests import cordon_test, label_tests, taint_tests
from pumice.plugins.predicates.reasons import REASONS, Code
from pumice.plugins.predicates.volumes import Volumes


@dataclass(kw_only=True)
class Predicates(Plugin, name="predicates"):
    """Refuse nodes as Kubernetes' scheduler does; keeps the Kubernetes view of nodes up to date.

    Tests that hold for a whole session check cordon, labels and taints; the others follow every
    pod that is added or removed while the session decides.
    """

    foreseeable = True
    simulator = SimulatorAssumptions()
    reasons = REASONS
    node_affinity: bool = arg(
        "predicate.NodeAffinityEnable", default=True, doc="test nodeSelector and node affinity"
    )
    node_ports: bool = arg("predicate.NodePortsEnable", default=True, doc="test host ports")
    taints: bool = arg("predicate.TaintTolerationEnable", default=True, doc="test taints")
    pod_affinity: bool = arg(
        "predicate.PodAffinityEnable", default=True, doc="test affinity and anti-affinity of pods"
    )
    spread: bool = arg(
        "predicate.PodTopologySpreadEnable", default=True, doc="test hard topology spread"
    )
    volume_limits: bool = arg(
        "predicate.NodeVolumeLimitsEnable", default=True, doc="test how many volumes a node takes"
    )
    volume_zones: bool = arg(
        "predicate.VolumeZoneEnable", default=True, doc="test the zones of volumes"
    )
    volume_binding: bool = arg(
        "predicate.VolumeBindingEnable", default=True, doc="test where volumes are available"
    )
    bind_timeout_s: int = arg(
        "volumebinding.bindTimeoutSeconds",
        default=600,
        minimum=0,
        doc="how many seconds a pod waits on its node for its volumes to be bound",
    )
    volume_weight: int = arg(
        "volumebinding.weight", default=1, doc="accepted and without effect: volumes do not score"
    )
    volume_shape: list[Any] = arg(
        "volumebinding.shape",
        default_factory=list,
        doc="accepted and without effect: volumes do not score",
    )
    devices: bool = arg(
        "predicate.DynamicResourceAllocationEnable",
        default=True,
        doc="allocate the devices of resource claims; otherwise pods that have claims wait",
    )
    device_filter_timeout_s: int = arg(
        "dynamicresources.filterTimeoutSeconds",
        default=10,
        minimum=0,
        doc="accepted and without effect: a search is bounded by its steps",
    )
    cache: bool = arg(
        "predicate.CacheEnable", default=False, doc="accepted and without effect: always cached"
    )

    def on_open(self, ssn: PluginSession) -> None:
        """Keep the Kubernetes view up to date from now on."""
        self._ssn, snapshot = ssn, ssn.snapshot
        snapshot.view_is_live = True
        self._snapshot, self._nodes, self._tasks = snapshot, snapshot.nodes, snapshot.tasks
        terms = pod_terms(snapshot)
        self._is_quiet = not terms.speaking
        claims = snapshot.kind("PersistentVolumeClaim") or snapshot.kind("ResourceClaim")
        self.tells_apart = bool(claims) or not self._is_quiet
        self._demands = Demands(
            snapshot, terms, ports=self.node_ports, affinity=self.pod_affinity, spread=self.spread
        )
        if snapshot.kind("PersistentVolumeClaim") and self._volumes is not None:
            snapshot.view_watchers.append(self._volumes.follow)
        if snapshot.kind("ResourceClaim") and self._allocations is not None:
            snapshot.view_watchers.append(self._allocations.follow)

    @cached_property
    def _volumes(self) -> Volumes | None:
        limits, zones, binding = self.volume_limits, self.volume_zones, self.volume_binding
        if not (limits or zones or binding):
            return None
        return Volumes(self._snapshot, limits=limits, zones=zones, binding=binding)

    @cached_property
    def _allocations(self) -> DeviceAllocations | None:
        return DeviceAllocations(self._ssn) if self.devices else None

    def refusal_numbers(self, task: Task) -> dict[str, Any]:
        """Return what the resource claims of a task lack."""
        if self._allocations is None or not task.shape.spec.resource_claims:
            return {}
        lack = self._allocations.lack(task)
        return {} if lack is None else {"claim": lack}

    def vary_by(self, task: Task) -> Hashable:
        """Distinguish pods of one shape by their relations to other pods."""
        if task.shape.spec.resource_claims and self._allocations is not None:
            own = task.row if names_its_pod(task) else None
            return (self._demand(task), own, self._allocations.vary_by(task))
        if task.shape.spec.volumes and names_its_pod(task):
            return (self._demand(task), task.row)
        return self._demand(task)

    def node_terms(self, task: Task) -> list[NodeTerm] | None:
        """State the limit of pods and what other pods decide; not volumes and claims."""
        shape = task.shape
        volumes = self._volumes if shape.spec.volumes else None
        if shape.spec.resource_claims or (volumes is not None and volumes.claims.keys(task)):
            return None
        demand = self._demand(task)
        return [POD_LIMIT] if demand is None else [POD_LIMIT, demand.as_counts()]

    def _demand(self, task: Task) -> Demand | None:
        if self._is_quiet:
            return None
        return self._demands.of(task.shape, self._tasks.label_class.item(task.row))

    def filter_task(self, task: Task) -> Reason | None:
        """Refuse a pod whose claims do not exist, or are unbound and cannot wait."""
        if task.shape.spec.resource_claims:
            problem = self._claim_problem(task)
            if problem:
                return Reason(problem, curable=False, code=Cause.DEVICE)
        if not task.shape.spec.volumes or self._volumes is None:
            return None
        problem = self._volumes.problem(task)
        return Reason(problem, curable=False, code=Cause.VOLUME) if problem else None

    def _claim_problem(self, task: Task) -> str:
        if self._allocations is None:
            return "resource claims are switched off (predicate.DynamicResourceAllocationEnable)"
        problem = self._allocations.problem(task)
        return "" if problem is None else str(problem)

    def filter_shape(self, shape: Shape, facts: NodeFacts) -> Codes | None:
        """Test cordon, node affinity and taints, in this order."""
        snapshot, spec = facts.snapshot, shape.spec
        failed: list[tuple[Code, Mask]] = []
        if self.taints:
            untolerable = untolerated(snapshot, spec, ("NoSchedule", "NoExecute"))
            if untolerable is not None:
                failed.append((Code.TAINT, untolerable[facts.rows] > 0))
        if self.node_affinity:
            allowed = node_labels(snapshot).demanded(spec)
            if allowed is not None:
                failed.append((Code.NODE_AFFINITY, ~allowed[facts.rows]))
        cordoned = facts.unschedulable
        if cordoned.any() and not tolerates(spec.tolerations, UNSCHEDULABLE_TAINT):
            failed.append((Code.CORDON, cordoned))
        if not failed:
            return None
        codes = np.zeros(len(facts), dtype=np.int16)
        for code, refused in failed:
            codes[refused] = code
        return codes

    def node_tests(self, task: Task, nodes: Nodes) -> dict[Cause, Mask]:
        """Make each test by itself."""
        snapshot, spec = self._snapshot, task.shape.spec
        tests = [cordon_test(spec, nodes)]
        if self.node_affinity:
            tests += label_tests(snapshot, spec, nodes)
        if self.taints:
            tests += taint_tests(snapshot, spec, nodes)
        tests += self._live_tests(task, nodes)
        found: dict[Cause, Mask] = {}
        for cause, failed in tests:
            found[cause] = found[cause] | failed if cause in found else failed
        return found

    def _live_tests(self, task: Task, nodes: Nodes) -> Iterator[tuple[Cause, Mask]]:
        rows = nodes.rows
        yield Cause.POD_LIMIT, nodes.view_pods >= self._nodes.allocatable[PODS, rows]
        demand = self._demand(task)
        if demand is not None:
            for code, failed in demand.tests(rows):
                yield REASONS[code - 1].code, failed
            spread = np.zeros(len(nodes), dtype=np.int16)
            demand.settle_spread(spread, rows)
            yield Cause.TOPOLOGY_SPREAD, spread > 0
        if self._volumes is not None and task.shape.spec.volumes:
            volumes = np.zeros(len(nodes), dtype=np.int16)
            self._volumes.settle(volumes, task, rows)
            self._volumes.settle_binding(volumes, task, rows)
            yield Cause.VOLUME, volumes > 0
        if self._allocations is not None and task.shape.spec.resource_claims:
            devices = np.zeros(len(nodes), dtype=np.int16)
            self._allocations.settle(devices, task, rows)
            yield Cause.DEVICE, devices > 0

    def filter_nodes(self, task: Task, nodes: Nodes) -> Codes | None:
        """Test pod number, host ports, pod affinity, volumes, spread and resource claims."""
        rows = nodes.rows
        full = nodes.view_pods >= self._nodes.allocatable[PODS, rows]
        demand = self._demand(task)
        volumes = self._volumes if task.shape.spec.volumes else None
        if volumes is not None and not volumes.claims.keys(task):
            volumes = None
        devices = self._allocations if task.shape.spec.resource_claims else None
        if demand is None and volumes is None and devices is None:
            return ~full if np.count_nonzero(full) else None
        codes = full.astype(np.int16)
        if demand is not None:
            demand.settle(codes, rows)
        if volumes is not None:
            volumes.settle(codes, task, rows)
        if demand is not None:
            demand.settle_spread(codes, rows)
        if volumes is not None:
            volumes.settle_binding(codes, task, rows)
        if devices is not None:
            devices.settle(codes, task, rows)
        return codes

    def rank_nodes(self, task: Task, nodes: Nodes) -> Column | None:
        """Prefer nodes that meet better alternatives of a pod's claims."""
        claims, devices = task.shape.spec.resource_claims, self._allocations
        if not claims or devices is None or not devices.has_alternatives(task):
            return None
        return devices.rank(task, nodes.rows)

    def on_close(self, ssn: PluginSession) -> None:
        """Request the binding of pods' volumes; release devices of pods that were not placed."""
        if ssn.snapshot.kind("ResourceClaim") and self._allocations is not None:
            ssn.release_claims(self._allocations.left_over())
        if not ssn.snapshot.kind("PersistentVolumeClaim"):
            return
        if self._volumes is None or not self._volumes.claims.promises:
            return
        for row in np.flatnonzero(self._tasks.status == Status.BINDING).tolist():
            choices = self._volumes.claims.choices(Task(ssn.snapshot, row))
            if choices:
                ssn.bind_volumes(row, choices, self.bind_timeout_s)
