"""Why a job waits: causes with their numbers, nodes, order, evictions, and what would help."""

import json
from typing import Any

import pytest

from pumice.clock import Deadline
from pumice.diagnosis.explain import explain_in_steps, explain_job
from pumice.errors import InputError
from pumice.examine.findings import ObjectRef
from pumice.testing import node, pod, pod_group, priority_class, queue

WORLD = [queue("default"), node("n1", cpu=4)]


def codes(found: Any) -> list[str]:
    return [cause.code.value for cause in found.causes]


def changes(found: Any) -> Any:
    return [remedy.text for remedy in found.remedies]


def funnel(found: Any) -> list[tuple[str, int]]:
    return [(row.constraint, row.left) for row in found.funnel]


def test_a_job_that_fits_starts_and_has_no_cause_to_wait(world: Any, job: Any) -> None:
    found = explain_job(world([*WORLD, *job("j", cpu=2, pods=2)]), "j")
    assert (found.state, found.causes, found.funnel) == ("starts", [], [])
    assert found.text == "it starts now: 2 pods on 1 node"
    assert found.places == {"default/j-0": "n1", "default/j-1": "n1"}
    assert found.remedies == []


def test_a_running_job_waits_for_nothing(world: Any, job: Any) -> None:
    found = explain_job(world([*WORLD, *job("j", cpu=2, nodes=["n1"])]), "j")
    assert (found.state, found.text) == ("runs", "it runs: 1 pod of at least 1")


def test_a_misspelt_name_is_answered_with_the_name_of_the_job(world: Any, job: Any) -> None:
    objects = job("big-0a1b2c3d-4e5f", cpu=1)
    objects[0]["metadata"]["ownerReferences"] = [
        {"kind": "Job", "name": "big", "apiVersion": "batch.volcano.sh/v1alpha1", "uid": "1"}
    ]
    with pytest.raises(InputError, match=r"did you mean 'default/big'\?$"):
        explain_job(world([*WORLD, *objects]), "bgi")


def test_jobs_that_this_scheduler_cannot_place_take_nobodys_place(world: Any, job: Any) -> None:
    early, late = "2026-01-15T09:00:00Z", "2026-01-15T09:30:00Z"
    gated = {"schedulingGates": [{"name": "example.com/later"}]}
    objects = [
        *WORLD,
        *job("gated", cpu=9, spec=gated, created=early, phase="Inqueue"),
        *job("foreign", cpu=9, spec={"schedulerName": "other"}, created=early, phase="Inqueue"),
        *job("first", cpu=9, created=early, phase="Inqueue"),
        *job("last", cpu=9, created=late, phase="Inqueue"),
    ]
    position = explain_job(world(objects), "last", unblock=False).position
    assert position is not None
    assert (position.place, position.of) == (2, 2)
    assert [name for name, _ in position.behind] == ["default/first"]


def test_one_more_node_or_a_smaller_gang_unblock_a_job_without_room(world: Any, job: Any) -> None:
    found = explain_job(world([*WORLD, *job("j", cpu=3, pods=2)]), "j")
    assert changes(found)[:2] == ["add a node like n1", "lower minMember from 2 to 1"]
    assert [way.result for way in found.remedies[:2]] == ["2 pods start", "1 pod starts"]


def test_a_pod_that_asks_as_a_whole_can_ask_for_less(world: Any, job: Any) -> None:
    objects = job("j", cpu=1, pods=2)
    for one in objects:
        if one["kind"] == "Pod":
            one["spec"]["resources"] = {"requests": {"cpu": "3"}}
    found = explain_job(world([*WORLD, *objects]), "j")
    assert codes(found) == ["GangShort", "InsufficientResource"]
    (less,) = [one for one in found.remedies if one.text.startswith("ask for less")]
    assert (less.text, less.result) == ("ask for less: cpu 1 a pod", "2 pods start")


def test_nodes_are_added_up_to_the_smallest_number_that_works(world: Any, job: Any) -> None:
    found = explain_job(world([*WORLD, *job("j", cpu=3, pods=5)]), "j")
    assert "add 4 nodes like n1" in changes(found)


def test_a_taint_on_the_only_large_node_is_the_cause(world: Any, job: Any) -> None:
    big = node("big", cpu=64, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    found = explain_job(world([*WORLD, big, *job("j", cpu=6)]), "j")
    assert codes(found) == ["Taint"]
    assert funnel(found) == [("all nodes", 2), ("capacity", 1), ("Taint", 0)]
    assert found.causes[0].numbers["taints"] == {"k=v:NoSchedule": 1}
    assert changes(found)[0] == "make its pods tolerate the taint k=v:NoSchedule"


def test_a_selector_is_removed_key_by_key(world: Any, job: Any) -> None:
    spec = {"nodeSelector": {"disk": "ssd"}}
    found = explain_job(world([*WORLD, *job("j", cpu=1, spec=spec)]), "j")
    assert "remove the node selector disk=ssd from its pods" in changes(found)


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
                            ]
                        }
                    }
                }
            },
            "remove the node affinity of its pods",
        ),
        (
            {"schedulingGates": [{"name": "example.com/hold"}]},
            "remove the scheduling gate example.com/hold from its pods",
        ),
    ],
    ids=["affinity", "gate"],
)
def test_what_a_pod_asks_for_itself_is_offered_for_removal(
    world: Any, job: Any, spec: Any, wanted: str
) -> None:
    found = explain_job(world([*WORLD, *job("j", cpu=1, spec=spec)]), "j")
    assert wanted in changes(found)


def test_a_cordoned_node_is_offered_for_use(world: Any, job: Any) -> None:
    closed = node("n2", cpu=8, unschedulable=True)
    found = explain_job(world([*WORLD, closed, *job("j", cpu=6)]), "j")
    assert "uncordon node n2" in changes(found)


def test_a_resource_that_no_node_has_is_reported_as_such(world: Any, job: Any) -> None:
    group = pod_group("j")
    member = pod("j-0", group="j", cpu=1, resources={"example.com/gpu": 2})
    found = explain_job(world([*WORLD, group, member], "gang predicates proportion"), "j")
    assert found.causes[0].code == "InsufficientResource"
    assert found.text == "no node has example.com/gpu: j-0 asks for example.com/gpu 2"
    assert "add a node like n1 with example.com/gpu 2" in changes(found)


def test_a_quota_names_the_ancestor_whose_limit_it_is(world: Any, job: Any) -> None:
    objects = [
        node("n1", cpu=16),
        queue("root"),
        queue("team", parent="root", capability={"cpu": 3}),
        queue("leaf", parent="team"),
        queue("busy", parent="team"),
        *job("old", cpu=2, nodes=["n1"], queue="busy"),
        *job("j", cpu=2, queue="leaf"),
    ]
    there = world(objects, "gang predicates")
    conf = there.conf + "\n  - name: capacity\n    enableHierarchy: true\n"
    found = explain_job(type(there)(objects=there.objects, now=there.now, conf=conf), "j")
    assert codes(found) == ["QueueOverCapability"]
    (cause,) = found.causes
    assert cause.about == ObjectRef("Queue", "team")
    assert (
        cause.numbers.items()
        >= {
            "resource": "cpu",
            "used": 2.0,
            "request": 2.0,
            "limit": 3.0,
            "over": 1.0,
        }.items()
    )
    assert "guarantees" not in cause.numbers
    assert any(text.startswith("raise the capability of queue team") for text in changes(found))


def test_a_guarantee_that_takes_the_room_is_named_with_its_queue(world: Any, job: Any) -> None:
    objects = [
        node("n1", cpu=8),
        queue("team"),
        queue("prod", deserved={"cpu": 6}, guarantee={"cpu": 6}),
        *job("j", cpu=3, queue="team", min_resources={"cpu": 3}),
    ]
    found = explain_job(world(objects, "gang predicates capacity"), "j")
    (cause,) = found.causes
    assert (cause.code, cause.about) == ("QueueOverCapability", ObjectRef("Queue", "team"))
    assert (cause.numbers["limit"], cause.numbers["guarantees"]) == (2.0, {"prod": 6.0})
    assert cause.text.endswith("; the rest is guaranteed to prod (6)")


def test_overcommit_tells_its_factor_and_the_true_sums(world: Any, job: Any) -> None:
    objects = [
        *WORLD,
        *job("old", cpu=1, nodes=["n1"]),
        *job("waits", cpu=2, phase="Inqueue", min_resources={"cpu": 2}),
        *job("j", cpu=1, pods=2, min_resources={"cpu": 2}),
    ]
    found = explain_job(world(objects, "gang predicates", "overcommit"), "j")
    cause = found.causes[0]
    assert (cause.code, cause.about) == ("NotAdmitted", None)
    assert cause.numbers["factor"] == 1.2
    assert cause.numbers["reserved"]["cpu"] == 2.0
    assert cause.numbers.items() >= {"resource": "cpu", "used": 3.0, "request": 2.0}.items()
    assert cause.numbers["limit"] == pytest.approx(4.8)
    assert found.text == (
        "overcommit allows jobs to reserve 1.2 times the cluster: needs 2 CPU, 1.8 of 4.8 left"
    )


def test_a_resource_quota_is_raised_as_far_as_others_leave_room(world: Any, job: Any) -> None:
    amounts = {"cpu": "4"}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {"hard": amounts},
        "status": {"hard": amounts, "used": {"cpu": "3"}},
    }
    running = job("old", cpu=1, nodes=["n1"])
    objects = [*WORLD, quota, *running, *job("j", cpu=2, min_resources={"cpu": "2"})]
    found = explain_job(world(objects, "gang predicates resourcequota"), "j")
    cause = found.causes[0]
    assert (cause.code, cause.about) == (
        "NotAdmitted",
        ObjectRef("ResourceQuota", "team", "default"),
    )
    assert cause.numbers.items() >= {"used": 3.0, "request": 2.0, "limit": 4.0}.items()
    assert changes(found)[0] == "raise resource quota team: cpu from 4 to 5"


def test_a_job_whose_pods_have_ended_is_finished(world: Any, job: Any) -> None:
    group, member = job("j", cpu=1, nodes=["n1"])
    member["status"]["phase"] = "Succeeded"
    assert explain_job(world([*WORLD, group, member]), "j").state == "finished"


def test_further_pods_of_a_job_that_starts_are_counted(world: Any, job: Any) -> None:
    found = explain_job(world([*WORLD, *job("j", cpu=3, pods=2, least=1)]), "j")
    assert found.text == "it starts now: 1 pod on 1 node; 1 more waits"


def test_a_job_behind_others_is_reported_so_and_may_go_first(world: Any, job: Any) -> None:
    objects = [
        *WORLD,
        *job("first", cpu=3, created="2026-01-15T08:00:00Z"),
        *job("j", cpu=3, created="2026-01-15T09:00:00Z"),
    ]
    found = explain_job(world(objects, "priority gang predicates"), "j")
    (cause,) = found.causes
    assert (cause.code, cause.about) == ("JobAhead", ObjectRef("PodGroup", "first", "default"))
    assert cause.numbers == {"jobs": ["default/first"], "key": "older by 60 min"}
    assert found.text == (
        "job default/first was placed before it in this cycle and holds what it needs; "
        "default/first goes first: older by 60 min"
    )
    place = found.position
    assert place is not None
    assert (place.place, place.of, place.turn) == (2, 2, 2)
    assert list(place.behind) == [("default/first", "older by 60 min")]
    assert "give it a priority above 0" in changes(found)


def test_a_job_ahead_by_priority_is_named_with_that_key(world: Any, job: Any) -> None:
    high = priority_class("high", value=10)
    objects = [*WORLD, high, *job("first", cpu=3, priority_class="high"), *job("j", cpu=3)]
    found = explain_job(world(objects, "priority gang predicates"), "j")
    assert found.causes[0].numbers["key"] == "priority: 10 before 0"


def test_a_job_ahead_that_waits_itself_is_not_to_blame(world: Any, job: Any) -> None:
    objects = [
        *WORLD,
        *job("first", cpu=6, created="2026-01-15T08:00:00Z"),
        *job("old", cpu=2, nodes=["n1"]),
        *job("j", cpu=3, created="2026-01-15T09:00:00Z"),
    ]
    found = explain_job(world(objects, "priority gang predicates"), "j")
    assert codes(found) == ["InsufficientResource"]


def test_the_funnel_counts_the_nodes_after_each_constraint_in_a_fixed_order(
    world: Any, job: Any
) -> None:
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    objects = [
        queue("default"),
        *(node(f"small{i}", cpu=2) for i in range(2)),
        *(node(f"cordoned{i}", cpu=8, unschedulable=True) for i in range(3)),
        node("other", cpu=8),
        node("tainted", cpu=8, labels={"pool": "a"}, taints=[taint]),
        node("full", cpu=8, labels={"pool": "a"}),
        *job("old", cpu=6, nodes=["full"]),
        *job("j", cpu=4, spec={"nodeSelector": {"pool": "a"}}),
    ]
    found = explain_job(world(objects), "j")
    assert funnel(found) == [
        ("all nodes", 8),
        ("capacity", 6),
        ("NodeUnschedulable", 3),
        ("NodeSelector", 2),
        ("Taint", 1),
        ("InsufficientResource", 0),
    ]
    assert found.causes[0].code == "InsufficientResource"
    texts = {row.constraint: row.text for row in found.funnel}
    assert texts["NodeSelector"] == (
        "node other does not match the node selector: pool=a is on 2 nodes"
    )
    assert texts["Taint"] == "node tainted has a taint that it does not tolerate: k=v:NoSchedule"
    assert texts["InsufficientResource"].endswith(": it lacks 2 of the 4 cpu")
    assert {"Taint", "NodeSelector"} <= set(codes(found))  # but for either it would start


def test_a_gang_without_its_pods_has_too_few(world: Any) -> None:
    objects = [*WORLD, pod_group("j", min_member=3), pod("j-0", group="j", cpu=1)]
    found = explain_job(world(objects), "j")
    assert found.causes[0].code == "TooFewPods"
    assert found.causes[0].numbers == {"pods": 1, "minMember": 3}
    assert found.text == "it has 1 pod and needs 3 to start"
    assert "lower minMember from 3 to 1" in changes(found)


def test_a_queue_that_does_not_exist_is_reported_with_the_nearest_name(
    world: Any, job: Any
) -> None:
    found = explain_job(world([*WORLD, *job("j", cpu=1, queue="defaultx")]), "j")
    assert found.causes[0].code == "QueueMissing"
    assert found.causes[0].about == ObjectRef("Queue", "defaultx")
    assert found.text == "queue defaultx does not exist; did you mean default?"
    assert changes(found) == ["submit it to queue default", "create queue defaultx"]


def test_a_closed_queue_is_offered_to_be_opened(world: Any, job: Any) -> None:
    objects = [queue("default", state="Closed"), node("n1", cpu=4), *job("j", cpu=1)]
    found = explain_job(world(objects, "gang predicates proportion"), "j")
    assert codes(found) == ["QueueClosed"]
    assert found.causes[0].about == ObjectRef("Queue", "default")
    assert "open queue default (it is Closed)" in changes(found)


def test_victims_of_a_preemption_are_named_with_their_node_and_job(world: Any, job: Any) -> None:
    objects = [
        *WORLD,
        priority_class("high", value=10),
        *job("low", cpu=4, nodes=["n1"], least=0),
        *job("j", cpu=4, priority_class="high"),
    ]
    tiers, actions = ("priority conformance", "predicates"), "enqueue, allocate, preempt"
    found = explain_job(world(objects, *tiers, actions=actions), "j")
    assert codes(found) == ["WaitingForEvicted"]
    assert [(v.pod, v.node, v.job) for v in found.victims] == [
        ("default/low-0", "n1", "default/low")
    ]
    assert found.remedies == []


@pytest.mark.parametrize(
    ("actions", "code"),
    [("enqueue, allocate", "ActionMissing"), ("enqueue, allocate, reclaim", "ActionMissing")],
)
def test_an_eviction_that_the_configuration_rules_out_is_offered(
    world: Any, job: Any, actions: str, code: str
) -> None:
    objects = [
        *WORLD,
        priority_class("high", value=10),
        *job("low", cpu=4, nodes=["n1"], least=0),
        *job("j", cpu=4, priority_class="high"),
    ]
    there = world(objects, "priority conformance", "predicates", actions=actions)
    found = explain_job(there, "j")
    assert [(each.code, each.pods) for each in found.not_evicted] == [(code, 1)]
    way = next(one for one in found.remedies if "action preempt" in one.text)
    assert way.result == "it starts after 1 eviction: default/low-0"
    assert "wait for default/low to end (1 pod)" in changes(found)


def test_an_action_that_is_missing_is_offered(world: Any) -> None:
    lone = [*WORLD, pod_group("j"), pod("j-0", group="j")]
    found = explain_job(world(lone), "j")
    assert codes(found) == ["ActionMissing"]
    assert found.causes[0].numbers["action"] == "backfill"
    assert found.text == (
        "the configuration has no action backfill, which places pods without requests"
    )
    assert changes(found)[0] == "add the action backfill to the configuration"


def test_changes_are_joined_where_one_alone_does_not_help(world: Any, job: Any) -> None:
    objects = [queue("default", capability={"cpu": 2}), node("n1", cpu=4), *job("j", cpu=6)]
    found = explain_job(world(objects, "gang predicates capacity"), "j")
    assert codes(found) == ["InsufficientResource", "QueueOverCapability"]
    both = [way for way in found.remedies if " and " in way.text]
    assert any({op["kind"] for op in way.changes if "kind" in op} == {"Queue"} for way in both)


def test_a_node_that_meets_a_selector_and_a_large_request_is_made_up(world: Any, job: Any) -> None:
    spec = {"nodeSelector": {"disk": "ssd"}}
    found = explain_job(world([*WORLD, *job("j", cpu=6, spec=spec)]), "j")
    assert "add a node like n1 with cpu 6, label disk=ssd" in changes(found)


def test_later_cycles_are_looked_at_on_request(world: Any, job: Any) -> None:
    objects = [
        *WORLD,
        priority_class("high", value=10),
        *job("low", cpu=4, nodes=["n1"], least=0),
        *job("j", cpu=4, priority_class="high"),
    ]
    tiers, actions = ("priority conformance", "predicates"), "enqueue, allocate, preempt"
    found = explain_job(world(objects, *tiers, actions=actions), "j", cycles=3)
    assert (found.state, found.cycle) == ("starts", 3)


def test_a_search_leaves_the_world_as_it_was(world: Any, job: Any) -> None:
    there = world([*WORLD, *job("j", cpu=3, pods=2)])
    before = json.dumps(there.objects)
    first = explain_job(there, "j")
    assert json.dumps(there.objects) == before
    assert explain_job(there, "j") == first


@pytest.mark.parametrize("name", ["j", "default/j", "j-0", "default/j-0"])
def test_a_job_is_found_by_its_own_name_and_by_its_pods(world: Any, job: Any, name: str) -> None:
    assert explain_job(world([*WORLD, *job("j", cpu=1)]), name).job == "default/j"


def test_a_volcano_job_is_found_by_the_owner_of_its_pod_group(world: Any, job: Any) -> None:
    group, member = job("j-123", cpu=1)
    group["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j"}]
    assert explain_job(world([*WORLD, group, member]), "default/j").job == "default/j-123"


def test_a_name_that_stands_for_two_jobs_is_refused(world: Any, job: Any) -> None:
    other = [
        pod_group("j", namespace="other"),
        pod("j-0", namespace="other", group="j", cpu=1),
    ]
    with pytest.raises(InputError, match="there are 2: default/j, other/j"):
        explain_job(world([*WORLD, *job("j", cpu=1), *other]), "j")


# Jobs whose pods are still to be made


def unmade(cpu: Any, phase: str = "Pending") -> Any:
    group = pod_group("j", min_member=4, phase=phase)
    group["spec"]["minResources"] = {"cpu": str(cpu)}
    return group


def test_a_job_whose_pods_come_later_is_not_admitted_rather_than_without_pods(world: Any) -> None:
    here = world([*WORLD, unmade(40)], "gang overcommit predicates")
    found = explain_job(here, "j")
    assert codes(found) == ["NotAdmitted"]
    assert found.text == (
        "overcommit allows jobs to reserve 1.2 times the cluster: needs 40 CPU, limit 4.8"
    )
    assert "add 8 nodes like n1" in changes(found)


def test_a_job_that_is_admitted_now_waits_for_its_pods(world: Any) -> None:
    found = explain_job(world([*WORLD, unmade(2)], "gang overcommit predicates"), "j")
    assert codes(found) == ["NoPods"]
    assert found.text == "it is admitted to its queue now; its pod group has no pods"
    assert found.remedies == []


def test_a_job_that_was_admitted_and_has_no_pods_is_reported_so(world: Any) -> None:
    found = explain_job(world([*WORLD, unmade(2, "Inqueue")]), "j")
    assert codes(found) == ["NoPods"]
    assert found.causes[0].about == ObjectRef("PodGroup", "j", "default")


# Evictions


def preempting(leaving: Any = ()) -> Any:
    low = [pod(f"low-{i}", group="low", cpu=2, node="n1") for i in range(2)]
    for i in leaving:
        low[i]["metadata"]["deletionTimestamp"] = "2026-01-15T10:00:30Z"
    return [
        *WORLD,
        priority_class("high", value=10),
        pod_group("low", phase="Running"),
        *low,
        pod_group("urgent", priority_class="high"),
        pod("urgent-0", group="urgent", cpu=2, priority=10),
    ]


def explained(world: Any, name: Any, leaving: Any = ()) -> Any:
    tiers = ("priority gang conformance", "predicates")
    here = world(preempting(leaving), *tiers, actions="enqueue, allocate, preempt")
    return explain_job(here, name)


def test_a_job_that_loses_pods_is_reported_for_whom(world: Any) -> None:
    found = explained(world, "low")
    assert found.state == "evicted"
    assert found.text == (
        "1 of its 2 pods is evicted for default/urgent-0 by preempt: default/low-1"
    )
    assert found.causes == []


def test_a_job_whose_pods_are_on_their_way_out_is_reported_so(world: Any) -> None:
    found = explained(world, "low", leaving=[1])
    assert (found.state, found.text) == ("evicted", "1 of its 2 pods is leaving: default/low-1")


@pytest.mark.parametrize(("leaving", "seconds"), [((), 30.0), ((1,), 30.0)])
def test_a_job_that_waits_for_an_eviction_names_who_leaves_and_how_soon(
    world: Any, leaving: Any, seconds: float
) -> None:
    found = explained(world, "urgent", leaving)
    (cause,) = found.causes
    assert (cause.code, cause.about) == (
        "WaitingForEvicted",
        ObjectRef("Pod", "low-1", "default"),
    )
    assert cause.numbers == {"pods": ["default/low-1"], "seconds": seconds}
    assert found.text == ("its place is promised; 1 pod leaves for it: default/low-1 (within 30 s)")


def test_pods_that_were_spared_are_counted_by_code(world: Any, job: Any) -> None:
    objects = [
        queue("default"),
        node("n1", cpu=8),
        priority_class("high", value=10),
        priority_class("top", value=20),
        *job("equal", cpu=2, nodes=["n1"], priority_class="top"),
        *job("gang", cpu=2, pods=2, nodes=["n1", "n1"]),
        *job("rest", cpu=2, nodes=["n1"], priority_class="top"),
        *job("j", cpu=2, priority_class="high"),
    ]
    tiers, actions = ("priority gang conformance", "predicates"), "enqueue, allocate, preempt"
    found = explain_job(world(objects, *tiers, actions=actions), "j")
    assert [(each.code, each.pods) for each in found.not_evicted] == [
        ("NoLowerPriority", 2),
        ("VictimGang", 2),
    ]
    assert found.not_evicted[0].text == (
        "2 pods (default/equal-0, default/rest-0): only pods of lower priority may be evicted "
        "(priority)"
    )


def test_a_job_that_names_no_queue_is_reported_in_the_default_one(world: Any, job: Any) -> None:
    group, *pods = job("j", cpu=2)
    del group["spec"]["queue"]
    found = explain_job(world([*WORLD, group, *pods]), "j")
    assert (found.queue, found.state) == ("default", "starts")
    found = explain_job(world([queue("other"), node("n1", cpu=4), group, *pods]), "j")
    assert (codes(found)[0], found.text) == ("QueueMissing", "queue default does not exist")


def test_an_answer_grows_causes_first(world: Any, job: Any) -> None:
    there = world([queue("default"), node("n1", cpu=4), *job("j", cpu=3, pods=2)])
    steps = list(explain_in_steps(there, "j"))
    assert [(bool(one.causes), bool(one.forecast), bool(one.remedies)) for one in steps] == [
        (True, False, False),
        (True, True, False),
        (True, True, True),
    ]
    assert steps[-1] == explain_job(there, "j")


def test_what_is_not_known_at_the_deadline_is_named(world: Any, job: Any) -> None:
    running = job("old", cpu=4, nodes=["n1"], seconds=600)
    there = world([queue("default"), node("n1", cpu=4), *running, *job("j", cpu=3, pods=1)])
    found = explain_job(there, "j", deadline=Deadline.of(0.0))
    assert found.causes == explain_job(there, "j").causes
    assert found.forecast is not None
    assert found.forecast["state"] == "unknown"
    assert not found.remedies
    assert "not all changes that might help were tried within no time" in found.notes
