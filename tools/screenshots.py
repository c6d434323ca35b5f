"""Take the pictures of the dashboard for the documentation, from the demo.

`python -m tools.screenshots` writes docs/images; it needs Chromium and the dev dependencies.
"""

import base64
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click.testing
from playwright.sync_api import Browser, Page, sync_playwright

from pumice.api.output_files import write_file
from pumice.cli.demo.living_cluster import LivingCluster
from pumice.cli.main import main as pumice
from pumice.dashboard.runs import RunLibrary
from pumice.dashboard.serving import ServingOptions, served_dashboard
from pumice.dashboard.sources import About, EmbeddedSource
from tools.browser import MISSING, installed_browser

ROOT: Final = Path(__file__).resolve().parents[1]
IMAGES: Final = ROOT / "docs" / "images"
_START: Final = 1_768_485_600.0
"""2026-01-15T14:00:00Z: the same pictures each time, except for measured times."""
_PATIENCE_MS: Final = 180_000
_QUALITY: Final = 0.82
_TO_WEBP: Final = """async ([data, quality]) => {
  const image = new Image();
  image.src = `data:image/png;base64,${data}`;
  await image.decode();
  const { width, height } = image;
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", quality).split(",")[1];
}"""


@dataclass(frozen=True)
class Shot:
    """One picture: of which page, how large, in which colours."""

    name: str
    path: str
    width: int = 1280
    height: int = 800
    scheme: str = "light"
    click: str = ""
    """Elements to click first."""
    wait: str = ""
    """Elements that must be visible."""


SHOTS: Final = (
    Shot("overview", "/", height=760, wait=".waits code"),
    Shot("overview-dark", "/", height=760, scheme="dark", wait=".waits code"),
    Shot("queues", "/queues", height=560, wait="table.queues"),
    Shot(
        "jobs", "/jobs", height=640, scheme="dark", wait=".soft[title]:not([title^='The start is'])"
    ),
    Shot("why", "/jobs/data/embeddings", height=1000, wait=".remedies ul"),
    Shot(
        "try",
        "/jobs/vision/ocr-h200",
        height=1180,
        scheme="dark",
        click=".remedy button >> nth=0",
        wait=".trial .cause",
    ),
    Shot(
        "nodes",
        "/nodes?resource=nvidia.com%2Fgpu&pod.nvidia.com%2Fgpu=2&pod.cpu=4",
        height=660,
        scheme="dark",
        wait="text=lost to fragments",
    ),
    Shot("cycles", "/cycles", height=640, wait=".timeline"),
    Shot(
        "whatif",
        "/whatif?job=data/embeddings&set=queue/analytics.capability.nvidia.com/gpu=16",
        height=900,
        click="text=What would happen?",
        wait=".outcome .cause",
    ),
    Shot(
        "simulations",
        "/simulations?a=runs:default&b=runs:reclaiming",
        height=1500,
        wait=".gantt",
    ),
    Shot("narrow", "/jobs/data/embeddings", 390, 844, wait=".remedies ul"),
)


@contextmanager
def _demo(runs: Path) -> Iterator[str]:
    living = LivingCluster(start=_START)
    about = About(title="demo", kind="embedded", decides=True)
    source = EmbeddedSource(living.served.plane, about)
    living.play_history()
    try:
        with served_dashboard(source, ServingOptions(), runs=RunLibrary([runs])) as url:
            yield url
    finally:
        living.served.stop()


def _simulate(folder: Path) -> None:
    sim = ROOT / "examples" / "sim"
    words = ["sim", "--trace", str(sim / "synthetic.yaml"), "--dir", str(folder)]
    words += ["--conf", str(sim / "default.conf"), "--conf", str(sim / "reclaiming.conf")]
    result = click.testing.CliRunner().invoke(pumice, words, catch_exceptions=False)
    if result.exit_code:
        raise SystemExit(result.output)


def _take(browser: Browser, url: str, shot: Shot) -> bytes:
    scheme = "dark" if shot.scheme == "dark" else "light"
    size = {"width": shot.width, "height": shot.height}
    page: Page = browser.new_page(
        viewport={"width": size["width"], "height": size["height"]},
        color_scheme=scheme,  # type: ignore[arg-type]  # one of two words
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    page.set_default_timeout(_PATIENCE_MS)
    page.goto(f"{url}{shot.path}")
    page.wait_for_selector("main h1")
    page.wait_for_selector(".loading", state="detached")
    if shot.click:
        page.click(shot.click)
    if shot.wait:
        page.wait_for_selector(shot.wait)
    page.wait_for_selector(".loading", state="detached")
    page.wait_for_timeout(500)
    taken = page.screenshot()
    page.close()
    return taken


def _write(browser: Browser, name: str, picture: bytes) -> int:
    """Write a picture as WebP, which the browser itself makes of it."""
    page = browser.new_page()
    packed = page.evaluate(_TO_WEBP, [base64.b64encode(picture).decode(), _QUALITY])
    page.close()
    file = IMAGES / f"dashboard-{name}.webp"
    content = base64.b64decode(packed)
    write_file(file, content)
    return len(content)


def main(names: Sequence[str]) -> None:
    """Take all pictures, or those that are named."""
    chromium = installed_browser()
    if chromium is None:
        raise SystemExit(MISSING)
    IMAGES.mkdir(exist_ok=True)
    with TemporaryDirectory() as scratch, sync_playwright() as started:
        runs = Path(scratch) / "runs"
        _simulate(runs)
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with _demo(runs) as url:
            for shot in SHOTS:
                if not names or shot.name in names:
                    size = _write(browser, shot.name, _take(browser, url, shot))
                    sys.stdout.write(f"{shot.name}: {size // 1024} kB\n")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
