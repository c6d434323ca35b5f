"""Cpus of pods that the kubelet has not reported yet, kept from cycle to cycle.

The kubelet picks the cpus of a pod itself, and the exporter reports them later.  Until then the
cpus that a pod got here count as taken.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from pumice.api.nodes import Numatopology
from pumice.api.pods import Pod
from pumice.plugins.numa_aware.cpus import NOTHING, Cpus


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
