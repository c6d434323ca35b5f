"""consolidate: every pod that moves has a new place, and the gang starts as a whole."""

import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.annotations import GROUP_NAME, RESTARTABLE
from pumice.api.conf import parse_conf
from pumice.clock import VirtualClock
from pumice.cluster.embedded.node_operations import add_node
from pumice.scheduler import Scheduler
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.testing import node, pod, pod_group, queue
from tests.properties.full_clusters import Dice

NOW = 1_767_229_200.0
CONF = """
actions: "enqueue, allocate, consolidate"
configurations:
- name: consolidate
  arguments: {maxMoves: %d}
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""


def scattered(seed: int) -> list[Any]:
    """Draw nodes with small pods, some of which may move, and a gang of larger ones."""
    dice = Dice(seed)
    room = {f"n{i}": dice.one_of([4, 5, 6]) for i in range(dice.between(2, 6))}
    objects: list[Any] = [node(host, cpu=cpu, memory="64Gi") for host, cpu in room.items()]
    for number in range(dice.between(3, 8)):
        host, cpu, name = dice.one_of([*room]), dice.between(1, 2), f"small-{number}"
        if cpu > room[host]:
            continue
        room[host] -= cpu
        marks = {RESTARTABLE: dice.one_of(["true", "true", "false"])}
        objects.append(pod_group(name, min_member=1, phase="Running", annotations=marks))
        objects.append(pod(f"{name}-0", group=name, cpu=cpu, node=host))
    size = dice.between(1, 2)
    objects.append(pod_group("gang", min_member=size, phase="Inqueue"))
    cpu = dice.between(4, 5)
    return [*objects, *(pod(f"gang-{i}", group="gang", cpu=cpu) for i in range(size))]


def cpu_of(one: Any) -> int:
    return int(one["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def check(objects: list[Any], most: int) -> bool:
    """Decide a cycle and add up what nodes hold at each step; return whether pods move."""
    decisions = Scheduler(parse_conf(CONF % most)).cycle([queue("default"), *objects], NOW)
    assert decisions.failures == []
    if not decisions.evictions:
        return False
    pods = {f"default/{one['metadata']['name']}": one for one in objects if one["kind"] == "Pod"}
    marks = {
        f"default/{one['metadata']['name']}": one["metadata"].get("annotations", {})
        for one in objects
        if one["kind"] == "PodGroup"
    }
    gang = [key for key in pods if key.startswith("default/gang")]
    assert set(gang) == set(decisions.pipelined)  # the gang as a whole
    assert len(decisions.evictions) <= most
    before, after = Counter[str](), Counter[str]()
    for key, one in pods.items():
        host = one["spec"].get("nodeName")
        before[host] += cpu_of(one) if host else 0
        after[decisions.pipelined.get(key, host)] += cpu_of(one)
    for key in decisions.evictions:
        found = re.search(r"has room on (\S+);", decisions.eviction_notes[key])
        assert found is not None
        one, new = pods[key], found[1]
        job = f"default/{one['metadata']['annotations'][GROUP_NAME]}"
        assert marks[job].get(RESTARTABLE) == "true"
        assert new != one["spec"]["nodeName"]
        before[new] += cpu_of(one)  # while it still runs: its new place is idle now
        after[new] += cpu_of(one)
        after[one["spec"]["nodeName"]] -= cpu_of(one)
    for each in objects:
        if each["kind"] == "Node":
            name, cpu = each["metadata"]["name"], int(each["status"]["allocatable"]["cpu"])
            assert before[name] <= cpu
            assert after[name] <= cpu
    return True


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), most=st.integers(1, 4))
def test_pods_that_move_have_their_new_place_first(seed: int, most: int) -> None:
    check(scattered(seed), most)


def test_that_happens_at_all() -> None:
    assert sum(check(scattered(seed), 4) for seed in range(60)) >= 5


def volcano_job(name: str, cpu: int, **meta: Any) -> Any:
    containers = [
        {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": str(cpu)}}}
    ]
    task = {
        "name": "w",
        "replicas": 1,
        "template": {"spec": {"containers": containers, "restartPolicy": "OnFailure"}},
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", **meta},
        "spec": {
            "minAvailable": 1,
            "schedulerName": "volcano",
            "queue": "default",
            "tasks": [task],
        },
    }


@pytest.mark.parametrize("keeps", [False, True])
def test_a_moved_pod_starts_again_elsewhere_and_the_gang_runs(keeps: bool) -> None:
    plane = EmbeddedControlPlane(parse_conf(CONF % 4), clock=VirtualClock(NOW))
    for number in range(2):
        add_node(plane.cluster, f"n{number}", {"cpu": "4", "memory": "8Gi"})
    for name in ("one", "two"):
        plane.cluster.create(volcano_job(name, 2))
    plane.run(NOW + 60.0)
    hosts = {one["spec"].get("nodeName") for one in plane.cluster.list("Pod")[0]}
    assert hosts == {"n0", "n1"}  # one on each: nodeorder spreads
    if keeps:
        for one in plane.cluster.list("Pod")[0]:
            mark = {"metadata": {"annotations": {RESTARTABLE: "false"}}}
            plane.cluster.patch("Pod", "default", one["metadata"]["name"], mark)
    evictions: list[str] = []
    plane.on_cycle.append(lambda cycle: evictions.extend(cycle.decisions.evictions))
    plane.cluster.create(volcano_job("wide", 4))
    plane.run(NOW + 600.0)
    pods = {one["metadata"]["name"]: one for one in plane.cluster.list("Pod")[0]}
    assert len(evictions) == (0 if keeps else 1)  # and never back again
    assert bool(pods["wide-w-0"]["spec"].get("nodeName")) == (not keeps)
    assert {pods[name]["status"]["phase"] for name in ("one-w-0", "two-w-0")} == {"Running"}
    events = [one["message"] for one in plane.cluster.list("Event")[0] if one["reason"] == "Evict"]
    assert any("of work lost" in text for text in events) == (not keeps)
