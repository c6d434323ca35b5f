"""Objects of the usual form, read at once: the same as read field by field."""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pumice.api.schema.grammar import GoType, fields_of, go_type
from pumice.webhooks.go_types import DecodeError, _read_by_field, read_usual

KINDS = (
    "v1.Pod", "v1.RunningPod", "v1.Event", "v1.Node", "v1.Service", "v1.ResourceQuota",
    "batch.Job", "batch.CronJob", "flow.JobFlow", "scheduling.PodGroup", "scheduling.Queue",
    "topology.HyperNode", "meta.ObjectMeta",
)  # fmt: skip
ODD: tuple[Any, ...] = (
    None, "", 0, 1.0, 1.5, True, [], {}, [None], {"a": None}, "x", "1000", "0m", "1024Mi", "1.5",
    "100E", "999Pi", "5s", "90s", "100m\n", "2026-01-01T00:00:00Z\n", 2**31, 2**63, -(2**31),
    float("inf"), "\ud800", {"\ud800": "a"}, {1: "a"},
)  # fmt: skip
USUAL: dict[str, tuple[Any, ...]] = {
    "string": ("", "a", "name-1"), "bool": (True, False),
    "int": (0, 5), "int32": (0, 5, -3), "int64": (0, 5, 2**40),
    "Quantity": ("100m", "1", "64Mi", "1k", "999Pi", "1500m", "100E", "0"),
    "Duration": ("5s", "1h"),
    "Time": ("2026-01-01T00:00:00Z",), "IntOrString": (0, 80, "http"),
    "any": ({"b": 1, "a": None}, {}, [], 5),
}  # fmt: skip


def one_of(draw: np.random.Generator, values: Sequence[Any]) -> Any:
    return values[int(draw.integers(len(values)))]


def drawn(draw: np.random.Generator, expected: GoType, depth: int = 0) -> Any:
    """Draw a value of a type, at times an odd one."""
    if draw.random() < 0.02:
        return copy.deepcopy(one_of(draw, ODD))
    if expected.kind == "struct":
        fields = [one for one in fields_of(expected.notation).values() if draw.random() < 0.6]
        chosen = [fields[i] for i in draw.permutation(len(fields))][: max(2, 16 >> depth)]
        return {one.name: drawn(draw, one.type, depth + 1) for one in chosen}
    if expected.kind == "list":
        element = go_type(expected.element)
        return [drawn(draw, element, depth + 1) for _ in range(int(draw.integers(3)))]
    if expected.kind == "map":
        return {key: drawn(draw, go_type(expected.element), depth + 1) for key in "dab"}
    return one_of(draw, USUAL[expected.kind])


@pytest.mark.parametrize("notation", KINDS)
def test_what_is_read_at_once_is_read_the_same_field_by_field(notation: str) -> None:
    draw, usual = np.random.default_rng(KINDS.index(notation)), 0
    for _ in range(150):
        value = drawn(draw, go_type(notation))
        found = read_usual(value, notation)
        if found is not None:
            usual += 1
            assert found == _read_by_field(value, notation, from_yaml=False)
            assert [*found] == [*_read_by_field(value, notation, from_yaml=False)]
    assert 10 < usual < 150


@pytest.mark.parametrize("value", ODD)
def test_an_odd_label_is_left_to_the_way_field_by_field(value: Any) -> None:
    metadata = {"name": "a", "labels": {"a": value}}
    found = read_usual(metadata, "meta.ObjectMeta")
    if isinstance(value, str):
        assert found == metadata
        return
    assert found is None
    if value is not None:
        with pytest.raises(DecodeError):
            _read_by_field(metadata, "meta.ObjectMeta", from_yaml=False)
