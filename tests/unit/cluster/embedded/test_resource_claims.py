"""The upkeep of resource claims: made from templates for pods, freed when their pods have ended."""

from typing import Any

import pytest

from pumice.api.devices import DELETE_PROTECTION
from pumice.api.kinds import RESOURCE_CLAIM
from pumice.clock import VirtualClock
from pumice.cluster.embedded.resource_claims import ResourceClaimUpkeep
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.testing import pod, resource_claim, resource_claim_template


@pytest.fixture
def cluster() -> Any:
    return EmbeddedCluster(VirtualClock(0.0))


def claiming(name: str, *templates: str, **more: Any) -> Any:
    entries = [
        {"name": f"e{i}", "resourceClaimTemplateName": each} for i, each in enumerate(templates)
    ]
    return pod(name, spec={"resourceClaims": entries}, **more)


def made(cluster: Any) -> list[str]:
    """Name the pod of each claim, and what the pod calls it."""
    found = []
    for each in cluster.list(RESOURCE_CLAIM)[0]:
        name = each["metadata"]["generateName"].removesuffix("-")
        assert each["metadata"]["ownerReferences"][0]["name"] == name.rpartition("-")[0]
        found.append(name)
    return sorted(found)


def statuses(cluster: Any, name: str) -> dict[str, str]:
    status = cluster.get("Pod", "default", name).get("status") or {}
    known = status.get("resourceClaimStatuses") or ()
    return {each["name"]: each["resourceClaimName"] for each in known}


def test_each_entry_of_a_pod_gets_its_claim_once(cluster: Any) -> None:
    cluster.create(resource_claim_template("t"))
    cluster.create(resource_claim_template("u"))
    cluster.create(claiming("p", "t", "u", "t"))
    cluster.create(claiming("q", "t"))
    cluster.create(pod("r"))
    upkeep = ResourceClaimUpkeep(cluster)
    for _ in range(3):
        upkeep.sync()
        assert made(cluster) == ["p-e0", "p-e1", "p-e2", "q-e0"]
    names = {each["metadata"]["name"] for each in cluster.list(RESOURCE_CLAIM)[0]}
    assert sorted(statuses(cluster, "p")) == ["e0", "e1", "e2"]
    assert {*statuses(cluster, "p").values(), *statuses(cluster, "q").values()} == names


def test_a_claim_waits_for_its_template_and_others_do_not_wait_for_it(cluster: Any) -> None:
    cluster.create(resource_claim_template("t"))
    cluster.create(claiming("p", "late", "t"))
    upkeep = ResourceClaimUpkeep(cluster)
    upkeep.sync()
    assert made(cluster) == ["p-e1"]
    cluster.create(resource_claim_template("late"))
    upkeep.sync()
    assert made(cluster) == ["p-e0", "p-e1"]


def test_a_pod_that_is_leaving_or_has_ended_gets_no_claim(cluster: Any) -> None:
    cluster.create(claiming("leaving", "t"))
    cluster.bind("default", "leaving", "n", {})
    cluster.delete("Pod", "default", "leaving")
    for phase in ("Succeeded", "Failed", "Running"):
        cluster.create(claiming(phase.lower(), "t"))
        cluster.merge_status("Pod", "default", phase.lower(), {"phase": phase})
    cluster.create(resource_claim_template("t"))
    ResourceClaimUpkeep(cluster).sync()
    assert made(cluster) == ["running-e0"]


@pytest.mark.parametrize("with_template", [False, True])
def test_claims_are_freed_when_their_pods_have_ended(cluster: Any, with_template: bool) -> None:
    if with_template:
        cluster.create(resource_claim_template("t"))
    claim = resource_claim("c")
    claim["metadata"]["finalizers"] = [DELETE_PROTECTION, "other/guard"]
    cluster.create(claim)
    users = []
    for name in "pq":
        meta = cluster.create(pod(name))["metadata"]
        users.append({"resource": "pods", "name": name, "uid": meta["uid"]})
    found = cluster.get(RESOURCE_CLAIM, "default", "c")
    status = {"allocation": {"devices": {"results": []}}, "reservedFor": users}
    cluster.update_status({**found, "status": status})
    upkeep = ResourceClaimUpkeep(cluster)

    def now() -> Any:
        upkeep.sync()
        return cluster.get(RESOURCE_CLAIM, "default", "c")

    assert now()["status"] == status
    cluster.merge_status("Pod", "default", "p", {"phase": "Succeeded"})
    assert [user["name"] for user in now()["status"]["reservedFor"]] == ["q"]
    assert now()["metadata"]["finalizers"] == [DELETE_PROTECTION, "other/guard"]
    cluster.delete("Pod", "default", "q")
    assert "allocation" not in now()["status"]
    assert not now()["status"].get("reservedFor")
    assert now()["metadata"]["finalizers"] == ["other/guard"]
