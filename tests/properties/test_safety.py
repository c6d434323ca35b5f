"""What no cycle may do, whatever the cluster and the configuration."""

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.quantity import milli_value, value
from pumice.scheduler import Scheduler
from tests.properties.clusters import GPU, clusters, confs

PLACING = ("enqueue", "allocate", "backfill")


def key_of(manifest: Any) -> str:
    meta = manifest["metadata"]
    return f"{meta['namespace']}/{meta['name']}"


def pods_of(cluster: Any) -> Any:
    return {key_of(manifest): manifest for manifest in cluster if manifest["kind"] == "Pod"}


def request_of(manifest: Any) -> Any:
    asked = manifest["spec"]["containers"][0]["resources"].get("requests", {})
    return {
        "cpu": milli_value(asked.get("cpu", 0)),
        "memory": value(asked.get("memory", 0)),
        GPU: milli_value(asked.get(GPU, 0)),
        "pods": 1,
    }


def group_of(manifest: Any) -> str:
    note = manifest["metadata"]["annotations"]["scheduling.k8s.io/group-name"]
    return f"{manifest['metadata']['namespace']}/{note}"


def decide(cluster: Any, conf: Any, seed: Any = 0) -> Any:
    return Scheduler(conf, seed=seed).cycle(cluster, 0.0)


@settings(max_examples=60)
@given(cluster=clusters(), conf=confs(wide=True))
def test_no_node_is_filled_beyond_what_it_offers(cluster: Any, conf: Any) -> None:
    """Pods that leave still count: their room is not free yet."""
    decisions, pods = decide(cluster, conf), pods_of(cluster)
    homes = {key: pod["spec"]["nodeName"] for key, pod in pods.items() if "nodeName" in pod["spec"]}
    assert not homes.keys() & decisions.binds.keys()
    used: dict[Any, Any] = {}
    for key, home in (homes | decisions.binds).items():
        used.setdefault(home, Counter()).update(request_of(pods[key]))
    for manifest in cluster:
        if manifest["kind"] == "Node":
            offer = manifest["status"]["allocatable"]
            here = used.get(manifest["metadata"]["name"], Counter())
            assert here["cpu"] <= milli_value(offer["cpu"])
            assert here["memory"] <= value(offer["memory"])
            assert here["pods"] <= value(offer["pods"])
            assert here[GPU] <= milli_value(offer.get(GPU, 0))


@settings(max_examples=60)
@given(cluster=clusters(), conf=confs(actions=PLACING, must=("gang",)))
def test_a_gang_starts_whole_or_not_at_all(cluster: Any, conf: Any) -> None:
    """A job without enough members gets no bind; waiting pods that ask for nothing count."""
    decisions, pods = decide(cluster, conf), pods_of(cluster)
    groups = {key_of(each): each for each in cluster if each["kind"] == "PodGroup"}
    started = {group_of(pods[key]) for key in decisions.binds}
    for group in started:
        members = {key: pod for key, pod in pods.items() if group_of(pod) == group}
        placed = {key for key, pod in members.items() if "nodeName" in pod["spec"]}
        placed |= decisions.binds.keys() & members.keys()
        modest = {
            key
            for key, pod in members.items()
            if not any(n for name, n in request_of(pod).items() if name != "pods")
        }
        assert len(placed | modest) >= groups[group]["spec"]["minMember"]


@settings(max_examples=60)
@given(
    cluster=clusters(),
    conf=st.sampled_from(["proportion", "capacity"]).flatmap(
        lambda name: confs(actions=PLACING, must=(name,))
    ),
)
def test_no_queue_grows_past_its_limit(cluster: Any, conf: Any) -> None:
    decisions, pods = decide(cluster, conf), pods_of(cluster)
    queue_of = {
        key_of(each): each["spec"]["queue"] for each in cluster if each["kind"] == "PodGroup"
    }
    for manifest in cluster:
        limit = manifest["spec"].get("capability") if manifest["kind"] == "Queue" else None
        if not limit:
            continue
        mine = [
            key
            for key, pod in pods.items()
            if queue_of[group_of(pod)] == manifest["metadata"]["name"]
        ]
        before: Counter[Any] = Counter()
        after: Counter[Any] = Counter()
        for key in mine:
            if "nodeName" in pods[key]["spec"]:
                before.update(request_of(pods[key]))
            elif key in decisions.binds:
                after.update(request_of(pods[key]))
        for name in limit:
            most = value(limit[name]) if name == "memory" else milli_value(limit[name])
            assert not after[name] or before[name] + after[name] <= most


@settings(max_examples=40)
@given(cluster=clusters(), conf=confs(wide=True), seed=st.integers(0, 2**32))
def test_the_same_seed_decides_the_same(cluster: Any, conf: Any, seed: Any) -> None:
    assert decide(cluster, conf, seed) == decide(cluster, conf, seed)


@settings(max_examples=60)
@given(cluster=clusters(), conf=confs(wide=True))
def test_only_pods_that_wait_are_bound_and_only_pods_that_run_are_evicted(
    cluster: Any, conf: Any
) -> None:
    decisions, pods = decide(cluster, conf), pods_of(cluster)
    running = {key for key, pod in pods.items() if "nodeName" in pod["spec"]}
    names = {each["metadata"]["name"] for each in cluster if each["kind"] == "Node"}
    assert set(decisions.evictions) <= running
    assert len(decisions.evictions) == len(set(decisions.evictions))
    assert decisions.binds.keys() <= pods.keys() - running
    assert not decisions.binds.keys() & decisions.pipelined.keys()
    assert set(decisions.binds.values()) | set(decisions.pipelined.values()) <= names
