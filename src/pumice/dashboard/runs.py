"""Runs of `pumice sim`, read from the folders that they wrote."""

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from pumice.api.text_files import read_text
from pumice.dashboard.view import Document
from pumice.errors import InputError, Words
from pumice.sim.output import CHARTS, SUMMARY
from pumice.sim.readers.table_files import unguarded

_MOST_JOBS: Final = 20_000
"""Jobs of a run that are sent to a page."""


@dataclass(frozen=True)
class Run:
    """One configuration of one folder."""

    folder: Path
    name: str
    """Its folder, relative to the given one."""
    configuration: str
    number: int
    """Its configuration in that folder."""

    @property
    def id(self) -> str:
        """Its name in addresses."""
        return f"{self.name}:{self.configuration}"


class RunLibrary:
    """Folders of runs, read again whenever they are needed."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Look in folders, and in the folders inside them.

        Raises:
            InputError: one of them is not a folder.
        """
        for folder in folders:
            if not folder.is_dir():
                raise InputError(wanted="a folder of runs", found=Words("none"), file=str(folder))
        self._folders = folders

    def runs(self) -> list[Run]:
        """List all runs, by name."""
        found = []
        for folder in self._run_folders():
            confs = _read(folder / SUMMARY)["configurations"]
            found += [
                Run(folder, folder.name, str(each["configuration"]), number)
                for number, each in enumerate(confs)
            ]
        return sorted(found, key=lambda run: run.id)

    def _run_folders(self) -> Iterator[Path]:
        for folder in self._folders:
            if (folder / SUMMARY).is_file():
                yield folder
                continue
            inside = sorted(folder.glob(f"*/{SUMMARY}"))
            yield from (each.parent for each in inside if each.is_file())

    def list(self) -> Document:
        """Write all runs with their figures.

        Raises:
            InputError: a file of a run cannot be used.
        """
        with _as_written():
            return {"runs": [_line(run) for run in self.runs()]}

    def run(self, name: str) -> Document | None:
        """Write one run with its charts and its jobs; None if there is none.

        Raises:
            InputError: a file of a run cannot be used.
        """
        with _as_written():
            return self._run(name)

    def _run(self, name: str) -> Document | None:
        found = next((run for run in self.runs() if run.id == name), None)
        if found is None:
            return None
        charts_file = found.folder / CHARTS
        if not charts_file.is_file():
            raise InputError(
                wanted=f"{CHARTS} beside {SUMMARY}",
                found=Words("none"),
                file=str(found.folder),
                hint="the folder was written by an older version; run the simulation again",
            )
        charts = _read(charts_file)
        return {
            **_line(found),
            "edges": charts["edges"],
            "resources": charts["resources"],
            "main": charts["main"],
            "queues": charts["queues"],
            "charts": charts["configurations"][found.number],
            "jobs": _jobs(found),
        }


@contextmanager
def _as_written() -> Iterator[None]:
    """Name what is wrong with files that `pumice sim` did not write so."""
    try:
        yield
    except InputError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, OSError, csv.Error):
        raise InputError(
            wanted="folders that `pumice sim --dir` wrote",
            found=Words("other files in one of them"),
            hint="run the simulation again, or remove the folder",
        ) from None


def _line(run: Run) -> Document:
    summary = _read(run.folder / SUMMARY)
    figures = summary["configurations"][run.number]
    return {
        "id": run.id,
        "folder": run.name,
        "configuration": run.configuration,
        "trace": summary["trace"]["name"],
        "jobCount": summary["trace"]["jobs"],
        "nodes": summary["trace"]["nodes"],
        "figures": {
            name: figures.get(name)
            for name in ("makespan", "finished", "evictions", "wait", "utilisation", "fairness")
        },
        "storm": (figures.get("storm") or {}).get("text", ""),
    }


def _read(file: Path) -> Any:
    stamp = file.stat()
    return _decoded(file, stamp.st_mtime_ns, stamp.st_size)


@lru_cache(maxsize=32)
def _decoded(file: Path, changed: int, size: int) -> Any:
    del changed, size
    try:
        return msgspec.json.decode(read_text(file))
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(wanted="a file of a run", found=str(error), file=str(file)) from None


def _jobs(run: Run) -> Document | None:
    """Read when jobs arrived, started and ended, in columns; None if that table is not CSV."""
    known = {file.name: file for file in run.folder.iterdir() if file.is_file()}
    names = (f"jobs-{run.configuration}.csv", "jobs.csv")  # a name from a file is no path
    file = next((known[name] for name in names if name in known), None)
    if file is None:
        return None
    columns: dict[str, list[Any]] = {
        name: [] for name in ("job", "queue", "pods", "arrival", "start", "end", "evictions")
    }
    for row in islice(csv.DictReader(StringIO(read_text(file))), _MOST_JOBS):
        for name, column in columns.items():
            is_text = name in ("job", "queue")
            column.append(unguarded(row[name]) if is_text else _number(row[name]))
    return dict(columns)


def _number(text: str) -> float | None:
    return float(text) if text else None
