"""The control plane as a whole: gangs arrive, wait, run and end in virtual time."""

import threading
from dataclasses import replace
from typing import Any

import pytest
import yaml

from pumice.api.annotations import QUEUE_GATE
from pumice.api.conf import parse_conf
from pumice.clock import RealClock, VirtualClock
from pumice.cluster.embedded.node_operations import add_node
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.testing import pod, pod_group, priority_class, queue

GROUP = "PodGroup.scheduling.volcano.sh"
QUEUE = "Queue.scheduling.volcano.sh"
PREEMPTING = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
GATED = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""
RACKS = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: network-topology-aware}, {name: nodeorder}]
"""
DISKS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "disks"},
    "provisioner": "disk.test",
}


def plane(nodes: Any = 2, **options: Any) -> Any:
    plane = EmbeddedControlPlane(clock=VirtualClock(0.0), **options)
    for number in range(nodes):
        add_node(plane.cluster, f"n{number}", {"cpu": "4", "memory": "8Gi"})
    return plane


def gang(plane: Any, name: Any, size: Any, run: str = "10", **options: Any) -> None:
    plane.cluster.create(pod_group(name, min_member=size, phase=None, **options))
    for number in range(size):
        marks = {"pumice.dev/run-seconds": run}
        plane.cluster.create(pod(f"{name}-{number}", group=name, cpu=1, annotations=marks))


def running(plane: Any) -> Any:
    return {
        m["metadata"]["name"]
        for m in plane.cluster.list("Pod")[0]
        if m["status"]["phase"] == "Running"
    }


def test_pods_behind_a_queue_gate_run_one_after_the_other() -> None:
    """Gated ones are never reported as unschedulable, so no autoscaler adds a node for them."""
    conf = replace(parse_conf(GATED), queue_gates=True)
    control = plane(conf=conf)
    control.cluster.create(queue("small", capability={"cpu": 1}))
    spec = {"schedulingGates": [{"name": QUEUE_GATE}]}
    for name in ("a", "b", "c"):
        marks = {"pumice.dev/run-seconds": "10", QUEUE_GATE: "true"}
        control.cluster.create(pod_group(name, queue="small", phase=None))
        control.cluster.create(pod(name, group=name, cpu=1, annotations=marks, spec=spec))
    for seconds, runs in ((5, "a"), (17, "b"), (29, "c")):
        control.run(until=seconds)
        assert running(control) == {runs}
        assert {
            one["reason"]
            for each in control.cluster.list("Pod")[0]
            for one in each["status"]["conditions"]
            if one["type"] == "PodScheduled" and each["spec"]["schedulingGates"]
        } <= {"SchedulingGated"}


def test_hypernodes_follow_the_labels_of_nodes_and_jobs_are_placed_by_them() -> None:
    """Two racks of two nodes: a gang that must stay in a rack is placed in one of them."""
    control = plane(0, conf=parse_conf(RACKS))
    conf = {
        "source": "label",
        "enabled": True,
        "config": {
            "networkTopologyTypes": {
                "dc": [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
            }
        },
    }
    place = {"name": "volcano-controller-configmap", "namespace": "volcano-system"}
    text = yaml.safe_dump({"networkTopologyDiscovery": [conf]})
    control.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": place,
            "data": {"volcano-controller.conf": text},
        }
    )
    for number in range(4):
        labels = {"rack": f"r{number % 2}"}
        add_node(control.cluster, f"n{number}", {"cpu": "2", "memory": "8Gi"}, labels=labels)
    control.run(until=3)
    found = {
        each["metadata"]["labels"]["rack"]: each["status"]["nodeCount"]
        for each in control.cluster.list("HyperNode.topology.volcano.sh")[0]
    }
    assert found == {"r0": 2, "r1": 2}
    topology = {"mode": "hard", "highestTierAllowed": 1}
    gang(control, "near", 4, network_topology=topology)
    control.run(until=8)
    places = {each["spec"]["nodeName"] for each in control.cluster.list("Pod")[0]}
    assert places in ({"n0", "n2"}, {"n1", "n3"})
    for number in range(4):
        labels_gone = {"metadata": {"labels": {"rack": None}}}
        control.cluster.patch("Node", "", f"n{number}", labels_gone)
    control.run(until=12)
    assert control.cluster.list("HyperNode.topology.volcano.sh")[0] == []


def test_a_gang_that_cannot_start_whole_does_not_start_at_all() -> None:
    control = plane()
    gang(control, "big", 9)
    control.run()
    assert running(control) == set()
    pods = control.cluster.list("Pod")[0]
    reasons = sorted(each["status"]["conditions"][0]["reason"] for each in pods)
    assert reasons == ["Schedulable"] * 8 + ["Unschedulable"]
    add_node(control.cluster, "more", {"cpu": "4", "memory": "8Gi"})
    control.run(until=control.clock.now() + 2)
    assert len(running(control)) == 9


def test_a_job_goes_from_command_to_completion() -> None:
    control = plane()
    template = {
        "metadata": {"annotations": {"pumice.dev/run-seconds": "20"}},
        "spec": pod("x", cpu=1)["spec"],
    }
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": 3,
            "tasks": [{"name": "w", "replicas": 3, "minAvailable": 3, "template": template}],
        },
    }
    control.cluster.create(job)
    control.run(until=10)
    assert running(control) == {"j-w-0", "j-w-1", "j-w-2"}
    control.run()
    state = control.cluster.get("Job.batch.volcano.sh", "default", "j")["status"]
    assert state["state"]["phase"] == "Completed"
    assert 20 <= control.clock.now() < 30
    assert not control.controllers.failures


def test_a_queue_tells_what_its_pods_hold() -> None:
    control = plane()
    gang(control, "a", 3, run="100")
    control.run(until=10)
    allocated = control.cluster.get(QUEUE, "", "default")["status"]["allocated"]
    assert allocated["cpu"] == "3"
    control.run()
    assert control.cluster.get(QUEUE, "", "default")["status"]["allocated"] == {}


def test_a_victim_leaves_after_its_grace_and_then_the_winner_starts() -> None:
    control = plane(1, conf=parse_conf(PREEMPTING))
    control.cluster.create(priority_class("high", value=100))
    gang(control, "low", 4, run="1000", annotations={"volcano.sh/preemptable": "true"})
    low = control.cluster.get(GROUP, "default", "low")
    control.cluster.update({**low, "spec": {**low["spec"], "minMember": 1}})
    control.run(until=5)
    control.cluster.create(pod_group("high", min_member=1, phase=None, priority_class="high"))
    control.cluster.create(pod("high-0", group="high", cpu=1, priority_class="high"))
    control.run(until=20)
    leaving = [m for m in control.cluster.list("Pod")[0] if m["metadata"].get("deletionTimestamp")]
    assert len(leaving) == 1
    assert "high-0" not in running(control)
    control.run(until=60)
    assert "high-0" in running(control)


def test_the_same_seed_gives_the_same_cluster() -> None:
    def play(seed: Any) -> Any:
        control = plane(seed=seed)
        for name in ("a", "b", "c"):
            gang(control, name, 3)
        control.run()
        return [control.cluster.list(kind) for kind in ("Pod", GROUP, QUEUE, "Event")]

    assert play(3) == play(3)
    assert play(3) != play(4)


def test_a_run_stops_when_nothing_is_left_or_after_enough_cycles() -> None:
    control = plane()
    gang(control, "a", 1, run="1000000")
    cycles = control.run()
    assert control.clock.now() > 1_000_000
    assert cycles < 20
    assert control.run(max_cycles=1) == 1


def test_only_virtual_time_can_be_run() -> None:
    control = EmbeddedControlPlane(clock=RealClock())
    with pytest.raises(TypeError, match="virtual"):
        control.run()


def test_real_time_is_served_until_reported_to_stop() -> None:
    control = EmbeddedControlPlane(clock=RealClock(), period_s=0.0)
    add_node(control.cluster, "n", {"cpu": "4", "memory": "8Gi"})
    gang(control, "a", 1, run="1000")
    stop = threading.Event()
    control.on_cycle.append(lambda _: stop.set() if running(control) else None)
    control.serve(stop)
    assert running(control) == {"a-0"}


@pytest.mark.parametrize("mode", ["Immediate", "WaitForFirstConsumer"])
def test_a_job_gets_the_volume_that_it_describes(mode: str) -> None:
    control = plane(1)
    control.cluster.create({**DISKS, "volumeBindingMode": mode})
    wanted = {
        "storageClassName": "disks",
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "1"}}}
    template = {
        "metadata": {"annotations": {"pumice.dev/run-seconds": "5"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    control.cluster.create(
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "j", "namespace": "default"},
            "spec": {
                "schedulerName": "volcano",
                "minAvailable": 3,
                "volumes": [{"mountPath": "/data", "volumeClaim": wanted}],
                "tasks": [{"name": "w", "replicas": 3, "template": template}],
            },
        }
    )
    control.run(max_cycles=40)
    job = control.cluster.get("Job.batch.volcano.sh", "default", "j")
    assert job["status"]["state"]["phase"] == "Completed"
