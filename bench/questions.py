"""Time questions about a full cluster: ``python -m bench.questions [--nodes N] [--gangs N]``.

Each answer is verified before it counts: the job waits, its forecast and its remedies are there if
they were asked for, and all waiting jobs are listed.  Printed are the CPU seconds and the peak of
memory of each command, the start of the process included, for both configurations, beside the goal:
what a question may take more than `run`.
"""

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.checkouts import COMMAND, HERE, environment
from bench.full_cluster import CONFIGURATIONS, FullCluster

MOST_MB: Final = 300
LINT_JOBS: Final = 1000


@dataclass(frozen=True)
class Question:
    """A command, what must be in its answer, and how many seconds more than `run` it may take."""

    name: str
    words: Sequence[str]
    holds: Callable[[Any], bool]
    goal_s: float


def questions(file: Path, job: str, gangs: int) -> list[Question]:
    """Return the questions about a cluster in a file."""
    about = ("-f", str(file), "-o", "json")
    one = ("explain", job, *about)
    return [
        Question("cause", (*one, "--no-forecast", "--no-unblock"), lambda a: bool(a["causes"]), 1),
        Question("forecast", (*one, "--no-unblock"), lambda a: bool(a["forecast"]), 3),
        Question("remedies", (*one, "--no-forecast"), lambda a: a["tried"] > 1, 6),
        Question("all waiting", ("explain", *about), lambda a: len(a) == gangs, 10),
    ]


def run(words: Sequence[str]) -> tuple[bytes, float, float]:
    """Run a command; return its output, its CPU seconds and its peak of memory in MB."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(  # noqa: S603
            [*COMMAND, *words], stdout=output, stderr=subprocess.DEVNULL, env=environment(HERE)
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, f"{' '.join(words)}: failed"
        output.seek(0)
        return output.read(), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def measure(folder: Path, conf: str, args: argparse.Namespace) -> None:
    """Ask all questions about a cluster under a configuration, and print a line for each."""
    file = FullCluster(args.nodes, args.gangs).written(folder / "cluster.json", conf)
    job = f"bench/wait{args.gangs // 2:05d}"
    _, least, peak = min((run(("run", str(file), "-o", "json")) for _ in range(2)), key=_cpu)
    print(f"  {'run':12} {least:7.2f} s {'':16} {peak:5.0f} MB")
    for each in questions(file, job, args.gangs):
        text, cpu, peak = run(each.words)
        assert each.holds(json.loads(text)), f"{each.name}: the answer lacks something"
        more, goal = cpu - least, f"(goal {each.goal_s:g})"
        print(f"  {each.name:12} {cpu:7.2f} s {more:+6.2f} {goal:9} {peak:5.0f} MB", flush=True)


def _cpu(found: tuple[bytes, float, float]) -> float:
    return found[1]


def lint(folder: Path) -> None:
    """Check many jobs, and print a line."""
    container = {
        "name": "main",
        "image": "busybox:1",
        "resources": {"requests": {"cpu": 1, "memory": "1500Mi"}},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "worker", "replicas": 4, "template": template}
    items = [
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": f"job-{each}", "namespace": "default"},
            "spec": {"minAvailable": 4, "schedulerName": "volcano", "tasks": [task]},
        }
        for each in range(LINT_JOBS)
    ]
    file = folder / "jobs.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    text, cpu, peak = run(("lint", str(file)))
    assert b"no problems" in text, "lint: found problems"
    print(f"lint of {LINT_JOBS} jobs: {cpu:.2f} s (goal 2), {peak:.0f} MB")


def main() -> None:
    """Ask all questions under both configurations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--gangs", type=int, default=1000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for conf, text in CONFIGURATIONS.items():
            print(f"{conf}: CPU, more than run, peak of memory (goal {MOST_MB} MB)")
            measure(Path(name), text, args)
        lint(Path(name))


if __name__ == "__main__":
    main()
