"""predicates: devices for resource claims."""

import time
from collections.abc import Sequence
from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.api.decisions import Decisions
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
- plugins:
  - name: gang
  - name: predicates
    arguments: {%s}
"""
GPU = device_class("gpu", expression='device.driver == "gpu.example.com"')
ON = "predicate.DynamicResourceAllocationEnable: true"
OFF = "predicate.DynamicResourceAllocationEnable: false"


def decide(objects: Sequence[Any], arguments: str = ON) -> Decisions:
    decisions = Scheduler(parse_conf(CONF % arguments)).cycle([queue("default"), *objects], 0.0)
    assert not decisions.failures
    return decisions


def claiming(name: str, *claims: str, group: str = "g", uid: str = "", **more: Any) -> Any:
    entries = [{"name": each, "resourceClaimName": each} for each in claims]
    return pod(name, group=group, cpu=1, spec={"resourceClaims": entries}, **more)


def gpus(on: str, n: int, **more: Any) -> Any:
    return resource_slice(on, node=on, devices=[device(f"gpu-{i}") for i in range(n)], **more)


def way(name: str, size: str) -> Any:
    """Return an alternative that takes devices of a size."""
    selector = {"cel": {"expression": f'device.attributes["x"].size == "{size}"'}}
    return {"name": name, "deviceClassName": "gpu", "selectors": [selector]}


def got(decisions: Decisions) -> dict[str, list[str]]:
    """Claims to the devices that they are given, as ``request=pool/device``."""
    return {
        each.claim: [
            f"{result.request}={result.pool}/{result.device}"
            for result in each.allocation.devices.results
        ]
        for claims in decisions.reservations.values()
        for each in claims
        if each.allocation is not None
    }


def why(decisions: Decisions) -> str:
    (sentence,) = decisions.explanations.values()
    return sentence


def result_of(pool: str, name: str, **more: Any) -> Any:
    return {"request": "gpu", "driver": "gpu.example.com", "pool": pool, "device": name, **more}


def allocated(*results: Any, node: str | None = None, reserved: Sequence[str] = ()) -> Any:
    allocation: dict[str, Any] = {"devices": {"results": list(results)}}
    if node is not None:
        here = {"key": "metadata.name", "operator": "In", "values": [node]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [here]}]}
    users = [{"resource": "pods", "name": each, "uid": f"default-{each}"} for each in reserved]
    return {"allocation": allocation, "reservedFor": users}


def pieces(n: int) -> Any:
    """A card of 40 GiB on node a, cut into pieces of 20 GiB of which any two can be used."""
    takes = [{"counterSet": "card", "counters": {"memory": {"value": "20Gi"}}}]
    devices = [device(f"piece-{i}", consumesCounters=takes) for i in range(n)]
    counters = [{"name": "card", "counters": {"memory": {"value": "40Gi"}}}]
    return resource_slice("a", node="a", devices=devices, spec={"sharedCounters": counters})


ONE = [pod_group("g"), claiming("p", "c"), resource_claim("c"), GPU]


class TestOneClaim:
    def test_the_pod_goes_where_a_device_is_and_gets_it(self) -> None:
        decisions = decide([*ONE, node("a"), node("b"), gpus("b", 2)])
        assert decisions.binds == {"default/p": "b"}
        assert got(decisions) == {"default/c": ["gpu=b/gpu-0"]}

    def test_the_allocation_names_its_node_and_the_claim_its_uid(self) -> None:
        (reservation,) = decide([*ONE, node("a"), gpus("a", 1)]).reservations["default/p"]
        assert reservation.uid == "default-c"
        assert reservation.allocation is not None
        (term,) = reservation.allocation.node_selector.node_selector_terms  # type: ignore[union-attr]
        (field,) = term.match_fields
        assert (field.key, field.operator, field.values) == ("metadata.name", "In", ("a",))

    def test_switched_off_the_pod_waits_and_says_so(self) -> None:
        decisions = decide([*ONE, node("a"), gpus("a", 1)], OFF)
        assert not decisions.binds
        assert "predicate.DynamicResourceAllocationEnable" in why(decisions)

    def test_pods_without_claims_do_not_care(self) -> None:
        decisions = decide([pod_group("g"), pod("p", group="g", cpu=1), node("a")], OFF)
        assert decisions.binds == {"default/p": "a"}

    def test_a_device_that_another_claim_holds_is_not_given_again(self) -> None:
        other = resource_claim("other", status=allocated(result_of("a", "gpu-0"), node="a"))
        decisions = decide([*ONE, other, node("a"), gpus("a", 2)])
        assert got(decisions) == {"default/c": ["gpu=a/gpu-1"]}

    def test_an_administrator_holds_no_device(self) -> None:
        watching = result_of("a", "gpu-0", adminAccess=True)
        other = resource_claim("other", status=allocated(watching, node="a"))
        assert got(decide([*ONE, other, node("a"), gpus("a", 1)])) == {"default/c": ["gpu=a/gpu-0"]}

    def test_a_claim_that_has_devices_keeps_the_pod_on_their_node(self) -> None:
        status = allocated(result_of("b", "gpu-1"), node="b", reserved=["elsewhere"])
        things = [*ONE[:2], resource_claim("c", status=status), GPU]
        decisions = decide([*things, node("a"), node("b"), gpus("a", 2), gpus("b", 2)])
        assert decisions.binds == {"default/p": "b"}
        (reservation,) = decisions.reservations["default/p"]
        assert reservation.allocation is None

    def test_devices_kept_for_a_pod_that_finds_no_room_are_released(self) -> None:
        status = allocated(result_of("b", "gpu-1"), node="b", reserved=["p"])
        things = [*ONE[:2], resource_claim("c", status=status), GPU]
        decisions = decide([*things, node("a"), node("b", cpu=0), gpus("a", 2), gpus("b", 2)])
        assert not decisions.binds
        assert decisions.released_claims == ["default/c"]

    def test_devices_of_a_pod_that_finds_its_room_are_not_released(self) -> None:
        status = allocated(result_of("b", "gpu-1"), node="b", reserved=["p"])
        things = [*ONE[:2], resource_claim("c", status=status), GPU]
        decisions = decide([*things, node("a"), node("b"), gpus("a", 2), gpus("b", 2)])
        assert decisions.binds == {"default/p": "b"}
        assert not decisions.released_claims

    def test_devices_that_somebody_else_uses_are_not_released(self) -> None:
        status = allocated(result_of("b", "gpu-1"), node="b", reserved=["p", "q"])
        things = [*ONE[:2], resource_claim("c", status=status), GPU]
        decisions = decide([*things, node("a"), node("b", cpu=0), gpus("a", 2), gpus("b", 2)])
        assert not decisions.released_claims


class TestSeveralPods:
    def test_two_pods_of_a_cycle_never_get_the_same_device(self) -> None:
        things = [pod_group("g", min_member=3), GPU, node("a", cpu=16), gpus("a", 3)]
        for i in range(3):
            things += [claiming(f"p{i}", f"c{i}"), resource_claim(f"c{i}")]
        given = [each for results in got(decide(things)).values() for each in results]
        assert sorted(given) == [f"gpu=a/gpu-{i}" for i in range(3)]

    def test_a_gang_that_lacks_one_device_gets_none(self) -> None:
        things = [pod_group("g", min_member=3), GPU, node("a", cpu=16), gpus("a", 2)]
        for i in range(3):
            things += [claiming(f"p{i}", f"c{i}"), resource_claim(f"c{i}")]
        decisions = decide(things)
        assert not decisions.binds
        assert not decisions.reservations

    def test_what_a_gang_gave_back_the_next_job_gets(self) -> None:
        things = [pod_group("g", min_member=3), GPU, node("a", cpu=16), gpus("a", 2)]
        for i in range(3):
            things += [claiming(f"p{i}", f"c{i}"), resource_claim(f"c{i}")]
        later = [pod_group("later"), claiming("q", "d", group="later"), resource_claim("d")]
        decisions = decide([*things, *later])
        assert decisions.binds == {"default/q": "a"}
        assert got(decisions) == {"default/d": ["gpu=a/gpu-0"]}

    def test_a_gang_shares_one_claim_and_its_node(self) -> None:
        pods = [claiming(f"p{i}", "c") for i in range(3)]
        nodes = [node(name, cpu=16) for name in "ab"]
        things = [pod_group("g", min_member=3), *pods, resource_claim("c"), GPU, *nodes]
        decisions = decide([*things, gpus("a", 1), gpus("b", 1)])
        assert len(decisions.binds) == 3
        assert len(set(decisions.binds.values())) == 1
        assert {len(each) for each in decisions.reservations.values()} == {1}
        (devices,) = {tuple(each) for each in got(decisions).values()}
        assert devices == (f"gpu={decisions.binds['default/p0']}/gpu-0",)

    def test_one_pod_with_two_claims_needs_both_on_one_node(self) -> None:
        things = [pod_group("g"), claiming("p", "c", "d"), resource_claim("c"), resource_claim("d")]
        decisions = decide([*things, GPU, node("a"), node("b"), gpus("a", 1), gpus("b", 2)])
        assert decisions.binds == {"default/p": "b"}
        assert got(decisions) == {"default/c": ["gpu=b/gpu-0"], "default/d": ["gpu=b/gpu-1"]}


class TestTemplates:
    def pod(self, *, made: str | None = None) -> Any:
        entry = {"name": "gpu", "resourceClaimTemplateName": "t"}
        found = pod("p", group="g", cpu=1, spec={"resourceClaims": [entry]})
        if made is not None:
            named = {"name": "gpu", "resourceClaimName": made}
            found["status"]["resourceClaimStatuses"] = [named]
        return found

    def test_the_claim_is_found_by_the_status_of_the_pod(self) -> None:
        claim = resource_claim("p-gpu-x", owner="p")
        things = [pod_group("g"), self.pod(made="p-gpu-x"), claim, GPU, node("a"), gpus("a", 1)]
        assert got(decide(things)) == {"default/p-gpu-x": ["gpu=a/gpu-0"]}

    def test_or_by_its_owner(self) -> None:
        mark = {"resource.kubernetes.io/pod-claim-name": "gpu"}
        claim = resource_claim("p-gpu-x", owner="p", annotations=mark)
        things = [pod_group("g"), self.pod(), claim, GPU, node("a"), gpus("a", 1)]
        assert got(decide(things)) == {"default/p-gpu-x": ["gpu=a/gpu-0"]}

    def test_until_it_is_made_the_pod_waits(self) -> None:
        decisions = decide([pod_group("g"), self.pod(), GPU, node("a"), gpus("a", 1)])
        assert not decisions.binds
        assert "default/gpu: not created yet from template t" in why(decisions)

    def test_a_claim_of_another_pod_is_not_taken(self) -> None:
        claim = resource_claim("p-gpu-x", owner="q")
        things = [pod_group("g"), self.pod(made="p-gpu-x"), claim, GPU, node("a"), gpus("a", 1)]
        assert "was made for another pod, q" in why(decide(things))


class TestRequests:
    def asked(
        self, *requests: Any, constraints: Any = (), devices: Any, arguments: str = ON
    ) -> Any:
        claim = resource_claim("c", requests=requests, constraints=constraints)
        things = [pod_group("g"), claiming("p", "c"), claim, GPU, node("a")]
        return decide([*things, resource_slice("a", node="a", devices=devices)], arguments)

    def test_a_count_takes_as_many(self) -> None:
        found = self.asked(device_request(count=2), devices=[device(f"d{i}") for i in range(3)])
        assert got(found) == {"default/c": ["gpu=a/d0", "gpu=a/d1"]}

    def test_too_few_devices_are_reported_by_claim_request_and_number(self) -> None:
        found = self.asked(device_request(count=2), devices=[device("d0")])
        assert not found.binds
        assert (
            "resource claim default/c, request gpu: asks for 2 of gpu; a has 1 that match, 1 free"
            in why(found)
        )
        (record,) = found.records.values()
        assert record.numbers["claim"]["wanted"] == 2
        assert record.numbers["claim"]["matching"] == 1

    def test_all_takes_every_device_that_matches(self) -> None:
        asked = device_request(allocationMode="All", expression='"big" in device.attributes["x"]')
        big = device("d1", attributes={"x/big": True}), device("d2", attributes={"x/big": True})
        found = self.asked(asked, devices=[device("d0"), *big])
        assert got(found) == {"default/c": ["gpu=a/d1", "gpu=a/d2"]}

    def test_all_of_none_is_not_met(self) -> None:
        asked = device_request(allocationMode="All", expression="false")
        assert not self.asked(asked, devices=[device("d0")]).binds

    def test_all_is_not_met_while_one_is_in_use(self) -> None:
        other = resource_claim("other", status=allocated(result_of("a", "gpu-0"), node="a"))
        claim = resource_claim("c", requests=[device_request(allocationMode="All")])
        things = [pod_group("g"), claiming("p", "c"), claim, other, GPU, node("a"), gpus("a", 2)]
        decisions = decide(things)
        assert "asks for all of gpu; a has 2 that match, 1 free" in why(decisions)

    def test_selectors_compare_attributes_and_capacity(self) -> None:
        text = (
            'device.attributes["gpu.example.com"].model == "A100" && '
            'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'
        )
        devices = [
            device("small", attributes={"model": "A100"}, capacity={"memory": "20Gi"}),
            device("old", attributes={"model": "V100"}, capacity={"memory": "80Gi"}),
            device("right", attributes={"model": "A100"}, capacity={"memory": "40960Mi"}),
        ]
        found = self.asked(device_request(expression=text), devices=devices)
        assert got(found) == {"default/c": ["gpu=a/right"]}

    def test_a_selector_that_fails_for_a_device_refuses_the_node_and_names_the_device(self) -> None:
        asked = device_request(expression='device.attributes["x"].big')
        found = self.asked(asked, devices=[device("d0")])
        assert not found.binds
        assert 'Key not found in map: "big" (device gpu.example.com/a/d0)' in why(found)

    def test_a_wrong_selector_is_reported_with_its_request(self) -> None:
        found = self.asked(device_request(expression="device.driver =="), devices=[device("d0")])
        assert "resourceclaim default/c: request gpu: selector 'device.driver =='" in why(found)

    def test_a_missing_class_is_reported(self) -> None:
        found = self.asked(device_request(device_class="tpu"), devices=[device("d0")])
        assert "request gpu: device class tpu does not exist" in why(found)

    def test_devices_of_a_constraint_share_an_attribute(self) -> None:
        places = {"d0": "n0", "d1": "n1", "d2": "n1"}
        devices = [device(name, attributes={"numa": at}) for name, at in places.items()]
        asked = device_request("gpu"), device_request("nic")
        shared = {"matchAttribute": "gpu.example.com/numa", "requests": ["gpu", "nic"]}
        found = self.asked(*asked, constraints=[shared], devices=devices)
        assert got(found) == {"default/c": ["gpu=a/d1", "nic=a/d2"]}

    def test_a_constraint_that_cannot_be_met_is_reported(self) -> None:
        devices = [device(f"d{i}", attributes={"numa": i}) for i in range(2)]
        shared = {"matchAttribute": "gpu.example.com/numa"}
        found = self.asked(device_request(count=2), constraints=[shared], devices=devices)
        assert "devices need the same gpu.example.com/numa" in why(found)

    def test_an_attribute_of_another_type_is_another_value(self) -> None:
        devices = [device("d0", attributes={"numa": 1}), device("d1", attributes={"numa": True})]
        shared = {"matchAttribute": "gpu.example.com/numa"}
        assert not self.asked(device_request(count=2), constraints=[shared], devices=devices).binds

    def test_distinct_devices_share_no_value(self) -> None:
        cards = {"d0": "c0", "d1": "c0", "d2": "c1"}
        devices = [device(name, attributes={"card": at}) for name, at in cards.items()]
        apart = {"distinctAttribute": "gpu.example.com/card"}
        found = self.asked(device_request(count=2), constraints=[apart], devices=devices)
        assert got(found) == {"default/c": ["gpu=a/d0", "gpu=a/d2"]}

    @pytest.mark.parametrize(("there", "want"), [("big", "gpu/best"), ("small", "gpu/good")])
    def test_the_first_alternative_that_can_be_met_is_taken(self, there: str, want: str) -> None:
        ways = [way("best", "big"), way("good", "small")]
        devices = [device("d0", attributes={"x/size": there})]
        found = self.asked({"name": "gpu", "firstAvailable": ways}, devices=devices)
        assert got(found) == {"default/c": [f"{want}=a/d0"]}

    @pytest.mark.parametrize("big", ["a", "b", "c"])
    def test_the_node_with_the_better_alternative_is_preferred(self, big: str) -> None:
        ways = [way(size, size) for size in ("big", "middle", "small")]
        sizes = {"a": "small", "b": "middle", "c": "small", big: "big"}
        things = [pod_group("g"), claiming("p", "c"), GPU]
        things.append(resource_claim("c", requests=[{"name": "gpu", "firstAvailable": ways}]))
        for name, size in sizes.items():
            devices = [device("d0", attributes={"x/size": size})]
            things += [node(name), resource_slice(name, node=name, devices=devices)]
        found = decide(things)
        assert found.binds == {"default/p": big}
        assert got(found) == {"default/c": [f"gpu/big={big}/d0"]}

    def test_a_tainted_device_needs_a_toleration(self) -> None:
        taint = {"key": "broken", "effect": "NoSchedule"}
        devices = [device("d0", taints=[taint])]
        assert not self.asked(device_request(), devices=devices).binds
        tolerant = device_request(tolerations=[{"key": "broken", "operator": "Exists"}])
        assert self.asked(tolerant, devices=devices).binds

    def test_pieces_of_a_card_share_its_memory(self) -> None:
        for n, fits in ((2, True), (3, False)):
            claim = resource_claim("c", requests=[device_request(count=n)])
            things = [pod_group("g"), claiming("p", "c"), claim, GPU, node("a"), pieces(3)]
            assert bool(decide(things).binds) is fits

    def test_memory_of_a_card_that_other_claims_hold_is_gone(self) -> None:
        results = [result_of("a", f"piece-{i}") for i in range(2)]
        for held, fits in ((1, True), (2, False)):
            other = resource_claim("other", status=allocated(*results[:held], node="a"))
            assert bool(decide([*ONE, other, node("a"), pieces(3)]).binds) is fits

    def test_memory_of_a_card_that_pods_of_a_cycle_take_is_gone(self) -> None:
        things = [GPU, node("a", cpu=16), pieces(4)]
        for i in range(4):
            things += [pod_group(f"g{i}"), claiming(f"p{i}", f"c{i}", group=f"g{i}")]
            things += [resource_claim(f"c{i}")]
        assert len(decide(things).binds) == 2

    def test_memory_of_a_card_that_a_gang_gave_back_is_free(self) -> None:
        things = [pod_group("g", min_member=3), *ONE[3:], node("a", cpu=16), pieces(4)]
        for i in range(3):
            things += [claiming(f"p{i}", f"c{i}"), resource_claim(f"c{i}")]
        for i in range(2):
            things += [pod_group(f"later{i}", created="2027-01-01T00:00:00Z")]
            things += [claiming(f"q{i}", f"d{i}", group=f"later{i}"), resource_claim(f"d{i}")]
        assert sorted(decide(things).binds) == ["default/q0", "default/q1"]

    def test_the_layout_of_v1beta1_is_read_too(self) -> None:
        asked = {"name": "gpu", "deviceClassName": "gpu", "count": 1}
        claim = {**resource_claim("c", requests=[asked]), "apiVersion": "resource.k8s.io/v1beta1"}
        bare = {"name": "d0", "basic": {"attributes": {"model": {"string": "A100"}}}}
        piece = resource_slice("a", node="a", devices=[bare])
        old = {**piece, "apiVersion": "resource.k8s.io/v1beta1"}
        text = 'device.attributes["gpu.example.com"].model == "A100"'
        things = [pod_group("g"), claiming("p", "c"), claim, device_class("gpu", expression=text)]
        assert got(decide([*things, node("a"), old])) == {"default/c": ["gpu=a/d0"]}


class TestPools:
    def test_only_the_newest_generation_counts(self) -> None:
        old = resource_slice("old", node="a", devices=[device("gone")])
        new = resource_slice("new", node="a", devices=[device("here")], generation=2)
        assert got(decide([*ONE, node("a"), old, new])) == {"default/c": ["gpu=a/here"]}

    def test_a_pool_that_is_not_complete_has_no_devices(self) -> None:
        decisions = decide([*ONE, node("a"), gpus("a", 1, slices=2)])
        assert not decisions.binds

    def test_a_newer_generation_hides_the_old_one_even_before_it_is_complete(self) -> None:
        old = resource_slice("old", node="a", devices=[device("gone")])
        new = resource_slice("new", node="a", devices=[device("d")], generation=2, slices=2)
        assert not decide([*ONE, node("a"), old, new]).binds

    def test_devices_of_the_network_are_reached_by_selected_nodes(self) -> None:
        here = {"key": "rack", "operator": "In", "values": ["r1"]}
        reach = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
        nodes = [node("a"), node("b", labels={"rack": "r1"}), node("c", labels={"rack": "r2"})]
        shared = resource_slice("net", devices=[device("d0")], spec=reach)
        decisions = decide([*ONE, *nodes, shared])
        assert decisions.binds == {"default/p": "b"}
        (reservation,) = decisions.reservations["default/p"]
        assert reservation.allocation is not None
        (term,) = reservation.allocation.node_selector.node_selector_terms  # type: ignore[union-attr]
        assert [each.key for each in term.match_expressions] == ["rack"]

    def test_a_device_of_all_nodes_goes_to_one_pod(self) -> None:
        shared = resource_slice("net", devices=[device("d0")], spec={"allNodes": True})
        more = [pod_group("h"), claiming("q", "d", group="h"), resource_claim("d")]
        decisions = decide([*ONE, *more, node("a"), node("b"), shared])
        assert len(decisions.binds) == 1
        (reservation,) = next(iter(decisions.reservations.values()))
        assert reservation.allocation is not None
        assert reservation.allocation.node_selector is None

    def test_devices_may_say_themselves_who_reaches_them(self) -> None:
        each = [device("d0", nodeName="a"), device("d1", nodeName="b")]
        shared = resource_slice("net", devices=each, spec={"perDeviceNodeSelection": True})
        other = resource_claim("other", status=allocated(result_of("net", "d0"), node="a"))
        decisions = decide([*ONE, other, node("a"), node("b"), shared])
        assert decisions.binds == {"default/p": "b"}
        assert got(decisions) == {"default/c": ["gpu=net/d1"]}


class TestAdministrators:
    ASKED = device_request(adminAccess=True)

    def things(self, labels: Any) -> Any:
        space = {"apiVersion": "v1", "kind": "Namespace"}
        other = resource_claim("other", status=allocated(result_of("a", "gpu-0"), node="a"))
        return [
            {**space, "metadata": {"name": "default", "labels": labels}},
            *(pod_group("g"), claiming("p", "c"), resource_claim("c", requests=[self.ASKED])),
            *(other, GPU, node("a"), gpus("a", 1)),
        ]

    def test_they_get_devices_in_use_in_a_namespace_that_allows_it(self) -> None:
        decisions = decide(self.things({"resource.kubernetes.io/admin-access": "true"}))
        assert got(decisions) == {"default/c": ["gpu=a/gpu-0"]}
        (reservation,) = decisions.reservations["default/p"]
        assert reservation.allocation is not None
        assert reservation.allocation.devices.results[0].admin_access

    def test_and_nothing_elsewhere(self) -> None:
        assert "its namespace has no adminAccess" in why(decide(self.things({})))


def test_settings_of_class_and_claim_go_to_the_driver() -> None:
    opaque = {"driver": "gpu.example.com", "parameters": {"mode": "fast"}}
    fast = device_class("gpu", config=[{"opaque": opaque}])
    claim = resource_claim("c")
    claim["spec"]["devices"]["config"] = [
        {"requests": ["gpu"], "opaque": opaque},
        {"requests": ["other"], "opaque": opaque},
    ]
    things = [pod_group("g"), claiming("p", "c"), claim, fast, node("a"), gpus("a", 1)]
    (reservation,) = decide(things).reservations["default/p"]
    assert reservation.allocation is not None
    config = reservation.allocation.devices.config
    assert [(each.source, each.requests) for each in config] == [
        ("FromClass", ("gpu",)),
        ("FromClaim", ("gpu",)),
    ]
    assert config[0].opaque is not None
    assert config[0].opaque.parameters == {"mode": "fast"}


def test_a_claim_that_256_pods_use_takes_no_more() -> None:
    users = [f"u{i}" for i in range(256)]
    status = allocated(result_of("a", "gpu-0"), node="a", reserved=users)
    things = [pod_group("g"), claiming("p", "c"), resource_claim("c", status=status), GPU]
    assert "is in use by 256 pods already" in why(decide([*things, node("a"), gpus("a", 1)]))


def test_a_search_that_cannot_succeed_is_given_up_soon() -> None:
    attributes = [{f"a{j}": (i**3 * (j + 2) + 5 * i * j) % 13 for j in range(6)} for i in range(32)]
    devices = [device(f"d{i}", attributes=each) for i, each in enumerate(attributes)]
    constraints = [{"distinctAttribute": f"gpu.example.com/a{j}"} for j in range(6)]
    asked = [device_request(f"r{i}", count=2) for i in range(4)]
    claim = resource_claim("c", requests=asked, constraints=constraints)
    nodes = [node(f"n{i}") for i in range(200)]
    slices = [resource_slice(f"n{i}", node=f"n{i}", devices=devices) for i in range(200)]
    started = time.process_time()
    decisions = decide([pod_group("g"), claiming("p", "c"), claim, GPU, *nodes, *slices])
    assert not decisions.binds
    assert "gave up after" in why(decisions)
    assert time.process_time() - started < 20
