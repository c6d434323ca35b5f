"""The calls by which the running parts record metrics; times are in seconds.

One object a process, with a registry of its own.  Safe to call from several threads.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

from pumice import __version__
from pumice.metrics.catalogue import CATALOGUE, QUEUE_AMOUNTS, Group, MetricFamily

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SUFFIX: Final = "_total"


def expose(registry: CollectorRegistry) -> str:
    """Write all metrics of a registry."""
    return "".join(line for metric in registry.collect() for line in _family(metric))


def _family(metric: Metric) -> Iterator[str]:
    samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
    if not samples:  # as in the Go library: a family without series is left out
        return
    name = metric.name
    if metric.type == "counter" and samples[0].name != name:
        name += _SUFFIX
    kind = "untyped" if metric.type == "unknown" else metric.type
    yield f"# HELP {name} {_escape(metric.documentation)}\n"
    yield f"# TYPE {name} {kind}\n"
    for sample in samples:
        yield _line(sample)


def _line(sample: Sample) -> str:
    labels = ",".join(
        f'{name}="{_quote(_whole(text) if name == "le" else text)}"'
        for name, text in sorted(sample.labels.items())
    )
    place = f"{{{labels}}}" if labels else ""
    number = floatToGoString(sample.value)  # type: ignore[no-untyped-call]
    return f"{sample.name}{place} {_whole(number)}\n"


def _whole(number: str) -> str:
    """Write whole numbers as Go does: 50, not 50.0."""
    return number.removesuffix(".0")


def _quote(text: str) -> str:
    return _escape(text).replace('"', r"\"")


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


_MS: Final = 1000.0
_JOB_METRICS: Final = (
    "volcano_e2e_job_scheduling_duration",
    "volcano_e2e_job_scheduling_start_time",
    "volcano_e2e_job_scheduling_last_time",
)
_QUEUE_STATES: Final = ("share", "weight", "overused")
_PHASES: Final = ("inqueue", "pending", "running", "unknown", "completed")


class _PlainCounter(Gauge):
    """A counter that keeps its name; the library's own would add ``_total``."""

    def collect(self) -> Iterable[Metric]:
        """Return the samples as those of a counter."""
        for metric in super().collect():
            metric.type = "counter"
            yield metric


class _Histogram(Histogram):
    """A histogram that takes many observations at once."""

    def observe_all(self, amounts: Sequence[float]) -> None:
        """Observe amounts; each counts in the first bucket that holds it."""
        for amount in amounts:
            self._buckets[bisect_left(self._upper_bounds, amount)].inc(1)
        self._sum.inc(sum(amounts))


def _make(family: MetricFamily, registry: CollectorRegistry | None) -> Any:
    if family.kind == "histogram":
        return _Histogram(
            family.name, family.help, family.labels, buckets=family.buckets, registry=registry
        )
    kind: type[Gauge | Counter] = Gauge
    if family.kind == "counter":
        kind = Counter if family.name.endswith("_total") else _PlainCounter
    return kind(family.name, family.help, family.labels, registry=registry)


class Metrics:
    """All metrics of one process; only those of the ``groups`` it serves are exposed."""

    def __init__(
        self,
        registry: CollectorRegistry | None = None,
        *,
        groups: Collection[Group] = ("scheduler", "controllers"),
    ) -> None:
        self.registry = registry or CollectorRegistry()
        ProcessCollector(registry=self.registry)
        exposed = {"process", *groups}
        self._families = {
            family.name: _make(family, self.registry if family.group in exposed else None)
            for family in CATALOGUE
        }
        self._children: dict[tuple[str, ...], Any] = {}
        """Series by name and labels: the library takes its time to find one."""
        self._scalars: dict[str, set[str]] = {}
        self._waiting: set[str] = set()
        self._codes: set[str] = set()
        self._resources: set[str] = set()
        """Resources of which something was promised."""
        self._families["pumice_build_info"].labels(__version__).set(1)

    def text(self) -> str:
        """Return all metrics as Prometheus reads them."""
        return expose(self.registry)

    def _child(self, name: str, *labels: str) -> Any:
        key = name, *labels
        child = self._children.get(key)
        if child is None:
            family = self._families[name]
            child = self._children[key] = family.labels(*labels) if labels else family
        return child

    def _observe(self, name: str, seconds: float, *labels: str) -> None:
        self._observe_all(name, (seconds,), *labels)

    def _observe_all(self, name: str, seconds: Iterable[float], *labels: str) -> None:
        amounts = [max(each, 0.0) * _MS for each in seconds]
        if amounts:
            self._child(f"volcano_{name}_milliseconds", *labels).observe_all(amounts)

    def _drop(self, name: str, *labels: str) -> None:
        self._children.pop((name, *labels), None)
        try:
            self._families[name].remove(*labels)
        except KeyError:  # older client libraries: there is no such series
            return

    # A scheduling cycle

    def cycle_done(self, seconds: float) -> None:
        """Count a whole cycle."""
        self._observe("e2e_scheduling_latency", seconds)

    def session_opened(self, seconds: float) -> None:
        """Count the opening of a session."""
        self._observe("open_session_duration", seconds)

    def action_done(self, action: str, seconds: float) -> None:
        """Count one action of a cycle."""
        self._observe("action_scheduling_latency", seconds, action)

    def plugin_done(self, plugin: str, on_session: str, seconds: float) -> None:
        """Count a plugin's part in OnSessionOpen or OnSessionClose."""
        self._observe("plugin_scheduling_latency", seconds, plugin, on_session)

    def task_stage(self, stage: str, *seconds: float) -> None:
        """Count how long after its creation each of some tasks reached a stage."""
        self._observe_all("task_scheduling_latency", seconds, stage)

    def stage_took(self, stage: str, *seconds: float) -> None:
        """Count how long a stage of scheduling took for each of some tasks."""
        self._observe_all("scheduling_stage_duration", seconds, stage)

    def attempts(self, result: str, count: int = 1) -> None:
        """Count tasks by result: scheduled, unschedulable, error."""
        self._child("volcano_schedule_attempts_total", result).inc(count)

    # Jobs

    def job_seen(self, job: str, queue: str, namespace: str, *, now: float) -> None:
        """Remember when a job was first seen."""
        self._child(_JOB_METRICS[1], job, queue, namespace).set(int(now))

    def job_scheduled(
        self, job: str, queue: str, namespace: str, *, created: float, now: float
    ) -> None:
        """Count a job whose tasks got nodes."""
        waited = max(now - created, 0.0)
        self._child(_JOB_METRICS[0], job, queue, namespace).set(waited * _MS)
        self._child(_JOB_METRICS[2], job, queue, namespace).set(int(now))
        self._observe("e2e_job_scheduling_latency", waited)

    def unschedulable(self, tasks: Mapping[str, int]) -> None:
        """Set the jobs that found no place in this cycle, with the number of their tasks."""
        for job in self._waiting - tasks.keys():
            self._child("volcano_unschedule_task_count", job).set(0)
        for job, count in tasks.items():
            self._child("volcano_unschedule_task_count", job).set(count)
            self._child("volcano_job_retry_counts", job).inc()
        self._waiting = {*tasks}
        self._child("volcano_unschedule_job_count").set(len(tasks))

    def waiting_jobs(self, codes: Mapping[str, int]) -> None:
        """Set how many jobs wait, by the code of the decisive cause."""
        for code in self._codes - codes.keys():
            self._child("pumice_waiting_jobs", code).set(0)
        for code, count in codes.items():
            self._child("pumice_waiting_jobs", code).set(count)
        self._codes |= codes.keys()

    def reserved(self, jobs: int, amounts: Mapping[str, float], idle: Mapping[str, float]) -> None:
        """Set how many jobs are promised a start, what, and what is idle meanwhile, by resource."""
        self._child("pumice_reserved_jobs").set(jobs)
        self._resources |= amounts.keys()
        for name in self._resources:
            self._child("pumice_reserved_amount", name).set(amounts.get(name, 0.0))
            self._child("pumice_reserved_idle_amount", name).set(idle.get(name, 0.0))

    def learned(self, ended: int, late: int) -> None:
        """Set from how many jobs run times were learned, and how many ran longer than expected."""
        self._child("pumice_learned_runs", "ended").set(ended)
        self._child("pumice_learned_runs", "late").set(late)

    def shadow_bind(self, outcome: str) -> None:
        """Count a pod that the running scheduler bound, by what the shadow decided."""
        self._child("pumice_shadow_binds_total", outcome).inc()

    def shadow_eviction(self, outcome: str) -> None:
        """Count a pod that the running scheduler evicted, by what the shadow decided."""
        self._child("pumice_shadow_evictions_total", outcome).inc()

    def shadow_waiting(self, pods: int) -> None:
        """Set how many waiting pods the shadow would place."""
        self._child("pumice_shadow_would_place").set(pods)

    def job_share(self, namespace: str, job: str, share: float) -> None:
        """Set a job's dominant share."""
        self._child("volcano_job_share", namespace, job).set(share)

    def forget_job(self, job: str, queue: str, namespace: str) -> None:
        """Drop the metrics of a job that is gone."""
        for name in _JOB_METRICS:
            self._drop(name, job, queue, namespace)
        self._drop("volcano_unschedule_task_count", job)
        self._drop("volcano_job_retry_counts", job)
        self._drop("volcano_job_share", namespace, job)
        self._waiting.discard(job)

    # Evictions

    def preemption(self, victims: int) -> None:
        """Count a preemption that was tried, and how many victims it chose."""
        self._child("volcano_total_preemption_attempts").inc()
        self._child("volcano_pod_preemption_victims").set(victims)

    def eviction_transaction(self, action: str) -> None:
        """Count a statement that evicted."""
        self._child("volcano_eviction_transactions_total", action).inc()

    # Queues and namespaces

    def queue_amounts(
        self, queue: str, amount: str, milli_cpu: float, memory: float, scalars: Mapping[str, float]
    ) -> None:
        """Set one of the amounts of a queue; resources no longer named fall to zero."""
        stem = f"volcano_queue_{amount}"
        self._child(f"{stem}_milli_cpu", queue).set(milli_cpu)
        self._child(f"{stem}_memory_bytes", queue).set(memory)
        known = self._scalars.setdefault(queue, set())
        known.update(scalars)
        for resource in known:
            value = scalars.get(resource, 0.0)
            self._child(f"{stem}_scalar_resources", queue, resource).set(value)

    def queue_state(
        self,
        queue: str,
        *,
        share: float | None = None,
        weight: int | None = None,
        overused: bool | None = None,
    ) -> None:
        """Set the state of a queue."""
        for name, value in zip(_QUEUE_STATES, (share, weight, overused), strict=True):
            if value is not None:
                self._child(f"volcano_queue_{name}", queue).set(float(value))

    def queue_pod_groups(self, queue: str, counts: Mapping[str, int]) -> None:
        """Set how many pod groups of a queue are in each phase (lower case)."""
        for phase in _PHASES:
            self._child(f"volcano_queue_pod_group_{phase}_count", queue).set(counts.get(phase, 0))

    def namespace_state(self, namespace: str, share: float, weight: int, weighted: float) -> None:
        """Set the state of a namespace."""
        self._child("volcano_namespace_share", namespace).set(share)
        self._child("volcano_namespace_weight", namespace).set(weight)
        self._child("volcano_namespace_weighted_share", namespace).set(weighted)

    def forget_namespace(self, namespace: str) -> None:
        """Drop the metrics of a namespace without jobs."""
        for name in ("share", "weight", "weighted_share"):
            self._drop(f"volcano_namespace_{name}", namespace)

    def forget_queue(self, queue: str) -> None:
        """Drop the metrics of a queue that is gone."""
        scalars = self._scalars.pop(queue, set())
        for amount in QUEUE_AMOUNTS:
            self._drop(f"volcano_queue_{amount}_milli_cpu", queue)
            self._drop(f"volcano_queue_{amount}_memory_bytes", queue)
            for resource in scalars:
                self._drop(f"volcano_queue_{amount}_scalar_resources", queue, resource)
        for name in _QUEUE_STATES:
            self._drop(f"volcano_queue_{name}", queue)
        for phase in _PHASES:
            self._drop(f"volcano_queue_pod_group_{phase}_count", queue)

    # Controllers

    def pod_created(self, seconds: float) -> None:
        """Count a pod by the time since its job was created."""
        self._observe("controller_job_to_pod_creation_latency", seconds)

    def job_ended(self, job: str, queue: str, *, completed: bool) -> None:
        """Count a job (as "namespace/name") that completed or failed."""
        result = "completed" if completed else "failed"
        self._child(f"volcano_job_{result}_phase_count", job, queue).inc()

    def forget_ended_job(self, job: str, queue: str) -> None:
        """Drop the metrics of a finished job that is gone."""
        for result in ("completed", "failed"):
            self._drop(f"volcano_job_{result}_phase_count", job, queue)

    def flow_ended(self, namespace: str, *, succeeded: bool) -> None:
        """Count a job flow that succeeded or failed."""
        result = "succeed" if succeeded else "failed"
        self._child(f"volcano_jobflow_{result}_phase_count", namespace).inc()

    def looked(self, controller: str, *, failed: bool = False) -> None:
        """Count a reconciliation of an object by a controller."""
        self._child("pumice_controller_looks_total", controller).inc()
        if failed:
            self._child("pumice_controller_failures_total", controller).inc()

    def waiting_reconciles(self, count: int) -> None:
        """Set how many objects wait for reconciliation."""
        self._child("pumice_controller_queue_depth").set(count)

    # The process

    def leading(self, *, leads: bool) -> None:
        """Set whether this process is the active one."""
        self._child("pumice_leader").set(leads)

    def ready(self, *, is_ready: bool) -> None:
        """Set whether all caches are complete."""
        self._child("pumice_ready").set(is_ready)

    def objects(self, kind: str, count: int) -> None:
        """Set how many objects of a kind are known."""
        self._child("pumice_cache_objects", kind).set(count)

    def bad_object(self, kind: str) -> None:
        """Count an object that was skipped."""
        self._child("pumice_bad_objects_total", kind).inc()

    def watching(self, kind: str, *, is_well: bool) -> None:
        """Set whether changes of a kind arrive."""
        self._child("pumice_watch_ok", kind).set(is_well)

    def events_lost(self, count: int) -> None:
        """Count events that were dropped or refused."""
        self._child("pumice_events_dropped_total").inc(count)

    def mismatches(self, count: int) -> None:
        """Count cycles that were decided otherwise although nothing had changed."""
        self._child("pumice_standing_cycle_mismatches_total").inc(count)

    def write_done(self, verb: str, result: str = "ok", count: int = 1) -> None:
        """Count writes: "ok", or the cluster's reason."""
        self._child("pumice_writes_total", verb, result).inc(count)

    def write_failed(self, verb: str, reason: str) -> None:
        """Count a write that the cluster refused or that did not reach it."""
        self.write_done(verb, reason)

    def conf_reloaded(self, *, good: bool) -> None:
        """Count a configuration file that was read."""
        self._child("pumice_conf_reloads_total", "good" if good else "bad").inc()
        self.conf_good(is_good=good)

    def conf_good(self, *, is_good: bool) -> None:
        """Set whether the configuration as it is can be used."""
        self._child("pumice_conf_good").set(is_good)
