"""Put decisions back into a scenario file as its expectations, leaving the rest unchanged.

Used by `pumice run --write`. Works on the text: only the value of the key `expect` is replaced.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from pumice.api.decisions import Decisions
from pumice.api.output_files import write_file
from pumice.errors import ScenarioError
from pumice.scenarios.compare import counts
from pumice.scenarios.cycles import PlayedCycle
from pumice.scenarios.expectations import Record
from pumice.scenarios.scenario import Scenario


def expectations(scenario: Scenario, played: Sequence[PlayedCycle]) -> Record:
    """Return the decisions in the form of the file's `expect`.

    A file with `stable: counts` gets counts; unordered evictions stay unordered.
    """
    many = len(played) > 1
    if scenario.stable == "counts":
        numbers = [counts(cycle.objects, cycle.decisions) for cycle in played]
        return {"cycles": numbers} if many else {"counts": numbers[0]}
    known: Sequence[Record] = [*scenario.expect, *({} for _ in played)]
    records = [
        _record(cycle.decisions, before) for cycle, before in zip(played, known, strict=False)
    ]
    return {"cycles": records} if many else records[0]


def _record(decisions: Decisions, before: Record) -> Record:
    record = decisions.to_expect()
    if before.get("evictionsUnordered"):
        record |= {"evictions": sorted(decisions.evictions), "evictionsUnordered": True}
    return record


def write_expectations(path: Path, expect: Record) -> None:
    """Replace or add the key `expect` of a scenario file.

    Raises:
        ScenarioError: The file is YAML in a form that cannot be edited as text.
        OutputError: It cannot be written; it is as it was.
    """
    edit = json_with_expect if path.suffix == ".json" else yaml_with_expect
    with path.open(encoding="utf-8", newline="") as file:
        text = file.read()
    written = edit(text, expect, path)
    if 0 < text.count("\n") == text.count("\r\n"):  # what is new ends its lines as the rest does
        written = written.replace("\r\n", "\n").replace("\n", "\r\n")
    write_file(path, written)


def json_with_expect(text: str, expect: Record, path: Path) -> str:
    """Return JSON text with a new `expect`, indented like the rest of the file."""
    members = _json_members(text)
    found = re.search(r"\{\s*?\n([ \t]+)", text)
    unit = found[1] if found else None
    written = json.dumps(
        expect, indent=unit, ensure_ascii=False, separators=(",", ": ") if unit else (", ", ": ")
    ).replace("\n", f"\n{unit or ''}")
    if "expect" in members:
        start, end = members["expect"]
        return f"{text[:start]}{written}{text[end:]}"
    if not members:
        raise ScenarioError(wanted="a JSON object with members", file=str(path))
    end = max(stop for _, stop in members.values())
    gap = f",\n{unit}" if unit else ", "
    return f'{text[:end]}{gap}"expect": {written}{text[end:]}'


def _json_members(text: str) -> dict[str, tuple[int, int]]:
    """Return the start and end of the value of each top-level key; the text must be valid."""
    members: dict[str, tuple[int, int]] = {}
    decoder = json.JSONDecoder()
    position = text.index("{") + 1
    while (position := _next_token(text, position)) < len(text) and text[position] == '"':
        key, position = decoder.raw_decode(text, position)
        start = _next_token(text, _next_token(text, position) + 1)
        _, end = decoder.raw_decode(text, start)
        members[key] = (start, end)
        position = _next_token(text, end) + 1  # past the comma or the closing brace
    return members


def _next_token(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def yaml_with_expect(text: str, expect: Record, path: Path) -> str:
    """Return YAML text with a new `expect`; everything outside that key stays as it is."""
    block = yaml.safe_dump({"expect": expect}, sort_keys=False, allow_unicode=True, width=100)
    root = yaml.compose(text)
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        raise ScenarioError(
            wanted="a block mapping, one key on each line",
            field="file",
            file=str(path),
            hint="other YAML forms cannot be edited without losing comments",
        )
    lines = text.splitlines(keepends=True)
    for key, value in root.value:
        if key.value == "expect":
            first = key.start_mark.line
            last = _last_line(lines, first, value)
            return "".join([*lines[:first], block, *lines[last + 1 :]])
    end = _end_of_document(lines, root)
    head = "".join(lines[:end])
    return f"{head}{'' if head.endswith(chr(10)) else chr(10)}{block}{''.join(lines[end:])}"


def _last_line(lines: Sequence[str], first: int, value: yaml.Node) -> int:
    """Return the last line of a value, without blank lines and comments that follow it."""
    mark = value.end_mark
    last = mark.line if mark.column else mark.line - 1
    last = min(last, len(lines) - 1)
    while last > first and _is_filler(lines[last]):
        last -= 1
    return last


def _is_filler(line: str) -> bool:
    return not line.strip() or line.startswith(("#", "...", "---"))


def _end_of_document(lines: Sequence[str], root: yaml.Node) -> int:
    """Return the line before which a new last key belongs."""
    for number in range(root.start_mark.line, len(lines)):
        if lines[number].startswith("..."):
            return number
    return len(lines)


def loses_comments(text: str) -> bool:
    """Return whether the `expect` of a YAML text holds comments, which a rewrite drops."""
    root: Any = yaml.compose(text)
    if not isinstance(root, yaml.MappingNode):
        return False
    lines = text.splitlines()
    for key, value in root.value:
        if key.value == "expect":
            first = key.start_mark.line
            inside = lines[first : _last_line(lines, first, value) + 1]
            return any(re.search(r"(^|\s)#", line) for line in inside)
    return False
