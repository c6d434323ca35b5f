"""Causes for which a job of a session waits, the decisive one first."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from pumice.api.codes import Cause
from pumice.api.wording import counted, first_of, span, verb
from pumice.examine.examiner import Examiner
from pumice.examine.findings import Finding, ObjectRef
from pumice.examine.job_outcome import JobOutcome
from pumice.examine.placement import at_its_turn
from pumice.examine.session_causes import Examination
from pumice.framework.refusals import Why

_NAMED: Final = 3
_ALLOCATE: Final = "allocate"
_EVICTING: Final = ("preempt", "gangpreempt", "reclaim", "gangreclaim")


def session_causes(
    examiner: Examiner,
    early: list[Finding] | None = None,
    *,
    refused: Sequence[Finding] = (),
    unmade: bool = False,
) -> list[Finding]:
    """List the causes for which a job waits, the decisive one first.

    ``early`` are those found before any session, ``refused`` are quotas that refuse pods, which the
    session does not have then.  The pods of an ``unmade`` job in the session are only expected: a
    cluster does not have them yet.
    """
    outcome, examination = examiner.outcome, examiner.examination
    if (outcome.makes_room or outcome.is_stuck) and not early and not _lacks_action(examination):
        return [_waits_for_evicted(outcome)]
    later = [*refused]
    if examination is not None:
        later = examination.findings(refused, unmade=unmade)
    later = [at_its_turn(each, outcome) for each in later]
    if early:  # causes that keep pods from being created, or from being ours, are reported once
        later = [each for each in later if each.code not in (Cause.TOO_FEW_PODS, Cause.NO_PODS)]
    found = [*(early or ()), *later]
    found += _no_pods(outcome, found)
    if found:
        return found
    if outcome.is_idly_promised and _promising(examiner.actions):
        return [_never_bound(examiner.actions)]
    if examiner.ahead is None:
        return [as_recorded(outcome)]
    return [examiner.ahead, *([] if examiner.limit is None else [examiner.limit]), *examiner.shut]


def _no_pods(outcome: JobOutcome, found: list[Finding]) -> list[Finding]:
    """Yield a pod group without pods, if no other cause explains that."""
    if outcome.counts or found or outcome.awaits_entry:
        return []
    about = ObjectRef.of_key("PodGroup", outcome.job)
    when = "it is admitted to its queue now; " if outcome.is_admitted else ""
    return [Finding(Cause.NO_PODS, f"{when}its pod group has no pods", about, {"pods": 0})]


_CODES = {
    Why.PLUGIN_FAILED: Cause.PLUGIN_FAILED,
    Why.NOT_VALID: Cause.INVALID,
    Why.NOT_ENQUEUED: Cause.NOT_ADMITTED,
    Why.NOT_TAKEN: Cause.ACTION_MISSING,
    Why.QUEUE_OVERUSED: Cause.QUEUE_OVER_DESERVED,
    Why.QUEUE_CLOSED: Cause.QUEUE_CLOSED,
    Why.QUEUE_MISPLACED: Cause.QUEUE_MISPLACED,
    Why.QUEUE_POSITION: Cause.JOB_AHEAD,
    Why.OVER_QUOTA: Cause.QUEUE_OVER_CAPABILITY,
    Why.NO_NODE_FITS: Cause.INSUFFICIENT_RESOURCE,
    Why.NO_DOMAIN_FITS: Cause.NETWORK_DOMAIN,
    Why.GANG_SHORT: Cause.GANG_SHORT,
    Why.SCHEDULED: Cause.GANG_SHORT,
    Why.WAITING_FOR_EVICTION: Cause.WAITING_FOR_EVICTED,
}


def as_recorded(outcome: JobOutcome) -> Finding:
    """Return the record of the cycle, where no gate gave a cause."""
    why = outcome.last.why if outcome.last is not None else Why.NOT_TAKEN
    return Finding(_CODES[why], outcome.sentence or why.value)


def _lacks_action(examination: Examination | None) -> bool:
    """Return whether a promise is never kept, as no action places pods."""
    found = [] if examination is None else examination.invalid
    return any(each.code is Cause.ACTION_MISSING for each in found)


def _promising(actions: Sequence[str]) -> list[str]:
    """List the evicting actions that come before allocate."""
    before = list(takewhile(lambda action: action != _ALLOCATE, actions))
    return [action for action in before if action in _EVICTING] if _ALLOCATE in actions else []


def _never_bound(actions: Sequence[str]) -> Finding:
    """Return that pods are promised free places in each cycle, so that allocate skips them."""
    first = _promising(actions)[0]
    text = (
        f"the action {first} comes before {_ALLOCATE} and promises free places to its pods in each "
        f"cycle, so {_ALLOCATE}, which binds pods, skips them"
    )
    numbers = {"action": _ALLOCATE, "actions": list(actions)}
    return Finding(Cause.ACTION_MISSING, text, None, numbers)


def _waits_for_evicted(outcome: JobOutcome) -> Finding:
    pods, late = list(outcome.making_room), outcome.overdue
    going = [pod for pod in pods if pod not in late]
    text, numbers = "its place is promised", {"pods": pods, "seconds": outcome.leaves_in_s}
    if going:
        leave = f"{counted(len(going), 'pod')} {verb(len(going), 'leaves', 'leave')}"
        within = f"(within {outcome.leaves_in_s:g} s)"
        text += f"; {leave} for it: {first_of(going, _NAMED)} {within}"
    if late:
        stuck = {pod: seconds for pod, seconds in late.items() if pod in pods}
        numbers["overdue"] = stuck
        ago = span(max(stuck.values()))
        text += f"; {first_of([*stuck], _NAMED)} should have gone {ago} ago, may be stuck"
    about = ObjectRef.of_key("Pod", (going or pods)[0])
    return Finding(Cause.WAITING_FOR_EVICTED, text, about, numbers)
