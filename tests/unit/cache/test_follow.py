"""Following a cluster into a snapshot: the same as loading it anew, whatever happened."""

import pytest

from pumice.api.objects import from_manifest
from pumice.cache.follow import FOLLOWED, Follower
from pumice.cache.ingest import Ingest
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.core.checks import check
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.testing import node, pod, pod_group, queue


@pytest.fixture
def cluster():
    cluster = EmbeddedCluster()
    cluster.restore([node("n"), queue("default"), pod_group("g"), pod("p", group="g", cpu=1)])
    return cluster


def follow(cluster):
    follower = Follower(cluster, Ingest(Snapshot()))
    follower.sync()
    return follower


def placed(snapshot):
    check(snapshot)
    tasks, names = snapshot.tasks, [*snapshot.nodes.names, None]
    return {
        key: (names[tasks.node[row]], Status(tasks.status[row]).name)
        for key, row in tasks.row_of.items()
    }


def reloaded(cluster):
    things = [from_manifest(m) for kind in FOLLOWED for m in cluster.list(kind)[0]]
    return placed(Ingest(Snapshot()).load(things))


def test_the_first_sync_loads_everything(cluster):
    follower = follow(cluster)
    assert placed(follower.snapshot) == {"default/p": (None, "PENDING")} == reloaded(cluster)


def test_each_sync_takes_in_what_changed(cluster):
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


def test_a_follower_that_missed_too_much_starts_over(cluster):
    follower = follow(cluster)
    cluster.delete("Pod", "default", "p")
    cluster.create(pod("q", group="g"))
    cluster.compact()
    follower.sync()
    assert list(placed(follower.snapshot)) == ["default/q"]
    assert follower.sync() == 0


def test_a_bad_object_is_reported_and_skipped(cluster):
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


def test_a_bad_object_at_the_start_is_skipped_too(cluster):
    cluster.create(pod("bad", resources={"cpu": "lots"}))
    assert len(follow(cluster).problems) == 1


def test_an_assumed_pod_holds_its_room_until_undone(cluster):
    follower = follow(cluster)
    follower.assume("default/p", "n")
    assert placed(follower.snapshot)["default/p"] == ("n", "BOUND")
    follower.undo("default/p")
    assert placed(follower.snapshot)["default/p"] == (None, "PENDING")


def test_an_assumed_pod_stays_where_it_is_while_the_cluster_does_not_know(cluster):
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


def test_the_successor_of_an_assumed_pod_is_not_assumed(cluster):
    follower = follow(cluster)
    follower.assume("default/p", "n")
    cluster.delete("Pod", "default", "p")
    cluster.create(pod("p", group="g"))
    follower.sync()
    assert placed(follower.snapshot)["default/p"] == (None, "PENDING")
    follower.assume("default/nothing", "n")
    follower.undo("default/nothing")
    assert list(placed(follower.snapshot)) == ["default/p"]
