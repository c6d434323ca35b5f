"""What the simulator need not do under a configuration: cycles, jobs and sessions to leave out.

Which hooks a plugin has says most of it: one that orders and scores refuses nothing.  A plugin that
refuses declares that it does so until something is released (``SimulatorAssumptions``).  Beyond
that, Volcano's own default plugins are known by name: under them gangs of equal pods start without
a session, and who may be evicted is known before a cycle.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pumice.actions import ACTIONS
from pumice.framework.dispatch import Enabled
from pumice.framework.plugin import HOOKS, Plugin, implements

_ABOUT_NODES = (
    "filter_shape", "filter_nodes", "score_shape", "score_nodes", "rank_nodes", "best_node"
)  # fmt: skip
"""Hooks whose answers about nodes may be kept."""
_OF_GANGS = ("job_valid", "job_ready", "on_close")
"""Hooks that together start gangs whole and report it."""
_ORDERING = frozenset(name for name in HOOKS if name.startswith(("order_", "compare_")))
_FREE = _ORDERING | {
    *(name for name in HOOKS if name.startswith(("score_", "rank_", "on_"))),
    "best_node",
}
"""Hooks that refuse nothing: they decide who goes first, and where to."""
_BESIDE = ("enqueue", "allocate", "backfill")
"""Actions that may stand beside those that evict."""

_OLDEST_FIRST = frozenset({"drf", "gang", "priority"})
"""Of jobs of equal priority that have not started, they put none before an older one."""
_NODES_ALONE = frozenset({"binpack", "nodeorder", "predicates"})
"""Their answers about a node, for pods without volumes and terms about other pods, depend on the
pods of that node alone: they hold until a pod is added or removed there."""
_STARTS_ALONE = (
    _OLDEST_FIRST | _NODES_ALONE | frozenset({"conformance", "overcommit", "proportion"})
)
"""Under them a gang of equal pods, without volumes and terms about other pods, is admitted and
starts on its best nodes as far as the limits allow it that the plugins state.  While it runs,
nothing about it counts but the sums of its nodes, its queue and its namespace."""


def _knows(names: frozenset[str], entry: Enabled) -> bool:
    """Return whether a plugin is one of our own of these names."""
    plugin = entry.plugin
    return plugin.name in names and type(plugin).__module__.startswith("pumice.plugins.")


@dataclass(frozen=True, slots=True)
class Offer:
    """Whom one tier of plugins offers to a task that preempts, at most.

    Volcano: a tier offers nobody if one of its plugins does, but not always an intersection.
    """

    needs_lower: bool
    """Whether it offers nobody unless there is a pod of a job of lower priority."""
    needs_surplus: bool
    """Whether it offers nobody unless some job has more pods than it needs."""

    @classmethod
    def of(cls, tier: Sequence[Enabled]) -> "Offer":
        """Ask the plugins of a tier that name victims."""
        return cls(
            needs_lower=any(_knows(frozenset({"priority"}), entry) for entry in tier),
            needs_surplus=any(_knows(frozenset({"gang"}), entry) for entry in tier),
        )


@dataclass(frozen=True, slots=True)
class EvictionRules:
    """The evicting actions of a configuration, and who may lose a pod to whom under it."""

    actions: frozenset[str]
    offers: tuple[Offer, ...]
    """By tier, for preempt."""
    claiming: tuple[Plugin, ...]
    """The plugins that all have to allow a queue to reclaim."""

    @property
    def reclaim(self) -> bool:
        """Whether queues lose pods to others."""
        return bool(self.actions & {"reclaim", "gangreclaim"})

    @classmethod
    def of(cls, actions: Sequence[str], tiers: Sequence[list[Enabled]]) -> "EvictionRules | None":
        """Ask the plugins of a configuration.

        None unless actions that evict come after all others, backfill aside: what they promise
        then concerns nobody; and unless a job that finds too little room in the end keeps nothing.
        """
        evicting = frozenset(name for name in actions if ACTIONS[name].evicts)
        others = tuple(name for name in actions if name not in evicting)
        first = next((at for at, name in enumerate(actions) if name in evicting), 0)
        if others not in (_BESIDE, _BESIDE[:2], _BESIDE[1:], _BESIDE[1:2]):
            return None
        if actions.index("allocate") > first or not any(_holds_gangs(e) for t in tiers for e in t):
            return None
        offering = [[each for each in tier if each.offers("preemptable")] for tier in tiers]
        return cls(
            actions=evicting,
            offers=tuple(Offer.of(tier) for tier in offering if tier),
            claiming=_offering("preemptive", tiers),
        )


def _holds_gangs(entry: Enabled) -> bool:
    """Return whether a job keeps places only if all that it needs have one."""
    return _knows(frozenset({"gang"}), entry) and all(
        entry.offers(hook) for hook in ("job_ready", "job_pipelined")
    )


def _offering(hook: str, tiers: Iterable[Iterable[Enabled]]) -> tuple[Plugin, ...]:
    return tuple(entry.plugin for tier in tiers for entry in tier if entry.offers(hook))


@dataclass(frozen=True, slots=True)
class Shortcuts:
    """The shortcuts that all plugins and actions of a configuration allow."""

    leave_jobs_out: bool
    """Whether jobs that could get nothing need not take part in a cycle."""
    await_events: bool
    """Whether no cycle is needed as long as nothing happens."""
    refusals_last: bool
    """Whether a job that a cycle refused is refused until something is released."""
    settles: bool
    """Whether a cycle right after another one, with no event between, decides nothing."""
    evicts: bool
    alarms: bool = False
    """Whether plugins state when time alone changes their decision."""
    count_time: bool = False
    """Whether a cycle follows each event, even if no job waits: what is held counts."""
    evictions: EvictionRules | None = None
    """Who may be evicted, if that is known of a configuration that evicts."""
    keep_placing: bool = False
    """Whether the answer of a node holds until a pod is added to it or leaves it."""
    admitting: tuple[Plugin, ...] = ()
    """The plugins that decide whether a job is admitted; none: every job is."""
    limiting: tuple[Plugin, ...] = ()
    """The plugins that may refuse a queue one more task."""
    starts_alone: bool = False
    """Whether a gang of equal pods starts on its best nodes as soon as all limits allow it."""
    oldest_first: bool = True
    """Whether queues take jobs of equal priority by age."""
    knows_order: bool = False
    """Whether it is known besides which queue goes first."""
    by_share: bool = False
    """Whether queues are taken by their share of what they deserve, and not merely by age."""

    @classmethod
    def of(cls, actions: Sequence[str], configured: Iterable[Iterable[Enabled]]) -> "Shortcuts":
        """Ask the plugins and actions of a configuration."""
        tiers = [list(tier) for tier in configured]
        entries = [entry for tier in tiers for entry in tier]
        evicts = any(ACTIONS[name].evicts for name in actions) or bool(_offering("victims", tiers))
        # plugins name the victims of shuffle as they like; consolidate remembers its own
        is_known = not {"shuffle", "consolidate"} & set(actions)
        is_known &= all(_is_known(entry, evicts=evicts) for entry in entries)
        declared = [entry.plugin for entry in entries if entry.plugin.simulator is not None]
        all_jobs = any(each.simulator.all_jobs for each in declared if each.simulator)
        timed = any(implements(each, "changes_at") for each in declared)
        lasts = is_known and not (timed or all_jobs)
        asked = [entry for entry in entries if any(map(entry.offers, _ABOUT_NODES))]
        oldest_first = all(
            _knows(_OLDEST_FIRST, entry) for entry in entries if entry.offers("order_jobs")
        )
        keep_placing = all(_knows(_NODES_ALONE, entry) for entry in asked)
        return cls(
            leave_jobs_out=is_known and not all_jobs,
            await_events=is_known,
            refusals_last=lasts and not evicts,
            settles=is_known and not evicts,
            evicts=evicts,
            alarms=timed,
            count_time=any(implements(entry.plugin, "fair_shares") for entry in entries),
            evictions=EvictionRules.of(actions, tiers) if lasts and evicts else None,
            keep_placing=keep_placing,
            admitting=_admitting(tiers) if "enqueue" in actions else (),
            limiting=_offering("allocatable", tiers),
            starts_alone=lasts and not evicts and keep_placing and _starts_alone(actions, entries),
            oldest_first=oldest_first,
            knows_order=oldest_first
            and not _offering("compare_queues", tiers)
            and _offering("order_queues", tiers) in ((), _offering("allocatable", tiers)),
            by_share=bool(_offering("order_queues", tiers)),
        )

    def of_undeclared_plugins(self) -> "Shortcuts":
        """Return those that hold whatever plugins declare."""
        return replace(self.of_changing_clusters(), await_events=False, settles=False)

    def of_changing_clusters(self) -> "Shortcuts":
        """Return those that also hold if nodes, queues or jobs change."""
        return replace(
            self,
            leave_jobs_out=False,
            refusals_last=False,
            evictions=None,
            keep_placing=False,
            starts_alone=False,
        )


def _is_known(entry: Enabled, *, evicts: bool) -> bool:
    """Return whether a plugin declares when it may change its mind, or refuses nothing.

    Actions that evict may try the first job of a queue alone, so that an order decides, too.
    """
    free = _FREE - _ORDERING if evicts else _FREE
    return entry.plugin.simulator is not None or all(hook in free for hook in entry.offered())


def _admitting(tiers: Iterable[Iterable[Enabled]]) -> tuple[Plugin, ...]:
    """Find the plugins that vote on admitting jobs: the first tier with a vote decides alone."""
    for tier in tiers:
        if voters := _offering("job_enqueueable", [tier]):
            return voters
    return ()


def _starts_alone(actions: Sequence[str], entries: Sequence[Enabled]) -> bool:
    """Return whether gangs start whole, one after the other, and each limit is known."""
    if tuple(actions) not in (("enqueue", "allocate"), ("enqueue", "allocate", "backfill")):
        return False
    limiting = [entry for entry in entries if entry.offers("allocatable")]
    holding_back = [entry for entry in entries if entry.offers("overused")]
    gangs = [entry for entry in entries if entry.plugin.name == "gang"]
    return (
        all(_knows(_STARTS_ALONE, entry) and not entry.plugin.hierarchy for entry in entries)
        and len(limiting) < 2
        and holding_back == limiting
        and any(all(map(entry.offers, _OF_GANGS)) for entry in gangs)
        and any(entry.plugin.name == "predicates" for entry in entries)
    )
