"""Short forms of objects, and steps that change a cluster between cycles."""

import json
from pathlib import Path
from typing import Any

import pytest

from pumice.diagnosis.snapshots import save_world
from pumice.diagnosis.sources import load_world
from pumice.errors import ScenarioError
from pumice.scenarios.compare import CompareOptions
from pumice.scenarios.objects import key_of
from pumice.scenarios.runner import check, default_scheduler, find_scenarios, play, run_files
from pumice.scenarios.scenario import load_scenario, scenario_from
from pumice.testing.builders import node

CONF = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: capacity}]
"""


def scenario(**keys: Any) -> Any:
    return scenario_from({"conf": CONF, **keys}, Path("case.yaml"))


def found(**keys: Any) -> list[str]:
    return check(scenario(**keys), default_scheduler, CompareOptions())


def of_kind(made: Any, kind: str) -> dict[str, Any]:
    return {one["metadata"]["name"]: one for one in made.objects if one["kind"] == kind}


def test_a_pool_of_nodes() -> None:
    made = of_kind(scenario(nodes={"count": 3, "cpu": 32, "gpu": 8}), "Node")
    assert [*made] == ["node-0", "node-1", "node-2"]
    assert made["node-2"]["status"]["allocatable"] == {
        "cpu": "32",
        "memory": "128Gi",
        "pods": "110",
        "nvidia.com/gpu": "8",
    }


def test_pools_and_names_of_nodes() -> None:
    pools = [
        {"name": "big", "count": 2, "cpu": 8},
        {"cpu": 2, "taints": ["dedicated=a:NoSchedule"]},
    ]
    assert [*of_kind(scenario(nodes=pools), "Node")] == ["big-0", "big-1", "node-0"]
    named = of_kind(scenario(nodes={"x": {"cpu": 1}, "y": {"cpu": 2, "memory": "1Gi"}}), "Node")
    assert [*named] == ["x", "y"]


def test_a_workload_that_runs_is_on_the_first_nodes_with_room() -> None:
    job = {"queue": "a", "pods": 3, "gpu": 4, "running": True, "gang": True, "priority": "urgent"}
    made = scenario(nodes={"count": 2, "cpu": 32, "gpu": 8}, workloads=[job])
    pods, (group,) = of_kind(made, "Pod"), of_kind(made, "PodGroup").values()
    assert [one["spec"]["nodeName"] for one in pods.values()] == ["node-0", "node-0", "node-1"]
    assert {one["spec"]["priority"] for one in pods.values()} == {10000}
    assert key_of(group) == "default/a-1"
    assert (group["spec"]["minMember"], group["status"]["phase"]) == (3, "Running")
    assert group["spec"]["minResources"] == {"nvidia.com/gpu": "12"}
    assert [*of_kind(made, "Queue")] == ["a"]
    assert [*of_kind(made, "PriorityClass")] == ["urgent"]
    assert play(made, default_scheduler)[0].decisions.binds == {}


def test_queues_form_a_tree() -> None:
    stated = {"a": {"parent": "eng", "deserved": {"gpu": 4}, "guarantee": {"cpu": 1}}, "b": None}
    made = of_kind(scenario(queues=stated), "Queue")
    assert {name: one["spec"].get("parent") for name, one in made.items()} == {
        "eng": "root",
        "root": None,
        "a": "eng",
        "b": "root",
    }
    assert made["a"]["spec"]["deserved"] == {"nvidia.com/gpu": "4"}
    assert made["a"]["spec"]["guarantee"] == {"resource": {"cpu": "1"}}


BAD = {
    "running pods without room": (
        {"nodes": {"cpu": 2}, "workloads": [{"pods": 3, "running": True}]},
        "workloads[0].running: expected room for 3 running pods, got 'room for 2 on the nodes'",
    ),
    "an unknown priority": (
        {"workloads": [{"priority": "top"}]},
        "unknown priority class 'top'; add priorities: {top: 1000}",
    ),
    "an unknown key": ({"workloads": [{"pod": 3}]}, "did you mean 'pods'?"),
    "an amount": ({"nodes": {"cpu": "many"}}, "nodes.cpu: expected an amount such as 4 or 8Gi"),
    "more in the gang than there are": ({"workloads": [{"gang": 2}]}, "a number up to 1"),
    "a step without a time": ({"nodes": {}, "at": [{"ends": ["a"]}]}, "either cycle or time"),
    "a step that does nothing": ({"nodes": {}, "at": [{"cycle": 2}]}, "one of the keys workloads"),
    "a step with a bad name": ({"nodes": {}, "at": {"2": {"end": ["a"]}}}, "did you mean 'ends'?"),
    "no time": ({"nodes": {}, "every": "0s"}, "a time such as 30s"),
    "another fate": ({"nodes": {}, "evicted": "lost"}, "expected gone or requeue"),
}


@pytest.mark.parametrize(("keys", "text"), BAD.values(), ids=BAD)
def test_a_mistake_says_what_is_wanted(keys: Any, text: str) -> None:
    with pytest.raises(ScenarioError) as error:
        scenario(**keys)
    assert text in str(error.value)


STEPS = {
    "an end makes room": ([{"cycle": 3, "ends": ["default/a-1"]}], []),
    "a deletion does": ([{"cycle": 3, "delete": ["default/a-*"]}], []),
    "a node does": ([{"time": "5s", "nodes": {"cpu": 4}}], []),
    "as a mapping": ({"cycle 3": {"nodes": {"cpu": 4}}}, []),
    "a cordoned node does not": (
        [{"cycle": 2, "nodes": {"name": "late", "cpu": 4, "cordoned": True}}],
        ["default/w-1"],
    ),
    "a queue that may hold less does not": (
        [
            {"cycle": 2, "queues": {"w": {"capability": {"cpu": 1}}}},
            {"cycle": 3, "ends": ["default/a-1"]},
        ],
        ["default/w-1"],
    ),
}


@pytest.mark.parametrize(("at", "waits"), STEPS.values(), ids=STEPS)
def test_steps_change_the_cluster(at: Any, waits: list[str]) -> None:
    jobs = [{"queue": "a", "pods": 4, "running": True}, {"queue": "w", "pods": 2, "gang": True}]
    wanted = {"waits": waits} if waits else {"starts": ["default/w-1"]}
    keys = {"nodes": {"cpu": 4}, "workloads": jobs, "at": at, "expect": {"waits": ["default/w-1"]}}
    assert found(**keys, eventually=wanted) == []


def test_a_step_about_nothing_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    path.write_text("nodes: {cpu: 1}\nexpect: {binds: 0}\nat:\n- {cycle: 1, cordon: [node-7]}\n")
    (result,) = run_files(find_scenarios([path]))
    assert result.outcome == "error"
    assert (
        "at[0].cordon: expected the name of something there, got 'node-7'" in result.differences[0]
    )


def test_arrivals_may_run_and_wait() -> None:
    step = {"cycle": 2, "workloads": [{"name": "b", "pods": 2}, {"name": "c", "running": True}]}
    keys = {"nodes": {"cpu": 2}, "at": [step], "always": {"noNodeOvercommitted": True}}
    assert found(**keys, eventually={"boundPerPodGroup": {"default/b": 1}}) == []


def test_evicted_pods_may_come_back() -> None:
    conf = CONF.replace("allocate", "allocate, preempt").replace("capacity}", "priority}")
    conf = conf.replace("{name: gang}, ", "")
    jobs = [{"queue": "a", "running": True}, {"queue": "a", "priority": "urgent", "name": "hot"}]
    keys = {"conf": conf, "nodes": {"cpu": 1}, "workloads": jobs, "cycles": 4}
    for fate, pods in (("gone", 1), ("requeue", 2)):
        last = play(scenario(**keys, evicted=fate), default_scheduler)[-1]
        assert sum(one["kind"] == "Pod" for one in last.objects) == pods


def test_a_snapshot_and_a_dump_are_input(tmp_path: Path) -> None:
    (tmp_path / "short.yaml").write_text(
        json.dumps({"conf": CONF, "nodes": {"cpu": 2}, "workloads": [{"running": True}]})
    )
    world = load_world([tmp_path / "short.yaml"])
    (tmp_path / "snapshot.yaml").write_text(save_world(world))
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    dump = {"apiVersion": "v1", "kind": "List", "items": [node("more", cpu=1), service]}
    (tmp_path / "dump.json").write_text(json.dumps(dump))
    test = {
        "objectsFrom": ["snapshot.yaml", "dump.json"],
        "workloads": [{"name": "b", "pods": 3}],
        "expect": {"binds": 2, "starts": ["default/b"]},
    }
    (tmp_path / "test.yaml").write_text(json.dumps(test))
    loaded = load_scenario(tmp_path / "test.yaml")
    assert loaded.conf == CONF
    assert {one["kind"] for one in loaded.objects} == {"Node", "Queue", "PodGroup", "Pod"}
    assert check(loaded, default_scheduler, CompareOptions()) == []
