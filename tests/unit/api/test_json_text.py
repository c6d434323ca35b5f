"""JSON text: what is refused before and while it is decoded."""

import json
from typing import Any

import pytest

from pumice.api.json_text import DEPTH, parse_json
from pumice.errors import ManifestError


def nested(levels: int, opening: str = "[", inside: str = "") -> str:
    closing = {"[": "]", '{"a":': "}"}[opening]
    return opening * levels + inside + closing * levels


@pytest.mark.parametrize(
    "text",
    [
        nested(DEPTH),
        nested(DEPTH, '{"a":', "1"),
        f"[{nested(DEPTH - 1)}, {nested(DEPTH - 1)}]",
        json.dumps(["[" * 200, "{" * 200, '"[', '\\"[{', "\\", "é["] * 40),
        json.dumps([{"}": "]"}] * 500),
    ],
    ids=["lists", "mappings", "side by side", "brackets in texts", "brackets as keys"],
)
def test_what_is_nested_within_reason_is_read(text: str) -> None:
    assert parse_json(text, "f") == json.loads(text)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (nested(DEPTH + 1), 1),
        (nested(DEPTH + 1, '{"a":', "1"), 1),
        ('{"a":\n[' * 51 + "]}" * 51, 51),
        ('["\\"",\n' * (DEPTH + 1) + "1" + "]" * (DEPTH + 1), DEPTH + 1),
        ("[" * 100_000, 1),
    ],
    ids=["lists", "mappings", "both", "after escapes", "never closed"],
)
def test_what_is_nested_deeper_is_refused_with_its_line(text: Any, line: Any) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_json(text, "f")
    assert str(caught.value) == f"f:{line}: wanted at most {DEPTH} nested levels, found 'more'"
