"""The gates a job passes on its way to a node, each passed, failed or not reached.

Rendered from one outcome; decides nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pumice.api.decisions import CLUSTER, Short, short_of
from pumice.api.quantity import amount_text
from pumice.api.wording import first_of
from pumice.diagnosis.job_outcome import STAGES, JobOutcome, Stop
from pumice.framework.job_records import Stage
from pumice.framework.refusals import Why

PASSED, FAILED, NOT_REACHED = "passed", "failed", "not reached"
_SHOWN = 4
"""Victims or jobs that are told by name."""


@dataclass(frozen=True, kw_only=True)
class Gate:
    """One gate; ``mark`` is passed, failed or not reached."""

    name: str
    mark: str
    text: str


def climb(outcome: JobOutcome, *, behind: bool = False) -> list[Gate]:
    """Give all gates in order; ``behind`` says that others before the job are what stops it."""
    marks = [
        ("valid", *_valid(outcome)),
        ("enqueued", *_enqueued(outcome)),
        ("position", *_position(outcome, behind=behind)),
        ("quota", *_quota(outcome)),
        ("nodes", *_nodes(outcome)),
        ("gang", *_gang(outcome)),
        ("eviction", *_eviction(outcome)),
    ]
    gates: list[Gate] = []
    blocked = False
    for name, mark, text in marks:
        if blocked and name in ("position", "quota", "nodes", "gang", "eviction"):
            gates.append(Gate(name=name, mark=NOT_REACHED, text=""))
        else:
            gates.append(Gate(name=name, mark=mark, text=text))
        # a job that is not valid or not admitted gets no further; later gates are told all the same
        blocked = blocked or (mark == FAILED and name in ("valid", "enqueued"))
    return gates


def _valid(outcome: JobOutcome) -> tuple[str, str]:
    n = sum(outcome.counts.values())
    if not outcome.listed:
        queue = outcome.queue or "(none)"
        return FAILED, f"queue {queue} does not exist, so no cycle looks at the job"
    if outcome.awaits_entry:
        return PASSED, f"at least {outcome.min_member} pods needed, made once it is admitted"
    if not n:
        return FAILED, "its pod group has no pods"
    if outcome.invalid:
        return FAILED, outcome.invalid
    if outcome.gated and outcome.gated >= outcome.pending:
        return FAILED, f"scheduling gates hold back {outcome.gated} of {n} pods"
    held = f", {outcome.gated} held back by scheduling gates" if outcome.gated else ""
    return PASSED, f"{n} pod{'s' * (n != 1)}, at least {outcome.min_member} needed{held}"


def _enqueued(outcome: JobOutcome) -> tuple[str, str]:
    if not outcome.listed:
        return NOT_REACHED, ""
    if outcome.phase_before not in ("Pending", ""):
        return PASSED, f"in queue {outcome.queue} already (phase {outcome.phase_before})"
    stop = outcome.stops.get(Stage.ENQUEUE)
    if stop is not None:
        return FAILED, _refusal(stop)
    if outcome.phase != "Pending" or outcome.place.turn is not None or outcome.started:
        return PASSED, f"admitted to queue {outcome.queue} in this cycle"
    return FAILED, "no configured action admits it"


def _position(outcome: JobOutcome, *, behind: bool) -> tuple[str, str]:
    place = outcome.place
    where = ""
    if outcome.job in place.jobs:
        at, n = place.jobs.index(outcome.job) + 1, len(place.jobs)
        queue, queues = place.queues.index(outcome.queue) + 1, len(place.queues)
        where = f"{_nth(at)} of {n} in queue {outcome.queue}, which comes {_nth(queue)} of {queues}"
    stop = outcome.stops.get(Stage.QUEUE)
    if stop is not None:
        return FAILED, f"{where}; the queue already has its share"
    if place.turn is None:
        calm = not outcome.pending and not outcome.waiting
        where = where or ("nothing of it waits" if calm else "")
        return (PASSED, where) if outcome.started or calm else (NOT_REACHED, where)
    turn = f"taken {_nth(place.turn + 1)} in this cycle"
    if behind:
        shown = first_of(place.before, _SHOWN)
        return FAILED, f"{where}; {turn}, after {shown}, which leave too little"
    return PASSED, f"{where}; {turn}"


def _quota(outcome: JobOutcome) -> tuple[str, str]:
    stop = outcome.stops.get(Stage.QUOTA)
    if stop is not None:
        return FAILED, _refusal(stop)
    if not _got_to(outcome, Stage.QUOTA):
        return NOT_REACHED, ""
    held = outcome.held.get("held", {})
    shown = ", ".join(
        f"{name} {amount_text(name, amount)}" for name, amount in held.items() if name != "pods"
    )
    return PASSED, f"queue {outcome.queue} now holds {shown or 'nothing'}"


def _nodes(outcome: JobOutcome) -> tuple[str, str]:
    stop = outcome.stops.get(Stage.NODES)
    if stop is None:
        if not _got_to(outcome, Stage.NODES):
            return NOT_REACHED, ""
        return PASSED, _places(outcome)
    numbers = stop.numbers
    if stop.why is Why.NO_DOMAIN_FITS:
        return FAILED, outcome.sentence
    pod = str(numbers["task"]).partition("/")[2]
    return FAILED, f"0 of {outcome.n_nodes} take {pod}: {count_nodes(numbers)}"


def count_nodes(numbers: Mapping[str, Any]) -> str:
    """Count nodes by reason, the most frequent first, and name the nearest."""
    by_count = sorted(numbers["nodes"].items(), key=lambda entry: (-entry[1], entry[0]))
    counted = ", ".join(f"{n} {plain_reason(text)}" for text, n in by_count)
    return (counted or "none was tried") + _nearest_node(numbers)


def plain_reason(text: str) -> str:
    """Say a reason without Kubernetes' "node(s)"."""
    if text.startswith("Insufficient "):
        return f"short of {text.removeprefix('Insufficient ')}"
    return text.removeprefix("node(s) ")


def _nearest_node(numbers: Mapping[str, Any]) -> str:
    """Name the node that comes nearest, and what it lacks."""
    if not numbers.get("nearest") or not numbers.get("lacks"):
        return ""
    need = numbers.get("need", {})
    lacks = ", ".join(
        f"{name} {amount_text(name, amount)}"
        + (f" of {amount_text(name, need[name])}" if name in need else "")
        for name, amount in numbers["lacks"].items()
    )
    return f"; nearest is {numbers['nearest']}, which lacks {lacks}"


def _gang(outcome: JobOutcome) -> tuple[str, str]:
    if outcome.started or (outcome.ready >= outcome.min_member and outcome.ready):
        return PASSED, f"{outcome.ready} of at least {outcome.min_member} pods have a node"
    stop = outcome.stops.get(Stage.GANG)
    if not (_got_to(outcome, Stage.NODES) or stop is not None or outcome.waiting):
        return NOT_REACHED, ""
    found = outcome.ready + outcome.found_node + outcome.waiting
    short = max(outcome.min_member - found, 0)
    if outcome.makes_room:
        return PASSED, f"{found} of at least {outcome.min_member} pods have a place or are promised"
    return FAILED, f"short by {short}: {found} of at least {outcome.min_member} pods found a place"


def _eviction(outcome: JobOutcome) -> tuple[str, str]:
    if outcome.makes_room:
        names = list(outcome.victims) or list(outcome.makes_way)
        named = f": {first_of(names, _SHOWN)}" if names else ""
        return FAILED, f"waits for evicted pods to leave{named}"
    if outcome.started or not (outcome.pending or outcome.waiting):
        own = outcome.evicted or outcome.leaving
        return PASSED, "its own pods leave" if own else "nobody has to leave for it"
    if outcome.evicting and _got_to(outcome, Stage.QUOTA):
        return FAILED, f"{' and '.join(outcome.evicting)} found no pods to evict for it"
    if not outcome.evicting:
        return NOT_REACHED, "no action of the configuration evicts"
    return NOT_REACHED, ""


def _got_to(outcome: JobOutcome, stage: Stage) -> bool:
    """Say whether a job came as far as a stage."""
    if outcome.started or (outcome.ready >= outcome.min_member and outcome.ready):
        return True
    return any(STAGES.index(each) >= STAGES.index(stage) for each in outcome.stops) and (
        outcome.place.turn is not None or bool(outcome.waiting)
    )


def _places(outcome: JobOutcome) -> str:
    nodes = sorted(set(outcome.binds.values()) or set(outcome.promised.values()))
    return f"on {first_of(nodes, _SHOWN)}" if nodes else "each pod found a node"


def _refusal(stop: Stop) -> str:
    numbers = stop.numbers
    if stop.why is Why.OVER_QUOTA and "resource" in numbers:
        at = numbers["at"]
        at = at if at == CLUSTER or " " in at else f"queue {at}"
        return f"{at}: {'; '.join(map(_shortage, short_of(numbers)))}"
    if "problem" in numbers:
        return f"{stop.why.value}: {numbers['problem']}"
    return stop.why.value


def _shortage(short: Short) -> str:
    name = short.resource
    used, request, limit, over = (
        amount_text(name, amount)
        for amount in (
            short.used,
            short.request,
            short.limit,
            short.used + short.request - short.limit,
        )
    )
    return f"{name} {used} + {request} asked for > {limit} allowed, {over} too much"


def _nth(n: int) -> str:
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"
