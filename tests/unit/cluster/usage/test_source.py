"""StaticUsage, and UsageCache: how often a source is asked and what remains when it fails."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.api.objects import Node
from pumice.cluster.usage import StaticUsage, UsageCache
from pumice.cluster.usage.source import is_percent
from pumice.errors import HttpError
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue
from tests.present import read_as

N1, N2 = (read_as(Node, node(name)) for name in ("n1", "n2"))


def measured(cpu: Any, at: Any) -> Any:
    return {"cpu": cpu, "memory": 1.0, "metricsTime": at}


class EventRecorder:
    """A source that returns one prepared answer after the other."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def read(self, nodes: Any, now: Any) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_given_usage_is_of_now_unless_it_says_otherwise() -> None:
    source = StaticUsage({"n1": {"cpu": 5.0}, "n2": {"cpu": 6.0, "metricsTime": 7.0}, "n3": {}})
    assert source.read([N1, N2], 100.0) == {
        "n1": {"cpu": 5.0, "metricsTime": 100.0},
        "n2": {"cpu": 6.0, "metricsTime": 7.0},
    }


def test_without_values_nothing_is_known() -> None:
    assert StaticUsage().read([N1], 100.0) == {}


class TestCache:
    def test_it_is_empty_until_it_is_refreshed(self) -> None:
        cache = UsageCache(EventRecorder({"n1": measured(1, 0)}), 30.0)
        assert cache.latest() == {}
        assert cache.refresh(0.0, [N1])
        assert cache.latest() == {"n1": measured(1, 0)}

    def test_the_source_is_asked_once_in_a_period(self) -> None:
        cache = UsageCache(EventRecorder({"n1": measured(1, 0)}, {"n1": measured(2, 30)}), 30.0)
        assert [cache.refresh(now, [N1]) for now in (0.0, 29.9, 30.0, 31.0)] == [
            True, False, True, False,
        ]  # fmt: skip
        assert cache.latest() == {"n1": measured(2, 30)}

    def test_a_clock_that_goes_back_does_not_stop_it(self) -> None:
        cache = UsageCache(EventRecorder({}, {}), 30.0)
        assert [cache.refresh(now, [N1]) for now in (1000.0, 10.0)] == [True, True]

    def test_a_failure_leaves_what_is_known_and_is_reported(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        failure = HttpError("http://x", "no answer in time")
        cache = UsageCache(EventRecorder({"n1": measured(1, 0)}, failure), 30.0)
        assert [cache.refresh(now, [N1]) for now in (0.0, 30.0)] == [True, False]
        assert cache.latest() == {"n1": measured(1, 0)}
        assert [r.getMessage() for r in caplog.records] == [
            "node usage could not be read: http://x: no answer in time"
        ]

    def test_a_failing_source_is_not_asked_more_often(self) -> None:
        cache = UsageCache(EventRecorder(HttpError("http://x", "down")), 30.0)
        assert [cache.refresh(now, [N1]) for now in (0.0, 10.0)] == [False, False]

    def test_a_node_that_was_not_measured_keeps_its_older_measurement(self) -> None:
        cache = UsageCache(
            EventRecorder({"n1": measured(1, 0), "n2": measured(2, 0)}, {"n2": measured(3, 30)}),
            30.0,
        )
        for now in (0.0, 30.0):
            cache.refresh(now, [N1, N2])
        assert cache.latest() == {"n1": measured(1, 0), "n2": measured(3, 30)}

    def test_a_node_that_is_gone_is_forgotten(self) -> None:
        cache = UsageCache(EventRecorder({"n1": measured(1, 0)}, {"n2": measured(2, 30)}), 30.0)
        cache.refresh(0.0, [N1])
        cache.refresh(30.0, [N2])
        assert cache.latest() == {"n2": measured(2, 30)}

    def test_what_was_taken_does_not_change(self) -> None:
        cache = UsageCache(EventRecorder({"n1": measured(1, 0)}, {"n1": measured(2, 30)}), 30.0)
        cache.refresh(0.0, [N1])
        taken = cache.latest()
        cache.refresh(30.0, [N1])
        assert taken == {"n1": measured(1, 0)}


CONF = """
actions: "enqueue, allocate"
tiers: [{plugins: [{name: gang}, {name: predicates}, {name: usage}]}]
"""


@pytest.mark.parametrize(("age", "bound"), [(0, False), (299, False), (301, True)])
def test_the_usage_plugin_takes_what_a_cache_holds_and_judges_its_age(
    age: int, bound: bool
) -> None:
    """A node that is too busy is closed; five minutes later that is unknown, and it is open."""
    now = 1_768_471_200.0
    cache = UsageCache(StaticUsage({"n1": {"cpu": 95.0, "memory": 1.0}}), 30.0)
    cache.refresh(now - age, [N1])
    world = [node("n1"), queue("default"), pod_group("g"), pod("p", group="g", cpu=1)]
    decisions = Scheduler(parse_conf(CONF)).cycle(world, now, cache.latest())
    assert bool(decisions.binds) == bound


@pytest.mark.parametrize(
    ("number", "wanted"),
    [
        (0.0, True), (-0.0, True), (100.0, True), (130.0, True), (-0.1, False),
        (1e9, False), (float("inf"), False), (float("nan"), False),
    ],
)  # fmt: skip
def test_a_percentage_is_neither_negative_nor_absurd(number: Any, wanted: bool) -> None:
    assert is_percent(number) == wanted
