"""What the simulator may leave out without changing the outcome."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pumice.actions import ACTIONS
from pumice.framework.dispatch import Enabled
from pumice.framework.plugin import Plugin


@dataclass(frozen=True, slots=True)
class Shortcuts:
    """The shortcuts that all plugins and actions of a configuration allow."""

    leave_jobs_out: bool
    """Whether jobs that could get nothing need not take part in a cycle."""
    await_events: bool
    """Whether no cycle is needed as long as nothing happens."""
    refusals_last: bool
    """Whether a job that a cycle refused is refused until something is given back."""
    evicts: bool
    admitting: tuple[Plugin, ...] = ()
    """The plugins that decide whether a job is admitted; none: every job is."""
    limiting: tuple[Plugin, ...] = ()
    """The plugins that may refuse a queue one more task."""

    @classmethod
    def of(cls, actions: Sequence[str], tiers: Iterable[Iterable[Enabled]]) -> "Shortcuts":
        """Ask the plugins and actions of a configuration."""
        tiers = [list(tier) for tier in tiers]
        entries = [entry for tier in tiers for entry in tier]
        declared = [entry.plugin.simulator for entry in entries]
        declared += [ACTIONS[action].simulator for action in actions]
        bounded = all(each.bounded for each in declared)
        timed = any(each.timed for each in declared)
        evicts = any(each.evicts for each in declared)
        forgets = any(each.forgets for each in declared)
        return cls(
            leave_jobs_out=bounded,
            await_events=bounded and not timed,
            refusals_last=bounded and not (timed or evicts or forgets),
            evicts=evicts,
            admitting=_admitting(tiers) if "enqueue" in actions else (),
            limiting=tuple(entry.plugin for entry in entries if entry.offers("allocatable")),
        )


def _admitting(tiers: Iterable[Iterable[Enabled]]) -> tuple[Plugin, ...]:
    """Find who votes on admitting jobs: the first tier with a vote decides alone."""
    for tier in tiers:
        voters = tuple(entry.plugin for entry in tier if entry.offers("job_enqueueable"))
        if voters:
            return voters
    return ()
