"""The turns of a served scheduler: their times, their pauses, and who leads."""

import threading
from typing import Any

import pytest

from pumice.cluster.embedded.node_operations import add_node
from tests.unit.serve.scheduler.test_loop import Cluster, default, looping


@pytest.fixture
def cluster() -> Any:
    cluster = Cluster()
    add_node(cluster, "n", {"cpu": "4", "memory": "8Gi"})
    return cluster


def test_turns_are_announced_and_start_a_period_apart(cluster: Any) -> None:
    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout)
            times[0] += timeout or 0.0
            return False

    waits: list[Any] = []
    times, turns, stop = [100.0], [], Stop()

    def turn() -> None:
        turns.append(times[0])
        times[0] += 0.25 * len(turns)  # how long it takes
        if len(turns) == 5:
            stop.set()

    looping(cluster, clock=lambda: times[0], on_turn=turn).run(stop)
    assert turns == [100.0, 101.0, 102.0, 103.0, 104.0]
    assert waits == [0.75, 0.5, 0.25, 0.0, 0.0]


def test_failed_cycles_pause_twice_as_long_each_time_up_to_a_bound(cluster: Any) -> None:
    def fails() -> Any:
        raise RuntimeError("no")

    loop = looping(cluster, latest_scheduler=fails)
    assert [loop._turn() for _ in range(7)] == [2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    loop._latest_scheduler = default()
    assert loop._turn() == 1.0
    loop._latest_scheduler = fails
    assert loop._turn() == 2.0


@pytest.mark.parametrize(("period_s", "pause"), [(0.125, 0.125), (100.0, 0.2)])
def test_who_does_not_lead_looks_again_soon(cluster: Any, period_s: float, pause: float) -> None:
    assert looping(cluster, period_s, is_leader=lambda: False)._turn() == pause


def test_leads_are_logged_when_they_begin_and_end(
    cluster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    leads = [True]
    loop = looping(cluster, is_leader=lambda: leads[0])

    def messages() -> list[str]:
        found = [each.getMessage() for each in caplog.records]
        caplog.clear()
        return found

    for expected in (["scheduling"], []):
        loop._turn()
        assert messages() == expected
    leads[0] = False
    for expected in (["scheduling no more: another process leads"], []):
        loop._turn()
        assert messages() == expected
    leads[0] = True
    loop._turn()
    assert messages() == ["scheduling"]
