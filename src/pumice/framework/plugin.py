"""The base class of all plugins: every hook, documented, doing nothing.

Inherit, override some, declare arguments as dataclass fields.  A fresh instance serves each
session, so state cannot leak from one to the next.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from pumice.api.wording import nearest
from pumice.core.resources import Column, Mask
from pumice.core.tables import Shape
from pumice.core.views import Job, NodeFacts, NodeRow, Nodes, Queue, Task
from pumice.errors import UnknownHookError
from pumice.framework import hook_answers as answer
from pumice.framework import hooks as rule
from pumice.framework.columns import Jobs, Queues, Tasks
from pumice.framework.hooks import Hook, HookTable
from pumice.framework.plugin_declarations import PluginDeclarations
from pumice.framework.plugin_session import PluginSession
from pumice.framework.refusals import ABSTAIN, PERMIT, REJECT, Reason, Refusal, Verdict, Vote, Why
from pumice.framework.topology.domains import Domain, GangEviction, SubGroup

__all__ = [
    "ABSTAIN",
    "HOOKS",
    "PERMIT",
    "REJECT",
    "Codes",
    "Plugin",
    "Reason",
    "Refusal",
    "Verdict",
    "Vote",
    "Why",
    "implements",
    "per_node",
    "states_terms",
]

_Method = TypeVar("_Method", bound=Callable[..., Any])


def per_node(method: _Method) -> _Method:
    """Make a node hook that looks at one node at a time: ``f(self, task, node: NodeRow)``.

    Slower, for what columns cannot express.
    """

    @functools.wraps(method)
    def loop(self: Any, task: Task, nodes: Nodes) -> NDArray[Any]:
        snapshot = nodes.snapshot
        answers = [method(self, task, NodeRow(snapshot, int(i))) for i in nodes.index]
        return np.asarray(answers, dtype=np.float64 if "score" in method.__name__ else None)

    loop.per_node = True  # type: ignore[attr-defined]
    return loop  # type: ignore[return-value]


Codes = NDArray[np.int16] | Mask
"""Answer of a filter: booleans (True = fits), or 0 = fits and k = the plugin's k-th reason."""

_hooks = HookTable()


@dataclass(kw_only=True)
class Plugin(PluginDeclarations):
    """A policy.  The class line names it: ``class Binpack(Plugin, name="binpack")``."""

    def __init_subclass__(cls, name: str = "", **rest: Any) -> None:
        """Refuse public methods that are not hooks: a misspelt hook would never be called."""
        super().__init_subclass__(**rest)
        if name:
            cls.name = name
        cls.simulator = vars(cls).get("simulator")
        for attribute, value in vars(cls).items():
            public = not attribute.startswith("_") and callable(value)
            if public and attribute not in dir(Plugin):
                raise UnknownHookError(cls.name, attribute, nearest(attribute, _hooks.rows) or "")

    @_hooks.add(rule.NO_REASON, answer.REASON, volcano="PrePredicate", switch="enablePredicate")
    def filter_task(self, task: Task) -> Reason | None:
        """Return why no node at all can take the task, None if some may."""
        raise NotImplementedError

    @_hooks.add(rule.FIRST_REASON, answer.FACT_CODES, volcano="Predicate", switch="enablePredicate")
    def filter_shape(self, shape: Shape, facts: NodeFacts) -> Codes | None:
        """Return which nodes fit a shape, by facts that hold for the whole session; None: all."""
        raise NotImplementedError

    @_hooks.add(rule.FIRST_REASON, answer.CODES, volcano="Predicate", switch="enablePredicate")
    def filter_nodes(self, task: Task, nodes: Nodes) -> Codes | None:
        """Return which nodes fit a task at this moment; row by row; None: all."""
        raise NotImplementedError

    @_hooks.add(rule.SUM, answer.SCORES, volcano="NodeOrder", switch="enableNodeOrder")
    def score_shape(self, shape: Shape, facts: NodeFacts) -> Column | None:
        """Score nodes for a shape, by facts that hold for the whole session; None: all equal."""
        raise NotImplementedError

    @_hooks.add(rule.SUM, answer.SCORES, volcano="NodeOrder", switch="enableNodeOrder")
    def score_nodes(self, task: Task, nodes: Nodes) -> Column | None:
        """Score nodes for a task at this moment; row by row; None: all equal."""
        raise NotImplementedError

    @_hooks.add(rule.SUM, answer.RANKS, volcano="BatchNodeOrder", switch="enableNodeOrder")
    def rank_nodes(self, task: Task, nodes: Nodes) -> Column | None:
        """Score the candidates against each other; asked at each placement; None: all equal."""
        raise NotImplementedError

    @_hooks.add(rule.FIRST, answer.CANDIDATE, volcano="BestNode", switch="enableBestNode")
    def best_node(self, task: Task, nodes: Nodes, scores: Column) -> int | None:
        """Pick a node row among scored candidates, None to leave it to the highest score."""
        raise NotImplementedError

    @_hooks.add(rule.KEYS, answer.KEYS, volcano="QueueOrder", switch="enableQueueOrder")
    def order_queues(self, queues: Queues) -> Column:
        """Return a key for each queue (n,), or several (k, n) to compare in turn; lower first."""
        raise NotImplementedError

    @_hooks.add(
        rule.FIRST_DIFFERENCE, answer.COMPARISON, volcano="QueueOrder", switch="enableQueueOrder"
    )
    def compare_queues(self, left: Queue, right: Queue) -> float:
        """Compare two queues where no key can: negative if the left one goes first."""
        raise NotImplementedError

    @_hooks.add(rule.FIRST_DIFFERENCE, answer.COMPARISON, volcano="VictimQueueOrder")
    def compare_victim_queues(self, left: Queue, right: Queue, preemptor: Queue) -> float:
        """Compare two queues as sources of victims: negative if the left one loses tasks first."""
        raise NotImplementedError

    @_hooks.add(rule.KEYS, answer.KEYS, volcano="JobOrder", switch="enableJobOrder")
    def order_jobs(self, jobs: Jobs) -> Column:
        """Return a key for each job; lower goes first."""
        raise NotImplementedError

    @_hooks.add(rule.KEYS, answer.SOME_KEYS, volcano="TaskOrder", switch="enableTaskOrder")
    def order_tasks(self, tasks: Tasks) -> Column:
        """Return a key for each task, not a number for tasks of jobs that it does not order.

        Lower goes first.  Of several keys (k, n) the first alone counts between tasks of two jobs.
        """
        raise NotImplementedError

    @_hooks.add(
        rule.FIRST_DIFFERENCE, answer.COMPARISON, volcano="SubJobOrder", switch="enabledSubJobOrder"
    )
    def order_subgroups(self, left: SubGroup, right: SubGroup) -> float:
        """Compare two sub-groups of a job: negative if the left one goes first."""
        raise NotImplementedError

    @_hooks.add(rule.NO_PROBLEM, answer.PROBLEM, volcano="JobValid")
    def job_valid(self, job: Job) -> str:
        """Return why a job cannot be scheduled at all; empty if it can."""
        raise NotImplementedError

    @_hooks.add(rule.VOTE, answer.VOTE, volcano="JobEnqueueable", switch="enableJobEnqueued")
    def job_enqueueable(self, job: Job) -> Vote:
        """Vote on admitting a pending job to its queue."""
        raise NotImplementedError

    @_hooks.add(rule.EACH, answer.NOTHING, volcano="JobEnqueued", switch="enableJobEnqueued")
    def on_enqueued(self, job: Job) -> None:
        """Reserve the resources of a job that was admitted."""
        raise NotImplementedError

    @_hooks.add(rule.ALL_AGREE, answer.VERDICT, volcano="JobReady", switch="enableJobReady")
    def job_ready(self, job: Job) -> Verdict:
        """Return whether a job has enough tasks placed to start."""
        raise NotImplementedError

    @_hooks.add(rule.VOTE, answer.VOTE, volcano="JobPipelined", switch="enableJobPipelined")
    def job_pipelined(self, job: Job) -> Vote:
        """Vote on keeping a job's place while it waits for resources being freed."""
        raise NotImplementedError

    @_hooks.add(rule.ALL_AGREE, answer.VERDICT, volcano="")
    def may_try(self, job: Job) -> Verdict:
        """Return whether a job that is next is placed at all; what it says, ``may_start`` says."""
        raise NotImplementedError

    @_hooks.add(rule.ALL_AGREE, answer.VERDICT, volcano="")
    def may_start(self, job: Job) -> Verdict:
        """Return whether a job that has its places may start on them now; else it gives them up."""
        raise NotImplementedError

    @_hooks.add(rule.EACH, answer.NOTHING, volcano="")
    def on_blocked(self, job: Job) -> None:
        """Follow a job that had its turn and does not start, after it gave its places up."""
        raise NotImplementedError

    @_hooks.add(rule.ALL_AGREE, answer.VERDICT, volcano="SubJobReady", switch="enabledSubJobReady")
    def subgroup_ready(self, subgroup: SubGroup) -> Verdict:
        """Return whether a part of a job has enough tasks placed."""
        raise NotImplementedError

    @_hooks.add(rule.VOTE, answer.VOTE, volcano="SubJobPipelined", switch="enabledSubJobPipelined")
    def subgroup_pipelined(self, subgroup: SubGroup) -> Vote:
        """Vote on keeping the place of a part of a job."""
        raise NotImplementedError

    @_hooks.add(rule.TIER_ALL, answer.YES_NO, volcano="JobStarving", switch="enableJobStarving")
    def job_starving(self, job: Job) -> bool:
        """Return whether a job may evict others to get more."""
        raise NotImplementedError

    @_hooks.add(rule.ANY, answer.NO_YES, volcano="Overused", switch="enabledOverused")
    def overused(self, queue: Queue) -> bool:
        """Return whether a queue has its share and must wait."""
        raise NotImplementedError

    @_hooks.add(rule.ALL_AGREE, answer.VERDICT, volcano="Allocatable", switch="enabledAllocatable")
    def allocatable(self, queue: Queue, task: Task) -> Verdict:
        """Return whether a queue may take one more task."""
        raise NotImplementedError

    @_hooks.add(rule.ALL_AGREE, answer.VERDICT, volcano="Preemptive", switch="enablePreemptive")
    def preemptive(self, queue: Queue, request: Column) -> Verdict:
        """Return whether a queue may reclaim for a request (R,)."""
        raise NotImplementedError

    @_hooks.add(rule.TIER_INTERSECT, answer.MASK, volcano="Preemptable", switch="enablePreemptable")
    def preemptable(self, preemptor: Task, candidates: list[int]) -> Mask | None:
        """Mark candidates (task rows) evictable for a task of their queue; None: no opinion."""
        raise NotImplementedError

    @_hooks.add(rule.TIER_INTERSECT, answer.MASK, volcano="Reclaimable", switch="enableReclaimable")
    def reclaimable(self, reclaimer: Task, candidates: list[int]) -> Mask | None:
        """Mark candidates (task rows) evictable for another queue; None: no opinion."""
        raise NotImplementedError

    @_hooks.add(rule.TIER_INTERSECT, answer.MASK, volcano="UnifiedEvictable")
    def gang_evictable(self, eviction: GangEviction, candidates: list[int]) -> Mask | None:
        """Mark candidates (task rows) evictable for a whole job; None: no opinion."""
        raise NotImplementedError

    @_hooks.add(rule.TIER_UNION, answer.TASKS, volcano="VictimTasks", switch="enabledVictim")
    def victims(self, running: list[int]) -> list[int]:
        """Return running tasks to evict although no job asks for their place."""
        raise NotImplementedError

    @_hooks.add(
        rule.FIRST, answer.LEVELS, volcano="HyperNodeGradient", switch="enabledHyperNodeGradient"
    )
    def domain_levels(
        self, part: SubGroup | Job, within: Domain, purpose: str
    ) -> list[list[Domain]]:
        """List the network domains to try for a job or a part of it, level by level.

        The purpose is "allocate", "evict", or "ahead": to allocate once running pods have ended.
        """
        raise NotImplementedError

    @_hooks.add(
        rule.SUM, answer.DOMAIN_SCORES, volcano="HyperNodeOrder", switch="enabledHyperNodeOrder"
    )
    def score_domains(self, subgroup: SubGroup, domains: list[Domain]) -> Column | None:
        """Score network domains for a part of a job, each by itself; None: all equal."""
        raise NotImplementedError

    @_hooks.add(
        rule.SUM, answer.DOMAIN_SCORES, volcano="HyperNodeOrder", switch="enabledHyperNodeOrder"
    )
    def rank_domains(self, subgroup: SubGroup, domains: list[Domain]) -> Column | None:
        """Score network domains further that have the same best score; None: all equal."""
        raise NotImplementedError

    @_hooks.add(rule.EACH, answer.NOTHING, volcano="AllocateFunc")
    def on_place(self, task: Task, node: int) -> None:
        """Follow a task that was placed or pipelined; state goes through ``ssn.journal``."""
        raise NotImplementedError

    @_hooks.add(rule.EACH, answer.NOTHING, volcano="DeallocateFunc")
    def on_evict(self, task: Task, node: int) -> None:
        """Follow a task that leaves its node; state goes through ``ssn.journal``."""
        raise NotImplementedError

    @_hooks.add(rule.EACH, answer.NOTHING, volcano="OnSessionOpen")
    def on_open(self, ssn: PluginSession) -> None:
        """Prepare for a session."""

    @_hooks.add(rule.EACH, answer.NOTHING, volcano="OnSessionClose")
    def on_close(self, ssn: PluginSession) -> None:
        """Process the outcome of a session before phases are computed."""


HOOKS: Final[Mapping[str, Hook]] = _hooks.rows
"""Every hook a plugin may have, by name."""


def implements(plugin: Plugin | type[Plugin], hook: str) -> bool:
    """Return whether a plugin overrides a hook."""
    cls = plugin if isinstance(plugin, type) else type(plugin)
    return getattr(cls, hook) is not getattr(Plugin, hook)


def states_terms(plugin: Plugin) -> bool:
    """Return whether ``node_terms`` describes the answers of this class about nodes.

    A subclass that overrides one of them does not inherit the statement about the old one.
    """
    if not implements(plugin, "node_terms"):
        return False
    for cls in type(plugin).__mro__:
        if "node_terms" in vars(cls):
            return True
        if not vars(cls).keys().isdisjoint(("filter_nodes", "score_nodes", "rank_nodes")):
            return False
    return False
