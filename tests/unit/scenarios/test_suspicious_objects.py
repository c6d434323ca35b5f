"""Objects that are probably a mistake."""

from typing import Any

import pytest

from pumice.scenarios.suspicious_objects import _on_circles, doubts, mistakes
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
        ("minMembers", "; did you mean spec.minMember?"),
        ("Queue", "; did you mean spec.queue?"),
        ("colour", ""),
    ],
)
def test_a_misspelt_field_of_a_gang_is_named(field: str, hint: str) -> None:
    group = pod_group("g")
    group["spec"][field] = 1
    assert texts(group) == [f"PodGroup default/g: unknown field spec.{field}{hint}"]


def test_a_misspelt_part_of_a_queue_is_named() -> None:
    found = texts(queue("q") | {"Status": {}})
    assert found == ["Queue q: unknown field Status; did you mean status?"]


def test_a_misspelt_field_further_down_is_named() -> None:
    group = pod_group("g")
    group["spec"]["networkTopology"] = {"mod": "hard"}
    place = "spec.networkTopology"
    assert texts(group) == [
        f"PodGroup default/g: unknown field {place}.mod; did you mean {place}.mode?"
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


def hyper_node(name: str, *members: str) -> Any:
    chosen = [{"type": "HyperNode", "selector": {"exactMatch": {"name": one}}} for one in members]
    head = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode"}
    return {**head, "metadata": {"name": name}, "spec": {"tier": 2, "members": chosen}}


def test_trees_that_lead_back_to_themselves_are_named() -> None:
    assert texts(queue("a", parent="b"), queue("b", parent="a"), queue("c", parent="b")) == [
        "Queue a is below itself: a -> b -> a",
        "Queue b is below itself: b -> a -> b",
    ]
    assert texts(queue("a", parent="a")) == ["Queue a is below itself: a -> a"]
    circle = [hyper_node("s0", "s1", "s2"), hyper_node("s1"), hyper_node("s2", "s0")]
    assert texts(*circle) == [
        "HyperNode s0 contains itself: s0 -> s2 -> s0",
        "HyperNode s2 contains itself: s2 -> s0 -> s2",
    ]


@pytest.mark.parametrize(
    "spec", [None, [], {"members": [3]}, {"members": [{"type": "HyperNode", "selector": [1]}]}]
)
def test_odd_trees_are_left_alone(spec: Any) -> None:
    assert texts({**hyper_node("s0"), "spec": spec}) == []


def test_only_what_is_on_a_circle_is_followed() -> None:
    """Chains, however deep, lead nowhere; nor do those that end in a circle."""
    chain = {("Queue", f"q{i}"): [f"q{i + 1}"] for i in range(3000)}
    assert _on_circles(chain) == {}
    ring = {("Queue", "a"): ["b"], ("Queue", "b"): ["a"], ("Queue", "c"): ["a"]}
    assert _on_circles({**chain, **ring, ("Queue", "q3000"): ["c"]}) == {
        ("Queue", "a"): ["b"],
        ("Queue", "b"): ["a"],
    }
    assert _on_circles({("HyperNode", "a"): ["a", "x"]}) == {("HyperNode", "a"): ["a"]}
