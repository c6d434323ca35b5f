"""Where text reaches the terminal: all commands print through this module.

What it prints may come from a file, a cluster or a service, so control characters and marks that
do not show are escaped here.  A line is one line: ``echo`` escapes line breaks too.
"""

import sys
import textwrap
from shutil import get_terminal_size
from typing import Any

import click

from pumice.api.shown_text import shown, shown_lines
from pumice.errors import bounded

_CLEAR_LINE = "\r\033[2K"


def echo(line: str = "", *, err: bool = False, **style: Any) -> None:
    """Print one line, in a style of click if one is named; a message is cut if it is very long."""
    text = shown(bounded(line) if err else line)
    click.echo(click.style(text, **style) if style else text, err=err)  # noqa: TID251


def echo_lines(text: str, *, err: bool = False) -> None:
    """Print a text as it is laid out, without adding a line break at its end."""
    click.echo(shown_lines(text), nl=False, err=err)  # noqa: TID251


def echo_over(line: str) -> None:
    """Print a line in the place of the last one, without ending it."""
    click.echo(_CLEAR_LINE + shown(line), nl=False)  # noqa: TID251


def print_text(text: str, *, indent: str = "", first: str | None = None, **style: Any) -> None:
    """Print a paragraph, wrapped to the terminal if there is one."""
    text = shown(text)
    lines = [text]
    if sys.stdout.isatty():
        room = max(get_terminal_size().columns - len(indent), 40)
        lines = textwrap.wrap(text, room, break_on_hyphens=False, break_long_words=False) or [""]
    for number, line in enumerate(lines):
        head = (indent if first is None else first) if number == 0 else indent
        click.echo(shown(head) + (click.style(line, **style) if style else line))  # noqa: TID251


def print_heading(text: str) -> None:
    """Print the title of a part."""
    echo()
    echo(text, bold=True)


def sentence(text: str) -> str:
    """Add a capital letter to a text, unless it starts with a name, and a full stop."""
    first = text.partition(" ")[0]
    head = text[:1] if "/" in first else text[:1].upper()
    end = "" if text.endswith("?") else "."
    return f"{head}{text[1:].rstrip('.')}{end}" if text else ""
