"""The story as a report: the charts and tables of the simulator, with the chapters on top."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from pumice.api.objects import PodSpec, from_manifest
from pumice.api.output_files import write_file
from pumice.cache.ingest import Ingest
from pumice.cli.demo.narration import ChapterText
from pumice.cli.demo.player import PodEvent, StoryRecord
from pumice.cli.demo.story import NAMESPACE, Story, job_manifest
from pumice.core.snapshot import Snapshot
from pumice.sim.event_log import EventKind, EventLog
from pumice.sim.job_classes import JobClasses
from pumice.sim.job_run import JobRun, Outcome, SimulationCost, State
from pumice.sim.measure import Measures
from pumice.sim.output import DECISION_COLUMNS, decisions, write_table
from pumice.sim.report.page import render
from pumice.sim.workload import JobSpec, TaskSpec

_KINDS: Final = {"bind": EventKind.BIND, "evict": EventKind.EVICT, "finish": EventKind.FINISH}


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
    rows += [(one.at, _KINDS[one.what], by_name[one.job], one) for one in played.pod_events]
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
