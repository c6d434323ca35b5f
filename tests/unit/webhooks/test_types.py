"""Objects as Go's types see them: what is written back, and how a wrong value is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.duration import duration_text
from pumice.webhooks.go_types import (
    DecodeError,
    GoNumberError,
    RefusedError,
    decode,
    parse_float,
    parse_int,
    read_duration,
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
