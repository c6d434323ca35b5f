"""JSON text: what is refused before and while it is decoded."""

import json
from typing import Any

import pytest

from pumice.api import json_text
from pumice.api.json_text import DEPTH, FrozenJson, encode_parts, parse_json
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
    assert str(caught.value) == f"f:{line}: expected at most {DEPTH} nested levels, got more"


QUICK_OR_NOT = [
    '{"a": {"b": [1, -0, 2.5, 1e5, true, null, "x"]}, "c": {"a": 1}}',
    '{"a": 1, "b": {"c": 1, "c": 2}}',
    '{"text": "a: \\"b\\": {\\\\\\"", "c:": [":"]}',
    '{"text": "\\\\", "a": 1, "a": 2}',
    "[9223372036854775807, 9223372036854775808, -9223372036854775809, 12345678901234567890123]",
    "[1e308, 1e309]",
    '["\\ud800"]',
    '{"a": 1}\n\n{"b": 2}',
    "[NaN]",
    "[1, 2",
    '["a\x01"]',
    "\n\n[]",
    "",
]


@pytest.mark.parametrize("text", QUICK_OR_NOT)
@pytest.mark.parametrize("unique", [True, False])
def test_the_quick_way_gives_the_same_answer(
    monkeypatch: pytest.MonkeyPatch, text: str, unique: bool
) -> None:
    def answer() -> str:
        try:
            return repr(list(json_text.parse_json_stream(text, "file", unique=unique)))
        except ManifestError as error:
            return str(error)

    quick = answer()
    monkeypatch.setattr(json_text, "_one_value", lambda *_: json_text._UNDECIDED)
    assert answer() == quick


def test_most_texts_are_read_the_quick_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "_UNIQUE_KEYS", None)
    assert json_text.parse_json('{"a": [1, "b:", {}]}', "file") == {"a": [1, "b:", {}]}


NODE = FrozenJson(Name="n", Tasks={"a/b": {"Pod": None}})


@pytest.mark.parametrize(
    "payload",
    [
        {"task": {"Name": "é"}, "node": NODE},
        {"nodes": [NODE, NODE], "task": NODE},
        {"nodes": [NODE, {"Name": "m"}], "nothing": []},
        {},
        NODE,
        ["a", 1.5],
    ],
)
def test_the_text_is_that_of_the_plain_value(payload: Any) -> None:
    assert json.loads(encode_parts(payload)) == payload


def test_an_object_is_written_once() -> None:
    once = FrozenJson(a=1)
    assert encode_parts({"x": once}) == b'{"x":{"a":1}}'
    once["a"] = 2  # which nobody does
    assert encode_parts({"x": once}) == b'{"x":{"a":1}}'
