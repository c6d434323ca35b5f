"""Compare two commits in one run: ``python -m bench.compare COMMIT [--only TEXT] [--rounds N]``.

Each commit decides in a process of its own.  Both load the same clusters and are then asked in
turn, so that a busy machine slows both alike; the best of several rounds counts, in CPU time.
"""

import argparse
import io
import json
import math
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Final, Self

from bench.clusters import Case
from bench.run import GRID, SPECIAL, Bench

_HERE: Final = "the working tree"
_ENOUGH_S: Final = 0.2
"""Minimum seconds of one measurement; short cycles are run several times."""


class Contender:
    """A process that loads cases and runs cycles with one checkout, its own benchmark included."""

    def __init__(self, checkout: Path) -> None:
        command = [sys.executable, "-m", "bench.compare", "--contender"]
        self._process = subprocess.Popen(  # noqa: S603  # this very module
            command,
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": str(checkout / "src")},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def ask(self, question: str) -> float:
        """Load a case (its fields in JSON), or run it several times; return CPU seconds."""
        asked, answered = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answered is not None
        print(question, file=asked, flush=True)
        return float(answered.readline())


def serve() -> None:
    """Answer questions, one a line."""
    bench: Bench | None = None
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of a plugin is not an answer
    for line in sys.stdin:
        started = time.process_time()
        if line.startswith("{"):
            bench = Bench(Case(**json.loads(line)))
        elif bench is not None:
            for _ in range(int(line)):
                bench.run()
        print(time.process_time() - started, file=answers, flush=True)


def compare(case: Case, contenders: tuple[Contender, Contender], rounds: int) -> list[float]:
    """Return the CPU seconds of one cycle with each commit."""
    for each in contenders:
        each.ask(json.dumps(asdict(case)))
    first = max(each.ask("1") for each in contenders)
    times = max(1, math.ceil(_ENOUGH_S / first))
    best = [math.inf, math.inf]
    for _ in range(rounds):
        for i, each in enumerate(contenders):
            best[i] = min(best[i], each.ask(str(times)) / times)
    return best


def unpack(commit: str, folder: Path) -> Path:
    """Write a commit into a folder: names inside the sources change from commit to commit."""
    command = ["git", "archive", commit, "src", "bench", "examples"]
    archive = subprocess.run(command, check=True, capture_output=True).stdout  # noqa: S603
    with tarfile.open(fileobj=io.BytesIO(archive)) as sources:
        sources.extractall(folder, filter="data")
    return folder


def main() -> None:
    """Print a line for each case: milliseconds of one cycle before and after, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="?", default="HEAD", help=f"what {_HERE} is compared with")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--contender", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.contender:
        serve()
        return
    cases = [case for case in (*SPECIAL, *GRID) if args.only in case.name]
    print(f"{'case':42} {args.commit[:12]:>12} {'now':>10} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder:
        before = unpack(args.commit, Path(folder))
        with Contender(before) as old, Contender(Path.cwd()) as new:
            for case in cases:
                a, b = compare(case, (old, new), args.rounds)
                print(f"{case.name:42} {1000 * a:12.3f} {1000 * b:10.3f} {a / b:6.2f}", flush=True)


if __name__ == "__main__":
    main()
