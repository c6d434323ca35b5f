"""How answers of several plugins become one, tier by tier."""

from typing import Any

import numpy as np
import pytest

from pumice.api.decisions import Annotate, Bind, LockNode, Reserve
from pumice.api.devices import ClaimReservation
from pumice.errors import PluginError
from pumice.framework.plugin import ABSTAIN, PERMIT, REJECT, Plugin, Reason
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session, snapshot_of

CLUSTER = [
    queue("default"),
    node("n0", cpu=8),
    pod_group("job", phase="Inqueue"),
    pod("waits", group="job", cpu=1),
    *(pod(f"runs-{i}", group="job", cpu=1, node="n0") for i in range(4)),
]
RUNNING = [1, 2, 3, 4]


def saying(**answers: Any) -> Any:
    """Make a plugin whose hooks return fixed answers."""
    members = {hook: lambda self, *args, a=answer: a for hook, answer in answers.items()}
    return type("Saying", (Plugin,), members, name="saying")()


def masks(hook: Any, *rows_of_tiers: Any) -> Any:
    """Open a session where each tier is a list of masks, written as rows that may go."""
    tiers = []
    for tier in rows_of_tiers:
        answers = [None if rows is None else np.isin(RUNNING, rows) for rows in tier]
        tiers.append([saying(**{hook: answer}) for answer in answers])
    return open_session(CLUSTER, *tiers)


VOTES = {
    "nobody asked": ([], True),
    "all abstain": ([[ABSTAIN, ABSTAIN]], True),
    "a permit": ([[PERMIT]], True),
    "a reject": ([[REJECT]], False),
    "a reject beats a permit of its tier": ([[PERMIT, REJECT]], False),
    "a permit ends the vote before the next tier": ([[PERMIT], [REJECT]], True),
    "an abstention does not": ([[ABSTAIN], [REJECT]], False),
}


@pytest.mark.parametrize("hook", ["job_enqueueable", "job_pipelined"])
@pytest.mark.parametrize(("tiers", "wanted"), VOTES.values(), ids=VOTES)
def test_votes(tiers: Any, wanted: Any, hook: str) -> None:
    ssn = open_session(CLUSTER, *[[saying(**{hook: vote}) for vote in tier] for tier in tiers])
    assert wanted == getattr(ssn.policy, hook)(0)


def test_what_a_bind_needs_comes_before_it() -> None:
    ssn = open_session([*CLUSTER, *(pod(f"p{i}", group="job", cpu=1) for i in range(3))])
    intents, rows = ssn.intents, ssn.snapshot.tasks.row_of
    claims = (ClaimReservation(claim="default/c", uid="u"),)
    first, second, third = (rows[f"default/p{i}"] for i in range(3))
    intents.annotate(first, {"a": "1"})
    intents.annotate(first, {"b": "2"})
    intents.lock_node(first, "x")
    intents.lock_node(first, "y")
    intents.reserve(second, claims)
    intents.annotate(third, {"c": "3"})
    intents.lock_node(third, "z")
    intents.drop_annotations(third)
    intents.announce([second, first, third], [0, 0, 0])
    assert intents.made == [
        Reserve("default/p1", claims),
        Bind("default/p1", "n0"),
        Annotate("default/p0", {"a": "1", "b": "2"}),
        LockNode("default/p0", ("x", "y")),
        Bind("default/p0", "n0"),
        Bind("default/p2", "n0"),
    ]


ALL_AGREE = {
    "nobody asked": ([], True),
    "all say yes": ([[True], [True]], True),
    "one says no": ([[True], [False]], False),
}


@pytest.mark.parametrize(("tiers", "wanted"), ALL_AGREE.values(), ids=ALL_AGREE)
def test_all_must_agree(tiers: Any, wanted: Any) -> None:
    answers = [
        [saying(job_ready=yes, allocatable=yes, preemptive=yes) for yes in tier] for tier in tiers
    ]
    ssn = open_session(CLUSTER, *answers)
    task = ssn.task(0)
    assert wanted == ssn.policy.job_ready(0)
    assert wanted == ssn.policy.allocatable(0, task)
    assert wanted == ssn.policy.preemptive(0, task.request[:, 0])


def test_the_first_reason_against_a_job_is_reported() -> None:
    ssn = open_session(
        CLUSTER, [saying(job_valid=""), saying(job_valid="one")], [saying(job_valid="two")]
    )
    assert ssn.policy.job_valid(0) == "one"
    assert open_session(CLUSTER, [saying(job_valid="")]).policy.job_valid(0) == ""


def test_the_first_reason_against_a_task_is_reported() -> None:
    ssn = open_session(CLUSTER, [saying(filter_task=None)], [saying(filter_task=Reason("first"))])
    assert ssn.policy.filter_task(ssn.task(0)) == Reason("first")


def test_one_plugin_is_enough_to_call_a_queue_overused() -> None:
    assert not open_session(CLUSTER).policy.overused(0)
    assert not open_session(CLUSTER, [saying(overused=False)]).policy.overused(0)
    assert open_session(CLUSTER, [saying(overused=False)], [saying(overused=True)]).policy.overused(
        0
    )


STARVING = {
    "nobody asked": ([], False),
    "the first tier agrees": ([[True, True], [False]], True),
    "the first tier does not": ([[True, False], [True]], False),
}


@pytest.mark.parametrize(("tiers", "wanted"), STARVING.values(), ids=STARVING)
def test_the_first_tier_decides_who_starves(tiers: Any, wanted: Any) -> None:
    ssn = open_session(CLUSTER, *[[saying(job_starving=yes) for yes in tier] for tier in tiers])
    assert wanted == ssn.policy.job_starving(0)


INTERSECT = {
    "nobody asked": ([], []),
    "one plugin": ([[[1, 2]]], [1, 2]),
    "two plugins of a tier": ([[[1, 2], [2, 3]]], [2]),
    "no opinion counts for nothing": ([[None, [2, 3], None]], [2, 3]),
    "only no opinions": ([[None], [[4]]], [4]),
    "the first tier with victims decides": ([[[1]], [[2]]], [1]),
    "an empty answer ends its tier": ([[[1], [], [3]], [[4]]], [4]),
    "an intersection that runs empty is forgotten": ([[[1], [2], [3]]], [3]),
    "and leaves the tier without victims if it was the last": ([[[1], [2]], [[4]]], [4]),
}


@pytest.mark.parametrize("hook", ["preemptable", "reclaimable", "gang_evictable"])
@pytest.mark.parametrize(("tiers", "wanted"), INTERSECT.values(), ids=INTERSECT)
def test_victims_are_intersected_within_a_tier(tiers: Any, wanted: Any, hook: str) -> None:
    ssn = masks(hook, *tiers)
    assert wanted == getattr(ssn.policy, hook)(ssn.task(0), RUNNING)


UNION = {
    "nobody asked": ([], []),
    "united within a tier, each once": ([[[2, 1], [1, 3]]], [2, 1, 3]),
    "the first tier that names any decides": ([[[]], [[4]], [[1]]], [4]),
}


@pytest.mark.parametrize(("tiers", "wanted"), UNION.values(), ids=UNION)
def test_victims_of_policies_are_united(tiers: Any, wanted: Any) -> None:
    ssn = open_session(CLUSTER, *[[saying(victims=rows) for rows in tier] for tier in tiers])
    assert wanted == ssn.policy.victims(RUNNING)


def test_plugins_are_reported_when_a_session_opens_and_closes() -> None:
    reported = []

    class Listener(Plugin, name="listener"):
        def on_open(self, ssn: Any) -> None:
            reported.append(("open", ssn.snapshot.nodes.n))

        def on_enqueued(self, job: Any) -> None:
            reported.append(("enqueued", job.key))

        def on_close(self, ssn: Any) -> None:
            reported.append(("close", len(ssn.intents.made)))

    ssn = open_session(CLUSTER, [Listener()])
    ssn.policy.job_enqueued(0)
    ssn.close()
    assert reported == [("open", 1), ("enqueued", "default/job"), ("close", 0)]


def test_a_column_of_a_plugin_goes_through_the_journal() -> None:
    ssn = open_session(CLUSTER)
    column = ssn.add_node_column("mine", fill=2.0)
    ssn.journal.save(column, 0)
    column[0] = 5.0
    assert ssn.nodes().column("mine").tolist() == [5.0]
    ssn.snapshot.release_session()
    assert column.tolist() == [2.0]


class Columns(Plugin, name="columns"):
    """Add a node column and read it."""

    column = "columns_mine"

    def on_open(self, ssn: Any) -> None:
        ssn.add_node_column(self.column, fill=3.0)

    def score_nodes(self, task: Any, nodes: Any) -> Any:
        return nodes.column(self.column)


@pytest.mark.parametrize("taken", ["names", "view_pods", "row_of", "column"])
def test_a_column_with_a_name_of_the_node_table_is_refused(taken: str) -> None:
    class Taking(Columns, name="taking"):
        column = taken

    ssn = open_session(CLUSTER, [Taking(), Columns()])
    before = snapshot_of(CLUSTER).nodes
    (line,) = ssn.failures.lines()
    assert line.rpartition(" (")[0] == (
        "plugin taking failed in on_open: the table of nodes has a column "
        f"'{taken}' already; name yours after your plugin"
    )
    assert ssn.nodes().names.tolist() == ["n0"]
    assert np.array_equal(ssn.nodes().allocatable, before.allocatable[:, : before.n])
    assert ssn.nodes().column("columns_mine").tolist() == [3.0]


def test_a_column_of_another_plugin_is_refused() -> None:
    class Second(Columns, name="second"):
        pass

    ssn = open_session(CLUSTER, [Columns(), Columns(), Second()])
    (line,) = ssn.failures.lines()
    assert line.rpartition(" (")[0] == (
        "plugin second failed in on_open: plugin 'columns' has a column 'columns_mine' already; "
        "name yours after your plugin"
    )


def test_a_column_of_a_plugin_ends_with_the_session() -> None:
    ssn = open_session(CLUSTER, [Columns()])
    ssn.snapshot.release_session()
    with pytest.raises(PluginError, match="there is no node column 'columns_mine'; on_open adds"):
        ssn.nodes().column("columns_mine")


def test_a_session_knows_only_jobs_whose_group_and_queue_exist() -> None:
    ssn = open_session(
        [
            queue("default"),
            pod_group("good"),
            pod_group("stray", queue="nowhere"),
            pod("orphan", group="groupless"),
        ]
    )
    assert [ssn.job(row).key for row in ssn.jobs()] == ["default/good"]


def test_pending_tasks_leave_out_what_a_gate_holds_back() -> None:
    gate = {"schedulingGates": [{"name": "wait"}]}
    ssn = open_session(
        [
            queue("default"),
            node("n0"),
            pod_group("job"),
            pod("free", group="job"),
            pod("gated", group="job", spec=gate),
            pod("runs", group="job", node="n0"),
        ]
    )
    assert [ssn.task(row).name for row in ssn.pending_tasks(0)] == ["free"]


def test_phases_change_for_the_session_only() -> None:
    ssn = open_session([queue("default"), pod_group("job", phase="Pending")])
    assert ssn.is_pending(0)
    assert ssn.pending_jobs() == [0]
    ssn.set_phase(0, "Inqueue")
    assert not ssn.is_pending(0)
    assert ssn.pending_jobs() == []
    ssn.snapshot.release_session()
    assert ssn.is_pending(0)


def test_plugins_are_reported_as_they_are_opened_and_closed() -> None:
    class Opens(Plugin, name="opens"):
        def on_open(self, ssn: Any) -> None:
            self.opened = True

        def on_close(self, ssn: Any) -> None:
            self.opened = False

    told: list[tuple[str, str]] = []
    ssn = open_session([], [Opens()], plugged=lambda *one: told.append(one))
    assert told == [("", "OnSessionOpen"), ("opens", "OnSessionOpen")]
    ssn.close()
    assert told[2:] == [("", "OnSessionClose"), ("opens", "OnSessionClose")]
    assert (ssn.has_plugin("opens"), ssn.has_plugin("closes")) == (True, False)
