"""Wrong answers of a plugin are reported and never stop a cycle."""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pumice.api.conf import parse_conf
from pumice.core.views import Job
from pumice.framework.combining import EACH
from pumice.framework.dispatch import Enabled
from pumice.framework.plugin import HOOKS, Plugin
from pumice.plugins.binpack import Binpack
from pumice.scheduler import Scheduler
from pumice.testing.samples import sample_cluster

CONF = """
actions: "enqueue, allocate, preempt, reclaim, gangpreempt, gangreclaim, shuffle, backfill"
tiers:
- plugins:
  - name: odd
  - name: priority
  - name: gang
  - name: conformance
  - name: network-topology-aware
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
"""
NOW = 1_767_229_200.0
ANSWERING = [hook.name for hook in HOOKS.values() if hook.rule is not EACH]


def asked_about(hook: Any, args: Any) -> Any:
    """Count the rows a hook is asked about, where it is asked about several."""
    if hook.startswith("order_") and hook != "order_subgroups":
        return len(args[0])
    return next((len(one) for one in reversed(args) if hasattr(one, "__len__")), 1)


WRONG: dict[str, Callable[[int], object]] = {
    "nothing": lambda n: None,
    "a text": lambda n: "x",
    "an object": lambda n: object(),
    "not a number": lambda n: float("nan"),
    "too large": lambda n: 10**9,
    "too few": lambda n: np.zeros(n + 1),
    "texts": lambda n: np.array(["a"] * n),
    "objects": lambda n: np.array([object()] * n),
    "not numbers": lambda n: np.full(n, np.nan),
    "unknown codes": lambda n: np.full(n, 99),
}


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("pumice"), "disabled", True)
    monkeypatch.setattr(logging.getLogger("pumice.framework.dispatch"), "disabled", True)


@pytest.mark.sample(7)
@pytest.mark.parametrize("hook", ANSWERING)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_answer_stops_nothing(hook: Any, wrong: Any, quiet: Any) -> None:
    def answer(_: Any, *args: Any) -> Any:
        return WRONG[wrong](asked_about(hook, args))

    cls = type("Odd", (Plugin,), {"__doc__": "Odd.", hook: answer}, name="odd")
    decisions = Scheduler(parse_conf(CONF), plugins={"odd": cls}).cycle(sample_cluster(0), NOW)
    for line in decisions.failures:
        assert line.startswith(f"plugin odd failed in {hook}: ")


@pytest.mark.parametrize(
    ("hook", "answer", "wanted"),
    [
        ("filter_task", "no", "a Reason or None"),
        ("job_enqueueable", None, "a number"),
        ("job_ready", None, "true or false"),
        ("job_valid", 7, "a text, empty if all is well"),
        ("victims", None, "a list of some of the tasks"),
        ("victims", [77], "a list of some of the tasks"),
        ("domain_levels", [3], "lists of domains, level by level"),
        ("compare_queues", "left", "a number"),
    ],
)
def test_what_was_wanted_is_reported(hook: str, answer: Any, wanted: str) -> None:
    check = HOOKS[hook].answer.check
    assert check is not None
    assert check(answer, ([1, 2], [1, 2]), ()) == wanted


@pytest.mark.parametrize(
    ("hook", "answer"),
    [
        ("filter_task", None),
        ("job_enqueueable", 1),
        ("job_ready", np.bool_(1)),
        ("job_valid", ""),
        ("victims", [2]),
        ("victims", np.array([1, 2])),
        ("domain_levels", []),
        ("compare_queues", -0.5),
        ("preemptable", [True, False]),
        ("preemptable", None),
        ("order_jobs", [0.0, 1.0]),
    ],
)
def test_right_answers_pass(hook: str, answer: Any) -> None:
    check = HOOKS[hook].answer.check
    assert check is not None
    assert check(answer, ([1, 2], [1, 2]), ()) == ""


def test_plugins_of_pumice_are_held_to_what_is_cheap() -> None:
    class Ours(Binpack):
        """A plugin of Pumice that also decides when a job is ready."""

        __module__ = "pumice.plugins.ours"

        def job_ready(self, job: Job) -> bool:
            return True

    class Theirs(Ours):
        """The same, written by someone else."""

    held = Enabled(Ours(), {}).offered()
    assert held["job_ready"] is None
    assert held["score_nodes"] is HOOKS["score_nodes"].answer.cheap
    assert Enabled(Theirs(), {}).offered()["score_nodes"] is HOOKS["score_nodes"].answer.check
