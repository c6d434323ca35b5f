"""A plugin's view of a session: all it may read, and the little it may do.

A plugin changes its own state through ``journal``, so that a roll-back covers it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pumice.api.decisions import ClaimChoice
from pumice.api.devices import ClaimReservation
from pumice.core.resources import CPU, MEMORY, Column, IndexArray, Mask
from pumice.core.snapshot import Journal, Snapshot
from pumice.core.views import Job, Nodes
from pumice.framework.future.promises import Demand, Profile, Promise
from pumice.framework.queue_limits.limits import QueueGates
from pumice.framework.topology.domains import Topology


class FutureView(Protocol):
    """The cluster ahead of now: running pods end as stated, promised jobs take their places."""

    now: float
    """This moment, to the microsecond, as all times here."""
    kept: dict[int, dict[int, int]]
    """Job to its pods and their nodes, all by row, where counting was not enough."""
    unknown_s: float
    """How long jobs run of which nobody states it."""

    def demand(self, job: int) -> Demand:
        """Return the least that a job takes to start."""

    def profile(self, demand: Demand, promises: Sequence[Promise]) -> Profile | None:
        """Return the room for such pods beside promises; None if counting is not enough."""

    def without_room(self, jobs: Sequence[int], *, in_line: bool = False) -> set[int]:
        """Return those of some jobs that surely find too little room now, and while pods stay."""

    def seconds(self, jobs: IndexArray) -> list[float]:
        """Return how long jobs (rows) run at most."""

    def longest(self, job: int) -> float:
        """Return how long a job (row) runs at most."""

    def lead(self, promise: Promise) -> None:
        """Lead a job to the places that it was found last, if they have room now."""

    def promise(self, job: int, others: Sequence[Promise], before: float = ...) -> Promise:
        """Return the earliest start beside all others of a job that finds no place now."""

    def first_delayed(self, promises: Sequence[Promise]) -> Promise | None:
        """Return a promise that cannot be kept as things stand now."""

    def is_short(self, promises: Sequence[Promise]) -> bool:
        """Return whether there is too little room for promises, by counting alone."""

    def ends_of_jobs(self) -> dict[int, tuple[float, int]]:
        """Return when running jobs (rows) are expected to end, and how many pods they have."""

    def places(self, promises: Sequence[Promise]) -> dict[int, list[int]] | Promise:
        """Return on which nodes promised jobs will be, or one that will find no place."""


class PluginSession(Protocol):
    """One scheduling cycle, as plugins see it."""

    @property
    def snapshot(self) -> Snapshot:
        """Nodes, tasks, jobs and queues as they are at this moment of the cycle."""

    @property
    def journal(self) -> Journal:
        """Undoes every write of the cycle; ``moved`` lists the node rows that have changed."""

    @property
    def topology(self) -> Topology:
        """Network domains, sub-groups, and the domains of jobs."""

    @property
    def future(self) -> FutureView:
        """The cluster ahead of now."""

    @property
    def now(self) -> float:
        """The time of the cycle, in seconds since 1970."""

    @property
    def total(self) -> Column:
        """Allocatable amounts of all nodes together (R,)."""

    @property
    def memory(self) -> dict[str, Any]:
        """State of a plugin for the next cycle, under its own name.

        It belongs to the process: a reload of the configuration leaves it as it is.
        """

    @property
    def started_at(self) -> float | None:
        """When the process began to schedule a live cluster; None in scenarios and simulations."""

    @property
    def node_usage(self) -> Mapping[str, Any]:
        """Measured use of nodes, by name."""

    @property
    def metrics(self) -> Mapping[str, str]:
        """The section ``metrics`` of the configuration: source and interval of measurements."""

    @property
    def services(self) -> Mapping[str, Any]:
        """Clients of other programs, by name."""

    @property
    def queue_gates(self) -> QueueGates:
        """Reservations of pods whose queue gates are open and that are not placed yet."""

    def jobs(self) -> list[int]:
        """List the jobs (rows) whose pod group and queue exist."""

    def job(self, row: int) -> Job:
        """Return one job."""

    def nodes(self) -> Nodes:
        """Return all nodes."""

    @property
    def promises(self) -> dict[int, Promise]:
        """Job (row) to the start that it is promised; filled at close."""

    def others_order_queues(self, plugin: str) -> bool:
        """Return whether plugins other than this one put queues in order."""

    def sort_jobs(self, rows: Iterable[int]) -> list[int]:
        """Order jobs by all plugins, then by age; not before every plugin has opened."""

    def sort_tasks(self, rows: Iterable[int]) -> list[int]:
        """Order tasks by all plugins; not before every plugin has opened."""

    def add_node_column(self, name: str, fill: float = 0.0) -> Column:
        """Add a node column of the plugin's own (N,); write it through ``journal.save``."""

    def annotate(self, task: int, annotations: Mapping[str, str]) -> None:
        """Write annotations on a task's pod when it is bound; a roll-back undoes it."""

    def drop_annotations(self, task: int) -> None:
        """Forget annotations and node lock of a task that is not placed in the end."""

    def lock_node(self, task: int, lock: str) -> None:
        """Lock the node of a task by an annotation before it is bound; a roll-back undoes it.

        The annotation holds the time. Its device plugin removes it; after five minutes it does
        not count any more.
        """

    def reserve_claims(self, task: int, claims: tuple[ClaimReservation, ...]) -> None:
        """Reserve resource claims for a task before it is bound; a roll-back undoes it."""

    def release_claims(self, claims: Iterable[str]) -> None:
        """Free the devices of claims ("namespace/name") that only waiting pods have."""

    def bind_volumes(self, task: int, choices: Sequence[ClaimChoice], timeout_s: float) -> None:
        """Make the pod of a task that is to be bound wait for its claims; called at close."""

    def store(self, config_map: str, data: Mapping[str, str]) -> None:
        """Write data into a ConfigMap ("namespace/name") after the cycle; it is made if missing.

        A scenario or a simulation writes nothing; what must be known in the next cycle of this
        process is in ``memory``.
        """

    def mark_scheduled(self, jobs: Mask) -> None:
        """Set the condition Scheduled on the marked jobs (n,)."""

    @property
    def left_out(self) -> Mask:
        """Jobs (n,) that wait as in the last cycle; the conditions set on them then stand."""

    def mark_unschedulable(self, job: int, reason: str, message: str) -> None:
        """Set the condition Unschedulable on a job."""

    def warn(self, plugin: str, texts: Collection[str]) -> None:
        """Log what a plugin finds wrong with the cluster; each text once while it lasts."""

    def gang_message(self, job: Job) -> str:
        """Return how many tasks a gang lacks, and why, in Volcano's words."""


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """Measured load of all nodes, in the order of the node table."""

    percent: Column
    """Cpu and memory in use, 0 to 100 (2, N); 0 where nothing was measured."""
    measured_at: Column
    """When, in seconds; minus infinity for never (N,)."""

    @property
    def known(self) -> Mask:
        """Nodes that were measured at all (N,)."""
        return self.measured_at > -np.inf

    def fresh(self, now: float, longest: float) -> Mask:
        """Mark nodes measured at most the given seconds ago (N,)."""
        return now - self.measured_at <= longest


def node_load(ssn: PluginSession) -> NodeLoad:
    """Lay the measurements of a session out along the node axis."""
    nodes = ssn.snapshot.nodes
    percent = np.zeros((MEMORY + 1, nodes.n))
    measured_at = np.full(nodes.n, -np.inf)
    for name, facts in ssn.node_usage.items():
        row = nodes.row_of.get(name)
        if row is not None:
            percent[CPU, row] = facts.get("cpu", 0.0)
            percent[MEMORY, row] = facts.get("memory", 0.0)
            measured_at[row] = facts.get("metricsTime", -np.inf)
    return NodeLoad(percent, measured_at)
