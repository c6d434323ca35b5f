"""How data for programs is printed: JSON or YAML that mean what they hold, whatever it is."""

import json
from typing import Any

import msgspec
import yaml

from pumice.api.shown_text import has_marks, shown_json
from pumice.cli.terminal import echo_lines


def print_data(data: Any, output: str) -> None:
    """Print plain data for programs; a number that JSON cannot express is null."""
    text = _json(data)
    if output == "json":
        echo_lines(f"{shown_json(_laid_out(text))}\n")
        return
    plain = json.loads(text)  # tuples become lists
    echo_lines(yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100))


class _Dumper(yaml.SafeDumper):
    """Writes texts with marks in double quotes, where the terminal's escapes are YAML's."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Write a text, in quotes if need be."""
        style = '"' if has_marks(text) else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _Dumper.represent_text)


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
