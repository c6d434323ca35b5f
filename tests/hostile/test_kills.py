"""A kill at any line that writes leaves the old content or the new one, and no promise broken."""

import sys
from pathlib import Path
from subprocess import run

import pytest

from tests.hostile.kill_points import WRITERS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", WRITERS)
def test_a_kill_at_any_line_leaves_whole_files(name: str) -> None:
    command = [sys.executable, "-m", "tests.hostile.kill_points", name]
    done = run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20
