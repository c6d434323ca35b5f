"""The files of the pages, read once: nothing in a request becomes a path."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

_TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
"""Suffixes that are served, with their content types."""
_FOLDERS: Final = (
    ("", "pumice.dashboard", "web"),
    ("report/vendor/", "pumice.sim.report", "vendor"),
)
"""Prefixes of names with the package and the folder whose files have it; the plotting library is
that of the reports."""


@dataclass(frozen=True)
class StaticFile:
    """One file as it is sent."""

    content_type: str
    body: bytes


@cache
def static_files() -> dict[str, StaticFile]:
    """Return all files by the only names under which they are served."""
    return {
        name: StaticFile(_TYPES[name[name.rfind(".") :]], file.read_bytes())
        for prefix, package, folder in _FOLDERS
        for name, file in _walk(resources.files(package).joinpath(folder), prefix)
    }


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _walk(entry, f"{name}/")
        elif name.endswith(tuple(_TYPES)):
            yield name, entry
