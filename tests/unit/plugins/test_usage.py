"""usage: measured load closes nodes, measured and guessed load scores them."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from pumice.api.conf import parse_conf
from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.framework.dispatch import Enabled
from pumice.framework.session import Session
from pumice.plugins.usage import Estimator, Thresholds, Usage
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue

NOW = 1_768_471_200.0  # 2026-01-15T10:00:00Z
WAITING = [queue("default"), pod_group("g"), pod("p", group="g", cpu=1, memory="1Gi")]


def measured(cpu: Any = 0.0, memory: Any = 0.0, age: Any = 0.0) -> Any:
    return {"cpu": cpu, "memory": memory, "metricsTime": NOW - age}


def session(*objects: Any, usage: Any = None, plugin: Any = None, metrics: Any = None) -> Any:
    world = [node("n1", cpu=10, memory="10Gi"), *WAITING, *objects]
    snapshot = Ingest(Snapshot()).load([from_manifest(each) for each in world])
    load = {"n1": measured()} if usage is None else usage
    tiers = [[Enabled(plugin or Usage(), {})]]
    return Session(snapshot, tiers, now=NOW, node_usage=load, metrics=metrics)


def score(ssn: Any, pod_name: str = "p", node_row: Any = 0) -> Any:
    task = ssn.task(ssn.snapshot.tasks.row_of[f"default/{pod_name}"])
    return float(ssn.placing.scores(task, np.array([node_row]))[0])


def is_open(**options: Any) -> bool:
    ssn = session(**options)
    task = ssn.task(ssn.snapshot.tasks.row_of["default/p"])
    return not ssn.placing.fit(task).verdict[0]


@pytest.mark.parametrize(
    ("load", "opened"),
    [
        (measured(80, 80), True),
        (measured(80.1, 0), False),
        (measured(0, 80.1), False),
        (measured(99, 99, age=300), False),
        (measured(99, 99, age=301), True),
        ({"cpu": 99, "memory": 99}, True),
    ],
)
def test_a_node_closes_when_it_was_lately_measured_above_a_threshold(
    load: Any, opened: bool
) -> None:
    assert is_open(usage={"n1": load}) == opened


def test_a_node_that_was_never_measured_is_open_and_scores_nothing() -> None:
    assert is_open(usage={"another": measured(99)})
    assert score(session(usage={})) == 0


def test_thresholds_are_arguments_and_no_eviction_cures_a_high_load() -> None:
    plugin = Usage(thresholds=Thresholds(cpu=30, memory=100))
    ssn = session(usage={"n1": measured(31, 100)}, plugin=plugin)
    fit = ssn.placing.fit(ssn.task(ssn.snapshot.tasks.row_of["default/p"]))
    assert ssn.placing.incurable(fit).tolist() == [True]


@pytest.mark.parametrize(
    ("load", "fields", "expected"),
    [
        (measured(40, 60), {}, 250),
        (measured(40, 60), {"weight": 1}, 50),
        (measured(40, 60), {"cpu": 3}, 275),
        (measured(40, 60), {"cpu": 0}, 200),
        (measured(40, 60), {"cpu": 0, "memory": 0}, 0),
        (measured(40, 60, age=301), {}, 0),
        (measured(120, 100), {}, 0),
    ],
)
def test_the_less_a_node_uses_the_better_it_scores(load: Any, fields: Any, expected: int) -> None:
    """((1 - cpu) * weight + (1 - memory) * weight) / weights * 100 * weight of the plugin."""
    assert score(session(usage={"n1": load}, plugin=Usage(**fields))) == pytest.approx(expected)


def guessed_cpu(*objects: Any, plugin: Any = None, **options: Any) -> Any:
    """Return what is guessed of cpu on the node, in milli-cpu, read back from the score."""
    fields = vars(plugin or Usage()) | {"weight": 1, "memory": 0}
    names = ("weight", "cpu", "memory", "thresholds", "estimator")
    ssn = session(*objects, plugin=Usage(**{name: fields[name] for name in names}), **options)
    return pytest.approx((100 - score(ssn)) / 100 * 10_000)


def started(name: Any, seconds_ago: Any, **facts: Any) -> Any:
    one = pod(name, group="g", node="n1", **facts)
    moment = datetime.fromtimestamp(NOW - seconds_ago, tz=UTC)
    one["status"]["startTime"] = moment.isoformat()
    return one


@pytest.mark.parametrize(
    ("one", "milli"),
    [
        (pod("a", group="g", cpu=1, node="n1"), 700),
        (pod("a", group="g", cpu=1, node="n1", phase="Pending"), 700),
        (pod("a", cpu=1, node="n1", scheduler="another"), 700),
        (started("a", 29, cpu=1), 700),
        (started("a", 30, cpu=1), 0),
        (pod("a", group="g", cpu=1, node="n1", phase="Succeeded"), 0),
        (pod("a", group="g", cpu=1), 0),
    ],
)
def test_pods_too_young_to_be_measured_are_guessed_at(one: Any, milli: int) -> None:
    """Bound, running without a start, or started less than 30 seconds ago."""
    assert guessed_cpu(one) == milli


@pytest.mark.parametrize(
    ("metrics", "milli"),
    [
        ({"interval": "1m"}, 700),
        ({"interval": "46s"}, 700),
        ({"interval": "often"}, 0),
        ({"interval": "0s"}, 0),
        ({"interval": "-1m"}, 0),
        ({}, 0),
    ],
)
def test_how_young_is_a_matter_of_the_interval_between_measurements(
    metrics: Any, milli: int
) -> None:
    """An interval that is not positive is the default, 30 seconds."""
    assert guessed_cpu(started("a", 45, cpu=1), metrics=metrics) == milli


BURST = Usage(estimator=Estimator(request_ratio=0.5, burst_ratio=0.25))


@pytest.mark.parametrize(
    ("facts", "plugin", "milli"),
    [
        ({"cpu": 2}, None, 1400),
        ({"cpu": 2, "limits": {"cpu": 4}}, None, 1400),
        ({"cpu": 2}, BURST, 1000),
        ({"cpu": 2, "limits": {"cpu": 4}}, BURST, 1500),
        ({"cpu": 2, "limits": {"cpu": 1}}, BURST, 1000),
        ({}, None, 250),
        ({}, Usage(estimator=Estimator(best_effort_cpu="1500m")), 1500),
        ({}, Usage(estimator=Estimator(best_effort_cpu=900)), 900),
        ({}, Usage(estimator=Estimator(best_effort_cpu=-900)), 250),
        ({}, Usage(estimator=Estimator(best_effort_cpu=True)), 250),
        ({}, Usage(estimator=Estimator(best_effort_cpu="much")), 250),
    ],
)
def test_a_guess_is_part_of_the_request_and_of_what_the_limit_leaves(
    facts: Any, plugin: Any, milli: int
) -> None:
    assert guessed_cpu(pod("a", group="g", node="n1", **facts), plugin=plugin) == milli


@pytest.mark.parametrize(
    ("load", "factor", "milli"), [(59.9, 1.2, 700), (60, 1.2, 840), (60, 2.0, 1000)]
)
def test_on_a_loaded_node_guesses_are_cautious_but_within_the_limit(
    load: float, factor: float, milli: int
) -> None:
    plugin = Usage(estimator=Estimator(risk_factor=factor))
    ssn_usage = {"n1": measured(load, load)}
    found = guessed_cpu(pod("a", group="g", cpu=1, node="n1"), plugin=plugin, usage=ssn_usage)
    assert found == milli + load * 100


def test_limits_count_sidecars_init_containers_and_overhead() -> None:
    """Two containers and a sidecar make 1.5, an init container beside the sidecar 2.5; +0.5."""

    def container(cpu: Any, **more: Any) -> Any:
        return {"name": "c", "resources": {"limits": {"cpu": cpu}}, **more}

    spec = {
        "containers": [
            {"name": "a", "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "500m"}}},
            container("500m"),
        ],
        "initContainers": [container("500m", restartPolicy="Always"), container("2")],
        "overhead": {"cpu": "500m"},
    }
    plugin = Usage(estimator=Estimator(request_ratio=1.0, burst_ratio=1.0))
    assert guessed_cpu(pod("a", group="g", node="n1", spec=spec), plugin=plugin) == 3000


def test_the_limit_of_a_pod_as_a_whole_replaces_those_of_its_containers() -> None:
    limited = {"requests": {"cpu": "100m"}, "limits": {"cpu": "500m"}}
    spec = {
        "containers": [{"name": "a", "resources": limited}],
        "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
        "overhead": {"cpu": "500m"},
    }
    plugin = Usage(estimator=Estimator(request_ratio=1.0, burst_ratio=1.0))
    assert guessed_cpu(pod("a", group="g", node="n1", spec=spec), plugin=plugin) == 3500


CONF = """
actions: allocate
tiers:
- plugins:
  - name: usage
    enablePredicate: {predicate}
    arguments:
      usage.weight: -1
      thresholds: {{cpu: 101, mem: 70}}
      estimator: {{request_ratio: 1.5, risk_factor: 0.5}}
"""


@pytest.mark.parametrize(
    ("load", "predicate", "bound"),
    [((75, 0), "true", True), ((0, 75), "true", False), ((0, 75), "false", True)],
)
def test_arguments_out_of_bounds_keep_their_defaults_and_the_filter_has_a_switch(
    load: Any, predicate: str, bound: bool
) -> None:
    scheduler = Scheduler(parse_conf(CONF.format(predicate=predicate)))
    binds = scheduler.cycle([node("n1"), *WAITING], NOW, {"n1": measured(*load)}).binds
    assert bool(binds) == bound


def test_each_threshold_has_its_own_reason_and_cpu_is_reported_first() -> None:
    def reason(cpu: int, memory: int) -> str:
        ssn = session(usage={"n1": measured(cpu, memory)})
        code = ssn.placing.fit(ssn.task(ssn.snapshot.tasks.row_of["default/p"])).verdict[0]
        return str(ssn.placing.reasons[code].text)

    texts = [f"the {kind} load of the node exceeds the upper limit." for kind in ("CPU", "memory")]
    assert [reason(81, 0), reason(0, 81), reason(81, 81)] == [texts[0], texts[1], texts[0]]


def guessed_mib(*objects: Any, **fields: Any) -> float:
    """Return what is guessed of memory on the node, in MiB."""
    ssn = session(*objects, plugin=Usage(weight=1, cpu=0, **fields))
    return round((100 - score(ssn)) / 100 * 10 * 1024, 3)


@pytest.mark.parametrize(
    ("given", "mib"), [("200Mi", 200), ("1Gi", 1024), (300, 300), (0, 0), (-1, 200), ("much", 200)]
)
def test_a_pod_without_requests_is_expected_to_use_some_memory(given: Any, mib: int) -> None:
    how = Estimator(best_effort_memory=given)
    assert guessed_mib(pod("a", group="g", node="n1"), estimator=how) == mib


@pytest.mark.parametrize(
    ("facts", "mib"),
    [
        ({"memory": "1Gi"}, 512),
        ({"memory": "1Gi", "limits": {"memory": "3Gi"}}, 1024),
        ({"memory": "1Gi", "limits": {"cpu": 4}}, 512),
    ],
)
def test_a_guess_of_memory_follows_request_and_limit_of_memory(facts: Any, mib: int) -> None:
    how = Estimator(request_ratio=0.5, burst_ratio=0.25)
    assert guessed_mib(pod("a", group="g", node="n1", **facts), estimator=how) == mib


@pytest.mark.parametrize(
    ("weights", "risky"), [((1, 1), True), ((1, 0), True), ((0, 1), False), ((3, 1), True)]
)
def test_caution_follows_the_weighted_load(weights: tuple[int, int], risky: bool) -> None:
    """CPU at 80 %, memory at 40 %: the average of both is 60 %, the threshold."""
    cpu, memory = weights
    plugin = Usage(cpu=cpu, memory=memory)
    young = pod("a", group="g", cpu=1, memory="1Gi", node="n1")
    session(young, usage={"n1": measured(80, 40)}, plugin=plugin)
    assert plugin._of_node[0, 0] == pytest.approx(840 if risky else 700)
