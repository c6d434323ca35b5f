"""The world between two cycles."""

from copy import deepcopy
from typing import Any

from pumice.api.decisions import Condition, Decisions, PodGroupState
from pumice.scenarios.objects import advance, bind_counts_of_hyper_nodes, groups_by_pod
from pumice.testing.builders import node, pod, pod_group


def by_name(objects: Any) -> Any:
    return {one["metadata"]["name"]: one for one in objects}


def test_a_bound_pod_runs_on_its_node_and_is_no_longer_nominated() -> None:
    before = [pod("p1", nominated_node="n2")]
    after = advance(before, Decisions(binds={"default/p1": "n1"}))
    assert after[0]["spec"]["nodeName"] == "n1"
    assert after[0]["status"] == {"phase": "Running"}


def test_an_evicted_pod_vanishes() -> None:
    after = advance([pod("p1"), pod("p2")], Decisions(evictions=["default/p1"]))
    assert list(by_name(after)) == ["p2"]


def test_a_nominated_pod_carries_the_node_and_keeps_its_phase() -> None:
    after = advance([pod("p1")], Decisions(nominated={"default/p1": "n1"}))
    assert after[0]["status"] == {"phase": "Pending", "nominatedNodeName": "n1"}


def test_a_nomination_stays_when_nothing_was_decided() -> None:
    before = [pod("p1", nominated_node="n1")]
    assert advance(before, Decisions()) == before


def test_a_pod_group_gets_phase_conditions_numbers_and_hyper_node() -> None:
    condition = Condition("Scheduled", "True", "ready")
    state = PodGroupState("Running", [condition], "s1", running=2, succeeded=1, failed=0)
    after = advance(
        [pod_group("pg", annotations={"a": "b"})], Decisions(pod_groups={"default/pg": state})
    )
    assert after[0]["status"] == {
        "phase": "Running",
        "conditions": [{"type": "Scheduled", "status": "True", "reason": "ready"}],
        "running": 2,
        "succeeded": 1,
        "failed": 0,
    }
    assert after[0]["metadata"]["annotations"] == {
        "a": "b",
        "volcano.sh/job-allocated-hypernode": "s1",
    }


def test_everything_else_stays_and_nothing_is_changed_in_place() -> None:
    before = [node("n1"), pod("p1"), pod_group("pg"), pod("p2", namespace="other")]
    kept = deepcopy(before)
    state = PodGroupState("Inqueue", hyper_node="s1")
    after = advance(before, Decisions(binds={"default/p1": "n1"}, pod_groups={"default/pg": state}))
    assert before == kept
    assert after[0] is before[0]
    assert after[3] is before[3]


def test_the_group_of_a_pod_is_in_its_own_namespace() -> None:
    pods = [pod("p1", namespace="ns1", group="pg"), pod("p2")]
    assert groups_by_pod(pods) == {"ns1/p1": "ns1/pg"}


def test_binds_are_counted_for_each_lowest_hyper_node() -> None:
    def domain(name: Any, tier: Any, **selector: Any) -> Any:
        member = {"type": "Node", "selector": selector}
        spec = {"tier": tier, "members": [member]}
        return {"kind": "HyperNode", "metadata": {"name": name}, "spec": spec}

    objects = [
        *(node(name) for name in ("a1", "a2", "b1", "d1")),
        node("c1", labels={"rack": "c"}),
        domain("a", 1, regexMatch={"pattern": "^a"}),
        domain("b", 1, exactMatch={"name": "b1"}),
        domain("c", 1, labelMatch={"matchLabels": {"rack": "c"}}),
        domain("all", 2, regexMatch={"pattern": "."}),
    ]
    binds = {"x/1": "a1", "x/2": "a2", "x/3": "a1", "x/4": "c1", "x/5": "d1"}
    assert bind_counts_of_hyper_nodes(objects, binds) == [1, 1, 3]
