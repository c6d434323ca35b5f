"""What happens to a cluster while a workload runs: nodes come and go, queues and jobs change."""

from collections.abc import Sequence

import msgspec
import numpy as np

from pumice.api.objects import Node, NodeSpec, NodeStatus, ObjectMeta, PodGroup, Queue, QueueStatus
from pumice.core.resources import Column
from pumice.sim.execution import Execution
from pumice.sim.job_run import JobRun
from pumice.sim.sim_cluster import SimCluster, opened
from pumice.sim.workload import ClusterChange


class ClusterChanges:
    """The changes of a workload, each carried out when its time has come."""

    def __init__(
        self, changes: Sequence[ClusterChange], cluster: SimCluster, execution: Execution
    ) -> None:
        self._left = [*reversed(changes)]
        self._cluster = cluster
        self._execution = execution
        self.runs: dict[str, JobRun] = {}
        """Jobs that have arrived, by name."""
        self._capacity: list[tuple[float, Column]] = []
        """What the nodes offer from a time on."""

    @property
    def next_at(self) -> float | None:
        """When the next one is due."""
        return self._left[-1].at if self._left else None

    def carry_out(self) -> None:
        """Carry out the next one."""
        change = self._left.pop()
        match change.thing:
            case PodGroup():
                self._change_job(change.thing, is_gone=change.is_gone)
            case Node():
                self._change_node(change.thing, change)
            case Queue() if change.is_gone:  # its jobs stay, and no more of them start
                closed = QueueStatus(state="Closed")
                self._cluster.ingest.upsert(msgspec.structs.replace(change.thing, status=closed))
            case Queue():
                self._cluster.ingest.upsert(opened(change.thing))
            case _ if change.is_gone:
                self._cluster.ingest.delete(change.thing)
            case _:
                self._cluster.ingest.upsert(change.thing)

    def _change_job(self, group: PodGroup, *, is_gone: bool) -> None:
        run = self.runs.get(f"{group.metadata.namespace}/{group.metadata.name}")
        if run is None or run.is_over:
            return
        if is_gone:
            self._execution.cancel(run)
        else:
            self._execution.regroup(run, group.spec)

    def _change_node(self, node: Node, change: ClusterChange) -> None:
        """Write a node; one that is gone stays as an empty row, which the log may name."""
        snapshot = self._cluster.snapshot
        if not self._capacity:
            self._capacity.append((0.0, snapshot.total()))
        self._cluster.ingest.upsert(_hollow(node) if change.is_gone else node)
        self._capacity.append((change.at, snapshot.total()))
        if change.is_gone or change.empties:
            self._execution.empty_node(snapshot.nodes.row_of[node.metadata.name])

    def offered(self, end: float) -> Column | None:
        """Return the mean capacity until the end (R,); None if it did not change."""
        if not self._capacity or end <= 0:
            return None
        times = [min(at, end) for at, _ in self._capacity]
        whole = np.zeros(len(self._cluster.snapshot.resources))
        for (_, amounts), since, until in zip(
            self._capacity, times, [*times[1:], end], strict=True
        ):
            whole[: len(amounts)] += amounts * (until - since)
        return np.asarray(whole / end)


def _hollow(node: Node) -> Node:
    return Node(
        metadata=ObjectMeta(name=node.metadata.name),
        spec=NodeSpec(unschedulable=True),
        status=NodeStatus(),
    )
