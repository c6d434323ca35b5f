"""Run something again whenever files change."""

from collections.abc import Callable, Iterable
from pathlib import Path
from time import sleep
from typing import NoReturn

import click

from pumice.cli.printing import echo
from pumice.errors import PumiceError

_LOOK_S = 0.5


def run_on_changes(run: Callable[[], int], paths: Callable[[], Iterable[Path]]) -> NoReturn:
    """Run, wait for a change of the files or of those in the folders, and run again, for ever."""
    while True:
        watched = [*paths()]
        seen = _versions(watched)
        try:
            run()
        except (PumiceError, click.ClickException) as error:
            words = error.format_message() if isinstance(error, click.ClickException) else error
            echo(f"error: {words}", err=True)
        echo("waiting for changes; Ctrl-C ends", err=True)
        while _versions(watched) == seen:
            sleep(_LOOK_S)


def _versions(paths: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """Return the time and size of each file."""
    found = {}
    for path in paths:
        for file in path.rglob("*") if path.is_dir() else (path,):
            try:
                stat = file.stat()
            except OSError:  # gone meanwhile, or the name of a module
                continue
            if file.is_file():
                found[file] = (stat.st_mtime_ns, stat.st_size)
    return found
