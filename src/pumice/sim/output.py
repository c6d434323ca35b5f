"""Files of simulations: every decision, every job, the summary, the report.

The same simulation writes the same bytes; its cost on this machine has a separate file.
"""

import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from pumice.api.output_files import replacing, write_file
from pumice.api.times import rfc3339
from pumice.errors import InputError, Words
from pumice.sim.event_log import DECISIONS, NONE, EventKind
from pumice.sim.inputs import SimulationInput
from pumice.sim.measure import Measures, Summary, are_comparable, timing
from pumice.sim.options import SimulationOptions
from pumice.sim.readers.table_files import write_csv
from pumice.sim.report.data import chart_data
from pumice.sim.report.page import render

SUMMARY: Final = "summary.json"
CHARTS: Final = "charts.json"
"""The data of the report's charts, for the dashboard."""
_MICRO: Final = 1e6
_MOST_EXACT: Final = 2.0**53 / _MICRO
"""Up to here seconds in microseconds are exact whole numbers."""
DECISION_COLUMNS = ("seconds", "decision", "job", "pod", "queue", "node", "waited")
JOB_COLUMNS = (
    *("job", "queue", "user", "pods", "needed", "priority_class", "arrival", "start", "end"),
    *("wait", "run", "walltime", "evictions", "reason"),
)


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write a table as CSV, or as Parquet if that is the file's suffix.

    Raises:
        InputError: Parquet is requested, but pyarrow is not installed.
        OutputError: The file cannot be written.
    """
    if path.suffix == ".parquet":
        _write_parquet(path, columns, rows)
        return path
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        write_csv(text, columns, rows)
        text.detach()  # writes what is left; the file stays open
    return path


def _write_parquet(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    try:
        import pyarrow as pa  # noqa: PLC0415  (an optional library)
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise InputError(
            wanted="pyarrow to write Parquet",
            found=Words("not installed"),
            hint="leave --parquet out",
        ) from None
    lists = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in columns]
    with replacing(path) as file:
        parquet.write_table(pa.table(dict(zip(columns, lists, strict=True))), file)


def decisions(measures: Measures) -> Iterable[tuple[Any, ...]]:
    """Return every decision of the scheduler, in order."""
    runs, names = measures.outcome.runs, measures.outcome.snapshot.nodes.names
    rows = measures.rows(*DECISIONS)
    columns = (
        column[rows].tolist()
        for column in (measures.time, measures.kind, measures.job, measures.task, measures.node)
    )
    labels = {int(what): what.label for what in EventKind}
    for time, what, job, task, node in zip(*columns, strict=True):
        run = runs[job]
        yield (
            _number(time),
            labels[what],
            run.key,
            "" if task == NONE else run.pod_name(task),
            run.spec.queue,
            "" if node == NONE else names[node],
            _number(time - run.spec.arrival),
        )


def jobs(measures: Measures) -> Iterable[tuple[Any, ...]]:
    """Return every job: when it arrived, started and ended."""
    for run, seconds in zip(measures.outcome.runs, measures.run_seconds.tolist(), strict=True):
        spec = run.spec
        yield (
            run.key,
            spec.queue,
            spec.user,
            run.kind.size,
            spec.min_member,
            spec.priority_class,
            _number(spec.arrival),
            _number(run.started),
            _number(run.ended if run.is_finished else math.nan),
            _number(run.started - spec.arrival),
            _number(math.nan if math.isnan(run.started) else seconds),
            "" if spec.walltime is None else _number(spec.walltime),
            run.evictions,
            "" if run.is_finished else run.reason,
        )


def options_data(setup: SimulationInput, options: SimulationOptions, seed: int) -> dict[str, Any]:
    """Write down how a workload was run; its start as a time, also where the trace states it."""
    stated = setup.workload.start if options.start is None else options.start
    start = None if stated is None else rfc3339(stated)
    return {"seed": seed, **asdict(options), "start": start}


def summary(
    setup: SimulationInput, measured: Sequence[Measures], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Sum up all configurations; with several, how each differs from the first."""
    workload = setup.workload
    found = [
        {**measures.summary(), "failures": list(measures.outcome.failures)} for measures in measured
    ]
    snapshot = measured[0].outcome.snapshot
    totals = {snapshot.resources.names[i]: float(measured[0].total[i]) for i in measured[0].shown}
    out: dict[str, Any] = {
        "trace": {
            "name": workload.name,
            "format": workload.format,
            "jobs": len(workload.jobs),
            "nodes": snapshot.nodes.n,
            "offered": totals,
            "notes": list(setup.notes),
        },
        "options": dict(options),
        "configurations": found,
    }
    if len(found) > 1:
        out["differences"] = {
            each["configuration"]: difference(found[0], each) for each in found[1:]
        }
    return out


def difference(before: Summary, after: Summary) -> dict[str, Any]:
    """Subtract the figures of one configuration; None where they are over other jobs."""
    less = _less if are_comparable(before, after) else _no_difference
    return {
        "makespan": less(after["makespan"], before["makespan"]),
        "wait": {name: less(after["wait"][name], before["wait"][name]) for name in after["wait"]},
        "bounded_slowdown": less(
            after["bounded_slowdown"]["mean"], before["bounded_slowdown"]["mean"]
        ),
        "utilisation": {
            name: less(after["utilisation"].get(name), part)
            for name, part in before["utilisation"].items()
        },
        "fairness": less(after["fairness"]["mean"], before["fairness"]["mean"]),
        "evictions": less(after["evictions"], before["evictions"]),
        "finished": after["finished"] - before["finished"],
    }


def _less(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else round(after - before, 6)


def _no_difference(after: float | None, before: float | None) -> None:
    del after, before


def timings(measured: Sequence[Measures]) -> dict[str, Any]:
    """Return the cost of each simulation on this machine."""
    return {each.name: timing(each.outcome.cost) for each in measured}


def write_json(path: Path, content: Any) -> Path:
    """Write plain data for users and programs."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    write_file(path, f"{text}\n")
    return path


def write_compact(path: Path, content: Any) -> Path:
    """Write plain data for programs, on one line."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    write_file(path, f"{text}\n")
    return path


def _number(value: float) -> float | int | str:
    """Write whole numbers as such; missing values are empty."""
    if math.isnan(value):
        return ""
    if abs(value) > _MOST_EXACT:
        rounded = float(np.round(value, 6))
    elif value == (whole := int(value)):
        return whole
    else:  # as NumPy rounds, on plain numbers: that takes a tenth of the time
        rounded = round(value * _MICRO) / _MICRO
    return int(rounded) if rounded.is_integer() else rounded


REPORT: Final = "report.html"


class ResultFiles:
    """The files for configurations with given names; tables end in ``suffix``."""

    def __init__(self, names: Sequence[str], suffix: str = ".csv") -> None:
        self._names = names
        self._suffix = suffix

    def all_files(self) -> list[str]:
        """Return the names of all files."""
        return [REPORT, SUMMARY, CHARTS, "timing.json", *self._tables()]

    def _tables(self) -> list[str]:
        stems = ("decisions", "jobs")
        return [self._table(stem, name) for name in self._names for stem in stems]

    def _table(self, stem: str, name: str) -> str:
        tail = "" if len(self._names) == 1 else f"-{name}"
        return f"{stem}{tail}{self._suffix}"

    def write(self, folder: Path, measured: Sequence[Measures], summary: dict[str, Any]) -> None:
        """Write all of them."""
        for each in measured:
            contents: tuple[tuple[str, Sequence[str], Iterable[Sequence[Any]]], ...] = (
                ("decisions", DECISION_COLUMNS, decisions(each)),
                ("jobs", JOB_COLUMNS, jobs(each)),
            )
            for stem, columns, rows in contents:
                write_table(folder / self._table(stem, each.name), columns, rows)
        write_json(folder / SUMMARY, summary)
        charts = chart_data(measured)
        write_compact(folder / CHARTS, charts)
        write_json(folder / "timing.json", timings(measured))
        page = render(summary, measured, [SUMMARY, *self._tables()], charts=charts)
        write_file(folder / REPORT, page)
