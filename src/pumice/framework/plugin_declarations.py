"""What a plugin declares besides its hooks, and the methods that serve hooks without being one.

No answers are combined here: the framework, explanations, metrics and the simulator ask each
plugin by itself.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from pumice.api.codes import Cause, Spared
from pumice.api.cycle_facts import Invariant
from pumice.core.resources import Column, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.views import Nodes, Task
from pumice.framework.arguments import Fault
from pumice.framework.placement.kernel import NodeTerm
from pumice.framework.plugin_session import PluginSession
from pumice.framework.queue_limits.limits import AdmissionLimit, QueueLimits
from pumice.framework.refusals import Reason
from pumice.framework.topology.domains import Domain, SubGroup


class SimulatorAssumptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a plugin refuses it refuses until something is released, or the time of ``changes_at``.

    One that declares nothing may change its mind at any time: every job takes part in every cycle,
    and cycles run while nothing happens.  One that only orders and scores refuses nothing.
    """

    all_jobs: bool = False
    """Answers by all jobs that wait, even those without room: none is left out of a cycle."""


class AccountShare(msgspec.Struct, frozen=True):
    """How much of the cluster a namespace, user or queue used, by a plugin that remembers it."""

    kind: str
    name: str
    weight: float
    usage: Mapping[str, float]
    """Resource to the mean amount, in the units of the tables; recent time counts more."""
    share: float
    """That of the cluster, for the resource that counts."""
    factor: float
    """1: used nothing; 0.5: its part by weight of what all of its kind used; 0: far more."""


@dataclass(kw_only=True)
class PluginDeclarations:
    """The part of a plugin that is not a hook."""

    name: ClassVar[str] = ""
    reasons: ClassVar[tuple[Reason, ...]] = ()
    hierarchy_hooks: ClassVar[Mapping[str, bool]] = {}
    """Hooks that are asked only with (True) or only without (False) ``enableHierarchy``."""
    trouble: ClassVar[str] = ""
    """Why the plugin cannot be used at all; set by the registry for one that cannot be loaded."""
    judges_alone: ClassVar[frozenset[str]] = frozenset()
    """Its hooks about victims that judge each candidate by itself, whatever others there are."""
    foreseeable: ClassVar[bool] = False
    """Whether its answers follow from rows and sums alone, and holding more never allows more.

    It is then asked about what would be, and about one of several equal jobs.  Rows: those that it
    is given; of a job that waits its queue, namespace, phase, priority and numbers, the shapes,
    roles and priorities of its tasks, and that by which ``order_jobs`` orders it.  Sums: of nodes,
    jobs and queues; ``order_queues`` and ``order_jobs`` take them from their argument.  Never more:
    a queue is not allowed more, a job with ``minMember`` tasks placed and no other minimum is
    ready, and stops starving once and for all; evictions never bring back keys of ``order_jobs``.
    """
    admits_all: ClassVar[bool] = False
    """Whether all jobs wait for nodes, none to be admitted: no plugin votes on that."""
    spares: ClassVar[Spared] = Spared.PLUGIN_REFUSED
    """Why a candidate that it does not offer is spared."""
    invariants: ClassVar[Mapping[str, Invariant]] = {}
    """What policy tests may state in `always` when this plugin is there, by name."""
    protects: ClassVar[str] = ""
    """The pods that it keeps from being evicted, in words; empty if that is not its purpose."""
    protects_in: ClassVar[frozenset[str]] = frozenset(
        {"preempt", "reclaim", "gangpreempt", "gangreclaim", "consolidate"}
    )
    """The actions in which it does; in others it permits all victims, if it judges them."""
    simulator: ClassVar[SimulatorAssumptions | None] = None
    """Declares that its refusals last; a subclass needs its own declaration."""
    hierarchy: bool = field(default=False, repr=False)
    """The switch ``enableHierarchy``."""
    position: int = field(default=0, init=False, repr=False, compare=False)
    """Where it stands in the configuration, counted over all tiers."""
    moving_jobs: frozenset[int] | None = field(default=None, init=False, repr=False, compare=False)
    """The only jobs (rows) whose ``order_tasks`` keys change while their tasks are placed.

    Set at open; None: with ``on_place``, all jobs that it orders.
    """
    tells_apart: bool = field(default=True, init=False, repr=False, compare=False)
    """Whether ``vary_by`` may tell tasks of one shape apart in this session; set at open."""

    def faults(self) -> Iterable[Fault]:
        """Yield arguments of the right type that cannot be used; for checks only."""
        return ()

    def config_maps(self) -> Iterable[str]:
        """Return the ConfigMaps ("namespace/name") that it reads from the snapshot, if any."""
        return ()

    def learned_seconds(self, snapshot: Snapshot) -> Callable[[int], float | None] | None:
        """Return what tells how long jobs (rows) run that state nothing; None if nothing does.

        It goes by what the ConfigMaps of the snapshot have.
        """
        return None

    def queue_limits(self, snapshot: Snapshot, total: Column) -> QueueLimits | None:
        """Return the limits that this plugin enforces on queues, None if there are none.

        ``total`` is the allocatable amount of all nodes (R,).  Metrics and the simulator use them.
        """
        return None

    def admission_limit(self, snapshot: Snapshot, total: Column) -> AdmissionLimit | None:
        """Return the bound of the jobs that ``job_enqueueable`` permits, None if unknown."""
        return self.queue_limits(snapshot, total)

    def fair_shares(self) -> Iterable[AccountShare]:
        """Return what accounts used, if this plugin orders by that; asked while a session is open.

        For the command line and the dashboard.
        """
        return ()

    def changes_at(self, ssn: PluginSession) -> float | None:
        """Return when this plugin may change its decision although nothing happens in the cluster.

        Called at the end of a cycle for plugins that declare ``simulator``: cycles run then, and
        not before unless something happens.  None: at no time; ``ssn.now``: in the next cycle.
        """
        return None

    def closes_at(self) -> Column | None:
        """Return when this plugin stops letting pods onto nodes (n,), for reservations.

        Infinite for nodes that stay as they are; None: all do.
        """
        return None

    def passed_over(self, memory: dict[str, Any], now: float) -> None:
        """Update the memory as a cycle each second before ``now`` would have done.

        Called by forecasts after time passed without cycles.
        """

    def refused_ahead(self, jobs: list[int], known: Mask) -> list[int]:
        """Return those of the known jobs (n,) among some (rows) that need no turn in `allocate`.

        It is sure that they do not start.  Asked of the only plugin with a say in turns.
        """
        return []

    def vary_by(self, task: Task) -> Hashable:
        """Return what the answers of this plugin's node hooks depend on besides the shape."""
        return None

    def node_terms(self, task: Task) -> list[NodeTerm] | None:
        """State as data what filters, scores and ``rank_nodes`` answer to tasks of this kind.

        The kernel then computes it; None: the hooks are asked.  Without a ``RankTerm`` nodes are
        not compared.  Asked once for all tasks that get the same answers.
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

    def levels_within(self, part: SubGroup, some: list[Domain]) -> list[list[list[Domain]]] | None:
        """Return the answers of ``domain_levels`` to "allocate" within each; None: ask it."""
        return None
