"""Compare first fit, strict, EASY and conservative backfilling on public logs: tables and a chart.

Run as ``python examples/notebooks/backfilling.py LOGS [--chart FILE.svg]``; LOGS is a folder with
logs of the Parallel Workloads Archive and the list of Philly's jobs.  The tables are those of the
page docs/backfilling.md; the notebook beside it makes them, too.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import pumice
from pumice.sim.inputs import read_workload

PLAIN = """
actions: "enqueue, allocate"
tiers:
- plugins: [{}{{name: gang}}, {{name: predicates}}]
"""
MODE = "{{name: reservation, arguments: {{reservation.mode: {}}}}}, "
POLICIES = {
    "first fit": PLAIN.format(""),
    "strict": PLAIN.format(MODE.format("strict")),
    "EASY": PLAIN.format(MODE.format("easy")),
    "conservative": PLAIN.format(MODE.format("conservative")),
}
HEAD = (
    *("policy", "mean wait", "99 % wait", "longest wait", "slowdown"),
    *("narrow", "wide", "short", "long", "in use"),
)


@dataclass(frozen=True)
class Log:
    """A log, how many of its jobs are run, how much faster they come, and on how many nodes."""

    file: str
    jobs: int
    nodes: int
    speed: float = 1.0
    gpu: int = 0
    """Of a node; 0: nodes have one CPU."""


LOGS = {
    "NASA, twice its load": Log("nasa_ipsc_1993.swf.gz", 1000, 128, speed=2),
    "HPC2N": Log("hpc2n_slice.swf.gz", 1000, 240),
    "LCG, fewer nodes": Log("lcg_2005.swf.gz", 1500, 120),
    "Philly, gangs": Log("philly.csv.gz", 500, 40, gpu=8),
}


def rows_of(log: Log, folder: Path, part: float) -> Iterator[dict[str, Any]]:
    """Read jobs; those whose users asked for no time, or for too little, ask for their run time."""
    workload = read_workload(folder / log.file)
    for job in workload.jobs[: int(log.jobs * part)]:
        run = max(1, round(job.run_seconds))
        amounts: dict[str, Any] = {"gpu": 1} if log.gpu else {"cpu": 1}
        yield {
            "name": job.name,
            "arrival": round(job.arrival / log.speed),
            "run": run,
            "walltime": max(run, round(job.walltime or run)),
            "pods": job.size,
            **amounts,
        }


def study(log: Log, folder: Path, part: float) -> Any:
    """Run a log under each policy."""
    amounts = {"cpu": 64, "gpu": log.gpu} if log.gpu else {"cpu": 1}
    jobs = pumice.workload(rows_of(log, folder, part))
    return pumice.compare(jobs, POLICIES, pumice.nodes(log.nodes, **amounts))


def span(seconds: float) -> str:
    """Write a time in the unit that suits it."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def columns(result: Any) -> dict[str, Any]:
    """Return waits, runs, widths and bounded slowdowns of jobs."""
    found = {name: np.array([row[name] for row in result.jobs]) for name in ("wait", "run", "pods")}
    slow = (found["wait"] + found["run"]) / np.maximum(found["run"], 10)
    return found | {"slowdown": np.maximum(slow, 1)}


def tables(name: str, found: Any) -> str:
    """Write the tables of a log."""
    lines = [
        f"### {name}",
        "",
        f"| {' | '.join(HEAD)} |",
        "|" + "---|" * len(HEAD),
    ]
    for policy, result in found.items():
        jobs = columns(result)
        wide = jobs["pods"] > np.median(jobs["pods"])
        long = jobs["run"] > np.median(jobs["run"])
        parts = (jobs["slowdown"][each] for each in (~wide, wide, ~long, long))
        slow = [each.mean() if len(each) else np.nan for each in parts]
        waits = jobs["wait"].mean(), np.percentile(jobs["wait"], 99), jobs["wait"].max()
        used = max(result.summary["utilisation"].values())
        cells = [policy, *map(span, waits), f"{jobs['slowdown'].mean():.1f}"]
        cells += [*(f"{x:.1f}" for x in slow), f"{100 * used:.1f} %"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def chart(studies: dict[str, Any], file: Path) -> None:
    """Draw which part of the jobs waits longer than some time."""
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("svg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    plt.rcParams.update({"svg.hashsalt": "pumice", "font.size": 9})
    figure, axes = plt.subplots(1, len(studies), figsize=(3.1 * len(studies), 3.2))
    for axis, (name, found) in zip(np.atleast_1d(axes), studies.items(), strict=True):
        for policy, result in found.items():
            jobs = columns(result)
            waits = np.sort(np.maximum(jobs["wait"], 1))
            axis.step(waits, 1 - np.arange(len(waits)) / len(waits), label=policy, where="post")
        axis.set(title=name, xscale="log", yscale="log", xlabel="wait, s")
    np.atleast_1d(axes)[0].set_ylabel("part of jobs that waits longer")
    np.atleast_1d(axes)[0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})


def main() -> int:
    """Run all studies."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logs", type=Path, help="a folder with the logs")
    parser.add_argument("--part", type=float, default=1.0, help="the part of the jobs to run")
    parser.add_argument("--only", default="", help="logs whose name contains this")
    parser.add_argument("--chart", type=Path, help="where to draw the waits, an SVG file")
    args = parser.parse_args()
    studies = {}
    for name, log in LOGS.items():
        if args.only in name:
            studies[name] = study(log, args.logs, args.part)
            print(tables(name, studies[name]), flush=True)
    if args.chart and studies:
        chart(studies, args.chart)
    return 0


if __name__ == "__main__":
    sys.exit(main())
