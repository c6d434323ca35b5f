"""The browser of this machine, for tests of pages and for screenshots."""

import shutil
from typing import Final

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING: Final = "neither Chromium nor Chrome here: apt-get install chromium"


def installed_browser() -> str | None:
    """Return the path of Chromium or Chrome, None if neither is installed."""
    return next(filter(None, map(shutil.which, _NAMES)), None)
