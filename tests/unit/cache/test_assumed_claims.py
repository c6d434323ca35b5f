"""Resource claims that are assumed to be a pod's until the cluster confirms it."""

from typing import Any

import pytest

from pumice.api.devices import (
    Allocation,
    ClaimConsumer,
    ClaimReservation,
    DeviceAllocation,
    DeviceResult,
    ResourceClaim,
)
from pumice.api.objects import from_manifest
from pumice.cache.assume import Assumptions
from pumice.cache.informer import Informer
from pumice.cache.ingest import Ingest
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.core.snapshot import Snapshot
from pumice.testing import pod, resource_claim

RESULT = DeviceResult(request="gpu", driver="d", pool="p", device="g")
GIVEN = Allocation(devices=DeviceAllocation(results=(RESULT,)))
MINE = ClaimReservation(claim="default/c", uid="default-c", allocation=GIVEN)
P = ClaimConsumer(resource="pods", name="p", uid="default-p")


def read(manifest: Any) -> Any:
    return from_manifest(manifest)


@pytest.fixture
def thought() -> Assumptions:
    thought = Assumptions()
    thought.reserved(read(pod("p")), [MINE])
    return thought


def claim(**status: Any) -> ResourceClaim:
    found: ResourceClaim = read(resource_claim("c", status=status))
    return found


def test_a_claim_shows_what_it_is_thought_to_have(thought: Assumptions) -> None:
    shown = thought.show_resource_claim("default/c", claim()).status
    assert shown.allocation == GIVEN
    assert shown.reserved_for == (P,)


def test_users_that_the_cluster_tells_of_stay(thought: Assumptions) -> None:
    q = {"resource": "pods", "name": "q", "uid": "default-q"}
    allocation = {"devices": {"results": [{**_plain(RESULT), "device": "other"}]}}
    shown = thought.show_resource_claim(
        "default/c", claim(allocation=allocation, reservedFor=[q])
    ).status
    assert [each.name for each in shown.reserved_for] == ["q", "p"]
    assert shown.allocation is not None
    assert shown.allocation.devices.results[0].device == "other"


def test_the_word_of_the_cluster_ends_it(thought: Assumptions) -> None:
    reported = claim(reservedFor=[{"resource": "pods", "name": "p", "uid": "default-p"}])
    assert thought.show_resource_claim("default/c", reported) is reported
    later = claim()
    assert thought.show_resource_claim("default/c", later) is later


def test_another_claim_of_that_name_is_another(thought: Assumptions) -> None:
    other = resource_claim("c")
    other["metadata"]["uid"] = "another"
    shown = read(other)
    assert thought.show_resource_claim("default/c", shown) is shown


def test_two_pods_are_thought_of_one_by_one(thought: Assumptions) -> None:
    thought.reserved(read(pod("q")), [MINE])
    assert thought.forget_claims("default-p") == ["default/c"]
    shown = thought.show_resource_claim("default/c", claim()).status
    assert [each.name for each in shown.reserved_for] == ["q"]
    assert shown.allocation == GIVEN
    assert thought.forget_claims("default-p") == []


class TestInformer:
    @pytest.fixture
    def cluster(self) -> Any:
        cluster = EmbeddedCluster(VirtualClock(0.0))
        entries = [{"name": "gpu", "resourceClaimName": "c"}]
        cluster.create(pod("p", spec={"resourceClaims": entries}))
        cluster.create(resource_claim("c"))
        return cluster

    @pytest.fixture
    def informer(self, cluster: Any) -> Any:
        informer = Informer(cluster, Ingest(Snapshot()))
        informer.sync()
        uid = cluster.get("ResourceClaim.resource.k8s.io", "default", "c")["metadata"]["uid"]
        reservation = ClaimReservation(claim="default/c", uid=uid, allocation=GIVEN)
        informer.assume_claims("default/p", (reservation,))
        return informer

    def allocation(self, informer: Any) -> Any:
        return informer.snapshot.kind("ResourceClaim")["default/c"].status.allocation

    def test_the_snapshot_shows_it(self, informer: Any) -> None:
        assert self.allocation(informer) == GIVEN

    def test_until_it_is_taken_back(self, cluster: Any, informer: Any) -> None:
        informer.undo_claims(cluster.get("Pod", "default", "p")["metadata"]["uid"])
        assert self.allocation(informer) is None

    def test_or_the_pod_is_gone(self, cluster: Any, informer: Any) -> None:
        cluster.delete("Pod", "default", "p", grace_s=0)
        informer.sync()
        assert self.allocation(informer) is None

    def test_or_over(self, cluster: Any, informer: Any) -> None:
        cluster.merge_status("Pod", "default", "p", {"phase": "Succeeded"})
        informer.sync()
        assert self.allocation(informer) is None

    def test_other_news_of_the_pod_change_nothing(self, cluster: Any, informer: Any) -> None:
        cluster.merge_status("Pod", "default", "p", {"phase": "Running"})
        informer.sync()
        assert self.allocation(informer) == GIVEN


def _plain(result: DeviceResult) -> dict[str, str]:
    return {
        "request": result.request,
        "driver": result.driver,
        "pool": result.pool,
        "device": result.device,
    }
