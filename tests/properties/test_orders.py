"""Orders that are kept: tasks that were put in order ahead, keys of jobs that did not move."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core.status import Status
from pumice.framework.plugin import Plugin
from pumice.plugins.drf import Drf
from pumice.plugins.gang import Gang
from pumice.plugins.priority import Priority
from pumice.testing import node, pod, pod_group, priority_class, queue
from pumice.testing.samples import open_session


class Undeclared(Plugin, name="undeclared"):
    """Orders tasks the other way round, and declares nothing."""

    def order_tasks(self, tasks: Any) -> Any:
        return tasks.priority.astype(float)


class Inside(Undeclared, name="inside"):
    """Declares its order of tasks, of which the second key counts inside a job only."""

    foreseeable = True

    def order_tasks(self, tasks: Any) -> Any:
        return [tasks.priority // 2.0, -(tasks.priority % 2.0)]


class Silent(Inside, name="silent"):
    """Orders the tasks of some jobs only."""

    foreseeable = False

    def order_tasks(self, tasks: Any) -> Any:
        return np.where(np.isin(tasks.job, (0, 2)), super().order_tasks(tasks), np.nan)


PLUGINS: list[list[type[Plugin]]] = [[], [Priority], [Inside], [Undeclared], [Silent], [Gang]]
JOBS = st.lists(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans()), min_size=1, max_size=5
    ),
    min_size=1,
    max_size=4,
)
"""Jobs of tasks: their priorities, ages, and whether their names end in a number."""


def waiting(jobs: Any) -> list[Any]:
    made: list[Any] = [queue("default"), node("n", cpu=64)]
    for j, tasks in enumerate(jobs):
        made.append(pod_group(f"g{j}", min_member=1, phase="Inqueue"))
        for k, (priority, second, numbered) in enumerate(tasks):
            name = f"g{j}-w-{len(tasks) - k if numbered else 'xyzuv'[k]}"
            age = f"2026-01-01T00:00:0{second}Z"
            made.append(pod(name, group=f"g{j}", cpu=1, priority=priority, created=age))
    return made


@settings(max_examples=120)
@given(jobs=JOBS, plugins=st.sampled_from(PLUGINS), data=st.data())
def test_tasks_sorted_ahead_have_the_order_they_would_have_later(
    jobs: Any, plugins: Any, data: st.DataObject
) -> None:
    ssn, plain = (open_session(waiting(jobs), [cls() for cls in plugins]) for _ in range(2))
    rows = [ssn.pending_tasks(job) for job in range(len(jobs))]
    ahead = data.draw(st.lists(st.sampled_from(rows), unique_by=id))
    ssn.ordering.sort_ahead(ahead)
    for tasks in rows:
        assert ssn.ordering.sort_tasks(tasks) == plain.ordering.sort_tasks(tasks)
        some = data.draw(st.lists(st.sampled_from(tasks), unique=True))
        assert ssn.ordering.sort_tasks(some) == plain.ordering.sort_tasks(some)
        together = [row for tasks in rows for row in tasks]
        assert ssn.ordering.sort_tasks(together) == plain.ordering.sort_tasks(together)


def test_what_is_sorted_ahead_is_not_asked_again() -> None:
    """The tests above would pass without it."""
    ssn = open_session(waiting([[(1, 0, True), (2, 0, True)]]), [Priority()])
    tasks = ssn.pending_tasks(0)
    ssn.ordering.sort_ahead([tasks])
    ssn.ordering.task_keys = None  # type: ignore[assignment]
    assert len(ssn.ordering.sort_tasks(tasks)) == 2
    ssn.ordering.sort_ahead([])


@settings(max_examples=80)
@given(
    sizes=st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=4), min_size=2, max_size=5),
    plugins=st.sampled_from([[], [Priority, Gang], [Drf], [Gang]]),
    data=st.data(),
)
def test_a_live_heap_of_jobs_pops_as_one_that_asks_each_time(
    sizes: Any, plugins: Any, data: st.DataObject
) -> None:
    """Jobs move between two pops: tasks of theirs are promised room, evicted, or rolled back."""
    made: list[Any] = [queue("default"), node("n", cpu=64), priority_class("high", value=5)]
    for j, cpus in enumerate(sizes):
        level = "high" if j % 2 else None
        made.append(pod_group(f"g{j}", min_member=j % 3, phase="Inqueue", priority_class=level))
        for k, cpu in enumerate(cpus):
            on = "n" if k % 2 else None
            made.append(pod(f"g{j}-w-{k}", group=f"g{j}", cpu=cpu, node=on))
    ssn = open_session(made, [cls() for cls in plugins])
    assert ssn.ordering._keeps_job_keys
    tasks, jobs = ssn.snapshot.tasks, range(len(sizes))
    kept = ssn.ordering.job_heap(jobs, live=True)
    ssn.ordering._keeps_job_keys = False
    fresh = ssn.ordering.job_heap(jobs, live=True)
    stmt = ssn.statement()
    start = stmt.checkpoint()
    while len(kept):
        assert kept.pop() == fresh.pop()
        for row in data.draw(st.lists(st.sampled_from(range(len(tasks.keys))), max_size=2)):
            if tasks.status[row] == Status.PENDING:
                stmt.pipeline(row, 0)
            elif tasks.status[row] == Status.RUNNING:
                stmt.evict(row, "preempt")
            else:
                stmt.rollback(start)
