"""A configuration with its cluster: each kind of mistake is named, with the change that helps."""

from typing import Any

import pytest

from pumice.actions import ACTIONS
from pumice.api.conf import parse_conf
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.conf_in_cluster import check_in_cluster
from pumice.framework.conf_check import check_conf
from pumice.plugins import builtin_plugins
from pumice.testing import node, queue

CONF = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- victims: strict
  plugins:
  - name: priority
  - name: gang
  - name: capacity
    enableHierarchy: true
  - name: conformance
  - name: overcommit
- plugins:
  - name: predicates
  - name: nodeorder
  - name: binpack
    arguments: {binpack.weight: 2, binpack.resources: nvidia.com/gpu}
"""


def guaranteed(cpu: int) -> dict[str, Any]:
    return {"resource": {"cpu": str(cpu)}}


def world(**changed: dict[str, Any]) -> ClusterState:
    """Two nodes of 8 cpus, and a tree of queues: org with red and blue, and ops."""
    specs: dict[str, dict[str, Any]] = {
        "root": {"reclaimable": False},
        "org": {
            "parent": "root",
            "deserved": {"cpu": "12"},
            "guarantee": guaranteed(4),
            "capability": {"cpu": 16},
        },
        "red": {"parent": "org", "deserved": {"cpu": "8"}, "guarantee": guaranteed(4)},
        "blue": {"parent": "org", "deserved": {"cpu": "4"}},
        "ops": {"parent": "root", "deserved": {"cpu": 4}, "capability": {"cpu": 12}},
    }
    specs = {name: {**spec, **changed.get(name, {})} for name, spec in specs.items()}
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000}
    return ClusterState(
        objects=(
            *(node(name, cpu=8, resources={"nvidia.com/gpu": 2}) for name in ("n1", "n2")),
            *({**queue(name), "spec": spec} for name, spec in specs.items()),
            {**urgent, "metadata": {"name": "urgent"}},
        ),
        now=0.0,
    )


def warnings(conf: str, cluster: ClusterState) -> list[str]:
    parsed, plugins = parse_conf(conf), builtin_plugins()
    found = [*check_conf(parsed, plugins, ACTIONS), *check_in_cluster(parsed, plugins, cluster)]
    return [str(problem) for problem in found]


def test_a_configuration_that_fits_its_cluster_has_no_warning() -> None:
    assert warnings(CONF, world()) == []


LIST = "enqueue, allocate, preempt, reclaim, backfill"


@pytest.mark.parametrize(
    ("old", "new", "wanted", "helps"),
    [
        (LIST, "enqueue, preempt, reclaim", "no pod is bound", '"enqueue, allocate, preempt'),
        (LIST, LIST.removeprefix("enqueue, "), "admitted without limit", f'"{LIST}"'),
        (
            "  - name: overcommit\n- plugins:\n",
            "- plugins:\n  - name: overcommit\n",
            "overcommit has no effect: capacity in tier 1 admits jobs",
            "leave it out, or move it to tier 1",
        ),
        (LIST, "enqueue, reclaim, allocate, preempt", "promises are lost", '"enqueue, allocate'),
        (LIST, "allocate, enqueue, preempt, reclaim", "after others have", '"enqueue, alloc'),
        ("  - name: conformance\n", "", "critical pods (kube-system", "- name: conformance"),
        (
            "- name: conformance",
            "- name: conformance\n    enableReclaimable: false",
            "may be evicted by reclaim: conformance is switched off there",
            "leave out enableReclaimable: false",
        ),
        (
            "- name: gang",
            "- name: gang\n    enablePreemptable: false",
            "running gangs may be broken by preempt: gang is switched off there",
            "leave out enablePreemptable: false",
        ),
        ("  - name: priority\n", "", "pods of any priority", "- name: priority before gang"),
        ("  - name: predicates\n", "", "nodes with taints", "- name: predicates"),
        (
            "enableHierarchy: true",
            "enableHierarchy: true\n    enableReclaimable: false",
            "what queues deserve does not count in reclaim",
            "leave out enableReclaimable: false",
        ),
        ("    enableHierarchy: true\n", "", "tree of queues does not", "enableHierarchy: true"),
        (
            "  - name: capacity\n    enableHierarchy: true\n",
            "",
            "any queue takes pods of any other by reclaim",
            "- name: capacity",
        ),
        (
            "  - name: capacity\n    enableHierarchy: true\n",
            "  - name: proportion\n",
            "deserved of blue, ops, org and 1 more does not count: proportion reads weights",
            "write - name: capacity in its place",
        ),
        ("binpack.weight: 2", "binpack.weight: -2", "weight below 0", "write 0"),
        (
            "binpack.weight: 2",
            "binpack.resources.example.com/fpga: 3",
            "weight of example.com/fpga does not count",
            "binpack.resources: nvidia.com/gpu, example.com/fpga",
        ),
        (
            "binpack.resources: nvidia.com/gpu",
            "binpack.resources: nvidia.com/gpus",
            "no node has nvidia.com/gpus",
            "correct the name",
        ),
        (
            "- victims: strict\n  plugins",
            "- plugins",
            "conformance in tier 1 (preempt, reclaim) can choose victims without gang",
            "write victims: strict beside plugins in tier 1",
        ),
        ("- victims: strict\n  plugins", "- plugins", "victims without priority", "tier 1"),
        ("- victims: strict\n  plugins", "- plugins", "victims without capacity", "tier 1"),
    ],
)
def test_each_mistake_of_a_configuration_is_named(
    old: str, new: str, wanted: str, helps: str
) -> None:
    assert old in CONF
    found = warnings(CONF.replace(old, new), world())
    assert any(wanted in each and helps in each for each in found), found


CLOSED = {"reclaimable": False}


@pytest.mark.parametrize(
    ("changed", "wanted", "helps"),
    [
        (
            dict.fromkeys(("org", "red", "blue", "ops"), CLOSED),
            "reclaim takes nothing: no queue is reclaimable",
            ".reclaimable=true",
        ),
        (  # the sum is that of all children, also where the parent states nothing
            {"org": {"deserved": {}}},
            "not at least cpu 12, the sum of the queues below",
            "queue/org.deserved",
        ),
        ({"red": {"guarantee": guaranteed(6)}}, "not at least cpu 6", "queue/org.guarantee"),
        (
            {"org": {"capability": {"cpu": "4"}}, "red": {"capability": {"cpu": "10"}}},
            "at least 10, as the queues below",
            "queue/org.capability.cpu",
        ),
        (
            {"ops": {"deserved": {"cpu": "8"}}},
            "20 cpu due to 2 queues, and the nodes have 16",
            "org.deserved.cpu=8",
        ),
        (
            {"ops": {"guarantee": guaranteed(14)}},
            "18 cpu guaranteed to 2 queues",
            "ops.guarantee.cpu=12",
        ),
        ({"ops": {"weight": -1}}, "its weight is -1", "queue/ops.weight=1"),
        (
            {"ops": {"capability": {}}},
            "guarantees are not kept free: root has no capability, so ops may hold all cpu",
            "--set queue/ops.capability.cpu=12)",
        ),
        (
            {"org": {"capability": {}}, "ops": {"capability": {}}},
            "so org, ops may hold all cpu",
            "--set queue/org.capability.cpu=16; the others",
        ),
    ],
)
def test_each_mistake_of_queues_is_named(
    changed: dict[str, dict[str, Any]], wanted: str, helps: str
) -> None:
    found = warnings(CONF, world(**changed))
    assert any(wanted in each and helps in each for each in found), found
    assert len(found) == 1


def test_preempt_without_priority_classes_evicts_nobody() -> None:
    plain = world()
    plain = ClusterState(
        objects=tuple(one for one in plain.objects if one["kind"] != "PriorityClass"), now=0.0
    )
    [found] = warnings(CONF, plain)
    assert "without priority classes all are equal" in found
    assert "create a PriorityClass" in found
