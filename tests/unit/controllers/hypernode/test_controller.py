"""The controller of HyperNodes: discovered ones come, change and go; all of them are counted."""

import base64
from typing import Any

import pytest
import yaml

from pumice.api.kinds import kind_of
from pumice.cluster.ufm import Port, Reading, UfmAccess
from pumice.controllers.base import Key
from pumice.controllers.hypernode import (
    DISCOVERY_CONFIG,
    HyperNodeController,
    _secret_values,
    resolve_members,
)
from pumice.controllers.hypernode_discovery import SOURCE_LABEL
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


def test_conditions_of_others_stay() -> None:
    world = World()
    theirs = {"type": "Cabled", "status": "True", "reason": "x", "message": "y"}
    world.add({**hyper_node("mine", nodes=[]), "status": {"conditions": [theirs]}})
    world.look()
    assert theirs in world.get(HYPER_NODE, "", "mine")["status"]["conditions"]


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


def test_a_fabric_that_is_off_is_not_asked_any_more() -> None:
    world = World({**UFM, "enabled": False})
    world.look()
    assert (world.fabric.asked, world.fabric.forgotten) == ([], 1)


def test_only_what_matters_leads_to_a_look() -> None:
    world = World(UFM)
    world.look()

    def concerned(manifest: Any) -> Any:
        return list(world.controller.concerns(kind_of(manifest), manifest, world))

    node = world.node("a", "r1")
    assert concerned(node) == [EVERYTHING]
    assert concerned({**node, "status": {"beat": 2}}) == []
    assert concerned(world.node("a", "r2")) == [EVERYTHING]
    del world.objects["Node", "", "a"]
    assert concerned(node) == [EVERYTHING]
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "y"}}
    assert concerned(other) == []
    world.secret()
    assert concerned(world.get("Secret", "volcano-system", "ufm-credentials")) == [EVERYTHING]
    assert concerned({**other, "kind": "Secret"}) == []
    assert concerned(hyper_node("h")) == [EVERYTHING]


def test_crowds_of_events_lead_to_one_look_a_second() -> None:
    world = World(LABELS)
    world.node("a", "r1")
    world.look()
    world.now += 0.4
    plan = world.controller.reconcile(EVERYTHING, world)
    assert plan.look_at == []
    assert plan.again_in_s == pytest.approx(1.0, abs=0.61)


def test_the_configmap_is_read_again_where_its_changes_are_not_reported() -> None:
    assert World(LABELS).look().again_in_s is None
    assert World(controller=HyperNodeController(poll_s=7.0)).look().again_in_s == 7.0


def test_a_fabric_manager_is_asked_again_soon_whether_it_has_answered() -> None:
    assert World(UFM).look().again_in_s == 5.0


def test_one_on_its_way_out_is_left_alone() -> None:
    world = World(LABELS)
    world.node("a", "r1")
    world.look()
    (made,) = world.list(HYPER_NODE)
    made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world.node("a")
    world.look()
    assert made["metadata"]["labels"][SOURCE_LABEL] == "label"


def test_a_problem_of_the_fabric_is_reported_once_while_the_settings_stay() -> None:
    world = World(UFM)
    world.secret(username="me", password="hidden")  # noqa: S106
    world.fabric.reading = Reading(None, "is away")
    for _ in range(3):
        world.look()
    assert [each.message for each in world.records] == ["is away"]
    world.fabric.reading = Reading(None, "is still away")
    world.look()
    assert [each.message for each in world.records] == ["is away", "is still away"]
    world.configure(UFM, {"source": "label", "enabled": False})
    world.look()
    assert len(world.records) == 3


def test_a_hyper_node_that_was_not_resolved_yet_keeps_its_status() -> None:
    world = World(LABELS)
    world.node("a", "r1")
    world.look()
    world.add(hyper_node("late", tier=1))
    plan = world.controller.reconcile(Key(HYPER_NODE, "", "late"), world)
    assert plan.effects == []


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
