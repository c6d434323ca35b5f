"""Many cycles in which no device is shared."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.conf import parse_conf
from pumice.plugins.predicates.devices.demands import Way
from pumice.scenarios.objects import advance
from pumice.scheduler import Scheduler
from pumice.testing import (
    device,
    device_class,
    device_request,
    node,
    pod,
    pod_group,
    queue,
    resource_claim,
    resource_slice,
)

CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: nodeorder}]
"""


def way(name: str, number: int) -> Way:
    return Way(name, "c", (), (), number, wants_all=False, admin=False)


def sets(demands: list[Any], devices: list[Any], may: Any, taken: Any = ()) -> Iterator[Any]:
    """Return every way to meet requests with devices, each used once."""
    if not demands:
        yield ()
        return
    (demand, asked), *rest = demands
    free = [i for i in range(len(devices)) if i not in taken and i in may[asked.name]]
    for chosen in combinations(free, asked.number):
        for others in sets(rest, devices, may, {*taken, *chosen}):
            yield ((demand, asked, chosen), *others)


def held(objects: list[Any]) -> list[tuple[str, str]]:
    return [
        (one["pool"], one["device"])
        for each in objects
        if each["kind"] == "ResourceClaim"
        for one in ((each.get("status") or {}).get("allocation") or {"devices": {"results": []}})[
            "devices"
        ]["results"]
    ]


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_no_device_is_ever_held_twice_and_every_bound_pod_has_its_claims(data: Any) -> None:
    numbers = st.integers(0, 3)
    objects: list[Any] = [queue("default"), device_class("gpu")]
    for name in ("a", "b"):
        devices = [device(f"g{i}") for i in range(data.draw(numbers))]
        objects += [node(name, cpu=data.draw(st.integers(1, 6)))]
        objects += [resource_slice(name, node=name, devices=devices)]
    shared = [device(f"s{i}") for i in range(data.draw(numbers))]
    objects.append(resource_slice("net", devices=shared, spec={"allNodes": True}))
    claims = [f"c{i}" for i in range(5)]
    objects += [
        resource_claim(name, requests=[device_request(count=data.draw(st.integers(1, 2)))])
        for name in claims
    ]
    for group in range(data.draw(st.integers(1, 3))):
        size = data.draw(st.integers(1, 3))
        objects.append(pod_group(f"g{group}", min_member=data.draw(st.integers(1, size))))
        for i in range(size):
            mine = data.draw(st.sets(st.sampled_from(claims), max_size=2))
            entries = [{"name": name, "resourceClaimName": name} for name in sorted(mine)]
            spec = {"resourceClaims": entries}
            objects.append(pod(f"g{group}-{i}", group=f"g{group}", cpu=1, spec=spec))
    scheduler = Scheduler(parse_conf(CONF))
    for cycle in range(3):
        decisions = scheduler.cycle(objects, float(cycle))
        assert not decisions.failures
        objects = advance(objects, decisions)
        taken = held(objects)
        assert len(set(taken)) == len(taken)
        for each in (
            one for one in objects if one["kind"] == "Pod" and one["spec"].get("nodeName")
        ):
            for entry in each["spec"]["resourceClaims"]:
                (claim,) = (
                    one
                    for one in objects
                    if one["kind"] == "ResourceClaim"
                    and one["metadata"]["name"] == entry["resourceClaimName"]
                )
                status = claim["status"]
                assert each["metadata"]["name"] in {u["name"] for u in status["reservedFor"]}
                pools = {one["pool"] for one in status["allocation"]["devices"]["results"]}
                assert pools <= {"net", each["spec"]["nodeName"]}
