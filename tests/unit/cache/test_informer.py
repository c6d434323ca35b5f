"""Following a cluster into a snapshot: the same as loading it anew, whatever happened."""

from typing import Any

import pytest

from pumice.api.groups import PodGroupStatus
from pumice.api.objects import from_manifest
from pumice.cache.informer import FOLLOWED, Informer
from pumice.cache.ingest import Ingest
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.core.consistency import check
from pumice.core.snapshot import Snapshot
from pumice.core.status import PHASES, Status
from pumice.testing import node, pod, pod_group, queue

GROUP = "PodGroup.scheduling.volcano.sh"


@pytest.fixture
def cluster() -> Any:
    cluster = EmbeddedCluster()
    cluster.restore([node("n"), queue("default"), pod_group("g"), pod("p", group="g", cpu=1)])
    return cluster


def follow(cluster: Any, **options: Any) -> Any:
    follower = Informer(cluster, Ingest(Snapshot()), **options)
    follower.sync()
    return follower


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


def test_the_first_sync_loads_everything(cluster: Any) -> None:
    follower = follow(cluster)
    assert placed(follower.snapshot) == {"default/p": (None, "PENDING")} == reloaded(cluster)


def test_each_sync_takes_in_what_changed(cluster: Any) -> None:
    follower = follow(cluster)
    cluster.bind("default", "p", "n", {})
    cluster.create(pod("q", group="g", cpu=1))
    assert follower.sync() == 2
    assert placed(follower.snapshot)["default/p"] == ("n", "BOUND")
    assert placed(follower.snapshot) == reloaded(cluster)
    cluster.delete("Pod", "default", "q")
    follower.sync()
    assert placed(follower.snapshot) == reloaded(cluster)
    assert follower.sync() == 0


def test_a_follower_that_missed_too_much_starts_over(cluster: Any) -> None:
    follower = follow(cluster)
    cluster.delete("Pod", "default", "p")
    cluster.create(pod("q", group="g"))
    cluster.compact()
    follower.sync()
    assert list(placed(follower.snapshot)) == ["default/q"]
    assert follower.sync() == 0


def test_a_bad_object_is_reported_and_skipped(cluster: Any) -> None:
    follower = follow(cluster)
    cluster.create(pod("bad", resources={"cpu": "lots"}))
    cluster.create(pod("good"))
    follower.sync()
    assert list(placed(follower.snapshot)) == ["default/p", "default/good"]
    (problem,) = follower.problems
    assert (problem.kind, problem.key) == ("Pod", "default/bad")
    cluster.delete("Pod", "default", "bad")
    follower.sync()
    assert len(follower.problems) == 1


def test_a_bad_object_at_the_start_is_skipped_too(cluster: Any) -> None:
    cluster.create(pod("bad", resources={"cpu": "lots"}))
    assert len(follow(cluster).problems) == 1


def test_an_assumed_pod_holds_its_room_until_undone(cluster: Any) -> None:
    follower = follow(cluster)
    follower.assume("default/p", "n")
    assert placed(follower.snapshot)["default/p"] == ("n", "BOUND")
    follower.undo("default/p")
    assert placed(follower.snapshot)["default/p"] == (None, "PENDING")


def test_an_assumed_pod_stays_where_it_is_while_the_cluster_does_not_know(cluster: Any) -> None:
    follower = follow(cluster)
    follower.assume("default/p", "n")
    cluster.patch("Pod", "default", "p", {"metadata": {"labels": {"a": "b"}}})
    follower.sync()
    assert placed(follower.snapshot)["default/p"] == ("n", "BOUND")
    cluster.create(node("m"))
    cluster.bind("default", "p", "m", {})
    follower.sync()
    assert placed(follower.snapshot)["default/p"] == ("m", "BOUND")
    follower.undo("default/p")
    assert placed(follower.snapshot)["default/p"] == ("m", "BOUND")


def test_the_successor_of_an_assumed_pod_is_not_assumed(cluster: Any) -> None:
    follower = follow(cluster)
    follower.assume("default/p", "n")
    cluster.delete("Pod", "default", "p")
    cluster.create(pod("p", group="g"))
    follower.sync()
    assert placed(follower.snapshot)["default/p"] == (None, "PENDING")
    follower.assume("default/nothing", "n")
    follower.undo("default/nothing")
    assert list(placed(follower.snapshot)) == ["default/p"]


def uid(cluster: Any, name: str = "p") -> Any:
    return cluster.get("Pod", "default", name)["metadata"]["uid"]


def test_an_evicted_pod_leaves_from_the_decision_on(cluster: Any) -> None:
    cluster.bind("default", "p", "n", {})
    follower = follow(cluster)
    follower.assume_evicted("default/p")
    assert placed(follower.snapshot)["default/p"] == ("n", "RELEASING")
    assert follower.waits_for("default/p", uid(cluster), "evicted")
    follower.undo("default/p", "evicted")
    assert placed(follower.snapshot)["default/p"] == ("n", "BOUND")
    follower.assume_evicted("default/p")
    cluster.evict("default", "p", "room")
    follower.sync()
    assert placed(follower.snapshot)["default/p"] == ("n", "RELEASING")
    assert not follower.waits_for("default/p", uid(cluster), "evicted")


def test_a_pod_may_be_evicted_before_its_bind_is_told(cluster: Any) -> None:
    follower = follow(cluster)
    follower.assume("default/p", "n")
    follower.assume_evicted("default/p")
    assert placed(follower.snapshot)["default/p"] == ("n", "RELEASING")
    follower.undo("default/p", "bound")
    assert placed(follower.snapshot)["default/p"] == (None, "RELEASING")
    follower.undo("default/p")
    assert placed(follower.snapshot)["default/p"] == (None, "PENDING")


def test_what_is_waited_for_is_of_one_pod_only(cluster: Any) -> None:
    follower = follow(cluster)
    follower.assume("default/p", "n")
    assert follower.waits_for("default/p", uid(cluster), "bound")
    assert not follower.waits_for("default/p", uid(cluster), "evicted")
    assert not follower.waits_for("default/p", "another", "bound")
    assert not follower.waits_for("default/q", uid(cluster), "bound")


def test_a_pod_held_back_is_not_to_be_placed(cluster: Any) -> None:
    follower = follow(cluster)
    gated = follower.snapshot.tasks.gated
    row = follower.snapshot.tasks.row_of["default/p"]
    follower.hold("default/p")
    assert gated[row]
    follower.undo("default/p", "held")
    assert not gated[row]
    follower.hold("default/p")
    cluster.bind("default", "p", "n", {})
    follower.sync()
    assert not gated[row]


def test_a_group_has_the_status_that_was_written_until_that_fails(cluster: Any) -> None:
    follower = follow(cluster)
    jobs = follower.snapshot.jobs
    row = jobs.row_of["default/g"]
    before = PHASES[jobs.phase[row]]
    follower.assume_group("default/g", PodGroupStatus(phase="Running", running=3), {"a": "b"})
    assert PHASES[jobs.phase[row]] == "Running"
    assert jobs.groups[row].metadata.annotations["a"] == "b"
    cluster.patch(GROUP, "default", "g", {"metadata": {"labels": {"x": "y"}}})
    follower.sync()
    assert PHASES[jobs.phase[row]] == "Running"
    follower.undo_group("default/g")
    assert PHASES[jobs.phase[row]] == before
    follower.assume_group("default/none", PodGroupStatus(phase="Running"))
    follower.undo_group("default/none")


def test_what_the_cluster_says_of_a_group_ends_what_was_thought(cluster: Any) -> None:
    follower = follow(cluster)
    jobs = follower.snapshot.jobs
    row = jobs.row_of["default/g"]
    follower.assume_group("default/g", PodGroupStatus(phase="Running"))
    cluster.patch(GROUP, "default", "g", {"status": {"phase": "Running"}})
    follower.sync()
    cluster.patch(GROUP, "default", "g", {"status": {"phase": "Inqueue"}})
    follower.sync()
    assert PHASES[jobs.phase[row]] == "Inqueue"


def test_a_group_of_the_same_name_is_another_one(cluster: Any) -> None:
    follower = follow(cluster)
    follower.assume_group("default/g", PodGroupStatus(phase="Running"))
    cluster.delete(GROUP, "default", "g")
    cluster.create(pod_group("g", phase="Inqueue"))
    follower.sync()
    jobs = follower.snapshot.jobs
    assert PHASES[jobs.phase[jobs.row_of["default/g"]]] == "Inqueue"


def test_a_group_without_a_queue_counts_for_the_default_one(cluster: Any) -> None:
    cluster.create(queue("spare"))
    bare = pod_group("bare")
    bare["spec"].pop("queue", None)
    cluster.restore([bare])  # an API server would write the default itself
    snapshot = follow(cluster, default_queue="spare").snapshot
    jobs = snapshot.jobs
    assert snapshot.queues.names[jobs.queue[jobs.row_of["default/bare"]]] == "spare"


def test_nodes_that_are_not_wanted_are_not_there(cluster: Any) -> None:
    cluster.create(node("m", labels={"pool": "batch"}))
    follower = follow(cluster, wants_node=lambda n: n.metadata.labels.get("pool") == "batch")
    assert list(follower.snapshot.nodes.row_of) == ["m"]
    cluster.patch("Node", "", "m", {"metadata": {"labels": {"pool": "other"}}})
    cluster.patch("Node", "", "n", {"metadata": {"labels": {"pool": "batch"}}})
    follower.sync()
    assert list(follower.snapshot.nodes.row_of) == ["n"]


def test_what_is_known_can_be_asked_and_counted(cluster: Any) -> None:
    follower = follow(cluster)
    assert follower.known("Pod", "default/p").metadata.name == "p"
    assert follower.known("Pod", "default/none") is None
    assert follower.counts()["Pod"] == 1


def test_a_pod_that_only_moves_keeps_the_tables_right(cluster: Any) -> None:
    """Each step of a pod's life, with the tables as loaded anew after each."""
    follower = follow(cluster)
    cluster.create(node("m"))
    for change in (
        lambda: cluster.merge_status("Pod", "default", "p", {"nominatedNodeName": "n"}),
        lambda: cluster.bind("default", "p", "n", {}),
        lambda: cluster.merge_status("Pod", "default", "p", {"phase": "Running"}),
        lambda: cluster.evict("default", "p", "room"),
        lambda: cluster.merge_status("Pod", "default", "p", {"phase": "Failed"}),
    ):
        change()
        follower.sync()
        assert placed(follower.snapshot) == reloaded(cluster)
    nominated = follower.snapshot.tasks.nominated[follower.snapshot.tasks.row_of["default/p"]]
    assert nominated == -1


def test_what_is_kept_of_pods_gone_by_does_not_grow_for_ever(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pumice.cache.informer._LITTER", 20)
    follower = follow(cluster)
    follower.assume("default/p", "n")
    for i in range(200):
        cluster.create(pod(f"q{i}", group="g", cpu=1, labels={"index": str(i)}))
        follower.sync()
        cluster.delete("Pod", "default", f"q{i}", grace_s=0)
        follower.sync()
    assert len(follower.snapshot.label_classes) < 30
    assert placed(follower.snapshot) == {"default/p": ("n", "BOUND")}
