"""The page of a report: names are data, never markup; the library inside it is the one named."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from copy import copy
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.api.objects import from_manifest
from pumice.sim.engine import Engine
from pumice.sim.measure import Measures
from pumice.sim.output import difference
from pumice.sim.report import page as page_module
from pumice.sim.report.page import UPLOT, embedded_json, render, summary_table
from pumice.sim.workload import JobSpec, PodSpecs, TaskSpec, Workload
from tests.present import present
from tests.unit.sim.report.browser import look_at, needs_chromium

ROOT = Path(__file__).parents[4]
REPORT = Path(page_module.__file__).parent
_RUN = "document.documentElement.dataset.ran=1"
QUEUE = f"</script><script>{_RUN}</script>"
JOB = f"<img src=x onerror={_RUN}> \u2028 {{{{ 7*7 }}}} ${{script}} --> <!--"
CONFIGURATION = f"<svg onload={_RUN}>{{% raw %}}"
TRACE = f'"><iframe src="javascript:parent.{_RUN}">{{{{ css }}}}'


class Elements(HTMLParser):
    """Every element of a page, and the content of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.scripts: list[str] = []
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.scripts[-1] += data


def simulate(names: Sequence[str], *, cpus: int = 4) -> Measures:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node-a"},
        "status": {"allocatable": {"cpu": str(cpus), "memory": "32Gi", "pods": "110"}},
    }
    task = TaskSpec(PodSpecs().spec({"cpu": "4"}), count=1, run_seconds=60.0)
    jobs = tuple(
        JobSpec(name, arrival=float(i), tasks=(task,), min_member=1, queue=QUEUE)
        for i, name in enumerate(names)
    )
    workload = Workload(name=TRACE, format="made", jobs=jobs)
    outcome = Engine(workload, [from_manifest(node)], parse_conf(DEFAULT_CONF)).run()
    return Measures(CONFIGURATION, outcome)


def page_of(*measured: Measures) -> str:
    return render(
        {
            "trace": {"name": TRACE, "format": "made", "jobs": 2, "nodes": 1, "notes": [JOB]},
            "options": {"seed": 0, "period": 1.0},
            "configurations": [each.summary() for each in measured],
        },
        measured,
        ["jobs.csv"],
    )


@pytest.fixture(scope="module")
def elements() -> Elements:
    measures = simulate([JOB, "second"])
    return Elements(page_of(measures, measures))


def test_names_with_markup_become_text(elements: Elements) -> None:
    assert not elements.tags & {"img", "svg", "iframe"}
    assert not {name for name in elements.attributes if name.startswith("on")}
    assert len(elements.scripts) == 2


def test_names_reach_the_charts_unchanged(elements: Elements) -> None:
    data = json.loads(elements.scripts[0])
    assert data["queues"] == [QUEUE]
    assert [conf["name"] for conf in data["configurations"]] == [CONFIGURATION] * 2
    assert [bar["name"] for bar in data["configurations"][0]["gantt"]["bars"]] == [JOB, "second"]


def test_embedded_data_holds_nothing_that_html_or_javascript_reads() -> None:
    text = embedded_json({"name": f"{QUEUE}{JOB}\u2029"})
    assert not set(text) & {"<", "\u2028", "\u2029"}
    assert json.loads(text)["name"] == f"{QUEUE}{JOB}\u2029"


def test_only_the_script_of_the_report_may_run() -> None:
    page = page_of(simulate(["only"]))
    script = Elements(page).scripts[1]
    wanted = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    [policy] = re.findall(r"script-src ([^;]*);", page)
    assert policy == f"'sha256-{wanted}'"
    assert page.count("<script") == 2


# In a real browser


def seen_in_a_browser(page: str, folder: Path, **options: int) -> dict[str, Any]:
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    found = re.search(r"<body>\s*(\{.*\})", look_at(path, **options), re.DOTALL)
    assert found, "the page did not load"
    return dict(json.loads(html.unescape(found[1])))


@needs_chromium
def test_markup_in_names_is_shown_and_does_not_run(tmp_path: Path) -> None:
    measures = simulate([JOB, "second"])
    found = seen_in_a_browser(page_of(measures, measures), tmp_path)
    assert not found["ran"]
    assert found["title"] == f"Simulation of {TRACE}"
    assert {QUEUE, CONFIGURATION} <= set(found["headings"])
    assert found["charts"] >= found["places"] > 0  # a heat map has a canvas of its own, too


@needs_chromium
def test_the_test_would_notice_a_script_that_runs(tmp_path: Path) -> None:
    page = page_of(simulate(["only"]))
    hostile = page.replace(
        "</h1>", "</h1><img src=x onerror='document.documentElement.dataset.ran=1'>"
    )
    unprotected = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", hostile)
    assert seen_in_a_browser(unprotected, tmp_path)["ran"]
    assert not seen_in_a_browser(hostile, tmp_path)["ran"]  # the policy alone stops it


@needs_chromium
@pytest.mark.parametrize("width", [420, 1200])
def test_nothing_is_wider_than_the_screen(tmp_path: Path, width: int) -> None:
    measures = simulate(["second"])
    four = [copy(measures) for _ in range(4)]
    for i, each in enumerate(four):
        each.name = f"{i}-{'configuration' * 6}"
    assert seen_in_a_browser(page_of(*four), tmp_path, width=width)["width"] <= width


# Comparisons


def test_every_configuration_is_compared_with_the_first() -> None:
    first, second, third = (simulate([str(i) for i in range(n)]) for n in (1, 2, 3))
    for name, each in zip("abc", (first, second, third), strict=True):
        each.name = name
    page = page_of(first, second, third)
    row = re.search(r'<tr><th scope="row">makespan</th>(.*?)</tr>', page)
    assert row
    assert re.findall(r"<td[^>]*>(.*?)</td>", row[1]) == [
        "1 min",
        '2 min<small class="change worse">+1 min (+100.0 %)</small>',
        '3 min<small class="change worse">+2 min (+200.0 %)</small>',
    ]


def test_figures_over_other_jobs_are_neither_better_nor_worse() -> None:
    whole, alone = simulate(["first", "second"]).summary(), simulate(["first"]).summary()
    never = {"job": "second", "queue": QUEUE, "started": False, "reason": "no room"}
    half = {**alone, "jobs": 2, "unfinished": [never]}  # as if the second had never started
    rows = summary_table({"configurations": [whole, half]}).groups[0].rows
    changes = {row.name: row.cells[1].change for row in rows}
    assert [present(changes[name]).kind for name in ("jobs finished", "makespan")] == ["worse", ""]
    assert present(changes["wait, mean"]).text == "over other jobs"
    kinds = {change.kind for change in changes.values() if change is not None}
    assert "better" not in kinds
    assert difference(whole, half)["makespan"] is None


# What is drawn when there is little to draw


def test_the_summary_has_no_empty_list_of_notes() -> None:
    measures = simulate(["only"])
    summary = {
        "trace": {"name": "t", "format": "made", "jobs": 1, "nodes": 1, "notes": []},
        "options": {"seed": 0, "period": 1.0},
        "configurations": [measures.summary()],
    }
    assert 'class="notes"' not in render(summary, [measures], [])


def test_the_curve_of_waits_is_there_if_nobody_waits() -> None:
    waits = json.loads(Elements(page_of(simulate(["only"]))).scripts[0])["waits"]
    assert waits == {"seconds": [0.0, 1.2], "parts": [[1.0, 1.0]]}


def test_without_a_job_that_started_the_page_says_so() -> None:
    page = page_of(simulate(["never"], cpus=2))
    assert "<p>No job started.</p>" in page
    assert 'data-chart="waits"' not in page


def test_jobs_that_did_not_finish_are_counted_at_the_top() -> None:
    page = page_of(simulate(["never", "neither"], cpus=2))
    assert "2 of 2 jobs did not finish; 2 of them never started" in page
    assert "<td>0 of 2</td>" in page
    assert "did not finish" not in page_of(simulate(["only"]))


def test_with_one_queue_the_page_says_why_fairness_is_not_drawn() -> None:
    assert "Two queues never have demand at the same time." in page_of(simulate(["only"]))


# The library


def test_the_library_is_the_version_that_is_named_and_has_its_licence() -> None:
    folder, version = REPORT / "vendor" / UPLOT, UPLOT.removeprefix("uplot-")
    assert [each.name for each in (REPORT / "vendor").iterdir()] == [UPLOT]
    assert f"(v{version})" in (folder / "uPlot.iife.min.js").read_text(encoding="utf-8")[:80]
    assert "The MIT License" in (folder / "LICENSE").read_text(encoding="utf-8")
    assert f"uPlot {version}" in (ROOT / "docs" / "sim.md").read_text(encoding="utf-8")
