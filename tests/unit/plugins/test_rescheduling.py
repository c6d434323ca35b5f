"""rescheduling: when strategies run, and whom lowNodeUtilization moves."""

from dataclasses import dataclass
from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.framework.arguments import Duration, arg
from pumice.plugins.rescheduling import LowNodeUtilization, Rescheduling, Strategy
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session

NOW = 1_768_471_200.0


def conf(
    low: str = "",
    target: str = "",
    *,
    arguments: Any = (),
    name: str = "lowNodeUtilization",
    params: bool = True,
) -> Any:
    lines = ['actions: "shuffle"', "tiers:", "- plugins:", "  - name: rescheduling"]
    lines += ["    arguments:", *(f"      {each}" for each in arguments)] if arguments else []
    if name:
        lines += [] if arguments else ["    arguments:"]
        lines += ["      strategies:", f"      - name: {name}"]
    if name and params:
        lines += ["        params:"]
        lines += [f"          thresholds: {{{low}}}"] if low else []
        lines += [f"          targetThresholds: {{{target}}}"] if target else []
    return "\n".join(lines)


def group(*pods: Any) -> Any:
    return [queue("default"), pod_group("g", min_member=0), *pods]


def busy_pods(count: Any, on: str = "hot", **facts: Any) -> Any:
    return [pod(f"{on}-{i}", group="g", node=on, **({"cpu": 1} | facts)) for i in range(count)]


def percents(**nodes: Any) -> Any:
    return {name: {"cpu": cpu, "memory": memory} for name, (cpu, memory) in nodes.items()}


def gone(objects: Any, usage: Any, text: Any, **options: Any) -> Any:
    measured = {name: {"metricsTime": NOW, **facts} for name, facts in usage.items()}
    decisions = Scheduler(parse_conf(text), **options).cycle(objects, NOW, measured)
    return [key.removeprefix("default/") for key in decisions.evictions]


STANDARD = conf("cpu: 20, memory: 20", "cpu: 80, memory: 85")
HOT = [node("hot", cpu=10), node("cold", cpu=10), *group(*busy_pods(9, memory="64Mi"))]


@pytest.mark.parametrize(
    ("cold", "moves"), [((19.9, 19.9), True), ((20, 5), False), ((5, 20), False), ((15, 20), False)]
)
def test_a_node_is_idle_below_every_threshold(cold: Any, moves: bool) -> None:
    assert bool(gone(HOT, percents(hot=(90, 50), cold=cold), STANDARD)) == moves


@pytest.mark.parametrize(
    ("hot", "moves"), [((80, 85), False), ((80.1, 0), True), ((0, 85.1), True)]
)
def test_a_node_is_busy_above_any_target(hot: Any, moves: bool) -> None:
    assert bool(gone(HOT, percents(hot=hot, cold=(5, 5)), STANDARD)) == moves


@pytest.mark.parametrize(
    "text", [conf(name=""), conf(params=False), conf(arguments=["interval: 1m"])]
)
def test_without_params_every_bound_is_a_hundred_and_nothing_moves(text: Any) -> None:
    assert gone(HOT, percents(hot=(99, 99), cold=(5, 5)), text) == []


@pytest.mark.parametrize("arguments", [(), ['metricsPeriod: "10m"'], ['metricsPeriod: "5m"']])
def test_the_period_of_the_metrics_need_not_be_given(arguments: Any) -> None:
    text = conf("cpu: 20, memory: 20", "cpu: 80, memory: 85", arguments=arguments)
    assert len(gone(HOT, percents(hot=(90, 50), cold=(5, 5)), text)) == 2


@pytest.mark.parametrize(
    ("arguments", "later", "runs"),
    [
        ((), 300, False),
        ((), 301, True),
        (['interval: "10s"'], 11, True),
        (['interval: "10s"'], 10, False),
        (["interval: often"], 299, False),
    ],
)
def test_it_runs_only_when_more_than_the_interval_has_passed(
    arguments: Any, later: int, runs: bool
) -> None:
    text = conf("cpu: 20, memory: 20", "cpu: 80, memory: 85", arguments=arguments)
    scheduler = Scheduler(parse_conf(text))
    usage = percents(hot=(90, 50), cold=(5, 5))
    measured = {name: {"metricsTime": NOW, **facts} for name, facts in usage.items()}
    first, second = (
        scheduler.cycle(HOT, NOW + wait, measured).evictions for wait in (0.0, float(later))
    )
    assert len(first) == 2
    assert bool(second) == runs


@dataclass(kw_only=True)
class Named(Strategy, name="named"):
    """Moves the given pod."""

    pod: str = arg("pod", default="hot-0", doc="the pod's name")

    def victims(self, ssn: Any, running: Any) -> Any:
        return [row for row in running if ssn.snapshot.tasks.keys[row] == f"default/{self.pod}"]


class Extended(Rescheduling, name="rescheduling"):
    """Knows one strategy more."""

    registry = {**Rescheduling.registry, Named.name: Named}  # noqa: RUF012


def own(*entries: Any) -> Any:
    lines = [each for entry in entries for each in entry]
    return conf(name="", arguments=["strategies:", *lines])


def test_a_strategy_can_be_added_in_python() -> None:
    text = own(["- name: named", "  params: {pod: hot-3}"])
    assert gone(HOT, {}, text, plugins={"rescheduling": Extended}) == ["hot-3"]
    assert gone(HOT, {}, own(["- name: named"]), plugins={"rescheduling": Extended}) == ["hot-0"]


def test_several_strategies_are_joined_and_the_last_entry_of_a_name_counts() -> None:
    params = "  params: {thresholds: {cpu: 20}, targetThresholds: {cpu: 80}}"
    text = own(
        ["- name: named", "  params: {pod: hot-3}"],
        ["- name: lowNodeUtilization", params],
        ["- name: named", "  params: {pod: hot-8}"],
    )
    usage = percents(hot=(90, 50), cold=(5, 5))
    victims = gone(HOT, usage, text, plugins={"rescheduling": Extended})
    assert sorted(victims) == ["hot-0", "hot-1", "hot-8"]


@pytest.mark.parametrize("entry", ["- name: unheard-of", "- some words", "- params: {}"])
def test_a_strategy_that_is_not_known_is_left_out(entry: str) -> None:
    assert gone(HOT, percents(hot=(90, 50), cold=(5, 5)), own([entry])) == []


@pytest.mark.parametrize(
    ("entry", "reported"),
    [
        ("- name: lowNodeUtilisation", "'lowNodeUtilisation'; did you mean 'lowNodeUtilization'?"),
        ("- some words", "unknown strategy 'some words'"),
        ("- {name: lowNodeUtilization, params: 5}", "expected a mapping as params"),
        (
            "- {name: lowNodeUtilization, params: {thresholds: {cpu: many}}}",
            "expected integer, got 'many' (lowNodeUtilization.thresholds.cpu",
        ),
        (
            "- {name: lowNodeUtilization, params: {threshold: {}}}",
            "did you mean 'thresholds'?",
        ),
    ],
)
def test_a_check_tells_of_strategies_and_params_that_are_of_no_use(
    entry: str, reported: str
) -> None:
    (problem,) = Scheduler(parse_conf(own([entry]))).warnings
    assert (problem.line, problem.field) == (6, "strategies")
    assert reported in str(problem)


@pytest.mark.parametrize("first", ["a", "b"])
def test_of_equally_busy_nodes_the_first_by_name_is_drained_first(first: str) -> None:
    """There is room for one pod: it is the same one whichever node arrived first."""
    hot = [node(name, cpu=10) for name in sorted("ab", reverse=first == "b")]
    pods = [*busy_pods(9, "a", memory="64Mi"), *busy_pods(9, "b", memory="64Mi")]
    world = [*hot, node("cold", cpu=10), *group(*pods)]
    usage = percents(a=(90, 50), b=(90, 50), cold=(70, 5))
    low = conf("cpu: 75, memory: 75", "cpu: 80, memory: 85")
    assert gone(world, usage, low)[:1] == ["a-0"]


@pytest.mark.parametrize(
    ("interval", "last", "now", "moved"),
    [
        (300.0, 1000.0, 1301.0, 1000.0),
        (300.0, 1000.0, 1302.0, 1301.0),
        (300.0, 1000.0, 1700.0, 1602.0),
        (300.0, 1000.0, 999.0, 1000.0),
        (0.5, 1000.0, 1004.0, 1003.0),
    ],
)
def test_runs_that_were_passed_over_count_as_run(
    interval: float, last: float, now: float, moved: float
) -> None:
    memory = {"rescheduling": last}
    plugin = Rescheduling(interval=Duration(interval))
    plugin.passed_over(memory, now)
    assert memory == {"rescheduling": moved}
    empty: dict[str, Any] = {}
    plugin.passed_over(empty, now)
    assert empty == {}


@pytest.mark.parametrize(
    ("last", "due"), [(None, True), (NOW - 301, True), (NOW - 300, False), (NOW, False)]
)
def test_it_runs_after_its_interval_and_tells_when(last: float | None, due: bool) -> None:
    plugin = Rescheduling()
    objects = [node("n"), *group()]
    ssn = open_session(objects, [plugin], now=NOW)
    ssn.memory.clear()
    ssn.memory |= {} if last is None else {"rescheduling": last}
    plugin.on_open(ssn)
    assert bool(plugin._due) is due
    assert ssn.memory.get("rescheduling") == (NOW if due else last)
    assert plugin.changes_at(ssn) == (NOW if due or last is None else last) + 301.0
    plugin.victims([])
    assert plugin.changes_at(ssn) == (None if due else (last or NOW) + 301.0)


def test_of_two_entries_of_one_name_the_last_counts() -> None:
    entry = {"name": "lowNodeUtilization"}
    twice = [{**entry, "params": {"thresholds": {"cpu": n}}} for n in (10, 20)]
    (made,) = Rescheduling(strategies=[*twice, {"name": "other"}, 3])._make()
    assert isinstance(made, LowNodeUtilization)
    assert made.thresholds.cpu == 20
    assert len(Rescheduling()._make()) == 1


def test_pods_of_one_node_are_chosen_to_the_letter() -> None:
    """Fractions of a milli-cpu do not exist; a node without capacity is never drained below."""
    bare = node("hot", cpu=10)
    bare["status"]["capacity"] = {}
    objects = [bare, node("cold", cpu=10), *group(*busy_pods(4, cpu="100m"))]
    assert len(gone(objects, percents(hot=(90, 50), cold=(5, 5)), STANDARD)) == 4
