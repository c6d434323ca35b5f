"""Whatever is done to a store, replaying its watch results in its list."""

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import ClusterError
from pumice.testing import pod

NAMES = st.sampled_from(["a", "b", "c"])
SPACES = st.sampled_from(["x", "y"])
ACTIONS = [
    "create",
    "adopt",
    "label",
    "status",
    "bind",
    "evict",
    "delete",
    "force",
    "orphan",
    "foreground",
    "finalize",
    "namespace",
    "compact",
]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(ACTIONS),
        SPACES,
        NAMES,
    ),
    max_size=30,
)


def act(cluster: Any, step: Any, space: Any, name: Any) -> None:
    """Do one thing, whether or not the cluster agrees."""
    owner = cluster.peek("Pod", space, "a")
    actions: dict[str, Callable[[], object]] = {
        "create": lambda: cluster.create(pod(name, namespace=space)),
        "adopt": lambda: cluster.create(child(name, space, owner)),
        "label": lambda: cluster.patch("Pod", space, name, {"metadata": {"labels": {"k": step}}}),
        "status": lambda: cluster.merge_status("Pod", space, name, {"phase": "Succeeded"}),
        "bind": lambda: cluster.bind(space, name, "n", {}),
        "evict": lambda: cluster.evict(space, name, "why"),
        "delete": lambda: cluster.delete("Pod", space, name),
        "force": lambda: cluster.delete("Pod", space, name, grace_s=0),
        "orphan": lambda: cluster.delete("Pod", space, name, propagation="Orphan"),
        "foreground": lambda: cluster.delete("Pod", space, name, propagation="Foreground"),
        "finalize": lambda: toggle_finalizer(cluster, space, name),
        "namespace": lambda: cluster.delete("Namespace", "", space),
        "compact": lambda: cluster.compact(cluster.version // 2),
    }
    try:
        actions[step]()
    except ClusterError:
        return


def child(name: Any, space: Any, owner: Any) -> Any:
    manifest = pod(name, namespace=space)
    if owner is not None:
        uid = owner["metadata"]["uid"]
        reference = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": uid}
        manifest["metadata"]["ownerReferences"] = [reference]
    return manifest


def toggle_finalizer(cluster: Any, space: Any, name: Any) -> None:
    metadata = cluster.get("Pod", space, name)["metadata"]
    value = None if metadata.get("finalizers") else ["x/y"]
    cluster.patch("Pod", space, name, {"metadata": {"finalizers": value}})


def place(manifest: Any) -> Any:
    return manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"]


class Replica:
    """Follows one kind by its watch alone."""

    def __init__(self, cluster: Any, kind: Any) -> None:
        self.cluster, self.kind = cluster, kind
        self.start()

    def start(self) -> None:
        self.since = str(self.cluster.version)
        self.objects = {place(m): m for m in self.cluster.list(self.kind)[0]}

    def follow(self) -> None:
        last = int(self.since)
        for event in self.cluster.watch(self.kind, since=self.since):
            version = int(event.object["metadata"]["resourceVersion"])
            assert version > last
            last = version
            self.since = str(version)
            known = place(event.object) in self.objects
            assert known == (event.type != "ADDED")
            if event.type == "DELETED":
                del self.objects[place(event.object)]
            else:
                self.objects[place(event.object)] = event.object


@settings(max_examples=200)
@given(STEPS, st.integers(1, 7))
def test_watch_replay_equals_list(steps: Any, stride: Any) -> None:
    cluster = EmbeddedCluster()
    replicas = [Replica(cluster, kind) for kind in ("Pod", "Namespace")]
    for number, step in enumerate(steps):
        act(cluster, *step)
        if number % stride == 0 or step[0] == "compact":
            for replica in replicas:
                try:
                    replica.follow()
                except ClusterError:  # compacted: start over
                    replica.start()
    for replica in replicas:
        try:
            replica.follow()
        except ClusterError:
            replica.start()
        assert replica.objects == {place(m): m for m in cluster.list(replica.kind)[0]}


@settings(max_examples=100)
@given(STEPS)
def test_the_same_steps_give_the_same_store(steps: Any) -> None:
    first, second = EmbeddedCluster(), EmbeddedCluster()
    for step in steps:
        act(first, *step)
        act(second, *step)
    assert first.version == second.version
    assert first.list("Pod") == second.list("Pod")


@settings(max_examples=100)
@given(STEPS)
def test_no_object_outlives_all_its_owners(steps: Any) -> None:
    cluster = EmbeddedCluster()
    for step in steps:
        act(cluster, *step)
    cluster.collect_garbage()
    uids = {m["metadata"]["uid"] for m in cluster.list("Pod")[0]}
    for manifest in cluster.list("Pod")[0]:
        metadata = manifest["metadata"]
        owners = metadata.get("ownerReferences")
        if owners and not metadata.get("deletionTimestamp"):
            assert any(owner["uid"] in uids for owner in owners)
