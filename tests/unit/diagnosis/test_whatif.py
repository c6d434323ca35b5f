"""What if: a job, a change, its cost, and its time."""

from dataclasses import replace
from typing import Any

import pytest

from pumice.api.wording import span
from pumice.diagnosis.changes import Change
from pumice.diagnosis.explain import explain_job
from pumice.diagnosis.settings import (
    drain_node,
    nodes_from_text,
    remove_node,
    setting_from_text,
    use_conf,
)
from pumice.diagnosis.whatif import Question, what_if
from pumice.errors import InputError, ManifestError
from pumice.framework.plugin import Plugin
from pumice.testing import node, pod, priority_class, queue
from tests.present import present
from tests.unit.diagnosis.test_changes import loaded, volcano_job

WORLD = [queue("default"), node("n1", cpu=4)]


def test_a_job_that_fits_starts_now(world: Any, job: Any) -> None:
    there = world([*WORLD, *job("j", cpu=2, pods=2)])
    found = present(what_if(there, Question(job="j")).job)
    assert (found.state, found.in_s) == ("now", 0.0)
    assert found.sentence == "default/j starts now: 2 pods on 1 node"


def test_a_new_job_is_tried_beside_what_is_there(world: Any, job: Any) -> None:
    there = world([*WORLD, *job("old", cpu=3, nodes=["n1"])])
    found = what_if(there, Question(new_job=job("new", cpu=1)))
    assert found.changes == ["submit default/new"]
    assert present(found.job).places == {"default/new-0": "n1"}
    assert [(each.job, each.before) for each in found.jobs] == [
        ("default/new", "not there: it is not submitted")
    ]


def test_a_job_waits_for_the_end_of_others(world: Any, job: Any) -> None:
    old = job("old", cpu=3, nodes=["n1"], seconds=7200, created="2026-01-15T09:00:00Z")
    there = world([*WORLD, *old, *job("j", cpu=2)])
    found = present(what_if(there, Question(job="j")).job)
    assert (found.state, found.in_s, found.at) == ("later", 3600.0, "2026-01-15T11:00:00Z")
    assert found.sentence.startswith("default/j starts in 1 h, once default/old has ended; now: ")
    assert found.places == {"default/j-0": "n1"}


def test_a_default_says_how_long_pods_run_that_do_not(world: Any, job: Any) -> None:
    old = job("old", cpu=3, nodes=["n1"], created="2026-01-15T09:00:00Z")
    there = world([*WORLD, *old, *job("j", cpu=2)])
    found = present(what_if(there, Question(job="j", default_runtime_s=5400.0)).job)
    assert found.in_s == 1800.0


def test_those_who_start_before_are_waited_for_too(world: Any, job: Any) -> None:
    objects = [
        *WORLD,
        *job("old", cpu=4, nodes=["n1"], seconds=60, created="2026-01-15T10:00:00Z"),
        *job("next", cpu=4, seconds=600, created="2026-01-15T08:00:00Z"),
        *job("j", cpu=4, created="2026-01-15T09:00:00Z"),
    ]
    found = present(what_if(world(objects), Question(job="j")).job)
    assert found.after == ["default/old", "default/next"]
    assert 660 <= present(found.in_s) <= 670


def test_without_known_ends_a_job_does_not_start(world: Any, job: Any) -> None:
    there = world([*WORLD, *job("old", cpu=3, nodes=["n1"]), *job("j", cpu=2)])
    found = present(what_if(there, Question(job="j")).job)
    assert found.state == "never"
    assert "1 running pod with no known end (annotation pumice.dev/run-seconds" in found.sentence


def test_no_forecast_looks_beyond_its_horizon(world: Any, job: Any) -> None:
    old = job("old", cpu=3, nodes=["n1"], seconds=7200, created="2026-01-15T10:00:00Z")
    there = world([*WORLD, *old, *job("j", cpu=2)])
    assert present(what_if(there, Question(job="j", horizon_s=3600.0)).job).state == "never"


def test_a_run_time_that_is_none_is_refused(world: Any, job: Any) -> None:
    old = job("old", cpu=3, nodes=["n1"], seconds="soon")
    with pytest.raises(InputError, match=r"default/old-0: annotation pumice\.dev/run-seconds"):
        what_if(world([*WORLD, *old, *job("j", cpu=2)]), Question(job="j"))


def test_those_who_are_evicted_are_named(world: Any, job: Any) -> None:
    objects = [
        *WORLD,
        priority_class("high", value=10),
        *job("low", cpu=4, nodes=["n1"], least=0),
    ]
    there = world(
        objects, "priority conformance", "predicates", actions="enqueue, allocate, preempt"
    )
    found = what_if(there, Question(new_job=job("j", cpu=4, priority_class="high")))
    tried = present(found.job)
    assert (tried.state, tried.victims) == ("after evictions", ["default/low-0"])
    assert found.evictions == {"default/low-0": (False, True)}


def test_a_running_job_has_nothing_to_start(world: Any, job: Any) -> None:
    there = world([*WORLD, *job("j", cpu=2, nodes=["n1"])])
    assert present(what_if(there, Question(job="j")).job).state == "running"


def test_more_nodes_change_who_runs(world: Any, job: Any) -> None:
    there = world([*WORLD, *job("a", cpu=4), *job("b", cpu=4)])
    found = what_if(there, Question(changes=[nodes_from_text(there, "1")]))
    assert found.changes == ["add a node like n1"]
    assert [(each.before, each.after) for each in found.jobs] == [
        ("0 of 1 run, Inqueue", "1 of 1 run, Running")
    ]
    assert found.queues == {"default": {"cpu": ("4", "8"), "pods": ("1", "2")}}
    assert found.job is None


def test_a_node_that_goes_takes_its_pods_with_it(world: Any, job: Any) -> None:
    there = world([*WORLD, node("n2", cpu=4), *job("a", cpu=2, nodes=["n2"])])
    found = what_if(there, Question(changes=[remove_node("n2")]))
    assert found.binds == {"default/a-0": ("n2", "")}


def test_a_setting_changes_one_field(world: Any, job: Any) -> None:
    there = world(
        [
            queue("default", capability={"cpu": 2}),
            node("n1", cpu=4),
            *job("j", cpu=3),
        ],
        "gang predicates capacity",
    )
    change = setting_from_text(there, "queue/default.capability.cpu=3")
    assert change.text == "set capability.cpu of queue default to 3"
    assert present(what_if(there, Question(job="j")).job).state == "never"
    assert present(what_if(there, Question(job="j", changes=[change])).job).state == "now"


def test_another_configuration_is_a_change(world: Any, job: Any) -> None:
    there = world([*WORLD, *job("j", cpu=2)], actions="enqueue")
    change = use_conf(there.conf.replace('"enqueue"', '"enqueue, allocate"'), "new.conf")
    assert present(what_if(there, Question(job="j")).job).state == "never"
    assert present(what_if(there, Question(job="j", changes=[change])).job).state == "now"


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("queue/q.weight=5", ("spec", "weight"), 5),
        ("queue/q.spec.weight=5", ("spec", "weight"), 5),
        ("queue/q.guarantee.cpu=1", ("spec", "guarantee", "resource", "cpu"), "1"),
        ("queue/q.deserved.example.com/gpu=2", ("spec", "deserved", "example.com/gpu"), "2"),
        ("queue/q.status.state=Closed", ("status", "state"), "Closed"),
        ("node/n.1.allocatable.cpu=7", ("status", "allocatable", "cpu"), "7"),
        ("node/n.1.unschedulable=true", ("spec", "unschedulable"), True),
        ("podgroup/default/j.minMember=2", ("spec", "minMember"), 2),
    ],
)
def test_settings_reach_every_field(
    world: Any, job: Any, text: str, field: Any, value: Any
) -> None:
    there = world([queue("q", deserved={"cpu": 2}), node("n.1"), *job("j", cpu=1)])
    changed = setting_from_text(there, text)(there)
    kind = {"queue": "Queue", "node": "Node", "podgroup": "PodGroup"}[text.partition("/")[0]]
    found = next(iter(changed.of_kind(kind).values()))
    for step in field:
        found = found[step]
    assert found == value


@pytest.mark.parametrize(
    ("text", "error", "hint"),
    [
        ("queue/bach.weight=1", InputError, "did you mean 'batch'"),
        ("queue/batch.weihgt=1", InputError, "did you mean 'weight'"),
        ("queue/batch.capability.cpu=many", ManifestError, "a quantity such as"),
        ("queue/batch.weight=heavy", ManifestError, "an integer"),
        ("service/x.y=1", InputError, "a setting such as queue/NAME.capability.cpu=20"),
        ("batch", InputError, "a setting such as"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(
    world: Any, text: str, error: Any, hint: str
) -> None:
    with pytest.raises(error, match=hint):
        setting_from_text(world([queue("batch")]), text)


@pytest.mark.parametrize("text", ["2", "2=n1", "2=like n1"])
def test_nodes_are_named_by_number_and_example(world: Any, text: str) -> None:
    there = world([node("n1", cpu=8, labels={"disk": "ssd"}), node("small", cpu=1)])
    changed = nodes_from_text(there, text)(there)
    added = [one for name, one in changed.of_kind("Node").items() if name.startswith("n1-new")]
    assert [one["metadata"]["name"] for one in added] == ["n1-new-1", "n1-new-2"]
    assert added[0]["metadata"]["labels"]["disk"] == "ssd"
    assert added[0]["metadata"]["labels"]["kubernetes.io/hostname"] == "n1-new-1"


@pytest.mark.parametrize("text", ["0", "x", "2=nobody", "-1"])
def test_a_number_of_nodes_that_makes_no_sense_is_refused(world: Any, text: str) -> None:
    with pytest.raises(InputError):
        nodes_from_text(world([node("n1")]), text)


def test_an_unknown_node_cannot_go(world: Any) -> None:
    with pytest.raises(InputError, match="did you mean 'n1'"):
        remove_node("n11")(world([node("n1")]))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "no time"),
        (0.2, "0.2 s"),
        (0.04, "no time"),
        (0.6, "1 s"),
        (59, "59 s"),
        (3660, "1 h 1 min"),
        (90061, "1 d 1 h"),
        (7200, "2 h"),
    ],
)
def test_spans_are_reported_in_two_units(seconds: int, text: str) -> None:
    assert span(seconds) == text


# A cluster that does not come to rest


class Restless(Plugin, name="restless"):
    """Wants every running pod moved, always."""

    def victims(self, running: list[int]) -> list[int]:
        return running


def owned(one: Any, kind: str = "StatefulSet") -> Any:
    """Return a pod an owner that makes it again."""
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "u", "controller": True}
    return {**one, "metadata": {**one["metadata"], "ownerReferences": [owner]}}


def restless(world: Any, job: Any, kind: str = "StatefulSet") -> Any:
    spec = {"terminationGracePeriodSeconds": 0}
    group, *members = job("web", cpu=1, pods=3, least=0, nodes=["n1"] * 3, spec=spec)
    there = world([*WORLD, group, *(owned(one, kind) for one in members)], "gang predicates")
    return replace(there, plugins={"restless": Restless})


SHUFFLING = """
actions: "enqueue, allocate, shuffle"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: restless}]
"""


@pytest.mark.parametrize("kind", ["StatefulSet", "ReplicaSet"])
def test_a_storm_of_evictions_is_the_headline(world: Any, job: Any, kind: str) -> None:
    there = restless(world, job, kind)
    found = what_if(there, Question(changes=[use_conf(SHUFFLING, "new.conf")]))
    assert not found.settled
    storm = present(found.storm)
    assert storm["text"] == "3 pods evict each other every 2 s"
    assert len(storm["pods"]) == 3
    assert storm["jobs"] == ["default/web"]
    assert "make room for nobody by shuffle" in storm["why"][0]
    assert what_if(there, Question(job="web")).settled


def test_a_job_in_a_storm_has_no_known_start(world: Any, job: Any) -> None:
    there = restless(world, job)
    there = replace(there, objects=(*there.objects, *job("big", cpu=5)))
    found = what_if(there, Question(job="big", changes=[use_conf(SHUFFLING, "new.conf")]))
    answer = present(found.job)
    assert (answer.state, answer.in_s) == ("unknown", None)
    assert "the cluster does not settle, 3 pods evict each other" in answer.sentence


# What the input leaves out


def test_incomplete_input_is_reported(world: Any, job: Any) -> None:
    _, *members = job("lost", cpu=1, nodes=["gone"])
    objects = [
        *WORLD,
        *job("j", cpu=1, priority_class="high", queue="nowhere"),
        *(owned(one, "Job") for one in members),
    ]
    del objects[-1]["status"]
    objects[-1]["metadata"]["ownerReferences"][0]["apiVersion"] = "batch.volcano.sh/v1alpha1"
    lost, again = "Pod default/lost-0", "its pods are assumed to be created again"
    assert what_if(world(objects), Question(job="j")).notes == [
        "no configuration was given: the built-in configuration is used",
        "PriorityClass high is missing, but 1 object names it: PodGroup default/j",
        "Queue nowhere is missing, but 1 object names it: PodGroup default/j",
        f"Job default/web is missing, but 1 object names it: {lost}; {again}",
        "Node gone is missing, but 1 object names it: Pod default/lost-0",
        "1 pod has no phase: default/lost-0",
    ]


# Fates of pods and jobs


def test_pods_of_a_drained_node_are_moved_or_wait(world: Any, job: Any) -> None:
    group, *members = job("web", cpu=2, pods=2, least=0, nodes=["n2", "n2"])
    there = world(
        [*WORLD, node("n2", cpu=4), *job("a", cpu=2, nodes=["n1"]), group]
        + [owned(one) for one in members]
    )
    drained = drain_node(there, "n2")
    found = what_if(there, Question(changes=[drained]))
    assert found.changes == ["drain node n2"]
    assert [*found.pods] == ["default/web-0", "default/web-1"]
    assert sorted(found.pods.values()) == [("on n2", "on n1"), ("on n2", "pending")]
    assert found.evictions == {}
    assert "Insufficient cpu" in found.waiting["default/web"]


def test_why_other_jobs_wait_is_reported_and_jobs_have_their_own_names() -> None:
    there = loaded(volcano_job(), volcano_job("next"), volcano_job("third"))
    found = what_if(there, Question(job="third"))
    assert present(found.job).job == "default/third"
    assert [*found.waiting] == ["default/train"]
    why = "not enqueued: jobs may reserve 1.2 times the cluster: needs 2 CPU"
    assert found.waiting["default/train"].startswith(why)


def test_a_starting_time_and_a_phase_do_not_contradict_each_other(world: Any, job: Any) -> None:
    old = job("old", cpu=3, nodes=["n1"], seconds=7200, created="2026-01-15T09:00:00Z")
    found = what_if(world([*WORLD, *old]), Question(new_job=job("new", cpu=2)))
    [effect] = found.jobs
    assert effect.after == "0 of 1 run, Inqueue, starts in 1 h"


@pytest.mark.parametrize(
    ("free", "in_s", "when"),
    [
        (0, 600.0, "starts within 10 min, after 1 eviction"),
        (
            4,
            1.0,
            (
                "starts in 1 s, after 1 eviction and before default/low-0 is gone, "
                "whose room it does not need to start"
            ),
        ),
    ],
)
def test_a_job_waits_for_its_victims_if_it_needs_their_room(
    world: Any, job: Any, free: int, in_s: float, when: str
) -> None:
    # with free room it lacks only a share of its queue, which a leaving pod no longer takes
    slow = {"terminationGracePeriodSeconds": 600}
    objects = [
        queue("default", spec={"capability": {"cpu": "4"}}),
        node("n1", cpu=4 + free),
        priority_class("high", value=10),
        *job("low", cpu=4, nodes=["n1"], least=0, spec=slow),
        *job("j", cpu=4, priority_class="high"),
    ]
    tiers, actions = ("priority conformance", "predicates proportion"), "enqueue, allocate, preempt"
    there = world(objects, *tiers, actions=actions)
    found = present(what_if(there, Question(job="j")).job)
    assert (found.state, found.in_s) == ("after evictions", in_s)
    assert found.sentence == f"default/j {when}: 1 pod on 1 node"
    told = explain_job(there, "j")
    assert present(told.forecast)["text"] == f"it {when}"
    assert told.text == "its place is promised; 1 pod leaves for it: default/low-0 (within 600 s)"


def test_a_job_waits_only_for_jobs_without_whose_end_it_does_not_start(
    world: Any, job: Any
) -> None:
    at = {"seconds": 600, "created": "2026-01-15T10:00:00Z"}
    objects = [
        queue("default"),
        node("n1", cpu=4),
        node("n2", cpu=1),
        *job("a-small", cpu=1, nodes=["n2"], **at),
        *job("b-half", cpu=2, nodes=["n1"], **at),
        *job("c-nothing", cpu=0, nodes=["n1"], **at),
        *job("d-half", cpu=2, nodes=["n1"], **at),
        *job("j", cpu=4),
    ]
    found = present(what_if(world(objects), Question(job="j")).job)
    assert (found.in_s, set(found.after)) == (
        600.0,
        {f"default/{name}" for name in ("a-small", "b-half", "c-nothing", "d-half")},
    )
    assert "starts in 10 min, once default/b-half and default/d-half have ended;" in found.sentence


def test_new_pods_that_wait_are_listed_with_those_that_run(world: Any, job: Any) -> None:
    found = what_if(world(WORLD), Question(new_job=job("new", cpu=3, pods=2, least=1)))
    assert found.pods == {
        "default/new-0": ("not there: its job is not submitted", "on n1"),
        "default/new-1": ("not there: its job is not submitted", "pending"),
    }
    assert present(found.job).sentence.endswith("; 1 more waits")
    assert "no node fits default/new-1" in found.waiting["default/new"]


def test_a_job_whose_pods_have_ended_is_described_so(world: Any, job: Any) -> None:
    there = world([*WORLD, *job("old", cpu=3, nodes=["n1"]), *job("j", cpu=3)])
    ended = Change.from_data([{"op": "wait", "pods": ["default/old-0"]}], source="test")
    (effects,) = [what_if(there, Question(changes=[ended])).jobs]
    assert [(each.job, each.before, each.after) for each in effects] == [
        ("default/j", "0 of 1 run, Inqueue", "1 of 1 run, Running"),
        ("default/old", "1 of 1 run, Running", "all its pods are gone"),
    ]


def test_a_job_that_gets_its_pods_later_has_none_yet() -> None:
    large = volcano_job(minAvailable=500)
    large["spec"]["tasks"][0]["replicas"] = 500
    answer = what_if(loaded(), Question(new_job=[large]))
    assert [each.after for each in answer.jobs] == ["no pods yet, Pending"]


def test_a_new_job_that_no_node_can_hold_is_told_so_before_it_is_admitted() -> None:
    large = volcano_job()
    container = large["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "1000"}}
    found = present(what_if(loaded(), Question(new_job=[large])).job)
    assert "does not start unless something changes: no node is large enough" in found.sentence


def test_a_finished_job_has_ended(world: Any, job: Any) -> None:
    done = job("j", cpu=2, nodes=["n1"])
    done[1]["status"]["phase"] = "Succeeded"
    found = present(what_if(world([*WORLD, *done]), Question(job="j")).job)
    assert (found.state, found.sentence) == ("finished", "default/j has ended: all its pods have")


def test_a_volcano_job_that_is_over_has_ended() -> None:
    over = volcano_job()
    over["metadata"]["uid"], over["status"] = "u", {"state": {"phase": "Completed"}}
    world = loaded(over)
    found = present(what_if(world, Question(job="train")).job)
    assert (found.state, found.sentence) == ("finished", "default/train has ended: Completed")
    explained = explain_job(world, "train")
    assert (explained.text, explained.pods) == ("it has ended: Completed", {})
    left = pod("train-0", cpu=1)
    left["status"]["phase"] = "Succeeded"
    reference = {"apiVersion": over["apiVersion"], "kind": "Job", "name": "train", "uid": "u"}
    left["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    assert explain_job(loaded(over, left), "train").pods == {"Succeeded": 1}


def test_new_pods_are_placed_as_if_they_were_there(world: Any, job: Any) -> None:
    nodes = [node(f"n{i}", cpu=4) for i in range(4)]
    new = job("new", cpu=3, pods=4, least=1)
    for i, one in enumerate(new[1:]):
        one["spec"]["nodeSelector"] = {"kubernetes.io/hostname": f"n{i % 2}"}
    for one in nodes:
        one["metadata"]["labels"] = {"kubernetes.io/hostname": one["metadata"]["name"]}
    there = [queue("default"), *nodes]
    added = present(what_if(world(there), Question(new_job=new)).job)
    found = present(what_if(world([*there, *new]), Question(job="new")).job)
    assert added.places == found.places == {"default/new-0": "n0", "default/new-1": "n1"}


def test_a_job_of_which_pods_are_left_has_not_ended(world: Any, job: Any) -> None:
    started = "2026-01-15T10:00:00Z"
    old = job("old", cpu=2, pods=2, nodes=["n1", "n1"], seconds=60, created=started)
    old[2]["metadata"]["annotations"]["pumice.dev/run-seconds"] = "600"
    there = world([*WORLD, *old, *job("j", cpu=2)])
    found = present(what_if(there, Question(job="j")).job)
    assert "starts in 1 min, once 1 pod of default/old has ended; now: " in found.sentence


@pytest.mark.parametrize("stated", ["pod", "group"])
def test_a_job_that_waits_for_a_pod_past_its_time_says_so(
    world: Any, job: Any, stated: str
) -> None:
    since = "2026-01-15T09:00:00Z"
    old = job("old", cpu=3, nodes=["n1"], seconds=60, created=since)
    if stated == "group":
        group, *pods = job("old", cpu=3, nodes=["n1"], created=since)
        group["metadata"]["annotations"] = {"pumice.dev/run-seconds": "60"}
        old = [group, *pods]
    there = world([*WORLD, *old, *job("j", cpu=2)])
    found = present(what_if(there, Question(job="j")).job)
    assert (found.state, found.in_s) == ("unknown", None)
    assert found.sentence.startswith(
        "default/j: unknown: it starts once default/old has ended, 59 min overdue; now: no"
    )
    small = present(what_if(world([*WORLD, *old, *job("j", cpu=1)]), Question(job="j")).job)
    assert small.sentence == "default/j starts now: 1 pod on 1 node"
