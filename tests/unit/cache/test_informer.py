"""Watching a cluster into a snapshot: the same as loading it again, whatever happened."""

from typing import Any

import pytest

from pumice.api.objects import FOLLOWED, from_manifest
from pumice.cache.informer import Informer
from pumice.cache.ingest import Ingest
from pumice.cluster.base import Event
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.core.consistency import check
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.errors import GoneError, NotFoundError
from pumice.testing import node, pod, pod_group, queue


@pytest.fixture
def cluster() -> Any:
    cluster = EmbeddedCluster()
    cluster.restore([node("n"), queue("default"), pod_group("g"), pod("p", group="g", cpu=1)])
    return cluster


def follow(cluster: Any, **options: Any) -> Any:
    informer = Informer(cluster, Ingest(Snapshot()), **options)
    informer.sync()
    return informer


def placed(snapshot: Any) -> Any:
    check(snapshot)
    tasks, names = snapshot.tasks, [*snapshot.nodes.names, None]
    return {
        key: (names[tasks.node[row]], Status(tasks.status[row]).name)
        for key, row in tasks.row_of.items()
    }


def reloaded(cluster: Any) -> Any:
    things = [from_manifest(m) for kind in FOLLOWED for m in cluster.list(kind)[0]]
    return placed(Ingest(Snapshot()).load(things))


def test_each_sync_takes_in_what_changed(cluster: Any) -> None:
    informer = follow(cluster)
    cluster.bind("default", "p", "n", {})
    cluster.create(pod("q", group="g", cpu=1))
    assert informer.sync() == 2
    assert placed(informer.snapshot)["default/p"] == ("n", "BOUND")
    assert placed(informer.snapshot) == reloaded(cluster)
    cluster.delete("Pod", "default", "q")
    informer.sync()
    assert placed(informer.snapshot) == reloaded(cluster)
    assert informer.sync() == 0


def test_an_assumed_pod_holds_its_room_until_undone(cluster: Any) -> None:
    informer = follow(cluster)
    informer.assume("default/p", "n")
    assert placed(informer.snapshot)["default/p"] == ("n", "BOUND")
    informer.undo("default/p")
    assert placed(informer.snapshot)["default/p"] == (None, "PENDING")


def test_an_assumed_pod_stays_where_it_is_while_the_cluster_does_not_know(cluster: Any) -> None:
    informer = follow(cluster)
    informer.assume("default/p", "n")
    cluster.patch("Pod", "default", "p", {"metadata": {"labels": {"a": "b"}}})
    informer.sync()
    assert placed(informer.snapshot)["default/p"] == ("n", "BOUND")
    cluster.create(node("m"))
    cluster.bind("default", "p", "m", {})
    informer.sync()
    assert placed(informer.snapshot)["default/p"] == ("m", "BOUND")
    informer.undo("default/p")
    assert placed(informer.snapshot)["default/p"] == ("m", "BOUND")


def test_the_successor_of_an_assumed_pod_is_not_assumed(cluster: Any) -> None:
    informer = follow(cluster)
    informer.assume("default/p", "n")
    cluster.delete("Pod", "default", "p")
    cluster.create(pod("p", group="g"))
    informer.sync()
    assert placed(informer.snapshot)["default/p"] == (None, "PENDING")
    informer.assume("default/nothing", "n")
    informer.undo("default/nothing")
    assert list(placed(informer.snapshot)) == ["default/p"]


def uid(cluster: Any, name: str = "p") -> Any:
    return cluster.get("Pod", "default", name)["metadata"]["uid"]


def test_an_evicted_pod_leaves_from_the_decision_on(cluster: Any) -> None:
    cluster.bind("default", "p", "n", {})
    informer = follow(cluster)
    informer.assume_evicted("default/p")
    assert placed(informer.snapshot)["default/p"] == ("n", "RELEASING")
    assert informer.waits_for("default/p", uid(cluster), "evicted")
    informer.undo("default/p", "evicted")
    assert placed(informer.snapshot)["default/p"] == ("n", "BOUND")
    informer.assume_evicted("default/p")
    cluster.evict("default", "p", "room")
    informer.sync()
    assert placed(informer.snapshot)["default/p"] == ("n", "RELEASING")
    assert not informer.waits_for("default/p", uid(cluster), "evicted")


def test_a_pod_may_be_evicted_before_its_bind_is_reported(cluster: Any) -> None:
    informer = follow(cluster)
    informer.assume("default/p", "n")
    informer.assume_evicted("default/p")
    assert placed(informer.snapshot)["default/p"] == ("n", "RELEASING")
    informer.undo("default/p", "bound")
    assert placed(informer.snapshot)["default/p"] == (None, "RELEASING")
    informer.undo("default/p")
    assert placed(informer.snapshot)["default/p"] == (None, "PENDING")


def test_a_pod_held_back_is_not_to_be_placed(cluster: Any) -> None:
    informer = follow(cluster)
    gated = informer.snapshot.tasks.gated
    row = informer.snapshot.tasks.row_of["default/p"]
    informer.hold("default/p")
    assert gated[row]
    informer.undo("default/p", "held")
    assert not gated[row]
    informer.hold("default/p")
    cluster.bind("default", "p", "n", {})
    informer.sync()
    assert not gated[row]


def test_what_is_kept_of_pods_gone_by_does_not_grow_for_ever(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pumice.cache.informer._LITTER", 20)
    informer = follow(cluster)
    informer.assume("default/p", "n")
    for i in range(200):
        cluster.create(pod(f"q{i}", group="g", cpu=1, labels={"index": str(i)}))
        informer.sync()
        cluster.delete("Pod", "default", f"q{i}", grace_s=0)
        informer.sync()
    assert len(informer.snapshot.label_classes) < 30
    assert placed(informer.snapshot) == {"default/p": ("n", "BOUND")}


# What is not there, and what starts over


class Fake:
    """A cluster of lists and events that a test writes."""

    def __init__(self, **lists: Any) -> None:
        self.lists = {"Pod": [], "Node": [], **lists}
        self.events: dict[str, list[Event]] = {}
        self.watched: list[tuple[str, str]] = []
        self.gone: set[str] = set()
        self.missing: set[str] = set()

    def now(self) -> float:
        return 0.0

    def list(self, kind: str) -> Any:
        if kind in self.missing:
            raise NotFoundError(kind, "")
        return self.lists[kind], "10"

    def watch(self, kind: str, since: str) -> Any:
        self.watched.append((kind, since))
        if kind in self.missing:
            raise NotFoundError(kind, "")
        if kind in self.gone:
            raise GoneError("too old")
        return self.events.pop(kind, [])


def versioned(manifest: Any, version: str) -> Any:
    meta = {**manifest["metadata"], "resourceVersion": version}
    return {**manifest, "metadata": meta}


def informed(fake: Fake) -> Informer:
    informer = Informer(fake, Ingest(Snapshot()), ("Node", "Pod"))  # type: ignore[arg-type]
    informer.sync()
    return informer


def test_of_several_events_of_one_object_the_last_counts() -> None:
    fake = Fake(Node=[versioned(node("n"), "3")])
    informer = informed(fake)
    bound = [versioned(pod("p", cpu=cpu, node="n"), str(11 + cpu)) for cpu in (1, 2)]
    fake.events["Pod"] = [
        Event("ADDED", bound[0]),
        Event("DELETED", bound[0]),
        Event("ADDED", bound[1]),
        Event("ADDED", versioned(pod("q", cpu=1), "14")),
        Event("DELETED", versioned(pod("q", cpu=1), "15")),
    ]
    assert informer.sync() == 2
    assert informer.counts()["Pod"] == 1
    assert informer.snapshot.nodes.used[0, 0] == 2000
    check(informer.snapshot)


def test_a_list_after_a_gap_takes_in_what_changed_and_drops_what_is_gone() -> None:
    pods = [versioned(pod(name, cpu=1, node="n"), "5") for name in "abc"]
    fake = Fake(Node=[versioned(node("n"), "3")], Pod=pods)
    informer = informed(fake)
    fake.gone = {"Pod"}
    changed = versioned(pod("b", cpu=3, node="n"), "6")
    fake.lists["Pod"] = [pods[0], changed, versioned(pod("d", cpu=1), "7")]
    assert informer.sync() == 3
    assert sorted(informer.snapshot.tasks.row_of) == ["default/a", "default/b", "default/d"]
    assert informer.snapshot.nodes.used[0, 0] == 4000
    assert informer.sync() == 0


def test_a_kind_that_the_cluster_does_not_have_is_passed_over() -> None:
    fake = Fake(Node=[versioned(node("n"), "3")])
    fake.missing = {"Pod"}
    informer = informed(fake)
    assert informer.sync() == 0
    assert informer.counts() == {"Node": 1, "Pod": 0}


def test_a_pod_that_is_gone_ends_what_was_assumed_of_it(cluster: Any) -> None:
    informer = follow(cluster)
    informer.assume("default/p", "n")
    informer.take_ended()
    uid = informer.known("Pod", "default/p").metadata.uid
    cluster.delete("Pod", "default", "p")
    informer.sync()
    assert informer.take_ended() == {"default/p"}
    assert not informer.waits_for("default/p", uid, "bound")
