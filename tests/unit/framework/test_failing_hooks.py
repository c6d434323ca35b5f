"""One bad object must not turn a plugin off for the others, whatever the hook."""

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pumice.api.conf import parse_conf
from pumice.core.views import Job, Nodes, Queue, Task
from pumice.framework.columns import Jobs, Queues, Tasks
from pumice.framework.eviction.sums import EmptiedNodes
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Reason
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session

N = 9
BAD = 3


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def number(name: str) -> float:
    if name.endswith(str(BAD)):
        raise ValueError(name)
    return float(name[-1])


class Picky(Plugin, name="picky"):
    """Reads a number from names, and cannot read one of them."""

    reasons = (Reason("odd"),)
    keys: Any = ()

    def _numbers(self, rows: Any) -> Any:
        return np.array([number(name) for name in rows.names])

    def filter_shape(self, shape: Any, facts: Any) -> Any:
        return self._numbers(facts) >= 0

    def filter_nodes(self, task: Any, nodes: Any) -> Any:
        return (self._numbers(nodes) % 2).astype(np.int16)

    def score_shape(self, shape: Any, facts: Any) -> Any:
        return self._numbers(facts)

    def score_nodes(self, task: Any, nodes: Any) -> Any:
        return self._numbers(nodes)

    def order_queues(self, queues: Any) -> Any:
        return self._numbers(queues)

    def order_jobs(self, jobs: Any) -> Any:
        return np.array([self._numbers(jobs), -self._numbers(jobs)])

    def order_tasks(self, tasks: Any) -> Any:
        return self._numbers(tasks)

    def preemptable(self, preemptor: Any, candidates: Any) -> Any:
        return np.array([number(self.keys[row]) > 4 for row in candidates])

    def victims(self, running: Any) -> Any:
        return [row for row in running if number(self.keys[row]) > 6]


CLUSTER = [
    *(queue(f"q{i}") for i in range(N)),
    *(node(f"n{i}") for i in range(N)),
    *(pod_group(f"g{i}", queue=f"q{i}", phase="Inqueue") for i in range(N)),
    *(pod(f"p{i}", group=f"g{i}", cpu=1) for i in range(N)),
]
OTHERS = [i for i in range(N) if i != BAD]


def session() -> Any:
    ssn = open_session(CLUSTER, [Picky()])
    Picky.keys = ssn.snapshot.tasks.keys
    return ssn


def ask(ssn: Any, hook: Any, *args: Any) -> Any:
    ((_, ask),) = ssn.hooks.bound(hook)
    return ask(*args)


def test_a_bad_node_is_refused_and_the_others_are_answered() -> None:
    ssn = session()
    fit = ssn.placing.fit(ssn.task(0))
    reported = [ssn.placing.reasons[code].text for code in fit.verdict]
    assert reported[BAD] == "plugin picky failed in filter_shape"
    assert [reported[i] for i in OTHERS] == ["odd" if i % 2 else "fits" for i in OTHERS]
    assert fit.score.tolist() == [0.0 if i == BAD else 2.0 * i for i in range(N)]


def test_a_bad_node_that_is_imagined_emptier_is_reported_apart_too() -> None:
    ssn = session()
    task, n = ssn.task(0), np.arange(N, dtype=float)
    gone = task.request * n, task.shape.nonzero * n
    nodes = EmptiedNodes(ssn.snapshot, np.arange(N), *gone)
    assert (nodes.part(slice(2, 5)).releasing[0] == n[2:5] * 1000).all()
    codes = ask(ssn, Plugin.filter_nodes, task, nodes)
    assert codes.tolist() == [3 if i == BAD else i % 2 for i in range(N)]


@pytest.mark.parametrize(
    ("hook", "view"),
    [(Plugin.order_queues, Queues), (Plugin.order_jobs, Jobs), (Plugin.order_tasks, Tasks)],
)
def test_a_bad_row_gets_no_key_and_the_others_keep_theirs(hook: Any, view: Any) -> None:
    ssn = session()
    keys = np.atleast_2d(ask(ssn, hook, view(ssn.snapshot, np.arange(N))))
    assert keys[0].tolist() == [0.0 if i == BAD else float(i) for i in range(N)]
    if hook is Plugin.order_jobs:
        assert keys[1].tolist() == (-keys[0]).tolist()
        assert list(ssn.failures.about) == [("job", BAD)]


def test_a_bad_candidate_stays_and_the_others_may_go() -> None:
    ssn = session()
    assert ssn.policy.preemptable(ssn.task(0), list(range(N))) == [5, 6, 7, 8]
    assert ssn.policy.victims(list(range(N))) == [7, 8]
    assert list(ssn.failures.about) == [("task", BAD)]


def test_a_question_about_one_bad_row_is_not_asked_twice() -> None:
    ssn = session()
    assert ask(ssn, Plugin.order_jobs, Jobs(ssn.snapshot, np.array([BAD]))) == [0.0]
    assert ask(ssn, Plugin.filter_nodes, ssn.task(0), Nodes(ssn.snapshot, slice(3, 4))) == [3]


CONF = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: shapes
"""


class Shapes(Plugin, name="shapes"):
    """Fails for pods with a certain label, in the given hook."""

    def filter_shape(self, shape: Any, facts: Any) -> Any:
        if shape.spec.node_selector:
            raise ValueError("x" * 9000)
        return np.ones(len(facts), dtype=bool)

    def score_nodes(self, task: Any, nodes: Any) -> Any:
        if task.key.endswith("dear"):
            raise ValueError("too dear")


class Broken(Plugin, name="broken"):
    """Fails in questions about one task, one job or one sub-group."""

    def filter_task(self, task: Any) -> Any:
        raise ValueError("task")

    def job_ready(self, job: Any) -> Any:
        raise ValueError("job")

    def subgroup_ready(self, subgroup: Any) -> Any:
        raise ValueError("sub-group")

    def filter_shape(self, shape: Any, facts: Any) -> Any:
        raise ValueError("shape")

    def preemptive(self, queue: Any, request: Any) -> Any:
        raise ValueError("queue")


@pytest.mark.parametrize(
    ("hook", "subject"),
    [
        ("filter_task", ("task", 1)),
        ("job_ready", ("job", 1)),
        ("subgroup_ready", ("job", 1)),
        ("filter_shape", ("shape", 1)),
        ("preemptive", None),
    ],
)
def test_a_failure_is_recorded_for_what_was_asked_about(hook: str, subject: Any) -> None:
    groups = [pod_group(f"g{i}", phase="Inqueue") for i in range(2)]
    pods = [pod(f"p{i}", group=f"g{i}", cpu=1 + i) for i in range(2)]
    ssn = open_session([queue("default"), node("n0"), *groups, *pods], [Broken()])
    failures, task = ssn.hooks.failures, Task(ssn.snapshot, 1)
    asked: dict[str, tuple[Any, ...]] = {
        "filter_task": (task,),
        "job_ready": (Job(ssn.snapshot, 1),),
        "subgroup_ready": (ssn.topology.subgroups(1)[0],),
        "filter_shape": (task.shape, ssn.nodes()),
        "preemptive": (Queue(ssn.snapshot, 0), task.request[:, 0]),
    }
    failures.forget()
    ssn.hooks[getattr(Plugin, hook)](*asked[hook])
    assert list(failures.errors) == [("broken", hook)]
    assert list(failures.about) == ([] if subject is None else [subject])


def test_a_failure_counts_for_its_shape_alone_and_is_reported_to_its_job() -> None:
    odd = {"nodeSelector": {"a": "b"}}
    objects = [
        queue("default"),
        *(node(f"n{i}") for i in range(3)),
        *(pod_group(name) for name in ("bad", "dear", "good")),
        pod("bad", group="bad", cpu=1, spec=odd),
        pod("dear", group="dear", cpu=1),
        pod("good", group="good", cpu=2),
    ]
    decided = Scheduler(parse_conf(CONF), plugins={"shapes": Shapes}).cycle(objects, 0.0)
    assert set(decided.binds) == {"default/dear", "default/good"}
    assert "3 plugin shapes failed in filter_shape" in decided.unschedulable["default/bad"]
    (condition,) = decided.pod_groups["default/bad"].conditions
    assert "plugin shapes failed in filter_shape" in condition.message
    assert set(decided.failed_for) == {"default/bad", "default/dear"}
    (line,) = decided.failed_for["default/bad"]
    assert line.startswith("plugin shapes failed in filter_shape: ValueError: xxx")
    assert len(line) < 400
    (line,) = decided.failed_for["default/dear"]
    assert line.startswith("plugin shapes failed in score_nodes: ValueError: too dear (")
