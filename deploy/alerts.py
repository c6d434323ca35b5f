"""Alerts about Pumice, as Prometheus reads them.

Each expression names metrics of ``pumice.metrics.CATALOGUE``, and each alert has a section of its
own in ``docs/runbook.md``; a test checks both.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal

Manifest = dict[str, Any]
RUNBOOK: Final = "RUNBOOK"
"""Stands for the address of the runbook, which the chart puts in."""
_CYCLES: Final = "volcano_e2e_scheduling_latency_milliseconds"
_BY_JOB: Final = "namespace, job"
"""``job`` is the scraped service: the scheduler or the controllers."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert."""

    name: str
    expression: str
    lasts: str
    """How long the expression must hold."""
    severity: Literal["critical", "warning", "info"]
    summary: str

    @property
    def anchor(self) -> str:
        """The section of the runbook that says what to do."""
        return self.name.lower()

    def rule(self) -> Manifest:
        """Return it as Prometheus reads it."""
        return {
            "alert": self.name,
            "expr": self.expression,
            "for": self.lasts,
            "labels": {"severity": self.severity},
            "annotations": {"summary": self.summary, "runbook_url": f"{RUNBOOK}#{self.anchor}"},
        }


def _rate(counter: str, window: str, by: str = _BY_JOB) -> str:
    return f"sum by ({by}) (rate({counter}[{window}]))"


def _ratio(part: str, whole: str, by: str) -> str:
    labels = f"{_BY_JOB}, {by}"
    return f"{_rate(part, '10m', labels)} / {_rate(whole, '10m', labels)}"


def _scheduled(window: str) -> str:
    return _rate('volcano_schedule_attempts_total{result="scheduled"}', window)


_EVICTIONS: Final = _rate("volcano_eviction_transactions_total", "15m")

ALERTS: Final = (
    Alert(
        "PumiceSchedulerAbsent",
        f"absent({_CYCLES}_count)",
        "5m",
        "critical",
        "No scheduler of Pumice is scraped.",
    ),
    Alert(
        "PumiceNoLeader",
        f"sum by ({_BY_JOB}) (pumice_leader) == 0",
        "2m",
        "critical",
        "No replica of {{ $labels.job }} holds the lease, so none of them works.",
    ),
    Alert(
        "PumiceNoCycles",
        f"{_rate(f'{_CYCLES}_count', '5m')} == 0 and sum by ({_BY_JOB}) (pumice_leader) > 0",
        "5m",
        "critical",
        "{{ $labels.job }} leads but finishes no cycle.",
    ),
    Alert(
        "PumiceNotReady",
        f"min by ({_BY_JOB}, pod) (pumice_ready) == 0",
        "10m",
        "warning",
        "{{ $labels.pod }} has not listed everything that it follows.",
    ),
    Alert(
        "PumiceWatchBroken",
        f"min by ({_BY_JOB}, kind) (pumice_watch_ok) == 0",
        "5m",
        "warning",
        "{{ $labels.job }} gets no changes of {{ $labels.kind }}.",
    ),
    Alert(
        "PumiceConfigurationBad",
        f"min by ({_BY_JOB}, pod) (pumice_conf_good) == 0",
        "5m",
        "warning",
        "{{ $labels.pod }} cannot use its configuration file; the last good one counts.",
    ),
    Alert(
        "PumiceWritesRefused",
        _ratio('pumice_writes_total{result!="ok"}', "pumice_writes_total", "verb") + " > 0.1",
        "10m",
        "warning",
        "More than a tenth of the writes '{{ $labels.verb }}' of {{ $labels.job }} fail.",
    ),
    Alert(
        "PumiceBadObjects",
        f"sum by ({_BY_JOB}, kind) (increase(pumice_bad_objects_total[1h])) > 0",
        "5m",
        "info",
        "{{ $labels.job }} cannot read some {{ $labels.kind }} objects and skips them.",
    ),
    Alert(
        "PumiceCyclesSlow",
        f"histogram_quantile(0.9, {_rate(f'{_CYCLES}_bucket', '10m', f'le, {_BY_JOB}')}) > 2000",
        "15m",
        "warning",
        "One cycle in ten of {{ $labels.job }} takes more than 2 s.",
    ),
    Alert(
        "PumiceEvictionStorm",
        f"{_EVICTIONS} > 0.02 unless {_EVICTIONS} <= 0.5 * {_scheduled('15m')}",
        "15m",
        "warning",
        "{{ $labels.job }} evicts more than once for every two pods that it places.",
    ),
    Alert(
        "PumiceNothingScheduled",
        f"sum by ({_BY_JOB}) (volcano_unschedule_job_count) > 0 unless {_scheduled('30m')} > 0",
        "30m",
        "info",
        "Jobs wait, and {{ $labels.job }} has placed no pod for half an hour.",
    ),
    Alert(
        "PumiceControllerFailures",
        _ratio("pumice_controller_failures_total", "pumice_controller_looks_total", "controller")
        + " > 0.1",
        "15m",
        "warning",
        "{{ $labels.controller }} fails on more than a tenth of the objects it reconciles.",
    ),
    Alert(
        "PumiceControllerBacklog",
        f"max by ({_BY_JOB}) (pumice_controller_queue_depth) > 1000",
        "15m",
        "warning",
        "More than 1,000 objects wait for the controllers.",
    ),
)


def alert_rules() -> Manifest:
    """Return the specification of a PrometheusRule."""
    return {"groups": [{"name": "pumice", "rules": [alert.rule() for alert in ALERTS]}]}
