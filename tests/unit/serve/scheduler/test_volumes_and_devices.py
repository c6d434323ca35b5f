"""Pods with volume claims and resource claims: volumes first, then devices, then the bind."""

from typing import Any

import pytest

from pumice.errors import RejectedError
from pumice.testing import device, device_class, pod, pod_group, resource_claim, resource_slice
from tests.unit.serve.scheduler.test_volume_binding import CLAIM, World

DEVICES = "ResourceClaim.resource.k8s.io"


@pytest.fixture(params=[True, False])
def world(request: Any) -> Any:
    world = World(assume=request.param)
    world.cluster.create(device_class("gpu"))
    world.cluster.create(resource_slice("a", node="a", devices=[device("gpu-0")]))
    world.cluster.create(resource_claim("card"))
    world.claim("data")
    claiming(world, "p", "data")
    return world


def claiming(world: Any, name: str, *volumes: str) -> None:
    world.cluster.create(pod_group(f"of-{name}", phase=None))
    spec = {
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "card"}],
        "volumes": [
            {"name": f"v-{each}", "persistentVolumeClaim": {"claimName": each}} for each in volumes
        ],
    }
    world.cluster.create(pod(name, group=f"of-{name}", cpu=1, spec=spec))


def users(world: Any) -> list[str]:
    status = world.cluster.get(DEVICES, "default", "card").get("status") or {}
    return [each["name"] for each in status.get("reservedFor") or ()]


def assumed(world: Any) -> list[str]:
    claim = world.live.informer.snapshot.kind("ResourceClaim")["default/card"]
    return [each.name for each in claim.status.reserved_for]


def test_devices_are_reserved_once_the_volumes_are_bound(world: Any) -> None:
    world.live.cycle()
    assert world.wire.of(CLAIM)
    assert (users(world), assumed(world), world.node_of("p")) == ([], ["p"], None)
    world.binder.sync()
    world.live.cycle()
    kinds = [kind for kind, _ in world.wire.writes if kind in (CLAIM, DEVICES, "bind")]
    assert kinds == [CLAIM, DEVICES, DEVICES, "bind"]
    assert (users(world), world.node_of("p")) == (["p"], "a")


def test_devices_are_free_again_when_volumes_are_never_bound(world: Any) -> None:
    world.live.cycle()
    world.cluster.clock.advance(21)
    world.live.catch_up()
    assert (users(world), assumed(world), world.node_of("p")) == ([], [], None)
    assert not world.wire.of(DEVICES)


@pytest.mark.parametrize("goes", [True, False])
def test_devices_are_free_again_when_the_pod_goes_or_is_bound_by_others(
    world: Any, *, goes: bool
) -> None:
    world.live.cycle()
    if goes:
        world.cluster.delete("Pod", "default", "p", grace_s=0)
    else:
        world.cluster.bind("default", "p", "b", {})
    world.live.catch_up()
    assert assumed(world) == []


def test_another_pod_does_not_get_a_device_that_waits_with_its_pod(world: Any) -> None:
    world.live.cycle()
    world.cluster.create(resource_claim("other"))
    world.cluster.create(pod_group("of-q", phase=None))
    claims = [{"name": "gpu", "resourceClaimName": "other"}]
    world.cluster.create(pod("q", group="of-q", cpu=1, spec={"resourceClaims": claims}))
    world.live.cycle()
    assert world.node_of("q") is None


def test_a_refused_bind_gives_the_devices_back(world: Any) -> None:
    world.live.cycle()
    world.binder.sync()
    world.wire.fail["bind"] = RejectedError("Pod", "default", "p", "no")
    world.live.catch_up()
    world.live.catch_up()
    assert (users(world), world.node_of("p")) == ([], None)
