"""Finds recorded cases in files and folders, and maps formats to runners.

A format is recognised by the content of a case.  To add one, add a line to ``FORMATS``.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pumice.errors import InputError
from pumice.scenarios.runner import CaseResult
from pumice.testing.recorded.admission import is_admission_case, run_admission_case
from pumice.testing.recorded.controllers import is_controller_case, run_controller_case
from pumice.testing.recorded.vcctl import is_vcctl_case, run_vcctl_case

Case = Mapping[str, Any]
_SUFFIXES: Final = (".json", ".jsonl")


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of recorded case."""

    name: str
    recognises: Callable[[Case], bool]
    run: Callable[[Case], list[str]]
    """Returns the differences in words; none is a pass."""


FORMATS: Final = (
    Format("controllers", is_controller_case, run_controller_case),
    Format("vcctl", is_vcctl_case, run_vcctl_case),
    Format("admission", is_admission_case, run_admission_case),
)


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """One case and its place."""

    path: Path
    content: Case
    format: Format


def find_cases(paths: Iterable[Path]) -> Iterator[RecordedCase]:
    """Yield the cases of files and folders, in the order of their names.

    Raises:
        InputError: a path that does not exist, or a named file without a case.
    """
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.suffix in _SUFFIXES and p.is_file())
            for file in inside:
                yield from _cases_of(file)
        elif path.is_file():
            found = list(_cases_of(path))
            if not found:
                names = ", ".join(one.name for one in FORMATS)
                raise InputError(wanted="recorded cases", found=str(path), hint=f"read: {names}")
            yield from found
        else:
            raise InputError(wanted="a file or folder of recorded cases", found=str(path))


def run_case(case: RecordedCase) -> CaseResult:
    """Run a case; an exception of the code under test is an error of that case alone."""
    started = time.perf_counter()
    path = case.path.parent / str(case.content.get("name", case.path.stem))
    try:
        differences = case.format.run(case.content)
    except Exception as error:  # noqa: BLE001  # the other cases are still worth running
        text = f"{type(error).__name__}: {error}"
        return CaseResult(path, "error", (text,), time.perf_counter() - started)
    seconds = time.perf_counter() - started
    if differences:
        return CaseResult(path, "failed", tuple(differences), seconds)
    return CaseResult(path, "passed", (), seconds)


def _cases_of(file: Path) -> Iterator[RecordedCase]:
    """Read the cases of a file: one document, or one for each line."""
    text = file.read_text(encoding="utf-8")
    try:
        if file.suffix == ".jsonl":
            contents = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            contents = [json.loads(text)]
    except json.JSONDecodeError as error:
        raise InputError(wanted="JSON", found=str(file), hint=str(error)) from None
    for content in contents:
        known = (one for one in FORMATS if isinstance(content, dict) and one.recognises(content))
        format_ = next(known, None)
        if format_ is not None:
            yield RecordedCase(file, content, format_)
