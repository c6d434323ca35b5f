"""WriteLanes: every queued write gets exactly one result, also at the end."""

import asyncio
import threading
from functools import partial
from typing import Any

import pytest

from pumice.cluster.base import Lane, Write
from pumice.cluster.kube import write_lanes
from pumice.cluster.kube.rate_limit import TokenBucket
from pumice.cluster.kube.write_lanes import WriteLanes
from pumice.errors import ClusterError, ConflictError, UnavailableError
from tests.unit.cluster.kube.fakes import FakeTime


def bind(name: Any) -> Any:
    arguments = {"namespace": "lab", "pod": name, "node": "n1", "annotations": {}}
    return Write("bind", arguments)


@pytest.mark.parametrize("busy", [0, 1])
def test_what_comes_just_before_the_end_is_reported_once_and_never_sent(busy: int) -> None:
    """A write handed in before the end, and sorted into its lane only after it began."""
    carried = []
    reported: list[Any] = []

    async def main() -> Any:
        began = asyncio.Event()

        async def execute(write: Any) -> None:
            carried.append(write.arguments["pod"])
            began.set()
            await asyncio.Event().wait()

        lanes = WriteLanes(
            execute,
            bucket=TokenBucket(0, 1, FakeTime().timing),
            workers=2,
            is_open=lambda: True,
        )
        lanes.open(asyncio.get_running_loop())
        for number in range(busy):
            lanes.submit(bind(f"busy{number}"), Lane.BIND, reported.append)
            await began.wait()
        lanes.submit(bind("late"), Lane.BIND, reported.append)
        await lanes.close()
        for _ in range(10):
            await asyncio.sleep(0)
        assert lanes.flush(0)
        await lanes.close()
        assert lanes.flush(0)
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 1
    assert "late" not in carried
    assert [type(error) for error in reported] == [UnavailableError] * (busy + 1)
    assert [error.sent for error in reported] == [True] * busy + [False]


def test_a_write_handed_in_while_the_last_worker_ends_is_carried_out() -> None:
    """The worker has found nothing more to do, but its task is not over yet."""
    reported: list[Any] = []

    async def execute(_: Any) -> None:
        return None

    async def main() -> None:
        lanes = WriteLanes(
            execute,
            bucket=TokenBucket(0, 1, FakeTime().timing),
            workers=1,
            is_open=lambda: True,
        )

        def then_another(error: Any) -> None:
            reported.append(error)
            lanes.submit(bind("second"), Lane.BIND, reported.append)

        lanes.open(asyncio.get_running_loop())
        lanes.submit(bind("first"), Lane.BIND, then_another)
        for _ in range(10):
            await asyncio.sleep(0)
        await lanes.close()

    asyncio.run(main())
    assert reported == [None, None]


class SentAtOnce:
    """Sends each write at once, up to a number; ``answers`` are what takes their answers."""

    def __init__(self, room: int) -> None:
        self.answers: dict[str, Any] = {}
        self.broken_off: list[str] = []
        self._room = room

    def begin(self, write: Any, answered: Any) -> Any:
        pod = write.arguments["pod"]
        if len(self.answers) == self._room:
            return None
        self.answers[pod] = answered
        return lambda: self.broken_off.append(pod)


def test_a_write_sent_at_once_is_reported_once_whatever_its_first_attempt_came_to() -> None:
    reported: dict[str, Any] = {}
    carried = []

    async def execute(write: Any) -> None:
        carried.append(write.arguments["pod"])

    async def refuse() -> None:
        raise UnavailableError("Pod", "lab", "lost")

    async def main() -> None:
        sent = SentAtOnce(room=3)
        lanes = WriteLanes(
            execute,
            begin=sent.begin,
            bucket=TokenBucket(0, 1, FakeTime().timing),
            workers=4,
            is_open=lambda: True,
        )
        lanes.open(asyncio.get_running_loop())
        for name in ("done", "lost", "open", "coroutine", "done", "last"):
            lanes.submit(bind(name), Lane.BIND, partial(reported.__setitem__, name))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert list(sent.answers) == ["done", "lost", "open"]
        sent.answers["done"](None)
        sent.answers["lost"](refuse)
        for _ in range(5):
            await asyncio.sleep(0)
        assert carried == ["coroutine", "last", "done"]  # the second one waits for the first
        await lanes.close()
        sent.answers["open"](None)  # too late: it counts as broken off
        assert sent.broken_off == ["open"]
        assert lanes.flush(0)

    asyncio.run(main())
    unclear = {name: error.sent for name, error in reported.items() if error is not None}
    assert unclear == {"lost": True, "open": True}
    assert reported.keys() == {"done", "lost", "open", "coroutine", "last"}


def test_a_write_that_is_to_be_continued_at_the_end_stays_in_doubt() -> None:
    reported: list[Any] = []

    async def execute(_: Any) -> None:
        return None

    async def main() -> None:
        sent = SentAtOnce(room=1)
        lanes = WriteLanes(
            execute,
            begin=sent.begin,
            bucket=TokenBucket(0, 1, FakeTime().timing),
            workers=1,
            is_open=lambda: True,
        )
        lanes.open(asyncio.get_running_loop())
        lanes.submit(bind("lost"), Lane.BIND, reported.append)
        await asyncio.sleep(0)
        sent.answers["lost"](partial(execute, None))
        await lanes.close()
        assert lanes.flush(0)

    asyncio.run(main())
    assert [error.sent for error in reported] == [True]


def test_what_cannot_be_sent_at_once_is_reported_by_the_other_way() -> None:
    reported: list[Any] = []

    async def execute(_: Any) -> None:
        raise UnavailableError("Pod", "lab", "p", sent=False)

    def begin(*_: Any) -> Any:
        raise ValueError("no such node")

    async def main() -> None:
        lanes = WriteLanes(
            execute,
            begin=begin,
            bucket=TokenBucket(0, 1, FakeTime().timing),
            workers=1,
            is_open=lambda: True,
        )
        lanes.open(asyncio.get_running_loop())
        lanes.submit(bind("p"), Lane.BIND, reported.append)
        for _ in range(5):
            await asyncio.sleep(0)
        await lanes.close()

    asyncio.run(main())
    assert [error.sent for error in reported] == [False]


def test_events_beyond_a_number_of_queued_writes_are_dropped_with_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Other writes are queued however many there are."""
    monkeypatch.setattr(write_lanes, "_MOST_EVENTS", 2)
    reported: list[Any] = []

    async def execute(_: Any) -> None:
        return None

    async def main() -> None:
        lanes = WriteLanes(
            execute, bucket=TokenBucket(0, 1, FakeTime().timing), workers=1, is_open=lambda: True
        )
        lanes.open(asyncio.get_running_loop())
        for number in range(3):
            lanes.submit(bind(f"p{number}"), Lane.BIND, reported.append)
        for number in range(2):
            lanes.submit(bind(f"e{number}"), Lane.EVENT, reported.append)
        assert [str(error.problem) for error in reported] == [
            "not sent: too many writes are queued"
        ] * 2
        assert not any(error.sent for error in reported)
        for _ in range(20):
            await asyncio.sleep(0)
        lanes.submit(bind("later"), Lane.EVENT, reported.append)
        for _ in range(20):
            await asyncio.sleep(0)
        assert lanes.flush(0)
        assert not lanes._running  # no finished worker is kept
        await lanes.close()

    asyncio.run(main())
    assert reported[2:] == [None] * 4
    assert [record.message for record in caplog.records] == ["write queue is full, dropping events"]


class Lanes:
    """Lanes whose writes begin and end on demand."""

    def __init__(self, workers: int = 1, *, is_open: bool = True) -> None:
        self.begun: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.bucket = TokenBucket(0, 1, FakeTime().timing)
        self.lanes = WriteLanes(
            self.execute, bucket=self.bucket, workers=workers, is_open=lambda: is_open
        )
        self.lanes.open(asyncio.get_running_loop())
        self.reported: dict[str, Any] = {}

    async def execute(self, write: Write) -> None:
        name = write.arguments["pod"]
        self.begun.append(name)
        gate = self.gates.get(name)
        if gate is not None:
            await gate.wait()
        if name == "odd":
            raise KeyError(name)
        if name == "refused":
            raise ConflictError("Pod", "lab", name)

    def submit(self, name: str, lane: Lane = Lane.BIND, *, held: bool = False) -> None:
        if held:
            self.gates[name] = asyncio.Event()
        self.lanes.submit(bind(name), lane, lambda error: self.reported.update({name: error}))

    async def rest(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


def test_urgent_writes_overtake_others_and_equal_ones_keep_their_order() -> None:
    async def main() -> list[str]:
        lanes = Lanes()
        lanes.submit("first", held=True)
        await lanes.rest()
        order = (Lane.EVENT, Lane.STATUS, Lane.BIND, Lane.EVICT, Lane.BIND)
        for number, lane in enumerate(order):
            lanes.submit(f"{lane.name}-{number}", lane)
        await lanes.rest()
        assert lanes.begun == ["first"]
        lanes.gates["first"].set()
        await lanes.rest()
        await lanes.lanes.close()
        return lanes.begun

    begun = asyncio.run(main())
    wanted = sorted(
        [(Lane.EVENT, 0), (Lane.STATUS, 1), (Lane.BIND, 2), (Lane.EVICT, 3), (Lane.BIND, 4)]
    )
    assert begun == ["first", *(f"{lane.name}-{number}" for lane, number in wanted)]


def test_writes_of_one_object_wait_for_each_other_and_others_do_not() -> None:
    async def main() -> None:
        lanes = Lanes(workers=3)
        lanes.submit("same", held=True)
        await lanes.rest()
        for _ in range(2):
            lanes.submit("same")
        lanes.submit("other")
        await lanes.rest()
        assert lanes.begun == ["same", "other"]
        lanes.gates["same"].set()
        await lanes.rest()
        assert lanes.begun == ["same", "other", "same", "same"]
        assert lanes.lanes.flush(0)
        await lanes.lanes.close()

    asyncio.run(main())


def test_no_more_writes_run_at_once_than_there_are_workers() -> None:
    async def main() -> None:
        lanes = Lanes(workers=2)
        for name in "abc":
            lanes.submit(name, held=True)
        await lanes.rest()
        lanes.submit("d", held=True)
        await lanes.rest()
        assert lanes.begun == ["a", "b"]
        lanes.gates["a"].set()
        await lanes.rest()
        assert lanes.begun == ["a", "b", "c"]
        assert not lanes.lanes.flush(0)
        await lanes.lanes.close()

    asyncio.run(main())


def test_a_write_that_fails_is_reported_and_the_next_goes_on() -> None:
    async def main() -> dict[str, Any]:
        lanes = Lanes()
        for name in ("odd", "refused", "well"):
            lanes.submit(name)
        await lanes.rest()
        await lanes.lanes.close()
        return lanes.reported

    reported = asyncio.run(main())
    assert type(reported["odd"]) is ClusterError
    assert reported["odd"].problem == "KeyError('odd')"
    assert type(reported["refused"]) is ConflictError
    assert reported["well"] is None


def test_before_the_start_and_after_the_end_nothing_is_sent() -> None:
    async def main() -> None:
        lanes = Lanes()
        await lanes.lanes.close()
        lanes.submit("late")
        error = lanes.reported["late"]
        assert (error.problem, error.sent) == ("not sent: not connected", False)
        assert lanes.lanes.flush(0)

    asyncio.run(main())


@pytest.mark.parametrize("is_open", [True, False])
def test_turns_are_taken_only_while_something_can_be_sent(is_open: bool) -> None:
    async def main() -> int:
        lanes = Lanes(is_open=is_open)
        taken = []

        async def reserve() -> None:
            taken.append(1)

        lanes.bucket.reserve = reserve  # type: ignore[method-assign]
        lanes.bucket.take = lambda: taken.append(1)  # type: ignore[method-assign]
        for name in "ab":
            lanes.submit(name)
        await lanes.rest()
        assert lanes.begun == ["a", "b"]
        await lanes.lanes.close()
        return len(taken)

    assert asyncio.run(main()) == (2 if is_open else 0)


def test_who_waits_for_the_last_write_is_woken_by_it() -> None:
    async def main() -> None:
        lanes = Lanes()
        lanes.submit("a", held=True)
        await lanes.rest()
        assert not lanes.lanes.flush(0)
        woken: list[bool] = []
        waiting = threading.Thread(target=lambda: woken.append(lanes.lanes.flush(600)), daemon=True)
        waiting.start()
        await asyncio.sleep(0.05)  # it waits by now; if not, it need not be woken
        lanes.gates["a"].set()
        await lanes.rest()
        waiting.join(20)
        assert woken == [True]
        await lanes.lanes.close()

    asyncio.run(main())


def test_a_callback_that_fails_is_logged_and_hurts_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> dict[str, Any]:
        lanes = Lanes()

        def fails(_: Any) -> None:
            raise RuntimeError("no")

        lanes.lanes.submit(bind("first"), Lane.BIND, fails)
        lanes.submit("odd")
        lanes.submit("second")
        await lanes.rest()
        assert lanes.lanes.flush(0)
        await lanes.lanes.close()
        return lanes.reported

    assert asyncio.run(main())["second"] is None
    assert [each.getMessage() for each in caplog.records] == [
        "bind of ('Pod', 'lab', 'first'): its callback failed",
        "bind of ('Pod', 'lab', 'odd') failed",
    ]


class Metered:
    """Lanes with a rate limit of one turn a second; a write called ``quiet`` sends nothing."""

    def __init__(self, workers: int) -> None:
        self.time = FakeTime()
        self.bucket = TokenBucket(1.0, 1, self.time.timing)
        self.sent: list[str] = []
        self.lanes = WriteLanes(
            self.execute, bucket=self.bucket, workers=workers, is_open=lambda: True
        )
        self.lanes.open(asyncio.get_running_loop())

    async def execute(self, write: Write) -> None:
        name = write.arguments["pod"]
        if name != "quiet":
            await self.bucket.acquire()
            self.sent.append(name)


def test_few_writes_ask_for_few_turns() -> None:
    """Whoever else needs a turn, for example a read, must not wait for turns that nobody uses."""

    async def main() -> float:
        metered = Metered(workers=32)
        for name in "abc":
            metered.lanes.submit(bind(name), Lane.BIND, None)
        for _ in range(20):
            await asyncio.sleep(0)
        assert metered.sent == ["a", "b", "c"]
        before = metered.time.now
        await metered.bucket.acquire()
        await metered.lanes.close()
        return metered.time.now - before

    assert asyncio.run(main()) <= 1.0


def test_a_write_that_sends_nothing_gives_its_turn_back_and_no_more() -> None:
    async def main() -> float:
        metered = Metered(workers=4)
        for name in ("quiet", "quiet", "quiet", "a", "b", "c", "d"):
            metered.lanes.submit(bind(name), Lane.BIND, None)
        began = metered.time.now
        for _ in range(60):
            await asyncio.sleep(0)
        assert metered.sent == ["a", "b", "c", "d"]
        await metered.lanes.close()
        return metered.time.now - began

    assert asyncio.run(main()) >= 3.0
