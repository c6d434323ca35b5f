"""The base class of all plugins: every hook, documented, doing nothing.

Inherit, override some, declare arguments as dataclass fields.  A fresh instance serves each
session, so state cannot leak from one to the next.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from pumice.api.codes import Cause, Spared
from pumice.api.wording import nearest
from pumice.core.resources import Column, Mask
from pumice.core.shapes import Shape
from pumice.core.snapshot import Snapshot
from pumice.core.views import Job, NodeFacts, Nodes, Queue, Task
from pumice.errors import UnknownHookError
from pumice.framework import combining as rule
from pumice.framework import hook_answers as answer
from pumice.framework.arguments import Fault
from pumice.framework.columns import Jobs, Queues, Tasks
from pumice.framework.eviction.gang_eviction import GangEviction
from pumice.framework.hooks import Hook, HookTable
from pumice.framework.per_node import per_node
from pumice.framework.plugin_session import PluginSession
from pumice.framework.queue_limits.limits import AdmissionLimit, QueueLimits
from pumice.framework.refusals import ABSTAIN, PERMIT, REJECT, Reason, Refusal, Verdict, Vote, Why
from pumice.framework.simulator_assumptions import UNDECLARED, SimulatorAssumptions
from pumice.framework.topology.domains import Domain
from pumice.framework.topology.subgroups import SubGroup

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
]

Codes = NDArray[np.int16] | Mask
"""Answer of a filter: booleans (True = fits), or 0 = fits and k = the plugin's k-th reason."""

_hooks = HookTable()


@dataclass(kw_only=True)
class Plugin:
    """A policy.  The class line names it: ``class Binpack(Plugin, name="binpack")``."""

    name: ClassVar[str] = ""
    reasons: ClassVar[tuple[Reason, ...]] = ()
    hierarchy_hooks: ClassVar[Mapping[str, bool]] = {}
    """Hooks that are asked only with (True) or only without (False) ``enableHierarchy``."""
    trouble: ClassVar[str] = ""
    """Why the plugin cannot be used at all; set by the registry for one that cannot be loaded."""
    by_row: ClassVar[bool] = True
    """Whether node hooks read nothing that placements change but the columns of their own rows."""
    judges_alone: ClassVar[frozenset[str]] = frozenset()
    """Its hooks about victims that judge each by itself, whatever other candidates there are."""
    foreseeable: ClassVar[bool] = False
    """Whether turns, and evictions for equal tasks, can be foreseen as far as it has a say.

    Its hooks about queues and readiness then read nothing that placements change except sums, and
    ``order_queues`` takes them from its argument; a queue that holds more is never allowed
    more; and a job is ready that has ``minMember`` tasks placed and states no other minimum.
    It stops starving once and for all; evictions never bring keys in ``order_jobs`` back.
    """
    spares: ClassVar[Spared] = Spared.PLUGIN_REFUSED
    """Why a candidate that it does not offer is spared."""
    protects: ClassVar[str] = ""
    """The pods that it keeps from being evicted, in words; empty if that is not its purpose."""
    simulator: ClassVar[SimulatorAssumptions] = UNDECLARED
    """What the simulator may assume; a subclass needs its own declaration."""
    hierarchy: bool = field(default=False, repr=False)
    """The switch ``enableHierarchy``."""
    position: int = field(default=0, init=False, repr=False, compare=False)
    """Where it stands in the configuration, counted over all tiers."""
    judges_in_turn: frozenset[str] = field(
        default=frozenset(), init=False, repr=False, compare=False
    )
    """Its hooks about victims that count (docs/writing-plugins.md): later ones have no say."""
    moving_jobs: frozenset[int] = field(default=frozenset(), init=False, repr=False, compare=False)
    """Jobs (rows) whose ``order_tasks`` keys change while their tasks are placed; set at open."""
    ordered_jobs: frozenset[int] | None = field(default=None, init=False, repr=False, compare=False)
    """Jobs (rows) whose tasks ``order_tasks`` orders, None for all; set at open."""

    def __init_subclass__(cls, name: str = "", **rest: Any) -> None:
        """Refuse public methods that are not hooks: a misspelt hook would never be called."""
        super().__init_subclass__(**rest)
        if name:
            cls.name = name
        cls.simulator = vars(cls).get("simulator", UNDECLARED)
        for attribute, value in vars(cls).items():
            public = not attribute.startswith("_") and callable(value)
            if public and attribute not in vars(Plugin):
                raise UnknownHookError(cls.name, attribute, nearest(attribute, _hooks.rows) or "")

    def faults(self) -> Iterable[Fault]:
        """Yield arguments of the right type that cannot be used; for checks only."""
        return ()

    def config_maps(self) -> Iterable[str]:
        """Return the ConfigMaps ("namespace/name") that it reads from the snapshot, if any."""
        return ()

    def queue_limits(self, snapshot: Snapshot, total: Column) -> QueueLimits | None:
        """Return the limits that this plugin enforces on queues, None if there are none.

        ``total`` is the allocatable amount of all nodes (R,).  Metrics and the simulator use them.
        """
        return None

    def admission_limit(self, snapshot: Snapshot, total: Column) -> AdmissionLimit | None:
        """Return the bound of the jobs that ``job_enqueueable`` permits, None if unknown."""
        return self.queue_limits(snapshot, total)

    def changes_at(self, ssn: PluginSession) -> float | None:
        """Return when this plugin may change its decision although nothing happens in the cluster.

        Called at the end of a cycle for plugins that declare ``timed``, by forecasts, where time
        passes without cycles up to then; None: at no time.  By default, each second may count.
        """
        return ssn.now + 1.0

    def passed_over(self, memory: dict[str, Any], now: float) -> None:
        """Update the memory as a cycle each second before ``now`` would have done.

        Called by forecasts after time passed without cycles.
        """

    def vary_by(self, task: Task) -> Hashable:
        """Return what the answers of this plugin's node hooks depend on besides the shape."""
        return None

    def may_rank(self, task: Task) -> bool:
        """Return whether ``rank_nodes`` may compare nodes for a task of this kind.

        Asked once for all tasks that get the same answers; the answer holds for the session.
        """
        return True

    def by_amounts(self, task: Task) -> bool:
        """Return whether ``filter_nodes`` and ``score_nodes`` look at nothing but amounts of nodes.

        Nodes of the same amounts then answer alike to a task; so they do for the whole session.
        """
        return False

    def closed_by_pods(self, task: Task, nodes: Nodes) -> Mask | None:
        """Mark nodes that ``filter_nodes`` refuses because of pods there or elsewhere; None: none.

        The plugin logs other nodes as moved that a placement opens or closes.
        """
        return None

    def refusal_numbers(self, task: Task) -> dict[str, Any]:
        """Return the numbers that this plugin compared when it refused a task that found no node.

        For explanations; called once for a task that found none.
        """
        return {}

    def bound_victims(self, hook: str, asker: Task, candidates: NDArray[np.intp]) -> Mask | None:
        """Mark at least every candidate that ``hook`` could ever name, with any others.

        ``hook`` is "preemptable" or "reclaimable".  Called once for candidates of many nodes, so
        that nodes without victims need not be asked one by one; None: unknown.
        """
        return None

    def node_tests(self, task: Task, nodes: Nodes) -> Mapping[Cause, Mask] | None:
        """Return which nodes each test of the filters refuses by itself (n,); None: ask filters.

        For explanations: the filters return the first reason only.
        """
        return None

    def own_words(self) -> list[str]:
        """Return messages against nodes in this session besides the stated reasons."""
        return []

    def why_spared(self, hook: str, asker: Task, candidate: Task) -> tuple[Spared, dict[str, Any]]:
        """Return why ``hook`` does not offer a candidate, with the numbers compared."""
        return self.spares, {}

    @_hooks.add(rule.NO_REASON, answer.REASON, volcano="PrePredicate", switch="enablePredicate")
    def filter_task(self, task: Task) -> Reason | None:
        """Return why no node at all can take the task, None if some may."""
        raise NotImplementedError

    @_hooks.add(rule.FIRST_REASON, answer.FACT_CODES, volcano="Predicate", switch="enablePredicate")
    def filter_shape(self, shape: Shape, facts: NodeFacts) -> Codes:
        """Return which nodes fit a shape, by facts that hold for the whole session."""
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

    @_hooks.add(rule.KEYS, answer.KEYS, volcano="TaskOrder", switch="enableTaskOrder")
    def order_tasks(self, tasks: Tasks) -> Column:
        """Return a key for each task; lower goes first.

        Of several keys (k, n) the first alone counts between tasks of two jobs.
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

        The purpose is "allocate" or "evict".
        """
        raise NotImplementedError

    def levels_within(self, part: SubGroup, some: list[Domain]) -> list[list[list[Domain]]] | None:
        """Return the answers of ``domain_levels`` to "allocate" within each; None: ask it."""
        return None

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
