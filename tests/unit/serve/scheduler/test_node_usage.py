"""Use of nodes, read in the background."""

import threading
from typing import Any

import pytest

from pumice.api.objects import Node
from pumice.errors import ConfError
from pumice.serve.scheduler.loop import BackgroundUsage
from pumice.testing import node
from tests.present import read_as


def test_a_reading_that_breaks_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, now = threading.Event(), iter(range(0, 10**6, 1000))

    class Source:
        broken = True

        def read(self, nodes: Any, now: Any) -> Any:
            if self.broken:
                self.broken = False
                raise ZeroDivisionError
            asked.set()
            return {"n": {"cpu": 1.0, "memory": 2.0}}

    monkeypatch.setattr("pumice.serve.scheduler.loop.usage_source", lambda *_: Source())
    monkeypatch.setattr("pumice.serve.scheduler.loop._LOOK_S", 0.001)
    usage = BackgroundUsage({"type": "prometheus", "address": "http://x"}, lambda: float(next(now)))
    usage.set_nodes([read_as(Node, node("n"))])
    usage.start()
    assert asked.wait(10)
    usage.stop()
    usage._thread.join(10)
    assert usage.latest() == {"n": {"cpu": 1.0, "memory": 2.0}}


def test_a_wrong_section_is_refused() -> None:
    with pytest.raises(ConfError):
        BackgroundUsage({"type": "sundial", "address": "http://x"}, lambda: 0.0)
