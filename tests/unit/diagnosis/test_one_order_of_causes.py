"""The scheduler's note on a pod group and ``explain`` name the same decisive cause."""

from dataclasses import replace
from typing import Any

import pytest

from pumice.api.annotations import WAITING_CAUSE
from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.api.kinds import POD_GROUP
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.quotas import PodQuotas
from pumice.diagnosis.explain import explain_job
from pumice.diagnosis.sources import load_world
from pumice.serve.embedded import EmbeddedControlPlane

CAPACITY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}]
"""
AT_ONCE = CAPACITY.replace("enqueue, ", "")


def job(name: str, replicas: int, cpu: int, queue: str = "default") -> Any:
    asks = {"requests": {"cpu": str(cpu)}}
    template = {"spec": {"containers": [{"name": "c", "image": "b", "resources": asks}]}}
    task = {"name": "w", "replicas": replicas, "template": template}
    spec = {"minAvailable": replicas, "schedulerName": "volcano", "queue": queue, "tasks": [task]}
    metadata = {"name": name, "namespace": "default"}
    head = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
    return {**head, "metadata": metadata, "spec": spec}


def queue(cpu: int) -> Any:
    head = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    return {**head, "metadata": {"name": "q"}, "spec": {"capability": {"cpu": str(cpu)}}}


def quota(entry: str, most: int) -> Any:
    metadata = {"name": "team", "namespace": "default"}
    spec = {"hard": {entry: str(most)}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


WAITING = {
    "more than the cluster has": [job("a", 4, 8)],
    "a gang that is one node short": [job("a", 4, 7)],
    "pods larger than every node": [job("a", 2, 10)],
    "another job has the room": [job("first", 2, 8), job("a", 2, 8)],
    "a queue that is full": [queue(2), job("a", 4, 1, "q")],
    "a queue and the nodes": [queue(12), job("first", 2, 8), job("a", 4, 8, "q")],
    "a quota that refuses a pod": [quota("requests.cpu", 3), job("a", 4, 1)],
    "a quota that refuses all pods": [quota("requests.cpu", 1), job("a", 2, 2)],
    "a quota on the number of pods": [quota("pods", 2), job("a", 3, 1)],
    "nodes in pieces": [queue(20), job("first", 3, 5), job("a", 4, 4, "q")],
}


@pytest.mark.parametrize("conf", [DEFAULT_CONF, CAPACITY, AT_ONCE], ids=["usual", "cap", "once"])
@pytest.mark.parametrize("case", WAITING)
def test_a_waiting_job_has_one_decisive_cause(case: str, conf: str) -> None:
    plane = EmbeddedControlPlane(parse_conf(conf), write_causes=True)
    plane.cluster.quotas = PodQuotas(plane.cluster)
    for number in range(3):
        add_node(plane.cluster, f"node-{number}", {"cpu": "8", "memory": "32Gi"})
    for manifest in WAITING[case]:
        plane.cluster.create(manifest)
        plane.run(until=plane.clock.now() + 4.0)
    groups = plane.cluster.list(POD_GROUP)[0]
    (group,) = [one["metadata"] for one in groups if one["metadata"]["name"].startswith("a-")]
    world = replace(load_world([plane.cluster]), conf=conf)
    explained = explain_job(world, group["name"], unblock=False)
    assert explained.state == "waits"
    assert group["annotations"][WAITING_CAUSE] == explained.causes[0].code.value
