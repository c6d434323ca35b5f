"""What a cycle is measured by: its decisions, writes, times and losses."""

import itertools
from typing import Any

import pytest

from pumice.binder import Binder
from pumice.cluster.embedded.node_operations import add_node
from pumice.metrics import Metrics
from pumice.testing import pod, pod_group
from tests.unit.serve.scheduler.test_loop import Cluster, ended_after, job, looping


@pytest.fixture
def cluster() -> Any:
    cluster = Cluster()
    add_node(cluster, "n", {"cpu": "4", "memory": "8Gi"})
    return cluster


def test_figures_are_counted(cluster: Any) -> None:
    job(cluster)
    metrics = Metrics()
    loop, stop, _ = ended_after(cluster, 3, metrics=metrics)
    loop.run(stop)
    text = metrics.text()
    for line in (
        'volcano_schedule_attempts_total{result="scheduled"} 1',
        'pumice_writes_total{result="ok",verb="bind"} 1',
        'volcano_action_scheduling_latency_milliseconds_count{action="allocate"} 3',
        "volcano_e2e_scheduling_latency_milliseconds_count 3",
        'pumice_cache_objects{kind="Pod"} 1',
        'volcano_scheduling_stage_duration_milliseconds_count{stage="Bind"} 1',
        'volcano_e2e_job_scheduling_duration{job_name="g"',
    ):
        assert line in text


def test_actions_and_plugins_take_the_time_between_two_looks_at_the_clock(cluster: Any) -> None:
    times, metrics = itertools.count(10**6), Metrics()
    looping(cluster, metrics=metrics, clock=lambda: next(times))._turn()
    lines = dict(line.rsplit(" ", 1) for line in metrics.text().splitlines() if line[0] != "#")
    action = 'volcano_action_scheduling_latency_milliseconds_sum{action="allocate"}'
    assert 0 < float(lines[action]) < 60_000
    plugins = [
        float(lines[each]) for each in lines if each.startswith("volcano_plugin") and "_sum" in each
    ]
    assert plugins
    assert all(0 < each < 60_000 for each in plugins)


def test_each_lost_event_is_counted_once(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = Metrics()
    loop = looping(cluster, metrics=metrics)
    for lost, counted in ((2, 2), (2, 2), (5, 5)):
        monkeypatch.setattr(Binder, "events_lost", lost)
        loop._turn()
        assert f"pumice_events_dropped_total {counted}" in metrics.text()


def test_a_job_that_names_no_queue_is_counted_in_the_default_one(cluster: Any) -> None:
    bare = pod_group("bare", queue=None, phase="Running")
    pods = [pod(f"bare-{i}", group="bare", cpu=1, node="n") for i in range(2)]
    cluster.restore([*cluster.list("Node")[0], bare, *pods])
    metrics = Metrics()
    loop, stop, _ = ended_after(cluster, 1, metrics=metrics)
    loop.run(stop)
    labels = '{job_name="bare",job_namespace="default",queue="default"}'
    assert f"volcano_e2e_job_scheduling_duration{labels}" in metrics.text()
