"""ConfigMaps that plugins read: looked up every now and then, and shown while they exist."""

from typing import Any

import pytest

from pumice.api.kinds import CONFIG_MAP
from pumice.api.meta import ConfigMap
from pumice.core.snapshot import Snapshot
from pumice.errors import NotFoundError, UnavailableError
from pumice.serve.scheduler.live_scheduler import ConfigMaps

KEY = "ns/a"


class World:
    """A cluster with one ConfigMap at most, a clock, and a snapshot."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.asked: list[Any] = []
        self.answer: Any = self.config_map("1")
        self.snapshot = Snapshot()
        self.maps = ConfigMaps(self.read, lambda: self.time)

    @staticmethod
    def config_map(text: str) -> Any:
        metadata = {"name": "a", "namespace": "ns"}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": text}}

    def read(self, kind: str, namespace: str, name: str, limit_s: float) -> Any:
        self.asked.append((kind, namespace, name, limit_s))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def shown(self, *wanted: str) -> str | None:
        """Show what is wanted; return the text of the ConfigMap, None if it is not there."""
        self.maps.show(wanted or (KEY,), self.snapshot)
        found = self.snapshot.kind(CONFIG_MAP).get(KEY)
        assert found is None or isinstance(found, ConfigMap)
        return found.text("k") if found else None


def test_one_is_read_once_a_minute() -> None:
    world = World()
    assert world.shown() == "1"
    assert world.asked == [(CONFIG_MAP, "ns", "a", 1.0)]
    world.answer = world.config_map("2")
    for time, wanted in ((1000.0, "1"), (1059.9, "1"), (1060.0, "2"), (1119.9, "2")):
        world.time = time
        assert world.shown() == wanted
    assert len(world.asked) == 2


def test_one_that_is_gone_is_shown_no_longer() -> None:
    world = World()
    world.shown()
    world.answer = NotFoundError("ConfigMap", "ns", "a")
    world.time += 60.0
    assert world.shown() is None
    world.answer = world.config_map("3")
    world.time += 59.9
    assert world.shown() is None
    world.time += 0.1
    assert world.shown() == "3"


@pytest.mark.parametrize("known", [False, True])
def test_after_a_failure_the_last_version_stays_and_is_tried_again_soon(known: bool) -> None:
    world = World()
    if known:
        world.shown()
        world.time += 60.0
    world.answer = UnavailableError("away")
    assert world.shown() == ("1" if known else None)
    before = len(world.asked)
    world.time += 4.9
    world.shown()
    assert len(world.asked) == before
    world.answer = world.config_map("2")
    world.time += 0.1
    assert world.shown() == "2"


def test_a_snapshot_gets_what_is_known_again_and_only_what_is_wanted() -> None:
    world = World()
    world.shown()
    world.snapshot = Snapshot()
    assert world.shown("ns/b") is None
    assert world.shown(KEY) == "1"
    assert [name for _, _, name, _ in world.asked] == ["a", "b"]


def test_what_is_no_config_map_is_not_shown() -> None:
    world = World()
    world.answer = {**world.config_map("1"), "kind": "Node"}
    assert world.shown() is None
