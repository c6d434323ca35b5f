"""Worlds share the objects of an embedded cluster."""

import pickle
from typing import Any

import pytest

from pumice.api.objects import from_manifest
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.fixtures import SharedFixtures
from pumice.testing import node, pod, queue

NODES = [node("n"), node("m")]
PODS = [pod("b", node="n"), pod("a")]
JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "j", "namespace": "default"},
}
SECOND = {
    "the same": [*NODES, *PODS, JOB],
    "more": [*NODES, *PODS, pod("0"), queue("q"), JOB],
    "fewer": [*NODES, PODS[0], JOB],
    "others in between": [*NODES, queue("q"), *PODS, JOB],
    "equal, but others": [*NODES, pod("b", node="n"), *PODS[1:], JOB],
    "none": [],
}


def stored(cluster: EmbeddedCluster) -> Any:
    return {kind.name: cluster.list(kind.name)[0] for kind in cluster.kinds}, cluster.version


@pytest.mark.parametrize("manifests", SECOND.values(), ids=SECOND)
def test_each_world_gets_what_it_would_get_alone(manifests: Any) -> None:
    shared = SharedFixtures()
    first = shared.cluster([*NODES, *PODS, JOB], VirtualClock(5.0))
    first.delete("Pod", "default", "a", grace_s=0)
    alone = EmbeddedCluster(VirtualClock(5.0), record_events=False)
    alone.restore(manifests)
    assert stored(shared.cluster(manifests, VirtualClock(5.0))) == stored(alone)


def test_another_time_is_another_world() -> None:
    shared = SharedFixtures()
    bare = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    shared.cluster([bare], VirtualClock(0.0))
    [later] = shared.cluster([bare], VirtualClock(60.0)).list("Node")[0]
    assert later["metadata"]["creationTimestamp"] == "1970-01-01T00:01:00Z"


def test_a_load_that_failed_leaves_nothing_behind() -> None:
    shared = SharedFixtures()
    broken = {"apiVersion": "v1", "kind": "Pod", "metadata": None}
    for _ in range(2):
        with pytest.raises(Exception, match="expected metadata"):
            shared.cluster([*NODES, broken], VirtualClock(0.0))
    assert len(shared.cluster(NODES, VirtualClock(0.0)).list("Node")[0]) == 2


def test_only_shared_objects_are_read_once() -> None:
    shared = SharedFixtures()
    one = shared.cluster([*NODES, *PODS], VirtualClock(0.0))
    two = shared.cluster([*NODES, *PODS], VirtualClock(0.0))
    two.bind("default", "a", "n", {})
    a, b = one.list("Pod")[0]
    bound, same = two.list("Pod")[0]
    assert same is b
    assert shared.read("Pod", b) is shared.read("Pod", same)
    assert shared.read("Pod", bound) == from_manifest(bound) != shared.read("Pod", a)
    assert shared.read("Pod", bound) is not shared.read("Pod", bound)


def test_a_world_that_was_asked_about_travels_to_another_process() -> None:
    world = ClusterState(objects=(node("n1", cpu=4), queue("q1")), now=0.0)
    world.typed()
    world.restored.cluster(list(world.objects), VirtualClock(0.0))
    sent = pickle.loads(pickle.dumps(world))  # noqa: S301
    assert sent == world
    assert not sent._typed._known  # identities of this process mean nothing in another one
    assert [one.metadata.name for one in sent.typed()] == ["n1", "q1"]
