"""Records and their messages: where a job stopped, why, and the numbers compared."""

from dataclasses import dataclass
from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.api.decisions import JobRecord
from pumice.framework import waiting
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Place, Stage, Why
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, priority_class, queue
from pumice.testing.samples import open_session

NOW = 1_768_471_200.0
WORLD = [queue("default"), node("n1", cpu=4)]


@dataclass(kw_only=True)
class Veto(Plugin, name="veto"):
    """Allows no job to start."""

    def job_ready(self, job: Any) -> bool:
        return False

    def job_pipelined(self, job: Any) -> int:
        return -1


def decide(
    objects: Any, *plugins: Any, actions: str = "enqueue, allocate", switches: str = ""
) -> Any:
    tier = "".join(f"  - name: {name}\n{switches}" for name in plugins)
    conf = parse_conf(f'actions: "{actions}"\ntiers:\n- plugins:\n{tier}')
    return Scheduler(conf, plugins={"veto": Veto}).cycle(objects, NOW)


def job(name: str = "j", *, cpu: Any, pods: Any = 1, **group: Any) -> Any:
    members = [pod(f"{name}-{i}", group=name, cpu=cpu) for i in range(pods)]
    return [pod_group(name, min_member=pods, **group), *members]


def reported(decisions: Any, name: str = "j") -> Any:
    return decisions.explanations[f"default/{name}"]


def test_there_is_a_sentence_for_every_reason_of_the_closed_list() -> None:
    assert set(waiting._SENTENCES) == set(Why)


def test_a_task_without_a_node_is_recorded_with_its_need_and_what_is_idle() -> None:
    cordoned = node("n2", cpu=64, unschedulable=True)
    decisions = decide([*WORLD, cordoned, *job(cpu=6)], "gang", "predicates")
    record = decisions.records["default/j"]
    assert (record.stage, record.reason) == (Stage.NODES.value, Why.NO_NODE_FITS.value)
    assert record.numbers == {
        "task": "default/j-0",
        "nodes": {"Insufficient cpu": 1, "node(s) were unschedulable": 1},
        "need": {"cpu": 6000.0},
        "idle": {"cpu": 4000.0},
    }
    assert reported(decisions) == (
        "no node fits default/j-0: 0 of 2 nodes (1 Insufficient cpu, 1 node(s) were unschedulable)"
        "; it asks for cpu 6, and that node has 4 idle"
    )


@pytest.mark.parametrize(
    ("nodes", "held", "words"),
    [
        (1, 4, "it asks for cpu 6, and that node has none idle"),
        (2, 4, "it asks for cpu 6, and none of those has any idle"),
        (2, 1, "it asks for cpu 6, and those have at most 3 idle"),
    ],
)
def test_what_is_idle_is_written_as_one_would_say_it(nodes: int, held: int, words: str) -> None:
    names = [f"n{i}" for i in range(nodes)]
    old = [pod(f"old-{name}", cpu=held, node=name) for name in names]
    objects = [queue("default"), *(node(name, cpu=4) for name in names), *old, *job(cpu=6)]
    assert reported(decide(objects, "gang", "predicates")).endswith(f"; {words}")


def test_a_quota_is_recorded_with_the_ancestor_whose_limit_it_is() -> None:
    objects = [
        node("n1", cpu=16),
        queue("root"),
        queue("team", parent="root", capability={"cpu": 3}),
        queue("leaf", parent="team"),
        queue("busy", parent="team"),
        pod_group("old", queue="busy", phase="Running"),
        pod("old-0", group="old", cpu=2, node="n1"),
        *job(cpu=2, queue="leaf"),
    ]
    tree = "    enableHierarchy: true\n"
    decisions = decide(objects, "gang", "capacity", switches=tree)
    record = decisions.records["default/j"]
    assert (record.stage, record.reason) == (Stage.QUOTA.value, Why.OVER_QUOTA.value)
    numbers = record.numbers
    assert (numbers["queue"], numbers["at"], numbers["resource"]) == ("leaf", "team", "cpu")
    assert (numbers["used"], numbers["request"], numbers["limit"]) == (2000.0, 2000.0, 3000.0)
    assert reported(decisions).startswith("over the limit of queue team: needs 2 CPU, 1 of 3 left")


def test_an_eviction_is_recorded_with_its_victims_and_who_gains() -> None:
    low = [
        pod_group("low", min_member=0, phase="Running", priority_class="low"),
        *(pod(f"low-{i}", group="low", cpu=1, node="n1") for i in range(4)),
    ]
    classes = [priority_class("low", value=1), priority_class("high", value=9)]
    urgent = job(cpu=4, priority_class="high")
    decisions = decide(
        [*WORLD, *classes, *low, *urgent], "priority", actions="enqueue, allocate, preempt"
    )
    victims = [f"default/low-{i}" for i in range(4)]
    record = decisions.records["default/j"]
    assert (record.stage, record.reason) == (
        Stage.EVICTION.value,
        Why.WAITING_FOR_EVICTION.value,
    )
    assert sorted(record.numbers["victims"]) == victims
    assert decisions.beneficiaries == dict.fromkeys(victims, "default/j-0")
    assert reported(decisions).startswith("waiting for terminating pods: default/low-")
    assert reported(decisions).endswith(" and 1 more")


def test_a_job_that_is_not_ready_although_its_tasks_found_nodes_is_reported_so() -> None:
    decisions = decide([*WORLD, *job(cpu=1, pods=2)], "gang", "veto")
    assert decisions.records["default/j"] == JobRecord(
        Stage.GANG.value, Why.GANG_SHORT.value, {"placed": 2, "needed": 2}
    )
    assert reported(decisions) == "not ready with the 2 tasks that found a place; it needs 2"
    assert decisions.binds == {}


def test_an_invalid_job_is_reported_what_it_lacks() -> None:
    objects = [*WORLD, pod_group("j", min_member=3), pod("j-0", group="j", cpu=1)]
    decisions = decide(objects, "gang")
    assert decisions.records["default/j"].stage == Stage.VALIDATE.value
    assert reported(decisions) == "not valid: not enough pods for gang-scheduling: 1 of 3"


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ("Closed", "not enqueued: queue default is not open"),
        (
            "Open",
            ("not enqueued: over the limit of queue default: needs 9 CPU, limit 4"),
        ),
    ],
)
def test_a_job_that_was_not_admitted_is_reported_by_whom(state: str, sentence: str) -> None:
    objects = [queue("default", state=state), node("n1", cpu=4)]
    decisions = decide([*objects, *job(cpu=9, min_resources={"cpu": 9})], "gang", "proportion")
    assert decisions.records["default/j"].stage == Stage.ENQUEUE.value
    assert reported(decisions) == sentence


@pytest.mark.parametrize("policy", ["capacity", "overcommit"])
def test_a_job_that_was_not_admitted_is_reported_every_short_resource(policy: str) -> None:
    objects = [queue("default"), node("n1", cpu=4, memory="1Gi")]
    wanted = {"cpu": 9, "memory": "3Gi"}
    decisions = decide([*objects, *job(cpu=9, min_resources=wanted)], "gang", policy)
    sentence = reported(decisions)
    cpu, memory = ("limit 4", "limit 1Gi") if policy == "capacity" else ("limit 4.8", "limit 1.2Gi")
    assert f"needs 9 CPU, {cpu}" in sentence
    assert f"; needs 3Gi memory, {memory}" in sentence


def test_a_resource_that_no_node_has_is_reported_so() -> None:
    objects = [queue("default"), node("n1", cpu=4)]
    gpu = {"requests": {"cpu": "1", "example.com/gpu": "1"}}
    spec = {"containers": [{"name": "main", "resources": gpu}]}
    decisions = decide(
        [*objects, pod_group("j"), pod("j-0", group="j", spec=spec)], "gang", "proportion"
    )
    assert reported(decisions) == (
        "over the limit of queue default: needs 1 example.com/gpu, limit 0; "
        "no node has any example.com/gpu"
    )


def test_tasks_beyond_the_gang_are_reported_why_they_wait() -> None:
    objects = [
        *WORLD,
        pod_group("j", min_member=1),
        *(pod(f"j-{i}", group="j", cpu=3) for i in "01"),
    ]
    decisions = decide(objects, "gang")
    assert list(decisions.binds) == ["default/j-0"]
    assert reported(decisions).startswith("no node fits default/j-1: ")
    assert "short" not in reported(decisions).partition("idle")[2]


def test_a_job_that_no_action_looked_at_is_not_said_to_be_refused() -> None:
    assert reported(decide([*WORLD, *job(cpu=1)], "gang", actions="enqueue")) == (
        "no configured action places its pods"
    )


def test_a_job_with_nothing_to_wait_for_is_reported_nothing() -> None:
    decisions = decide([*WORLD, *job(cpu=1)], "gang")
    assert decisions.explanations == {}
    assert decisions.records["default/j"].reason == Why.SCHEDULED.value


def test_a_job_of_a_misplaced_queue_has_a_condition_that_says_why() -> None:
    """One without a parent stops; its neighbour does not."""
    objects = [
        node("n1", cpu=16),
        queue("root"),
        queue("good", parent="root"),
        queue("lost", parent="nowhere"),
        *job("a", cpu=1, queue="lost"),
        *job("b", cpu=1, queue="good"),
    ]
    tree = "    enableHierarchy: true\n"
    for plugins in (("gang", "capacity"), ("capacity", "gang"), ("capacity",)):
        decisions = decide(objects, *plugins, switches=tree)
        (condition,) = decisions.pod_groups["default/a"].conditions
        assert (condition.type, condition.status) == ("Unschedulable", "True")
        assert "queue lost is misplaced: there is no queue 'nowhere'" in condition.message
        assert list(decisions.binds) == ["default/b-0"]


def test_a_job_is_asked_about_while_something_of_it_is_missing() -> None:
    ssn = open_session(
        [
            *WORLD,
            pod_group("runs", phase="Running"),
            pod("runs-0", group="runs", cpu=1, node="n1"),
            pod_group("empty", phase="Pending"),
            pod_group("done", phase="Running"),
            *job("waits", cpu=1, phase="Inqueue"),
            *job("promised", cpu=1, phase="Inqueue"),
        ],
        actions=("enqueue", "allocate"),
    )
    rows, tasks = ssn.snapshot.jobs.row_of, ssn.snapshot.tasks.row_of
    ssn.snapshot.pipeline(tasks["default/promised-0"], 0)
    no_action = "no configured action places its pods"
    wanted = {
        "runs": "",
        "empty": "not enqueued yet",
        "done": "",
        "waits": no_action,
        "promised": no_action,
    }
    for name, sentence in wanted.items():
        found = waiting.waiting_reason(ssn, ssn.job(rows[f"default/{name}"]))
        assert (name, found) == (name, sentence)


@pytest.mark.parametrize(
    ("least", "given_up", "why", "short"),
    [
        (1, 0, Why.QUEUE_OVERUSED, 0),
        (3, 0, Why.QUEUE_OVERUSED, 0),
        (1, 0, Why.OVER_QUOTA, 0),
        (2, 0, Why.OVER_QUOTA, 1),
        (3, 0, Why.OVER_QUOTA, 2),
        (3, 1, Why.OVER_QUOTA, 1),
        (3, 2, Why.OVER_QUOTA, 0),
    ],
)
def test_a_gang_is_told_how_many_it_lacks_for_want_of_room(
    least: int, given_up: int, why: Why, short: int
) -> None:
    """One of the gang runs already."""
    runs = pod("j-9", group="j", cpu=1, node="n1")
    ssn = open_session([*WORLD, *job(cpu=1, pods=3, phase="Inqueue"), runs])
    ssn.snapshot.jobs.min_member[0] = least
    row_of, place = ssn.snapshot.tasks.row_of, Place(0, pipelined=False)
    ssn.records.given_up |= {row_of[f"default/j-{i}"]: place for i in range(given_up)}
    ssn.records.note(0, Stage.QUOTA, why, queue=0)
    sentence = waiting.waiting_reason(ssn, ssn.job(0))
    assert sentence.startswith("queue default ")
    tail = f"; the gang of {least} is short by {short}"
    assert sentence.endswith(tail) == bool(short)
    assert ("short by" in sentence) == bool(short)


def test_a_job_that_was_not_admitted_for_a_reason_says_so_first() -> None:
    ssn = open_session([*WORLD, *job(cpu=1)])
    ssn.records.note(0, Stage.ENQUEUE, Why.QUEUE_CLOSED, queue=0)
    assert waiting.waiting_reason(ssn, ssn.job(0)) == ("not enqueued: queue default is not open")
    ssn.records.note(0, Stage.ENQUEUE, Why.NOT_ENQUEUED)
    assert waiting.waiting_reason(ssn, ssn.job(0)) == (
        "not enqueued: queue its queue or the cluster is full"
    )


def test_pods_behind_gates_are_said_to_be_held_back() -> None:
    gated = pod("j-0", group="j", cpu=1, spec={"schedulingGates": [{"name": "x"}]})
    ssn = open_session([*WORLD, pod_group("j", phase="Inqueue"), gated])
    assert waiting.waiting_reason(ssn, ssn.job(0)) == "pods are held back by scheduling gates"
