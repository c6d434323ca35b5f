"""Which nodes a HyperNode has."""

from typing import Any

from pumice.controllers.hypernode import resolve_members
from pumice.testing.builders import hyper_node


def nodes(*names: str, **labels: str) -> Any:
    return [{"metadata": {"name": name, "labels": labels}} for name in names]


def member(kind: str = "Node", **selector: Any) -> Any:
    return {"type": kind, "selector": selector}


def made(name: str, tier: int, *members: Any) -> Any:
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": tier, "members": list(members)},
    }


def test_members_are_found_by_name_pattern_and_label() -> None:
    world = [*nodes("a1", "a2", "b1"), *nodes("c1", rack="r1")]
    found = resolve_members(
        [
            made("exact", 1, member(exactMatch={"name": "a1"}), member(exactMatch={"name": "no"})),
            made(
                "regex", 1, member(regexMatch={"pattern": "^a"}), member(exactMatch={"name": "a1"})
            ),
            made("label", 1, member(labelMatch={"matchLabels": {"rack": "r1"}})),
            made("empty", 1, member(labelMatch={})),
            made("broken", 1, member(regexMatch={"pattern": "("})),
        ],
        world,
    )
    assert {name: sorted(each.nodes) for name, each in found.items()} == {
        "broken": [],
        "empty": [],
        "exact": ["a1"],
        "label": ["c1"],
        "regex": ["a1", "a2"],
    }
    assert found["exact"].missing == ["Node no"]


def test_nodes_of_smaller_hypernodes_count_once() -> None:
    found = resolve_members(
        [
            made("top", 3, *(member("HyperNode", exactMatch={"name": n}) for n in ("l", "r", "x"))),
            made("l", 1, member(regexMatch={"pattern": "a|b"})),
            made("r", 2, member(regexMatch={"pattern": "b|c"})),
        ],
        nodes("a", "b", "c", "d"),
    )
    assert found["top"].nodes == {"a", "b", "c"}
    assert found["top"].missing == ["HyperNode x"]


def test_a_circle_of_hypernodes_ends() -> None:
    one = made("one", 2, member("HyperNode", exactMatch={"name": "two"}))
    two = made("two", 2, member("HyperNode", exactMatch={"name": "one"}))
    found = resolve_members([one, two], nodes("a"))
    assert [found[name].nodes for name in ("one", "two")] == [set(), set()]


def test_a_hypernode_that_cannot_be_read_hurts_only_itself() -> None:
    bad = made("bad", 1)
    bad["spec"]["tier"] = "low"
    good = hyper_node("good", tier=1, nodes=["a"])
    assert {*resolve_members([bad, good], nodes("a"))} == {"good"}
