"""How answers are printed: data for programs, paragraphs and headings for users."""

import json
import sys
import textwrap
from shutil import get_terminal_size
from typing import Any

import click
import msgspec
import yaml


def print_data(data: Any, output: str) -> None:
    """Print plain data for programs; a number that JSON cannot express is null."""
    text = _json(data)
    if output == "json":
        click.echo(_laid_out(text))
        return
    plain = json.loads(text)  # tuples become lists
    click.echo(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100), nl=False)


def _json(data: Any) -> str:
    try:
        return json.dumps(data, ensure_ascii=False, allow_nan=False)
    except ValueError:  # infinite, or not a number; a manifest may hold .inf
        plain = json.loads(json.dumps(data, ensure_ascii=False), parse_constant=lambda _: None)
        return json.dumps(plain, ensure_ascii=False)


def _laid_out(text: str) -> str:
    """Write JSON by lines, as ``json.dumps`` does; laying it out afterwards is much faster."""
    try:
        return msgspec.json.format(text, indent=1)
    except (msgspec.DecodeError, UnicodeEncodeError):  # half a character
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False)


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
    """Add a capital letter to a text, unless it starts with a name, and a full stop."""
    first = text.partition(" ")[0]
    head = text[:1] if "/" in first else text[:1].upper()
    end = "" if text.endswith("?") else "."
    return f"{head}{text[1:].rstrip('.')}{end}" if text else ""
