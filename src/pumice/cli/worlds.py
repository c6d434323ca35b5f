"""How commands are told which cluster they speak of, and how they print answers.

Shared by explain, whatif, snapshot and queue order; loads the deciding core only when it is used.
"""

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from pumice.answers import World

_F = TypeVar("_F", bound=Callable[..., Any])
_EXISTING = click.Path(exists=True, allow_dash=True, path_type=Path)


_FILES = click.option(
    "-f",
    "--filename",
    "files",
    metavar="FILE",
    multiple=True,
    required=True,
    type=_EXISTING,
    help="Output of 'kubectl get … -o yaml', manifests, a scenario or a snapshot; a file or a "
    "folder, may be given several times; - reads the input.",
)
_NOW = click.option(
    "--now",
    metavar="TIME",
    help="The time to decide at, RFC 3339.  [default: the latest that the files speak of]",
)


def conf_option(
    name: str = "--conf", text: str = "The scheduler configuration."
) -> Callable[[_F], _F]:
    """Make the option that names the configuration a cluster has."""
    return click.option(
        name,
        "conf",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help=f"{text}  [default: that of the files, else the built-in one]",
    )


def world_options(command: _F) -> _F:
    """Add the options that name the sources of a cluster."""
    return _FILES(conf_option()(_NOW(command)))


def source_options(command: _F) -> _F:
    """Add the options that name the sources of a cluster, but for its configuration."""
    return _FILES(_NOW(command))


output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="How to print the answer.",
)


def read_world(
    files: tuple[Path, ...], conf: Path | None = None, now: str | None = None
) -> "World":
    """Read the cluster that a command speaks of; tell what its configuration says in vain."""
    from pumice.answers import load_world  # noqa: PLC0415
    from pumice.api.meta import epoch  # noqa: PLC0415
    from pumice.cli.config import conf_problems  # noqa: PLC0415  (loads all plugins)
    from pumice.errors import ConfError  # noqa: PLC0415

    sources = [sys.stdin.read() + "\n" if str(file) == "-" else file for file in files]
    world = load_world(sources, conf, epoch(now) if now else None)
    problems = conf_problems(world.scheduler_conf)
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        raise ConfError(errors, file=world.conf_source)
    for problem in problems:
        click.echo(f"warning: {world.conf_source}: {problem}", err=True)
    return world


def print_data(data: Any, output: str) -> None:
    """Print plain data for programs."""
    if output == "json":
        import json  # noqa: PLC0415

        click.echo(json.dumps(data, indent=1, ensure_ascii=False))
        return
    import json  # noqa: PLC0415

    import yaml  # noqa: PLC0415

    plain = json.loads(json.dumps(data))  # tuples become lists
    click.echo(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100), nl=False)


def print_text(text: str, *, indent: str = "", first: str | None = None, **style: Any) -> None:
    """Print a paragraph, wrapped to the terminal if there is one."""
    lines = [text]
    if sys.stdout.isatty():
        room = max(get_terminal_size().columns - len(indent), 40)
        lines = textwrap.wrap(text, room, break_on_hyphens=False, break_long_words=False) or [""]
    for number, line in enumerate(lines):
        head = (indent if first is None else first) if number == 0 else indent
        click.echo(head + (click.style(line, **style) if style else line))


def print_heading(text: str) -> None:
    """Print the title of a part."""
    click.echo(f"\n{click.style(text, bold=True)}")


def sentence(text: str) -> str:
    """Give a text a capital letter, unless it starts with a name, and a full stop."""
    first = text.partition(" ")[0]
    head = text[:1] if "/" in first else text[:1].upper()
    return f"{head}{text[1:].rstrip('.')}." if text else ""
