"""Statuses of disruption budgets and resource quotas, as a cluster's controllers write them."""

from typing import Any

import pytest

from pumice.clock import VirtualClock
from pumice.cluster.embedded.kubelet import Kubelet
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.quotas import quota_status
from pumice.cluster.embedded.status_upkeep import (
    StatusUpkeep,
    budget_status,
    covers,
    refusal,
    selects,
)
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.testing import pod

PDB = "PodDisruptionBudget.policy"


@pytest.fixture
def cluster() -> Any:
    made = EmbeddedCluster(VirtualClock(0.0))
    add_node(made, "n", {"cpu": "64"})
    return made


def budget(name: str = "b", **spec: Any) -> Any:
    selector = {"matchLabels": {"app": "x"}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": selector, **spec},
    }


def quota(name: str = "q", **spec: Any) -> Any:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


def run(cluster: Any, n: Any, label: str = "x", **facts: Any) -> None:
    for i in range(n):
        cluster.create(pod(f"{label}-{i}", labels={"app": label}, **facts))
        cluster.bind("default", f"{label}-{i}", "n", {})
    Kubelet(cluster).sync()


def status(cluster: Any, kind: Any = PDB, name: str = "b") -> Any:
    return cluster.get(kind, "default", name)["status"]


def test_a_budget_follows_pods_that_leave(cluster: Any) -> None:
    run(cluster, 3)
    cluster.create(budget(minAvailable=2))
    books = StatusUpkeep(cluster)
    books.sync()
    cluster.delete("Pod", "default", "x-0")
    assert books.sync() == 1
    assert (status(cluster)["currentHealthy"], status(cluster)["disruptionsAllowed"]) == (2, 0)


def test_nothing_is_written_while_nothing_changes(cluster: Any) -> None:
    run(cluster, 3)
    cluster.create(budget(minAvailable=2))
    books = StatusUpkeep(cluster)
    books.sync()
    version = cluster.version
    assert books.sync() == 0
    cluster.create(pod("unrelated"))
    assert books.sync() == 0
    assert cluster.version == version + 1


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"a": "1"}}, True),
        ({"matchLabels": {"a": "2"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_selectors_select_as_in_kubernetes(selector: Any, selected: bool) -> None:
    assert selects(selector, {"a": "1"}) is selected


def member(
    name: str = "p", phase: str = "Running", ready: str = "True", **metadata: Any
) -> dict[str, Any]:
    place = {"name": name, "namespace": "default", "labels": {"app": "x"}, **metadata}
    conditions = [{"type": "Other", "status": "True"}, {"type": "Ready", "status": ready}]
    return {"metadata": place, "spec": {}, "status": {"phase": phase, "conditions": conditions}}


@pytest.mark.parametrize(
    ("pod_of", "covered"),
    [
        (member(), True),
        (member(namespace="other"), False),
        (member(labels={"app": "y"}), False),
        (member(labels=None), False),
    ],
)
def test_a_budget_covers_pods_of_its_namespace_by_their_labels(pod_of: Any, covered: bool) -> None:
    assert covers(budget(), pod_of) is covered
    assert covers({"metadata": {"namespace": "default"}}, pod_of) is False


@pytest.mark.parametrize(
    ("pods", "healthy"),
    [
        ([member()], 1),
        ([member(ready="False")], 0),
        ([member(deletionTimestamp="t")], 0),
        ([member(), member(ready="Unknown"), member()], 2),
        ([{"metadata": member()["metadata"]}], 0),
    ],
)
def test_healthy_pods_are_ready_and_stay(pods: Any, healthy: int) -> None:
    found = budget_status(budget(minAvailable=1), pods, "now")
    assert (found["expectedPods"], found["currentHealthy"]) == (len(pods), healthy)


@pytest.mark.parametrize(
    ("spec", "desired"),
    [
        ({"minAvailable": "0%"}, 0),
        ({"minAvailable": "1%"}, 1),
        ({"minAvailable": "34%"}, 2),
        ({"minAvailable": "100%"}, 3),
        ({"minAvailable": "odd"}, 0),
        ({"minAvailable": "2"}, 2),
        ({"minAvailable": "x%"}, 0),
        ({"maxUnavailable": 0}, 3),
        ({"maxUnavailable": 5}, 0),
        ({"maxUnavailable": "34%"}, 1),
        ({"maxUnavailable": 1, "minAvailable": 3}, 2),
        ({"maxUnavailable": None, "minAvailable": 2}, 2),
    ],
)
def test_how_many_of_three_pods_a_budget_wants(spec: Any, desired: int) -> None:
    found = budget_status(budget(**spec), [member()] * 3, "now")
    allowed = 3 - desired
    assert (found["desiredHealthy"], found["disruptionsAllowed"]) == (desired, allowed)
    (condition,) = found["conditions"]
    assert condition == {
        "type": "DisruptionAllowed",
        "status": "True" if allowed else "False",
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "observedGeneration": 1,
        "lastTransitionTime": "now",
    }
    assert found["observedGeneration"] == 1


@pytest.mark.parametrize(("allowed", "refused"), [(None, True), (-1, True), (0, True), (1, False)])
def test_a_budget_refuses_unless_it_allows(allowed: int | None, refused: bool) -> None:
    status = {} if allowed is None else {"status": {"disruptionsAllowed": allowed}}
    found = refusal(member(), [{**budget(), **status}])
    assert found.startswith("Cannot evict pod") if refused else found == ""
    assert "more than one" in refusal(member(), [{**budget(), **status}] * 2)
    assert refusal(member(labels={}), [{**budget(), **status}]) == ""
    assert refusal(member(phase="Pending"), [{**budget(), **status}]) == ""


def term(operator: str, *values: str, scope: str = "PriorityClass") -> Any:
    return {"scopeName": scope, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("one", "counted"),
    [
        (term("In", "high"), ["high"]),
        (term("In"), []),
        (term("NotIn", "high"), ["none", "low"]),
        (term("Exists"), ["high", "low"]),
        (term("DoesNotExist"), ["none"]),
        (term("Odd"), []),
        (term("Exists", scope="Unknown"), []),
        (term("Exists", scope="Terminating"), ["low"]),
        (term("Exists", scope="NotTerminating"), ["none", "high"]),
        (term("Exists", scope="BestEffort"), ["none", "high", "low"]),
        (term("Exists", scope="NotBestEffort"), []),
    ],
)
def test_a_scope_selects_pods(one: Any, counted: Any) -> None:
    pods = [member("none"), member("high"), member("low")]
    pods[1]["spec"]["priorityClassName"] = "high"
    pods[2]["spec"] = {"priorityClassName": "low", "activeDeadlineSeconds": 0}
    spec: Any = {"hard": {"pods": "9"}, "scopeSelector": {"matchExpressions": [one]}}
    found = quota_status(quota(**spec), lambda _: pods)
    assert found["used"] == {"pods": str(len(counted))}


@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("pods", "2"),
        ("count/pods", "4"),
        ("services", "3"),
        ("count/services", "3"),
        ("cpu", "1000001u"),
        ("requests.cpu", "1000001u"),
        ("limits.cpu", "0"),
        ("memory", "1024500m"),
        ("requests.ephemeral-storage", "0"),
        ("example.com/gpu", "0"),
        ("requests.example.com/gpu", "1"),
        ("count/strange", "0"),
    ],
)
def test_what_a_quota_counts_by_its_name(name: str, used: str) -> None:
    pods = [member("a"), member("b"), member("c", "Failed"), member("d", "Succeeded")]
    asks = {"cpu": "1000001u", "memory": "1024500m", "example.com/gpu": "1"}
    for one in pods[1:]:
        one["spec"]["containers"] = [{"name": "c", "resources": {"requests": asks}}]
    listed: dict[str, Any] = {"Pod": pods, "Service": [{}] * 3}
    found = quota_status(quota(hard={name: "9"}), lambda kind: listed[kind])
    assert found == {"hard": {name: "9"}, "used": {name: used}}


def test_an_odd_object_leaves_the_others_alone(cluster: Any) -> None:
    odd = budget("odd", selector={"matchLabels": 5})
    for one in (odd, budget("well", minAvailable=1)):
        cluster.create(one)
    run(cluster, 2)
    assert StatusUpkeep(cluster).sync() == 1
    assert status(cluster, name="well")["expectedPods"] == 2


def test_budgets_and_quotas_count_their_own_namespace(cluster: Any) -> None:
    for namespace in ("default", "other"):
        cluster.create(pod("p", namespace=namespace, labels={"app": "x"}))
    cluster.create(budget(minAvailable=1))
    cluster.create(quota(hard={"pods": "9"}))
    assert StatusUpkeep(cluster).sync() == 2
    assert status(cluster)["expectedPods"] == 1
    assert status(cluster, "ResourceQuota", "q")["used"] == {"pods": "1"}
