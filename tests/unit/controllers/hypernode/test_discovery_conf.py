"""The discovery section: Volcano's example is understood, each mistake is one clear sentence."""

from contextlib import suppress
from typing import Any

import pytest
import yaml

from pumice.cluster.ufm import Port
from pumice.controllers.hypernode_discovery import (
    SOURCE_LABEL,
    DiscoveryConf,
    UfmSource,
    from_labels,
    from_ports,
    read_discovery,
)
from pumice.errors import InputError

EXAMPLE = """
networkTopologyDiscovery:
  - source: ufm
    enabled: true
    interval: 10m
    credentials:
      secretRef:
        name: ufm-credentials
        namespace: volcano-system
    config:
      endpoint: https://ufm-server:8080
      insecureSkipVerify: true
  - source: roce
    enabled: false
    interval: 15m
    config:
      endpoint: https://roce-server:9090
  - source: label
    enabled: true
    config:
      networkTopologyTypes:
        topologyA2:
          - nodeLabel: "volcano.sh/tor"
          - nodeLabel: "kubernetes.io/hostname"
        topologyA3:
          - nodeLabel: "volcano.sh/hypercluster"
          - nodeLabel: "volcano.sh/hypernode"
          - nodeLabel: "kubernetes.io/hostname"
"""
HOST = {"nodeLabel": "kubernetes.io/hostname"}


def test_the_documented_example_is_understood() -> None:
    conf = read_discovery(EXAMPLE, "map")
    assert conf.problems == ()
    assert conf.labels == {
        "topologya2": ("volcano.sh/tor",),
        "topologya3": ("volcano.sh/hypernode", "volcano.sh/hypercluster"),
    }
    assert conf.ufm == UfmSource(
        "https://ufm-server:8080",
        verify=False,
        interval_s=600.0,
        secret=("volcano-system", "ufm-credentials"),
    )


@pytest.mark.parametrize("text", ["", "networkTopologyDiscovery:", "other: 1", "{}"])
def test_nothing_is_discovered_unless_it_is_asked_for(text: str) -> None:
    assert read_discovery(text, "map") == DiscoveryConf()


def labels(**types: Any) -> Any:
    return {"source": "label", "enabled": True, "config": {"networkTopologyTypes": types}}


def ufm(**changes: Any) -> Any:
    reference = {"name": "s", "namespace": "ns"}
    config = {"endpoint": "ufm", **changes.pop("config", {})}
    known = {"source": "ufm", "enabled": True, "credentials": {"secretRef": reference}}
    return {**known, "config": config, **changes}


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ("all", "map: networkTopologyDiscovery: expected a list, got 'all'"),
        (["label"], "networkTopologyDiscovery[0]: expected a mapping"),
        ([{"source": "roce", "enabled": True}], "[0].source: expected label or ufm, got 'roce'"),
        ([{"enabled": True}], "[0].source: expected label or ufm"),
        ([{"source": "label", "enabled": "yes"}], "[0].enabled: expected true or false, got 'yes'"),
        ([{**labels(), "intervals": 1}], "did you mean 'interval'?"),
        ([{"source": "label", "enabled": True}], "networkTopologyTypes: expected topology types"),
        ([labels(t=[{"label": "x"}])], "t[0].nodeLabel: expected the name of a label"),
        ([labels(t=[{"nodeLabel": 5}])], "t[0].nodeLabel: expected the name of a label, got 5"),
        ([labels(t=[{"nodeLabel": "a"}] * 2)], "t: expected each label once, got 'a, a'"),
        ([labels(t=[{"nodeLabel": "a"}])], "t[0].nodeLabel: expected kubernetes.io/hostname"),
        ([labels(**{"x" * 21: [HOST]})], "expected a name of at most 20 letters"),
        ([labels(**{"a..b": [HOST]})], "expected a name of at most 20 letters"),
        ([labels(**{"a_b": [HOST], "a-b": [HOST]})], "differ by more than case and signs"),
        ([labels(t=[HOST]), labels(t=[HOST])], "[1].source: expected label once"),
        ([ufm(config={"endpoint": "ftp://x"})], "expected an address such as https://ufm:8080"),
        ([ufm(config={"endpoint": "https://me:secret@x"})], "got 'one with a user'"),
        ([ufm(config={"endpoint": None})], "config.endpoint: expected an address"),
        ([ufm(config={"endpoint": "https://x:99999"})], "config.endpoint: expected an address"),
        ([ufm(config={"insecureSkipVerify": "no"})], "insecureSkipVerify: expected true or false"),
        ([ufm(interval="often")], "interval: expected a duration such as 10m, got 'often'"),
        ([ufm(credentials=None)], "credentials.secretRef: expected name and namespace of a Secret"),
        ([ufm(credentials={"secretRef": {"name": "s"}})], "expected name and namespace"),
    ],
)
def test_a_mistake_is_one_sentence(entries: Any, said: str) -> None:
    conf = read_discovery(yaml.safe_dump({"networkTopologyDiscovery": entries}), "map")
    assert len(conf.problems) == 1
    assert said in conf.problems[0]
    assert "secret@" not in conf.problems[0]


def test_text_that_is_not_yaml_is_refused_with_its_line() -> None:
    with pytest.raises(InputError, match="map:2"):
        read_discovery("a: b\nc: d: e\n", "map")


@pytest.mark.parametrize(
    "text",
    ["a: !!timestamp x\n", "a: !!int ''\n", "a: !!bool x\n", "[" * 5000, "a: &a [*a]\n"],
    ids=["time", "number", "truth", "deep", "circle"],
)
def test_odd_yaml_is_an_error_or_nothing(text: str) -> None:
    with suppress(InputError):
        assert read_discovery(text, "map") == DiscoveryConf()


def test_a_bad_entry_hurts_only_itself() -> None:
    text = yaml.safe_dump(
        {"networkTopologyDiscovery": [ufm(interval="often"), labels(good=[HOST], bad=5)]}
    )
    conf = read_discovery(text, "map")
    assert conf.ufm is None
    assert conf.labels == {"good": ()}
    assert len(conf.problems) == 2


@pytest.mark.parametrize(
    ("given", "seconds"), [(None, 3600.0), ("0s", 3600.0), ("-1m", 3600.0), ("1ms", 1.0)]
)
def test_an_interval_that_is_none_is_an_hour(given: Any, seconds: float) -> None:
    entry = ufm() if given is None else ufm(interval=given)
    conf = read_discovery(yaml.safe_dump({"networkTopologyDiscovery": [entry]}), "map")
    assert conf.ufm is not None
    assert conf.ufm.interval_s == seconds
    assert conf.ufm.endpoint == "https://ufm"


def read(*entries: Any) -> DiscoveryConf:
    return read_discovery(yaml.safe_dump({"networkTopologyDiscovery": [*entries]}), "map")


@pytest.mark.parametrize(
    ("entry", "found", "is_bad"),
    [
        (labels(**{"x" * 20: [HOST]}), {"x" * 20: ()}, False),
        (labels(**{"x" * 21: [HOST]}), {}, True),
        (labels(Rack_1=[{"nodeLabel": "a"}, HOST]), {"rack-1": ("a",)}, False),
        (labels(t=[{"nodeLabel": "l" * 253}, HOST]), {"t": ("l" * 253,)}, False),
        (labels(t=[{"nodeLabel": "l" * 254}, HOST]), {}, True),
        (labels(t=[{"nodeLabel": ""}, HOST]), {}, True),
        (labels(t=[]), {"t": ()}, False),
        (labels(t=[{"nodeLabel": "b"}, {"nodeLabel": "a"}]), {"t": ("b",)}, False),
        (labels(), {}, False),
        (labels(t=["a", HOST]), {}, True),
        ({"source": "label", "enabled": True, "config": []}, {}, True),
        ({"source": "label", "enabled": True, "config": None}, {}, True),
        ({"source": "label", "enabled": False}, None, False),
        ({"source": "label"}, None, False),
    ],
)
def test_which_labels_make_hyper_nodes(entry: Any, found: Any, is_bad: bool) -> None:
    conf = read(entry)
    assert conf.labels == found
    assert conf.has_bad_labels == is_bad


@pytest.mark.parametrize(("skip", "verify"), [(None, True), (False, True), (True, False)])
def test_certificates_are_verified_unless_switched_off(skip: Any, verify: bool) -> None:
    config = {} if skip is None else {"insecureSkipVerify": skip}
    conf = read(ufm(config=config))
    assert conf.ufm is not None
    assert conf.ufm.verify is verify
    assert conf.ufm.secret == ("ns", "s")


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


@pytest.mark.parametrize("text", ["- a", "5", "a: [", "[" * 5000, "a: &a [*a"])
def test_what_is_no_mapping_is_refused_as_a_whole(text: str) -> None:
    with pytest.raises(InputError, match="map"):
        read_discovery(text, "map")
