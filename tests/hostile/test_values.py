"""Values at the ends of their ranges and of the wrong type: an answer or one sentence, soon."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.cli.main import main

ENDS = (
    "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-23:59",
)  # fmt: skip
CONF = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: sla, arguments: {sla-waiting-time: 1h}}]
- plugins:
  - {name: drf, enableHierarchy: true}
  - {name: predicates}
  - {name: capacity}
  - {name: nodeorder}
  - {name: numa-aware}
  - {name: network-topology-aware}
"""
VERBS = {
    "run": ("run", "FILE", "--conf", "CONF"),
    "explain": ("explain", "-f", "FILE", "--conf", "CONF"),
    "whatif": ("whatif", "-f", "FILE", "--add-nodes", "1"),
    "queue order": ("queue", "order", "-f", "FILE", "--conf", "CONF"),
    "snapshot": ("snapshot", "show", "FILE"),
    "lint": ("lint", "FILE"),
    "sim": ("sim", "--trace", "FILE", "--dir", "OUT"),
}


def one(version: str, kind: str, name: str, **parts: Any) -> dict[str, Any]:
    metadata = {"name": name, **parts.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}


def node(**metadata: Any) -> dict[str, Any]:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return one("v1", "Node", "n1", metadata=metadata, status={"allocatable": amounts})


def queue(name: str = "default", parent: str = "root", **metadata: Any) -> dict[str, Any]:
    spec = {"weight": 1, "parent": parent, "capability": {"cpu": "4"}}
    return one("scheduling.volcano.sh/v1beta1", "Queue", name, metadata=metadata, spec=spec)


def group(**metadata: Any) -> dict[str, Any]:
    place = {"namespace": "default", **metadata}
    spec = {"minMember": 1, "queue": "default"}
    return one("scheduling.volcano.sh/v1beta1", "PodGroup", "g", metadata=place, spec=spec)


def pod(**metadata: Any) -> dict[str, Any]:
    notes = {
        "scheduling.k8s.io/group-name": "g",
        "volcano.sh/numa-topology-policy": "single-numa-node",
    }
    place = {"namespace": "default", "annotations": notes, **metadata}
    amounts = {"cpu": "1", "memory": "1Gi"}
    container = {"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts}}
    spec = {"schedulerName": "volcano", "containers": [container]}
    return one("v1", "Pod", "p", metadata=place, spec=spec)


def numa(**spec: Any) -> dict[str, Any]:
    sound = {
        "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "best-effort"},
        "numares": {"cpu": {"allocatable": "0-3", "capacity": 4}},
        "cpuDetail": {"0": {"numa": 0, "socket": 0, "core": 0}},
        "resReserved": {"cpu": "1"},
    }
    return one("nodeinfo.volcano.sh/v1alpha1", "Numatopology", "n1", spec={**sound, **spec})


def called(folder: Path, verb: str, *objects: dict[str, Any]) -> Any:
    file, conf = folder / "objects.yaml", folder / "scheduler.conf"
    file.write_text("---\n".join(f"{json.dumps(each)}\n" for each in objects))
    conf.write_text(CONF)
    names = {"FILE": str(file), "CONF": str(conf), "OUT": str(folder / "out")}
    result = CliRunner().invoke(main, [names.get(word, word) for word in VERBS[verb]])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code in (0, 1, 2)
    assert "nternal error" not in result.output
    return result


ODD: tuple[Any, ...] = (
    "-30",
    "30-",
    "3-1",
    "0-99999999999",
    "9" * 5000,
    "²",
    "x",
    -30,
    10**30,
    1.5,
    None,
    [],
    {},
)
NUMA: dict[str, Any] = {
    "allocatable": lambda value: {"numares": {"cpu": {"allocatable": value, "capacity": 4}}},
    "capacity": lambda value: {"numares": {"cpu": {"allocatable": "0-3", "capacity": value}}},
    "resource": lambda value: {"numares": {"cpu": value}},
    "resources": lambda value: {"numares": value},
    "cpu": lambda value: {"cpuDetail": {str(value): {"numa": 0, "socket": 0, "core": 0}}},
    "place": lambda value: {"cpuDetail": {"0": {"numa": value, "socket": value, "core": value}}},
    "reserved": lambda value: {"resReserved": {"cpu": value}},
    "policy": lambda value: {"policies": {"CPUManagerPolicy": value}},
}


@pytest.mark.parametrize("part", NUMA)
def test_a_numatopology_with_odd_values(tmp_path: Path, part: str) -> None:
    for value in ODD:
        called(tmp_path, "run", node(), queue(), numa(**NUMA[part](value)), group(), pod())


@pytest.mark.sample(3)
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("end", ENDS)
def test_times_at_the_ends_of_the_calendar(tmp_path: Path, verb: str, end: str) -> None:
    leaving = pod(creationTimestamp=end, deletionTimestamp=end)
    running = one("v1", "Pod", "r", metadata=pod()["metadata"] | {"name": "r"}, spec=pod()["spec"])
    running["spec"]["nodeName"] = "n1"
    running["status"] = {
        "phase": "Running",
        "startTime": end,
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": end}],
    }
    waiting = group(creationTimestamp=end)
    waiting["status"] = {
        "phase": "Inqueue",
        "conditions": [{"type": "Unschedulable", "status": "True", "lastTransitionTime": end}],
    }
    objects = (node(creationTimestamp=end), queue(creationTimestamp=end), waiting)
    called(tmp_path, verb, *objects, leaving, running)


@pytest.mark.parametrize("end", ENDS)
def test_the_present_at_the_ends_of_the_calendar(tmp_path: Path, end: str) -> None:
    usage = {"n1": {"cpu": 5, "metricsTime": end}}
    objects = [node(), queue(), group(), pod()]
    content = {"now": end, "cycles": 2, "conf": CONF, "nodeUsage": usage, "objects": objects}
    file = tmp_path / "scenario.yaml"
    file.write_text(json.dumps(content))
    for words in (("run",), ("test",), ("explain", "-f"), ("snapshot", "show"),
                  ("whatif", "--add-nodes", "1", "-f")):  # fmt: skip
        result = CliRunner().invoke(main, [*words, str(file)])
        assert result.exception is None or isinstance(result.exception, SystemExit), words


@pytest.mark.parametrize("tiers", [(1, 10**9), (1, 2**62), (0, 3, 10**6)])
@pytest.mark.parametrize("verb", ["run", "explain"])
def test_tiers_far_apart(tmp_path: Path, verb: str, tiers: tuple[int, ...]) -> None:
    domains, below = [], {"type": "Node", "selector": {"exactMatch": {"name": "n1"}}}
    for tier in tiers:
        name = f"h{tier}"
        spec = {"tier": tier, "members": [below]}
        domains.append(one("topology.volcano.sh/v1alpha1", "HyperNode", name, spec=spec))
        below = {"type": "HyperNode", "selector": {"exactMatch": {"name": name}}}
    started = time.process_time()
    called(tmp_path, verb, node(), queue(), *domains, group(), pod())
    assert time.process_time() - started < 5


@pytest.mark.sample(3)
@pytest.mark.parametrize("verb", ["run", "explain", "whatif"])
def test_a_deep_chain_of_hyper_nodes(tmp_path: Path, verb: str) -> None:
    domains, below = [], {"type": "Node", "selector": {"exactMatch": {"name": "n1"}}}
    for tier in range(1, 1500):
        spec = {"tier": tier, "members": [below]}
        domains.append(one("topology.volcano.sh/v1alpha1", "HyperNode", f"h{tier}", spec=spec))
        below = {"type": "HyperNode", "selector": {"exactMatch": {"name": f"h{tier}"}}}
    called(tmp_path, verb, node(), queue(), *domains, group(), pod())


@pytest.mark.sample(3)
@pytest.mark.parametrize("verb", ["run", "explain", "whatif", "lint"])
def test_queues_thousands_of_levels_deep(tmp_path: Path, verb: str) -> None:
    chain = [queue(f"q{i}", f"q{i - 1}" if i else "root") for i in range(2500)]
    started = time.process_time()
    called(tmp_path, verb, node(), queue(), *chain, group(), pod())
    assert time.process_time() - started < 25  # with each compared to each much more


def test_a_ring_of_thousands_of_queues(tmp_path: Path) -> None:
    ring = [queue(f"q{i}", f"q{(i + 1) % 3000}") for i in range(3000)]
    result = called(tmp_path, "run", node(), queue(), *ring, group(), pod())
    assert "Queue q0 is below itself: q0 -> q1 -> " in result.output
    assert len(result.output) < 20_000


@pytest.mark.sample(3)
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("spec", [{}, {"spec": None}, {"spec": {}}, {"spec": []}, {"spec": 5}])
def test_objects_without_a_specification(tmp_path: Path, verb: str, spec: dict[str, Any]) -> None:
    place = {"namespace": "default"}
    for version, kind in (
        ("batch.volcano.sh/v1alpha1", "Job"),
        ("batch.volcano.sh/v1alpha1", "CronJob"),
        ("flow.volcano.sh/v1alpha1", "JobTemplate"),
        ("scheduling.volcano.sh/v1beta1", "Queue"),
        ("nodeinfo.volcano.sh/v1alpha1", "Numatopology"),
    ):
        called(tmp_path, verb, node(), queue(), one(version, kind, "x", metadata=place, **spec))


def test_a_specification_that_is_missing_is_named(tmp_path: Path) -> None:
    job = one("batch.volcano.sh/v1alpha1", "Job", "j", metadata={"namespace": "default"})
    assert "Job default/j: spec: expected an object" in called(tmp_path, "lint", job).output
    job["spec"] = None
    assert "spec: got null, expected an object" in called(tmp_path, "lint", job).output


def test_a_job_of_pods_that_a_pod_owns(tmp_path: Path) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    containers = [{"name": "c", "image": "i"}]
    made = one("v1", "Pod", "p", metadata={"ownerReferences": [owner]})
    (tmp_path / "cluster.yaml").write_text(json.dumps(node()))
    (tmp_path / "job.yaml").write_text(json.dumps({**made, "spec": {"containers": containers}}))
    words = ["whatif", "-f", str(tmp_path / "cluster.yaml"), "--job", str(tmp_path / "job.yaml")]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert "submit default/p" in result.stdout
