"""The loop: one configuration, cycle after cycle, and a snapshot that stays as it was."""

from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest

from pumice.actions import ACTIONS
from pumice.api.conf import parse_conf
from pumice.core.consistency import cells, changed
from pumice.errors import ConfError
from pumice.framework.plugin import Plugin
from pumice.framework.session_state import ProcessMemory
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import sample_cluster, snapshot_of

CONF = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n"
WORLD = [queue("default"), node("n1"), pod_group("g"), pod("p", group="g", cpu=1)]


class Counting(Plugin, name="counting"):
    """Remembers how many sessions there were."""

    def on_open(self, ssn: Any) -> None:
        ssn.memory["counting"] = ssn.memory.get("counting", 0) + 1


def test_a_cycle_on_manifests_decides() -> None:
    assert Scheduler(parse_conf(CONF)).cycle(WORLD, 0.0).binds == {"default/p": "n1"}


def test_a_name_that_does_not_exist_refuses_the_configuration() -> None:
    with pytest.raises(ConfError, match="did you mean 'gang'"):
        Scheduler(parse_conf(CONF.replace("gang", "gong")))
    with pytest.raises(ConfError, match="did you mean 'allocate'"):
        Scheduler(parse_conf(CONF.replace("allocate", "alocate")))


def test_an_argument_that_cannot_be_used_is_reported_and_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scheduler = Scheduler(parse_conf(CONF.replace("gang", "sla\n    arguments: {x: 1}")))
    (problem,) = scheduler.warnings
    assert (problem.line, problem.severity) == (5, "ignored")
    assert not caplog.messages  # most schedulers only try a configuration
    scheduler.log_warnings()
    assert caplog.messages == [f"configuration: {problem}"]


@dataclass(kw_only=True)
class Locked(Plugin, name="stateful"):
    """Has a field that cannot be copied."""

    lock: Any = field(default_factory=Lock)
    cycles: int = 0

    def on_open(self, ssn: Any) -> None:
        self.cycles += 1
        ssn.memory.setdefault("cycles", []).append(self.cycles)


class Reflexive(Locked, name="stateful"):
    """Has a field that refers to the plugin."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self.lock, self.ask = None, self._fits

    def filter_nodes(self, task: Any, nodes: Any) -> Any:
        return self.ask(nodes)

    def _fits(self, nodes: Any) -> Any:
        return np.full(len(nodes), self.cycles == 1)


@pytest.mark.parametrize("plugin", [Locked, Reflexive])
def test_a_plugin_with_a_state_of_its_own_is_made_for_every_cycle(plugin: Any) -> None:
    scheduler = Scheduler(
        parse_conf(CONF.replace("gang", "gang\n  - name: stateful")), plugins={"stateful": plugin}
    )
    process = ProcessMemory()
    for _ in range(2):
        decisions = scheduler.decide(snapshot_of(WORLD), 0.0, process=process)
        assert (decisions.binds, decisions.failures) == ({"default/p": "n1"}, [])
    assert process.plugins["cycles"] == [1, 1]


def test_plugins_find_again_what_they_kept() -> None:
    scheduler = Scheduler(
        parse_conf(CONF.replace("gang", "counting")), plugins={"counting": Counting}
    )
    for _ in range(3):
        scheduler.cycle(WORLD, 0.0)
    assert scheduler._process.plugins["counting"] == 3


def test_a_cycle_that_fails_leaves_the_snapshot_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything an action did before it failed is undone, so the next cycle starts clean."""
    snapshot = snapshot_of(sample_cluster(3))
    before = cells(snapshot)
    scheduler = Scheduler(parse_conf(CONF))
    allocate = ACTIONS["allocate"]

    def fail(ssn: Any) -> None:
        allocate(ssn)
        assert changed(before, cells(snapshot))
        raise ZeroDivisionError

    monkeypatch.setitem(ACTIONS, "allocate", fail)
    with pytest.raises(ZeroDivisionError):
        scheduler.decide(snapshot, 0.0)
    assert changed(before, cells(snapshot)) == []
    monkeypatch.setitem(ACTIONS, "allocate", allocate)
    assert scheduler.decide(snapshot, 0.0).binds


def test_a_plugin_that_fails_is_passed_over_and_reported() -> None:
    class Broken(Plugin, name="broken"):
        """Knows no job."""

        def order_jobs(self, jobs: Any) -> Any:
            raise KeyError("job")

    text = CONF.replace("gang", "gang\n  - name: broken")
    decisions = Scheduler(parse_conf(text), plugins={"broken": Broken}).cycle(WORLD, 0.0)
    line = Broken.order_jobs.__code__.co_firstlineno + 1
    assert decisions.failures == [
        (
            "plugin broken failed in order_jobs: KeyError: 'job' "
            f"({Path(__file__).relative_to(Path.cwd())}:{line})"
        )
    ]
    assert decisions.binds == {"default/p": "n1"}
