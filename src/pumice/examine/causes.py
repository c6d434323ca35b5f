"""Causes for which a job of a session waits, the decisive one first."""

from collections.abc import Sequence
from typing import Final

from pumice.api.codes import Cause
from pumice.api.wording import counted, first_of, verb
from pumice.examine.examiner import Examiner
from pumice.examine.findings import Finding, ObjectRef
from pumice.examine.job_outcome import JobOutcome
from pumice.examine.placement import at_its_turn
from pumice.framework.refusals import Why

_NAMED: Final = 3


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
    if outcome.makes_room:
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
    if examiner.ahead is None:
        return [as_recorded(outcome)]
    return [examiner.ahead, *([] if examiner.limit is None else [examiner.limit])]


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


def _waits_for_evicted(outcome: JobOutcome) -> Finding:
    pods = list(outcome.victims or outcome.makes_way or outcome.leaving)
    seconds = outcome.leaves_in_s
    leave = f"{counted(len(pods), 'pod')} {verb(len(pods), 'leaves', 'leave')}"
    text = f"its place is promised; {leave} for it: {first_of(pods, _NAMED)}"
    about = ObjectRef.of_key("Pod", pods[0])
    numbers = {"pods": pods, "seconds": seconds}
    return Finding(Cause.WAITING_FOR_EVICTED, f"{text} (within {seconds:g} s)", about, numbers)
