"""One placing round of a job: which tasks are tried, on which nodes, and when it stops."""

from collections import deque
from typing import Any

import numpy as np
import pytest

from pumice.core.resources import CPU
from pumice.core.status import Status
from pumice.core.views import Job, Task
from pumice.framework.job_placement import JobMemory, JobPlacement, can_still_start
from pumice.framework.job_records import NoNode, Record, Records, Stage
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Reason, Refusal, Why
from pumice.framework.roles import READY, count_roles, meets_minima, minima, roles_ready
from pumice.plugins.predicates import Predicates
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session


class Round:
    """A job whose tasks are placed in the order of their names."""

    def __init__(self, *pods: Any, cpus: Any = (4, 4), plugins: Any = (), **group: Any) -> None:
        nodes = [node(f"n{i}", cpu=cpu) for i, cpu in enumerate(cpus)]
        made = [queue("default"), *nodes, pod_group("g", **group), *pods]
        self.ssn = open_session(made, [*plugins])
        self.snapshot = self.ssn.snapshot
        self.memory = JobMemory()
        self.rows = {
            name.partition("/")[2]: row for name, row in self.snapshot.tasks.row_of.items()
        }

    def run(self, *names: str, enough: int = 10**6, **options: Any) -> dict[str, Any]:
        """Place tasks; return the node of each, and a star where room is only promised."""
        tasks = self.snapshot.tasks

        def is_done() -> bool:
            held = np.isin(tasks.status[: tasks.n], [Status.ALLOCATED, Status.PIPELINED])
            return bool(held.sum() >= enough)

        self.left = deque(self.rows[name] for name in names)
        placement = JobPlacement(self.ssn, 0, self.left, self.memory, is_done, **options)
        placement.run(self.ssn.statement())
        where = {}
        for name in names:
            row = self.rows[name]
            if tasks.node[row] >= 0:
                promised = "*" if tasks.status[row] == Status.PIPELINED else ""
                where[name] = f"n{tasks.node[row]}{promised}"
        return where


def gang(n: int, **more: Any) -> list[Any]:
    return [pod(f"p{i}", group="g", **({"cpu": 2} | more)) for i in range(n)]


class Lowest(Plugin, name="lowest"):
    """Prefers nodes of a low row; refuses what the test says."""

    reasons = (Reason("closed"), Reason("gone", curable=False))
    closed: tuple[tuple[str, int], ...] = ()
    refused: tuple[str, ...] = ()
    without_node: tuple[str, ...] = ()
    asked: list[str]

    def score_nodes(self, task: Any, nodes: Any) -> Any:
        return -np.asarray(nodes.index, dtype=float)

    def vary_by(self, task: Any) -> Any:
        return task.name

    def filter_nodes(self, task: Any, nodes: Any) -> Any:
        return np.array([(task.name, int(row)) not in self.closed for row in nodes.index])

    def filter_task(self, task: Any) -> Any:
        return Reason("no disk") if task.name in self.without_node else None

    def allocatable(self, queue: Any, task: Any) -> bool:
        return task.name not in self.refused


def lowest(**settings: Any) -> Lowest:
    plugin = Lowest()
    for name, value in settings.items():
        setattr(plugin, name, value)
    return plugin


def test_tasks_are_placed_in_order_while_there_is_room() -> None:
    found = Round(*gang(5), min_member=1, plugins=[lowest()])
    assert found.run("p0", "p1", "p2", "p3", "p4") == dict(
        zip(("p0", "p1", "p2", "p3"), ("n0", "n0", "n1", "n1"), strict=True)
    )
    assert list(found.left) == []


@pytest.mark.parametrize("enough", [1, 2, 3])
def test_a_round_ends_when_the_job_is_done(enough: int) -> None:
    found = Round(*gang(4), min_member=1, plugins=[lowest()])
    names = ["p0", "p1", "p2", "p3"]
    assert list(found.run(*names, enough=enough)) == names[:enough]
    assert list(found.left) == [found.rows[name] for name in names[enough:]]


def test_room_that_is_being_freed_is_promised() -> None:
    old = [pod(f"old{i}", cpu=4, node=f"n{i}", group="g") for i in range(2)]
    found = Round(*gang(2), *old, min_member=1, plugins=[lowest()])
    found.snapshot.evict(found.rows["old1"])
    assert found.run("p0", "p1") == {"p0": "n1*", "p1": "n1*"}


def test_only_allowed_nodes_are_used_and_counted() -> None:
    found = Round(*gang(2), cpus=(4, 2, 4), min_member=1, plugins=[lowest()])
    allowed = np.array([False, True, False])
    assert found.run("p0", "p1", allowed=allowed) == {"p0": "n1"}
    assert sum(found.ssn.records.no_fit[found.rows["p1"]].values()) == 1


@pytest.mark.parametrize(
    ("allowed", "closed", "wanted"),
    [
        (None, (), "n1"),
        ([True, False], (), "n0"),
        (None, (("p0", 1),), "n0"),
    ],
)
def test_the_nominated_node_is_tried_first(allowed: Any, closed: Any, wanted: str) -> None:
    nominated = pod("p0", group="g", cpu=2, nominated_node="n1")
    found = Round(nominated, min_member=1, plugins=[lowest(closed=closed)])
    mask = None if allowed is None else np.array(allowed)
    assert found.run("p0", allowed=mask) == {"p0": wanted}


def test_a_role_that_found_no_node_is_not_tried_again_and_others_are() -> None:
    pods = [
        pod("a0", group="g", role="a", cpu=9),
        pod("b0", group="g", role="b", cpu=1),
        pod("a1", group="g", role="a", cpu=1),
        pod("x0", group="g", cpu=9),
        pod("x1", group="g", cpu=1),
    ]
    found = Round(*pods, min_member=1, plugins=[lowest()])
    assert found.run("a0", "b0", "a1", "x0", "x1") == {"b0": "n0", "x1": "n0"}
    roles = found.snapshot.roles
    assert {roles[row] for row in found.memory.failed_roles} == {"a"}
    records = found.ssn.records
    assert records.no_fit[found.rows["a1"]] == {}
    assert records.barred[found.rows["a1"]] is None
    assert sum(records.no_fit[found.rows["x0"]].values()) == 2


def test_a_gang_that_cannot_become_ready_stops_at_the_first_task_without_a_node() -> None:
    pods = [pod("p0", group="g", cpu=9), pod("p1", group="g", cpu=1)]
    assert Round(*pods, min_member=2, plugins=[lowest()]).run("p0", "p1") == {}
    assert Round(*pods, min_member=1, plugins=[lowest()]).run("p0", "p1") == {"p1": "n0"}


@pytest.mark.parametrize("goes_on", [False, True])
def test_the_caller_may_decide_whether_to_go_on(goes_on: bool) -> None:
    pods = [pod("p0", group="g", cpu=9), pod("p1", group="g", cpu=1)]
    for least in (1, 2):
        found = Round(*pods, min_member=least, plugins=[lowest()])
        placed = found.run("p0", "p1", goes_on=lambda: goes_on)
        assert placed == ({"p1": "n0"} if goes_on else {})


def test_a_task_that_its_queue_refuses_is_skipped_and_the_round_goes_on() -> None:
    found = Round(*gang(2), min_member=2, plugins=[lowest(refused=("p0",))])
    assert found.run("p0", "p1") == {"p1": "n0"}
    record = found.ssn.records.by_job[0]
    assert (record.stage, record.why) == (Stage.QUOTA, Why.OVER_QUOTA)
    assert record.numbers == {"task": "default/p0", "queue": 0}
    assert found.rows["p0"] not in found.ssn.records.no_fit


def test_a_task_that_fits_no_node_at_all_says_so_of_each() -> None:
    found = Round(*gang(2), min_member=1, plugins=[lowest(without_node=("p0",))])
    assert found.run("p0", "p1") == {"p1": "n0"}
    assert found.ssn.records.no_fit[found.rows["p0"]] == {"no disk": 2}
    found = Round(*gang(1), cpus=(4, 4, 4), plugins=[lowest(without_node=("p0",))])
    found.run("p0", allowed=np.array([True, False, True]))
    assert found.ssn.records.no_fit[found.rows["p0"]] == {"no disk": 2}


def test_every_placement_is_reported_to_a_caller_who_asks() -> None:
    found, told = Round(*gang(6), cpus=(8, 8), min_member=1, plugins=[lowest()]), []
    names = [f"p{i}" for i in range(6)]
    found.run(*names, on_placed=lambda row, at: told.append((row, at)))
    assert told == [(found.rows[name], i // 4) for i, name in enumerate(names)]


def test_where_placing_changes_the_order_the_next_task_is_chosen_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first goes as it stands; of those left the last comes next."""
    found, told = Round(*gang(5), cpus=(32,), min_member=1, plugins=[lowest()]), []
    monkeypatch.setattr(found.ssn.ordering, "moves_tasks", lambda _: True)
    monkeypatch.setattr(found.ssn.ordering, "first_task", max)
    names = [f"p{i}" for i in range(5)]
    found.run(*names, on_placed=lambda row, _: told.append(row))
    assert told == [found.rows[name] for name in ("p0", "p4", "p3", "p2", "p1")]


# Remembered refusals


class Opening(Plugin, name="opening"):
    """Closes node n0 to the first task only."""

    reasons = (Reason("closed"),)

    def filter_nodes(self, task: Any, nodes: Any) -> Any:
        return (nodes.index != 0) | (task.name != "p0")

    def vary_by(self, task: Any) -> Any:
        return task.name

    def score_nodes(self, task: Any, nodes: Any) -> Any:
        return -np.asarray(nodes.index, dtype=float)


SPREAD = {
    "topologySpreadConstraints": [
        {"maxSkew": 5, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    ]
}


@pytest.mark.parametrize(
    ("role", "spec", "remember", "wanted"),
    [
        ("w", SPREAD, True, "n1"),
        ("w", SPREAD, False, "n0"),
        (None, SPREAD, True, "n0"),
        ("w", {}, True, "n1"),
        ("w", {}, False, "n0"),
    ],
)
def test_a_node_that_refused_a_role_is_not_asked_again(
    role: Any, spec: Any, remember: bool, wanted: str
) -> None:
    """Also if the tasks differ by nothing but what a plugin tells apart."""
    pods = [pod(f"p{i}", group="g", role=role, cpu=1, spec=spec) for i in range(2)]
    found = Round(*pods, min_member=1, plugins=[Opening()])
    placed = found.run("p0", "p1", remember_errors=remember)
    assert placed == {"p0": "n1", "p1": wanted}


@pytest.mark.parametrize(("remember", "wanted"), [(True, "n1"), (False, "n0")])
def test_a_role_of_different_tasks_is_refused_by_nodes_together(
    remember: bool, wanted: str
) -> None:
    pods = [pod("p0", group="g", role="w", cpu=2), pod("p1", group="g", role="w", cpu=1)]
    found = Round(*pods, min_member=1, plugins=[Opening()])
    assert found.run("p0", "p1", remember_errors=remember) == {"p0": "n1", "p1": wanted}
    assert (found.memory.mixed_roles is not None) == remember


def test_where_refusals_are_remembered_only_allowed_nodes_are_used() -> None:
    pods = [pod(f"p{i}", group="g", role="w", cpu=1, spec=SPREAD) for i in range(2)]
    found = Round(*pods, cpus=(4, 4, 4), min_member=1, plugins=[Opening()])
    allowed = np.array([True, False, True])
    assert found.run("p0", "p1", allowed=allowed) == {"p0": "n2", "p1": "n2"}


def test_tasks_of_a_role_are_left_while_one_of_them_is() -> None:
    pods = [pod(f"p{i}", group="g", role=role, cpu=1) for i, role in enumerate("aab")]
    found = Round(*pods, min_member=1, plugins=[lowest()])
    roles = {name: found.snapshot.roles.index(name) for name in "ab"}
    for names, wanted in ((["p0", "p2"], "ab"), (["p1"], "a"), (["p2"], "b"), ([], "")):
        left = deque(found.rows[name] for name in names)
        placement = JobPlacement(found.ssn, 0, left, found.memory, lambda: False)
        assert "".join(name for name, row in roles.items() if placement._has_more(row)) == wanted


HOST = "kubernetes.io/hostname"


@pytest.mark.parametrize("n", [4, 6])
@pytest.mark.parametrize("others", [0, 2])
def test_gangs_that_keep_apart_are_placed_as_one_by_one_with_others_of_their_role(
    n: int, others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where refusals are remembered and a role has more tasks, its run is not kept."""
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "x"}}}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    apart = {"affinity": {"podAntiAffinity": {required: [term]}}}
    for role, other in (("w", "w"), ("w", "v")):
        pods = [
            pod(f"p{i}", group="g", role=role, cpu=1, labels={"app": "x"}, spec=apart)
            for i in range(n)
        ]
        pods += [pod(f"q{i}", group="g", role=other, cpu=1) for i in range(others)]
        names = [one["metadata"]["name"] for one in pods]
        found = []
        for runs in (True, False):
            with monkeypatch.context() as patch:
                if not runs:
                    patch.setattr(JobPlacement, "_run_of_equals", lambda *_: False)
                made = Round(*pods, cpus=(4, 4, 4, 4, 4), min_member=1, plugins=[Predicates()])
                found.append(made.run(*names))
        assert found[0] == found[1]
        assert len(found[0]) >= min(n, 5)


class Level(Plugin, name="level"):
    """Prefers nodes of a low row, whatever they hold."""

    foreseeable = True

    def score_nodes(self, task: Any, nodes: Any) -> Any:
        return -np.asarray(nodes.index, dtype=float)


@pytest.mark.parametrize("as_run", [True, False])
@pytest.mark.parametrize(
    ("allowed", "wanted"),
    [(None, "n1"), ([True, True, True], "n1"), ([True, False, True], "n2")],
)
def test_a_run_stays_off_nodes_that_refused_its_role_even_if_they_open_again(
    allowed: Any, wanted: str, as_run: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zone a is full of others for the first of the role; that one makes it even again."""
    if not as_run:
        monkeypatch.setattr(JobPlacement, "_run_of_equals", lambda *_: False)
    even = {
        "maxSkew": 3,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    nodes = [node(f"n{i}", cpu=32, labels={"zone": zone}) for i, zone in enumerate("abb")]
    old = [
        pod(f"old{i}", cpu=1, node=f"n{i // 4}", labels={"app": "x"}, group="g") for i in range(5)
    ]
    first = [pod(f"a{i}", group="g", role="a", cpu=1) for i in range(4)]
    spread: dict[str, Any] = {"labels": {"app": "x"}, "spec": {"topologySpreadConstraints": [even]}}
    then = [pod(f"b{i}", group="g", role="b", cpu=1, **spread) for i in range(6)]
    found = Round(
        *nodes, *old, *first, *then, cpus=(), min_member=1, plugins=[Predicates(), Level()]
    )
    names = [one["metadata"]["name"] for one in first + then]
    mask = None if allowed is None else np.array(allowed)
    assert found.run(*names, allowed=mask) == {
        name: "n0" if name.startswith("a") else wanted for name in names
    }


@pytest.mark.parametrize("as_run", [True, False])
@pytest.mark.parametrize("remember", [True, False])
def test_pods_placed_in_a_run_count_once_for_those_after_them(
    as_run: bool, remember: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four pods three go to zone a; a fifth may make it four against one."""
    if not as_run:
        monkeypatch.setattr(JobPlacement, "_run_of_equals", lambda *_: False)
    spread: dict[str, Any] = {"labels": {"app": "x"}, "spec": {}}
    spread["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 3,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "x"}},
        }
    ]
    nodes = [node(f"n{i}", cpu=32, labels={"zone": zone}) for i, zone in enumerate("ab")]
    pods = [pod(f"p{i}", group="g", role="w", cpu=1, **spread) for i in range(4)]
    pods.append(pod("p4", group="g", role="v", cpu=2, **spread))
    found = Round(*nodes, *pods, cpus=(), min_member=1, plugins=[Predicates(), Level()])
    names = [f"p{i}" for i in range(5)]
    placed = found.run(*names, remember_errors=remember)
    assert placed == dict(zip(names, ["n0", "n0", "n0", "n1", "n0"], strict=True))


# Whether a job can still start


def started(
    *, least: int, roles: Any, wanted: Any, failed: Any, placed: int = 0, idle: int = 0
) -> bool:
    pods = [
        pod(f"p{i}", group="g", role=role, cpu=None if i < idle else 1)
        for i, role in enumerate(roles)
    ]
    found = Round(*pods, cpus=(32,), min_member=least, min_task_member=wanted)
    for i in range(placed):
        found.snapshot.place(found.rows[f"p{i}"], 0)
    names = found.snapshot.roles
    rows = {-1 if name is None else names.index(name) for name in failed}
    return can_still_start(Job(found.snapshot, 0), rows)


@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        ({"least": 1, "roles": "a", "wanted": {}, "failed": "a"}, False),
        ({"least": 3, "roles": "aab", "wanted": {}, "failed": "a"}, False),
        ({"least": 2, "roles": "aab", "wanted": {}, "failed": "a"}, True),
        ({"least": 2, "roles": "aab", "wanted": {"a": 2}, "failed": "a"}, False),
        ({"least": 2, "roles": "aab", "wanted": {"a": 2}, "failed": "b"}, True),
        ({"least": 2, "roles": "aab", "wanted": {"a": 2}, "failed": "a", "placed": 1}, False),
        ({"least": 2, "roles": "aab", "wanted": {"a": 2}, "failed": "a", "placed": 2}, True),
        ({"least": 2, "roles": "aab", "wanted": {"a": 1}, "failed": "a", "idle": 1}, True),
        ({"least": 2, "roles": "aab", "wanted": {"b": 1}, "failed": "ab"}, False),
        ({"least": 2, "roles": "aabb", "wanted": {"a": 2, "b": 1}, "failed": "a"}, True),
        ({"least": 2, "roles": "aab", "wanted": {"a": 2, "b": 1}, "failed": "a"}, False),
        (
            {"least": 2, "roles": "aab", "wanted": {"a": 2, "b": 1}, "failed": "a", "placed": 1},
            True,
        ),
        ({"least": 2, "roles": "aab", "wanted": {"a": 2}, "failed": [None]}, True),
    ],
)
def test_a_job_can_start_without_the_roles_that_failed(case: Any, wanted: bool) -> None:
    assert started(**case) == wanted


# Roles


@pytest.mark.parametrize(
    ("least", "wanted", "binding"),
    [(3, {"a": 2, "b": 1}, True), (4, {"a": 2, "b": 1}, True), (2, {"a": 2, "b": 1}, False)],
)
def test_minima_of_roles_bind_a_job_that_needs_as_many(
    least: int, wanted: Any, binding: bool
) -> None:
    found = Round(*gang(1), min_member=least, min_task_member=wanted)
    assert minima(Job(found.snapshot, 0)) == (wanted if binding else {})


def test_roles_are_counted_by_status() -> None:
    pods = [
        pod("a0", group="g", role="a", cpu=1),
        pod("a1", group="g", role="a", cpu=1),
        pod("b0", group="g", role="b"),
        pod("x0", group="g", cpu=1),
    ]
    found = Round(*pods, min_member=4, min_task_member={"a": 2, "b": 1})
    job, rows, snapshot = Job(found.snapshot, 0), found.rows, found.snapshot
    assert count_roles(job, READY) == {}
    assert count_roles(job, READY, pending_best_effort=True) == {"b": 1}
    snapshot.place(rows["a0"], 0)
    snapshot.place(rows["x0"], 0)
    assert count_roles(job, READY) == {"a": 1, "": 1}
    assert not roles_ready(job, pipelined=True)
    snapshot.pipeline(rows["a1"], 0)
    assert (roles_ready(job), roles_ready(job, pipelined=True)) == (False, True)
    assert count_roles(job, {Status.PIPELINED}) == {"a": 1}
    assert meets_minima({"a": 2}, {"a": 2})
    assert not meets_minima({"a": 2}, {"a": 2, "b": 1})


# Records


def record_of(records: Records) -> Record:
    return records.by_job[0]


def test_a_record_shows_what_is_needed_and_the_most_that_is_left() -> None:
    found = Round(*gang(1, memory="1Gi"), cpus=(1, 3, 8))
    task, records = Task(found.snapshot, found.rows["p0"]), found.ssn.records
    short = np.array([True, True, True])
    found.snapshot.nodes.books[0, CPU, 1] = 1999.95
    records.no_node(task, NoNode({"full": 3}, short=short))
    numbers = record_of(records).numbers
    assert numbers["need"] == {"cpu": 2000, "memory": 2.0**30}
    assert numbers["idle"] == {"cpu": 1000}, "less than a step is no lack"
    assert (numbers["task"], numbers["nodes"]) == ("default/p0", {"full": 3})
    assert "nearest" not in numbers
    records.no_node(task, NoNode({"full": 3}))
    assert record_of(records).numbers["idle"] == {}


def test_the_node_that_lacks_least_is_named_for_a_job_that_is_watched() -> None:
    found = Round(*gang(1, memory="1Gi"), cpus=(1, 1.5, 0))
    task, records = Task(found.snapshot, found.rows["p0"]), found.ssn.records
    records.watched = frozenset({0})
    records.no_node(task, NoNode({"full": 3}, short=np.array([True, True, True])))
    numbers = record_of(records).numbers
    assert (numbers["nearest"], numbers["lacks"]) == ("n1", {"cpu": 500})
    records.no_node(task, NoNode({"full": 3}, short=np.array([True, False, True])))
    assert record_of(records).numbers["nearest"] == "n0"
    records.no_node(task, NoNode({"full": 3}, short=np.zeros(3, dtype=bool)))
    assert "nearest" not in record_of(records).numbers


def test_the_reason_of_a_plugin_takes_precedence_and_the_last_record_counts() -> None:
    records = Round(*gang(1)).ssn.records
    records.note_refused(0, Stage.QUOTA, False, Why.OVER_QUOTA, task="t")
    assert (record_of(records).why, record_of(records).code) == (Why.OVER_QUOTA, None)
    no = Refusal(Why.PLUGIN_FAILED, {"problem": "x"})
    records.note_refused(0, Stage.ENQUEUE, no, Why.OVER_QUOTA, task="t")
    record = record_of(records)
    assert (record.why, record.numbers, record.code) == (
        no.why,
        {"task": "t", "problem": "x"},
        no.code,
    )
    records.note(0, Stage.DONE, Why.SCHEDULED)
    assert record_of(records).stage is Stage.DONE
    assert set(records.stops[0]) == {Stage.QUOTA, Stage.ENQUEUE}


def test_the_first_turn_of_a_job_counts() -> None:
    records = Round(*gang(1)).ssn.records
    for job in (4, 2, 4, 7):
        records.take_turn(job)
    assert records.turns == {4: 0, 2: 1, 7: 2}
