"""Which tests reach which lines: measured once, so that a mutant runs only those that see it."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from coverage import CoverageData

ROOT: Final = Path(__file__).resolve().parents[1]
DATA: Final = ROOT / "build" / "reach" / "coverage"
_SETTINGS: Final = "[run]\ndynamic_context = test_function\nsource = src/pumice\n"


def measure(tests: Sequence[str]) -> None:
    """Run tests and remember which lines each of them reaches, beside what is known."""
    DATA.parent.mkdir(parents=True, exist_ok=True)
    settings = DATA.with_name("settings")
    settings.write_text(f"{_SETTINGS}data_file = {DATA}\n", encoding="utf-8")
    command = [sys.executable, "-m", "coverage", "run", "--append", f"--rcfile={settings}"]
    command += ["-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", *tests]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run(command, cwd=ROOT, env=env, check=False)  # noqa: S603


class Reach:
    """What was measured; empty if nothing was."""

    def __init__(self) -> None:
        self._data = CoverageData(str(DATA), no_disk=not DATA.exists())
        if DATA.exists():
            self._data.read()

    def tests(self, file: Path, lines: range) -> list[str]:
        """Return the tests that reach some lines of a file, as pytest names them."""
        found = self._data.contexts_by_lineno(str(file))
        names = {name for line in lines for name in found.get(line, ()) if name}
        return sorted(filter(None, map(_node, names)))


def _node(context: str) -> str:
    """Return what pytest calls a test: its file, then its class if it has one, then its name."""
    parts = context.split(".")
    for count in range(len(parts) - 1, 0, -1):
        file = Path(*parts[:count]).with_suffix(".py")
        if (ROOT / file).is_file():
            return "::".join([str(file), *parts[count:]])
    return ""
