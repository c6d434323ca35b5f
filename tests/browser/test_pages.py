"""Every page in a real browser: on the demo, on staged situations, and while a job starts."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from pumice.apiserver.served_cluster import ServedCluster
from pumice.cli.main import main
from pumice.cluster.embedded.node_operations import add_node
from pumice.dashboard.runs import RunLibrary
from pumice.dashboard.serving import ServingOptions, served_dashboard
from pumice.dashboard.sources import About, EmbeddedSource, StaticSource
from pumice.diagnosis.explain import explain_job
from pumice.diagnosis.sources import load_world
from tests.unit.dashboard.test_live import eventually

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "tests" / "data" / "axe-core-4.14.0" / "axe.min.js"
PAGES = {
    "/": "Longest waits",
    "/queues": "deserved",
    "/queues/analytics": "Who goes first",
    "/jobs": "gang: ready / min / all",
    "/jobs?state=waiting&sort=job": "why it waits",
    "/jobs/vision/ocr-h200": "What would help",
    "/nodes": "Largest gang that fits now",
    "/nodes?view=list": "takes pods",
    "/nodes/gpu-a-1": "Labels",
    "/cycles": "time by action",
    "/simulations": "Simulations",
    "/whatif": "Before and after",
}


def test_every_page_shows_what_it_is_for(visit: Any, demo: Any) -> None:
    visitor = visit(demo)
    for path, words in PAGES.items():
        page = visitor.go(path)
        page.wait_for_selector(f"text={words}")
        page.wait_for_selector(".loading", state="detached")
        assert page.locator(".problem").count() == 0, path


@pytest.mark.parametrize("width", [380, 3000])
def test_nothing_is_wider_than_the_window(visit: Any, demo: Any, width: Any) -> None:
    visitor = visit(demo, viewport={"width": width, "height": 800})
    for path, words in PAGES.items():
        page = visitor.go(path)
        if "/jobs" not in path and "view=list" not in path:  # narrow tables have no headings
            page.wait_for_selector(f"text={words}")
        page.wait_for_selector(".loading", state="detached")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path


def test_the_size_of_a_gang_is_not_cut_off(visit: Any, demo: Any) -> None:
    page = visit(demo, viewport={"width": 1280, "height": 800}).go("/jobs")
    page.wait_for_selector(".gang")
    beyond = """[...document.querySelectorAll(".gang .figure")].map((figure) => [
      figure.getBoundingClientRect().right,
      figure.closest(".gang").parentElement.getBoundingClientRect().right,
    ]).filter(([own, cell]) => own > cell)"""
    assert page.evaluate(beyond) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(visit: Any, demo: Any, scheme: Any) -> None:
    # the page's own policy allows no other script: for axe it is set aside
    visitor = visit(demo, color_scheme=scheme, bypass_csp=True)
    serious = []
    for path in PAGES:
        page = visitor.go(path)
        page.wait_for_selector(".loading", state="detached")
        page.evaluate(AXE.read_text(encoding="utf-8"))
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        serious += [
            (path, each["id"], [node["html"][:120] for node in each["nodes"]][:3])
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]
    assert serious == []


def test_a_page_is_reached_and_left_by_keyboard(visit: Any, demo: Any) -> None:
    page = visit(demo).go("/")
    page.keyboard.press("/")
    page.keyboard.type("ocr")
    page.wait_for_selector("#hits li")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/vision/ocr-h200")
    page.go_back()
    page.wait_for_selector("text=Longest waits")
    page.goto(f"{demo}/nodes")
    page.wait_for_selector("canvas[data-drawn]")
    page.focus("canvas")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#tip:not([hidden])")
    name = (page.text_content("#tip") or "").splitlines()[0]
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/nodes/{name}")


def test_a_filter_is_in_the_address_and_comes_back_with_it(visit: Any, demo: Any) -> None:
    page = visit(demo).go("/jobs")
    page.fill("input[name=q]", "ocr")
    page.wait_for_selector("text=1 of")
    page.wait_for_url("**q=ocr**")
    again = visit(demo).go(page.url.removeprefix(demo))
    again.wait_for_selector("text=1 of")
    eventually(lambda: again.locator(".long .whole .row").count() == 1)


def edited(edit: Any) -> Any:
    """Make a route whose documents are changed on their way; unchanged ones are not sent again."""

    def answer(route: Any) -> None:
        given = route.fetch()
        if given.status != 200:
            route.fulfill(response=given)
            return
        found = given.json()
        edit(found)
        route.fulfill(response=given, json=found)

    return answer


def test_every_cycle_that_is_remembered_is_on_the_timeline(visit: Any, demo: Any) -> None:
    visitor = visit(demo)

    def many(found: Any) -> None:
        last = found["cycles"][0]
        found["cycles"] = [{**last, "number": 600 - n} for n in range(600)]

    visitor.page.route("**/api/cycles", edited(many))
    page = visitor.go("/cycles")
    page.wait_for_selector("text=The last 600 cycles")
    bars = page.locator(".timeline a")
    assert bars.count() == 600
    latest, oldest = bars.first.bounding_box(), bars.last.bounding_box()
    assert oldest["x"] < 0 < latest["x"] < page.viewport_size["width"]


def test_the_root_of_a_tree_of_queues_borrows_nothing(visit: Any, demo: Any) -> None:
    visitor = visit(demo)

    def crowded(found: Any) -> None:
        for queue in found["queues"]:
            queue["allocated"] = [2 * each + 1 for each in queue["deserved"]]

    visitor.page.route("**/api/queues", edited(crowded))
    page = visitor.go("/queues")
    page.wait_for_selector("table.queues")
    rows = {row.locator("th").inner_text(): row for row in page.locator(".queues tbody tr").all()}
    assert rows["vision"].locator(".lent").count()
    assert not rows["root"].locator(".lent").count()


def test_a_cycle_is_opened_as_it_was(visit: Any, demo: Any) -> None:
    page = visit(demo).go("/cycles?only=decided")
    page.click("td a:text-is('open') >> nth=0")
    page.wait_for_selector("text=as it was when cycle")
    page.wait_for_selector("text=Running jobs")
    page.click("nav >> text=Nodes")
    page.wait_for_selector("canvas[data-drawn]")
    assert re.search(r"at=\d+", page.url)
    page.click("text=Back to now")
    page.wait_for_selector("text=live")


def test_a_remedy_is_tried_and_its_outcome_shown(visit: Any, demo: Any) -> None:
    page = visit(demo).go("/jobs/vision/ocr-h200")
    page.click("button:has-text('Try it') >> nth=0")
    reported = page.wait_for_selector(".trial .cause")
    assert "vision/ocr-h200 starts" in (reported.text_content() or "")
    assert "gpu.model=h200" in (page.text_content(".trial") or "")


def test_a_change_of_a_queue_is_tried(visit: Any, demo: Any) -> None:
    page = visit(demo).go(
        "/whatif?job=data/embeddings&set=queue/analytics.capability.nvidia.com/gpu=16"
    )
    page.wait_for_selector("text=set queue/analytics.capability")
    page.click("text=What would happen?")
    page.wait_for_selector(".outcome .cause")
    assert "data/embeddings" in (page.text_content(".outcome .cause") or "")


def job(name: str, pods: int, cpu: int) -> dict[str, Any]:
    requests = {"cpu": str(cpu), "memory": "1Gi"}
    container = {"name": "main", "image": "work", "resources": {"requests": requests}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulerName": "volcano",
            "queue": "default",
            "minAvailable": pods,
            "tasks": [
                {"name": "w", "replicas": pods, "template": {"spec": {"containers": [container]}}}
            ],
        },
    }


def test_a_job_is_seen_going_from_submitted_to_running(visit: Any, answers: Any) -> None:
    """Live: the page is not reloaded."""
    cluster = ServedCluster()
    cluster.add_nodes(1, {"cpu": "4", "memory": "16Gi"})
    about = About(title="up", kind="embedded", decides=True, hint="pumice job run --name first")
    source = EmbeddedSource(cluster.plane, about)
    cluster.start()
    try:
        with served_dashboard(source, ServingOptions(), answers=answers) as url:
            page = visit(url).go("/jobs")
            page.wait_for_selector("text=pumice job run --name first")
            cluster.cluster.create(job("big", 2, 3))
            row = page.wait_for_selector(".row:has-text('default/big')")
            page.wait_for_selector(".row:has-text('default/big') >> text=waiting")
            assert row is not None
            add_node(cluster.cluster, "node-2", {"cpu": "4", "memory": "16Gi"})
            page.wait_for_selector(".row:has-text('default/big') >> text=running")
            page.click("text=default/big")
            page.wait_for_selector("text=It runs: 2 pods of at least 2")
    finally:
        cluster.stop()


STAGED = [
    "cordoned",
    "evict-budget",
    "evict-other-queue",
    "full-nodes",
    "full-of-gpus",
    "evict-victim-gang",
    "evict-equal-priority",
    "depends-on-unmet",
    "action-missing-allocate",
    "device-claim-in-use",
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", STAGED)
def test_the_why_panel_tells_the_truth_of_a_staged_situation(
    visit: Any, answers: Any, name: Any
) -> None:
    file = ROOT / "tests" / "staged" / f"{name}.yaml"
    stage = yaml.safe_load(file.read_text(encoding="utf-8"))
    truth = stage["truth"]
    world = load_world([file])
    said = explain_job(world, stage["job"])
    with served_dashboard(StaticSource(world, name), ServingOptions(), answers=answers) as url:
        page = visit(url).go(f"/jobs/{said.name}")
        page.wait_for_selector(".why .code, .why .cause")
        page.wait_for_selector(".why .loading", state="detached")
        panel = page.inner_text(".why")
        assert page.inner_text(".why .code") in truth["first"]
        for codes in truth.get("codes", ()):
            assert any(code in panel for code in codes.split("|")), codes
        for code in truth.get("never", ()):
            assert code not in page.locator(".why code").all_inner_texts()
        for row in truth.get("funnel", ()):
            shown = page.locator(f".funnel li:has-text('{row['constraint']}')").first
            assert str(row["left"]) in shown.inner_text()
        spared = page.locator(".findings li").all_inner_texts()
        for codes, pods in (truth.get("notEvicted") or {}).items():
            lines = [line for line in spared if any(code in line for code in codes.split("|"))]
            assert any(f"{pods} pod" in line for line in lines), (codes, spared)
        for word in truth.get("text", ()):
            assert str(word) in page.inner_text(".why .cause")
        eventually(lambda: page.locator(".remedy b").count() == len(said.remedies))
        if "exists" in (truth.get("remedies") or {}):
            assert bool(said.remedies) is truth["remedies"]["exists"]


@pytest.mark.parametrize("width", [390, 1280])
def test_promised_starts_are_drawn_ahead_of_now(visit: Any, answers: Any, width: int) -> None:
    world = load_world([ROOT / "tests" / "staged" / "would-delay-a-promised-gang.yaml"])
    text = json.dumps([dict(one) for one in world.objects])
    promise = json.dumps({"start": "2026-01-01T11:00:00Z", "nodes": ["n1", "n2"]})
    text = text.replace('{"pumice.dev/run-seconds": "600"}', json.dumps(
        {"pumice.dev/run-seconds": "600", "pumice.dev/reservation": promise}
    ))  # fmt: skip
    world = type(world)(objects=tuple(json.loads(text)), now=world.now, conf=world.conf)
    with served_dashboard(StaticSource(world, "x"), ServingOptions(), answers=answers) as url:
        page = visit(url, viewport={"width": width, "height": 800}).go("/jobs")
        page.wait_for_selector(".ahead")
        runs, promised = page.locator(".ahead .bar").all()
        assert "promised" in promised.get_attribute("class")
        ends, begins = runs.bounding_box(), promised.bounding_box()
        assert begins["x"] == pytest.approx(ends["x"] + ends["width"], abs=2)
        assert "reserved from" in page.inner_text(".ahead li:nth-child(2) .skipword")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_markup_in_names_is_shown_as_text(visit: Any, answers: Any) -> None:
    """A cluster may hold names that no API server would take: nothing of them runs."""
    evil = "<img src=x onerror=alert(1)>"
    world = load_world([ROOT / "examples" / "first-cluster.yaml"])
    text = json.dumps([dict(one) for one in world.objects])
    text = text.replace("node-a", evil).replace('"research"', json.dumps(evil))
    changed = world.with_objects([])
    changed = type(world)(objects=tuple(json.loads(text)), now=world.now, conf=world.conf)
    with served_dashboard(StaticSource(changed, evil), ServingOptions(), answers=answers) as url:
        visitor = visit(url)
        for path in ("/", "/queues", "/jobs", "/nodes?view=list", "/jobs/ai/sweep", "/whatif"):
            page = visitor.go(path)
            page.wait_for_selector(".loading", state="detached")
            assert page.locator("img[src=x]").count() == 0
        page = visitor.go("/queues")
        page.wait_for_selector("table.queues")
        assert evil in page.inner_text("table.queues")


def test_a_stream_that_breaks_is_reported(visit: Any, demo: Any) -> None:
    visitor = visit(demo)
    page = visitor.go("/")
    page.wait_for_selector("text=live")
    page.route("**/api/news", lambda route: route.abort())
    page.evaluate("import('/static/data.js').then((m) => m.connect())")
    page.wait_for_selector("text=retrying")
    visitor.troubles.clear()  # the browser itself reports the request that was cut


@pytest.fixture(scope="module")
def runs(tmp_path_factory: Any) -> Any:
    folder = tmp_path_factory.mktemp("runs") / "small"
    sim = ROOT / "examples" / "sim"
    words = ["sim", "--trace", sim / "synthetic.yaml", "--limit", "20", "--dir", folder]
    words += ["--conf", sim / "default.conf", "--conf", sim / "reclaiming.conf"]
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return folder


def test_two_simulations_are_compared_and_scrubbed(visit: Any, answers: Any, runs: Any) -> None:
    summary = json.loads((runs / "summary.json").read_text(encoding="utf-8"))
    world = load_world([ROOT / "examples" / "first-cluster.yaml"])
    source, library = StaticSource(world, "x"), RunLibrary([runs.parent])
    with served_dashboard(source, ServingOptions(), answers=answers, runs=library) as url:
        page = visit(url).go("/simulations?a=small:default&b=small:reclaiming")
        page.wait_for_selector(".gantt")
        finished = [f"{each['finished']} of {each['jobs']}" for each in summary["configurations"]]
        page.wait_for_selector("tr:has(th:text-is('jobs finished')) td")
        cells = page.locator("tr:has(th:text-is('jobs finished')) td").all_inner_texts()
        assert cells[:2] == finished
        before = page.inner_text("section:has(.scrub) h2")
        page.focus("input[type=range]")
        page.keyboard.press("End")
        page.wait_for_selector("text=0 waited, 20 had ended")
        assert page.inner_text("section:has(.scrub) h2") != before
        page.wait_for_url("**t=*")  # the moment is in the address
