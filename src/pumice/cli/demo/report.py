"""The story in words, and as a report with the charts and tables of the simulator."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from pumice.api.objects import PodSpec, from_manifest
from pumice.api.output_files import write_file
from pumice.cache.ingest import Ingest
from pumice.cli.demo.player import NAMESPACE, Chapter, PodEvent, Story, StoryRecord, job_manifest
from pumice.core.snapshot import Snapshot
from pumice.sim.event_log import EventKind, EventLog
from pumice.sim.job_classes import JobClasses
from pumice.sim.job_run import JobRun, Outcome, SimulationCost, State
from pumice.sim.measure import Measures
from pumice.sim.output import DECISION_COLUMNS, decisions, write_table
from pumice.sim.report.page import render
from pumice.sim.workload import JobSpec, TaskSpec


@dataclass(frozen=True)
class ChapterText:
    """One chapter: its title, what is at stake, and the outcome."""

    title: str
    text: str
    lines: tuple[str, ...]


def narrate(played: StoryRecord) -> list[ChapterText]:
    """Describe all chapters."""
    return [
        ChapterText(
            chapter.title,
            chapter.text,
            tuple(_KINDS[chapter.kind](_ChapterRecord(played, chapter))),
        )
        for chapter in played.story.chapters
    ]


def clock(seconds: float) -> str:
    """Write a moment of the story as minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


@dataclass(frozen=True)
class _ChapterRecord:
    """The record, and the chapter that is described."""

    played: StoryRecord
    chapter: Chapter

    @property
    def story(self) -> Story:
        return self.played.story

    @property
    def job(self) -> Mapping[str, Any]:
        return self.chapter.jobs[0]

    def start_of(self, job: str) -> list[PodEvent]:
        """Return the binds of the first moment at which a job got nodes."""
        binds = self.played.of("bind", job=job)
        return [each for each in binds if each.at == binds[0].at]

    def evictions(self) -> list[PodEvent]:
        return self.played.of("evict", whom=self.job["name"])

    def held(self, at: float) -> dict[str, float]:
        return [held for when, held in self.played.held if when < at][-1]


def _gangs(part: _ChapterRecord) -> list[str]:
    lines = [_started(part, job) for job in part.chapter.jobs]
    at = part.start_of(part.job["name"])[0].at
    lines.append(f"queues hold: {_shares(part, at + 1)}")
    return lines


def _started(part: _ChapterRecord, job: Mapping[str, Any]) -> str:
    binds = part.start_of(job["name"])
    nodes = sorted({each.node for each in binds})
    return (
        f"{clock(binds[0].at)}  {job['name']} ({job['queue']}) starts: {len(binds)} of "
        f"{job['pods']} pods at once, at least {job['gang']} needed, on {', '.join(nodes)}"
    )


def _shares(part: _ChapterRecord, at: float) -> str:
    held = part.held(at)
    parts = []
    for queue, deserved in part.story.deserved.items():
        lent = f", {held[queue] - deserved:g} of them borrowed" if held[queue] > deserved else ""
        parts.append(f"{queue} {held[queue]:g} CPUs of {deserved:g} deserved{lent}")
    return "; ".join(parts)


def _waiting(part: _ChapterRecord) -> list[str]:
    name = part.job["name"]
    at, sentence = part.played.waits[name][0]
    waited = part.start_of(name)[0].at - part.chapter.at
    return [
        f"{clock(at)}  {name} waits: {sentence}",
        f"{_started(part, part.job)}, {clock(waited)} after it arrived",
    ]


def _preempt(part: _ChapterRecord) -> list[str]:
    evicted, job, played = part.evictions(), part.job, part.played
    lines = _left(evicted)
    for victim in dict.fromkeys(each.job for each in evicted):
        lost = sum(each.job == victim for each in evicted)
        theirs = part.story.jobs[victim][1]
        low, high = played.priorities[victim], played.priorities[job["name"]]
        lines.append(
            f"why: {victim} and {job['name']} are both in queue {played.queues[victim]}; the first "
            f"has priority {low}, the second {high}; "
            f"{victim} keeps {theirs['pods'] - lost} pods, its gang needs {theirs['gang']}"
        )
    return [*lines, _started(part, job), *_back(part, evicted)]


def _reclaim(part: _ChapterRecord) -> list[str]:
    evicted, job = part.evictions(), part.job
    lines = _left(evicted)
    lines.append(f"why: before that, {_shares(part, evicted[0].at)}")
    after = _started(part, job)
    at = part.start_of(job["name"])[0].at
    return [*lines, after, f"queues hold: {_shares(part, at + 1)}", *_back(part, evicted)]


def _shuffle(part: _ChapterRecord) -> list[str]:
    job = part.job
    evicted = part.played.of("evict", job=job["name"])
    start = part.start_of(job["name"])
    used = job["cpu"] * len(start)
    lines = [f"{_started(part, job)}: {used:g} CPUs requested, {job['uses'] * len(start):g} used"]
    for at in dict.fromkeys(each.at for each in evicted):
        some = [each for each in evicted if each.at == at]
        lines.append(f"{clock(at)}  measured: {_load(part, at)}")
        lines += _left(some)
        lines += _back(part, some)
    last = evicted[-1].at
    later = next(load for when, load in part.played.measured if when > last + 5)
    lines.append(f"afterwards: {_percents(later)}")
    return lines


def _load(part: _ChapterRecord, at: float) -> str:
    return _percents([load for when, load in part.played.measured if when <= at][-1])


def _percents(load: Mapping[str, float]) -> str:
    return ", ".join(f"{node} {percent:g} %" for node, percent in load.items())


def _left(evicted: list[PodEvent]) -> list[str]:
    """Return which pods leave where, for whom: one line for each moment."""
    lines = []
    for at in dict.fromkeys(each.at for each in evicted):
        some = [each for each in evicted if each.at == at]
        whom = f"for {some[0].whom}" if some[0].whom else "to run elsewhere"
        names = ", ".join(f"{_short(each.pod)} ({each.node})" for each in some)
        lines.append(f"{clock(at)}  {some[0].by} evicts {whom}: {names}")
    return lines


def _back(part: _ChapterRecord, evicted: list[PodEvent]) -> list[str]:
    """Return where evicted pods run again."""
    found: dict[tuple[float, str], list[str]] = {}
    for each in evicted:
        later = [one for one in part.played.of("bind", pod=each.pod) if one.at > each.at]
        if later:
            found.setdefault((later[0].at, later[0].node), []).append(_short(each.pod))
    return [
        f"{clock(at)}  {', '.join(pods)} {'runs' if len(pods) == 1 else 'run'} again on {node}"
        for (at, node), pods in sorted(found.items())
    ]


def _short(pod: str) -> str:
    return pod.rpartition("/")[2]


_KINDS: dict[str, Callable[[_ChapterRecord], list[str]]] = {
    "gangs": _gangs,
    "waiting": _waiting,
    "preempt": _preempt,
    "reclaim": _reclaim,
    "shuffle": _shuffle,
}


_EVENTS: Final = {
    "bind": EventKind.BIND,
    "evict": EventKind.EVICT,
    "finish": EventKind.FINISH,
}


def write_report(played: StoryRecord, chapters: Sequence[ChapterText], file: Path) -> list[Path]:
    """Write the page and, beside it, every decision as a table; return both files."""
    measures = Measures("the demo", _outcome(played))
    table = file.with_name(f"{file.stem}-decisions.csv")
    write_table(table, DECISION_COLUMNS, decisions(measures))
    summary = _summary(played.story, measures)
    page = render(
        summary,
        [measures],
        [table.name],
        title=f"The demo: {played.story.title}",
        introduction=_introduction(summary),
        chapters=chapters,
    )
    write_file(file, page)
    return [file, table]


def _introduction(summary: Mapping[str, Any]) -> str:
    trace, period = summary["trace"], summary["options"]["period"]
    return (
        f"{trace['jobs']} jobs on {trace['nodes']} nodes of a cluster inside this process, on a "
        f"virtual clock; a cycle every {period:g} s."
    )


def _summary(story: Story, measures: Measures) -> dict[str, Any]:
    return {
        "trace": {
            "name": "the demo",
            "format": "embedded cluster, virtual clock",
            "jobs": len(story.jobs),
            "nodes": measures.outcome.snapshot.nodes.n,
            "notes": [],
        },
        "options": {"seed": 0, "period": 1.0},
        "configurations": [measures.summary()],
    }


def _outcome(played: StoryRecord) -> Outcome:
    """Lay out what happened as the simulator does."""
    story = played.story
    snapshot = Ingest(Snapshot()).load([from_manifest(one) for one in story.objects])
    specs = [_spec(chapter.at, job) for chapter, job in story.jobs.values()]
    job_classes = JobClasses(snapshot)
    job_classes.learn(specs)
    runs = [JobRun(number, spec, job_classes.of(spec)) for number, spec in enumerate(specs)]
    by_name = {run.spec.name: run for run in runs}
    log = EventLog()
    rows: list[tuple[float, EventKind, JobRun, PodEvent | None]] = [
        (run.spec.arrival, EventKind.ARRIVE, run, None) for run in runs
    ]
    rows += [(one.at, _EVENTS[one.what], by_name[one.job], one) for one in played.pod_events]
    for at, what, run, one in sorted(rows, key=lambda row: row[0]):
        if one is None:
            log.add(at, what, run.number)
        else:
            log.add(at, what, run.number, _number(one.pod), snapshot.nodes.row_of[one.node])
    for run in runs:
        _set_times(run, [one for one in played.pod_events if one.job == run.spec.name])
    cost = SimulationCost(events=len(rows), cycles=played.cycles, decisions=_count(played))
    end = max(one.at for one in played.pod_events)
    return Outcome(runs, log, snapshot, end, cost)


def _set_times(run: JobRun, mine: Sequence[PodEvent]) -> None:
    """Fill in when a job started and ended, and how many of its pods ended or were evicted."""
    bound = 0
    for one in mine:
        bound += {"bind": 1, "evict": -1}.get(one.what, 0)
        if one.what == "bind" and bound >= run.spec.min_member and math.isnan(run.started):
            run.started = one.at
    finished = [one for one in mine if one.what == "finish"]
    run.ended = max(one.at for one in finished)
    run.tally[State.WAITING] -= len(finished)
    run.tally[State.DONE] += len(finished)
    run.evictions = sum(one.what == "evict" for one in mine)


def _count(played: StoryRecord) -> int:
    return sum(one.what != "finish" for one in played.pod_events)


def _spec(at: float, job: Mapping[str, Any]) -> JobSpec:
    template = job_manifest(job)["spec"]["tasks"][0]["template"]
    spec = msgspec.convert(template["spec"], PodSpec)
    task = TaskSpec(spec, job["pods"], float(job["seconds"]), role="worker")
    return JobSpec(
        name=job["name"],
        arrival=float(at),
        tasks=(task,),
        min_member=job["gang"],
        queue=job["queue"],
        namespace=NAMESPACE,
        priority_class=job.get("priority", ""),
    )


def _number(pod: str) -> int:
    return int(pod.rpartition("-")[2])
