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
from pumice.framework.condition_messages import gang_message
from pumice.framework.dispatch import Enabled, Hooks
from pumice.framework.job_placement import JobMemory
from pumice.framework.ordering import Ordering
from pumice.framework.placing import Placing
from pumice.framework.plugin import Plugin
from pumice.framework.policy import Policy
from pumice.framework.records import Records
from pumice.framework.statement import Statement
from pumice.framework.topology.job_topology import Topology


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
        self.tiers = [list(tier) for tier in tiers]
        self.total = snapshot.total()
        self.topology = Topology(snapshot)
        self.topology.open()
        entries = [entry for tier in self.tiers for entry in tier]
        for position, entry in enumerate(entries):
            entry.plugin.position = position
            entry.plugin.hierarchy = entry.switches.get("enableHierarchy", False)
        self.hooks = Hooks(self.tiers)
        self.failures = self.hooks.failures
        self.plugins = self.hooks.plugins
        self.policy = Policy(snapshot, self.topology, self.hooks)
        self._plugged = plugged
        self._call_all(Plugin.on_open, "OnSessionOpen")
        self.ordering = Ordering(snapshot, self.hooks)
        self.placing = placing(snapshot, self.hooks, seed)

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
            if not self.policy.job_valid(job) and self.policy.job_starving(job):
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

    def drop_annotations(self, task: int) -> None:
        """Forget what to write on a task's pod."""
        self.journal.put(self.annotations, task, {})

    def sort_tasks(self, rows: Iterable[int]) -> list[int]:
        """Order tasks once."""
        return self.ordering.sort_tasks(rows)

    def mark_scheduled(self, jobs: Mask) -> None:
        """Set the condition Scheduled on the marked jobs (n,)."""
        self.scheduled |= jobs

    def mark_unschedulable(self, job: int, reason: str, message: str) -> None:
        """Set the condition Unschedulable on a job."""
        self.unschedulable.add(job)
        self.conditions[job] = ("Unschedulable", "True", reason, message)

    def gang_message(self, job: Job) -> str:
        """Return how many tasks a gang lacks, and why, in Volcano's words."""
        return gang_message(self, job)

    def hand_over(self, intent: Intent) -> None:
        """Append to what the cluster will be asked for."""
        self.intents.append(intent)

    def close(self) -> None:
        """Let plugins look at the outcome."""
        self._call_all(Plugin.on_close, "OnSessionClose")

    def _call_all(self, hook: Callable[..., None], when: str) -> None:
        """Let each plugin in turn do something, and whoever wants to know that it is done."""
        plugged = self._plugged
        if plugged is not None:
            plugged("", when)
        for plugin, ask in self.hooks.bound(hook):
            ask(self)
            if plugged is not None:
                plugged(plugin.name, when)
