"""The log of the loop: what is new at once, what repeats only on request."""

import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest

from pumice import logs
from pumice.api.decisions import Decisions
from pumice.binder.write_results import WriteResult, WriteResults
from pumice.cache.informer import BadObject
from pumice.cluster.embedded.node_operations import add_node
from pumice.errors import ConflictError, RejectedError, UnavailableError
from pumice.serve.scheduler import loop as loop_log
from pumice.serve.scheduler.live_scheduler import Cycle
from pumice.serve.scheduler.loop import LoopLog
from tests.unit.serve.scheduler.test_loop import Cluster, default, looping


class Lines:
    """What was logged since the last time."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog
        self.log = LoopLog()

    def new(self) -> list[tuple[str, str, Any]]:
        found = [
            (each.levelname, each.getMessage(), getattr(each, "values", {}))
            for each in self._caplog.records
        ]
        self._caplog.clear()
        return found

    def messages(self) -> list[str]:
        return [message for _, message, _ in self.new()]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Lines]:
    caplog.set_level("INFO")
    yield Lines(caplog)
    logs.set_verbosity(0)


def here(error: Exception) -> None:
    raise error


def there(error: Exception) -> None:
    raise error


def raised(error: Exception, *, elsewhere: bool = False) -> Exception:
    try:
        (there if elsewhere else here)(error)
    except Exception as caught:  # noqa: BLE001
        return caught
    raise AssertionError


def test_a_failure_is_traced_the_first_time_at_each_place(lines: Lines) -> None:
    for failures in (1, 2):
        lines.log.broken(raised(LookupError("no")), failures, 2.0)
        (level, message, values), *rest = lines.new()
        assert (level, message) == ("ERROR", "cycle failed")
        assert values == {"error": "LookupError: no", "failures": failures, "pause_s": 2.0}
        assert [each for _, each, _ in rest] == ["where it failed"] * (failures == 1)
    lines.log.broken(raised(LookupError("no"), elsewhere=True), 3, 2.0)
    assert lines.messages() == ["cycle failed", "where it failed"]
    lines.log.broken(raised(ValueError("no")), 4, 2.0)
    _, (_, message, values) = lines.new()
    assert message == "where it failed"
    assert "ValueError: no" in values["trace"]


def test_a_failure_of_the_cluster_and_one_without_a_place(lines: Lines) -> None:
    lines.log.broken(raised(UnavailableError(problem="away")), 1, 1.0)
    assert lines.messages() == ["cycle failed"]
    lines.log.broken(ValueError("never raised"), 1, 1.0)
    assert lines.messages() == ["cycle failed", "where it failed"]


def test_a_repeated_trace_is_logged_on_request(lines: Lines) -> None:
    for level, traced in ((0, 1), (1, 0), (2, 1)):
        logs.set_verbosity(level)
        lines.log.broken(raised(ValueError("no")), 1, 1.0)
        assert lines.messages()[1:] == ["where it failed"] * traced


def cycle(*results: WriteResult, at: float = 0.0, **decided: Any) -> Cycle:
    return Cycle(at, Decisions(**decided), WriteResults(list(results)))


def test_failures_of_plugins_are_logged_when_they_begin_and_end(lines: Lines) -> None:
    for failures, logged in (
        ([], []),
        (["a"], ["plugin failed and was skipped"]),
        (["a"], []),
        (["a", "b"], ["plugin failed and was skipped"]),
        (["b"], []),
        ([], ["all plugins work again"]),
        ([], []),
    ):
        lines.log.cycle(cycle(failures=failures))
        assert lines.messages() == logged


def test_failed_writes_of_one_sort_are_logged_now_and_then(lines: Lines) -> None:
    conflict = WriteResult("bind", "ns/p", error=ConflictError())
    seen = []
    for at in (0.0, 1.0, 59.9, 60.0, 61.0, 120.0, 180.0):
        lines.log.cycle(cycle(conflict, at=at))
        seen += [(at, values.get("more")) for _, _, values in lines.new()]
    assert seen == [(0.0, None), (60.0, 2), (120.0, 1), (180.0, None)]
    other = WriteResult("bind", "ns/p", error=RejectedError())
    lines.log.cycle(cycle(other, WriteResult("evict", "ns/p", error=ConflictError()), at=181.0))
    assert [values["what"] for _, _, values in lines.new()] == ["bind", "evict"]
    lines.log.cycle(cycle(conflict, at=10.0))  # the clock was set back
    assert lines.messages() == ["write failed"]


@pytest.mark.parametrize(("level", "logged"), [(1, 0), (2, 1)])
def test_what_a_cycle_did_is_logged_on_request(lines: Lines, level: int, logged: int) -> None:
    logs.set_verbosity(level)
    lines.log.cycle(cycle())
    assert lines.messages() == []
    lines.log.cycle(cycle(unschedulable={"g": "m"}))
    assert lines.messages() == []
    failed = WriteResult("bind", "ns/p", error=ConflictError())
    done = WriteResult("group", "ns/g"), WriteResult("queue", "q"), failed
    decided: Any = {"binds": {"p": "n"}, "evictions": ["a", "b"], "unschedulable": {"g": "m"}}
    lines.log.cycle(cycle(*done, **decided))
    assert [values for _, message, values in lines.new() if message == "cycle"] == [
        {"binds": 1, "evictions": 2, "waiting": 1, "answers": 3, "failed": 1}
    ] * logged
    for some in (cycle(binds={"p": "n"}), cycle(evictions=["a"]), cycle(done[0])):
        lines.log.cycle(some)
        assert lines.messages() == ["cycle"] * logged


def test_suppressed_failures_are_logged_on_request(lines: Lines) -> None:
    conflict = WriteResult("bind", "ns/p", error=ConflictError())
    lines.log.cycle(cycle(conflict))
    logs.set_verbosity(2)
    lines.new()
    lines.log.cycle(cycle(conflict, at=1.0))
    assert "write failed" in lines.messages()


def bad(key: str, why: str = "x") -> BadObject:
    return BadObject("Pod", key, ValueError(why))


def test_a_bad_object_is_logged_once_for_each_fault(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = deque([bad("a"), bad("a"), bad("b"), bad("a", "y"), bad("a", "y"), bad("a")])
    lines.log.skipped(problems)
    logged = [(values["object"], values["error"]) for _, _, values in lines.new()]
    assert logged == [("a", "x"), ("b", "x"), ("a", "y"), ("a", "x")]
    assert not problems
    monkeypatch.setattr(loop_log, "_REMEMBERED", 3)
    lines.log.skipped(deque([bad("c")]))
    lines.log.skipped(deque([bad("b")]))  # still known
    assert lines.messages() == ["object skipped"]
    lines.log.skipped(deque([bad("d"), bad("b")]))  # too many: all are forgotten
    assert lines.messages() == ["object skipped"] * 2


def test_watches_are_logged_when_they_break_and_resume(lines: Lines) -> None:
    for troubles, logged in (
        ({}, []),
        ({"Pod": "a", "Node": "b"}, [("watch interrupted", "Node"), ("watch interrupted", "Pod")]),
        ({"Pod": "other"}, [("watch resumed", "Node")]),
        ({}, [("watch resumed", "Pod")]),
    ):
        lines.log.troubles(troubles)
        assert [(message, values["kind"]) for _, message, values in lines.new()] == logged


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

    looping(cluster, cycle="period", clock=lambda: times[0], on_turn=turn).run(stop)
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
