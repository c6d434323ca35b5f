"""predicates: devices follow pods that are promised a place, and those that lose it again."""

from typing import Any

import pytest

from pumice.plugins.predicates import Predicates
from pumice.testing import (
    device,
    device_request,
    node,
    pod,
    pod_group,
    queue,
    resource_claim,
    resource_slice,
)
from pumice.testing.samples import open_session
from tests.unit.plugins.test_predicates_devices import GPU, claiming, gpus, pieces


class TestMoves:
    """Devices follow pods that are promised a place, and those that lose it again."""

    def opened(self, *objects: Any) -> Any:
        ssn = open_session([queue("default"), pod_group("g"), GPU, *objects], [Predicates()])
        assert not ssn.failures.errors
        return ssn

    def row(self, ssn: Any, name: str) -> int:
        return int(ssn.snapshot.tasks.row_of[f"default/{name}"])

    def fits(self, ssn: Any, name: str) -> list[bool]:
        verdict = ssn.placing.fit(ssn.task(self.row(ssn, name))).verdict
        assert not ssn.failures.errors
        return (verdict == 0).tolist()

    def two(self, *more: Any) -> Any:
        pods = [claiming(name, f"c{name}") for name in "pq"]
        claims = [resource_claim(f"c{name}") for name in "pq"]
        return self.opened(*pods, *claims, *more)

    def test_a_promised_device_is_gone_until_the_promise_is_taken_back(self) -> None:
        ssn = self.two(node("a", cpu=8), node("b", cpu=8), gpus("a", 1))
        assert self.fits(ssn, "q") == [True, False]
        statement = ssn.statement()
        statement.pipeline(self.row(ssn, "p"), 0)
        assert self.fits(ssn, "q") == [False, False]
        assert ssn.intents.reservations[self.row(ssn, "p")]
        statement.unpipeline(self.row(ssn, "p"))
        assert self.fits(ssn, "q") == [True, False]
        assert not ssn.intents.reservations.get(self.row(ssn, "p"))
        statement.discard()
        assert self.fits(ssn, "q") == [True, False]

    @pytest.mark.parametrize("undone", ["discard", "unpipeline"])
    def test_a_device_of_all_nodes_is_gone_everywhere(self, undone: str) -> None:
        shared = resource_slice("net", devices=[device("d0")], spec={"allNodes": True})
        ssn = self.two(node("a", cpu=8), node("b", cpu=8), shared)
        assert self.fits(ssn, "q") == [True, True]
        statement = ssn.statement()
        statement.pipeline(self.row(ssn, "p"), 0)
        assert self.fits(ssn, "q") == [False, False]
        if undone == "discard":
            statement.discard()
        else:
            statement.unpipeline(self.row(ssn, "p"))
        assert self.fits(ssn, "q") == [True, True]

    def test_counters_follow_promises_and_what_is_taken_back(self) -> None:
        pods = [claiming(f"p{i}", f"c{i}") for i in range(4)]
        claims = [resource_claim(f"c{i}") for i in range(4)]
        ssn = self.opened(*pods, *claims, node("a", cpu=16), pieces(4))
        statement = ssn.statement()
        for i in range(2):
            assert self.fits(ssn, "p2") == [True]
            statement.pipeline(self.row(ssn, f"p{i}"), 0)
        assert self.fits(ssn, "p2") == [False]
        mark = statement.checkpoint()
        statement.unpipeline(self.row(ssn, "p0"))
        assert self.fits(ssn, "p2") == [True]
        statement.pipeline(self.row(ssn, "p3"), 0)
        assert self.fits(ssn, "p2") == [False]
        statement.rollback(mark)
        assert self.fits(ssn, "p2") == [False]
        statement.discard()
        assert self.fits(ssn, "p2") == [True]

    def test_a_shared_claim_keeps_its_devices_until_its_last_pod_leaves(self) -> None:
        pods = [claiming("p0", "c"), claiming("p1", "c"), claiming("q", "d")]
        nodes = [node("a", cpu=8), node("b", cpu=8)]
        ssn = self.opened(*pods, resource_claim("c"), resource_claim("d"), *nodes, gpus("a", 1))
        statement = ssn.statement()
        rows = [self.row(ssn, f"p{i}") for i in range(2)]
        for row in rows:
            statement.pipeline(row, 0)
        assert self.fits(ssn, "q") == [False, False]
        statement.unpipeline(rows[0])
        assert self.fits(ssn, "q") == [False, False]
        assert self.fits(ssn, "p0") == [True, False]
        statement.unpipeline(rows[1])
        assert self.fits(ssn, "q") == [True, False]

    def test_administrators_take_no_device_from_others(self) -> None:
        space = {"apiVersion": "v1", "kind": "Namespace"}
        labels = {"resource.kubernetes.io/admin-access": "true"}
        allowed = {**space, "metadata": {"name": "default", "labels": labels}}
        asked = resource_claim("c", requests=[device_request(adminAccess=True)])
        pods = [claiming("p", "c"), claiming("q", "d")]
        ssn = self.opened(
            allowed, *pods, asked, resource_claim("d"), node("a", cpu=8), gpus("a", 1)
        )
        ssn.statement().place(self.row(ssn, "p"), 0)
        assert self.fits(ssn, "q") == [True]

    def test_what_is_lacking_is_that_of_the_nearest_node(self) -> None:
        claim = resource_claim("c", requests=[device_request(count=3)])
        nodes = [node(name, cpu=8) for name in "abcd"]
        slices = [gpus("b", 1), gpus("c", 2), gpus("d", 2)]
        ssn = self.opened(claiming("p", "c"), claim, *nodes, *slices)
        task = ssn.task(self.row(ssn, "p"))
        (lack,) = ssn.plugins[0].refusal_numbers(task).values()
        assert (lack["node"], lack["nodes"], lack["wanted"], lack["free"]) == ("c", 4, 3, 2)
        assert lack["claim"] == "default/c"

    def test_a_pod_whose_claims_fit_lacks_nothing(self) -> None:
        ssn = self.two(node("a", cpu=8), gpus("a", 1))
        plugin = ssn.plugins[0]
        assert plugin.refusal_numbers(ssn.task(self.row(ssn, "p"))) == {}
        without = self.opened(pod("p", group="g", cpu=1), node("a"))
        assert without.plugins[0].refusal_numbers(without.task(self.row(without, "p"))) == {}

    def test_a_pool_that_is_not_complete_matters_to_all_of_its_devices_alone(self) -> None:
        """Who asks for all waits for the whole pool, on the nodes that reach it."""
        every = resource_claim("c", requests=[device_request(allocationMode="All")])
        half = resource_slice("half", node="a", devices=[device("x")], slices=2)
        half["spec"]["pool"]["name"] = "half"
        nodes = [node(name, cpu=8) for name in "ab"]
        for claim, want in ((every, [False, True]), (resource_claim("c"), [True, True])):
            ssn = self.opened(claiming("p", "c"), claim, *nodes, gpus("a", 1), gpus("b", 1), half)
            assert self.fits(ssn, "p") == want

    def test_pods_of_one_shape_with_other_claims_are_told_apart(self) -> None:
        big = resource_claim("cq", requests=[device_request(count=2)])
        pods = [claiming(name, f"c{name}") for name in "pqr"]
        claims = [resource_claim("cp"), big, resource_claim("cr")]
        ssn = self.opened(*pods, *claims, node("a", cpu=8), gpus("a", 1))
        plugin = ssn.plugins[0]
        marks = [plugin.vary_by(ssn.task(self.row(ssn, name))) for name in "pqr"]
        assert marks[0] == marks[2] != marks[1]
        ssn.statement().pipeline(self.row(ssn, "p"), 0)
        assert plugin.vary_by(ssn.task(self.row(ssn, "p"))) != marks[2]
