"""Golden scenarios on a real API server: the same pods end up on the same nodes.

A real cluster gives objects its own uids and creation times, gives every pod a priority, and goes
on after the scenario's cycles: chosen are cases whose outcome depends on none of these.
What the recorded cycles pipeline is bound once the evicted pods are gone.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e_kube.space import Space, ready
from tests.e2e_kube.waiting import stays, until

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = [
    *("backfill/027", "binpack/007", "capacity-flat/022", "capacity-hierarchical/004"),
    *("cdp/018", "conformance/008", "default-conf/006", "drf/023", "gang/018", "hdrf/007"),
    *("gang-evict/019", "multi-cycle/023", "network-topology-aware/009", "nodegroup/020"),
    *("nodeorder/011", "overcommit/008", "predicates/010", "preempt/030", "priority/014"),
    *("proportion/005", "reclaim/026", "reclaim-capacity/019", "resource-strategy-fit/035"),
    *("shuffle-tdm/007", "sla/029", "task-topology/004"),
]
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
ORDER = ("Namespace", "PriorityClass", "Queue", "HyperNode", "Node", "PodGroup", "Pod")


def outcome(case: Any) -> Any:
    """Return where each pod is in the end, those that ran before too; evicted ones are gone."""
    placed = {key(each): each["spec"].get("nodeName") for each in pods(case)}
    gone = set()
    for cycle in case["expect"].get("cycles") or [case["expect"]]:
        placed |= cycle.get("pipelined", {}) | cycle.get("binds", {})
        gone |= set(cycle.get("evictions", ()))
    return {pod: node for pod, node in placed.items() if pod not in gone}


def pods(case: Any) -> Any:
    return [manifest for manifest in case["objects"] if manifest["kind"] == "Pod"]


def key(manifest: Any) -> str:
    return f"{manifest['metadata'].get('namespace', 'default')}/{manifest['metadata']['name']}"


def built_in(manifest: Any) -> Any:
    """Return whether every cluster has an object, or it already exists."""
    name = manifest["metadata"]["name"]
    return manifest["kind"] == "Namespace" or name.startswith("system-")


def fresh(manifest: Any) -> Any:
    """Leave out what the API server fills in."""
    filled = ("uid", "creationTimestamp", "resourceVersion")
    metadata = {k: v for k, v in manifest["metadata"].items() if k not in filled}
    fresh = {**manifest, "metadata": metadata}
    if manifest["kind"] == "Pod":
        fresh.pop("status", None)
        wanted = fresh["spec"].get("priority")
        if wanted is not None and not fresh["spec"].get("priorityClassName"):
            # An API server takes a pod's priority from its class only.
            fresh["spec"] = {**fresh["spec"], "priorityClassName": f"value-{wanted}"}
    return ready(fresh) if manifest["kind"] == "Node" else fresh


def classes(case: Any) -> Any:
    """Make the priority classes that pods lack."""
    values = {o["spec"].get("priority") for o in pods(case)} - {None}
    meta = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return [{**meta, "metadata": {"name": f"value-{value}"}, "value": value} for value in values]


def make(kubectl: Any, api: Any, case: Any) -> None:
    """Create the objects; nothing schedules them yet."""
    for old in api.items(QUEUES):
        api.delete(f"{QUEUES}/{old['metadata']['name']}")
    wanted = [fresh(each) for each in case["objects"] if not built_in(each)]
    wanted = sorted([*wanted, *classes(case)], key=lambda each: ORDER.index(each["kind"]))
    kubectl.create(*wanted)
    queues = [f"queue/{each['metadata']['name']}" for each in wanted if each["kind"] == "Queue"]
    opened = json.dumps({"status": {"state": "Open"}})
    kubectl("patch", *queues, "--subresource=status", "--type=merge", "-p", opened)


def seen(spaces: Any) -> Any:
    """Return the node of every pod, or nothing for those without one."""
    found = [pod for space in spaces for pod in space.pods()]
    return {key(pod): pod["spec"].get("nodeName") for pod in found}


@pytest.fixture
def spaces(kubectl: Any, plane: Any) -> Iterator[Any]:
    """Yield a function that makes the namespaces of a case; all is removed afterwards."""
    made = []

    def make_spaces(case: Any) -> Any:
        for name in sorted({each["metadata"]["namespace"] for each in pods(case)}):
            kubectl.run("create", "namespace", name)  # it stays for the next case
            made.append(Space(kubectl, plane.api, name))
        return made

    yield make_spaces
    for each in made:
        each.clear()
    for name in ("default", "root"):  # they may be of the case
        plane.api.delete(f"{QUEUES}/{name}")


@pytest.mark.parametrize("name", CASES)
def test_a_golden_scenario_ends_the_same(
    spaces: Any, kubectl: Any, plane: Any, scheduler: Any, name: Any
) -> None:
    case = json.loads((GOLDEN / f"{name}.json").read_text())
    found = spaces(case)
    make(kubectl, plane.api, case)
    running = sum("nodeName" in each["spec"] for each in pods(case))
    until(
        "all pods running that ran before",
        lambda: sum(each.running() for each in found),
        lambda count: count == running,
    )
    wanted = outcome(case)
    with scheduler(case["conf"], schedule_period="100ms"):
        until("as recorded", lambda: seen(found), lambda now: now == wanted, timeout_s=20)
        stays("as recorded", lambda: seen(found), lambda now: now == wanted, for_s=0.5)
