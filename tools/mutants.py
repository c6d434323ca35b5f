"""`make mutants`: do the tests detect a change?  Samples small changes of the code and counts.

Each mutant is one changed expression or statement.  The tests that reach it run, those named after
its file first, quick ones before slow ones, until one fails.  What survives is printed as a diff:
write a test, or see that the change changes nothing.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Final

import pytest

from tools.mutant_trials import OPTIONS, ForkedTrials
from tools.mutations import AREAS, Mutant, files_of, sample

_TESTS: Final = (
    *("tests/unit/framework", "tests/unit/actions", "tests/unit/plugins", "tests/unit/core"),
    *("tests/unit/cache", "tests/unit/binder", "tests/unit/controllers", "tests/unit/cluster"),
    *("tests/unit/serve", "tests/unit/test_scheduler.py", "tests/controllers", "tests/scenarios"),
    *(
        f"tests/properties/test_{name}.py"
        for name in ("evictions", "gangs_with_terms", "placing", "turns")
    ),
)
"""What is quick, and the comparisons of fast ways with slow ones; others can be named."""


class Count:
    """How many mutants were tried, and how many of them were killed."""

    def __init__(self) -> None:
        self.tried = self.killed = 0

    def add(self, mutant: Mutant, killed: bool) -> None:  # noqa: FBT001
        """Count a mutant and print what became of it."""
        self.tried += 1
        self.killed += killed
        word = "killed" if killed else f"SURVIVED\n{mutant.diff()}"
        print(f"{self.tried:4} {mutant.place} {word}", flush=True)  # noqa: T201


def main(arguments: Sequence[str] | None = None) -> int:
    """Sample; return 1 if more than one in twenty survives."""
    parser = argparse.ArgumentParser(prog="mutants")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit-s", type=float, default=60.0, help="CPU time for one mutant")
    parser.add_argument("--area", action="append", help="only these, below src/pumice")
    parser.add_argument("--line", type=int, action="append", help="all changes of these lines")
    parser.add_argument("tests", nargs="*", default=_TESTS)
    chosen = parser.parse_args(arguments)
    files = files_of(chosen.area or AREAS)
    mutants = sample(files, 10**6 if chosen.line else chosen.count, chosen.seed)
    mutants = [one for one in mutants if not chosen.line or one.line in chosen.line]
    count = Count()
    trials = ForkedTrials(mutants, chosen.limit_s, count.add)
    os.environ["COLUMNS"] = "100"
    pytest.main([*OPTIONS, "-s", "-o", "timeout=0", *chosen.tests], plugins=[trials])
    print(f"{count.killed} of {count.tried} mutants killed, seed {chosen.seed}")  # noqa: T201
    return int(count.tried < len(mutants) or count.killed < 0.95 * count.tried)


if __name__ == "__main__":
    sys.exit(main())
