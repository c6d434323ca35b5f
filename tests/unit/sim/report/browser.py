"""A real browser for tests of pages."""

import subprocess
from pathlib import Path

import pytest

from tools.browser import MISSING, installed_browser

CHROMIUM = installed_browser()
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
_FRAME = """<!doctype html><body>
<iframe id="frame" src="{name}" style="width: {width}px; height: 900px">
</iframe><script>
document.getElementById("frame").onload = ({{ target }}) => setTimeout(() => {{
  const seen = target.contentDocument;
  const root = seen.documentElement;
  const found = {{
    ran: seen.defaultView.ran === true || "ran" in root.dataset,
    title: seen.title,
    width: root.scrollWidth,
    charts: seen.querySelectorAll(".uplot canvas").length,
    places: seen.querySelectorAll("[data-chart]").length,
    headings: [...seen.querySelectorAll("h3")].map((each) => each.textContent),
  }};
  document.body.textContent = JSON.stringify(found);
}}, 500);
</script>"""


def look_at(page: Path, *, width: int = 420) -> str:
    """Open a page in a frame of some width; return what it became, as JSON inside HTML."""
    frame = page.with_name("frame.html")
    frame.write_text(_FRAME.format(name=page.name, width=width), encoding="utf-8")
    done = subprocess.run(  # noqa: S603
        [
            str(CHROMIUM),
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"),
            *("--virtual-time-budget=20000", f"--user-data-dir={page.parent / 'profile'}"),
            *("--dump-dom", frame.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout
