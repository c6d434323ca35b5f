"""Resource claims on a real API server: allocated and reserved before the bind, with few rights."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pumice.testing.builders import (
    device,
    device_class,
    device_request,
    pod,
    pod_group,
    resource_claim,
    resource_slice,
)
from tests.e2e_kube.servers import conf
from tests.e2e_kube.space import fresh, job
from tests.e2e_kube.waiting import until

pytestmark = pytest.mark.usefixtures("controllers", "webhooks")

CLAIMS = {"predicate.DynamicResourceAllocationEnable": True}
CONF = conf({"name": "predicates", "arguments": CLAIMS}, "nodeorder")
LARGE = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0'


@pytest.fixture
def gpus(space: Any) -> Iterator[str]:
    """Yield the node of two large and one small device."""
    name = space.nodes(2, cpu=8)[1]
    sizes = {"gpu-0": "40Gi", "gpu-1": "80Gi", "gpu-2": "80Gi"}
    devices = [device(each, capacity={"memory": size}) for each, size in sizes.items()]
    space.kubectl.create(
        fresh(device_class("gpu", expression='device.driver == "gpu.example.com"')),
        fresh(resource_slice("gpus", node=name, devices=devices)),
    )
    yield name
    space.kubectl("delete", "resourceslices,deviceclasses", "--all")
    for claim in space.kubectl.items("resourceclaims"):
        at = f"resourceclaim/{claim['metadata']['name']}"
        space.kubectl("patch", at, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    space.kubectl("delete", "resourceclaims", "--all", "--wait=false")


def claims(space: Any) -> dict[str, tuple[list[str], int]]:
    """Claims to their devices and how many pods may use them."""
    found = {}
    for each in space.kubectl.items("resourceclaims"):
        status = each.get("status") or {}
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
        devices = [one["device"] for one in results]
        found[each["metadata"]["name"]] = (devices, len(status.get("reservedFor") or ()))
    return found


def claiming(name: str, claim: str, **more: Any) -> Any:
    made = job(name, **more)
    spec = made["spec"]["tasks"][0]["template"]["spec"]
    spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
    spec["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    return made


def test_devices_are_given_shared_and_run_out(space: Any, scheduler: Any, gpus: str) -> None:
    asked = [device_request(expression=LARGE)]
    space.kubectl.create(
        *(fresh(resource_claim(name, requests=asked)) for name in ("shared", "own", "late"))
    )
    with scheduler(CONF):
        space.kubectl.create(claiming("gang", "shared", replicas=3))
        space.wait_running("gang", 3)
        assert set(space.placed("gang").values()) == {gpus}
        assert claims(space)["shared"] == (["gpu-1"], 3)
        space.kubectl.create(claiming("second", "own"))
        space.wait_running("second", 1)
        assert claims(space)["own"] == (["gpu-2"], 1)
        space.kubectl.create(claiming("third", "late"))
        until(
            "the third waits and says why",
            lambda: [
                condition.get("message", "")
                for each in space.pods("third")
                for condition in each["status"].get("conditions") or ()
            ],
            lambda reported: any(
                "cannot allocate all resource claims" in text for text in reported
            ),
        )
        assert claims(space)["late"] == ([], 0)
        assert space.placed("third") == {}


def test_a_pod_without_its_claim_waits_until_it_is_there(
    space: Any, scheduler: Any, gpus: str
) -> None:
    with scheduler(CONF):
        space.kubectl.create(claiming("early", "later"))
        until(
            "it waits for its claim",
            lambda: [
                condition.get("message", "")
                for each in space.pods("early")
                for condition in each["status"].get("conditions") or ()
            ],
            lambda reported: any("later: not found" in text for text in reported),
        )
        space.kubectl.create(fresh(resource_claim("later", requests=[device_request(count=2)])))
        space.wait_running("early", 1)
        assert claims(space)["later"] == (["gpu-0", "gpu-1"], 1)


def test_what_a_refused_bind_was_given_is_taken_back(
    space: Any, scheduler: Any, gpus: str, no_binds: Any
) -> None:
    space.kubectl.create(fresh(resource_claim("mine", requests=[device_request(count=3)])))

    def is_refused() -> Any:
        reported = [event["message"] for event in space.events("FailedScheduling")]
        return any("no binds today" in text for text in reported), claims(space)["mine"]

    with scheduler(CONF):
        space.kubectl.create(claiming("all", "mine"))
        until(
            "a refused bind and a free claim",
            is_refused,
            lambda seen: seen == (True, ([], 0)),
        )
        no_binds()
        space.wait_running("all", 1)
        assert claims(space)["mine"] == (["gpu-0", "gpu-1", "gpu-2"], 1)


def test_devices_kept_for_a_pod_that_cannot_run_there_are_freed(
    space: Any, scheduler: Any, gpus: str
) -> None:
    entry = [{"name": "gpu", "resourceClaimName": "stale"}]
    plain = fresh(pod("late", group="late", cpu=1, spec={"resourceClaims": entry}))
    space.kubectl.create(fresh(resource_claim("stale")), fresh(pod_group("late")), plain)
    (created,) = space.pods()
    meta = created["metadata"]
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": gpus, "device": "gpu-0"}
    here = {"key": "metadata.name", "operator": "In", "values": ["node-that-is-gone"]}
    status = {
        "allocation": {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
        },
        "reservedFor": [{"resource": "pods", "name": meta["name"], "uid": meta["uid"]}],
    }
    patch = json.dumps({"status": status})
    at = ("resourceclaim/stale", "--subresource=status", "--type=merge", "-p", patch)
    space.kubectl("patch", *at)
    with scheduler(CONF):
        until("it runs where the devices are", space.placed, lambda seen: seen == {"late": gpus})
        assert claims(space)["stale"] == (["gpu-0"], 1)
