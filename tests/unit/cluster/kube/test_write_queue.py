"""WriteQueue: every queued write gets exactly one result, also at the end."""

import asyncio
from typing import Any

import pytest

from pumice.cluster.base import Lane, Write
from pumice.cluster.kube import write_queue
from pumice.cluster.kube.rate_limit import TokenBucket
from pumice.cluster.kube.write_queue import WriteQueue
from pumice.errors import ClusterError, ConflictError, UnavailableError
from tests.unit.cluster.kube.fakes import FakeTime


def bind(name: Any) -> Any:
    arguments = {"namespace": "lab", "pod": name, "node": "n1", "annotations": {}}
    return Write("bind", arguments)


class Queue:
    """A queue whose writes begin and end on demand."""

    def __init__(self, workers: int = 1, *, is_open: bool = True) -> None:
        self.begun: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.bucket = TokenBucket(0, 1, FakeTime().timing)
        self.queue = WriteQueue(
            self.execute, bucket=self.bucket, workers=workers, is_open=lambda: is_open
        )
        self.queue.open(asyncio.get_running_loop())
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
        self.queue.submit(bind(name), lane, lambda error: self.reported.update({name: error}))

    async def rest(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


@pytest.mark.parametrize("busy", [0, 1])
async def test_what_comes_just_before_the_end_is_reported_once_and_never_sent(busy: int) -> None:
    """A write handed in before the end, and sorted into its lane only after it began."""

    queue = Queue(workers=2)
    for number in range(busy):
        queue.submit(f"busy{number}", held=True)
        await queue.rest()
    queue.submit("late")
    await queue.queue.close()
    await queue.rest()
    assert queue.queue.flush(0)
    await queue.queue.close()
    assert queue.queue.flush(0)
    assert len(asyncio.all_tasks()) == 1
    assert "late" not in queue.begun
    errors = queue.reported.values()
    assert [type(error) for error in errors] == [UnavailableError] * (busy + 1)
    assert [error.sent for error in errors] == [True] * busy + [False]


async def test_a_write_handed_in_while_the_last_worker_ends_is_carried_out() -> None:
    """The worker has found nothing more to do, but its task is not over yet."""

    queue, reported = Queue(), list[Any]()

    def then_another(error: Any) -> None:
        reported.append(error)
        queue.queue.submit(bind("second"), Lane.BIND, reported.append)

    queue.queue.submit(bind("first"), Lane.BIND, then_another)
    await queue.rest()
    await queue.queue.close()
    assert reported == [None, None]


async def test_events_beyond_a_number_of_queued_writes_are_dropped_with_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Other writes are queued however many there are."""
    monkeypatch.setattr(write_queue, "_MOST_EVENTS", 2)

    queue = Queue()
    for number in range(3):
        queue.submit(f"p{number}")
    for number in range(2):
        queue.submit(f"e{number}", Lane.EVENT)
    dropped = [*queue.reported.values()]
    assert [error.problem for error in dropped] == ["not sent: too many writes are queued"] * 2
    assert not any(error.sent for error in dropped)
    await queue.rest()
    queue.submit("later", Lane.EVENT)
    await queue.rest()
    assert queue.queue.flush(0)
    assert not queue.queue._workers  # no finished worker is kept
    await queue.queue.close()
    reported = queue.reported
    assert [name for name, error in reported.items() if error is None] == [
        "p0",
        "p1",
        "p2",
        "later",
    ]
    assert [record.message for record in caplog.records] == ["write queue is full, dropping events"]


async def test_urgent_writes_overtake_others_and_equal_ones_keep_their_order() -> None:
    queue = Queue()
    queue.submit("first", held=True)
    await queue.rest()
    order = (Lane.EVENT, Lane.STATUS, Lane.BIND, Lane.EVICT, Lane.BIND)
    for number, lane in enumerate(order):
        queue.submit(f"{lane.name}-{number}", lane)
    await queue.rest()
    assert queue.begun == ["first"]
    queue.gates["first"].set()
    await queue.rest()
    await queue.queue.close()
    begun = queue.begun
    wanted = sorted(
        [(Lane.EVENT, 0), (Lane.STATUS, 1), (Lane.BIND, 2), (Lane.EVICT, 3), (Lane.BIND, 4)]
    )
    assert begun == ["first", *(f"{lane.name}-{number}" for lane, number in wanted)]


async def test_writes_of_one_object_wait_for_each_other_and_others_do_not() -> None:
    queue = Queue(workers=3)
    queue.submit("same", held=True)
    await queue.rest()
    for _ in range(2):
        queue.submit("same")
    queue.submit("other")
    await queue.rest()
    assert queue.begun == ["same", "other"]
    queue.gates["same"].set()
    await queue.rest()
    assert queue.begun == ["same", "other", "same", "same"]
    assert queue.queue.flush(0)
    await queue.queue.close()


async def test_no_more_writes_run_at_once_than_there_are_workers() -> None:
    queue = Queue(workers=2)
    for name in "abc":
        queue.submit(name, held=True)
    await queue.rest()
    queue.submit("d", held=True)
    await queue.rest()
    assert queue.begun == ["a", "b"]
    queue.gates["a"].set()
    await queue.rest()
    assert queue.begun == ["a", "b", "c"]
    assert not queue.queue.flush(0)
    await queue.queue.close()


async def test_a_write_that_fails_is_reported_and_the_next_goes_on() -> None:
    queue = Queue()
    for name in ("odd", "refused", "well"):
        queue.submit(name)
    await queue.rest()
    await queue.queue.close()
    reported = queue.reported
    assert type(reported["odd"]) is ClusterError
    assert reported["odd"].problem == "KeyError('odd')"
    assert type(reported["refused"]) is ConflictError
    assert reported["well"] is None


async def test_before_the_start_and_after_the_end_nothing_is_sent() -> None:
    queue = Queue()
    await queue.queue.close()
    queue.submit("late")
    error = queue.reported["late"]
    assert (error.problem, error.sent) == ("not sent: not connected", False)
    assert queue.queue.flush(0)


async def test_a_callback_that_fails_is_logged_and_hurts_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue = Queue()

    def fails(_: Any) -> None:
        raise RuntimeError("no")

    queue.queue.submit(bind("first"), Lane.BIND, fails)
    queue.submit("odd")
    queue.submit("second")
    await queue.rest()
    assert queue.queue.flush(0)
    await queue.queue.close()
    assert queue.reported["second"] is None
    assert [each.getMessage() for each in caplog.records] == [
        "bind of ('Pod', 'lab', 'first'): its callback failed",
        "bind of ('Pod', 'lab', 'odd') failed",
    ]
