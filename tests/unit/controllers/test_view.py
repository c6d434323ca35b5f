"""What controllers see: objects by place and owner, looked-up ones, and their own writes."""

from typing import Any
from unittest import mock

import pytest

from pumice.clock import VirtualClock
from pumice.cluster.base import Event
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.controllers import view as lookups
from pumice.controllers.backoff import NamespaceDeletions
from pumice.controllers.base import (
    Create,
    Delete,
    Effect,
    Key,
    Patch,
    Record,
    controller_of,
    key_of,
)
from pumice.controllers.effects import batches, carry_out
from pumice.controllers.view import ClusterView, Lookups, ManifestView, ObjectIndex
from pumice.errors import ConflictError, GoneError, NamespaceTerminatingError, NotFoundError


def thing(name: str, version: Any = 1, *, owner: str = "", space: str = "ns", **more: Any) -> Any:
    owners = [{"uid": "x"}, {"uid": owner, "controller": True}] if owner else [{"uid": "x"}]
    metadata = {
        "name": name,
        "namespace": space,
        "uid": f"u-{name}",
        "resourceVersion": str(version),
        "ownerReferences": owners,
        **more,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


def names(found: Any) -> list[str]:
    return [each["metadata"]["name"] for each in found]


# Indexes


def test_objects_are_found_by_the_owner_that_controls_them() -> None:
    index, owner = ObjectIndex(), {"metadata": {"uid": "o"}}
    for name in "ba":
        assert index.put(thing(name, owner="o")) is None
    index.put(thing("c"))
    assert names(index.owned_by(owner)) == ["a", "b"]
    assert names(index.owned_by({"metadata": {"uid": "x"}})) == []
    assert names(index.owned_by({"metadata": {}})) == []
    old = index.put(thing("a", 2))
    assert old == thing("a", owner="o")
    assert names(index.owned_by(owner)) == ["b"]
    assert index.remove(thing("b")) == thing("b", owner="o")
    assert index.remove(thing("b")) is None
    assert index.owned_by(owner) == []
    assert not index._owned
    index.put(thing("a", 3, owner="o"))
    assert names(index.owned_by(owner)) == ["a"]


def test_objects_are_listed_by_namespace_and_labels_in_the_order_of_names() -> None:
    index = ObjectIndex()
    index.put(thing("b", labels={"l": "1", "m": "2"}))
    index.put(thing("a", space="other", labels={"l": "1"}))
    index.put(thing("a", labels=None))
    assert names(index.all()) == ["a", "b", "a"]
    assert names(index.all("other")) == ["a"]
    assert names(index.all("absent")) == []
    assert names(index.labelled("", {"l": "1"})) == ["b", "a"]
    assert names(index.labelled("ns", {"l": "1", "m": "2"})) == ["b"]
    assert names(index.labelled("ns", {})) == ["a", "b"]
    assert index.get("other", "a") == thing("a", space="other", labels={"l": "1"})
    assert index.get("other", "b") is None
    assert index.get("absent", "b") is None


def test_of_objects_given_twice_only_the_later_one_has_an_owner() -> None:
    view = ManifestView([thing("a", owner="o"), thing("a", owner="p"), thing("b", owner="o")])
    assert names(view.owned_by("Pod", {"metadata": {"uid": "o"}})) == ["b"]
    assert names(view.owned_by("Pod", {"metadata": {"uid": "p"}})) == ["a"]


def test_a_view_of_given_manifests() -> None:
    view = ManifestView([thing("a", owner="o", labels={"l": "1"})], 7.0)
    assert view.now == 7.0
    assert view.get("Pod", "ns", "a") == view.read("Pod", "ns", "a") == view.list("Pod")[0]
    assert view.get("Node", "", "a") is None
    assert names(view.owned_by("Pod", {"metadata": {"uid": "o"}})) == ["a"]
    assert names(view.list("Pod", "ns", {"l": "2"})) == []


@pytest.mark.parametrize(
    ("owners", "uid"),
    [
        (None, None),
        ([], None),
        ([{"uid": "a"}], None),
        ([{"uid": "a", "controller": False}, {"uid": "b", "controller": True}], "b"),
    ],
)
def test_the_owner_that_controls(owners: Any, uid: str | None) -> None:
    found = controller_of({"metadata": {"ownerReferences": owners}})
    assert (found and found["uid"]) == uid


def test_an_object_is_named_by_kind_and_place() -> None:
    assert key_of(thing("a")) == Key("Pod", "ns", "a")
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    assert key_of(node) == Key("Node", "", "n")


def below(name: str, parent: Any = None) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"parent": parent}}


def names_below(index: ObjectIndex, parent: str) -> list[str]:
    return [one["metadata"]["name"] for one in index.below(parent)]


def test_objects_below_another_follow_every_change() -> None:
    index = ObjectIndex()
    assert names_below(index, "a") == []
    index.fill([below("c", "a"), below("b", "a"), below("a"), {"metadata": {"name": "odd"}}])
    assert names_below(index, "a") == ["b", "c"]
    index.put(below("c", "b"))
    index.put(below("d", "a"))
    assert (names_below(index, "a"), names_below(index, "b")) == (["b", "d"], ["c"])
    index.remove(below("d"))
    index.put(below("b", "a"))
    assert (names_below(index, "a"), names_below(index, "x")) == (["b"], [])


# Lookups


class Asked:
    """A cluster that is asked for single objects."""

    def __init__(self) -> None:
        self.time, self.asked = 100.0, 0
        self.known: dict[str, Any] = {"a": thing("a")}

    def now(self) -> float:
        return self.time

    def get(self, kind: str, namespace: str, name: str) -> Any:
        self.asked += 1
        if name not in self.known:
            raise NotFoundError(kind, namespace, name)
        return self.known[name]


def test_an_answer_is_good_for_a_minute_and_absence_is_asked_for_again() -> None:
    cluster: Any = Asked()
    looked = Lookups(cluster, ["Pod"])
    for time, asked in ((100.0, 1), (159.9, 1), (160.0, 2)):
        cluster.time = time
        assert looked.get("Pod", "ns", "a") == thing("a")
        assert cluster.asked == asked
    for asked in (3, 4):
        assert looked.get("Pod", "ns", "absent") is None
        assert cluster.asked == asked
    cluster.known.clear()
    assert looked.get("Pod", "ns", "a") is not None
    cluster.time = 300.0
    assert looked.get("Pod", "ns", "a") is None
    assert looked._answers == {}


def test_what_was_written_is_known_if_its_kind_is_looked_up() -> None:
    cluster: Any = Asked()
    looked = Lookups(cluster, ["Pod"])
    looked.put(thing("b"))
    looked.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    assert looked.get("Pod", "ns", "b") == thing("b")
    assert cluster.asked == 0
    assert len(looked._answers) == 1
    looked.forget(Key("Pod", "ns", "b"))
    assert looked.get("Pod", "ns", "b") is None
    looked.put(thing("b"))
    looked.clear()
    assert looked.get("Pod", "ns", "b") is None


def test_too_many_answers_are_forgotten_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "_KEPT", 2)
    cluster: Any = Asked()
    looked = Lookups(cluster, ["Pod"])
    for name, kept in (("b", 1), ("c", 2), ("d", 1)):
        looked.put(thing(name))
        assert len(looked._answers) == kept


# Views of a cluster


class Watched(Asked):
    """A cluster whose watch is written by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.known = {}
        self.version = 10
        self.events: list[Event] = []
        self.is_gone = False
        self.watched = 0

    def list(self, kind: str) -> Any:
        return [*self.known.values()], str(self.version)

    def watch(self, kind: str, since: str) -> Any:
        self.watched += 1
        if self.is_gone:
            self.is_gone = False
            raise GoneError(kind)
        events, self.events = self.events, []
        return events


@pytest.fixture
def cluster() -> Any:
    return Watched()


def changes(view: ClusterView) -> list[tuple[str, str]]:
    """Return what changed, as added, changed or gone."""
    found = []
    for _, old, new in view.refresh():
        what = "added" if old is None else "gone" if new is None else "changed"
        found.append((what, (new or old or {})["metadata"]["name"]))
    return found


def test_changes_are_applied_and_reported_once(cluster: Any) -> None:
    cluster.known = {"a": thing("a", 5)}
    view = ClusterView(cluster, ["Pod"])
    assert changes(view) == [("added", "a")]
    bookmark = {"metadata": {"resourceVersion": "14"}}
    cluster.events = [
        Event("ADDED", thing("b", 11)),
        Event("MODIFIED", thing("a", 12)),
        Event("DELETED", thing("b", 13)),
        Event("BOOKMARK", bookmark),
    ]
    assert changes(view) == [("added", "b"), ("changed", "a"), ("gone", "b")]
    assert view._mirrors["Pod"].version == "14"
    assert changes(view) == []
    cluster.events = [Event("DELETED", thing("unknown", 15))]
    assert changes(view) == [("gone", "unknown")]


def test_a_view_that_missed_too_much_reports_the_differences(cluster: Any) -> None:
    cluster.known = {name: thing(name, 5) for name in "abc"}
    view = ClusterView(cluster, ["Pod"])
    changes(view)
    cluster.known = {"a": thing("a", 5), "b": thing("b", 12), "d": thing("d", 13)}
    cluster.version, cluster.is_gone = 20, True
    assert sorted(changes(view)) == [("added", "d"), ("changed", "b"), ("gone", "c")]
    assert view._mirrors["Pod"].version == "20"


@pytest.mark.parametrize("exists", [True, False])
def test_a_list_settles_what_was_only_known_from_writes(cluster: Any, exists: bool) -> None:
    view = ClusterView(cluster, ["Pod"])
    changes(view)
    view.expect(thing("a", 12))
    cluster.known = {"a": thing("a", 12)} if exists else {}
    cluster.version, cluster.is_gone = 20, True
    assert changes(view) == ([] if exists else [("gone", "a")])
    assert (view.get("Pod", "ns", "a") is not None) == exists
    assert changes(view) == []
    assert cluster.asked == 0


def test_kinds_whose_last_change_is_known_are_not_watched_again(cluster: Any) -> None:
    latest = {"Pod": 10}
    view = ClusterView(cluster, ["Pod"], tables=mock.Mock(latest=latest))
    changes(view)
    assert cluster.watched == 1
    changes(view)
    assert cluster.watched == 1
    latest["Pod"] = 11
    cluster.events = [Event("ADDED", thing("a", 11))]
    assert changes(view) == [("added", "a")]
    changes(view)
    assert cluster.watched == 2


def test_a_write_is_seen_before_it_is_reported_and_then_not_again(cluster: Any) -> None:
    view = ClusterView(cluster, ["Pod"])
    changes(view)
    change = view.expect(thing("a", 12))
    assert change == ("Pod", None, thing("a", 12))
    assert view.get("Pod", "ns", "a") == thing("a", 12)
    assert view.expect(thing("a", 12)) is None
    assert view.expect(thing("a", 11)) is None
    assert view.expect(thing("a", 13)) == ("Pod", thing("a", 12), thing("a", 13))
    cluster.events = [
        Event("ADDED", thing("a", 12)),
        Event("MODIFIED", thing("a", 13)),
        Event("MODIFIED", thing("a", 14)),
    ]
    assert changes(view) == [("changed", "a")]
    assert view.get("Pod", "ns", "a") == thing("a", 14)


@pytest.mark.parametrize(
    ("version", "is_new"), [("9", False), ("10", False), ("11", True), ("", False), ("odd", False)]
)
def test_an_answer_that_is_no_newer_than_the_watch_adds_nothing(
    cluster: Any, version: str, is_new: bool
) -> None:
    view = ClusterView(cluster, ["Pod"])
    changes(view)
    assert (view.expect(thing("a", version)) is not None) == is_new
    other = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    assert view.expect(other) is None


@pytest.mark.parametrize(("version", "is_gone"), [(11, False), (12, True), (13, True)])
def test_a_deletion_counts_if_it_is_no_older_than_the_write(
    cluster: Any, version: int, is_gone: bool
) -> None:
    view = ClusterView(cluster, ["Pod"])
    changes(view)
    view.expect(thing("a", 12))
    cluster.known = {"a": thing("a", 12)}
    cluster.events = [Event("DELETED", thing("a", version))]
    assert changes(view) == ([("gone", "a")] if is_gone else [])


def test_an_object_that_the_watch_passed_over_is_gone(cluster: Any) -> None:
    view = ClusterView(cluster, ["Pod"])
    changes(view)
    view.expect(thing("a", 12))
    cluster.events = [Event("ADDED", thing("b", 12))]
    assert changes(view) == [("added", "b"), ("gone", "a")]
    assert view.get("Pod", "ns", "a") is None


@pytest.mark.parametrize("exists", [True, False])
def test_an_object_that_is_not_reported_in_time_is_looked_up_once(
    cluster: Any, exists: bool
) -> None:
    view = ClusterView(cluster, ["Pod"])
    changes(view)
    view.expect(thing("a", 12))
    if exists:
        cluster.known = {"a": thing("a", 12)}
    cluster.time += 4.9
    assert changes(view) == []
    assert cluster.asked == 0
    cluster.time += 0.1
    assert changes(view) == ([] if exists else [("gone", "a")])
    cluster.time += 60.0
    assert changes(view) == []
    assert cluster.asked == 1


def test_objects_that_are_looked_up_are_not_watched(cluster: Any) -> None:
    view = ClusterView(cluster, ["Pod", "Secret"], looked_up=["Secret"])
    assert list(view._mirrors) == ["Pod"]
    assert view.get("Secret", "ns", "a") is None
    cluster.known = {"a": thing("a")}
    assert view.get("Secret", "ns", "a") == thing("a")
    cluster.known = {"a": thing("a", 2)}
    assert view.get("Secret", "ns", "a") == thing("a")
    assert view.read("Secret", "ns", "a") == thing("a", 2)


# Effects


def test_effects_that_depend_on_nothing_go_together() -> None:
    pod, other = Create(thing("a")), Create({**thing("b"), "kind": "Secret"})
    gone, patch = Delete(Key("Pod", "ns", "a")), Patch(Key("Pod", "ns", "a"), {})
    told = Record(thing("a"), "Normal", "r", "m", "s")
    effects: list[Effect] = [pod, pod, other, gone, gone, patch, patch, told, told, pod]
    lengths = [len(batch) for batch in batches(effects)]
    assert lengths == [2, 1, 2, 1, 1, 2, 1]
    assert [effect for batch in batches(effects) for effect in batch] == effects
    assert list(batches([])) == []


def test_what_is_gone_need_not_be_deleted_but_another_must_not_be() -> None:
    cluster = EmbeddedCluster(VirtualClock(0.0))
    assert carry_out(cluster, Delete(Key("Pod", "default", "absent"))) is None
    metadata = {"name": "c", "namespace": "default"}
    made = carry_out(
        cluster, Create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    )
    assert made is not None
    with pytest.raises(ConflictError):
        carry_out(cluster, Delete(Key("ConfigMap", "default", "c"), uid="other"))
    assert carry_out(cluster, Delete(Key("ConfigMap", "default", "c"))) is None
    assert cluster.list("ConfigMap")[0] == []


def test_an_event_about_what_is_being_deleted_is_left_out() -> None:
    class Refusing(EmbeddedCluster):
        def record(self, *_: Any, **__: Any) -> None:
            raise NamespaceTerminatingError("Event", "ns", "e")

    assert carry_out(Refusing(), Record(thing("a"), "Normal", "r", "m", "s")) is None


# Namespaces that are being deleted


def test_refusals_hold_a_namespace_ever_longer() -> None:
    holds, now = NamespaceDeletions(), 100.0
    for length in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000):
        assert holds.refused("ns", now) == (length == 1)
        assert holds.left_s("ns", now) == length
        assert not holds.refused("ns", now + length - 0.5)
        assert holds.left_s("ns", now + length - 0.5) == 0.5
        now += length
    assert holds.left_s("ns", now + 1) == 0.0
    assert holds.left_s("other", now) == 0.0


def test_only_creations_in_a_held_namespace_wait() -> None:
    holds = NamespaceDeletions()
    here, there = Create(thing("a")), Create(thing("a", space="other"))
    assert holds.wait_s([here], 0.0) == 0.0
    holds.refused("ns", 0.0)
    assert holds.wait_s([there, here], 0.25) == 0.75
    assert holds.wait_s([there, Delete(Key("Pod", "ns", "a"))], 0.25) == 0.0
    assert holds.wait_s([], 0.25) == 0.0


@pytest.mark.parametrize(
    ("old", "new", "released"),
    [
        (None, thing("a"), True),
        (thing("a"), thing("a", 2), False),
        (thing("a"), thing("a", 2, uid="other"), True),
        (thing("a"), None, False),
        (None, thing("a", space="other"), False),
    ],
)
def test_a_new_object_shows_that_the_namespace_is_another(
    old: Any, new: Any, released: bool
) -> None:
    holds = NamespaceDeletions()
    holds.refused("ns", 0.0)
    holds.notice(("Pod", old, new))
    assert (holds.left_s("ns", 0.5) == 0.0) == released


def test_namespaces_that_were_not_tried_for_long_are_forgotten() -> None:
    holds = NamespaceDeletions()
    holds.refused("old", 0.0)
    holds.refused("new", 1000.9)
    assert set(holds._holds) == {"old", "new"}
    holds.refused("newer", 1001.0)
    assert set(holds._holds) == {"new", "newer"}
