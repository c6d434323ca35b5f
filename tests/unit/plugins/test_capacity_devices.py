"""capacity: limits of device classes that queues state."""

from typing import Any

from pumice.api.conf import parse_conf
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


class TestDevices:
    def world(self, queue_spec: Any, *claims: Any, shared: str = "", n: int = 3) -> Any:
        devices = [device(f"gpu-{i}") for i in range(8)]
        things = [
            queue("default", capability=queue_spec),
            pod_group("g", min_member=1),
            *(
                device_class("gpu"),
                node("n", cpu=16),
                resource_slice("n", node="n", devices=devices),
            ),
            *claims,
        ]
        for i in range(n):
            entry = {"name": "gpu", "resourceClaimName": shared or f"c{i}"}
            things.append(pod(f"p{i}", group="g", cpu=1, spec={"resourceClaims": [entry]}))
        return things

    def decide(self, things: Any, arguments: str = "{}") -> Any:
        conf = f"""
actions: "enqueue, allocate"
tiers:
- plugins: [{{name: gang}}, {{name: predicates}}, {{name: capacity, arguments: {arguments}}}]
"""
        return Scheduler(parse_conf(conf)).cycle(things, 0.0)

    def test_a_queue_holds_no_more_devices_than_it_may(self) -> None:
        claims = [resource_claim(f"c{i}", requests=[device_request(count=2)]) for i in range(3)]
        decisions = self.decide(self.world({"deviceclass/gpu": 5}, *claims))
        assert len(decisions.binds) == 2

    def test_the_refusal_names_class_and_numbers(self) -> None:
        claims = [resource_claim("c0", requests=[device_request(count=2)])]
        decisions = self.decide(self.world({"deviceclass/gpu": 1}, *claims, n=1))
        assert not decisions.binds
        (record,) = decisions.records.values()
        assert record.numbers["resource"] == "deviceclass/gpu"
        (reported,) = decisions.explanations.values()
        want = "needs 2 deviceclass/gpu, limit 1"
        assert f"over the limit of queue default: {want}" in reported

    def test_a_shared_claim_counts_once(self) -> None:
        claim = resource_claim("s", requests=[device_request(count=2)])
        assert len(self.decide(self.world({"deviceclass/gpu": 2}, claim, shared="s")).binds) == 3

    def test_a_queue_shows_the_devices_that_it_holds(self) -> None:
        asked = device_request(count=2, capacity={"requests": {"memory": "10Gi"}})
        claims = [resource_claim(f"c{i}", requests=[asked]) for i in range(2)]
        things = self.world(None, *claims, n=2)
        shown = {"deviceclass/gpu": "4", "memory.deviceclass/gpu": str(4 * 10 * 2**30)}
        held = self.decide(things).queues["default"]
        assert {name: held.get(name) for name in shown} == shown
        queues = self.decide([*things, queue("root"), queue("other")]).queues
        assert {name: queues["root"].get(name) for name in shown} == shown
        assert not shown.keys() & queues["other"].keys()

    def test_a_queue_shows_a_shared_claim_once(self) -> None:
        claim = resource_claim("s", requests=[device_request(count=2)])
        queues = self.decide(self.world(None, claim, shared="s")).queues
        assert queues["default"]["deviceclass/gpu"] == "2"

    def test_devices_of_pods_that_wait_are_not_shown(self) -> None:
        claim = resource_claim("s", requests=[device_request(count=9)])
        queues = self.decide(self.world(None, claim, shared="s")).queues
        assert "deviceclass/gpu" not in queues["default"]

    def test_running_pods_count(self) -> None:
        held = [
            {"request": "gpu", "driver": "gpu.example.com", "pool": "n", "device": f"gpu-{i}"}
            for i in range(2)
        ]
        status = {"allocation": {"devices": {"results": held}}}
        old = resource_claim("old", requests=[device_request(count=2)], status=status)
        entry = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "old"}]}
        running = [pod_group("o", phase="Running"), pod("o", group="o", node="n", spec=entry)]
        new = resource_claim("c0", requests=[device_request(count=2)])
        things = [*self.world({"deviceclass/gpu": 3}, new, old, n=1), *running]
        assert not self.decide(things).binds

    def test_capacities_of_devices_are_limited_too(self) -> None:
        asked = device_request(count=2, capacity={"requests": {"memory": "10Gi"}})
        claims = [resource_claim(f"c{i}", requests=[asked]) for i in range(2)]
        things = self.world({"memory.deviceclass/gpu": "30Gi"}, *claims, n=2)
        assert len(self.decide(things).binds) == 1
        off = "{capacity.DRAConsumableCapacityEnable: false}"
        assert len(self.decide(things, off).binds) == 2

    def test_the_switch_turns_it_off(self) -> None:
        claims = [resource_claim("c0", requests=[device_request(count=2)])]
        things = self.world({"deviceclass/gpu": 1}, *claims, n=1)
        assert self.decide(things, "{capacity.DynamicResourceAllocationEnable: false}").binds

    def test_a_limit_above_binds_what_is_below(self) -> None:
        tree = [
            queue("root"),
            queue("top", capability={"deviceclass/gpu": 1}),
            queue("default", parent="top"),
        ]
        claims = [resource_claim(f"c{i}") for i in range(2)]
        things = [*tree, *self.world({}, *claims, n=2)[1:]]
        conf = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: capacity, enableHierarchy: true}]
"""
        assert len(Scheduler(parse_conf(conf)).cycle(things, 0.0).binds) == 1
