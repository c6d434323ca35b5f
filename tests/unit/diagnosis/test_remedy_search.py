"""The search for remedies: its results work, and it knows when to stop."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pumice.api.wording import span
from pumice.diagnosis.changes import Change
from pumice.diagnosis.explain import explain_job
from pumice.diagnosis.remedy.search import Search
from pumice.diagnosis.runner import Replay, played
from pumice.diagnosis.sources import load_world
from pumice.diagnosis.whatif import Question, what_if
from pumice.testing import node, pod, pod_group, priority_class, queue
from tests.unit.diagnosis.test_changes import volcano_job

EXAMPLE = Path(__file__).parents[3] / "examples" / "first-cluster.yaml"


def loaded_alone(objects: list[Any]) -> Any:
    return load_world(["\n---\n".join(map(json.dumps, objects)) + "\n"])


def causes(world: Any, job: str) -> Any:
    return explain_job(world, job, unblock=False).causes


@pytest.mark.parametrize("job", ["ai/sweep", "data/render"])
def test_every_way_out_works_on_a_fresh_copy(job: str) -> None:
    world = load_world([EXAMPLE])
    ways = Search(world, job, Replay(world)).ways(causes(world, job))
    assert ways
    for way in ways:
        assert played(way.change(world), job, until_started=True).started, way.change.text


def nodes_added(world: Any, job: str) -> list[int]:
    """Count the nodes of each remedy that adds some, and check that one fewer does not help."""
    found = []
    for remedy in explain_job(world, job).remedies:
        if not remedy.text.startswith("add"):
            continue
        n = len(remedy.changes)
        found.append(n)
        assert starts(world, job, remedy.changes), remedy.text
        assert not starts(world, job, remedy.changes[:-1]), remedy.text
    return found


def starts(world: Any, job: str, changes: Any) -> bool:
    changed = [Change.from_data(changes, source="remedy")] if changes else []
    answer = what_if(world, Question(job=job, changes=changed)).job
    return answer is not None and answer.state in ("now", "after evictions")


def test_no_more_nodes_than_the_job_needs_while_a_larger_one_waits_too(
    world: Any, job: Any
) -> None:
    # with 9 to 16 nodes more the larger job is admitted, and nothing is left for this one
    huge = job("huge", cpu=20, pods=6, min_resources={"cpu": 120}, created="2026-01-15T08:00:00Z")
    big = job("big", cpu=7, pods=6, min_resources={"cpu": 42}, created="2026-01-15T09:00:00Z")
    nodes = [node(f"n{i}", cpu=8) for i in range(4)]
    there = world([queue("default"), *nodes, *huge, *big], "gang overcommit predicates")
    assert nodes_added(there, "default/big") == [2]


def test_the_size_tried_first_need_not_be_the_only_one_that_fails(world: Any, job: Any) -> None:
    # four times as many nodes as pods admit the larger job as well
    huge = job("huge", cpu=40, pods=6, min_resources={"cpu": 240}, created="2026-01-15T08:00:00Z")
    big = job("big", cpu=7, pods=6, min_resources={"cpu": 42}, created="2026-01-15T09:00:00Z")
    nodes = [node(f"n{i}", cpu=8) for i in range(4)]
    there = world([queue("default"), *nodes, *huge, *big], "gang overcommit predicates")
    assert nodes_added(there, "default/big") == [2]


def test_a_draw_among_equal_nodes_is_that_of_the_next_cycle() -> None:
    """With one node more, other jobs draw it; both are found on the same draw."""
    assert nodes_added(load_world([EXAMPLE]), "data/render") == [2]


def test_a_smaller_change_may_have_to_wait_for_pods_that_leave() -> None:
    found = {
        way.text: way.result for way in explain_job(load_world([EXAMPLE]), "ai/sweep").remedies
    }
    assert found["lower minMember from 4 to 2"] == (
        "2 pods start in 30 s; this evicts 1 pod of data/nightly (data/nightly-worker-1)"
    )


def test_a_large_world_tries_evictions_beside_the_first_jobs_in_line(
    world: Any, job: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cycle in which hundreds of jobs evict would take longer than all other trials."""
    full = [one for i in range(4) for one in job(f"old{i}", cpu=4, nodes=[f"n{i}"])]
    high = {"spec": {"priority": 9, "priorityClassName": "high"}, "priority_class": "high"}
    waiting = [one for i in range(4) for one in job(f"j{i}", cpu=4, pods=1, **high)]
    nodes = [node(f"n{i}", cpu=4) for i in range(4)]
    objects = [queue("default"), priority_class("high", value=9), *nodes, *full, *waiting]
    there = world(objects, "priority predicates")
    monkeypatch.setattr("pumice.diagnosis.remedy.search._MOST_PROVED", 0)
    monkeypatch.setattr("pumice.diagnosis.remedy.search._MOST_BESIDE", 2)
    found = {way.text: way.result for way in explain_job(there, "j0").remedies}
    result = found["add the action preempt to the configuration"]
    assert result.startswith("it starts after 1 eviction: default/")
    assert "; this also evicts at least 1 pod of " in result


def test_joined_changes_hold_nothing_needless(world: Any, job: Any) -> None:
    """With a smaller gang fewer nodes are needed than the larger one would have needed."""
    objects = [queue("default", capability={"cpu": 2}), node("n1", cpu=1)]
    there = world([*objects, *job("j", cpu=2, pods=3)], "gang predicates capacity")
    texts = [way.text for way in explain_job(there, "j").remedies]
    assert "add a node like n1 with cpu 2 and lower minMember from 3 to 1" in texts


def test_a_change_is_enough_if_the_job_starts_once_leaving_pods_are_gone(
    world: Any, job: Any
) -> None:
    """A leaving pod counts in the pod limit of its node until it is gone."""
    old = job("old", cpu=1, nodes=["n1"])
    old[1]["metadata"] |= {
        "deletionTimestamp": "2026-01-15T10:00:10Z",
        "deletionGracePeriodSeconds": 10,
    }
    closed = queue("blue", state="Closed")
    objects = [queue("default"), closed, node("n1", cpu=4, pods=1), *old]
    there = world([*objects, *job("j", cpu=1, queue="blue")], "gang predicates proportion")
    texts = [way.text for way in explain_job(there, "j").remedies]
    assert texts == ["open queue blue (it is Closed)"]


def test_a_result_is_what_happens_when_the_change_is_played() -> None:
    """Pods of a Volcano job come once it is admitted; another job has taken the room by then."""
    taken = pod(
        "first-0",
        group="first",
        cpu=4,
        priority=9,
        priority_class="high",
        preemptable=True,
        spec={"terminationGracePeriodSeconds": 20},
    )
    first = [pod_group("first", phase="Inqueue", priority_class="high"), taken]
    conf = """
        actions: "enqueue, allocate, preempt"
        tiers:
        - plugins: [{name: priority}, {name: conformance}]
        - plugins: [{name: gang, enablePreemptable: false}, {name: predicates}]
    """
    high = priority_class("high", value=9)
    objects = [queue("default"), node("n1", cpu=4), high, *first, volcano_job("late")]
    world = replace(loaded_alone(objects), conf=conf)
    (way,) = [one for one in explain_job(world, "late").remedies if "priority" in one.text]
    changed = Change.from_data(way.changes)(world)
    answer = what_if(changed, Question(job="late")).job
    assert answer is not None
    assert answer.in_s is not None
    assert answer.in_s > 1
    assert f" in {span(answer.in_s)}" in way.result
