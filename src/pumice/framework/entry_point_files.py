"""Whether installed distributions may offer something, without reading the metadata of all.

``importlib.metadata`` takes 30 ms to load and to search, a tenth of a short command.  Most machines
have no plugins installed, and a look at the files that would list them shows it.
"""

import sys
from collections.abc import Iterable
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

_METADATA = (".dist-info", ".egg-info")


def may_offer(group: str, path: Iterable[str] | None = None) -> bool:
    """Return False only if no distribution on the path of modules names a group of entry points."""
    if any(map(_finds_others, sys.meta_path)):
        return True
    try:
        return any(_names(group, Path(entry)) for entry in (sys.path if path is None else path))
    except OSError:
        return True


def _finds_others(finder: Any) -> bool:
    """Return whether distributions may be in other places than the path."""
    return finder is not PathFinder and hasattr(finder, "find_distributions")


def _names(group: str, entry: Path) -> bool:
    """Return whether the distributions in a folder name a group; True for what is no folder."""
    if not entry.is_dir() or entry.suffix == ".egg":
        return entry.exists()
    wanted = group.encode()
    return any(
        found.name.lower().endswith(_METADATA) and _contains(found / "entry_points.txt", wanted)
        for found in entry.iterdir()
    )


def _contains(file: Path, wanted: bytes) -> bool:
    try:
        return wanted in file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return False
