"""The dashboard for Grafana: queries over ``pumice.metrics.CATALOGUE``, laid out in rows."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

Manifest = dict[str, Any]
Query = tuple[str, str]
"""An expression and the legend of its lines."""
_HERE: Final = '{namespace=~"$namespace"}'
_COLUMNS: Final = 24
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel."""

    title: str
    queries: tuple[Query, ...]
    unit: str = "short"
    width: int = 8
    kind: Literal["timeseries", "stat"] = "timeseries"
    is_stacked: bool = False
    says: str = ""

    def manifest(self, number: int, x: int, y: int, height: int) -> Manifest:
        """Return it as Grafana reads it."""
        custom = {"fillOpacity": 20, "stacking": {"mode": "normal"}} if self.is_stacked else {}
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.says,
            "datasource": _SOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": height},
            "fieldConfig": {"defaults": {"unit": self.unit, "custom": custom}, "overrides": []},
            "targets": [
                {
                    "refId": chr(ord("A") + index),
                    "datasource": _SOURCE,
                    "expr": expression,
                    "legendFormat": legend,
                }
                for index, (expression, legend) in enumerate(self.queries)
            ],
        }


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]
    height: int = 8


def _most(gauge: str, *by: str) -> str:
    """Return the query of a gauge that the leader alone knows."""
    return f"max by ({', '.join(by)}) ({gauge}{_HERE})" if by else f"max({gauge}{_HERE})"


def _rate(counter: str, *by: str) -> str:
    rate = f"rate({counter}{_HERE}[5m])"
    return f"sum by ({', '.join(by)}) ({rate})" if by else f"sum({rate})"


def _quantile(share: float, histogram: str, *by: str) -> str:
    return f"histogram_quantile({share:g}, {_rate(f'{histogram}_bucket', 'le', *by)})"


def _quantiles(histogram: str) -> tuple[Query, ...]:
    shares = (0.5, 0.9, 0.99)
    return tuple((_quantile(share, histogram), f"{share:.0%}") for share in shares)


def _legend(*labels: str, then: str = "") -> str:
    return " ".join([*(f"{{{{{label}}}}}" for label in labels), *([then] if then else [])])


def _cpu(amount: str) -> Query:
    cores = _most(f"volcano_queue_{amount}_milli_cpu", "queue_name") + " / 1000"
    return cores, _legend("queue_name", then=amount)


def _pod_groups(phase: str) -> Query:
    count = _most(f"volcano_queue_pod_group_{phase}_count", "queue_name")
    return count, _legend("queue_name", then=phase)


def _by(query: str, *labels: str) -> tuple[Query, ...]:
    return ((query, _legend(*labels)),)


_CYCLE: Final = "volcano_e2e_scheduling_latency_milliseconds"
_ACTION: Final = "volcano_action_scheduling_latency_milliseconds"
_PLUGIN: Final = "volcano_plugin_scheduling_latency_milliseconds"
_BIND: Final = "volcano_scheduling_stage_duration_milliseconds"
_UNREADABLE: Final = "pumice_bad_objects_total"

ROWS: Final = (
    Row(
        "State",
        (
            Panel(
                "Leaders",
                _by(f"sum by (job) (pumice_leader{_HERE})", "job"),
                "none",
                6,
                "stat",
                says="1 for each service whose replicas elect a leader.",
            ),
            Panel(
                "Jobs that wait",
                ((_most("volcano_unschedule_job_count"), "jobs"),),
                "none",
                6,
                "stat",
            ),
            Panel(
                "Cycles a minute",
                ((f"{_rate(f'{_CYCLE}_count')} * 60", "cycles"),),
                "none",
                6,
                "stat",
            ),
            Panel(
                "Configuration is usable",
                ((f"min(pumice_conf_good{_HERE})", "usable"),),
                "bool_yes_no",
                6,
                "stat",
                says="If not, the last good configuration counts.",
            ),
        ),
        height=4,
    ),
    Row(
        "Jobs",
        (
            Panel(
                "Waiting jobs by cause",
                _by(_most("pumice_waiting_jobs", "code"), "code"),
                width=12,
                is_stacked=True,
                says="The codes are those of pumice explain.",
            ),
            Panel(
                "Pods by result of the attempt",
                _by(_rate("volcano_schedule_attempts_total", "result"), "result"),
                "cps",
                12,
            ),
            Panel(
                "From a job's creation until its pods have nodes",
                _quantiles("volcano_e2e_job_scheduling_latency_milliseconds"),
                "ms",
            ),
            Panel(
                "Statements that evict",
                _by(_rate("volcano_eviction_transactions_total", "action"), "action"),
                "cps",
            ),
            Panel(
                "Preemptions tried",
                ((_rate("volcano_total_preemption_attempts"), "tried"),),
                "cps",
            ),
        ),
    ),
    Row(
        "Queues",
        (
            Panel(
                "CPU by queue",
                (_cpu("allocated"), _cpu("deserved"), _cpu("request")),
                "none",
                12,
            ),
            Panel(
                "Other resources by queue, allocated",
                _by(
                    _most("volcano_queue_allocated_scalar_resources", "queue_name", "resource"),
                    "queue_name",
                    "resource",
                ),
                "none",
                12,
            ),
            Panel(
                "Memory by queue, allocated",
                _by(_most("volcano_queue_allocated_memory_bytes", "queue_name"), "queue_name"),
                "bytes",
                is_stacked=True,
            ),
            Panel(
                "Dominant share by queue",
                _by(_most("volcano_queue_share", "queue_name"), "queue_name"),
                "percentunit",
            ),
            Panel(
                "Pod groups that wait, by queue",
                (_pod_groups("pending"), _pod_groups("inqueue")),
            ),
        ),
    ),
    Row(
        "Cycles",
        (
            Panel("A whole cycle", _quantiles(_CYCLE), "ms"),
            Panel("Actions, 90%", _by(_quantile(0.9, _ACTION, "action"), "action"), "ms"),
            Panel(
                "Plugins, 90%",
                _by(_quantile(0.9, _PLUGIN, "plugin", "OnSession"), "plugin", "OnSession"),
                "ms",
            ),
        ),
    ),
    Row(
        "API server",
        (
            Panel(
                "Writes by result",
                _by(_rate("pumice_writes_total", "verb", "result"), "verb", "result"),
                "cps",
            ),
            Panel("Binds, from submission to answer", _quantiles(_BIND), "ms"),
            Panel(
                "Broken watches",
                _by(f"min by (job, kind) (pumice_watch_ok{_HERE}) == 0", "job", "kind"),
                "none",
                says="Empty while changes of all kinds come in.",
            ),
            Panel("Known objects", _by(_most("pumice_cache_objects", "kind"), "kind")),
            Panel("Unreadable objects", _by(_rate(_UNREADABLE, "job", "kind"), "kind"), "cps"),
            Panel("Events dropped", _by(_rate("pumice_events_dropped_total", "job"), "job"), "cps"),
        ),
    ),
    Row(
        "Controllers and processes",
        (
            Panel(
                "Reconciled objects",
                (
                    *_by(_rate("pumice_controller_looks_total", "controller"), "controller"),
                    (
                        _rate("pumice_controller_failures_total", "controller"),
                        _legend("controller", then="failed"),
                    ),
                ),
                "cps",
                6,
            ),
            Panel(
                "Objects that wait for controllers",
                ((_most("pumice_controller_queue_depth"), "objects"),),
                width=6,
            ),
            Panel("Memory", _by(_most("process_resident_memory_bytes", "pod"), "pod"), "bytes", 6),
            Panel("CPU", _by(_rate("process_cpu_seconds_total", "pod"), "pod"), "none", 6),
        ),
    ),
)


def _laid_out(rows: Iterable[Row]) -> Iterator[Manifest]:
    """Return headings and panels, each with its place on the grid."""
    number, y = 0, 0
    for row in rows:
        number += 1
        place = {"x": 0, "y": y, "w": _COLUMNS, "h": 1}
        yield {"id": number, "type": "row", "title": row.title, "gridPos": place, "panels": []}
        x, y = 0, y + 1
        for panel in row.panels:
            if x + panel.width > _COLUMNS:
                x, y = 0, y + row.height
            number += 1
            yield panel.manifest(number, x, y, row.height)
            x += panel.width
        y += row.height


def dashboard() -> Manifest:
    """Return the dashboard as Grafana reads it."""
    sources = {"name": "datasource", "type": "datasource", "query": "prometheus"}
    namespaces = {
        "name": "namespace",
        "type": "query",
        "datasource": _SOURCE,
        "query": "label_values(pumice_build_info, namespace)",
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "refresh": 2,
    }
    return {
        "uid": "pumice",
        "title": "Pumice",
        "tags": ["pumice", "volcano"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [sources, namespaces]},
        "annotations": {"list": []},
        "panels": list(_laid_out(ROWS)),
    }
