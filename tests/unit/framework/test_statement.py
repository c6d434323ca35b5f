"""A statement's moves happen together or not at all."""

from typing import Any

import pytest

from pumice.api.decisions import Bind, Evict
from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.framework.job_records import Place
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session

WORLD = [
    node("n1", cpu=4),
    queue("default"),
    pod_group("g", min_member=0),
    pod("runs", group="g", cpu=1, node="n1"),
    pod("a", group="g", cpu=1),
    pod("b", group="g", cpu=1),
]


@pytest.fixture
def ssn() -> Any:
    return Session(Ingest(Snapshot()).load(map(from_manifest, WORLD)), [])


@pytest.fixture
def row(ssn: Any) -> Any:
    return lambda name: ssn.snapshot.tasks.row_of[f"default/{name}"]


def status(ssn: Any, row: Any) -> Any:
    return Status(int(ssn.snapshot.tasks.status[row]))


def test_commit_hands_over_in_the_order_of_the_moves(ssn: Any, row: Any) -> None:
    stmt = ssn.statement()
    stmt.evict(row("runs"), "preempt", "default/a")
    stmt.pipeline(row("a"), 0, freed=True)
    stmt.place(row("b"), 0)
    stmt.commit()
    assert ssn.intents.made == [
        Evict("default/runs", "preempt", "default/a"),
        Bind("default/b", "n1"),
    ]
    assert status(ssn, row("b")) is Status.BINDING
    assert ssn.intents.nominations == {row("a"): 0}


def test_discard_takes_everything_back(ssn: Any, row: Any) -> None:
    before = ssn.snapshot.nodes.books.copy()
    stmt = ssn.statement()
    stmt.evict(row("runs"), "preempt")
    stmt.pipeline(row("a"), 0, freed=True)
    stmt.place(row("b"), 0)
    stmt.discard()
    assert ssn.intents.made == []
    assert ssn.intents.nominations == {}
    assert status(ssn, row("runs")) is Status.RUNNING
    assert (ssn.snapshot.nodes.books == before).all()


def test_a_rollback_goes_back_to_its_checkpoint_only(ssn: Any, row: Any) -> None:
    stmt = ssn.statement()
    stmt.place(row("a"), 0)
    here = stmt.checkpoint()
    stmt.place(row("b"), 0)
    stmt.rollback(here)
    stmt.commit()
    assert ssn.intents.made == [Bind("default/a", "n1")]
    assert status(ssn, row("b")) is Status.PENDING


def test_a_promise_taken_back_nominates_nobody(ssn: Any, row: Any) -> None:
    stmt = ssn.statement()
    stmt.pipeline(row("a"), 0, freed=True)
    stmt.commit()
    ssn.statement().unpipeline(row("a"))
    assert status(ssn, row("a")) is Status.PENDING
    assert ssn.intents.nominations == {row("a"): -1}


def test_who_gave_a_place_back_is_remembered_until_a_commit(ssn: Any, row: Any) -> None:
    stmt = ssn.statement()
    stmt.place(row("a"), 0)
    stmt.pipeline(row("b"), 0)
    stmt.discard()
    assert ssn.records.given_up == {
        row("a"): Place(0, pipelined=False),
        row("b"): Place(0, pipelined=True),
    }
    assert ssn.records.schedulable([row("a"), row("b")]) == [row("a")]
    again = ssn.statement()
    again.place(row("a"), 0)
    again.commit()
    assert ssn.records.given_up == {row("b"): Place(0, pipelined=True)}


def test_placements_can_be_listed_and_made_again(ssn: Any, row: Any) -> None:
    stmt = ssn.statement()
    here = stmt.checkpoint()
    stmt.place(row("a"), 0)
    stmt.pipeline(row("b"), 0)
    moves = stmt.moves_since(here)
    stmt.rollback(here)
    stmt.repeat(moves)
    assert [status(ssn, row(name)) for name in "ab"] == [Status.ALLOCATED, Status.PIPELINED]


def cells_after(ssn: Any) -> dict[str, Any]:
    """Copy what moves write: books, sums, counts, and the cells of tasks."""
    tables = ssn.snapshot
    found = {
        "books": tables.nodes.books,
        "pods": tables.nodes.view_pods,
        "nonzero": tables.nodes.view_nonzero,
        "status": tables.tasks.status,
        "node": tables.tasks.node,
        "in_view": tables.tasks.in_view,
        "counts": tables.jobs.counts,
        "jobs": tables.jobs.sums,
        "queues": tables.queues.sums,
        "namespaces": tables.namespaces.sums,
    }
    return {name: column.tolist() for name, column in found.items()}


class Follower(Plugin, name="follower"):
    """Writes down who is evicted."""

    def on_open(self, ssn: Any) -> None:
        self.seen: list[str] = []

    def on_evict(self, task: Any, node: Any) -> None:
        self.seen.append(task.key)


@pytest.mark.parametrize("live", [False, True], ids=["still view", "live view"])
def test_evictions_made_at_once_are_those_made_one_by_one(live: bool) -> None:
    others = [pod_group("h", min_member=0), pod("h0", group="h", cpu="500m", node="n1")]
    bound = pod("g0", group="g", cpu=1, node="n1", phase="Pending")
    ssn = open_session([*WORLD, *others, bound])
    ssn.snapshot.view_is_live = live
    tasks = [ssn.snapshot.tasks.row_of[f"default/{name}"] for name in ("h0", "runs", "g0")]
    before, stmt = cells_after(ssn), ssn.statement()
    for task in tasks:
        stmt.evict(task, "gangpreempt", "default/g")
    expected = cells_after(ssn)
    assert expected != before
    stmt.discard()
    stmt.evict_many(tasks, "gangpreempt", "default/g")
    assert cells_after(ssn) == expected
    stmt.commit()
    names = ["default/h0", "default/runs", "default/g0"]
    assert ssn.intents.made == [Evict(name, "gangpreempt", "default/g") for name in names]
    ssn.snapshot.release_session()
    assert cells_after(ssn)["books"] == before["books"]


def test_a_plugin_that_follows_evictions_hears_of_each() -> None:
    follower = Follower()
    ssn = open_session([*WORLD, pod("more", group="g", cpu=1, node="n1")], [follower])
    tasks = [ssn.snapshot.tasks.row_of[f"default/{name}"] for name in ("runs", "more")]
    ssn.statement().evict_many(tasks, "gangpreempt")
    assert follower.seen == ["default/runs", "default/more"]
