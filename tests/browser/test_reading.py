"""What a page must not hide or repeat, in a real browser: names, causes, counts, empty results."""

from typing import Any

import pytest

from pumice.apiserver.served_cluster import ServedCluster
from pumice.dashboard.serving import ServingOptions, served_dashboard
from pumice.dashboard.sources import About, EmbeddedSource
from tests.browser.test_pages import edited, job
from tests.unit.dashboard.test_live import eventually

LONG = "machine-learning-platform-of-the-european-research-teams-shared"
WAITING = f"{LONG[:40]}-gang"


@pytest.fixture(scope="module")
def long_names(answers: Any) -> Any:
    """A cluster whose queue, jobs and nodes have long names; one job waits."""
    cluster = ServedCluster()
    cluster.add_nodes(2, {"cpu": "4", "memory": "16Gi"})
    spec = {"weight": 1, "capability": {"cpu": "8"}}
    meta = {"apiVersion": "scheduling.volcano.sh/v1beta1", "metadata": {"name": LONG}}
    cluster.cluster.create({**meta, "kind": "Queue", "spec": spec})
    source = EmbeddedSource(cluster.plane, About(title=LONG, kind="embedded", decides=True))
    for name, pods in ((WAITING, 9), ("small", 1)):
        made = job(name, pods, 2)
        made["spec"]["queue"] = LONG
        cluster.cluster.create(made)
    for _ in range(6):
        cluster.plane.step()
    with served_dashboard(source, ServingOptions(), answers=answers) as url:
        yield url
    cluster.stop()


PAGES = (
    "/",
    "/queues",
    f"/queues/{LONG}",
    "/jobs",
    f"/jobs/default/{WAITING}",
    "/nodes",
    "/whatif",
)


@pytest.mark.sample(3)
@pytest.mark.parametrize("path", PAGES)
def test_a_long_name_pushes_nothing_away_on_a_phone(visit: Any, long_names: Any, path: str) -> None:
    page = visit(long_names, viewport={"width": 390, "height": 844}).go(path)
    page.wait_for_selector(".loading", state="detached")
    page.wait_for_selector(f"text={LONG}" if path in ("/queues", "/jobs") else "main h1")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    wider = """[...document.querySelectorAll("main :is(.queue, .queuebar, .long [role=cell])")]
      .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
      .map((one) => one.outerHTML)"""
    assert page.evaluate(wider) == []


@pytest.mark.parametrize("path", ["/", "/nodes/gpu-a-1"])
def test_pods_and_evictions_fit_a_phone(visit: Any, demo: Any, path: str) -> None:
    page = visit(demo, viewport={"width": 390, "height": 844}).go(path)
    page.wait_for_selector(".stacked tbody tr")
    cut = """[...document.querySelectorAll(".stacked, .stacked td")]
      .filter((one) => one.scrollWidth > one.parentElement.clientWidth + 1
        || one.getBoundingClientRect().right > innerWidth - 12).length"""
    assert page.evaluate(cut) == 0


def test_jobs_begin_with_those_that_start_first_and_show_the_whole_cause(
    visit: Any, demo: Any
) -> None:
    page = visit(demo).go("/jobs")
    page.wait_for_selector(".long code")
    eventually(lambda: "not foreseen" in page.inner_text(".long"))
    rows = page.locator(".long .whole .row").all()
    states = [row.locator(".state").inner_text() for row in rows]
    waiting = [state for state in states if "waiting" in state]
    assert waiting
    assert states[: len(waiting)] == waiting
    starts = [row.locator("[data-title=start]").inner_text() for row in rows[: len(waiting)]]
    foreseen = [start for start in starts if start != "not foreseen"]
    assert starts[: len(foreseen)] == foreseen == sorted(foreseen)
    cut = """[...document.querySelectorAll(".long .uncut")].filter((one) =>
      one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight).length"""
    assert page.evaluate(cut) == 0
    overlaps = """[...document.querySelectorAll(".long .whole .row")]
      .map((one) => one.getBoundingClientRect()).sort((a, b) => a.top - b.top)
      .filter((one, i, all) => i && one.top < all[i - 1].bottom - 1).length"""
    eventually(lambda: page.evaluate(overlaps) == 0)


def test_cycles_begin_with_those_that_changed_something(visit: Any, demo: Any) -> None:
    page = visit(demo).go("/cycles")
    page.wait_for_selector("table.plain tbody tr")
    few = page.locator("table.plain tbody tr").count()
    cells = page.locator("table.plain tbody tr").first.locator("td").all_inner_texts()
    assert cells[3] or cells[4]
    page.click("button:text-is('all')")
    eventually(lambda: page.locator("table.plain tbody tr").count() > few)


def test_a_search_without_a_result_and_an_unknown_page_lead_on(visit: Any, demo: Any) -> None:
    visitor = visit(demo)
    page = visitor.go("/")
    page.keyboard.press("/")
    page.keyboard.type("zebra")
    page.wait_for_selector("#hits >> text=No job, node or queue has “zebra” in its name")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=zebra")
    page.wait_for_selector(".empty >> text=Nothing found")
    page = visitor.go("/search?q=gpu-a")
    page.click("main >> text=gpu-a-1")
    page.wait_for_url("**/nodes/gpu-a-1")
    page = visitor.go("/nowhere/x")
    page.wait_for_selector("text=There is no page /nowhere/x")
    page.click("main >> text=jobs")
    page.wait_for_selector("text=gang: ready / min / all")
    visitor.troubles.clear()  # the browser reports the status of the unknown page


def test_tiles_of_a_map_have_names(visit: Any, demo: Any) -> None:
    page = visit(demo).go("/nodes")
    page.wait_for_selector("canvas[data-drawn]")
    tiles = page.get_by_role("listbox").get_by_role("option", include_hidden=True)
    assert tiles.count() == 24
    assert any("gpu-a-1" in (text or "") for text in tiles.all_text_contents())
    box = page.locator("canvas").bounding_box()
    page.mouse.move(box["x"] + 10, box["y"] + 30)
    page.wait_for_selector("#tip:not([hidden])")
    assert "cpu allocated" in (page.text_content("#tip") or "")
    page.focus("canvas")
    page.keyboard.press("ArrowRight")
    active = page.get_attribute("canvas", "aria-activedescendant")
    name = (page.text_content("#tip") or "").splitlines()[0]
    assert name in page.locator(f"#{active}").text_content()


def test_counts_are_not_repeated_and_the_root_has_no_limit_of_nothing(
    visit: Any, demo: Any
) -> None:
    visitor = visit(demo)

    def spared(found: Any) -> None:
        text = "8,200 pods (a, b and 8,198 more): equal priority"
        found["notEvicted"] = [{"code": "EqualPriority", "pods": 8200, "text": text, "numbers": {}}]

    visitor.page.route("**/why?r=*", edited(spared))
    page = visitor.go("/jobs/vision/ocr-h200")
    page.wait_for_selector("text=EqualPriority")
    assert page.inner_text(".findings").count("8,200 pods") == 1

    def rooted(found: Any) -> None:
        for queue in found["queues"]:
            if queue["name"] == "root":
                queue |= {"deserved": [0 for _ in queue["deserved"]], "leaf": True}

    visitor.page.route("**/api/queues", edited(rooted))
    page = visitor.go("/queues")
    page.wait_for_selector("table.queues")
    row = page.locator(".queues tbody tr").first.inner_text()
    assert "root" in row
    assert "/ 0" not in row
    assert "borrowed" not in row


def test_when_is_shown_before_what_would_help(visit: Any, demo: Any) -> None:
    visitor = visit(demo)
    held: list[Any] = []
    visitor.page.route("**/why?helps=*", lambda route: held.append(route))  # noqa: PLW0108
    page = visitor.go("/jobs/data/embeddings")
    page.wait_for_selector("h3:text-is('Forecast')")
    assert page.locator(".remedies").count() == 0
    eventually(lambda: held or page.wait_for_timeout(50))
    held[0].continue_()
    page.wait_for_selector(".remedies")
