"""Resource claims on a cluster: allocated before the bind, released, shared, freed."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.clock import VirtualClock
from pumice.cluster.base import DirectWriter
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import ConflictError, RejectedError, UnavailableError
from pumice.scheduler import Scheduler
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.serve.scheduler.default_queues import make_queues
from pumice.serve.scheduler.live_scheduler import LiveScheduler
from pumice.testing import (
    device,
    device_class,
    device_request,
    pod,
    pod_group,
    resource_claim,
    resource_claim_template,
    resource_slice,
)

CLAIM = "ResourceClaim.resource.k8s.io"
CONF = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: nodeorder}]
"""
FINALIZER = "resource.kubernetes.io/delete-protection"


def furnish(cluster: Any, gpus: int = 2) -> None:
    add_node(cluster, "n", {"cpu": "8", "memory": "8Gi"})
    cluster.create(device_class("gpu", expression='device.driver == "gpu.example.com"'))
    devices = [device(f"gpu-{i}") for i in range(gpus)]
    cluster.create(resource_slice("n", node="n", devices=devices))


def claiming(cluster: Any, name: str, run: str = "10", group: str = "", **entry: Any) -> None:
    if not group:
        cluster.create(pod_group(name, phase=None))
    spec = {"resourceClaims": [{"name": "gpu", **entry}]}
    marks = {"pumice.dev/run-seconds": run}
    cluster.create(pod(name, group=group or name, cpu=1, annotations=marks, spec=spec))


def claims(cluster: Any) -> dict[str, tuple[list[str], list[str]]]:
    """Claims to their devices and the pods that may use them."""
    found = {}
    for each in cluster.list(CLAIM)[0]:
        status = each.get("status") or {}
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
        found[each["metadata"]["name"]] = (
            [one["device"] for one in results],
            [one["name"] for one in status.get("reservedFor") or ()],
        )
    return found


def node_of(cluster: Any, name: str = "p") -> Any:
    return cluster.get("Pod", "default", name)["spec"].get("nodeName")


class TestEmbedded:
    @pytest.fixture
    def plane(self) -> Any:
        plane = EmbeddedControlPlane(clock=VirtualClock(0.0))
        furnish(plane.cluster)
        return plane

    def test_claims_are_made_from_a_template_met_used_and_freed(self, plane: Any) -> None:
        cluster = plane.cluster
        cluster.create(resource_claim_template("t"))
        for name in ("p", "q", "r"):
            claiming(cluster, name, resourceClaimTemplateName="t")
        plane.run(until=5)
        held = sorted(each for each in claims(cluster).values() if each[0])
        assert held == [(["gpu-0"], ["p"]), (["gpu-1"], ["q"])]
        assert node_of(cluster, "r") is None
        made = next(each for each in cluster.list(CLAIM)[0] if each["status"].get("allocation"))
        assert FINALIZER in made["metadata"]["finalizers"]
        plane.run()
        assert [node_of(cluster, name) for name in "pqr"] == ["n", "n", "n"]
        assert not any(devices for devices, _ in claims(cluster).values())

    def test_a_deleted_pod_takes_the_claim_that_was_made_for_it_along(self, plane: Any) -> None:
        cluster = plane.cluster
        cluster.create(resource_claim_template("t"))
        claiming(cluster, "p", run="1000", resourceClaimTemplateName="t")
        plane.run(until=5)
        assert claims(cluster)
        cluster.delete("Pod", "default", "p", grace_s=0)
        plane.run(until=20)
        assert claims(cluster) == {}

    def test_the_pod_says_what_its_claim_lacks(self, plane: Any) -> None:
        cluster = plane.cluster
        cluster.create(resource_claim("c", requests=[device_request(count=3)]))
        claiming(cluster, "p", resourceClaimName="c")
        plane.run(until=5)
        (condition,) = cluster.get("Pod", "default", "p")["status"]["conditions"]
        assert "1 node(s) cannot allocate all resource claims" in condition["message"]


class Delayed:
    """Carries writes out on demand; ``fail`` makes some of them fail instead."""

    def __init__(self, cluster: Any) -> None:
        self._direct = DirectWriter(cluster)
        self.waiting: list[Any] = []

    def submit(self, write: Any, *, lane: Any, done: Any = None) -> None:
        self.waiting.append((write, lane, done))

    def flush(self, timeout_s: Any) -> bool:
        return not self.waiting

    def go(self, fail: Any = None, of: Any = lambda write: write.verb == "bind") -> list[str]:
        """Do all that waits and what follows from it; return the verbs in order."""
        verbs = []
        while self.waiting:
            write, lane, done = self.waiting.pop(0)
            if write.arguments.get("kind") == CLAIM or write.verb == "bind":
                verbs.append(write.verb)
            if fail is not None and of(write):
                done(fail)
            else:
                self._direct.submit(write, lane=lane, done=done)
        return verbs


def is_claim(write: Any) -> bool:
    return bool(write.arguments.get("kind") == CLAIM)


class TestLive:
    @pytest.fixture
    def cluster(self) -> Any:
        cluster = EmbeddedCluster(VirtualClock(0.0))
        make_queues(cluster)
        furnish(cluster, gpus=1)
        cluster.create(resource_claim("c"))
        claiming(cluster, "p", resourceClaimName="c")
        return cluster

    @pytest.fixture
    def writer(self, cluster: Any) -> Any:
        return Delayed(cluster)

    @pytest.fixture
    def live(self, cluster: Any, writer: Any) -> Any:
        scheduler = Scheduler(parse_conf(CONF))
        return LiveScheduler(cluster, scheduler, assume=True, writer=writer, confirm_s=10.0)

    def rival(self, cluster: Any) -> None:
        cluster.create(resource_claim("d"))
        claiming(cluster, "q", resourceClaimName="d")

    def test_claims_are_written_before_the_bind(self, cluster: Any, writer: Any, live: Any) -> None:
        live.cycle()
        assert writer.go() == ["patch", "patch", "bind"]
        assert claims(cluster) == {"c": (["gpu-0"], ["p"])}
        assert node_of(cluster) == "n"

    def test_a_device_is_taken_before_the_cluster_knows(
        self, cluster: Any, writer: Any, live: Any
    ) -> None:
        assert live.cycle().decisions.binds == {"default/p": "n"}
        self.rival(cluster)
        assert live.cycle().decisions.binds == {}
        writer.go()
        assert live.cycle().decisions.binds == {}
        assert claims(cluster)["d"] == ([], [])

    def test_a_refused_bind_gives_the_claim_and_its_device_back(
        self, cluster: Any, writer: Any, live: Any
    ) -> None:
        live.cycle()
        writer.go(RejectedError("Pod", problem="no"))
        self.rival(cluster)
        live.cycle()
        writer.go()
        assert claims(cluster)["c"] == ([], [])
        cluster.clock.advance(0.1)
        live.cycle()
        writer.go()
        assert claims(cluster)["d"] == (["gpu-0"], ["q"])

    @pytest.mark.parametrize(
        "error", [RejectedError("ResourceClaim", problem="no"), ConflictError("ResourceClaim")]
    )
    def test_without_its_claim_a_pod_is_not_bound(
        self, error: Any, cluster: Any, writer: Any, live: Any
    ) -> None:
        live.cycle()
        assert "bind" not in writer.go(error, of=is_claim)
        assert node_of(cluster) is None
        for _ in range(6):
            cluster.clock.advance(1)
            live.cycle()
            writer.go()
        assert node_of(cluster) == "n"
        assert claims(cluster) == {"c": (["gpu-0"], ["p"])}

    def test_a_bind_that_is_sent_again_sends_its_claims_again(
        self, cluster: Any, writer: Any, live: Any
    ) -> None:
        live.cycle()
        writer.go(UnavailableError(problem="timeout"), of=is_claim)
        live.cycle()
        assert "bind" in writer.go()
        assert claims(cluster) == {"c": (["gpu-0"], ["p"])}

    def test_another_process_goes_on_with_a_claim_that_was_reserved_and_not_used(
        self, cluster: Any, writer: Any, live: Any
    ) -> None:
        live.cycle()
        writer.go(UnavailableError(problem="timeout"))
        assert claims(cluster) == {"c": (["gpu-0"], ["p"])}
        after = LiveScheduler(cluster, Scheduler(parse_conf(CONF)), assume=True, writer=writer)
        after.cycle()
        writer.go()
        assert node_of(cluster) == "n"

    def test_and_frees_it_where_the_pod_has_no_room_any_more(
        self, cluster: Any, writer: Any, live: Any
    ) -> None:
        live.cycle()
        writer.go(UnavailableError(problem="timeout"))
        cluster.patch("Node", "", "n", {"spec": {"unschedulable": True}})
        after = LiveScheduler(cluster, Scheduler(parse_conf(CONF)), assume=True, writer=writer)
        after.cycle()
        writer.go()
        assert claims(cluster) == {"c": ([], [])}

    def test_what_one_pod_of_two_gives_back_stays_with_the_other(
        self, cluster: Any, writer: Any, live: Any
    ) -> None:
        claiming(cluster, "p2", resourceClaimName="c")
        assert len(live.cycle().decisions.binds) == 2
        refused = RejectedError("Pod", problem="no")
        writer.go(refused, of=lambda write: write.arguments.get("pod") == "p")
        live.cycle()
        writer.go()
        assert claims(cluster) == {"c": (["gpu-0"], ["p2"])}
