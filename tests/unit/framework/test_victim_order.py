"""The order of eviction, and how evictions change it."""

from dataclasses import dataclass
from typing import Any

import pytest

from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.resources import CPU
from pumice.core.snapshot import Snapshot
from pumice.framework.dispatch import Enabled
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.plugins.priority import Priority
from pumice.testing import node, pod, pod_group, priority_class, queue


@dataclass(kw_only=True)
class Hoard(Plugin, name="hoard"):
    """Jobs that hold little go first, so those that hold much lose tasks first."""

    def order_jobs(self, jobs: Any) -> Any:
        return jobs.allocated_or_pipelined[CPU]


def opened(*objects: Any, plugin: Any) -> Any:
    world = [node("n1", cpu=99), *objects]
    snapshot = Ingest(Snapshot()).load(map(from_manifest, world))
    return Session(snapshot, [[Enabled(plugin, {})]])


def group(name: Any, *cpus: Any, where: str = "q", of: Any = None, **more: Any) -> Any:
    made = pod_group(name, queue=where, priority_class=of, phase="Running")
    return [
        made,
        *(pod(f"{name}-w-{i}", group=name, cpu=c, node="n1", **more) for i, c in enumerate(cpus)),
    ]


def names(ssn: Any, rows: Any) -> Any:
    return [ssn.snapshot.tasks.keys[row].removeprefix("default/") for row in rows]


def ordered(ssn: Any, asker: str = "q") -> Any:
    rows = list(range(ssn.snapshot.tasks.n))
    return names(ssn, ssn.ordering.sort_victims(rows, ssn.snapshot.queues.row_of[asker]))


def test_inside_a_job_the_last_task_goes_first() -> None:
    ssn = opened(queue("q"), *group("a", 1, 1, 1), plugin=Priority())
    assert ordered(ssn) == ["a-w-2", "a-w-1", "a-w-0"]


def test_the_job_that_comes_last_gives_first() -> None:
    classes = [priority_class("low", value=1), priority_class("high", value=9)]
    world = [queue("q"), *classes, *group("a", 1, of="high"), *group("b", 1, of="low")]
    assert ordered(opened(*world, plugin=Priority())) == ["b-w-0", "a-w-0"]


def test_between_equal_jobs_the_order_of_tasks_decides_not_age() -> None:
    world = [queue("q"), *group("a", 1, priority=5), *group("b", 1, priority=3)]
    assert ordered(opened(*world, plugin=Priority())) == ["b-w-0", "a-w-0"]


def test_the_queue_that_comes_last_gives_first() -> None:
    old, new = "2026-01-15T08:00:00Z", "2026-01-15T09:00:00Z"
    world = [queue("q"), queue("x", created=old), queue("y", created=new)]
    world += [*group("a", 1, where="x"), *group("b", 1, where="y")]
    assert ordered(opened(*world, plugin=Priority())) == ["b-w-0", "a-w-0"]


@pytest.fixture
def hoards() -> Any:
    """Job a holds 6 cpu in three tasks, job b 5 in two."""
    world = [queue("q"), *group("a", 2, 2, 2), *group("b", "2500m", "2500m")]
    return opened(*world, plugin=Hoard())


def in_turn(ssn: Any) -> Any:
    rows = list(range(ssn.snapshot.tasks.n))
    return ssn.ordering.victims_in_turn(ssn.ordering.sort_victims(rows, 0), 0)


def test_an_eviction_moves_the_order_of_those_after_the_next(hoards: Any) -> None:
    """When the first task of a is gone b holds more, but a second one of a was already next."""
    stmt, taken = hoards.statement(), []
    for row in in_turn(hoards):
        stmt.evict(row, "preempt")
        taken += names(hoards, [row])
    assert taken == ["a-w-2", "a-w-1", "b-w-1", "b-w-0", "a-w-0"]


def test_without_evictions_the_order_stays(hoards: Any) -> None:
    assert names(hoards, in_turn(hoards)) == ordered(hoards)
