"""Tiers and switches become methods; a plugin that fails hurts only itself."""

import logging
from typing import Any

import numpy as np
import pytest

from pumice.core.views import Task
from pumice.errors import BadHookResultError
from pumice.framework.dispatch import Enabled
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Failed, Refusal
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session


class Both(Plugin, name="both"):
    """Has a hook with a switch and one without."""

    hierarchy_hooks = {"overused": True, "allocatable": False}  # noqa: RUF012

    def job_ready(self, job: Any) -> bool:
        return True

    def job_valid(self, job: Any) -> str:
        return ""

    def overused(self, queue: Any) -> bool:
        return False

    def allocatable(self, queue: Any, task: Any) -> bool:
        return True


class Bad(Plugin, name="bad"):
    """Raises wherever it is asked."""


def raising(name: Any) -> Any:
    def hook(self: Any, *args: Any) -> None:
        raise RuntimeError(name)

    return hook


CLUSTER = [
    queue("default"),
    node("n0"),
    node("n1"),
    pod_group("job", phase="Inqueue"),
    pod("waits", group="job", cpu=1),
    pod("runs", group="job", cpu=1, node="n0"),
]


def bad_session(hook: Any, method: Any = None, *others: Any) -> Any:
    cls = type("Bad", (Plugin,), {hook: method or raising(hook)}, name="bad")
    logging.disable(logging.CRITICAL)
    try:
        return open_session(CLUSTER, [cls()], list(others))
    finally:
        logging.disable(logging.NOTSET)


def test_some_hooks_are_asked_only_with_or_only_without_a_tree_of_queues() -> None:
    flat, tree = Both(), Both()
    tree.hierarchy = True
    assert not Enabled(flat, {}).offers("overused")
    assert Enabled(flat, {}).offers("allocatable")
    assert Enabled(tree, {}).offers("overused")
    assert not Enabled(tree, {}).offers("allocatable")


def refused(hook: str) -> Refusal:
    return Failed("bad", hook).refusal


SAFE = {
    "job_ready": (lambda ssn: ssn.policy.job_ready(0), refused("job_ready")),
    "job_valid": (lambda ssn: bool(ssn.policy.job_valid(0)), True),
    "job_pipelined": (lambda ssn: ssn.policy.job_pipelined(0), refused("job_pipelined")),
    "job_enqueueable": (lambda ssn: ssn.policy.job_enqueueable(0), refused("job_enqueueable")),
    "job_starving": (lambda ssn: ssn.policy.job_starving(0), False),
    "overused": (lambda ssn: ssn.policy.overused(0), True),
    "allocatable": (lambda ssn: ssn.policy.allocatable(0, ssn.task(0)), refused("allocatable")),
    "preemptive": (
        lambda ssn: ssn.policy.preemptive(0, ssn.task(0).request[:, 0]),
        refused("preemptive"),
    ),
    "preemptable": (lambda ssn: ssn.policy.preemptable(ssn.task(0), [1]), []),
    "reclaimable": (lambda ssn: ssn.policy.reclaimable(ssn.task(0), [1]), []),
    "victims": (lambda ssn: ssn.policy.victims([1]), []),
    "filter_task": (
        lambda ssn: ssn.policy.filter_task(ssn.task(0)),
        Failed("bad", "filter_task").reason,
    ),
    "order_jobs": (lambda ssn: ssn.ordering.sort_jobs([0]), [0]),
    "order_tasks": (lambda ssn: ssn.ordering.sort_tasks([0]), [0]),
    "order_queues": (lambda ssn: ssn.ordering.sort_queues([0]), [0]),
    "compare_queues": (lambda ssn: ssn.ordering.sort_queues([0]), [0]),
}


@pytest.mark.parametrize(("hook", "case"), SAFE.items(), ids=SAFE)
def test_a_hook_that_raises_is_taken_to_change_least(
    hook: Any, case: Any, caplog: pytest.LogCaptureFixture
) -> None:
    ask, wanted = case
    ssn = bad_session(hook)
    caplog.set_level(logging.CRITICAL, logger="pumice.framework.hook_answers")
    assert wanted == ask(ssn)
    if hook != "compare_queues":  # a single queue is compared with nothing
        assert list(ssn.failures.errors) == [("bad", hook)]


@pytest.mark.filterwarnings("default")
def test_the_first_error_of_a_hook_is_kept_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ssn = bad_session("job_ready")
    with caplog.at_level(logging.ERROR):
        ssn.policy.job_ready(0)
        ssn.policy.job_ready(0)
    assert str(ssn.failures.errors["bad", "job_ready"]) == "job_ready"
    assert [record.getMessage() for record in caplog.records] == [
        "plugin bad failed in job_ready: job_ready"
    ]


def test_other_plugins_are_asked_all_the_same() -> None:
    class Score(Plugin, name="score"):
        def score_nodes(self, task: Any, nodes: Any) -> Any:
            return nodes.index.astype(float)

    ssn = bad_session("score_nodes", None, Score())
    fit = ssn.placing.fit(ssn.task(0))
    assert fit.score.tolist() == [0.0, 1.0]


def test_a_filter_that_raises_lets_nothing_through() -> None:
    ssn = bad_session("filter_nodes")
    task = ssn.task(0)
    fit = ssn.placing.fit(task)
    assert ssn.placing.choose(task, fit) is None
    reported = [ssn.placing.reasons[code].text for code in fit.verdict]
    assert reported == ["plugin bad failed in filter_nodes"] * 2
    assert ssn.placing.incurable(fit).all()


def test_opening_that_raises_is_reported() -> None:
    ssn = bad_session("on_open")
    assert list(ssn.failures.errors) == [("bad", "on_open")]


BAD_RESULTS = {
    "filter_nodes": lambda self, task, nodes: np.ones(len(nodes) + 1, dtype=bool),
    "filter_shape": lambda self, shape, facts: [True] * len(facts),
    "score_nodes": lambda self, task, nodes: np.full(len(nodes), np.nan),
    "score_shape": lambda self, shape, facts: np.zeros(1),
    "rank_nodes": lambda self, task, nodes: 3.0,
}


@pytest.mark.parametrize(("hook", "method"), BAD_RESULTS.items(), ids=BAD_RESULTS)
def test_an_answer_of_the_wrong_size_counts_as_raised(hook: Any, method: Any) -> None:
    ssn = bad_session(hook, method)
    task = Task(ssn.snapshot, 0)
    ssn.placing.choose(task, ssn.placing.fit(task))
    error = ssn.failures.errors["bad", hook]
    assert isinstance(error, BadHookResultError)
    assert error.hook == hook
    (line,) = ssn.failures.lines()
    assert line.endswith(f"test_dispatch.py:{method.__code__.co_firstlineno})")


def test_a_bad_vary_by_hurts_nobody() -> None:
    ssn = bad_session("vary_by")
    assert ssn.placing.fit(ssn.task(0)).verdict.tolist() == [0, 0]
    assert list(ssn.failures.errors) == [("bad", "vary_by")]
