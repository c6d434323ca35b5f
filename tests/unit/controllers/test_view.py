"""What controllers see: objects by place and owner, looked-up ones, and their own writes."""

from typing import Any

import pytest

from pumice.clock import VirtualClock
from pumice.cluster.base import Event
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.controllers.base import Create, Delete, Key, Record
from pumice.controllers.effects import carry_out
from pumice.controllers.view import ClusterView, ManifestView
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


# Indexes


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


def names(found: Any) -> list[str]:
    return [each["metadata"]["name"] for each in found]


def test_of_objects_given_twice_only_the_later_one_has_an_owner() -> None:
    view = ManifestView([thing("a", owner="o"), thing("a", owner="p"), thing("b", owner="o")])
    assert names(view.owned_by("Pod", {"metadata": {"uid": "o"}})) == ["b"]
    assert names(view.owned_by("Pod", {"metadata": {"uid": "p"}})) == ["a"]
