"""The sign-off: what a change costs in figures, and the conditions that a change must keep to."""

from typing import Any

import pytest

from pumice.api.conditions import conditions
from pumice.clock import Deadline
from pumice.diagnosis.settings import drain_node, nodes_from_text, remove_node, use_conf
from pumice.diagnosis.signoff import FIGURES, SignOff
from pumice.diagnosis.whatif import Question, what_if
from pumice.errors import InputError
from pumice.testing import node, priority_class, queue
from tests.present import present
from tests.unit.diagnosis.test_whatif import owned

CLASSES = [priority_class("high", value=100), priority_class("low", value=1)]
PREEMPTING = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: conformance}, {name: predicates}]
- plugins: [{name: gang, enablePreemptable: false, enableJobStarving: false}]
"""


def full(world: Any, job: Any, **wide: Any) -> Any:
    """A node of 4 cpus that a job of low priority fills, and an urgent one that waits."""
    running = job("wide", cpu=1, pods=4, nodes=["n1"] * 4, priority_class="low", **wide)
    waiting = job("urgent", cpu=2, priority_class="high")
    return world([queue("default"), node("n1", cpu=4), *CLASSES, *running, *waiting])


def signed(there: Any, *changes: Any, **terms: Any) -> SignOff:
    return present(what_if(there, Question(changes=changes, signs_off=True, **terms)).signoff)


def test_a_gang_that_loses_pods_is_broken_and_counted_by_queue_and_priority(
    world: Any, job: Any
) -> None:
    found = signed(full(world, job), use_conf(PREEMPTING, "new.conf"))
    assert found.before.evictions == 0
    after = found.after
    assert (after.evictions, len(after.evicted)) == (2, 2)
    assert (after.gangs_broken, after.gangs_evicted) == (["default/wide"], [])
    assert (after.by_queue, after.by_priority) == ({"default": 2}, {"low (1)": 2})
    [urgent] = [each for each in found.starts if each.job == "default/urgent"]
    assert (urgent.before_s, urgent.later_by < 0) == (None, True)
    assert (found.earlier, found.later) == (1, 1)  # the wide job does not run again
    assert any("2 evicted pods without a controller: taken to be gone" in x for x in found.unknown)
    assert any("4 running pods taken to run for ever" in each for each in found.unknown)


@pytest.mark.parametrize("how", ["drained", "removed"])
def test_a_gang_that_loses_pods_with_a_node_is_broken(world: Any, job: Any, how: str) -> None:
    nodes = [queue("default"), node("n1", cpu=2), node("n2", cpu=2)]
    there = world([*nodes, *job("wide", cpu=2, pods=2, nodes=["n1", "n2"])])
    found = signed(there, drain_node(there, "n2") if how == "drained" else remove_node("n2"))
    assert (found.before.gangs_broken, found.after.gangs_broken) == ([], ["default/wide"])
    assert (found.after.evictions, found.after.gangs_evicted) == (0, [])
    assert [(each.before_s, each.after_s) for each in found.starts] == [(0.0, None)]


@pytest.mark.parametrize(("least", "broken"), [(4, True), (2, False), (0, False)])
def test_only_pods_that_a_gang_needs_break_it(
    world: Any, job: Any, least: int, broken: bool
) -> None:
    found = signed(full(world, job, least=least), use_conf(PREEMPTING, "new.conf"))
    assert found.after.evictions == 2
    assert bool(found.after.gangs_broken) is broken


def test_a_gang_that_loses_all_pods_at_once_is_evicted_whole(world: Any, job: Any) -> None:
    pair = job("pair", cpu=2, pods=2, nodes=["n1"] * 2, priority_class="low")
    there = world(
        [
            queue("default"),
            node("n1", cpu=4),
            *CLASSES,
            *pair,
            *job("urgent", cpu=4, priority_class="high"),
        ]
    )
    found = signed(there, use_conf(PREEMPTING, "new.conf")).after
    assert (found.gangs_broken, found.gangs_evicted) == ([], ["default/pair"])
    assert found.jobs_lost == ["default/pair"]


@pytest.mark.parametrize(("requeues", "left", "fate"), [(False, 2, "gone"), (True, 4, "requeue")])
def test_evicted_pods_without_a_controller_are_gone_or_made_again(
    world: Any, job: Any, requeues: bool, left: int, fate: str
) -> None:
    question = Question(
        changes=[use_conf(PREEMPTING, "new.conf")], requeues=requeues, signs_off=True
    )
    found = what_if(full(world, job, least=0), question)
    assert present(found.signoff).evicted == fate
    [state] = [each.after for each in found.jobs if each.job == "default/wide"]
    assert state.startswith(f"2 of {left} run")


def test_jobs_that_start_later_are_listed_with_both_times(world: Any, job: Any) -> None:
    """With the urgent job first, the other one waits until it has ended."""
    there = world(
        [
            queue("default"),
            node("n1", cpu=4),
            *CLASSES,
            *job("first", cpu=3, priority_class="low", seconds=60),
            *job("second", cpu=3, priority_class="high", seconds=60),
        ]
    )
    ordered = "actions: 'enqueue, allocate'\ntiers:\n- plugins: [{name: priority}, {name: gang}]\n"
    found = signed(there, use_conf(ordered, "new.conf"))
    times = {each.job: (each.before_s, each.after_s) for each in found.starts}
    assert times == {"default/first": (0.0, 60.0), "default/second": (60.0, 0.0)}
    assert (found.before.waits, found.before.figures()["wait.max"]) == (
        {"default/first": 0.0, "default/second": 60.0},
        60.0,
    )


@pytest.mark.parametrize("limiting", ["proportion", "capacity"])
def test_queues_below_their_due_lack_what_their_jobs_ask_for(
    world: Any, job: Any, limiting: str
) -> None:
    """Capacity: of memory, which is not among the amounts that they deserve, nothing is due."""
    asks = {"cpu": "1", **({"memory": "1Gi"} if limiting == "capacity" else {})}
    spec = {"containers": [{"name": "main", "resources": {"requests": asks}}]}
    there = world(
        [
            queue("rich"),
            queue("poor", deserved={"cpu": "2"}),
            node("n1", cpu=4),
            *job("a", cpu=1, pods=4, nodes=["n1"] * 4, queue="rich"),
            *job("b", cpu=1, pods=2, queue="poor", spec=spec),
        ],
        f"gang predicates {limiting}",
    )
    found = signed(there, nodes_from_text(there, "1"))
    assert found.before.below_due == {"poor": {"cpu": ("0", "2")}}
    assert found.after.below_due == {}


def test_a_volcano_side_that_restarts_is_settled_in_seconds(world: Any, job: Any) -> None:
    there = full(world, job)
    objects = [owned(one) if one["kind"] == "Pod" else one for one in there.objects]
    found = signed(world(objects), use_conf(PREEMPTING, "new.conf"))
    assert found.before.settled_in_s is not None
    assert present(found.after.settled_in_s) > 0
    assert found.after.jobs_lost == []


def test_what_could_not_be_played_in_time_is_not_known(world: Any, job: Any) -> None:
    over = Deadline(1.0, ends=-1e9)
    question = Question(changes=[use_conf(PREEMPTING, "new.conf")], signs_off=True, deadline=over)
    found = what_if(full(world, job), question)
    assert (found.settled, found.settled_in_s) == (False, None)
    assert any("could be played within 1 s" in each for each in present(found.signoff).unknown)


# Conditions


@pytest.mark.parametrize(
    ("text", "breached"),
    [
        ("gangs-broken", "gangs-broken: 1, before 0"),
        ("evictions>10", ""),
        ("evictions > 1", "evictions > 1: 2, before 0"),
        ("evictions>=2", "evictions>=2: 2, before 0"),
        ("evictions>1.5x", "evictions>1.5x: 2, before 0"),
        ("jobs-later", "jobs-later: 1, before 0"),
        ("jobs-earlier<1", ""),
        ("settles>10m", ""),
        ("settles>1s", "settles>1s: 32 s, before 1 s"),
        ("wait.max>1.2x", ""),
        ("wait.max > 1.2 * old", ""),
        ("evictions > old", "evictions > old: 2, before 0"),
        ("jobs-failed, queues-below-due, jobs-lost", ""),
    ],
)
def test_a_condition_compares_a_figure(world: Any, job: Any, text: str, breached: str) -> None:
    found = signed(full(world, job), use_conf(PREEMPTING, "new.conf"))
    sides = found.figures()
    breaches = [each.words(*sides) for each in conditions(text, FIGURES) if each.is_met(*sides)]
    assert breaches == [breached] * bool(breached)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("gang-broken", "gangs-broken"),
        ("evictions>many", "a number of 0 or more"),
        ("evictions>-1", "a number of 0 or more"),
        ("evictions==3", "conditions such as"),
        ("wait.p95>soon", "duration"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused(text: str, hint: str) -> None:
    with pytest.raises(InputError, match=hint):
        conditions(f"gangs-broken, {text}", FIGURES)
