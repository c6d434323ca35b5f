"""Every metric: name, kind, labels, buckets, documentation.

The table is read by the facade, by the documentation and by tests; nothing is measured here.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal

Kind = Literal["histogram", "gauge", "counter"]
Group = Literal["scheduler", "controllers", "process"]

QUEUE_AMOUNTS: Final = ("allocated", "request", "deserved", "capacity", "real_capacity", "inqueue")
"""The amounts of each queue by resource."""
_QUEUE: Final = ("queue_name",)
_JOB: Final = ("job_name", "queue", "job_namespace")


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """One metric family."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    group: Group = "process"
    """Which process serves it; metrics of the process itself are served by all."""


def exponential_buckets(least: float, most: float, count: int) -> tuple[float, ...]:
    """Return ``count`` bucket bounds from least to most, each the same factor above the last.

    Computed as the Go client library does, so that the printed bounds agree.
    """
    growth = (most / least) ** (1.0 / (count - 1))
    return tuple(least * growth**step for step in range(count))


def _latency(
    name: str, text: str, spread: tuple[float, float, int], labels: tuple[str, ...] = ()
) -> MetricFamily:
    buckets = exponential_buckets(*spread)
    return MetricFamily(f"volcano_{name}", "histogram", text, labels, buckets)


def _gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> MetricFamily:
    return MetricFamily(f"volcano_{name}", "gauge", text, labels)


def _counter(name: str, text: str, labels: tuple[str, ...] = ()) -> MetricFamily:
    return MetricFamily(f"volcano_{name}", "counter", text, labels)


def _own(
    kind: Kind, name: str, text: str, labels: tuple[str, ...] = (), group: Group = "process"
) -> MetricFamily:
    return MetricFamily(f"pumice_{name}", kind, text, labels, group=group)


_SCHEDULER: Final = (
    _latency("e2e_scheduling_latency_milliseconds", "A whole scheduling cycle", (1, 5000, 20)),
    _latency("open_session_duration_milliseconds", "Opening a session", (1, 5000, 20)),
    _latency(
        "e2e_job_scheduling_latency_milliseconds",
        "From a job's creation until its tasks have nodes",
        (100, 120_000, 30),
    ),
    _latency(
        "plugin_scheduling_latency_milliseconds",
        "A plugin at the opening or the closing of a session",
        (0.1, 100, 15),
        ("plugin", "OnSession"),
    ),
    _latency("action_scheduling_latency_milliseconds", "One action", (1, 2000, 20), ("action",)),
    _latency(
        "task_scheduling_latency_milliseconds",
        "From a task's creation to a stage: Assumed (decided), Bound",
        (50, 60_000, 30),
        ("stage",),
    ),
    _latency(
        "scheduling_stage_duration_milliseconds",
        "One stage of scheduling a task: Bind (queued to answered)",
        (0.1, 500, 20),
        ("stage",),
    ),
    _gauge("e2e_job_scheduling_duration", "Milliseconds until a job's tasks had nodes", _JOB),
    _gauge("e2e_job_scheduling_start_time", "When a job was first seen, in Unix seconds", _JOB),
    _gauge("e2e_job_scheduling_last_time", "When a job last got a node, in Unix seconds", _JOB),
    _gauge("pod_preemption_victims", "Victims chosen by the last preemption"),
    _gauge(
        "unschedule_task_count",
        "Tasks that a gang lacks, those with a place not counted",
        ("job_id",),
    ),
    _gauge("unschedule_job_count", "Jobs that found no place"),
    _own("gauge", "waiting_jobs", "Jobs that wait, by code of the decisive cause", ("code",)),
    _own("gauge", "reserved_jobs", "Waiting jobs that are promised a start"),
    _own("gauge", "reserved_amount", "What they are promised, by resource", ("resource",)),
    _own(
        "gauge",
        "reserved_idle_amount",
        "What is idle now on the nodes planned for them, at most what they are promised",
        ("resource",),
    ),
    _own(
        "gauge",
        "learned_runs",
        "Jobs from which run times were learned: ended, and late, longer than was expected",
        ("outcome",),
    ),
    _own(
        "counter",
        "shadow_binds_total",
        "Pods that the running scheduler bound, by what the shadow decided: "
        "same, other_node, only_running",
        ("outcome",),
    ),
    _own(
        "counter",
        "shadow_evictions_total",
        "Pods that the running scheduler evicted, by what the shadow decided: same, only_running",
        ("outcome",),
    ),
    _own("gauge", "shadow_would_place", "Waiting pods that the shadow would place for 10 s"),
    _gauge("job_share", "Dominant share of a job", ("job_ns", "job_id")),
    _gauge("namespace_share", "Dominant share of a namespace", ("namespace_name",)),
    _gauge("namespace_weight", "Weight of a namespace", ("namespace_name",)),
    _gauge("namespace_weighted_share", "Share of a namespace by weight", ("namespace_name",)),
    _counter(
        "schedule_attempts_total",
        "Tasks tried, by result: scheduled, unschedulable, error",
        ("result",),
    ),
    _counter("total_preemption_attempts", "Preemptions tried"),
    _counter("eviction_transactions_total", "Statements that evicted, by action", ("action",)),
    _counter("job_retry_counts", "Cycles in which a job had to wait again", ("job_id",)),
)
_QUEUES: Final = (
    *(
        family
        for amount in QUEUE_AMOUNTS
        for family in (
            _gauge(f"queue_{amount}_milli_cpu", f"Queue: cpu, {amount}", _QUEUE),
            _gauge(f"queue_{amount}_memory_bytes", f"Queue: memory, {amount}", _QUEUE),
            _gauge(
                f"queue_{amount}_scalar_resources",
                f"Queue: other resources, {amount}",
                (*_QUEUE, "resource"),
            ),
        )
    ),
    _gauge("queue_share", "Dominant share of a queue", _QUEUE),
    _gauge("queue_weight", "Weight of a queue", _QUEUE),
    _gauge("queue_overused", "1 while a queue holds more than its share", _QUEUE),
)
_CONTROLLERS: Final = (
    _latency(
        "controller_job_to_pod_creation_latency_milliseconds",
        "From a job's creation to that of each of its pods",
        (50, 60_000, 30),
    ),
    *(
        _gauge(f"queue_pod_group_{phase}_count", f"Pod groups of a queue in phase {phase}", _QUEUE)
        for phase in ("inqueue", "pending", "running", "unknown", "completed")
    ),
    _counter("job_completed_phase_count", "Jobs completed", ("job_name", "queue_name")),
    _counter("job_failed_phase_count", "Jobs failed", ("job_name", "queue_name")),
    _counter("jobflow_succeed_phase_count", "Job flows that succeeded", ("jobflow_namespace",)),
    _counter("jobflow_failed_phase_count", "Job flows that failed", ("jobflow_namespace",)),
)
_OWN: Final = (
    _own("gauge", "build_info", "Always 1; the version is a label", ("version",)),
    _own("gauge", "leader", "1 while this process holds the lease, or needs none"),
    _own("gauge", "ready", "1 once all caches are complete"),
    _own("gauge", "cache_objects", "Objects known, by kind", ("kind",)),
    _own("counter", "bad_objects_total", "Objects skipped as unreadable, by kind", ("kind",)),
    _own("gauge", "watch_ok", "1 while changes of a kind arrive", ("kind",)),
    _own("counter", "events_dropped_total", "Events dropped, or refused by the cluster"),
    _own(
        "counter",
        "standing_cycle_mismatches_total",
        "Cycles and refused jobs for which nothing had changed and that were decided otherwise; "
        "must stay 0",
    ),
    _own("counter", "writes_total", "Writes to the cluster, by result", ("verb", "result")),
    _own(
        "counter",
        "conf_reloads_total",
        "Configuration files read, by result",
        ("result",),
        "scheduler",
    ),
    _own("gauge", "conf_good", "1 while the configuration file can be used", (), "scheduler"),
    _own("counter", "controller_looks_total", "Looks at objects", ("controller",), "controllers"),
    _own(
        "counter",
        "controller_failures_total",
        "Reconciliations that failed",
        ("controller",),
        "controllers",
    ),
    _own(
        "gauge",
        "controller_queue_depth",
        "Objects that wait for reconciliation",
        (),
        "controllers",
    ),
)
CATALOGUE: Final[tuple[MetricFamily, ...]] = (
    *(replace(family, group="scheduler") for family in (*_SCHEDULER, *_QUEUES)),
    *(replace(family, group="controllers") for family in _CONTROLLERS),
    *_OWN,
)
"""All metrics, Volcano's first."""
