"""``python -m pumice.testing.recorded [--junit FILE] PATH…``: run recorded cases and report."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pumice.errors import InputError
from pumice.scenarios.runner import CaseResult, write_junit
from pumice.testing.recorded.formats import find_cases, run_case


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases named on the command line; 1 when one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m pumice.testing.recorded")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="also write JUnit XML")
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="file or folder")
    options = parser.parse_args(arguments)
    results: list[CaseResult] = []
    try:
        for case in find_cases(options.paths):
            results.append(run_case(case))
            _report(results[-1])
    except InputError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    if options.junit:
        write_junit(results, options.junit)
    failed = sum(result.outcome != "passed" for result in results)
    print(f"{len(results) - failed} passed, {failed} failed")  # noqa: T201
    return 1 if failed else 0


def _report(result: CaseResult) -> None:
    """Print a case that did not pass, with its differences."""
    if result.outcome != "passed":
        print(f"{result.outcome.upper()} {result.path}")  # noqa: T201
        for line in result.differences:
            print(f"    {line}")  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
