"""Wrong answers of a plugin are reported and never stop a cycle."""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pumice.api.conf import parse_conf
from pumice.framework.hooks import EACH
from pumice.framework.plugin import HOOKS, Plugin
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
