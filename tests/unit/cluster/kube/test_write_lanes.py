"""WriteLanes: every queued write gets exactly one result, also at the end."""

import asyncio
from typing import Any

import pytest

from pumice.cluster.base import Lane, Write
from pumice.cluster.kube.rate_limit import TokenBucket
from pumice.cluster.kube.write_lanes import WriteLanes
from pumice.errors import UnavailableError
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
