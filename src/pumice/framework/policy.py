"""What the plugins of a session say together, asked by row."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pumice.core.resources import Column
from pumice.core.snapshot import Snapshot
from pumice.core.views import Job, Queue, Task
from pumice.framework.combining import Ask
from pumice.framework.dispatch import Hooks
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Verdict
from pumice.framework.topology.domains import Domain
from pumice.framework.topology.job_topology import Topology
from pumice.framework.topology.subgroups import SubGroup


class Policy:
    """The combined hooks that actions, placing and evictions ask."""

    def __init__(self, snapshot: Snapshot, topology: Topology, hooks: Hooks) -> None:
        self._snapshot = snapshot
        self._topology = topology
        self._job_valid = hooks[Plugin.job_valid]
        self._job_enqueueable = hooks.votes(Plugin.job_enqueueable)
        self._on_enqueued = hooks[Plugin.on_enqueued]
        self._job_ready = hooks[Plugin.job_ready]
        self._job_pipelined = hooks.votes(Plugin.job_pipelined)
        self._job_starving = hooks[Plugin.job_starving]
        self._subgroup_ready = hooks[Plugin.subgroup_ready]
        self._subgroup_pipelined = hooks.votes(Plugin.subgroup_pipelined)
        self._order_subgroups = hooks[Plugin.order_subgroups]
        self._overused = hooks[Plugin.overused]
        self._allocatable = hooks[Plugin.allocatable]
        self._preemptive = hooks[Plugin.preemptive]
        self._domain_levels = hooks[Plugin.domain_levels]
        answering = [plugin for plugin, _ in hooks.bound(Plugin.domain_levels)]
        self._has_domain_levels = bool(answering)
        self._levels_within: Ask = lambda *_: None
        if answering:  # the first one decides
            self._levels_within = hooks.ask_aside(answering[0], Plugin.levels_within)
        self._score_domains = hooks.sums(Plugin.score_domains)
        self._rank_domains = hooks.sums(Plugin.rank_domains)
        self.filter_task = hooks[Plugin.filter_task]
        self.preemptable = hooks.chosen(Plugin.preemptable)
        self.reclaimable = hooks.chosen(Plugin.reclaimable)
        self.gang_evictable = hooks.chosen(Plugin.gang_evictable)
        self.victims = hooks[Plugin.victims]
        self.on_place = hooks[Plugin.on_place]
        self.on_evict = hooks[Plugin.on_evict]
        self.follows_placements = bool(hooks.tiers(Plugin.on_place))
        """Whether some plugin must be told of each placement by itself."""
        self.by_row = not self.follows_placements and all(each.by_row for each in hooks.plugins)
        """Whether answers about nodes follow from their rows alone."""

    # Jobs

    def job_valid(self, job: int) -> str:
        """Return why a job cannot be scheduled at all; empty if it can."""
        return self._job_valid(Job(self._snapshot, job))

    def job_enqueueable(self, job: int) -> Verdict:
        """Return whether a pending job may enter its queue."""
        return self._job_enqueueable(Job(self._snapshot, job))

    def job_enqueued(self, job: int) -> None:
        """Tell plugins that a job was admitted."""
        self._on_enqueued(Job(self._snapshot, job))

    def job_ready(self, job: int) -> Verdict:
        """Return whether a job has enough to start."""
        return self._job_ready(Job(self._snapshot, job))

    def job_pipelined(self, job: int) -> Verdict:
        """Return whether a job keeps its place while it waits."""
        return self._job_pipelined(Job(self._snapshot, job))

    def job_starving(self, job: int) -> bool:
        """Return whether a job may evict others."""
        return self._job_starving(Job(self._snapshot, job))

    # Parts of a job

    def subgroup_ready(self, part: SubGroup) -> Verdict:
        """Return whether a part of a job has enough to start; without parts, ask for the job."""
        if not self._topology.has_policy(part.job):
            return self.job_ready(part.job)
        return self._subgroup_ready(part)

    def subgroup_pipelined(self, part: SubGroup) -> Verdict:
        """Return whether a part of a job keeps its place while it waits."""
        if not self._topology.has_policy(part.job):
            return self.job_pipelined(part.job)
        return self._subgroup_pipelined(part)

    def compare_subgroups(self, left: SubGroup, right: SubGroup) -> int:
        """Compare parts of a job: negative if the left one goes first."""
        order = self._order_subgroups(left, right)
        if order:
            return -1 if order < 0 else 1
        ties = [(part.match_index, part.id) for part in (left, right)]
        return (ties[0] > ties[1]) - (ties[0] < ties[1])

    # Queues

    def overused(self, queue: int) -> bool:
        """Return whether a queue must wait."""
        return self._overused(Queue(self._snapshot, queue))

    def allocatable(self, queue: int, task: Task) -> Verdict:
        """Return whether a queue may take one more task."""
        return self._allocatable(Queue(self._snapshot, queue), task)

    @contextmanager
    def queue_limits_lifted(self) -> Iterator[None]:
        """Let every queue take every task meanwhile, for those who ask about nodes alone."""
        asked, self._allocatable = self._allocatable, lambda *_: True
        try:
            yield
        finally:
            self._allocatable = asked

    def preemptive(self, queue: int, request: Column) -> Verdict:
        """Return whether a queue may reclaim for a request (R,)."""
        return self._preemptive(Queue(self._snapshot, queue), request)

    # Network domains

    def domain_levels(
        self, part: SubGroup | Job, within: Domain, purpose: str
    ) -> list[list[Domain]]:
        """List the network domains to try for a job or a part of it, level by level."""
        if not self._has_domain_levels:
            return [[within]]
        return self._domain_levels(part, within, purpose)

    def levels_within(self, part: SubGroup, domains: list[Domain]) -> list[list[list[Domain]]]:
        """List the domains to try for a part of a job within each of some domains."""
        found: list[list[list[Domain]]] | None = self._levels_within(part, domains)
        if found is not None:
            return found
        return [self.domain_levels(part, domain, "allocate") for domain in domains]

    def score_domains(self, part: SubGroup, domains: list[Domain]) -> Column:
        """Score network domains for a part of a job, each by itself."""
        return np.asarray(self._score_domains(np.zeros(len(domains)), part, domains))

    def rank_domains(self, part: SubGroup, domains: list[Domain]) -> Column:
        """Score network domains further that have the same best score."""
        return np.asarray(self._rank_domains(np.zeros(len(domains)), part, domains))
