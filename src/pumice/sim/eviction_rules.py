"""What a configuration allows evicting actions at most, as far as plugins declare it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pumice.actions import ACTIONS
from pumice.framework.dispatch import Enabled
from pumice.framework.plugin import Plugin

_BESIDE = ("enqueue", "allocate", "backfill")
"""Actions that may stand beside those that evict."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Whom one tier of plugins offers to a task that preempts, at most.

    Volcano: a tier offers nobody if one of its plugins does, but not always an intersection.
    """

    needs_lower: bool
    """Whether it offers nobody unless there is a pod of a job of lower priority."""
    needs_surplus: bool
    """Whether it offers nobody unless some job has more pods than it needs."""


@dataclass(frozen=True, slots=True)
class EvictionRules:
    """The evicting actions of a configuration, and who may lose a pod to whom under it."""

    actions: frozenset[str]
    offers: tuple[Offer, ...]
    """By tier, for preempt."""
    oldest_first: bool
    """Whether queues take jobs of one class by age."""
    claiming: tuple[Plugin, ...]
    """The plugins that all have to allow a queue to reclaim."""

    @property
    def reclaim(self) -> bool:
        """Whether queues lose pods to others."""
        return bool(self.actions & {"reclaim", "gangreclaim"})

    @classmethod
    def of(
        cls, actions: Sequence[str], tiers: Iterable[Iterable[Enabled]]
    ) -> "EvictionRules | None":
        """Ask the plugins of a configuration.

        None unless actions that evict come after all others, backfill aside: what they promise
        then concerns nobody; and unless a job that finds too little room in the end keeps nothing.
        """
        evicting = frozenset(name for name in actions if ACTIONS[name].simulator.evicts)
        others = tuple(name for name in actions if name not in evicting)
        first = next((at for at, name in enumerate(actions) if name in evicting), 0)
        if others not in (_BESIDE, _BESIDE[:2], _BESIDE[1:], _BESIDE[1:2]):
            return None
        if actions.index("allocate") > first:
            return None
        entries = [list(tier) for tier in tiers]
        everyone = [entry for tier in entries for entry in tier]
        if not any(map(_holds_gangs, everyone)):
            return None
        offering = [[each for each in tier if each.offers("preemptable")] for tier in entries]
        return cls(
            actions=evicting,
            offers=tuple(_offer(tier) for tier in offering if tier),
            oldest_first=all(
                entry.plugin.simulator.oldest_first
                for entry in everyone
                if entry.offers("order_jobs")
            ),
            claiming=tuple(entry.plugin for entry in everyone if entry.offers("preemptive")),
        )


def _holds_gangs(entry: Enabled) -> bool:
    return entry.plugin.simulator.holds_gangs and all(
        entry.offers(hook) for hook in ("job_ready", "job_pipelined")
    )


def _offer(tier: Sequence[Enabled]) -> Offer:
    declared = [entry.plugin.simulator for entry in tier]
    return Offer(
        needs_lower=any(each.offers_lower for each in declared),
        needs_surplus=any(each.offers_surplus for each in declared),
    )
