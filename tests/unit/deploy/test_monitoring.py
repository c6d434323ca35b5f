"""Alerts and the dashboard for Grafana ask for metrics that there are, by labels they have."""

import re
from pathlib import Path
from typing import Any, Final

import pytest

from deploy.alerts import ALERTS, RUNBOOK, alert_rules
from deploy.grafana import ROWS, dashboard
from pumice.metrics import CATALOGUE, Metrics
from tests.unit.deploy.promql import named

DOCS: Final = Path(__file__).resolve().parents[3] / "docs"
OF_TARGETS: Final = {"namespace", "job", "pod"}
"""Labels that the Prometheus Operator puts on whatever a ServiceMonitor scrapes."""


def exported() -> dict[str, set[str]]:
    """Return the samples of a serving process with their labels, asked of its registry."""
    found = {
        sample.name: set(sample.labels)
        for family in Metrics().registry.collect()
        for sample in family.samples
    }
    for family in CATALOGUE:  # those with labels have no sample before they are fed
        ends = ("_bucket", "_count", "_sum") if family.kind == "histogram" else ("",)
        for end in ends:
            labels = {*family.labels, *(["le"] if end == "_bucket" else [])}
            found[f"{family.name}{end}"] = labels
    return found


EXPORTED: Final = exported()
QUERIES: Final = [
    *((alert.expression, alert.summary) for alert in ALERTS),
    *(query for row in ROWS for panel in row.panels for query in panel.queries),
]


def faults(expression: str, legend: str) -> list[str]:
    """List what an expression or its legend names that there is not."""
    asked = named(expression)
    unknown = [name for name in asked.metrics if name not in EXPORTED]
    known = OF_TARGETS.union(*(EXPORTED.get(name, set()) for name in asked.metrics))
    for name, labels in asked.metrics.items():
        unknown += sorted(labels - EXPORTED.get(name, set()) - OF_TARGETS)
    unknown += sorted(asked.grouped - known)
    shown = re.findall(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}", legend)
    return unknown + [label for label in shown if label not in asked.grouped]


@pytest.mark.parametrize(("expression", "legend"), QUERIES)
def test_a_query_names_what_there_is(expression: str, legend: str) -> None:
    assert faults(expression, legend) == []
    assert named(expression).metrics


@pytest.mark.parametrize(
    ("expression", "legend", "fault"),
    [
        ("pumice_lieder == 0", "", "pumice_lieder"),
        ("sum(rate(pumice_writes_total[5m])) + nothing_total", "", "nothing_total"),
        ('rate(pumice_writes_total{reslt="ok"}[5m])', "", "reslt"),
        ("sum by (le) (volcano_queue_weight)", "", "le"),
        ("volcano_e2e_scheduling_latency_milliseconds == 0", "", "volcano_e2e"),
        ("sum by (verb) (pumice_writes_total)", "{{ result }}", "result"),
        ("sum by (verb) (pumice_writes_total)", "{{ $labels.kind }}", "kind"),
    ],
)
def test_a_query_for_something_else_is_found(expression: str, legend: str, fault: str) -> None:
    found = faults(expression, legend)
    assert found
    assert found[0].startswith(fault)


def test_every_alert_has_a_section_that_says_what_to_do() -> None:
    text = (DOCS / "runbook.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    headings = {section.partition("\n")[0].strip(): section for section in sections}
    assert {alert.name for alert in ALERTS} == {*headings}
    for alert in ALERTS:
        assert len(headings[alert.name].split()) > 30, f"{alert.name} is not explained"
        assert alert.severity in headings[alert.name]


def test_every_alert_leads_to_its_section() -> None:
    (group,) = alert_rules()["groups"]
    for alert, rule in zip(ALERTS, group["rules"], strict=True):
        # Both GitHub and MkDocs make the anchor of a heading of one word so.
        assert rule["annotations"]["runbook_url"] == f"{RUNBOOK}#{alert.name.lower()}"


def test_names_and_places_are_taken_once() -> None:
    assert len({alert.name for alert in ALERTS}) == len(ALERTS)
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[Any] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, f"{panel['title']} covers another panel"
        taken |= cells


@pytest.mark.parametrize("group", ["scheduler", "controllers"])
def test_a_process_does_not_export_what_another_one_knows(group: Any) -> None:
    """Else an alert on a value of 0 fires for a process that has nothing to say."""
    text = Metrics(groups=[group]).text()
    assert ("pumice_conf_good" in text) == (group == "scheduler")
    assert ("pumice_controller_queue_depth" in text) == (group == "controllers")
