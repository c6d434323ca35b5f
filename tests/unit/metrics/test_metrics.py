"""Figures have Volcano's names, types, labels and buckets, and go when their object goes."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pumice.cluster.embedded.kubelet import Kubelet
from pumice.cluster.embedded.node_operations import add_node
from pumice.controllers import all_controllers
from pumice.controllers.base import Key
from pumice.controllers.controller_metrics import ControllerMetrics
from pumice.controllers.threaded_loop import ThreadedLoop
from pumice.errors import UnavailableError
from pumice.metrics import CATALOGUE, Metrics
from pumice.scheduler import Scheduler
from pumice.serve.options import SchedulerOptions
from pumice.serve.scheduler.conf_reload import ConfFile
from pumice.serve.scheduler.loop import SchedulerLoop
from pumice.testing import pod, pod_group, priority_class, queue
from tests.unit.serve.scheduler.test_loop import Cluster

VOLCANO = """
e2e_scheduling_latency_milliseconds open_session_duration_milliseconds
e2e_job_scheduling_latency_milliseconds plugin_scheduling_latency_milliseconds
action_scheduling_latency_milliseconds task_scheduling_latency_milliseconds
scheduling_stage_duration_milliseconds e2e_job_scheduling_duration e2e_job_scheduling_start_time
e2e_job_scheduling_last_time pod_preemption_victims unschedule_task_count unschedule_job_count
job_share namespace_share namespace_weight namespace_weighted_share schedule_attempts_total
total_preemption_attempts eviction_transactions_total job_retry_counts
queue_allocated_milli_cpu queue_allocated_memory_bytes queue_allocated_scalar_resources
queue_request_milli_cpu queue_request_memory_bytes queue_request_scalar_resources
queue_deserved_milli_cpu queue_deserved_memory_bytes queue_deserved_scalar_resources
queue_capacity_milli_cpu queue_capacity_memory_bytes queue_capacity_scalar_resources
queue_real_capacity_milli_cpu queue_real_capacity_memory_bytes queue_real_capacity_scalar_resources
queue_inqueue_milli_cpu queue_inqueue_memory_bytes queue_inqueue_scalar_resources
queue_share queue_weight queue_overused
controller_job_to_pod_creation_latency_milliseconds
queue_pod_group_inqueue_count queue_pod_group_pending_count queue_pod_group_running_count
queue_pod_group_unknown_count queue_pod_group_completed_count
job_completed_phase_count job_failed_phase_count
jobflow_succeed_phase_count jobflow_failed_phase_count
"""
COUNTERS = {
    "schedule_attempts_total",
    "total_preemption_attempts",
    "eviction_transactions_total",
    "job_retry_counts",
    "job_completed_phase_count",
    "job_failed_phase_count",
    "jobflow_succeed_phase_count",
    "jobflow_failed_phase_count",
}


def filled() -> Any:
    """Return metrics in which every figure has a series."""
    metrics = Metrics()
    metrics.cycle_done(0.1)
    metrics.session_opened(0.1)
    metrics.action_done("allocate", 0.1)
    metrics.plugin_done("gang", "OnSessionOpen", 0.1)
    metrics.task_stage("Bound", 0.1)
    metrics.stage_took("Bind", 0.1)
    metrics.attempts("scheduled", 3)
    metrics.job_seen("j", "q", "ns", now=5.0)
    metrics.job_scheduled("j", "q", "ns", created=1.0, now=5.0)
    metrics.unschedulable({"j": 2})
    metrics.waiting_jobs({"GangShort": 1})
    metrics.reserved(1, {"cpu": 2.0}, {"cpu": 1.0})
    metrics.learned(3, 1)
    metrics.shadow_bind("same")
    metrics.shadow_eviction("same")
    metrics.shadow_waiting(1)
    metrics.job_share("ns", "j", 0.5)
    metrics.preemption(2)
    metrics.eviction_transaction("preempt")
    for amount in ("allocated", "request", "deserved", "capacity", "real_capacity", "inqueue"):
        metrics.queue_amounts("q", amount, 1000, 2048, {"nvidia.com/gpu": 1000})
    metrics.queue_state("q", share=0.5, weight=2, overused=True)
    metrics.queue_pod_groups("q", {"running": 2})
    metrics.namespace_state("ns", 0.5, 2, 0.25)
    metrics.pod_created(0.1)
    for good in (True, False):
        metrics.job_ended("ns/j", "q", completed=good)
        metrics.flow_ended("ns", succeeded=good)
    metrics.looked("job", failed=True)
    metrics.waiting_reconciles(3)
    metrics.objects("Pod", 7)
    metrics.bad_object("Pod")
    metrics.watching("Pod", is_well=True)
    metrics.events_lost(1)
    metrics.write_done("bind")
    metrics.conf_reloaded(good=True)
    return metrics


def types_in(text: Any) -> Any:
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))


def series_in(text: Any) -> Any:
    return {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in text.splitlines()}


def test_all_names_of_volcano_are_exposed_and_no_other_begins_like_them() -> None:
    names = {name for name in types_in(filled().text()) if name.startswith("volcano_")}
    assert names == {f"volcano_{name}" for name in VOLCANO.split()}


def test_all_of_the_catalogue_is_exposed_under_its_kind() -> None:
    types = types_in(filled().text())
    for figure in CATALOGUE:
        assert types[figure.name] == figure.kind, figure.name


@pytest.mark.parametrize("name", sorted(COUNTERS))
def test_counters_keep_the_name_they_have_in_volcano(name: Any) -> None:
    text = filled().text()
    assert types_in(text)[f"volcano_{name}"] == "counter"
    assert any(line.split("{")[0].split()[0] == f"volcano_{name}" for line in text.splitlines())
    assert f"volcano_{name}_total" not in text


def test_times_of_creation_are_not_reported() -> None:
    assert "_created" not in filled().text()


@pytest.mark.parametrize(
    ("name", "least", "most", "count"),
    [
        ("e2e_scheduling_latency_milliseconds", 1, 5000, 20),
        ("open_session_duration_milliseconds", 1, 5000, 20),
        ("e2e_job_scheduling_latency_milliseconds", 100, 120000, 30),
        ("plugin_scheduling_latency_milliseconds", 0.1, 100, 15),
        ("action_scheduling_latency_milliseconds", 1, 2000, 20),
        ("task_scheduling_latency_milliseconds", 50, 60000, 30),
        ("scheduling_stage_duration_milliseconds", 0.1, 500, 20),
        ("controller_job_to_pod_creation_latency_milliseconds", 50, 60000, 30),
    ],
)
def test_buckets_grow_by_one_factor_from_least_to_most(
    name: str, least: float, most: int, count: int
) -> None:
    figure = next(figure for figure in CATALOGUE if figure.name == f"volcano_{name}")
    assert len(figure.buckets) == count
    assert figure.buckets[0] == least
    assert figure.buckets[-1] == pytest.approx(most)
    growth = [b / a for a, b in zip(figure.buckets, figure.buckets[1:], strict=False)]
    assert growth == pytest.approx([growth[0]] * (count - 1))


def test_whole_bounds_are_written_without_a_fraction() -> None:
    text = filled().text()
    assert 'volcano_e2e_scheduling_latency_milliseconds_bucket{le="1"}' in text


def test_times_go_in_as_seconds_and_come_out_as_milliseconds() -> None:
    series = series_in(filled().text())
    assert series["volcano_e2e_scheduling_latency_milliseconds_sum"] == "100"
    where = '{job_name="j",job_namespace="ns",queue="q"}'
    assert series[f"volcano_e2e_job_scheduling_duration{where}"] == "4000"


def test_a_job_that_goes_takes_its_series_along() -> None:
    metrics = filled()
    metrics.forget_job("j", "q", "ns")
    metrics.forget_ended_job("ns/j", "q")
    assert '"j"' not in metrics.text()
    assert '"ns/j"' not in metrics.text()
    metrics.forget_job("j", "q", "ns")  # a second time is no harm


def test_a_queue_that_goes_takes_its_series_along() -> None:
    metrics = filled()
    metrics.forget_queue("q")
    assert not [
        line
        for line in metrics.text().splitlines()
        if 'queue_name="q"' in line and "phase_count" not in line
    ]
    metrics.forget_queue("never-seen")


def test_a_resource_that_a_queue_no_longer_has_falls_to_zero() -> None:
    metrics = filled()
    metrics.queue_amounts("q", "allocated", 0, 0, {})
    where = '{queue_name="q",resource="nvidia.com/gpu"}'
    assert series_in(metrics.text())[f"volcano_queue_allocated_scalar_resources{where}"] == "0"


def test_a_job_that_found_a_place_counts_no_waiting_tasks() -> None:
    metrics = Metrics()
    metrics.unschedulable({"a": 2, "b": 1})
    metrics.unschedulable({"b": 1})
    series = series_in(metrics.text())
    assert series['volcano_unschedule_task_count{job_id="a"}'] == "0"
    assert series['volcano_unschedule_task_count{job_id="b"}'] == "1"
    assert series["volcano_unschedule_job_count"] == "1"
    assert series['volcano_job_retry_counts{job_id="b"}'] == "2"


def test_label_values_are_escaped() -> None:
    metrics = Metrics()
    metrics.queue_state('a"b\\c\nd', weight=1)
    assert 'queue_name="a\\"b\\\\c\\nd"' in metrics.text()


def test_two_processes_in_one_do_not_share_figures() -> None:
    one, two = Metrics(), Metrics()
    one.preemption(5)
    assert series_in(two.text())["volcano_total_preemption_attempts"] == "0"


def test_a_process_tells_only_what_it_knows_of() -> None:
    metrics = Metrics(groups=["controllers"])
    metrics.cycle_done(1.0)  # no harm
    names = types_in(metrics.text())
    assert "volcano_controller_job_to_pod_creation_latency_milliseconds" in names
    assert "volcano_e2e_scheduling_latency_milliseconds" not in names
    assert "pumice_leader" in names


def test_many_observations_at_once_count_as_one_by_one() -> None:
    waits = [0.0, 0.004, 0.005, 0.0051, 0.01, 0.3, 5.0, 1e6, -1.0]
    together, single = Metrics(), Metrics()
    together.task_stage("Bound", *waits)
    for wait in waits:
        single.task_stage("Bound", wait)
    name = "volcano_task_scheduling_latency_milliseconds"
    found = [
        {key: text for key, text in series_in(each.text()).items() if key.startswith(name)}
        for each in (together, single)
    ]
    assert found[0] == found[1]
    assert found[0][f'{name}_count{{stage="Bound"}}'] == "9"
    buckets = [line for line in found[0] if "_bucket" in line]
    assert len({found[0][line] for line in buckets}) > 3


GPU = "nvidia.com/gpu"
QUEUE = "Queue.scheduling.volcano.sh"
CONF = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""


class WithoutEvents(Cluster):
    """A cluster that takes no events."""

    def submit(self, write: Any, *, lane: Any, done: Any = None) -> None:
        if write.verb == "record":
            done(UnavailableError(sent=False))
        else:
            super().submit(write, lane=lane, done=done)


FLOW_API = "flow.volcano.sh/v1alpha1"


def job_spec(*, fails: Any) -> Any:
    end = "fail-after-seconds" if fails else "run-seconds"
    marks = {f"pumice.dev/{end}": "1"}
    template = {
        "metadata": {"annotations": marks},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        },
    }
    return {
        "minAvailable": 1,
        "queue": "default",
        "schedulerName": "volcano",
        "maxRetry": 1,
        "tasks": [{"name": "t", "replicas": 1, "template": template}],
    }


def made(api: Any, kind: Any, name: Any, spec: Any) -> Any:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def workload() -> Iterator[Any]:
    """Return jobs and flows that end well and badly, a queue with limits, and victims."""
    yield priority_class("high", value=9)
    yield queue("q", capability={"cpu": 6, "memory": "4Gi", GPU: 2})
    for name, fails in (("good", False), ("bad", True)):
        yield made(FLOW_API, "JobTemplate", name, job_spec(fails=fails))
        flow = {"jobRetainPolicy": "retain", "flows": [{"name": name}]}
        yield made(FLOW_API, "JobFlow", f"flow-{name}", flow)
    yield pod_group("low", queue="q", min_member=1, phase=None)
    for index in range(4):
        marks = {"volcano.sh/preemptable": "true"}
        yield pod(f"low-{index}", group="low", cpu=1, annotations=marks)
    yield pod_group("huge", queue="q", min_member=1, phase="Inqueue")
    yield pod("huge-0", group="huge", cpu=9)
    bad = pod("unreadable", cpu=1)
    bad["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "much"}}
    yield bad


def urgent() -> Iterator[Any]:
    """Return a job for which others must go."""
    yield pod_group("high", queue="q", min_member=1, phase="Inqueue", priority_class="high")
    yield pod("high-0", group="high", cpu=4, priority_class="high")


class Broken:
    """A controller that fails on everything."""

    name = "broken"
    watches = (QUEUE,)

    def concerns(self, kind: Any, manifest: Any, view: Any) -> Any:
        return [Key(kind, "", manifest["metadata"]["name"])]

    def reconcile(self, key: Any, view: Any) -> Any:
        raise RuntimeError("no")


class Plane:
    """Scheduler, controllers and kubelet on one cluster, all telling one set of figures."""

    def __init__(self, folder: Any) -> None:
        self.metrics = Metrics()
        self.cluster = cluster = WithoutEvents()
        self.kubelet = Kubelet(cluster)
        path = folder / "conf.yaml"
        path.write_text(CONF)
        conf_file = ConfFile(str(path), Scheduler, metrics=self.metrics)
        live: Any = cluster
        self.scheduler = SchedulerLoop(
            live, SchedulerOptions(), conf_file.latest, self.metrics, clock=cluster.now
        )
        self.controllers = ThreadedLoop(
            cluster, [*all_controllers(), Broken()], wake=threading.Event(), metrics=self.metrics
        )
        figures = ControllerMetrics(self.metrics, self.controllers.view)
        self.controllers.on_change.append(figures.notice)

    def run(self, seconds: Any) -> None:
        for _ in range(seconds):
            self.controllers.run_until_quiet()
            self.scheduler._turn()
            self.kubelet.sync()
            self.cluster.clock.advance(1.0)  # type: ignore[attr-defined]
        self.controllers.run_until_quiet()


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Any]:
    plane = Plane(tmp_path)
    yield plane
    plane.controllers.close()


def samples(text: Any) -> Any:
    found: dict[Any, Any] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found.setdefault(name.partition("{")[0], []).append(float(value))
    return found


def test_every_figure_moves_in_a_run(plane: Any) -> None:
    plane.scheduler._wait_synced(threading.Event())
    plane.run(1)
    add_node(plane.cluster, "n", {"cpu": "6", "memory": "8Gi", GPU: "2"})
    for manifest in workload():
        plane.cluster.create(manifest)
    plane.run(12)
    for manifest in urgent():
        plane.cluster.create(manifest)
    plane.run(12)
    for number in range(40):
        plane.cluster.create(queue(f"late-{number}"))
    plane.controllers.turn()  # more than it can look at at once
    found = samples(plane.metrics.text())
    still = []
    for figure in CATALOGUE:
        if re.match("pumice_(shadow|reserved|learned)_", figure.name):  # see their own tests
            continue
        if figure.name.endswith("_mismatches_total"):  # must stay 0
            continue
        name = f"{figure.name}_count" if figure.kind == "histogram" else figure.name
        values = found.get(name, [])
        if not (values if figure.kind == "gauge" and figure.labels else any(values)):
            still.append(figure.name)
    assert still == []
