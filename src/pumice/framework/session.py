"""One scheduling cycle over a snapshot: hooks bound at open, answers combined, outcome at close.

Actions ask the session; the session asks the plugins by the rules in ``hooks``.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from pumice.api.intents import Annotate, Bind, Intent
from pumice.core.resources import Column, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.status import PHASE_CODE, Status
from pumice.core.views import Job, Nodes, Queue, Task
from pumice.framework.dispatch import Enabled, Failures, bind_hooks
from pumice.framework.eviction.bundles import GangEviction
from pumice.framework.job_placement import JobMemory
from pumice.framework.ordering import Heap, Ordering
from pumice.framework.placing import Placing
from pumice.framework.plugin import PERMIT, REJECT, Plugin, Reason
from pumice.framework.records import Records
from pumice.framework.statement import Statement
from pumice.framework.topology.domains import Domain
from pumice.framework.topology.job_topology import Topology
from pumice.framework.topology.subgroups import SubGroup


class Session:
    """What actions and plugins share while a cycle is decided.

    The snapshot is changed only through statements, so closing the session can put every cell back.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        tiers: Iterable[Iterable[Enabled]],
        *,
        now: float = 0.0,
        seed: int = 0,
        actions: tuple[str, ...] = (),
        action_arguments: dict[str, Any] | None = None,
        memory: dict[str, Any] | None = None,
        node_usage: dict[str, Any] | None = None,
        metrics: Mapping[str, str] | None = None,
        services: Mapping[str, Any] | None = None,
        placing: type[Placing] = Placing,
        plugged: Callable[[str, str], None] | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.journal = snapshot.journal
        self.now = now
        self.seed = seed
        self.actions = actions
        self.action_arguments = action_arguments or {}
        self.memory = {} if memory is None else memory
        """What a plugin wants to find again in the next cycle, under its own name."""
        self.node_usage = node_usage or {}
        self.metrics = metrics or {}
        """The section ``metrics`` of the configuration: where measurements come from, how often."""
        self.services = services or {}
        """Ways to other programs that plugins may ask for, by name."""
        self.intents: list[Intent] = []
        self.annotations: dict[int, Mapping[str, str]] = {}
        self.nominations: dict[int, int] = {}
        self.job_memory: dict[int, JobMemory] = {}
        """What allocate remembers of jobs, also if it runs again."""
        self.unschedulable: set[int] = set()
        """Jobs whose condition says in this cycle that they cannot start."""
        self.scheduled: Mask = np.zeros(len(snapshot.jobs.phase), dtype=bool)
        """Jobs whose condition says in this cycle that they can."""
        self.conditions: dict[int, tuple[str, str, str, str]] = {}
        """Job to a new condition: type, status, reason, message."""
        self.records = Records(snapshot)
        self.failures = Failures()
        self.tiers = [list(tier) for tier in tiers]
        self.total = snapshot.total()
        self.topology = Topology(snapshot)
        self.topology.open()
        entries = [entry for tier in self.tiers for entry in tier]
        for position, entry in enumerate(entries):
            entry.plugin.position = position
            entry.plugin.hierarchy = entry.switches.get("enableHierarchy", False)
        self.plugins: list[Plugin] = [entry.plugin for entry in entries]
        self.hooks = bind_hooks(self.tiers, self.failures)
        self.placing = placing(self)
        self._plugged = plugged
        self._call_all("on_open", "OnSessionOpen")
        self.ordering = Ordering(snapshot, self.hooks)
        self.placing.bind()

    def has_plugin(self, name: str) -> bool:
        """Say whether a plugin is configured."""
        return any(plugin.name == name for plugin in self.plugins)

    def add_node_column(self, name: str, fill: float = 0.0) -> Column:
        """Give a plugin a node column of its own (N,); write it through ``journal.save``."""
        column = np.full(self.snapshot.nodes.n, fill)
        setattr(self.snapshot.nodes, name, column)
        return column

    def task(self, row: int) -> Task:
        """Give one task."""
        return Task(self.snapshot, row)

    def job(self, row: int) -> Job:
        """Give one job."""
        return Job(self.snapshot, row)

    def queue(self, row: int) -> Queue:
        """Give one queue."""
        return Queue(self.snapshot, row)

    def nodes(self) -> Nodes:
        """Give all nodes."""
        return Nodes(self.snapshot)

    def statement(self) -> Statement:
        """Open a statement."""
        return Statement(self)

    # Jobs a session knows, and their tasks

    def jobs(self) -> list[int]:
        """List the jobs of this session: those whose pod group and queue exist."""
        return np.flatnonzero(self.snapshot.jobs.listed).tolist()

    def pending_jobs(self) -> list[int]:
        """List jobs that still wait to be admitted to their queue."""
        jobs = self.snapshot.jobs
        found: list[int] = np.flatnonzero(jobs.listed & ~self._admitted()).tolist()
        return found

    def waiting_jobs(self) -> list[int]:
        """List jobs that were admitted to their queue and have pending tasks, or too few tasks."""
        jobs = self.snapshot.jobs
        return self.admitted_jobs(
            (jobs.counts[Status.PENDING] > 0) | (jobs.n_tasks < jobs.min_member)
        )

    def admitted_jobs(self, marked: Mask) -> list[int]:
        """List those of the marked jobs (n,) that were admitted to their queue."""
        found: list[int] = np.flatnonzero(
            self.snapshot.jobs.listed & self._admitted() & marked
        ).tolist()
        return found

    def starving_jobs(self) -> dict[int, list[int]]:
        """List, by queue, the valid jobs that may evict others."""
        starving: dict[int, list[int]] = {}
        for job in self.waiting_jobs():
            if not self.job_valid(job) and self.job_starving(job):
                starving.setdefault(int(self.snapshot.jobs.queue[job]), []).append(job)
        return starving

    def _admitted(self) -> Mask:
        phase = self.snapshot.jobs.phase
        return np.asarray((phase != PHASE_CODE[""]) & (phase != PHASE_CODE["Pending"]))

    def is_pending(self, job: int) -> bool:
        """Say whether a job still waits to be admitted to its queue."""
        return int(self.snapshot.jobs.phase[job]) in (PHASE_CODE[""], PHASE_CODE["Pending"])

    def set_phase(self, job: int, phase: str) -> None:
        """Change a job's phase for this session."""
        self.journal.save(self.snapshot.jobs.phase, job)
        self.snapshot.jobs.phase[job] = PHASE_CODE[phase]

    def pending_tasks(self, job: int) -> list[int]:
        """List a job's pending tasks that no scheduling gate holds back."""
        tasks = self.snapshot.tasks
        rows = np.asarray(self.snapshot.jobs.tasks[job], dtype=np.intp)
        return rows[(tasks.status[rows] == Status.PENDING) & ~tasks.gated[rows]].tolist()

    # Answers of plugins, combined

    def job_valid(self, job: int) -> str:
        """Say why a job cannot be scheduled at all; empty if it can."""
        view = Job(self.snapshot, job)
        for tier in self.hooks["job_valid"]:
            for method in tier:
                problem: str = method(view)
                if problem:
                    return problem
        return ""

    def job_ready(self, job: int) -> bool:
        """Say whether a job has enough to start."""
        return self._all("job_ready", Job(self.snapshot, job))

    def job_pipelined(self, job: int) -> bool:
        """Say whether a job keeps its place while it waits."""
        return self._vote("job_pipelined", Job(self.snapshot, job))

    def subgroup_ready(self, part: SubGroup) -> bool:
        """Say whether a part of a job has enough to start; a part that is the whole job is it."""
        if not self.topology.has_policy(part.job):
            return self.job_ready(part.job)
        return self._all("subgroup_ready", part)

    def subgroup_pipelined(self, part: SubGroup) -> bool:
        """Say whether a part of a job keeps its place while it waits."""
        if not self.topology.has_policy(part.job):
            return self.job_pipelined(part.job)
        return self._vote("subgroup_pipelined", part)

    def compare_subgroups(self, left: SubGroup, right: SubGroup) -> int:
        """Compare parts of a job: negative if the left one goes first."""
        for tier in self.hooks["order_subgroups"]:
            for method in tier:
                order: float = method(left, right)
                if order:
                    return -1 if order < 0 else 1
        ties = [(part.match_index, part.id) for part in (left, right)]
        return (ties[0] > ties[1]) - (ties[0] < ties[1])

    def domain_levels(
        self, part: SubGroup | Job, within: Domain, purpose: str
    ) -> list[list[Domain]]:
        """List the network domains to try for a job or a part of it, level by level."""
        for tier in self.hooks["domain_levels"]:
            for method in tier:
                levels: list[list[Domain]] | None = method(part, within, purpose)
                return [] if levels is None else levels
        return [[within]]

    def score_domains(self, part: SubGroup, domains: list[Domain]) -> Column:
        """Score network domains for a part of a job, each by itself."""
        return self._sum_domains("score_domains", part, domains)

    def rank_domains(self, part: SubGroup, domains: list[Domain]) -> Column:
        """Score network domains further that have the same best score."""
        return self._sum_domains("rank_domains", part, domains)

    def _sum_domains(self, hook: str, part: SubGroup, domains: list[Domain]) -> Column:
        scores = np.zeros(len(domains))
        for tier in self.hooks[hook]:
            for method in tier:
                column = method(part, domains)
                if column is not None:
                    scores = scores + column
        return scores

    def job_enqueueable(self, job: int) -> bool:
        """Say whether a pending job may enter its queue."""
        return self._vote("job_enqueueable", Job(self.snapshot, job))

    def job_enqueued(self, job: int) -> None:
        """Tell plugins that a job was admitted."""
        for tier in self.hooks["on_enqueued"]:
            for method in tier:
                method(Job(self.snapshot, job))

    def job_starving(self, job: int) -> bool:
        """Say whether a job may evict others."""
        view = Job(self.snapshot, job)
        for tier in self.hooks["job_starving"]:
            return all(method(view) for method in tier)
        return False

    def overused(self, queue: int) -> bool:
        """Say whether a queue must wait."""
        view = Queue(self.snapshot, queue)
        return any(method(view) for tier in self.hooks["overused"] for method in tier)

    def allocatable(self, queue: int, task: Task) -> bool:
        """Say whether a queue may take one more task."""
        return self._all("allocatable", Queue(self.snapshot, queue), task)

    def preemptive(self, queue: int, request: Column) -> bool:
        """Say whether a queue may reclaim for a request (R,)."""
        return self._all("preemptive", Queue(self.snapshot, queue), request)

    def filter_task(self, task: Task) -> Reason | None:
        """Say why no node at all can take a task."""
        for tier in self.hooks["filter_task"]:
            for method in tier:
                reason: Reason | None = method(task)
                if reason is not None:
                    return reason
        return None

    def preemptable(self, preemptor: Task, candidates: list[int]) -> list[int]:
        """Give the tasks that may go for a task of their own queue."""
        return self._intersect("preemptable", preemptor, candidates)

    def reclaimable(self, reclaimer: Task, candidates: list[int]) -> list[int]:
        """Give the tasks that may go for a task of another queue."""
        return self._intersect("reclaimable", reclaimer, candidates)

    def gang_evictable(self, eviction: GangEviction, candidates: list[int]) -> list[int]:
        """Give the tasks that may go for a whole job."""
        return self._intersect("gang_evictable", eviction, candidates)

    def victims(self, running: list[int]) -> list[int]:
        """Give the tasks that policies want evicted, each once."""
        for tier in self.hooks["victims"]:
            found: dict[int, None] = {}
            for method in tier:
                found.update(dict.fromkeys(method(running)))
            if found:
                return list(found)
        return []

    def _all(self, hook: str, *args: Any) -> bool:
        for tier in self.hooks[hook]:
            for method in tier:
                if not method(*args):
                    return False
        return True

    def _vote(self, hook: str, *args: Any) -> bool:
        for tier in self.hooks[hook]:
            permitted = False
            for method in tier:
                vote = method(*args)
                if vote <= REJECT:
                    return False
                permitted = permitted or vote >= PERMIT
            if permitted:
                return True
        return True

    def _intersect(self, hook: str, asker: Any, candidates: list[int]) -> list[int]:
        """Intersect answers within a tier; the first tier that leaves victims decides.

        Volcano: an intersection that runs empty is forgotten, and the next plugin of the tier
        starts afresh; only an empty answer ends a tier.
        """
        for tier in self.hooks[hook]:
            kept: Mask | None = None
            for method in tier:
                answer = method(asker, candidates)
                if answer is None:
                    continue
                mask = np.asarray(answer, dtype=bool)
                if not mask.any():
                    kept = None
                    break
                kept = mask if kept is None else kept & mask
                if not kept.any():
                    kept = None
            if kept is not None:
                return [row for row, keep in zip(candidates, kept.tolist(), strict=True) if keep]
        return []

    # Order

    def queue_heap(self, rows: Iterable[int] = (), *, live: bool = False) -> Heap:
        """Hold queues, best first."""
        return Heap(self.ordering.queue_keys, rows, live=live)

    def job_heap(self, rows: Iterable[int] = (), *, live: bool = False) -> Heap:
        """Hold jobs, best first."""
        return Heap(self.ordering.job_keys, rows, live=live)

    # Outcome

    def bind(self, tasks: list[int]) -> None:
        """Hand placed tasks of one job to the binder."""
        snapshot = self.snapshot
        rows = np.asarray(tasks, dtype=np.intp)
        snapshot.set_status(rows, Status.BINDING)
        keys, names = snapshot.tasks.keys, snapshot.nodes.names
        for task, node in zip(tasks, snapshot.tasks.node[rows].tolist(), strict=True):
            if self.annotations.get(task):
                self.hand_over(Annotate(keys[task], self.annotations[task]))
            self.hand_over(Bind(keys[task], names[node]))

    def annotate(self, task: int, annotations: Mapping[str, str]) -> None:
        """Note what to write on a task's pod when it is bound; a rollback takes it back."""
        known = self.annotations.get(task, {})
        self.journal.put(self.annotations, task, {**known, **annotations})

    def hand_over(self, intent: Intent) -> None:
        """Append to what the cluster will be asked for."""
        self.intents.append(intent)

    def close(self) -> None:
        """Let plugins look at the outcome."""
        self._call_all("on_close", "OnSessionClose")

    def _call_all(self, hook: str, when: str) -> None:
        """Let each plugin in turn do something, and whoever wants to know that it is done."""
        plugged = self._plugged
        if plugged is not None:
            plugged("", when)
        for tier in self.hooks[hook]:
            for method in tier:
                method(self)
                if plugged is not None:
                    plugged(method.plugin.name, when)  # type: ignore[attr-defined]
