"""Every reader of traces: how a file is recognised, and who reads it.

A new reader is one entry here and its name in ``pumice.sim.options.FORMATS``, which command lines
read without loading a reader.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pumice.sim.readers import (
    alibaba2018,
    alibaba2025,
    job_table,
    manifests,
    openb,
    philly,
    swf,
    synthetic,
)
from pumice.sim.workload import Workload


def _never(_content: object) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Reader:
    """One format of traces."""

    read: Callable[[Path, int], Workload]
    """Reads a file; the number is the seed of a workload that is drawn."""
    is_header: Callable[[set[str]], bool] = _never
    """Whether the columns of a table are those of the format."""
    looks_like: Callable[[str], bool] = _never
    """Whether a text is of the format; asked if no format has the columns."""


def _seedless(read: Callable[[Path], Workload]) -> Callable[[Path, int], Workload]:
    return lambda path, _seed: read(path)


READERS: Final[Mapping[str, Reader]] = {
    "openb": Reader(
        _seedless(openb.read_pods), is_header=lambda columns: columns >= openb.POD_COLUMNS
    ),
    "philly": Reader(_seedless(philly.read), is_header=philly.is_header),
    "swf": Reader(_seedless(swf.read), looks_like=swf.looks_like),
    "alibaba2018": Reader(
        _seedless(alibaba2018.read),
        is_header=alibaba2018.is_header,
        looks_like=alibaba2018.looks_like,
    ),
    "alibaba2025": Reader(
        _seedless(alibaba2025.read), is_header=lambda columns: columns >= alibaba2025.COLUMNS
    ),
    "jobs": Reader(
        _seedless(job_table.read), is_header=lambda columns: columns >= job_table.NEEDED
    ),
    "synthetic": Reader(
        lambda path, seed: synthetic.read(path, seed=seed),
        looks_like=lambda text: f"kind: {synthetic.KIND}" in text,
    ),
    "manifests": Reader(
        _seedless(manifests.read), looks_like=lambda text: "kind" in text and "apiVersion" in text
    ),
}
"""Readers by format; a file has the first format that recognises it."""


def recognised(columns: set[str], text: str) -> str:
    """Return the format of a file with these columns and this text; empty if it is unknown."""
    by_columns = (name for name, reader in READERS.items() if reader.is_header(columns))
    by_text = (name for name, reader in READERS.items() if reader.looks_like(text))
    return next(by_columns, "") or next(by_text, "")
