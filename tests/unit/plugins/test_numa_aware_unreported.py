"""numa-aware between cycles: cpus of pods that the kubelet has not reported count as taken."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.scenarios.runner import default_scheduler
from pumice.scheduler import Scheduler
from pumice.testing import node, pod_group, queue
from tests.unit.plugins.test_numa_aware import asking, topology

CONF = """
actions: "allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: numa-aware
"""
SINGLE = "single-numa-node"


@pytest.fixture
def scheduler() -> Any:
    return default_scheduler(parse_conf(CONF), 0)


def machine(free: str = "0-7", pods: Any = None, name: str = "n") -> Any:
    """Two NUMA nodes with four cpus each; ``pods`` are those that the kubelet has reported."""
    made = topology(name, SINGLE, free=free)
    listed = [{"namespace": "default", "name": each, "uid": ""} for each in pods or ()]
    return made if pods is None else {**made, "spec": {**made["spec"], "podAllocations": listed}}


def decide(scheduler: Scheduler, now: float, *objects: Any, cpu: int = 64) -> Any:
    """Decide on one node, and a group that needs none of its pods in particular."""
    given = [queue("default"), pod_group("g", min_member=0, phase="Inqueue"), *objects]
    return scheduler.cycle([node("n", cpu=cpu, memory="64Gi"), *given], now).binds


def wants(name: str, cpu: int = 4, **more: Any) -> Any:
    made = asking(name, cpu, SINGLE, **more)
    return {**made, "metadata": {**made["metadata"], "uid": f"uid of {name}"}}


def runs(name: str, cpu: int = 4, phase: str = "Running") -> Any:
    return wants(name, cpu, node="n", phase=phase)


def test_cpus_that_were_given_are_not_given_again(scheduler: Any) -> None:
    assert decide(scheduler, 0, machine(), wants("a"), wants("b")) == {
        "default/a": "n",
        "default/b": "n",
    }
    there = [runs("a"), runs("b")]
    assert decide(scheduler, 1, machine(), *there, wants("c")) == {}


def test_what_the_kubelet_reports_takes_their_place(scheduler: Any) -> None:
    assert decide(scheduler, 0, machine(), wants("a", 3)) == {"default/a": "n"}
    reported = machine(free="0,4-7", pods=["a"])
    # the kubelet took 1 to 3; what was counted, 0 to 2, no longer is
    assert decide(scheduler, 1, reported, runs("a", 3), wants("b", 4)) == {"default/b": "n"}
    assert decide(scheduler, 2, reported, runs("a", 3), runs("b"), wants("c", 1)) == {
        "default/c": "n"
    }


def test_all_wait_until_the_last_one_is_reported(scheduler: Any) -> None:
    assert len(decide(scheduler, 0, machine(), wants("a", 2), wants("b", 2))) == 2
    there = [runs("a", 2), runs("b", 2)]
    # a was counted on 0 and 1, and the kubelet took 4 and 5: nowhere are three left for certain
    half = machine(free="0-3,6-7", pods=["a"])
    assert decide(scheduler, 1, half, *there, wants("c", 3)) == {}
    whole = machine(free="1-3,6", pods=["a", "b"])
    assert decide(scheduler, 2, whole, *there, wants("c", 3)) == {"default/c": "n"}


@pytest.mark.parametrize(
    "what_became",
    [[], [runs("a", phase="Succeeded")], [wants("a", phase="Pending")]],
    ids=["gone", "ended", "not bound after all"],
)
def test_a_pod_that_is_not_there_holds_nothing(scheduler: Any, what_became: Any) -> None:
    assert decide(scheduler, 0, machine(free="0-3"), wants("a")) == {"default/a": "n"}
    for each in what_became:
        each["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = "other"
    found = decide(scheduler, 1, machine(free="0-3"), *what_became, wants("b"))
    assert found == {"default/b": "n"}


def test_another_pod_of_the_same_name_holds_nothing(scheduler: Any) -> None:
    assert decide(scheduler, 0, machine(free="0-3"), wants("a")) == {"default/a": "n"}
    successor = runs("a", 0)
    successor["metadata"]["uid"] = "another"
    assert decide(scheduler, 1, machine(free="0-3"), successor, wants("b")) == {"default/b": "n"}


def test_without_a_list_of_pods_other_free_cpus_are_a_report(scheduler: Any) -> None:
    assert decide(scheduler, 0, machine(), wants("a", 3)) == {"default/a": "n"}
    same = decide(scheduler, 1, machine(), runs("a", 3), wants("b", 4), wants("c", 4))
    assert len(same) == 1
    changed = machine(free="3-7")
    assert decide(scheduler, 2, changed, runs("a", 3), wants("d", 1)) == {"default/d": "n"}


def test_an_exporter_that_lists_pods_is_taken_at_its_word(scheduler: Any) -> None:
    listing = machine(free="0-5", pods=["old"])
    assert decide(scheduler, 0, listing, wants("a")) == {"default/a": "n"}
    after_old_ended = machine(free="0-7", pods=[])
    assert decide(scheduler, 1, after_old_ended, runs("a"), wants("b"), wants("c")) == {
        "default/b": "n"
    }


def test_a_pipelined_or_refused_pod_is_not_remembered(scheduler: Any) -> None:
    assert decide(scheduler, 0, machine(free="0-2"), wants("a")) == {}
    assert decide(scheduler, 1, machine(free="0-3"), wants("b")) == {"default/b": "n"}
