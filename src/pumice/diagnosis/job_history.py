"""What became of jobs over time: each state with its cause and how long it held.

Read from a record.  The cause of waiting is what a scheduler wrote on the pod group: Pumice its
cause by code, another scheduler the reason of its condition.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from pumice.api.annotations import WAITING_CAUSE, WAITING_WHY
from pumice.api.codes import Cause
from pumice.api.kinds import POD_GROUP, Manifest, queue_of
from pumice.api.objects import from_manifest
from pumice.api.times import epoch, rfc3339
from pumice.api.wording import name_hint, span
from pumice.diagnosis.cluster_state import title_of
from pumice.errors import InputError, ManifestError
from pumice.records.entries import Entry, Place
from pumice.records.history import History, Moment

WAITS: Final = "Waiting"
UNKNOWN: Final = "NotRecorded"
"""The cause where the scheduler wrote none."""
_SOON_S: Final = 5.0
"""How long a scheduler may take to say why a new job waits."""
_CODES: Final = frozenset(cause.value for cause in Cause)
_ENDED: Final = frozenset({"Completed"})
_UNSCHEDULABLE: Final = "Unschedulable"


@dataclass(frozen=True, kw_only=True)
class Span:
    """A state of a job from one time to another."""

    job: str
    queue: str
    state: str
    """``Waiting``, or the phase of its pod group."""
    cause: str = ""
    """Why it waited."""
    why: str = ""
    since: float
    until: float
    is_open: bool = False
    """Whether it still held at the end of the record, or of a part of it."""

    @property
    def seconds(self) -> float:
        """How long it held."""
        return self.until - self.since

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain data."""
        return {**asdict(self), "since": rfc3339(self.since), "until": rfc3339(self.until),
                "seconds": round(self.seconds, 3)}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Share:
    """Where waiting time went: of all jobs with the same queue, cause or name."""

    of: tuple[str, ...]
    seconds: float
    jobs: int
    longest: float
    longest_job: str


class _Lives:
    """The states of pod groups while a record is read."""

    def __init__(self) -> None:
        self._open: dict[Place, Span] = {}
        self.spans: list[Span] = []

    def see(self, place: Place, group: Manifest | None, at: float) -> None:
        """Take the state of a pod group; None if it is gone."""
        known = self._open.get(place)
        state = None if group is None else _state(group, at)
        if known is not None and state is not None and _is_same(known, state):
            return
        if known is not None and state is not None and _names_cause(known, state):
            self._open[place] = replace(state, since=known.since)
            return
        if known is not None:
            self._end(place, at)
        if state is not None:
            self._open[place] = state

    def _end(self, place: Place, at: float, *, is_open: bool = False) -> None:
        known = self._open.pop(place)
        if at > known.since or is_open:
            self.spans.append(replace(known, until=at, is_open=is_open))

    def stop(self, at: float) -> None:
        """End everything that is still so: what follows is not known."""
        for place in [*self._open]:
            self._end(place, at, is_open=True)


def _state(group: Manifest, at: float) -> Span:
    status = group.get("status") or {}
    phase = str(status.get("phase") or "Pending")
    marks = group["metadata"].get("annotations") or {}
    state, cause, why = phase, "", ""
    if phase not in _ENDED and phase != "Running":
        state = WAITS
        cause, why = marks.get(WAITING_CAUSE, ""), marks.get(WAITING_WHY, "")
        if not cause:
            cause, why = _condition(status)
    return Span(
        job=title_of(group), queue=queue_of(group), state=state, cause=cause, why=why,
        since=at, until=at,
    )  # fmt: skip


def _condition(status: Mapping[str, Any]) -> tuple[str, str]:
    """Return reason and message with which another scheduler left a job waiting."""
    for one in reversed(status.get("conditions") or ()):
        if one.get("type") == _UNSCHEDULABLE and one.get("status") == "True":
            return str(one.get("reason") or UNKNOWN), str(one.get("message") or "")
    return UNKNOWN, ""


def _is_same(known: Span, new: Span) -> bool:
    """Return whether nothing changed; a job whose cause was removed is about to start."""
    if (known.state, known.queue) != (new.state, new.queue):
        return False
    return known.cause == new.cause or (known.cause in _CODES and new.cause not in _CODES)


def _names_cause(known: Span, new: Span) -> bool:
    """Return whether a scheduler has found out why a job waits that it has just seen."""
    is_unnamed = known.state == new.state == WAITS and known.cause not in _CODES
    return is_unnamed and new.since - known.since <= _SOON_S


def spans_of(
    history: History, since: float | None = None, until: float | None = None
) -> list[Span]:
    """Return the states of all jobs between two times, by job and time."""
    lives, at = _Lives(), 0.0
    for step in history.steps(since, until, only=b"PodGroup"):
        if step.is_first and at:
            lives.stop(at)
        at = max(at, step.entry.at)
        place = _group_of(step.entry)
        group = None if place is None else step.moment.objects.get(place)
        if place is not None and (group is None or _is_sound(group)):
            lives.see(place, group, _began(step.entry, step.moment, place))
    lives.stop(at)
    kept = (_within(each, since, at if until is None else until) for each in lives.spans)
    found = [each for each in kept if each is not None]
    return sorted(found, key=lambda each: (each.job, each.since))


def _is_sound(group: Manifest) -> bool:
    """Return whether a scheduler can read a pod group; it skips others."""
    try:
        from_manifest(group)
    except ManifestError:
        return False
    return True


def _group_of(entry: Entry) -> Place | None:
    """Return the pod group that an entry is about, if any."""
    if entry.put is not None:
        if entry.put.get("kind") != "PodGroup":
            return None
        metadata = entry.put["metadata"]
        return POD_GROUP, metadata.get("namespace") or "", metadata["name"]
    place = entry.of or entry.gone
    return place if place is not None and place[0] == POD_GROUP else None


def _began(entry: Entry, moment: Moment, place: Place) -> float:
    """Return when a state began: that of a new pod group with it, as far as the record reaches."""
    group = moment.objects.get(place)
    made = (group or {}).get("metadata", {}).get("creationTimestamp")
    if entry.put is None or not made:
        return entry.at
    return max(epoch(made), entry.at - 1.0)  # in whole seconds; a watch is hardly later


def _within(each: Span, since: float | None, until: float) -> Span | None:
    start = each.since if since is None else max(each.since, since)
    end = min(each.until, until)
    return replace(each, since=start, until=end) if end >= start else None


def of_job(spans: Iterable[Span], name: str) -> list[Span]:
    """Return the states of one job, by its name with or without namespace.

    Raises:
        InputError: there is none, or more than one.
    """
    every = list(spans)
    names = {each.job for each in every}
    wanted = {job for job in names if name in (job, job.partition("/")[2])}
    if len(wanted) != 1:
        hint = f"there are {', '.join(sorted(wanted))}" if wanted else name_hint(name, names)
        raise InputError(wanted="a job of this record", found=name, hint=hint)
    return [each for each in every if each.job in wanted]


def in_words(spans: Iterable[Span]) -> str:
    """Return where the time of a job went, in words, the longest first."""
    sums: dict[str, float] = {}
    for each in spans:
        if each.state in _ENDED:
            continue
        name = each.cause or each.state
        sums[name] = sums.get(name, 0.0) + each.seconds
    ordered = sorted(sums.items(), key=lambda item: -item[1])
    return ", ".join(f"{span(seconds)} {name}" for name, seconds in ordered if seconds >= 0.5)


def shares(spans: Iterable[Span], by: tuple[str, ...]) -> list[Share]:
    """Sum the time that jobs waited, by "queue", "cause" or "job"; the largest first."""
    groups: dict[tuple[str, ...], list[Span]] = {}
    for each in spans:
        if each.state == WAITS:
            groups.setdefault(tuple(getattr(each, name) for name in by), []).append(each)
    found = [_share(of, several) for of, several in groups.items()]
    return sorted(found, key=lambda each: (-each.seconds, each.of))


def _share(of: tuple[str, ...], spans: list[Span]) -> Share:
    by_job: dict[str, float] = {}
    for each in spans:
        by_job[each.job] = by_job.get(each.job, 0.0) + each.seconds
    longest = max(by_job, key=lambda job: (by_job[job], job))
    return Share(
        of=of, seconds=sum(by_job.values()), jobs=len(by_job), longest=by_job[longest],
        longest_job=longest,
    )  # fmt: skip


def of_queue(spans: Iterable[Span], queue: str) -> Iterator[Span]:
    """Yield the states of the jobs of a queue.

    Raises:
        InputError: no job of the record is in it.
    """
    every = list(spans)
    queues = {each.queue for each in every}
    if queue not in queues:
        raise InputError(
            wanted="a queue with jobs in this record", found=queue, hint=name_hint(queue, queues)
        )
    return (each for each in every if each.queue == queue)
