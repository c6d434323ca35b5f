"""Topology from node labels and from the ports of a fabric."""

from typing import Any

from pumice.cluster.ufm import Port
from pumice.controllers.hypernode_discovery import SOURCE_LABEL, from_labels, from_ports

RACK, ROW = "example.com/rack", "example.com/row"


def node(name: str, **labels: str) -> Any:
    marks = {{"rack": RACK, "row": ROW}[key]: value for key, value in labels.items()}
    return {"metadata": {"name": name, "labels": marks}}


def shown(hyper_nodes: Any) -> Any:
    """HyperNodes by name: tier and members."""
    return {
        each["metadata"]["name"]: (
            each["spec"]["tier"],
            [one["selector"]["exactMatch"]["name"] for one in each["spec"]["members"]],
        )
        for each in hyper_nodes
    }


def name_of(hyper_nodes: Any, label: str, value: str) -> Any:
    return next(
        each["metadata"]["name"]
        for each in hyper_nodes
        if each["metadata"]["labels"].get(label) == value
    )


def test_nodes_are_grouped_by_tier_and_each_group_is_labelled() -> None:
    nodes = [node("b", rack="r1", row="x"), node("a", rack="r1", row="x"), node("c", rack="r2")]
    found = from_labels(nodes, [], {"gpu": (RACK, ROW)})
    r1, r2, x = name_of(found, RACK, "r1"), name_of(found, RACK, "r2"), name_of(found, ROW, "x")
    assert shown(found) == {r1: (1, ["a", "b"]), r2: (1, ["c"]), x: (2, [r1])}
    top = next(each for each in found if each["metadata"]["name"] == x)
    assert top["metadata"]["labels"] == {ROW: "x", SOURCE_LABEL: "label"}
    assert top["spec"]["tierName"] == ROW
    assert top["spec"]["members"][0]["type"] == "HyperNode"
    assert x.startswith("hypernode-gpu-tier2-")


def test_a_node_without_the_lower_label_is_in_no_higher_group() -> None:
    assert (
        from_labels([node("a", row="x"), {"metadata": {"name": "b"}}], [], {"t": (RACK, ROW)}) == []
    )


def test_names_stay_whatever_the_order_of_nodes() -> None:
    nodes = [node(f"n{i}", rack=f"r{i % 300}", row=f"x{i % 7}") for i in range(900)]
    found = from_labels(nodes, [], {"t": (RACK, ROW)})
    assert len(shown(found)) == 307
    for order in (nodes[::-1], nodes[450:] + nodes[:450]):
        assert shown(from_labels(order, [], {"t": (RACK, ROW)})) == shown(found)


def test_a_hypernode_that_volcano_made_keeps_its_name() -> None:
    marks = {RACK: "r1", SOURCE_LABEL: "label"}
    known = [
        {"metadata": {"name": "hypernode-t-tier1-zzzzz", "labels": marks}},
        {"metadata": {"name": "hypernode-t-tier1-abcde", "labels": marks}},
        {"metadata": {"name": "hypernode-t-tier10-aaaaa", "labels": marks}},
        {"metadata": {"name": "hypernode-t-tier1-aaaaa", "labels": {RACK: "r1"}}},
    ]
    found = from_labels([node("a", rack="r1")], known, {"t": (RACK,)})
    assert shown(found) == {"hypernode-t-tier1-abcde": (1, ["a"])}


def test_a_name_that_is_taken_is_not_used() -> None:
    nodes = [node("a", rack="r1")]
    (first,) = shown(from_labels(nodes, [], {"t": (RACK,)}))
    (other,) = shown(from_labels(nodes, [{"metadata": {"name": first}}], {"t": (RACK,)}))
    assert other != first


def test_types_share_the_group_of_a_label_they_have_on_the_same_tier() -> None:
    tor = "example.com/tor"
    nodes = [node("a", rack="r1", row="x"), node("b", row="x")]
    nodes[1]["metadata"]["labels"][tor] = "t1"
    found = from_labels(nodes, [], {"one": (RACK, ROW), "two": (tor, ROW)})
    rack, row = name_of(found, RACK, "r1"), name_of(found, ROW, "x")
    assert shown(found)[row] == (2, sorted([rack, name_of(found, tor, "t1")]))
    assert len(found) == 3


def port(host: str | None, leaf: str | None, description: str | None = "Computer IB Port") -> Port:
    return Port(description, host, leaf)


def test_leaves_that_share_hosts_are_one_domain_under_the_spine() -> None:
    ports = [
        port("h1", "leaf-b"),
        port("h2", "leaf-b"),
        port("h2", "leaf-c"),
        port("h3", "leaf-c"),
        port("h9", "leaf-a"),
        port("switch", "leaf-a", "Switch IB Port"),
        port("leaf", None, None),
        port(None, "leaf-a"),
        port("Not A Name", "leaf-a"),
    ]
    found = from_ports(ports)
    assert shown(found) == {
        "leaf-hn-0": (1, ["h9"]),
        "leaf-hn-1": (1, ["h1", "h2", "h3"]),
        "spine-hn": (2, ["leaf-hn-0", "leaf-hn-1"]),
    }
    assert {each["metadata"]["labels"][SOURCE_LABEL] for each in found} == {"ufm"}
    assert "tierName" not in found[0]["spec"]


def test_a_fabric_without_hosts_has_no_spine() -> None:
    assert from_ports([port("s", "leaf", "Switch")]) == []


def test_a_large_fabric_takes_no_longer_than_its_ports() -> None:
    """Every host on every leaf: the groups are found in one walk."""
    ports = [port(f"h{i}", f"leaf{j}") for i in range(300) for j in range(100)]
    assert len(from_ports(ports)) == 2
