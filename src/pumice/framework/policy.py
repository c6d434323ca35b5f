"""The combined answers of a session's plugins, by row."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Generic, ParamSpec, TypeVar

import numpy as np

from pumice.core.resources import Column
from pumice.core.snapshot import Snapshot
from pumice.core.views import Job, Queue, Task
from pumice.framework.dispatch import Hooks
from pumice.framework.hooks import Ask
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Verdict
from pumice.framework.topology.domains import Domain, SubGroup, Topology

P = ParamSpec("P")
A = TypeVar("A")


class _Combined(Generic[P, A]):
    """A combined hook of a policy, bound on first use: most cycles use few."""

    def __init__(self, bind: Callable[[Hooks], Callable[P, A]]) -> None:
        self._bind = bind

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, policy: "Policy", owner: type) -> Callable[P, A]:
        ask = vars(policy)[self._name] = self._bind(policy.hooks)
        return ask


def _aside_of_first(hooks: Hooks) -> Ask:
    """Return the question for many domains at once, to the plugin whose levels count."""
    for plugin, _ in hooks.bound(Plugin.domain_levels):
        return hooks.ask_aside(plugin, Plugin.levels_within)
    return lambda *_: None


class Policy:
    """The combined hooks that actions, placing and evictions ask."""

    _job_valid = _Combined(lambda hooks: hooks[Plugin.job_valid])
    _job_enqueueable = _Combined(lambda hooks: hooks.votes(Plugin.job_enqueueable))
    _on_enqueued = _Combined(lambda hooks: hooks[Plugin.on_enqueued])
    _job_ready = _Combined(lambda hooks: hooks[Plugin.job_ready])
    _may_try = _Combined(lambda hooks: hooks[Plugin.may_try])
    _may_start = _Combined(lambda hooks: hooks[Plugin.may_start])
    _on_blocked = _Combined(lambda hooks: hooks[Plugin.on_blocked])
    _job_pipelined = _Combined(lambda hooks: hooks.votes(Plugin.job_pipelined))
    _job_starving = _Combined(lambda hooks: hooks[Plugin.job_starving])
    _subgroup_ready = _Combined(lambda hooks: hooks[Plugin.subgroup_ready])
    _subgroup_pipelined = _Combined(lambda hooks: hooks.votes(Plugin.subgroup_pipelined))
    _order_subgroups = _Combined(lambda hooks: hooks[Plugin.order_subgroups])
    _overused = _Combined(lambda hooks: hooks[Plugin.overused])
    _allocatable = _Combined(lambda hooks: hooks[Plugin.allocatable])
    _preemptive = _Combined(lambda hooks: hooks[Plugin.preemptive])
    _domain_levels = _Combined(lambda hooks: hooks[Plugin.domain_levels])
    _levels_within = _Combined(_aside_of_first)
    _score_domains = _Combined(lambda hooks: hooks.sums(Plugin.score_domains))
    _rank_domains = _Combined(lambda hooks: hooks.sums(Plugin.rank_domains))
    filter_task = _Combined(lambda hooks: hooks[Plugin.filter_task])
    preemptable = _Combined(lambda hooks: hooks.chosen(Plugin.preemptable))
    reclaimable = _Combined(lambda hooks: hooks.chosen(Plugin.reclaimable))
    gang_evictable = _Combined(lambda hooks: hooks.chosen(Plugin.gang_evictable))
    victims = _Combined(lambda hooks: hooks[Plugin.victims])
    on_place = _Combined(lambda hooks: hooks[Plugin.on_place])
    on_evict = _Combined(lambda hooks: hooks[Plugin.on_evict])

    def __init__(self, snapshot: Snapshot, topology: Topology, hooks: Hooks) -> None:
        self._snapshot = snapshot
        self._topology = topology
        self.hooks = hooks

    @cached_property
    def follows_placements(self) -> bool:
        """Whether some plugin must be notified of each placement by itself."""
        return bool(self.hooks.tiers(Plugin.on_place))

    @cached_property
    def imaginable(self) -> bool:
        """Whether queues and readiness may be asked about sums that do not exist yet.

        A plugin agrees to it by ``foreseeable``; any other reads what it likes of the session.
        """
        asked = (Plugin.allocatable, Plugin.job_ready, Plugin.subgroup_ready)
        return all(plugin.foreseeable for hook in asked for plugin, _ in self.hooks.bound(hook))

    # Jobs

    def job_valid(self, job: int) -> str:
        """Return why a job cannot be scheduled at all; empty if it can."""
        return self._job_valid(Job(self._snapshot, job))

    def job_enqueueable(self, job: int) -> Verdict:
        """Return whether a pending job is admitted to its queue."""
        if any(plugin.admits_all for plugin in self.hooks.plugins):
            return True
        return self._job_enqueueable(Job(self._snapshot, job))

    def job_enqueued(self, job: int) -> None:
        """Notify plugins that a job was admitted."""
        self._on_enqueued(Job(self._snapshot, job))

    def job_ready(self, job: int) -> Verdict:
        """Return whether a job has enough to start."""
        return self._job_ready(Job(self._snapshot, job))

    def job_pipelined(self, job: int) -> Verdict:
        """Return whether a job keeps its place while it waits."""
        return self._job_pipelined(Job(self._snapshot, job))

    def may_try(self, job: int) -> Verdict:
        """Return whether a job that is next is placed at all."""
        return self._may_try(Job(self._snapshot, job))

    def may_start(self, job: int) -> Verdict:
        """Return whether a job that has its places may start."""
        return self._may_start(Job(self._snapshot, job))

    def job_blocked(self, job: int) -> None:
        """Notify plugins that a job had its turn and does not start."""
        self._on_blocked(Job(self._snapshot, job))

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
        """Lift all queue limits temporarily, for questions about nodes alone."""
        asked, own = self._allocatable, vars(self)
        own["_allocatable"] = lambda *_: True
        try:
            yield
        finally:
            own["_allocatable"] = asked

    def preemptive(self, queue: int, request: Column) -> Verdict:
        """Return whether a queue may reclaim for a request (R,)."""
        return self._preemptive(Queue(self._snapshot, queue), request)

    # Network domains

    def domain_levels(
        self, part: SubGroup | Job, within: Domain, purpose: str
    ) -> list[list[Domain]]:
        """List the network domains to try for a job or a part of it, level by level."""
        if not self.hooks.tiers(Plugin.domain_levels):
            return [[within]]
        return self._domain_levels(part, within, purpose)

    def levels_within(
        self, part: SubGroup, domains: list[Domain], purpose: str
    ) -> list[list[list[Domain]]]:
        """List the domains to try for a part of a job within each of some domains."""
        if purpose == "allocate":
            found: list[list[list[Domain]]] | None = self._levels_within(part, domains)
            if found is not None:
                return found
        return [self.domain_levels(part, domain, purpose) for domain in domains]

    def score_domains(self, part: SubGroup, domains: list[Domain]) -> Column:
        """Score network domains for a part of a job, each by itself."""
        return np.asarray(self._score_domains(np.zeros(len(domains)), part, domains))

    def rank_domains(self, part: SubGroup, domains: list[Domain]) -> Column:
        """Score network domains further that have the same best score."""
        return np.asarray(self._rank_domains(np.zeros(len(domains)), part, domains))
