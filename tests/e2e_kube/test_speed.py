"""The benchmark on a real API server, small: that it works, not how fast it is."""

import asyncio
from typing import Any

from bench.control_plane import Installation
from bench.live import Sizes, measure


def test_the_benchmark_binds_and_proves_every_pod(
    space: Any, plane: Any, kubectl: Any, servers: Any
) -> None:
    """The space is here to take the nodes away."""
    sizes = Sizes(nodes=16, gangs=2, size=5, connections=4, rounds=1, steady=1)
    result = asyncio.run(measure(sizes, Installation(plane, kubectl, servers)))
    assert (len(result.runs), len(result.ceilings)) == (1, 2)
    assert result.best.cpu_s > 0
    assert "10 pods in 2 gangs on 16 nodes" in result.table()
    assert [len(each.times.waited_s) for each in result.steady] == [100, 300]
    assert "at 300 pods/s" in result.table()
