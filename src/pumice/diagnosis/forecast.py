"""When waiting jobs start: time passes in a copy of the cluster until they have their nodes.

The run time of a pod is in its annotation, or that of its pod group, or a default; a pod
without any never ends.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from operator import itemgetter
from typing import Any, Final

from pumice.api.annotations import RUN_SECONDS
from pumice.api.codes import Cause
from pumice.api.decisions import Decisions
from pumice.api.kinds import ENDED_PHASES
from pumice.api.times import rfc3339
from pumice.api.wording import counted, first_of, listing, span, verb
from pumice.clock import Deadline
from pumice.diagnosis.cluster_state import ClusterState, key_of
from pumice.diagnosis.runner import MOST_CYCLES, Moved, Story, Timeline
from pumice.examine.causes import Examiner, session_causes
from pumice.examine.findings import Finding, ObjectRef
from pumice.framework.session import Session
from pumice.scheduler import Observer

REPEATS: Final = 3
"""How often a cluster must return to the same state before it is called a storm."""
_LONGEST_S: Final = 3600.0
"""Longest time from one round to the next; a daily recurrence is not a storm."""
_DAY: Final = 86400.0
HORIZON_S: Final = 30 * _DAY
"""How far ahead a forecast looks."""
FORECAST_CYCLES: Final = 20_000
"""Cycles after which a forecast stops."""
_MOST_ROUNDS: Final = 12
"""Rounds of a storm after which a forecast stops."""
_MOST_TRIES: Final = 12
_PODS: Final = 20_000
"""Times that a forecast is played again without the end of a job: fewer in a large cluster."""
_CYCLES_AGAIN: Final = 200
"""Cycles up to which a forecast may be played again."""
_NAMED: Final = 3
_INSTANTS: Final = {
    "cdp": "pods have had their cooldown",
    "rescheduling": "pods are moved by rescheduling",
    "sla": "a job has waited as long as it may",
    "tdm": "the window of a revocable zone changes",
}
"""Events by which time alone changes the answers of a plugin."""


# Storms: pods that evict each other, so that a cluster never comes to rest


@dataclass(frozen=True, kw_only=True)
class Storm:
    """Which pods evict each other, and how often."""

    every_s: float
    """Seconds from one round to the next."""
    pods: list[str] = field(default_factory=list)
    """Pods that are evicted in each round."""
    jobs: list[str] = field(default_factory=list)
    why: list[str] = field(default_factory=list)
    """A sentence for each pair: which job makes room for which, and by which action."""

    @property
    def text(self) -> str:
        """The storm in one sentence."""
        every = "every cycle" if self.every_s <= 1 else f"every {self.every_s:g} s"
        if len(self.pods) == 1:
            return f"{self.pods[0]} is evicted and comes back {every}"
        return f"{counted(len(self.pods), 'pod')} evict each other {every}"

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain data."""
        return {**asdict(self), "text": self.text}


class StormWatch:
    """Watches a timeline; ``look`` after each step."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._seen: dict[Hashable, list[tuple[float, int]]] = {}
        """State of the cluster to the times at which it occurred, with the evictions before."""
        self.storm: Storm | None = None
        self.rounds = 0
        """Number of rounds of the storm so far."""

    def look(self, evicted: Sequence[str]) -> None:
        """Check whether a cycle that evicts found the same state as an earlier one."""
        if not evicted:
            return
        timeline, story = self._timeline, self._timeline.story
        stand = self._stand(evicted)
        times = self._seen.setdefault(stand, [])
        now = timeline.now
        if times and now - times[-1][0] > _LONGEST_S:
            times.clear()
        times.append((now, len(story.evictions)))
        if len(times) > REPEATS:
            self.rounds = len(times) - 1
            (then, before), (at, after) = times[-2:]
            self.storm = self._describe(at - then, story.evictions[before:after])

    def _stand(self, evicted: Sequence[str]) -> Hashable:
        """Describe where pods run: by name, or by owner where names are generated."""
        places: Counter[tuple[str, str]] = Counter()
        for pod in self._timeline.pods():
            node = pod["spec"].get("nodeName")
            phase = (pod.get("status") or {}).get("phase")
            if node and phase not in ENDED_PHASES:
                places[self._timeline.ident(pod), str(node)] += 1
        return frozenset(places.items()), len(evicted)

    def _describe(self, every_s: float, round_: Sequence[Moved]) -> Storm:
        pods = sorted({each.pod for each in round_})
        jobs = dict.fromkeys(each.job for each in round_)
        why = {
            f"{first_of([m.pod for m in round_ if (m.job, m.whose, m.action) == key], 3)} "
            f"{'makes' if sum((m.job, m.whose, m.action) == key for m in round_) == 1 else 'make'} "
            f"room for {key[1] or 'nobody'} by {key[2] or 'the scheduler'}": None
            for key in dict.fromkeys((m.job, m.whose, m.action) for m in round_)
        }
        return Storm(every_s=every_s, pods=pods, jobs=list(jobs), why=list(why))


# Forecasts


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """When a job starts; ``state`` is now, after evictions, later, never or unknown."""

    state: str
    in_s: float | None = None
    """Seconds until it starts; None if it does not start within sight."""
    at: str = ""
    after: list[str] = field(default_factory=list)
    """Jobs whose pods end before, in order."""
    victims: list[str] = field(default_factory=list)
    """Pods that are evicted for it."""
    places: dict[str, str] = field(default_factory=dict)
    """Pod to node, for the pods it starts with."""
    text: str = ""

    def to_data(self) -> dict[str, Any]:
        """Return all as plain data."""
        return asdict(self)


@dataclass
class Course:
    """A timeline that is played until jobs have started."""

    timeline: Timeline
    horizon_s: float = HORIZON_S
    deadline: Deadline = field(default_factory=Deadline)
    cycles: int = 0
    storms: StormWatch = field(init=False)
    first_bind: dict[str, int] = field(default_factory=dict)
    """Job to the place of its first bind in the story."""
    tries: int = field(init=False)
    """How many more times it may be played again."""
    is_cut: bool = False
    """Whether the time for the answer was up before all that is asked for was seen."""
    observer: Observer | None = None

    def __post_init__(self) -> None:
        self.storms = StormWatch(self.timeline)
        self.tries = min(_MOST_TRIES, _PODS // max(1, len(self.timeline.pods())))

    @property
    def is_over(self) -> bool:
        """Whether nothing more can happen."""
        at = self.timeline.next_at
        return (
            at is None
            or at - self.timeline.start > self.horizon_s
            or self.cycles >= FORECAST_CYCLES
            or self.storms.rounds >= _MOST_ROUNDS
        )

    def step(self) -> None:
        """Play one cycle."""
        timeline, known = self.timeline, len(self.timeline.story.binds)
        decisions = timeline.step(self.observer)
        self.cycles += 1
        self.storms.look(decisions.evictions)
        for place, bound in enumerate(timeline.story.binds[known:], known):
            self.first_bind.setdefault(bound.job, place)

    def settle(self) -> None:
        """Play until nothing changes any more except by the clock, or a storm is seen."""
        while not self.is_over and not self.storms.storm:
            self.is_cut = self.deadline.is_over
            if self.is_cut:
                return
            self.step()
            if self.timeline.is_at_rest:
                return

    def play(self, jobs: Collection[str]) -> None:
        """Play until these jobs have started or nothing more can happen."""
        while not self.is_over and not all(job in self.first_bind for job in jobs):
            self.is_cut = self.deadline.is_over
            if self.is_cut:
                return
            self.step()

    def forecast(self, job: str) -> Forecast:
        """Return when a job started, in the part that was played."""
        if job not in self.first_bind:
            return self._not_seen(job)
        timeline, story = self.timeline, self.timeline.story
        first = self.first_bind[job]
        at = story.binds[first].at
        with_it = takewhile(lambda each: each.at == at, story.binds[first:])
        wait = at - timeline.start
        before = [each for each in story.ends if each.at <= at and each.job != job]
        victims = [m.pod for m in story.evictions if m.whose == job != m.job and m.at <= at]
        last, late_s = self._last_cause(job, at)
        if late_s and not victims:
            text = f"unknown: it {self._starts(job)} once {last}, {span(late_s)} overdue"
            return Forecast(state="unknown", text=text)
        state = "after evictions" if victims else "later" if last and wait else "now"
        return Forecast(
            state=state,
            in_s=wait,
            at=rfc3339(at),
            after=list(dict.fromkeys(each.job for each in before)),
            victims=list(dict.fromkeys(victims)),
            places={each.pod: each.node for each in with_it if each.job == job},
            text=f"it {self._starts(job)} "
            + _when_text(wait, last, victims, self._still_leaving(job, at)),
        )

    def _starts(self, job: str) -> str:
        """Return the verb for a job: one that has pods with nodes has started already."""
        return "starts more pods" if job in self.running else "starts"

    @cached_property
    def running(self) -> set[str]:
        """Jobs that had pods with nodes in the beginning."""
        world = self.timeline.beginning
        return {
            world.title(group)
            for group, pods in world.pods_by_group.items()
            if any(_is_alive(pod) and (pod.get("spec") or {}).get("nodeName") for pod in pods)
        }

    def _first_alive(self, job: str) -> list[str]:
        """Name the pods of a job that ran or waited in the beginning."""
        world = self.timeline.beginning
        pods = world.pods_by_group.get(world.group_titled(job), ())
        return [key_of(pod) for pod in pods if _is_alive(pod)]

    def _still_leaving(self, job: str, at: float) -> list[str]:
        """List the pods evicted for a job that are not gone yet when it starts."""
        story = self.timeline.story
        left = {(each.pod, each.at) for each in (*story.gone, *story.ends) if each.at <= at}
        return [
            each.pod
            for each in story.evictions
            if each.whose == job != each.job
            and each.at <= at
            and not any(pod == each.pod and when >= each.at for pod, when in left)
        ]

    def _last_cause(self, job: str, at: float) -> tuple[str, float]:
        """Describe what happened last before a start, empty if nothing had to.

        With it comes how long ago it should have happened.
        """
        story, start = self.timeline.story, self.timeline.start
        causes: list[tuple[float, str, float]] = [
            (when, _INSTANTS.get(name, f"plugin {name} changes its decision"), 0.0)
            for when, name in story.instants
            if when <= at
        ]
        gone = _latest(each for each in story.gone if start < each.at <= at)
        if gone:
            pods = list(dict.fromkeys(each.pod for each in gone))
            causes.append(
                (gone[0].at, f"{listing(pods, _NAMED)} {verb(len(pods), 'is', 'are')} gone", 0.0)
            )
        ended = _latest(each for each in story.ends if each.at <= at)
        if ended and not any(when > ended[0].at for when, _, _ in causes):
            jobs = self._needed(job, at, list(dict.fromkeys(each.job for each in ended)))
            if ended[0].at > start or self._waits_for(job, at, jobs):
                needed = [each for each in ended if each.job in jobs]
                late_s = max(self.timeline.overdue_s.get(each.pod, 0.0) for each in needed)
                causes.append((ended[0].at, self._ended(needed), late_s))
        if not causes:
            return "", 0.0
        _, text, late_s = max(causes, key=itemgetter(0))
        return text, late_s

    def _ended(self, ended: list[Moved]) -> str:
        """Describe pods that ended together: by their jobs, or as pods if others of it are left."""
        pods = Counter(each.job for each in ended)
        left = self._left(pods, ended[0].at) | {""}
        names = [
            f"{counted(n, 'pod')} of {job or 'no job'}" if job in left else job
            for job, n in pods.items()
        ]
        several = len(names) > 1 or (ended[0].job in left and len(ended) > 1)
        return f"{listing(names, _NAMED)} {'have' if several else 'has'} ended"

    def _left(self, jobs: Collection[str], at: float) -> set[str]:
        """Name the jobs of which pods run or wait at some time, before any is bound then."""
        story = self.timeline.story
        alive = {pod: job for job in jobs for pod in self._first_alive(job)}
        binds = [(each.at, True, each) for each in story.binds if each.at < at]
        gone = [(each.at, False, each) for each in (*story.ends, *story.gone) if each.at <= at]
        moves = [move for move in (*binds, *gone) if move[2].job in jobs]
        for _, is_bind, each in sorted(moves, key=itemgetter(0, 1)):
            if is_bind:
                alive[each.pod] = each.job
            else:
                alive.pop(each.pod, None)
        return {*alive.values()}

    def _needed(self, job: str, at: float, ended: list[str]) -> list[str]:
        """Leave out the jobs without whose end another starts just as soon: it is played again."""
        needed = ended
        if self.cycles > _CYCLES_AGAIN or not 1 < len(ended) <= self.tries:
            return ended
        for each in filter(None, ended):
            rest = [one for one in needed if one != each]
            if not rest:
                break
            if not self._waits_for(job, at, {*ended} - {*rest}):
                needed = rest
        return needed

    def _waits_for(self, job: str, at: float, others: Collection[str]) -> bool:
        """Return whether a job starts later if pods of others do not end: it is played again."""
        if self.cycles > _CYCLES_AGAIN or not self.tries or self.deadline.is_over:
            return False
        self.tries -= 1
        course = Course(self.timeline.again({*others}), at - self.timeline.start)
        course.play([job])
        return job not in course.first_bind

    def _not_seen(self, job: str) -> Forecast:
        timeline = self.timeline
        never = f"it does not {self._starts(job).replace('starts', 'start')}"
        if self.storms.storm is not None:
            text = f"unknown: the cluster does not settle, {self.storms.storm.text}"
            return Forecast(state="unknown", text=text)
        if timeline.stuck and self._starts_without_stuck(job):
            return Forecast(state="unknown", text=f"unknown: {_stuck_text(timeline.stuck)}")
        if self.is_cut:
            seen, within = timeline.now - timeline.start, span(self.deadline.within_s)
            known = f", but {never.removeprefix('it ')} in the next {span(seen)}" if seen else ""
            return Forecast(state="unknown", text=f"unknown: not found within {within}{known}")
        if timeline.next_at is None:
            endless = timeline.endless()
            hint = (
                f"; {counted(endless, 'running pod')} with no known end "
                f"(annotation {RUN_SECONDS}, or --default-runtime)"
                if endless
                else ""
            )
            return Forecast(state="never", text=f"{never} unless something changes{hint}")
        if self.cycles >= FORECAST_CYCLES:
            played = span(timeline.now - timeline.start)
            text = f"unknown: too much happens to look further than {played}"
            return Forecast(state="unknown", text=text)
        return Forecast(state="never", text=f"{never} within {span(self.horizon_s)}")

    def _starts_without_stuck(self, job: str) -> bool:
        """Return whether a job starts if pods go that should have gone: it is played again."""
        if self.cycles > _CYCLES_AGAIN or not self.tries or self.deadline.is_over:
            return False
        self.tries -= 1
        course = Course(self.timeline.again(frees_stuck=True), self.horizon_s)
        course.play([job])
        return job in course.first_bind

    @property
    def storm(self) -> Storm | None:
        """The storm that keeps the cluster from coming to rest."""
        return self.storms.storm


def forecast(
    world: ClusterState,
    job: str,
    *,
    default_s: float | None = None,
    horizon_s: float = HORIZON_S,
    deadline: Deadline | None = None,
) -> Forecast:
    """Return when a waiting job starts; ``job`` is the key of its pod group or Volcano job.

    Raises:
        InputError: a time that a pod runs cannot be read.
    """
    found = forecast_all(world, [job], default_s=default_s, horizon_s=horizon_s, deadline=deadline)
    return found[job]


def forecast_all(
    world: ClusterState,
    jobs: Iterable[str] | None = None,
    *,
    default_s: float | None = None,
    horizon_s: float = HORIZON_S,
    deadline: Deadline | None = None,
) -> dict[str, Forecast]:
    """Return, from one run, when jobs start, by default all that wait.

    Raises:
        InputError: a time that a pod runs cannot be read.
    """
    wanted = list(waiting_jobs(world) if jobs is None else jobs)
    timeline = Timeline(world, default_s=default_s, as_stated=True)
    course = Course(timeline, horizon_s, deadline or Deadline())
    titles = {job: world.title(job) for job in wanted}
    course.play(set(titles.values()))
    return {job: course.forecast(title) for job, title in titles.items()}


def waiting_jobs(world: ClusterState) -> list[str]:
    """List the pod groups that have pods without a node, or none at all although admitted."""
    found = []
    for key in world.groups:
        pods = world.pods_by_group.get(key, [])
        if not pods or any(_is_pending(pod) for pod in pods):
            found.append(key)
    return found


def _is_alive(pod: dict[str, Any]) -> bool:
    return (pod.get("status") or {}).get("phase") not in ENDED_PHASES


def _is_pending(pod: dict[str, Any]) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase in (None, "", "Pending") and not (pod.get("spec") or {}).get("nodeName")


def _when_text(
    wait: float, last: str, victims: Collection[str], still_leaving: Collection[str]
) -> str:
    when = f"in {span(wait)}" if wait else "now"
    if victims:
        # evicted pods are played with their whole grace period, and may end sooner
        when = f"within {span(wait)}" if wait and not still_leaving else when
        text = f"{when}, after {counted(len(set(victims)), 'eviction')}"
        if not still_leaving:
            return text
        pods = list(dict.fromkeys(still_leaving))
        gone = f"{listing(pods, _NAMED)} {verb(len(pods), 'is', 'are')} gone"
        # pods are bound to free room only, so the room of these is not what it lacked
        return f"{text} and before {gone}, whose room it does not need to start"
    return f"{when}, once {last}" if last else when


def _stuck_text(stuck: Mapping[str, float]) -> str:
    pods, ago = listing([*stuck], _NAMED), span(max(stuck.values()))
    return f"it waits for {pods}, which should have gone {ago} ago and may be stuck"


def _latest(moved: Iterable[Moved]) -> list[Moved]:
    """Return what happened last, all of one time."""
    found = list(moved)
    return [each for each in found if each.at == found[-1].at]


# Promises that are not kept


def broken_promises(
    world: ClusterState, examiners: Iterable[Examiner]
) -> Mapping[str, list[Finding]]:
    """Return why jobs never get the places that they are promised, the decisive cause first.

    The cluster is played until all of them have started, or it is at rest.  A promise that may
    still be kept then, in a cluster that does not come to rest, is not broken.
    """
    waiting = {world.title(each.outcome.job): each for each in examiners}
    timeline = Timeline(world, as_stated=True)
    for _ in range(MOST_CYCLES):
        timeline.step()
        for moved in timeline.story.binds:
            waiting.pop(moved.job, None)
        if not waiting or timeline.is_at_rest or timeline.next_at is None:
            break
    else:
        return {}
    later = _Later(world.now, [timeline.group(each.outcome.job) for each in waiting.values()])
    if waiting:
        timeline.look(later)
    return {
        each.outcome.job: [*_taken(each, title, timeline.story), *found]
        for (title, each), found in zip(waiting.items(), later.causes(), strict=True)
    }


@dataclass
class _Later(Observer):
    """Examines jobs in the cluster that is at rest."""

    asked_at: float
    keys: list[str]

    def __post_init__(self) -> None:
        self._examiners = [Examiner(key) for key in self.keys]

    def opened(self, ssn: Session) -> None:
        for each in self._examiners:
            each.opened(ssn)

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        for each in self._examiners:
            each.decided(ssn, decisions)
            late = {pod: s - (ssn.now - self.asked_at) for pod, s in each.outcome.overdue.items()}
            each.outcome = replace(each.outcome, overdue=late)

    def causes(self) -> Iterator[list[Finding]]:
        """Yield the causes of each job."""
        for each in self._examiners:
            yield session_causes(each)


def _taken(examiner: Examiner, title: str, story: Story) -> Iterator[Finding]:
    """Yield the jobs that start on nodes which another job is promised."""
    outcome = examiner.outcome
    nodes = {*outcome.promised.values()}
    taking = [each for each in story.binds if each.node in nodes and each.job != title]
    jobs = list(dict.fromkeys(each.job for each in taking if each.job))
    if not jobs:
        return
    places = sorted({each.node for each in taking if each.job})
    behind = dict(examiner.position.behind) if examiner.position is not None else {}
    key = behind.get(jobs[0], "")
    text = (
        f"its place on {verb(len(places), 'node', 'nodes')} {first_of(places, _NAMED)} is promised,"
        f" but {first_of(jobs, _NAMED)} {verb(len(jobs), 'takes', 'take')} it"
    )
    text += f"; {jobs[0]} goes first: {key}" if key else ""
    about = ObjectRef.of_key("PodGroup", jobs[0])
    yield Finding(Cause.JOB_AHEAD, text, about, {"jobs": jobs, "key": key, "nodes": places})
