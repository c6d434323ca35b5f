"""A record under another configuration: first how well the old one is reproduced, then both."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from typing import Any, Final

import msgspec
import numpy as np

from pumice.api.annotations import HOSTNAME
from pumice.api.conf import SchedulerConf, parse_conf
from pumice.api.objects import Node
from pumice.api.wording import signed_span
from pumice.errors import InputError, Words
from pumice.records.history import History
from pumice.replay.recorded_workload import RecordedWorkload, recorded_workload
from pumice.sim.event_log import EventKind
from pumice.sim.figures import figures_of
from pumice.sim.inputs import simulate
from pumice.sim.job_run import JobRun, Outcome
from pumice.sim.measure import Measures
from pumice.sim.statistics import Interval, interval, paired

ENOUGH: Final = 0.8
"""Part of the jobs that must start about when they did, for an answer to be trusted."""
_NEAR_S, _NEAR = 10.0, 0.1
_NAMED: Final = 5
"""Jobs that gain or lose most, which are named."""


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """The old configuration simulated, against what really happened."""

    jobs: int
    near: int
    """Jobs that start within ten seconds or a tenth of their wait of when they did."""
    mean_error_s: float
    """How far off the start of a job is."""
    p95_error_s: float
    bound_s: float
    """The mean wait is simulated to within so many seconds, with 95 %."""
    pods: int
    same_nodes: int
    """Pods that get the node that they had."""
    like_nodes: int
    """Pods that get it, or one of equal size and labels: between those, chance decides."""
    evictions: int
    simulated_evictions: int
    same_evictions: int
    """Evictions of the pods that were evicted."""
    unknown: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """The part of the jobs that start about when they did."""
        return self.near / self.jobs if self.jobs else 1.0

    @property
    def is_trusted(self) -> bool:
        """Whether enough of them do."""
        return self.share >= ENOUGH


@dataclass(frozen=True, kw_only=True)
class GroupChange:
    """What the jobs of a queue or namespace gain or lose."""

    name: str
    jobs: int
    old_wait_s: float
    new_wait_s: float
    change: Interval
    """Seconds that a job waits longer under the new one."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Old against new, on the jobs of a record."""

    fidelity: Reproduced
    old: dict[str, float]
    """Figures by name: ``wait.p99``, ``slowdown.mean``, ``utilisation.cpu``, ``evictions``, …"""
    new: dict[str, float]
    wait: Interval
    """Seconds that a job waits longer under the new one."""
    slowdown: Interval
    earlier: int
    later: int
    same: int
    queues: list[GroupChange]
    namespaces: list[GroupChange]
    winners: dict[str, float]
    """Jobs that start earliest by comparison, with the seconds."""
    losers: dict[str, float]
    only_old: list[str]
    """Jobs that never start under the new one."""
    only_new: list[str]
    """Jobs that never start under the old one."""

    @property
    def is_clear(self) -> bool:
        """Whether waits differ by more than chance and the error of the simulation."""
        least = max(self.wait.low, -self.wait.high)
        return least > self.fidelity.bound_s

    def named(self) -> Iterator[str]:
        """Yield in words which jobs gain and lose most."""
        for words, names in (
            ("never start under the new one", self.only_old),
            ("start under the new one only", self.only_new),
        ):
            if names:
                more = ", …" if len(names) > _NAMED else ""
                yield f"{len(names)} {words}: {', '.join(names[:_NAMED])}{more}"
        for words, jobs in (("most earlier", self.winners), ("most later", self.losers)):
            if jobs:
                named = ", ".join(f"{job} {signed_span(seconds)}" for job, seconds in jobs.items())
                yield f"{words}: {named}"

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain data."""
        return {**asdict(self), "trusted": self.fidelity.is_trusted, "clear": self.is_clear}


@dataclass(frozen=True)
class Played:
    """A record simulated under two configurations."""

    recorded: RecordedWorkload
    old: Measures
    new: Measures

    def compared(self) -> Comparison:
        """Compare both, job by job."""
        pair = paired(self.old, self.new)
        waits = both_waits(self.old.outcome, self.new.outcome)
        changes = {key: new - old for key, (_, old, new) in waits.items()}
        lost = _waits(self.old.outcome).keys() - waits
        gained = _waits(self.new.outcome).keys() - waits
        titles = self.recorded.titles
        ordered = sorted(((titles[key], each) for key, each in changes.items()), key=itemgetter(1))
        moved = {"jobs-earlier": float(pair.earlier), "jobs-later": float(pair.later)}
        return Comparison(
            fidelity=reproduced(self.recorded, self.old.outcome),
            old={**figures_of(self.old), **dict.fromkeys(moved, 0.0)},
            new={**figures_of(self.new), **moved},
            wait=pair.wait,
            slowdown=pair.bounded_slowdown,
            earlier=pair.earlier,
            later=pair.later,
            same=pair.same,
            queues=by_group(waits, lambda run: run.spec.queue),
            namespaces=by_group(waits, lambda run: run.spec.namespace),
            winners={key: seconds for key, seconds in ordered[:_NAMED] if seconds < 0},
            losers={key: seconds for key, seconds in ordered[::-1][:_NAMED] if seconds > 0},
            only_old=[titles[run.key] for run in self.old.outcome.runs if run.key in lost],
            only_new=[titles[run.key] for run in self.new.outcome.runs if run.key in gained],
        )


def play(
    history: History,
    new: SchedulerConf,
    since: float | None = None,
    until: float | None = None,
    *,
    old: SchedulerConf | None = None,
    seed: int | None = None,
) -> Played:
    """Simulate the jobs of a record under the recorded configuration and under another.

    Raises:
        InputError: the record has no jobs, or no configuration and none is named.
    """
    recorded = recorded_workload(history, since, until)
    first = recorded_conf(history, until) if old is None else old
    sides = {"old": first, "new": new}
    before, after = (
        Measures(name, simulated(recorded, conf, seed)) for name, conf in sides.items()
    )
    return Played(recorded, before, after)


def recorded_conf(history: History, until: float | None) -> SchedulerConf:
    """Return the configuration that the scheduler had.

    Raises:
        InputError: the record does not show it.
    """
    conf = history.at(until).conf
    if conf is None:
        raise InputError(
            wanted="the configuration of the scheduler in the record",
            found=Words("none"),
            file=str(history.folder),
            hint="name it with --old-conf",
        )
    return parse_conf(conf.text, source=conf.source)


def simulated(recorded: RecordedWorkload, conf: SchedulerConf, seed: int | None = None) -> Outcome:
    """Run the jobs of a record under a configuration; by default with the scheduler's own seed."""
    seed = recorded.seed if seed is None else seed
    return simulate(recorded.setup, conf, recorded.options, seed=seed)


def _waits(outcome: Outcome) -> dict[str, float]:
    return {
        run.key: run.started - run.spec.arrival
        for run in outcome.runs
        if not math.isnan(run.started)
    }


def both_waits(before: Outcome, after: Outcome) -> dict[str, tuple[JobRun, float, float]]:
    """Return the jobs that start under both, with the seconds that they wait."""
    old, new = _waits(before), _waits(after)
    return {
        run.key: (run, old[run.key], new[run.key])
        for run in before.runs
        if run.key in old and run.key in new
    }


def by_group(
    waits: Mapping[str, tuple[JobRun, float, float]], name: Callable[[JobRun], str]
) -> list[GroupChange]:
    """Sum up by a name of jobs; those that lose most come first."""
    groups: dict[str, list[tuple[float, float]]] = {}
    for run, old, new in waits.values():
        groups.setdefault(name(run), []).append((old, new))
    found = [
        GroupChange(
            name=of,
            jobs=len(pairs),
            old_wait_s=float(np.mean([old for old, _ in pairs])),
            new_wait_s=float(np.mean([new for _, new in pairs])),
            change=interval([new - old for old, new in pairs]),
        )
        for of, pairs in groups.items()
    ]
    return sorted(found, key=lambda each: (-each.change.mean, each.name))


def reproduced(recorded: RecordedWorkload, outcome: Outcome) -> Reproduced:
    """Compare the old configuration, simulated, with what happened."""
    there = _waits(outcome)
    arrivals = {run.key: run.spec.arrival for run in outcome.runs}
    errors, near = [], 0
    for key, really in recorded.waits.items():
        if really is None:  # it waited to the end, or until it was deleted
            began = arrivals[key] + there.get(key, math.inf)
            near += began > recorded.last[key] - _NEAR_S
            continue
        error = there.get(key, math.inf) - really
        near += abs(error) <= max(_NEAR_S, _NEAR * really)
        if key in there:
            errors.append(error)
    off = np.abs(errors) if errors else np.zeros(1)
    mean = interval(errors)
    bound = max(abs(mean.low), abs(mean.high)) if len(errors) > 1 else float(off.max())
    nodes, kinds, evicted = _first_nodes(outcome), _kinds(recorded), _evicted(outcome)
    pairs = [(node, nodes.get(pod, "")) for pod, node in recorded.nodes.items()]
    return Reproduced(
        jobs=len(recorded.waits),
        near=near,
        mean_error_s=float(off.mean()),
        p95_error_s=float(np.percentile(off, 95)),
        bound_s=bound,
        pods=len(recorded.nodes),
        same_nodes=sum(there == here for there, here in pairs),
        like_nodes=sum(kinds.get(there, there) == kinds.get(here, here) for there, here in pairs),
        evictions=sum(recorded.evicted.values()),
        simulated_evictions=sum(evicted.values()),
        same_evictions=sum((evicted & Counter(recorded.evicted)).values()),
        unknown=recorded.unknown,
    )


def _first_nodes(outcome: Outcome) -> dict[str, str]:
    """Return the node that each pod got first."""
    log, names = outcome.log, outcome.snapshot.nodes.names
    found: dict[str, str] = {}
    columns = zip(
        log.kind.tolist(), log.job.tolist(), log.task.tolist(), log.node.tolist(), strict=True
    )
    for kind, job, task, node in columns:
        if kind == EventKind.BIND:
            found.setdefault(outcome.runs[job].pod_key(task), names[node])
    return found


def _kinds(recorded: RecordedWorkload) -> dict[str, bytes]:
    """Return of each node what a scheduler sees of it besides its name."""
    changed = (each.thing for each in recorded.workload.changes)
    return {
        node.metadata.name: msgspec.json.encode(
            (
                sorted(node.status.allocatable.items()),
                sorted(each for each in node.metadata.labels.items() if each[0] != HOSTNAME),
            )
        )
        for node in (*recorded.cluster, *changed)
        if isinstance(node, Node)
    }


def _evicted(outcome: Outcome) -> Counter[str]:
    return Counter({run.pod_key(task): n for run in outcome.runs for task, n in run.reruns.items()})
