"""Objects as Go's types see them: what is written back, and how a wrong value is refused."""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.duration import duration_text
from pumice.api.schema.grammar import GoType, fields_of, go_type
from pumice.webhooks.go_types import (
    DecodeError,
    GoNumberError,
    RefusedError,
    _read_by_field,
    decode,
    parse_float,
    parse_int,
    read_duration,
    read_usual,
    same,
)


def task(**fields: Any) -> Any:
    return decode({"spec": {"tasks": [fields]}}, "batch.Job")["spec"]["tasks"][0]


def refused(value: Any, notation: str = "batch.Job") -> Any:
    with pytest.raises(DecodeError) as caught:
        decode(value, notation)
    return str(caught.value), caught.value.path


def test_structs_are_written_even_if_empty_and_zero_numbers_are_not() -> None:
    assert task(replicas=0) == {"template": {"metadata": {}, "spec": {"containers": None}}}


def test_a_pointer_to_zero_is_something() -> None:
    assert task(minAvailable=0)["minAvailable"] == 0


def test_fields_come_in_the_order_of_the_type() -> None:
    assert list(task(maxRetry=1, name="a", replicas=2)) == [
        "name", "replicas", "template", "maxRetry",
    ]  # fmt: skip


def test_unknown_fields_are_dropped_and_amounts_get_their_canonical_spelling() -> None:
    requests = {"cpu": " 1000m ", "memory": 512}
    container = {"name": "a", "oops": 1, "resources": {"requests": requests}}
    made = task(template={"spec": {"containers": [container]}})["template"]["spec"]["containers"]
    assert made == [{"name": "a", "resources": {"requests": {"cpu": "1", "memory": "512"}}}]


@pytest.mark.parametrize(
    ("spec", "found", "place"),
    [
        ({"minAvailable": "3"}, "string", "JobSpec.spec.minAvailable of type int32"),
        ({"minAvailable": 1.5}, "number 1.5", "JobSpec.spec.minAvailable of type int32"),
        ({"tasks": {}}, "object", "JobSpec.spec.tasks of type []v1alpha1.TaskSpec"),
        ({"tasks": [1]}, "number", "JobSpec.spec.tasks of type v1alpha1.TaskSpec"),
        ({"plugins": []}, "array", "JobSpec.spec.plugins of type map[string][]string"),
        ({"runningEstimate": 5}, "number", "JobSpec.spec.runningEstimate of type string"),
        (
            {"tasks": [{"template": {"spec": {"restartPolicy": True}}}]},
            "bool",
            "PodSpec.spec.tasks.template.spec.restartPolicy of type v1.RestartPolicy",
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_in_gos_words(
    spec: Any, found: str, place: str
) -> None:
    text = f"json: cannot unmarshal {found} into Go struct field {place}"
    assert refused({"spec": spec})[0] == text


def test_a_refusal_knows_where_the_value_stands() -> None:
    assert refused({"spec": {"tasks": [{}, {"name": 1}]}})[1] == ("spec", "tasks", 1, "name")


def test_the_first_mismatch_by_name_is_reported_but_an_unreadable_amount_comes_before_all() -> None:
    assert "maxRetry" in refused({"spec": {"queue": 1, "maxRetry": "x"}})[0]
    bad = {
        "spec": {
            "maxRetry": "x",
            "volumes": [{"volumeClaim": {"resources": {"limits": {"a": "?"}}}}],
        }
    }
    assert refused(bad)[0].startswith("quantities must match")


def test_something_that_is_no_object_at_all_is_refused() -> None:
    assert refused([1])[0] == "json: cannot unmarshal array into Go value of type v1alpha1.Job"


def test_equality_knows_that_nothing_is_empty_and_that_amounts_have_several_spellings() -> None:
    resources = {"limits": {"cpu": "1000m"}}
    assert same(resources, {"limits": {"cpu": "1"}, "requests": {}}, "v1.ResourceRequirements")
    assert not same(resources, {"limits": {"cpu": "2"}}, "v1.ResourceRequirements")
    assert not same({"minAvailable": 0}, {}, "batch.TaskSpec")
    assert same({"replicas": 0}, {}, "batch.TaskSpec")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("90s", "1m30s"), ("1h", "1h0m0s"), ("1.5s", "1.5s"), ("100ms", "100ms"), ("0", "0s"),
        ("-2m", "-2m0s"), ("3us", "3µs"), (f"{'0' * 5000}1.5{'0' * 5000}s", "1.5s"),
    ],
)  # fmt: skip
def test_durations_have_one_spelling(text: str, shown: str) -> None:
    assert read_duration(text) == shown


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("soon", 'invalid duration "soon"'),
        ("5", 'missing unit in duration "5"'),
        ("5x", 'unknown unit "x" in duration "5x"'),
        ("", 'invalid duration ""'),
        (f"{'9' * 5000}s", f'invalid duration "{"9" * 5000}s"'),
    ],
)
def test_what_is_no_duration_is_refused_in_gos_words(text: str, problem: str) -> None:
    with pytest.raises(RefusedError) as caught:
        read_duration(text)
    assert str(caught.value) == f"time: {problem}"


@given(st.integers(-(10**18), 10**18))
def test_a_written_duration_reads_as_itself(nanoseconds: Any) -> None:
    assert read_duration(duration_text(nanoseconds)) == duration_text(nanoseconds)


@pytest.mark.parametrize("text", ["1", "1.5", "1e3", ".5", "inf", "-Inf", "NaN", "0x1p-2", "1_0"])
def test_floats_that_go_reads(text: str) -> None:
    parse_float(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("1e400", "range"), *((text, "syntax") for text in ("", "x", "1 ", "+nan"))],
)
def test_floats_that_go_does_not_read(text: Any, problem: Any) -> None:
    with pytest.raises(GoNumberError, match=problem):
        parse_float(text)


@pytest.mark.parametrize("text", ["1.5", "", " 3", "1e2", "0x1", "1_0", "٣"])
def test_whole_numbers_that_go_does_not_read(text: str) -> None:
    with pytest.raises(GoNumberError, match="invalid syntax"):
        parse_int(text)


def test_a_whole_number_may_be_too_large() -> None:
    assert parse_int("+5", bits=32) == 5
    with pytest.raises(GoNumberError, match="value out of range"):
        parse_int("2147483648", bits=32)


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
