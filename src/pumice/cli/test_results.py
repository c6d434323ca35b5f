"""How `pumice test` prints results, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pumice.api.wording import counted
from pumice.cli.printing import Row, echo, print_data, print_summary

if TYPE_CHECKING:
    from pumice.scenarios.mutating import MutationResult
    from pumice.scenarios.runner import CaseResult


_SHOWN_DIFFERENCES = 10


def sum_up(results: list[CaseResult], skipped: int, apart: str, output: str) -> int:
    """Print the results; return the exit code, 2 if nothing could be run."""
    passed, failed, errors = _counts(results)
    if output == "table":
        print_summary(_by_folder(results))
    else:
        print_data(_to_data(results), output)
    if skipped:
        echo(f"{skipped} other files in these folders are not scenarios", err=True)
    if output == "table":
        more = f", {counted(errors, 'error')}" if errors else ""
        echo(f"{passed} passed, {failed} failed{more}")
    if apart:
        echo(f"note: {apart}", err=True)
    if errors == len(results):
        return 2
    return 0 if passed == len(results) else 1


def _counts(results: Sequence[CaseResult]) -> list[int]:
    """Count the cases that passed, that failed and that could not be run."""
    return [
        sum(result.outcome == outcome for result in results)
        for outcome in ("passed", "failed", "error")
    ]


def _to_data(results: list[CaseResult]) -> dict[str, Any]:
    cases = [
        {
            "path": str(result.path),
            "outcome": result.outcome,
            "differences": list(result.differences),
            "seconds": round(result.seconds, 4),
            "warnings": list(result.warnings),
            **_details(result),
        }
        for result in results
    ]
    passed, failed, errors = _counts(results)
    return {"passed": passed, "failed": failed, "errors": errors, "cases": cases}


def _details(result: CaseResult) -> dict[str, Any]:
    """Return which case of several it is, and what one that did not pass tells besides."""
    words = {"case": result.words} if result.words else {}
    if result.outcome == "passed":
        return words
    return {**words, "name": result.name, "failures": [each.to_data() for each in result.failures]}


def print_failure(result: CaseResult) -> None:
    """Print the warnings of a case and, if it did not pass, what is wrong and why."""
    for warning in result.warnings:
        echo(f"warning: {warning}", err=True)
    if result.outcome == "passed":
        return
    name = f": {result.name}" if result.name else ""
    echo(f"{'FAIL ' if result.outcome == 'failed' else 'ERROR'} {result.path}{name}")
    told: set[str] = set()
    reasons = [each.because for each in result.failures] or [()] * len(result.differences)
    shown = zip(result.differences[:_SHOWN_DIFFERENCES], reasons, strict=False)
    for difference, because in shown:
        echo(f"      {difference}")
        for reason in because:
            if reason not in told:
                echo(f"        because {reason}")
        told.update(because)
    hidden = len(result.differences) - _SHOWN_DIFFERENCES
    if hidden > 0:
        echo(f"      … and {hidden} more")


def _by_folder(results: Sequence[CaseResult]) -> Iterator[Row]:
    """Sum up the results of each folder."""
    folders: dict[Path, list[CaseResult]] = {}
    for result in results:
        folders.setdefault(result.path.parent, []).append(result)
    for folder, inside in folders.items():
        numbers = _counts(inside)
        seconds = sum(result.seconds for result in inside)
        cells = (str(folder), *map(str, numbers), f"{seconds:.2f} s")
        yield Row(cells, is_bad=any(numbers[1:]))


def print_mutants(results: Iterable[MutationResult], output: str) -> int:
    """Print the changes that no test notices as they are found; return the exit code."""
    every: list[MutationResult] = []
    for each in results:
        every.append(each)
        if each.noticed_by is None and output == "table":
            echo(f"{each.conf}: line {each.mutant.line}: {each.mutant.change}: no test notices")
    missed = [each for each in every if each.noticed_by is None]
    if output != "table":
        data = {
            "noticed": len(every) - len(missed),
            "unnoticed": len(missed),
            "changes": [each.to_data() for each in every],
        }
        print_data(data, output)
    else:
        echo(f"{len(every) - len(missed)} of {counted(len(every), 'change')} noticed")
    return 1 if missed else 0
