"""A real browser in front of dashboards; skipped where there is none."""

from collections.abc import Iterator
from typing import Any

import pytest

from pumice.cli.demo.living_cluster import LivingCluster
from pumice.dashboard.answers import Answers
from pumice.dashboard.serving import ServingOptions, served_dashboard
from pumice.dashboard.sources import About, EmbeddedSource
from tools.browser import MISSING, installed_browser

CHROMIUM = installed_browser()
HISTORY_S = 600.0


@pytest.fixture(scope="module")  # while it runs, no other test of the process can run a loop
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip(MISSING)
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


class Visitor:
    """A page that fails a test when anything goes wrong in it."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.url = url
        self.troubles: list[str] = []
        self.page = browser.new_page(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page.set_default_timeout(30_000)
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("console", self._heard)

    def _heard(self, message: Any) -> None:
        # a server that a test has stopped is looked for until the page is closed
        is_over = "ERR_CONNECTION_REFUSED" in message.text or "ERR_INCOMPLETE" in message.text
        if message.type in ("error", "warning") and not is_over:
            self.troubles.append(f"{message.type}: {message.text}")

    def go(self, path: str) -> Any:
        self.page.goto(f"{self.url}{path}")
        self.page.wait_for_selector("main h1")
        return self.page


@pytest.fixture
def visit(browser: Any) -> Any:
    """Make visitors; what they meet must be free of errors."""
    made: list[Visitor] = []

    def make(url: str, **options: Any) -> Visitor:
        made.append(Visitor(browser, url, **options))
        return made[-1]

    yield make
    for each in made:
        each.page.close()
    assert [trouble for each in made for trouble in each.troubles] == []


@pytest.fixture(scope="session")
def answers() -> Any:
    """One process that answers for all dashboards of these tests."""
    found = Answers()
    yield found
    found.close()


@pytest.fixture(scope="session")
def demo(answers: Any) -> Any:
    """The demo after some of its history, standing still."""
    living = LivingCluster(history_s=HISTORY_S)
    about = About(title="demo", kind="embedded", decides=True, hint="pumice job run")
    source = EmbeddedSource(living.served.plane, about)
    living.play_history()
    with served_dashboard(source, ServingOptions(), answers=answers) as url:
        yield url
    living.served.stop()
