"""The controller of HyperNodes: discovered ones come, change and go; all of them are counted."""

import base64
from typing import Any

import pytest
import yaml

from pumice.cluster.ufm import Port, Reading, UfmAccess
from pumice.controllers.base import Key
from pumice.controllers.hypernode import (
    DISCOVERY_CONFIG,
    HyperNodeController,
    _secret_values,
    resolve_members,
)
from pumice.errors import UnavailableError
from pumice.testing.builders import hyper_node
from tests.unit.controllers.fakes import FakeView

HYPER_NODE = "HyperNode.topology.volcano.sh"
EVERYTHING = Key("ConfigMap", *DISCOVERY_CONFIG)
RACK = "example.com/rack"
LABELS: Any = {
    "source": "label",
    "enabled": True,
    "config": {
        "networkTopologyTypes": {
            "rack": [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]
        }
    },
}
UFM: Any = {
    "source": "ufm",
    "enabled": True,
    "credentials": {"secretRef": {"name": "ufm-credentials", "namespace": "volcano-system"}},
    "config": {"endpoint": "https://ufm"},
}


class FakeFabric:
    """Returns prepared answers; remembers the access."""

    def __init__(self) -> None:
        self.reading = Reading()
        self.asked: list[UfmAccess] = []
        self.forgotten = 0

    def latest(self, access: UfmAccess) -> Reading:
        self.asked.append(access)
        return self.reading

    def forget(self) -> None:
        self.forgotten += 1


class World(FakeView):
    """A view in which every object the controller wants to look at is looked at."""

    def __init__(self, *sources: Any, controller: Any = None) -> None:
        super().__init__()
        self.fabric = FakeFabric()
        self.controller = controller or HyperNodeController(fabric=self.fabric)
        self.configure(*sources)

    def configure(self, *sources: Any, text: str | None = None) -> None:
        text = yaml.safe_dump({"networkTopologyDiscovery": [*sources]}) if text is None else text
        self.add(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": DISCOVERY_CONFIG[1], "namespace": DISCOVERY_CONFIG[0]},
                "data": {"volcano-controller.conf": text},
            }
        )

    def node(self, name: str, rack: str = "", **metadata: Any) -> Any:
        labels = {RACK: rack} if rack else {}
        metadata = {"name": name, "labels": labels, **metadata}
        return self.add({"apiVersion": "v1", "kind": "Node", "metadata": metadata})

    def secret(self, **values: str) -> None:
        data = {name: base64.b64encode(text.encode()).decode() for name, text in values.items()}
        place = {"name": "ufm-credentials", "namespace": "volcano-system"}
        self.add({"apiVersion": "v1", "kind": "Secret", "metadata": place, "data": data})

    def look(self) -> Any:
        """Look over everything and set right what is wrong, until nothing is."""
        for _ in range(5):
            self.now += 2.0
            plan = self.apply(self.controller.reconcile(EVERYTHING, self))
            if not plan.look_at:
                return plan
            for key in plan.look_at:
                self.apply(self.controller.reconcile(key, self))
        raise AssertionError("the controller does not come to rest")

    @property
    def domains(self) -> Any:
        """Members of HyperNodes, by the rack they are of or by name."""
        return {
            (each["metadata"].get("labels") or {}).get(RACK, each["metadata"]["name"]): [
                one["selector"]["exactMatch"]["name"] for one in each["spec"]["members"]
            ]
            for each in self.list(HYPER_NODE)
        }


def test_racks_come_change_and_go_with_the_labels_of_nodes() -> None:
    world = World(LABELS)
    world.node("a", "r1")
    world.node("b", "r1")
    world.look()
    assert world.domains == {"r1": ["a", "b"]}
    (first,) = world.list(HYPER_NODE)
    assert first["status"]["nodeCount"] == 2
    world.node("b", "r2")
    world.look()
    assert world.domains == {"r1": ["a"], "r2": ["b"]}
    assert [each["status"]["nodeCount"] for each in world.list(HYPER_NODE)] == [1, 1]
    assert first["metadata"]["name"] in [
        each["metadata"]["name"] for each in world.list(HYPER_NODE)
    ]
    world.node("a")
    world.node("b")
    world.look()
    assert world.domains == {}


def test_what_somebody_changed_is_put_right_and_other_labels_stay() -> None:
    world = World(LABELS)
    world.node("a", "r1")
    world.look()
    (made,) = world.list(HYPER_NODE)
    made["spec"] = {"tier": 4, "members": []}
    made["metadata"]["labels"]["team"] = "net"
    world.look()
    (mended,) = world.list(HYPER_NODE)
    assert world.domains == {"r1": ["a"]}
    assert mended["spec"]["tier"] == 1
    assert mended["metadata"]["labels"]["team"] == "net"


def test_hypernodes_of_others_are_counted_and_left_alone() -> None:
    world = World(LABELS)
    world.node("a", "r1")
    world.add(hyper_node("mine", tier=1, nodes=["a", "gone"]))
    world.look()
    mine = world.get(HYPER_NODE, "", "mine")
    assert mine["status"]["nodeCount"] == 1
    (condition,) = mine["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("MembersFound", "False")
    assert condition["message"] == "missing: Node gone"
    world.node("gone")
    world.look()
    mine = world.get(HYPER_NODE, "", "mine")
    assert mine["status"]["nodeCount"] == 2
    assert [each["status"] for each in mine["status"]["conditions"]] == ["True"]


def test_a_name_that_somebody_else_has_is_not_taken_over() -> None:
    world = World(UFM)
    world.secret(username="u", password="p")  # noqa: S106
    world.add(hyper_node("spine-hn", tier=2, nodes=["x"]))
    world.fabric.reading = Reading([Port("Computer", "h1", "leaf")])
    world.look()
    assert world.domains == {"leaf-hn-0": ["h1"], "spine-hn": ["x"]}


@pytest.mark.parametrize("change", ["off", "gone", "bad", "bad type"])
def test_hypernodes_stay_when_their_source_is_off_or_its_settings_are_bad(change: str) -> None:
    world = World(LABELS)
    world.node("a", "r1")
    world.look()
    match change:
        case "off":
            world.configure({**LABELS, "enabled": False})
        case "gone":
            del world.objects["ConfigMap", *DISCOVERY_CONFIG]
        case "bad":
            world.configure(text="networkTopologyDiscovery: [")
        case _:
            world.configure({**LABELS, "config": {"networkTopologyTypes": {"rack": 5}}})
    world.node("a")
    world.look()
    kept = {"off": ["a"], "gone": ["a"], "bad": [], "bad type": ["a"]}[change]
    assert world.domains.get("r1", []) == kept  # a text that is not YAML leaves the last one on
    assert len(world.records) == (change.startswith("bad"))


def test_a_problem_is_reported_once_for_each_text() -> None:
    world = World({**LABELS, "intervals": "1h"})
    for _ in range(3):
        world.look()
    assert [each.reason for each in world.records] == ["TopologyDiscovery"]
    assert "did you mean 'interval'?" in world.records[0].message
    world.configure({**LABELS, "intervals": "2h"})
    world.look()
    assert len(world.records) == 2


def test_a_fabric_is_asked_with_the_secret_and_kept_while_it_is_silent() -> None:
    world = World(UFM)
    world.secret(username="me", password="hidden", **{"ca.crt": "PEM"})  # noqa: S106
    world.look()
    (access, *_) = world.fabric.asked
    assert access == UfmAccess("https://ufm", "me", "hidden", authority="PEM")
    assert "hidden" not in repr(access)
    assert world.domains == {}
    ports = [Port("Computer", "h1", "leaf-1"), Port("Computer", "h2", "leaf-2")]
    world.fabric.reading = Reading(ports)
    world.look()
    found = {"leaf-hn-0": ["h1"], "leaf-hn-1": ["h2"], "spine-hn": ["leaf-hn-0", "leaf-hn-1"]}
    assert world.domains == found
    world.fabric.reading = Reading([])
    world.look()
    assert world.domains == found
    world.fabric.reading = Reading(ports[:1], "https://ufm: no answer")
    world.look()
    assert world.domains == {"leaf-hn-0": ["h1"], "spine-hn": ["leaf-hn-0"]}
    reported = [each.message for each in world.records]
    assert "https://ufm: no answer" in reported
    assert "hidden" not in str(reported)


@pytest.mark.parametrize("values", [{}, {"username": "u"}, {"username": "u", "password": ""}])
def test_a_fabric_without_credentials_is_not_asked(values: Any) -> None:
    world = World(UFM)
    if values:
        world.secret(**values)
    world.look()
    assert world.fabric.asked == []
    assert "expected username and password" in world.records[0].message


def test_a_secret_that_may_not_be_read_is_reported_and_labels_go_on() -> None:
    world = World(UFM, LABELS)
    world.node("a", "r1")
    read = world.read

    def refuses(kind: str, *place: str) -> Any:
        if kind == "Secret":
            raise UnavailableError(problem="forbidden")
        return read(kind, *place)

    world.read = refuses  # type: ignore[method-assign,assignment]
    world.look()
    assert world.domains == {"r1": ["a"]}
    assert "forbidden" in world.records[0].message


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


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (None, {}),
        ({}, {}),
        ({"data": None}, {}),
        ({"data": {"a": "YQ==", "b": "/w==", "c": 5, "d": "odd!"}}, {"a": "a"}),
    ],
)
def test_values_of_a_secret_that_are_no_text_are_left_out(values: Any, found: Any) -> None:
    read = {name: text for name, text in _secret_values(values).items() if text}
    assert read == found
