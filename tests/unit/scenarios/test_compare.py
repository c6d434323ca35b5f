"""Comparison: only what is stated counts, and each difference is one plain sentence."""

from typing import Any

import pytest

from pumice.api.decisions import Condition, Decisions, PodGroupState
from pumice.scenarios.compare import CompareOptions, compare, counts
from pumice.testing.builders import pod

READY = Condition("Scheduled", "True", "ready")
STUCK = Condition("Unschedulable", "True", "NotEnoughResources", "1/1 tasks")


def group(*conditions: Any, phase: str = "Running", hyper_node: Any = None) -> Any:
    return Decisions(pod_groups={"ns/j": PodGroupState(phase, list(conditions), hyper_node)})


def expect_group(**facts: Any) -> Any:
    return {"podGroups": {"ns/j": facts}}


SCHEDULED = {"type": "Scheduled", "status": "True", "reason": "ready"}

DIFFERENCES = {
    "a job that does not exist cannot wait": (
        {"waits": ["ns/j*", "ns/jbo"]},
        Decisions(),
        "ns/jbo: there is no such job (did you mean 'ns/job'?), expected it to wait",
    ),
    "no pods of a job that does not exist": (
        {"boundPerPodGroup": {"ns/jbo": 2}},
        Decisions(),
        "ns/jbo: there is no such job (did you mean 'ns/job'?), expected 2 pods bound",
    ),
    "a Volcano job by its name": (
        {"starts": ["ns/job"], "boundPerPodGroup": {"ns/job": 0}, "phases": {"ns/job": "Pending"}},
        Decisions(pod_groups={"ns/job-1": PodGroupState("Pending", [])}),
        "ns/job-1: does not start, expected it to start",
    ),
    "another node": (
        {"binds": {"ns/a": "n0"}},
        Decisions(binds={"ns/a": "n2"}),
        "ns/a: bound to n2, expected n0",
    ),
    "not bound": ({"binds": {"ns/a": "n0"}}, Decisions(), "ns/a: not bound, expected bound to n0"),
    "a plugin that failed": (
        {"binds": {"ns/a": "n0"}},
        Decisions(binds={"ns/a": "n0"}, failures=["plugin x failed in job_ready: KeyError: 1"]),
        "plugin x failed in job_ready: KeyError: 1",
    ),
    "only pipelined": (
        {"binds": {"ns/a": "n0"}},
        Decisions(pipelined={"ns/a": "n1"}),
        "ns/a: pipelined on n1, expected bound to n0",
    ),
    "bound too much": (
        {"binds": {}},
        Decisions(binds={"ns/a": "n2"}),
        "ns/a: bound to n2, expected not bound",
    ),
    "bind order": (
        {"binds": {"ns/a": "n", "ns/b": "n"}, "bindOrder": ["ns/a", "ns/b"]},
        Decisions(binds={"ns/b": "n", "ns/a": "n"}),
        "bind order: number 1 is ns/b, expected ns/a",
    ),
    "bind order alone also tells missing pods": (
        {"bindOrder": ["ns/a", "ns/b"]},
        Decisions(binds={"ns/a": "n"}),
        "1 bind, expected 2",
    ),
    "a pod that is not bound is reported once, not again as an order": (
        {"binds": {"ns/a": "n", "ns/b": "n"}, "bindOrder": ["ns/a", "ns/b"]},
        Decisions(binds={"ns/b": "n"}),
        "ns/a: not bound, expected bound to n",
    ),
    "missing eviction": (
        {"evictions": ["ns/a"]},
        Decisions(),
        "expected eviction of ns/a, none happened",
    ),
    "eviction too many": (
        {"evictions": ["ns/a"]},
        Decisions(evictions=["ns/a", "ns/b"]),
        "ns/b: evicted, expected to stay",
    ),
    "the same pod evicted twice": (
        {"evictions": ["ns/a"], "evictionsUnordered": True},
        Decisions(evictions=["ns/a", "ns/a"]),
        "ns/a: evicted more often than expected",
    ),
    "eviction order": (
        {"evictions": ["ns/a", "ns/b"]},
        Decisions(evictions=["ns/b", "ns/a"]),
        "eviction order: number 1 is ns/b, expected ns/a",
    ),
    "pipelined elsewhere": (
        {"pipelined": {"ns/a": "n0"}},
        Decisions(pipelined={"ns/a": "n1"}),
        "ns/a: pipelined on n1, expected pipelined on n0",
    ),
    "pipelined too much": (
        {"pipelined": {}},
        Decisions(pipelined={"ns/a": "n1"}),
        "ns/a: pipelined on n1, expected not pipelined",
    ),
    "phase": (
        expect_group(phase="Running"),
        group(phase="Inqueue"),
        "ns/j: phase Inqueue, expected Running",
    ),
    "group unknown to the session": (
        expect_group(phase="Running"),
        Decisions(),
        "ns/j: not in the session, expected phase Running",
    ),
    "no condition": (
        expect_group(conditions=[SCHEDULED]),
        group(),
        "ns/j: no condition Scheduled, expected Scheduled=True (ready)",
    ),
    "condition too many": (
        expect_group(conditions=[SCHEDULED]),
        group(READY, STUCK),
        "ns/j: condition Unschedulable=True (NotEnoughResources), expected no Unschedulable",
    ),
    "condition reason": (
        expect_group(conditions=[SCHEDULED]),
        group(Condition("Scheduled", "True", "other")),
        "ns/j: condition Scheduled=True (other), expected Scheduled=True (ready)",
    ),
    "hyper node": (
        expect_group(hyperNode="s1"),
        group(),
        "ns/j: HyperNode none, expected s1",
    ),
    "queue amount": (
        {"queues": {"q": {"cpu": "1500m"}}},
        Decisions(queues={"q": {"cpu": "2"}}),
        "queue q: allocated cpu 2, expected 1500m",
    ),
    "queue without status": (
        {"queues": {"q": {}}},
        Decisions(),
        "queue q: no status, expected one",
    ),
    "number of binds": ({"bindsNum": 2}, Decisions(), "0 binds, expected 2"),
    "number of evictions": (
        {"evictNum": 0},
        Decisions(evictions=["ns/a"]),
        "1 eviction, expected 0",
    ),
    "task statuses": (
        {"taskStatusNums": {"ns/j": {"Running": 2}}},
        Decisions(task_statuses={"ns/j": {"Running": 1}}),
        "ns/j: 1 tasks Running, expected 2",
    ),
    "binds for each hyper node": (
        {"bindNumsInHyperNode": [2]},
        Decisions(binds={"ns/a": "n"}),
        "binds for each HyperNode [1], expected [2]",
    ),
    "bound in a group": (
        {"boundPerPodGroup": {"ns/j": 2}},
        Decisions(binds={"ns/a": "n"}),
        "ns/j: 1 pods bound, expected 2",
    ),
    "a group that is not listed binds nothing": (
        {"boundPerPodGroup": {}},
        Decisions(binds={"ns/a": "n"}),
        "ns/j: 1 pods bound, expected 0",
    ),
    "pipelined in a group": (
        {"pipelinedPerPodGroup": {"ns/j": 1}},
        Decisions(),
        "ns/j: 0 pods pipelined, expected 1",
    ),
    "evicted": ({"evicted": 1}, Decisions(), "0 evictions, expected 1"),
    "phases": (
        {"phases": {"ns/j": "Running"}},
        group(phase="Pending"),
        "ns/j: phase Pending, expected Running",
    ),
    "nothing pipelined on the allowed nodes": (
        {"pipelinedOnOneOf": {"ns/j": ["n1", "n2"]}},
        Decisions(),
        "ns/j: no task pipelined, expected one on n1 or n2",
    ),
    "pipelined on a node that is not allowed": (
        {"pipelinedOnOneOf": {"ns/j": ["n1"]}},
        Decisions(pipelined={"ns/a": "n2"}),
        "ns/a: pipelined on n2, expected n1",
    ),
}

OWNER = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "job"}
OBJECTS = [
    pod("a", namespace="ns", group="j"),
    pod("b", namespace="ns", group="j"),
    {
        "kind": "PodGroup",
        "metadata": {"name": "job-1", "namespace": "ns", "ownerReferences": [OWNER]},
    },
]


@pytest.mark.parametrize("case", DIFFERENCES)
def test_a_difference_is_one_sentence(case: Any) -> None:
    record, decisions, sentence = DIFFERENCES[case]
    assert [sentence] == compare(OBJECTS, record, decisions)


AGREEMENTS = {
    "nothing stated": ({}, Decisions(binds={"ns/a": "n"}, evictions=["ns/b"])),
    "unordered evictions": (
        {"evictions": ["ns/a", "ns/b"], "evictionsUnordered": True},
        Decisions(evictions=["ns/b", "ns/a"]),
    ),
    "quantities are equal in value": (
        {"queues": {"q": {"cpu": "1500m", "memory": "1Gi", "pods": "0"}}},
        Decisions(queues={"q": {"cpu": "1.5", "memory": "1024Mi"}}),
    ),
    "a partial record leaves other groups and conditions alone": (
        expect_group(phase="Running"),
        Decisions(
            pod_groups={
                "ns/j": PodGroupState("Running", [READY], "s1"),
                "ns/k": PodGroupState("Pending"),
            }
        ),
    ),
    "order of conditions": (
        expect_group(conditions=[{**SCHEDULED}, {**STUCK.to_manifest()}]),
        group(STUCK, READY),
    ),
    "a message without --messages": (
        expect_group(conditions=[{**SCHEDULED, "message": "x"}]),
        group(READY),
    ),
    "a nomination without --nominated": ({"nominated": {"ns/a": "n"}}, Decisions()),
    "a fit error without --messages": ({"unschedulable": {"ns/j": "x"}}, Decisions()),
    "number of binds for each hyper node": (
        {"bindNumsInHyperNode": [2]},
        Decisions(binds={"ns/a": "n", "ns/b": "n"}),
    ),
    "one of several nodes": (
        {"pipelinedOnOneOf": {"ns/j": ["n1", "n2"]}},
        Decisions(pipelined={"ns/a": "n2", "other/x": "n9"}),
    ),
}


@pytest.mark.parametrize("case", AGREEMENTS)
def test_agreement_has_no_differences(case: Any) -> None:
    record, decisions = AGREEMENTS[case]
    assert compare(OBJECTS, record, decisions) == []


def test_a_full_record_lists_every_group_and_condition() -> None:
    full: Any = {"binds": {}, "evictions": [], "pipelined": {}, "queues": {}}
    decisions = Decisions(
        pod_groups={
            "ns/j": PodGroupState("Running", [READY]),
            "ns/k": PodGroupState("Pending"),
        }
    )
    assert compare(OBJECTS, {**full, **expect_group(phase="Running")}, decisions) == [
        "ns/j: condition Scheduled=True (ready), expected no Scheduled",
        "ns/k: phase Pending, expected not to be in the session",
    ]


def test_options_add_messages_and_nominations() -> None:
    record = {
        **expect_group(conditions=[{**SCHEDULED, "message": "x"}]),
        "nominated": {"ns/a": "n"},
        "unschedulable": {"ns/j": "full"},
    }
    options = CompareOptions(messages=True, nominated=True)
    assert compare(OBJECTS, record, group(READY), options) == [
        "ns/j: message of Scheduled is '', expected 'x'",
        "ns/a: not nominated, expected nominated to n",
        "ns/j: fit error '', expected 'full'",
    ]


def test_an_absent_message_is_never_compared() -> None:
    record = expect_group(conditions=[SCHEDULED])
    got = group(Condition("Scheduled", "True", "ready", "anything"))
    assert compare(OBJECTS, record, got, CompareOptions(messages=True)) == []


def test_what_a_cycle_decided_agrees_with_itself() -> None:
    decisions = Decisions(
        binds={"ns/b": "n1", "ns/a": "n0"},
        evictions=["ns/z"],
        pipelined={"ns/c": "n1"},
        pod_groups={"ns/j": PodGroupState("Inqueue", [STUCK], "s1")},
        nominated={"ns/c": "n1"},
        queues={"q": {"cpu": "1"}},
        unschedulable={"ns/j": "text"},
    )
    options = CompareOptions(messages=True, nominated=True)
    assert compare(OBJECTS, decisions.to_expect(), decisions, options) == []
    assert compare(OBJECTS, counts(OBJECTS, decisions), decisions, options) == []
