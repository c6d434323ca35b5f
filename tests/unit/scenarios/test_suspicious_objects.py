"""Objects that are probably a mistake."""

from typing import Any

import pytest

from pumice.scenarios.suspicious_objects import doubts, mistakes
from pumice.testing import node, pod, pod_group, queue


def texts(*objects: Any) -> list[str]:
    return [text for _, text in mistakes(objects)]


def test_whole_objects_are_none() -> None:
    assert texts(queue("q"), node("n"), pod_group("g", queue="q"), pod("p", group="g")) == []


def test_an_object_that_occurs_twice_is_named_once_at_its_second_place() -> None:
    objects = [pod("p"), node("n"), pod("p"), pod("p")]
    assert list(mistakes(objects)) == [
        (2, "Pod default/p occurs 3 times; the last one counts"),
    ]


@pytest.mark.parametrize(
    ("field", "hint"),
    [
        ("minMembers", " (did you mean spec.minMember?)"),
        ("Queue", " (did you mean spec.queue?)"),
        ("colour", ""),
    ],
)
def test_a_misspelt_field_of_a_gang_is_named(field: str, hint: str) -> None:
    group = pod_group("g")
    group["spec"][field] = 1
    assert texts(group) == [f"PodGroup default/g: there is no field spec.{field}{hint}"]


def test_a_misspelt_part_of_a_queue_is_named() -> None:
    found = texts(queue("q") | {"Status": {}})
    assert found == ["Queue q: there is no field Status (did you mean status?)"]


def test_a_misspelt_field_further_down_is_named() -> None:
    group = pod_group("g")
    group["spec"]["networkTopology"] = {"mod": "hard"}
    place = "spec.networkTopology"
    assert texts(group) == [
        f"PodGroup default/g: there is no field {place}.mod (did you mean {place}.mode?)"
    ]


def test_fields_that_deciding_does_not_read_exist() -> None:
    one = queue("q")
    one["spec"]["extendClusters"] = []
    assert texts(one) == []


def test_references_are_doubts_but_no_mistakes() -> None:
    group = pod_group("g", queue="gone")
    assert texts(group) == []
    assert [text for _, text in doubts([group])] == [
        "PodGroup default/g names queue 'gone', which does not exist"
    ]
