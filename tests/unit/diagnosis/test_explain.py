"""Why a job waits: the reason of the closed list, the ladder, and what would unblock it."""

import json
from typing import Any

import pytest

from pumice.diagnosis import explain_job, explain_waiting
from pumice.errors import InputError
from pumice.framework.refusals import Why
from pumice.testing import node, pod, pod_group, priority_class, queue

WORLD = [queue("default"), node("n1", cpu=4)]
GATES = ["valid", "enqueued", "position", "quota", "nodes", "gang", "eviction"]


def marks(found: Any) -> Any:
    return {gate.name: gate.mark for gate in found.gates}


def text_of(found: Any, name: Any) -> Any:
    return next(gate.text for gate in found.gates if gate.name == name)


def changes(found: Any) -> Any:
    return [way.change for way in found.unblock]


def test_every_answer_climbs_the_same_ladder(world: Any, job: Any) -> None:
    found = explain_job(world([*WORLD, *job("j", cpu=2)]), "j")
    assert [gate.name for gate in found.gates] == GATES


def test_a_job_that_fits_starts_and_passes_every_gate(world: Any, job: Any) -> None:
    found = explain_job(world([*WORLD, *job("j", cpu=2, pods=2)]), "j")
    assert (found.state, found.reason) == ("starts", "")
    assert found.sentence == "it starts now: 2 pods on 1 node"
    assert set(marks(found).values()) == {"passed"}
    assert found.places == {"default/j-0": "n1", "default/j-1": "n1"}
    assert found.unblock == []


def test_a_running_job_waits_for_nothing(world: Any, job: Any) -> None:
    found = explain_job(world([*WORLD, *job("j", cpu=2, nodes=["n1"])]), "j")
    assert (found.state, found.sentence) == ("runs", "it runs: 1 pod of at least 1")


def test_a_job_without_room_names_the_nearest_node_and_what_it_lacks(world: Any, job: Any) -> None:
    found = explain_job(world([*WORLD, *job("j", cpu=3, pods=2)]), "j")
    assert found.reason == Why.NO_NODE_FITS.value
    assert found.sentence == (
        "no node fits j-1 (cpu 3): of 1 nodes, 1 short of cpu; "
        "nearest is n1, which lacks cpu 2 of 3; the gang of 2 is short by 1"
    )
    assert marks(found)["nodes"] == marks(found)["gang"] == "failed"
    assert text_of(found, "gang") == "short by 1: 1 of at least 2 pods found a place"
    assert found.numbers["lacks"] == {"cpu": 2000.0}


def test_one_more_node_or_a_smaller_gang_unblock_a_job_without_room(world: Any, job: Any) -> None:
    found = explain_job(world([*WORLD, *job("j", cpu=3, pods=2)]), "j")
    assert changes(found) == ["add a node like n1", "lower minMember from 2 to 1"]
    assert [way.result for way in found.unblock] == ["2 pods start", "1 pod starts"]


def test_nodes_are_added_up_to_the_smallest_number_that_works(world: Any, job: Any) -> None:
    found = explain_job(world([*WORLD, *job("j", cpu=3, pods=5)]), "j")
    assert changes(found)[0] == "add 4 nodes like n1"


def test_the_nearest_node_is_one_that_the_pod_may_go_to(world: Any, job: Any) -> None:
    big = node("big", cpu=64, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    found = explain_job(world([*WORLD, big, *job("j", cpu=6)]), "j")
    assert "nearest is n1" in found.sentence
    assert changes(found)[0] == "let its pods tolerate the taint k=v:NoSchedule"


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


def test_a_resource_that_no_node_has_is_told_as_such(world: Any, job: Any) -> None:
    group = pod_group("j")
    member = pod("j-0", group="j", cpu=1, resources={"example.com/gpu": 2})
    found = explain_job(world([*WORLD, group, member], "gang predicates proportion"), "j")
    assert found.sentence.startswith("no node offers example.com/gpu, of which it asks for 2, so ")
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
    assert found.reason == Why.OVER_QUOTA.value
    assert found.numbers["at"] == "team"
    assert text_of(found, "quota") == "queue team: cpu 2 + 2 asked for > 3 allowed, 1 too much"
    assert changes(found)[0] == (
        "raise capability of queue team for cpu from 3 to 4 (or free cpu 1 there)"
    )


def test_a_job_that_is_not_admitted_gets_no_further(world: Any, job: Any) -> None:
    objects = [*WORLD, *job("j", cpu=2, pods=3, min_resources={"cpu": 6})]
    found = explain_job(world(objects, "gang predicates", "overcommit"), "j")
    assert found.reason == Why.NOT_ENQUEUED.value
    assert found.sentence.startswith("not enqueued: over quota at cluster: cpu 0 in use + 6 asked")
    assert marks(found) == {"valid": "passed", "enqueued": "failed"} | dict.fromkeys(
        GATES[2:], "not reached"
    )


def test_a_resource_quota_is_raised_as_far_as_others_leave_room(world: Any, job: Any) -> None:
    amounts = {"cpu": "2"}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {"hard": amounts},
        "status": {"hard": amounts, "used": {"cpu": "1"}},
    }
    objects = [*WORLD, quota, *job("j", cpu=2, min_resources=amounts)]
    found = explain_job(world(objects, "gang predicates resourcequota"), "j")
    assert found.numbers["at"] == "resource quota team"
    assert changes(found)[0] == "raise resource quota team to cpu 3"


def test_a_job_whose_pods_have_ended_is_finished(world: Any, job: Any) -> None:
    group, member = job("j", cpu=1, nodes=["n1"])
    member["status"]["phase"] = "Succeeded"
    assert explain_job(world([*WORLD, group, member]), "j").state == "finished"


def test_further_pods_of_a_job_that_starts_are_told_why_they_wait(world: Any, job: Any) -> None:
    found = explain_job(world([*WORLD, *job("j", cpu=3, pods=2, least=1)]), "j")
    assert found.sentence.startswith("it starts now: 1 pod on 1 node; 1 more waits: 0 of 1 take")


def test_a_job_behind_others_is_told_so_and_may_go_first(world: Any, job: Any) -> None:
    objects = [
        *WORLD,
        *job("first", cpu=3, created="2026-01-15T08:00:00Z"),
        *job("j", cpu=3, created="2026-01-15T09:00:00Z"),
    ]
    found = explain_job(world(objects, "priority gang predicates"), "j")
    assert found.reason == Why.QUEUE_POSITION.value
    assert found.sentence == (
        "1 job goes before it and takes the room it would start in: default/first"
    )
    assert marks(found)["position"] == "failed"
    assert "give it a priority above 0, so that it goes first" in changes(found)


def test_a_gang_without_its_pods_is_not_valid(world: Any) -> None:
    objects = [*WORLD, pod_group("j", min_member=3), pod("j-0", group="j", cpu=1)]
    found = explain_job(world(objects), "j")
    assert found.reason == Why.NOT_VALID.value
    assert found.sentence == "not valid: not enough pods for gang-scheduling: 1 of 3"
    assert "lower minMember from 3 to 1" in changes(found)


def test_a_queue_that_does_not_exist_is_told_with_the_nearest_name(world: Any, job: Any) -> None:
    found = explain_job(world([*WORLD, *job("j", cpu=1, queue="defaultx")]), "j")
    assert found.sentence == "not valid: queue defaultx does not exist; did you mean default?"
    assert changes(found) == ["name queue default instead of defaultx", "create queue defaultx"]


def test_a_closed_queue_is_offered_to_be_opened(world: Any, job: Any) -> None:
    objects = [queue("default", state="Closed"), node("n1", cpu=4), *job("j", cpu=1)]
    found = explain_job(world(objects, "gang predicates proportion"), "j")
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
    assert found.reason == Why.WAITING_FOR_EVICTION.value
    assert [(v.pod, v.node, v.job) for v in found.victims] == [
        ("default/low-0", "n1", "default/low")
    ]
    assert found.unblock == []


def test_an_eviction_that_the_configuration_rules_out_is_offered(world: Any, job: Any) -> None:
    objects = [
        *WORLD,
        priority_class("high", value=10),
        *job("low", cpu=4, nodes=["n1"], least=0),
        *job("j", cpu=4, priority_class="high"),
    ]
    found = explain_job(world(objects, "priority conformance", "predicates"), "j")
    way = next(one for one in found.unblock if "action preempt" in one.change)
    assert way.result == "it starts once evicted pods are gone: default/low-0"
    assert "wait for default/low to end (1 running pod)" in changes(found)


def test_an_action_that_is_missing_is_offered(world: Any) -> None:
    lone = [*WORLD, pod_group("j"), pod("j-0", group="j")]
    found = explain_job(world(lone), "j")
    assert (found.reason, found.sentence) == (
        Why.NOT_TAKEN.value,
        "no configured action places its pods",
    )
    assert changes(found)[0] == "add the action backfill to the configuration"


def test_changes_are_joined_where_one_alone_does_not_help(world: Any, job: Any) -> None:
    objects = [queue("default", capability={"cpu": 2}), node("n1", cpu=4), *job("j", cpu=6)]
    found = explain_job(world(objects, "gang predicates capacity"), "j")
    assert (
        "raise capability of queue default for cpu from 2 to 6 and add a node"
        in found.unblock[0].change
    )
    assert all(" and " in way.change for way in found.unblock)


def test_a_node_that_meets_a_selector_and_a_large_request_is_made_up(world: Any, job: Any) -> None:
    spec = {"nodeSelector": {"disk": "ssd"}}
    found = explain_job(world([*WORLD, *job("j", cpu=6, spec=spec)]), "j")
    assert changes(found) == ["add a node like n1 with cpu 6, label disk=ssd"]


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


def test_no_search_is_made_if_none_is_wanted(world: Any, job: Any) -> None:
    found = explain_job(world([*WORLD, *job("j", cpu=3, pods=2)]), "j", unblock=False)
    assert found.unblock == []


def test_all_that_wait_are_told_at_once(world: Any, job: Any) -> None:
    objects = [*WORLD, *job("fits", cpu=1), *job("j", cpu=6)]
    assert list(explain_waiting(world(objects))) == ["default/j"]


@pytest.mark.parametrize("name", ["j", "default/j", "j-0", "default/j-0"])
def test_a_job_is_found_by_its_own_name_and_by_its_pods(world: Any, job: Any, name: str) -> None:
    assert explain_job(world([*WORLD, *job("j", cpu=1)]), name).job == "default/j"


def test_a_volcano_job_is_found_by_the_owner_of_its_pod_group(world: Any, job: Any) -> None:
    group, member = job("j-123", cpu=1)
    group["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j"}]
    assert explain_job(world([*WORLD, group, member]), "default/j").job == "default/j-123"


def test_an_unknown_job_is_refused_with_the_nearest_names(world: Any, job: Any) -> None:
    with pytest.raises(InputError, match="did you mean 'default/train'"):
        explain_job(world([*WORLD, *job("train", cpu=1)]), "trayn")


def test_a_name_that_stands_for_two_jobs_is_refused(world: Any, job: Any) -> None:
    other = [
        pod_group("j", namespace="other"),
        pod("j-0", namespace="other", group="j", cpu=1),
    ]
    with pytest.raises(InputError, match="there are 2: default/j, other/j"):
        explain_job(world([*WORLD, *job("j", cpu=1), *other]), "j")


def test_an_explanation_is_plain_data(world: Any, job: Any) -> None:
    found = explain_job(world([*WORLD, *job("j", cpu=3, pods=2)]), "j")
    assert json.loads(json.dumps(found.to_dict()))["job"] == "default/j"


# Jobs whose pods are still to be made


def unmade(cpu: Any, phase: str = "Pending") -> Any:
    group = pod_group("j", min_member=4, phase=phase)
    group["spec"]["minResources"] = {"cpu": str(cpu)}
    return group


def test_a_job_whose_pods_come_later_is_not_enqueued_rather_than_not_valid(world: Any) -> None:
    here = world([*WORLD, unmade(40)], "gang overcommit predicates")
    found = explain_job(here, "j")
    assert found.reason == "not enqueued"
    assert found.sentence == (
        "not enqueued: over quota at cluster: cpu 0 in use + 40 asked for is more than 4.8; "
        "its pods are made once it is admitted"
    )
    assert (marks(found)["valid"], marks(found)["enqueued"]) == ("passed", "failed")
    assert "add 8 nodes like n1" in changes(found)
    assert list(explain_waiting(here)) == ["default/j"]


def test_a_job_that_is_admitted_now_waits_for_its_pods(world: Any) -> None:
    found = explain_job(world([*WORLD, unmade(2)], "gang overcommit predicates"), "j")
    assert found.sentence == "it is admitted to its queue now; its pods are not made yet"
    assert (marks(found)["valid"], marks(found)["enqueued"]) == ("failed", "passed")
    assert found.unblock == []


def test_a_job_that_was_admitted_and_has_no_pods_is_not_valid(world: Any) -> None:
    found = explain_job(world([*WORLD, unmade(2, "Inqueue")]), "j")
    assert (found.reason, found.sentence) == ("not valid", "it has no pods")


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


def test_a_job_that_loses_pods_is_told_for_whom(world: Any) -> None:
    found = explained(world, "low")
    assert found.state == "evicted"
    assert found.sentence == (
        "1 of its 2 pods is evicted for default/urgent-0 by preempt: default/low-1"
    )
    assert text_of(found, "eviction") == "its own pods leave"


def test_a_job_whose_pods_are_on_their_way_out_is_told_so(world: Any) -> None:
    found = explained(world, "low", leaving=[1])
    assert (found.state, found.sentence) == ("evicted", "1 of its 2 pods is leaving: default/low-1")


@pytest.mark.parametrize("leaving", [(), (1,)])
def test_a_job_that_waits_for_an_eviction_names_who_leaves(world: Any, leaving: Any) -> None:
    found = explained(world, "urgent", leaving)
    assert found.reason == "waiting for evicted pods to leave"
    assert found.sentence == "waiting for pods that leave to make room: default/low-1"
    assert text_of(found, "eviction") == "waits for evicted pods to leave: default/low-1"


def test_all_sentences_count_the_gang_alike(world: Any, job: Any) -> None:
    here = world([*WORLD, *job("j", cpu=3, pods=4)])
    found = explain_job(here, "j")
    assert "the gang of 4 is short by 3" in found.sentence
    assert "the gang of 4 is short by 3" in explain_waiting(here)["default/j"]
    assert text_of(found, "gang").startswith("short by 3:")


def test_a_job_that_names_no_queue_is_told_in_the_default_one(world: Any, job: Any) -> None:
    group, *pods = job("j", cpu=2)
    del group["spec"]["queue"]
    found = explain_job(world([*WORLD, group, *pods]), "j")
    assert (found.queue, found.state) == ("default", "starts")
    found = explain_job(world([queue("other"), node("n1", cpu=4), group, *pods]), "j")
    assert found.sentence == "not valid: queue default does not exist"
