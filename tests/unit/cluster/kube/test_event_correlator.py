"""Events that repeat are counted, many about one object are held back, old ones are forgotten."""

import itertools
from typing import Any

import pytest

from pumice.cluster.kube import event_correlator
from pumice.cluster.kube.event_correlator import CountUpdate, EventCorrelator, EventKey, event_key
from tests.unit.cluster.kube.fakes import pod


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def events(clock: Clock) -> EventCorrelator:
    return EventCorrelator(clock)


def key(about: Any, message: str = "m") -> EventKey:
    return event_key(about, "Normal", "Why", message, "pumice")


def test_an_event_is_written_with_everything_that_is_known(events: EventCorrelator) -> None:
    about = pod("p" * 240, 7)
    made = events.new(about, key(about, "m" * 2000))
    number = 1000 * 10**9
    assert made == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{'p' * 230}.{number:x}", "namespace": "lab"},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "lab",
            "name": "p" * 240,
            "uid": f"u-{'p' * 240}",
            "resourceVersion": "7",
        },
        "type": "Normal",
        "reason": "Why",
        "message": "m" * 1024,
        "source": {"component": "pumice"},
        "reportingComponent": "pumice",
        "firstTimestamp": "1970-01-01T00:16:40Z",
        "lastTimestamp": "1970-01-01T00:16:40Z",
        "count": 1,
    }
    again = events.new(about, key(about))
    assert again is not None
    assert again["metadata"]["name"].endswith(f".{number + 1:x}")


def test_an_event_about_an_object_without_a_namespace_is_in_the_default_one(
    clock: Clock, events: EventCorrelator
) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    made = events.new(node, key(node))
    assert made is not None
    assert made["metadata"]["namespace"] == "default"
    assert made["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "n"}
    assert key(node).about == "Node//n"
    clock.now += 10.0
    again = events.repeat(key(node))
    assert isinstance(again, CountUpdate)
    assert (again.namespace, again.name) == ("default", made["metadata"]["name"])
    assert again.patch == {"count": 2, "lastTimestamp": "1970-01-01T00:16:50Z"}


def test_an_event_that_repeats_is_counted_ever_less_often_within_bounds(
    clock: Clock, events: EventCorrelator
) -> None:
    about = pod("p", 1)
    assert events.repeat(key(about)) is False
    assert events.new(about, key(about)) is not None
    written = []
    for second in range(1, 2001):
        clock.now += 1.0
        again = events.repeat(key(about))
        if isinstance(again, CountUpdate):
            assert again.patch["count"] == second + 1
            written.append(second)
    assert written == [10, 30, 70, 150, 310, 610, 910, 1210, 1510, 1810]


def test_room_for_events_fills_up_slowly_and_not_beyond_the_burst(
    clock: Clock, events: EventCorrelator
) -> None:
    about, count = pod("p", 1), itertools.count()

    def fits() -> bool:
        return events.new(about, key(about, f"m{next(count)}")) is not None

    assert [fits() for _ in range(26)] == [True] * 25 + [False]
    other = pod("q", 1, uid="q")
    assert events.new(other, key(other)) is not None
    clock.now += 150.0
    assert not fits()
    clock.now += 150.0
    assert [fits(), fits()] == [True, False]
    clock.now += 10**6
    assert [fits() for _ in range(26)] == [True] * 25 + [False]


def test_only_the_latest_events_are_remembered(
    events: EventCorrelator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_correlator, "_REMEMBERED", 3)
    objects = [pod(f"p{i}", 1, uid=f"u{i}") for i in range(4)]
    for each in objects[:3]:
        events.new(each, key(each))
    assert events.repeat(key(objects[0])) is True  # it is the latest now
    events.new(objects[3], key(objects[3]))
    assert [events.repeat(key(each)) for each in objects] == [True, False, True, True]
