"""The common state of everything that decides in a session: the snapshot and answers about it.

From the bottom up: hooks and topology, then policy, ordering and placing, then this; statements,
placements, evictions and the search over domains take it, and the session is made of it.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from pumice.api.decisions import (
    Annotate,
    Bind,
    BindVolumes,
    ClaimChoice,
    Evict,
    Intent,
    LockNode,
    Reserve,
)
from pumice.api.devices import ClaimReservation
from pumice.core.resources import Mask
from pumice.core.snapshot import Snapshot
from pumice.core.status import PENDING, PHASE_CODE, Status
from pumice.core.views import Job, Queue, Task
from pumice.framework.dispatch import Enabled, Hooks, Policy
from pumice.framework.hooks import Ask
from pumice.framework.ordering import Ordering
from pumice.framework.placing import MakePlacing, Placing
from pumice.framework.plugin import Plugin
from pumice.framework.queue_limits.limits import QueueGates
from pumice.framework.refusals import Records
from pumice.framework.topology.domains import Topology


class StandingWarnings:
    """What plugins have warned of.

    Answers try many variants of one cluster: for them it forgets nothing, so that what stands in
    most of the variants is not logged for each of them.
    """

    def __init__(self, *, forgets: bool = True) -> None:
        self._forgets = forgets
        self._logged: dict[str, set[str]] = {}

    def report(self, plugin: str, texts: Collection[str]) -> None:
        """Log what a plugin finds wrong in a cycle, except what was logged before."""
        logged = self._logged.setdefault(plugin, set())
        for text in texts:
            if text not in logged:
                logging.getLogger(f"pumice.plugins.{plugin}").warning("%s: %s", plugin, text)
        if self._forgets:
            logged.intersection_update(texts)
        logged.update(texts)


class ProcessMemory(msgspec.Struct):
    """Outlives a reload of the configuration; a new process starts with an empty one."""

    plugins: dict[str, Any] = msgspec.field(default_factory=dict)
    """State of plugins, under their names."""
    started_at: float | None = None
    """When the process began to schedule a live cluster; None if nothing runs between cycles."""
    warnings: StandingWarnings = msgspec.field(default_factory=StandingWarnings)
    """What plugins have warned of."""


_UNSTATED, _PENDING = PHASE_CODE[""], PHASE_CODE["Pending"]
_FEW = 8
"""Number of rows below which plain lists are faster than columns."""


class Intents:
    """Committed binds and evictions, and what is written with them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.made: list[Intent] = []
        """In the order in which they were decided."""
        self.annotations: dict[int, Mapping[str, str]] = {}
        """Task to what is written on its pod when it is bound."""
        self.reservations: dict[int, tuple[ClaimReservation, ...]] = {}
        """Task to the resource claims that must be its own before it is bound."""
        self.node_locks: dict[int, tuple[str, ...]] = {}
        """Task to the annotations that lock its node before it is bound."""
        self.released_claims: list[str] = []
        """Resource claims whose devices are not needed any more."""
        self.stored: dict[str, dict[str, str]] = {}
        """ConfigMap to what plugins keep in it."""
        self.nominations: dict[int, int] = {}
        """Task to the node where evictions make room for it; -1 if no longer."""

    def bind(self, tasks: list[int]) -> None:
        """Bind placed tasks of one job."""
        rows = np.asarray(tasks, dtype=np.intp)
        self._snapshot.set_status(rows, Status.BINDING)
        self.announce(tasks, self._snapshot.tasks.node[rows].tolist())

    def announce(self, tasks: list[int], nodes: list[int]) -> None:
        """Bind tasks that already have the status of being bound."""
        keys, names = self._snapshot.tasks.keys, self._snapshot.nodes.names
        for task, node in zip(tasks, nodes, strict=True):
            if self.annotations.get(task):
                self.made.append(Annotate(keys[task], self.annotations[task]))
            if self.reservations.get(task):
                self.made.append(Reserve(keys[task], self.reservations[task]))
            if self.node_locks.get(task):
                self.made.append(LockNode(keys[task], self.node_locks[task]))
            self.made.append(Bind(keys[task], names[node]))

    def evict(self, evictions: Iterable[Evict]) -> None:
        """Evict pods."""
        self.made.extend(evictions)

    def annotate(self, task: int, annotations: Mapping[str, str]) -> None:
        """Add to what is written on a task's pod when it is bound; a rollback undoes it."""
        known = self.annotations.get(task, {})
        self._snapshot.journal.put(self.annotations, task, {**known, **annotations})

    def drop_annotations(self, task: int) -> None:
        """Write nothing on a task's pod in the end, and lock no node for it."""
        self._snapshot.journal.put(self.annotations, task, {})
        if task in self.node_locks:
            self._snapshot.journal.put(self.node_locks, task, ())

    def lock_node(self, task: int, lock: str) -> None:
        """Lock the node of a task by an annotation before it is bound."""
        known = self.node_locks.get(task, ())
        self._snapshot.journal.put(self.node_locks, task, (*known, lock))

    def reserve(self, task: int, claims: tuple[ClaimReservation, ...]) -> None:
        """Reserve resource claims for a task when it is bound; a rollback undoes it."""
        self._snapshot.journal.put(self.reservations, task, claims)

    def bind_volumes(self, task: int, choices: Sequence[ClaimChoice], timeout_s: float) -> None:
        """Bind the claims of a pod before the pod, which is to be bound already."""
        self.made.append(BindVolumes(self._snapshot.tasks.keys[task], tuple(choices), timeout_s))

    def nominate(self, task: int, node: int) -> None:
        """Record that evictions make room for a task on a node."""
        self._snapshot.journal.put(self.nominations, task, node)

    def drop_nomination(self, task: int) -> None:
        """Record that a task no longer waits for its node."""
        if task in self.nominations:
            self._snapshot.journal.put(self.nominations, task, -1)


class SessionState:
    """The tables, the hooks about them, and the decisions so far.

    The snapshot is changed only through statements, so that closing can restore every cell.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        tiers: Iterable[Iterable[Enabled]],
        *,
        seed: int,
        hooks: Hooks | None,
        placing: MakePlacing,
        gates: QueueGates,
    ) -> None:
        self.snapshot = snapshot
        self.journal = snapshot.journal
        self.hooks = hooks or Hooks(tiers)
        self.topology = Topology(snapshot)
        self.topology.open()
        self.policy = Policy(snapshot, self.topology, self.hooks)
        self.records = Records(snapshot)
        self.records.compare = self.refusal_numbers
        self.intents = Intents(snapshot)
        self.fit_errors: dict[tuple[int, int], str] | None = None
        """Texts about jobs, by job and length of the journal; None while actions add reasons."""
        self.queue_gates = gates
        self.considered: Mask | None = None
        """The jobs that actions take (n,), where an answer is about some of them; None: all."""
        self.left_out: Mask = np.zeros(len(snapshot.jobs.phase), dtype=bool)
        """Jobs that are not tried: what is known of them from the last cycle stands (n,)."""
        self.known_refused: Mask | None = None
        """Valid jobs of which nothing is left to write while they are refused (n,)."""
        self._seed = seed
        self.actions: tuple[str, ...] = ()
        self.total = snapshot.total()
        self._placing = placing

    @cached_property
    def ordering(self) -> Ordering:
        """The order of queues, jobs and tasks; made on first use, once all plugins have opened."""
        return Ordering(self.snapshot, self.hooks)

    @cached_property
    def placing(self) -> Placing:
        """The choice of nodes; made on first use, once all plugins have opened."""
        return self._placing(self.snapshot, self.hooks, self._seed)

    def refusal_numbers(self, task: Task) -> dict[str, Any]:
        """Return the numbers that plugins compared when a task found no node."""
        found: dict[str, Any] = {}
        for ask in self._comparing:
            found |= ask(task) or {}
        return found

    @cached_property
    def _comparing(self) -> list[Ask]:
        """The plugins that state numbers for a task that found no node."""
        return [
            self.hooks.ask_aside(plugin, Plugin.refusal_numbers)
            for plugin in self.hooks.plugins
            if type(plugin).refusal_numbers is not Plugin.refusal_numbers
        ]

    def task(self, row: int) -> Task:
        """Return one task."""
        return Task(self.snapshot, row)

    def job(self, row: int) -> Job:
        """Return one job."""
        return Job(self.snapshot, row)

    def queue(self, row: int) -> Queue:
        """Return one queue."""
        return Queue(self.snapshot, row)

    def know_refused(self) -> None:
        """Note before actions run that what is stated of jobs that wait stands if they do."""
        jobs = self.snapshot.jobs
        waits = self._admitted() & (jobs.counts[PENDING] == jobs.n_tasks)
        known = jobs.listed & waits & (jobs.phase == jobs.stated_phase)
        for row in np.flatnonzero(known).tolist():
            known[row] = not self.policy.job_valid(row)
        self.known_refused = known

    # Jobs a session knows, and their tasks

    def jobs(self) -> list[int]:
        """List the jobs of this session: those whose pod group and queue exist."""
        return self.snapshot.jobs.listed.nonzero()[0].tolist()

    def pending_jobs(self) -> list[int]:
        """List jobs that still wait to be admitted to their queue."""
        return self._taken(~self._admitted())

    def waiting_jobs(self) -> list[int]:
        """List jobs that were admitted to their queue and have pending tasks, or too few tasks."""
        jobs = self.snapshot.jobs
        return self.admitted_jobs((jobs.counts[PENDING] > 0) | (jobs.n_tasks < jobs.min_member))

    def admitted_jobs(self, marked: Mask) -> list[int]:
        """List those of the marked jobs (n,) that were admitted to their queue."""
        return self._taken(self._admitted() & marked)

    def _taken(self, marked: Mask) -> list[int]:
        """List those of the marked jobs (n,) that actions take."""
        found = self.snapshot.jobs.listed & marked
        if self.considered is not None:
            found &= self.considered
        return found.nonzero()[0].tolist()

    def starving_jobs(self) -> dict[int, list[int]]:
        """List, by queue, the valid jobs that may evict others."""
        starving: dict[int, list[int]] = {}
        for job in self.waiting_jobs():
            if not self.policy.job_valid(job) and self.policy.job_starving(job):
                starving.setdefault(int(self.snapshot.jobs.queue[job]), []).append(job)
        return starving

    def queues_with_jobs(self, known: Iterable[int]) -> list[int]:
        """List the queues that have an admitted, valid job; it is certain that ``known`` ones do.

        Volcano: queues without a starving job are in the same heap, and so they change the order
        in which the others leave it.
        """
        found, jobs = dict.fromkeys(known), self.snapshot.jobs
        if not found:
            return []
        for job in self.admitted_jobs(np.isin(jobs.queue, [*found], invert=True)):
            queue = int(jobs.queue[job])
            if queue not in found and not self.policy.job_valid(job):
                found[queue] = None
        return [*found]

    def _admitted(self) -> Mask:
        phase = self.snapshot.jobs.phase
        return np.asarray((phase != _UNSTATED) & (phase != _PENDING))

    def is_pending(self, job: int) -> bool:
        """Return whether a job still waits to be admitted to its queue."""
        return int(self.snapshot.jobs.phase[job]) in (_UNSTATED, _PENDING)

    def set_phase(self, job: int, phase: str) -> None:
        """Change a job's phase for this session."""
        self.journal.save(self.snapshot.jobs.phase, job)
        self.snapshot.jobs.phase[job] = PHASE_CODE[phase]

    def pending_tasks(self, job: int) -> list[int]:
        """List a job's pending tasks that no scheduling gate holds back."""
        tasks, rows = self.snapshot.tasks, self.snapshot.jobs.tasks[job]
        if len(rows) < _FEW:
            status, gated = tasks.status, tasks.gated
            return [row for row in rows if status[row] == PENDING and not gated[row]]
        several = np.asarray(rows, dtype=np.intp)
        return several[(tasks.status[several] == PENDING) & ~tasks.gated[several]].tolist()

    def tasks_to_allocate(self, job: int) -> list[int]:
        """List a job's pending tasks with requests, and all that a queue gate holds back."""
        best_effort, held = self.snapshot.tasks.best_effort, self.queue_gates.held
        rows = [row for row in self.pending_tasks(job) if not best_effort[row]]
        if held:
            rows += [row for row in self.snapshot.jobs.tasks[job] if row in held]
        return rows
