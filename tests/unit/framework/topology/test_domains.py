"""Network domains: HyperNodes as a tree over nodes."""

from typing import Any

import pytest

from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.framework.topology.domains import TOP_NAME, domain_tree
from pumice.testing import hyper_node, node
from pumice.testing.samples import snapshot_of

NODES = [node(f"n{i}", cpu=4, labels={"rack": f"r{i // 2}"}) for i in range(6)]
TREE = [
    hyper_node("s0", nodes=["n0", "n1"]),
    hyper_node("s1", nodes=["n2", "n3"]),
    hyper_node("g0", tier=2, children=["s0", "s1"], tier_name="pod"),
]


def tree_of(*objects: Any) -> Any:
    return domain_tree(snapshot_of([*NODES, *objects]))


def rows(tree: Any, name: Any) -> Any:
    return tree.by_name[name].rows.tolist()


def member(**selector: Any) -> Any:
    return {"type": "Node", "selector": selector}


def test_a_virtual_domain_stands_over_all_others_with_every_node() -> None:
    top = tree_of(*TREE).top
    assert (top.name, top.tier, top.rows.tolist()) == (TOP_NAME, 3, [0, 1, 2, 3, 4, 5])


def test_without_hypernodes_the_top_is_of_the_first_tier() -> None:
    tree = tree_of()
    assert [(domain.name, domain.tier) for domain in tree.domains] == [(TOP_NAME, 1)]


def test_a_parent_holds_the_nodes_of_its_children() -> None:
    assert rows(tree_of(*TREE), "g0") == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        ({"exactMatch": {"name": "n3"}}, [3]),
        ({"exactMatch": {"name": "unknown"}}, []),
        ({"regexMatch": {"pattern": "[45]$"}}, [4, 5]),
        ({"regexMatch": {"pattern": "("}}, []),
        ({"labelMatch": {"matchLabels": {"rack": "r1"}}}, [2, 3]),
        ({"labelMatch": {"matchLabels": {"rack": "nowhere"}}}, []),
        (
            {
                "labelMatch": {
                    "matchExpressions": [{"key": "rack", "operator": "NotIn", "values": ["r1"]}]
                }
            },
            [0, 1, 4, 5],
        ),
        ({"labelMatch": {"matchExpressions": [{"key": "rack", "operator": "In"}]}}, []),
        ({"labelMatch": {}}, []),
    ],
)
def test_members_are_found_by_name_pattern_and_labels(selector: Any, wanted: Any) -> None:
    assert rows(tree_of(hyper_node("s", members=[member(**selector)])), "s") == wanted


def test_hypernodes_that_name_each_other_leave_the_rest_as_it_is() -> None:
    ring = [
        hyper_node("a", tier=5, children=["b"], nodes=["n4"]),
        hyper_node("b", tier=5, children=["a"], nodes=["n5"]),
        hyper_node("self", tier=4, children=["self"]),
    ]
    tree = tree_of(*TREE, *ring)
    assert rows(tree, "g0") == [0, 1, 2, 3]
    assert (rows(tree, "a"), rows(tree, "b"), rows(tree, "self")) == ([4], [5], [])
    assert all(next(reversed([*domain.lineage()])) is tree.top for domain in tree.domains)


def test_a_child_with_two_parents_stays_with_the_nearer_one() -> None:
    tree = tree_of(*TREE, hyper_node("g1", tier=3, children=["s1"], nodes=["n4"]))
    assert tree.by_name["s1"].parent is tree.by_name["g0"]
    assert rows(tree, "g1") == [4]


def test_a_child_that_does_not_exist_is_left_out() -> None:
    assert rows(tree_of(hyper_node("g", tier=2, children=["gone"], nodes=["n0"])), "g") == [0]


def test_the_tree_is_built_again_only_when_nodes_or_hypernodes_change() -> None:
    ingest = Ingest(Snapshot())
    snapshot = ingest.load([from_manifest(each) for each in [*NODES, *TREE]])
    first = domain_tree(snapshot)
    assert domain_tree(snapshot) is first
    ingest.upsert(from_manifest(node("n6")))
    ingest.settle()
    second = domain_tree(snapshot)
    assert len(second.top.rows) == 7
    ingest.upsert(from_manifest(hyper_node("s2", nodes=["n6"])))
    assert rows(domain_tree(snapshot), "s2") == [6]
