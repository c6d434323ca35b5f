"""Objects that are sent again and again are written once, and the text is the same as ever."""

import json
from typing import Any

import pytest

from pumice.api.json_text import FrozenJson, encode_parts

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
