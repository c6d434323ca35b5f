"""Objects that cannot be read or taken in: each hurts only itself, and its node keeps its count."""

from typing import Any

import pytest

from pumice.cache.informer import Informer
from pumice.cache.ingest import Ingest
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.core.consistency import check
from pumice.core.snapshot import Snapshot
from pumice.testing import node, pod, pod_group, queue

GPU = "nvidia.com/gpu"
GROUP = "PodGroup.scheduling.volcano.sh"
QUEUE = "Queue.scheduling.volcano.sh"
STRANGE = {"tolerations": [{"key": "a", "operator": "Resembles"}]}
NOT_UTF8 = {"nodeSelector": {"zone": "\ud800"}}
"""The first cannot be read; the second can, but it cannot be written for comparison."""


@pytest.fixture
def cluster() -> Any:
    cluster = EmbeddedCluster()
    cluster.restore([node("n", cpu=8, resources={GPU: 4}), queue("default"), pod_group("g")])
    return cluster


def follow(cluster: Any) -> Any:
    informer = Informer(cluster, Ingest(Snapshot()))
    informer.sync()
    return informer


def sync(informer: Any) -> Any:
    informer.sync()
    check(informer.snapshot)
    return set(informer.snapshot.tasks.row_of)


def idle(informer: Any, name: str = "cpu") -> Any:
    snapshot = informer.snapshot
    return float(snapshot.nodes.idle[snapshot.resources.row(name), 0])


@pytest.mark.parametrize("spec", [STRANGE, NOT_UTF8], ids=["unreadable", "refused"])
def test_others_are_taken_in_and_the_bad_one_is_reported_once(cluster: Any, spec: Any) -> None:
    informer = follow(cluster)
    cluster.restore([pod("a"), pod("bad", spec=spec), pod("c")])
    assert sync(informer) == {"default/a", "default/c"}
    (problem,) = informer.problems
    assert (problem.kind, problem.key) == ("Pod", "default/bad")
    cluster.compact()
    sync(informer)
    assert informer.skipped == {"Pod": 1}
    cluster.restore([pod("bad", labels={"a": "b"}, spec=spec)])
    sync(informer)
    assert informer.skipped == {"Pod": 2}


@pytest.mark.parametrize("spec", [STRANGE, NOT_UTF8], ids=["unreadable", "refused"])
def test_a_bad_pod_counts_on_its_node_until_it_goes(cluster: Any, spec: Any) -> None:
    informer = follow(cluster)
    cluster.restore([pod("bad", cpu=3, resources={GPU: 1}, node="n", spec=spec)])
    sync(informer)
    assert (idle(informer), idle(informer, GPU)) == (5000, 3000)
    assert idle(follow(cluster)) == 5000
    cluster.delete("Pod", "default", "bad", grace_s=0)
    assert sync(informer) == set()
    assert (idle(informer), idle(informer, GPU)) == (8000, 4000)


def test_a_pod_that_becomes_unreadable_is_no_longer_placed(cluster: Any) -> None:
    cluster.restore([pod("p", cpu=1, group="g")])
    informer = follow(cluster)
    cluster.patch("Pod", "default", "p", {"spec": STRANGE})
    assert sync(informer) == set()
    cluster.patch("Pod", "default", "p", {"spec": {"tolerations": []}})
    assert sync(informer) == {"default/p"}


def test_a_pod_that_becomes_unreadable_keeps_the_room_it_was_promised(cluster: Any) -> None:
    cluster.restore([pod("p", cpu=1, group="g")])
    informer = follow(cluster)
    informer.assume("default/p", "n")
    cluster.patch("Pod", "default", "p", {"spec": STRANGE})
    sync(informer)
    assert idle(informer) == 7000
    informer.undo("default/p", "bound")
    informer.settle()
    check(informer.snapshot)
    assert idle(informer) == 8000
    assert "default/p" not in informer.snapshot.tasks.row_of


def test_other_objects_keep_their_last_good_version(cluster: Any) -> None:
    cluster.restore([queue("q", weight=3)])
    informer = follow(cluster)
    cluster.patch(QUEUE, "", "q", {"spec": {"weight": "many"}})
    sync(informer)
    queues = informer.snapshot.queues
    assert queues.weight[queues.row_of["q"]] == 3
    assert informer.skipped == {QUEUE: 1}
    cluster.delete(QUEUE, "", "q")
    sync(informer)
    assert "q" not in informer.snapshot.queues.row_of


def test_pods_cannot_fill_the_tables_with_resources_that_nobody_has(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pumice.cache.informer._STRANGE_RESOURCES", 3)
    monkeypatch.setattr("pumice.cache.informer._PATIENCE_S", 60.0)
    informer = follow(cluster)
    for i in range(10):
        cluster.restore([pod(f"p{i}", cpu=1, resources={f"example.com/x{i}": 1})])
    cluster.restore([pod_group("wants", min_resources={"example.com/y": 1}), pod("good", cpu=1)])
    sync(informer)
    assert len(informer.snapshot.resources) == 7
    assert set(informer.snapshot.tasks.row_of) == {f"default/p{i}" for i in range(3)} | {
        "default/good"
    }
    assert informer.skipped == {"Pod": 7, GROUP: 1}
    for i in range(9):
        cluster.delete("Pod", "default", f"p{i}", grace_s=0)
    sync(informer)
    assert "default/p9" not in informer.snapshot.tasks.row_of
    cluster.clock.advance_to(cluster.now() + 61)
    sync(informer)
    assert "default/p9" in informer.snapshot.tasks.row_of
    assert "default/wants" in informer.snapshot.jobs.row_of


def test_what_a_node_has_may_be_asked_for_without_limit(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pumice.cache.informer._STRANGE_RESOURCES", 0)
    informer = follow(cluster)
    cluster.restore([pod("p", resources={GPU: 1}), pod("q", resources={"example.com/x": 1})])
    assert sync(informer) == {"default/p"}


@pytest.mark.parametrize("text", ["9" * 30, "-" + "9" * 19, "\u0663", "1_0", " 7", "0x7", ""])
def test_a_priority_that_go_would_not_read_is_not_there(cluster: Any, text: Any) -> None:
    cluster.restore([pod("p", priority=5, annotations={"volcano.sh/task-priority": text})])
    informer = follow(cluster)
    assert informer.snapshot.tasks.priority[0] == 5
    assert not informer.skipped


HUGE = "9000000000000000000"


@pytest.mark.parametrize("amount", [HUGE, "1e12", "5e9"])
def test_a_node_is_as_before_when_an_endless_request_has_gone(cluster: Any, amount: Any) -> None:
    informer = follow(cluster)
    for i in range(40):
        cluster.restore([pod(f"huge{i}", resources={"cpu": amount, GPU: amount}, node="n")])
    cluster.restore([pod("small", resources={"cpu": "1m", "memory": "1"}, node="n")])
    sync(informer)
    assert idle(informer) < -1e12
    for i in range(40):
        cluster.delete("Pod", "default", f"huge{i}", grace_s=0)
    sync(informer)
    snapshot = informer.snapshot
    assert (idle(informer), idle(informer, GPU)) == (7999, 4000)
    assert snapshot.nodes.used[:2, 0].tolist() == [1, 1]


def test_a_node_that_claimed_too_much_is_corrected(cluster: Any) -> None:
    informer = follow(cluster)
    for cpu, gpu in ((HUGE, HUGE), ("8", "4")):
        cluster.merge_status("Node", "", "n", {"allocatable": {"cpu": cpu, GPU: gpu}})
        sync(informer)
    assert (idle(informer), idle(informer, GPU)) == (8000, 4000)
