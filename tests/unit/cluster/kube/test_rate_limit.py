"""The two brakes of the client: turns at a rate, and waits that grow."""

from typing import Any

import pytest

from pumice.cluster.kube.rate_limit import Backoff, ServerTime, Timing, TokenBucket


class Time:
    """A clock that is moved by hand and by sleeping."""

    def __init__(self, jitter: float = 0.0) -> None:
        self.now = 100.0
        self.slept: list[float] = []
        self.timing = Timing(lambda: self.now, lambda: self.now, self.sleep, lambda: jitter)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def take(self) -> list[float]:
        slept, self.slept = self.slept, []
        return slept


async def acquired(bucket: TokenBucket, times: int) -> None:
    for _ in range(times):
        await bucket.acquire()


async def test_a_burst_is_free_and_the_rest_come_at_the_rate() -> None:
    time = Time()
    bucket = TokenBucket(10.0, 3, time.timing)
    await acquired(bucket, 3)
    assert time.take() == []
    await acquired(bucket, 2)
    assert time.take() == pytest.approx([0.1, 0.2])
    time.now += 0.35  # the two and a half more
    await acquired(bucket, 2)
    assert time.take() == pytest.approx([0.05])


async def test_a_rest_allows_no_more_than_the_burst() -> None:
    time = Time()
    bucket = TokenBucket(10.0, 2, time.timing)
    time.now += 1000.0
    await acquired(bucket, 3)
    assert time.take() == pytest.approx([0.1])


@pytest.mark.parametrize(("rate", "burst", "waits"), [(0.0, 5, 0), (-1.0, 5, 0), (1.0, 0, 2)])
async def test_no_rate_is_no_limit_and_no_burst_is_one(rate: float, burst: int, waits: int) -> None:
    time = Time()
    await acquired(TokenBucket(rate, burst, time.timing), 3)
    assert len(time.take()) == waits


@pytest.mark.parametrize(
    ("jitter", "waits"), [(0.0, [0.5, 1.0, 2.0, 2.5, 2.5]), (1.0, [1.0, 2.0, 4.0, 5.0, 5.0])]
)
async def test_waits_double_up_to_the_longest_half_of_it_by_chance(
    jitter: float, waits: Any
) -> None:
    time = Time(jitter)
    backoff = Backoff(1.0, 5.0, time.timing)
    for _ in waits:
        await backoff.wait()
    assert time.take() == waits
    assert backoff.failures == len(waits)
    backoff.reset()
    await backoff.wait()
    assert time.take() == waits[:1]


@pytest.mark.parametrize(
    ("jitter", "least", "wait"),
    [(1.0, 7.0, 7.7), (0.0, 7.0, 7.0), (1.0, 1.0, 1.0), (0.0, 0.5, 0.5)],
)
async def test_a_wait_is_not_shorter_than_asked_for(
    jitter: float, least: float, wait: float
) -> None:
    time = Time(jitter)
    await Backoff(1.0, 5.0, time.timing).wait(least)
    assert time.take() == pytest.approx([wait])


def test_the_time_of_a_server_is_that_of_its_last_answer() -> None:
    time = Time()
    server = ServerTime(time.timing)
    assert server.now() == 100.0
    server.notice(b"thu, 01 jan 1970 01:00:00 gmt")
    time.now += 5
    assert server.now() == 3605.0
    server.notice(b"")
    assert server.now() == 3605.0
    time.now = 3000.0
    server.notice(b"thu, 01 jan 1970 00:49:59 gmt")
    assert server.now() == 3000.0


def test_a_server_whose_clock_runs_fast_is_ahead_of_its_last_answer() -> None:
    time = Time()
    server = ServerTime(time.timing)
    server.notice(b"thu, 01 jan 1970 01:00:00 gmt")
    time.now += 10.0
    server.notice(b"thu, 01 jan 1970 01:10:00 gmt")
    time.now += 2.0
    assert server.now() == 4200.0 + 2 * 60
    server.notice(b"thu, 01 jan 1970 00:50:00 gmt")  # it was set back
    time.now += 1.0
    assert server.now() == 3001.0


@pytest.mark.parametrize("date", [b"soon", b"\xff", b"thu, 01 jan 99999999999999 00:00:00 gmt"])
def test_a_date_that_cannot_be_read_is_ignored(date: bytes) -> None:
    server = ServerTime(Time().timing)
    server.notice(date)
    assert server.now() == 100.0
