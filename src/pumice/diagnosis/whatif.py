"""What if: would a job start now, when else, at whose cost, and what does a change change.

Both sides, as it is and as it would be, are played until nothing moves any more, and compared.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pumice.api.annotations import RUN_SECONDS
from pumice.api.decisions import Decisions
from pumice.api.kinds import Manifest
from pumice.api.times import rfc3339
from pumice.api.wording import counted
from pumice.diagnosis.changes import Change, chain
from pumice.diagnosis.cluster_state import ClusterState, group_of, key_of
from pumice.diagnosis.forecast import Forecast, forecast
from pumice.diagnosis.replay import Replay

_DAY = 86400.0
_NAMED = 3
HORIZON_S = 30 * _DAY
"""How far ahead a forecast looks."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked: about a job of the cluster, a new job, changes, or all of them."""

    job: str = ""
    """Name of a job that is there."""
    new_job: Sequence[Manifest] = ()
    """Objects of a job that is not there yet."""
    changes: Sequence[Change] = ()
    default_runtime_s: float | None = None
    """How long pods run that say nothing; None: for ever."""
    horizon_s: float = HORIZON_S


@dataclass(frozen=True, kw_only=True)
class JobAnswer:
    """What becomes of the job; ``state`` is now, after evictions, later, never or running."""

    job: str
    state: str
    sentence: str
    in_s: float | None = None
    """Seconds until it starts."""
    at: str = ""
    after: list[str] = field(default_factory=list)
    """Jobs that have to end before."""
    victims: list[str] = field(default_factory=list)
    places: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Effect:
    """One job on both sides: how many of its pods run and its phase, once all is settled."""

    job: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Everything there is to tell."""

    changes: list[str]
    job: JobAnswer | None
    jobs: list[Effect]
    binds: dict[str, tuple[str, str]]
    """Pod to its nodes before and after where they differ; empty: it has none."""
    evictions: dict[str, tuple[bool, bool]]
    """Pod to whether it is evicted before and after, where that differs."""
    queues: dict[str, dict[str, tuple[str, str]]]
    """Queue to resource to amounts in use before and after, where they differ."""

    def to_dict(self) -> dict[str, Any]:
        """Write all down as plain data."""
        return asdict(self)


@dataclass
class Played:
    """A world played until it settled."""

    replay: Replay
    cycles: list[Decisions]

    @classmethod
    def of(cls, world: ClusterState) -> "Played":
        """Play a world."""
        replay = Replay(world)
        return cls(replay, replay.settle())

    def nodes(self) -> dict[str, str]:
        """Say where pods run."""
        return {
            key_of(pod): str(pod["spec"]["nodeName"])
            for pod in self.replay.pods()
            if (pod.get("spec") or {}).get("nodeName")
            and (pod.get("status") or {}).get("phase") == "Running"
        }

    def evicted(self) -> dict[str, str]:
        """Map evicted pods to whom they made room for."""
        return {p: c.beneficiaries.get(p, "") for c in self.cycles for p in c.evictions}

    def binds(self, own: set[str]) -> dict[str, str]:
        """Say which of some pods got a node."""
        return {p: n for c in self.cycles for p, n in c.binds.items() if p in own}

    def standing(self) -> dict[str, str]:
        """Describe every job: pods that run, and why the rest does not."""
        running: dict[str, int] = {}
        total: dict[str, int] = {}
        for pod in self.replay.pods():
            group = group_of(pod)
            total[group] = total.get(group, 0) + 1
            running[group] = running.get(group, 0) + (
                (pod.get("status") or {}).get("phase") == "Running"
            )
        last = self.cycles[-1]
        return {
            key: _standing(running.get(key, 0), total.get(key, 0), last, key)
            for (kind, key) in self.replay.objects
            if kind == "PodGroup"
        }


def _standing(running: int, total: int, last: Decisions, key: str) -> str:
    state = last.pod_groups.get(key)
    phase = state.phase if state is not None else "not scheduled"
    return f"{running} of {total} run, {phase}"


def what_if(world: ClusterState, question: Question) -> Answer:
    """Answer a question about a world.

    Raises:
        InputError: the question names something that is not there.
    """
    changed = chain(question.changes)(world)
    job = world.find_job(question.job) if question.job else ""
    if question.new_job:
        changed = changed.with_objects(question.new_job)
        job = next(key_of(one) for one in question.new_job if one["kind"] == "PodGroup")
    before = Played.of(world)
    after = before if changed is world else Played.of(changed)
    return Answer(
        changes=[change.text for change in question.changes]
        + ([f"submit {job}"] if question.new_job else []),
        jobs=_effects(before.standing(), after.standing()),
        binds=_differences(before.nodes(), after.nodes(), ""),
        evictions=_evictions(before.evicted(), after.evicted()),
        queues=_queue_changes(before.cycles[-1], after.cycles[-1]),
        job=_job_answer(after, job, question, world.now) if job else None,
    )


def _job_answer(played: Played, job: str, question: Question, now: float) -> JobAnswer:
    """Say what becomes of a job; replays on if it does not start by itself."""
    pods = [pod for pod in played.replay.pods() if group_of(pod) == job]
    own = {key_of(pod) for pod in pods}
    places = played.binds(own)
    victims = [p for p, whom in played.evicted().items() if whom in own or whom == job]
    if places:
        n, nodes = len(places), len(set(places.values()))
        cost = f" after {counted(len(victims), 'eviction')}" if victims else ""
        sentence = f"{job} starts now{cost}: {counted(n, 'pod')} on {counted(nodes, 'node')}"
        waits = sum((pod.get("status") or {}).get("phase") == "Pending" for pod in pods)
        if waits:
            sentence += f"; {waits} more {'waits' if waits == 1 else 'wait'}"
        state = "after evictions" if victims else "now"
        return JobAnswer(
            job=job, state=state, sentence=sentence, in_s=0.0, victims=victims, places=places
        )
    if pods and all((pod.get("status") or {}).get("phase") != "Pending" for pod in pods):
        return JobAnswer(job=job, state="running", sentence=f"{job} has no pending pods")
    why = played.cycles[-1].explanations.get(job, "its queue does not exist")
    seen = forecast(
        played.replay, job, default_s=question.default_runtime_s, horizon_s=question.horizon_s
    )
    return _later(job, why, seen, now)


def _later(job: str, why: str, seen: Forecast, now: float) -> JobAnswer:
    if seen.at is None:
        hint = ""
        if seen.endless:
            hint = (
                f"; {counted(seen.endless, 'running pod')} with no known end "
                f"(annotation {RUN_SECONDS}, or --default-runtime)"
            )
        return JobAnswer(job=job, state="never", sentence=f"{job} does not start: {why}{hint}")
    wait = max(seen.at - now, 0.0)
    return JobAnswer(
        job=job,
        state="later",
        sentence=f"{job} starts in {span(wait)}, once {_names(seen.last)} ended; now: {why}",
        at=rfc3339(seen.at),
        in_s=wait,
        after=seen.ended,
        victims=seen.evictions,
        places=seen.places,
    )


def _names(jobs: Sequence[str]) -> str:
    named = [job or "a pod of no job" for job in jobs]
    if len(named) > _NAMED:
        named = [*named[:_NAMED], f"{len(named) - _NAMED} more"]
    joined = f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0]
    return f"{joined} {'have' if len(jobs) > 1 else 'has'}"


def span(seconds: float) -> str:
    """Write a span of time for people: its two largest units."""
    parts, left = [], round(seconds)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        n, left = divmod(left, size)
        if n:
            parts.append(f"{n} {unit}")
    return " ".join(parts[:2]) or "no time"


def _effects(before: Mapping[str, str], after: Mapping[str, str]) -> list[Effect]:
    return [
        Effect(job=job, before=left, after=right)
        for job, (left, right) in _differences(before, after, "not there").items()
    ]


def _differences(
    before: Mapping[str, str], after: Mapping[str, str], none: str
) -> dict[str, tuple[str, str]]:
    return {
        key: (before.get(key, none), after.get(key, none))
        for key in sorted({*before, *after})
        if before.get(key, none) != after.get(key, none)
    }


def _evictions(before: Iterable[str], after: Iterable[str]) -> dict[str, tuple[bool, bool]]:
    left, right = set(before), set(after)
    return {pod: (pod in left, pod in right) for pod in sorted(left ^ right)}


def _queue_changes(before: Decisions, after: Decisions) -> dict[str, dict[str, tuple[str, str]]]:
    out: dict[str, dict[str, tuple[str, str]]] = {}
    for queue in sorted({*before.queues, *after.queues}):
        found = _differences(before.queues.get(queue, {}), after.queues.get(queue, {}), "0")
        if found:
            out[queue] = found
    return out
