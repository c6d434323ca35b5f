"""What failed is tried once more, and what passes then is named."""

from pathlib import Path

import pytest

from tools.retry import run

TESTS = """\
from pathlib import Path

def test_shaky():
    seen = Path(__file__).with_name("seen")
    first = not seen.exists()
    seen.touch()
    assert not first

def test_firm():
    pass
"""


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugins of this run take most of the time of a small one."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def tried(folder: Path, tests: str, *also: str) -> int:
    file = folder / "test_some.py"
    file.write_text(tests)
    arguments = ["-q", "-c", "/dev/null", "--rootdir", str(folder), str(file)]
    return run([*arguments, *also], folder / "flaky.txt")


def test_what_passes_when_tried_again_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert tried(tmp_path, TESTS) == 0
    reported = (tmp_path / "flaky.txt").read_text()
    assert "test_some.py::test_shaky" in reported
    assert "test_firm" not in reported
    assert "1 flaky of 1 that failed" in capfd.readouterr().out


def test_what_fails_twice_fails(tmp_path: Path) -> None:
    assert tried(tmp_path, f"{TESTS}\n\ndef test_broken():\n    raise ValueError\n") == 1
    reported = (tmp_path / "flaky.txt").read_text()
    assert "test_shaky" in reported
    assert "test_broken" not in reported


def test_what_failed_beside_others_is_tried_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    alone = "import os\n\ndef test_alone():\n    assert 'PYTEST_XDIST_WORKER' not in os.environ\n"
    broken = "def test_broken():\n    raise ValueError\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTEST_XDIST_WORKER", raising=False)  # of the run that this test is in
        assert tried(tmp_path, f"{alone}\n\n{broken}", "-p", "xdist", "-n", "2") == 1
    assert "test_alone" in (tmp_path / "flaky.txt").read_text()
    assert "1 flaky of 2 that failed" in capfd.readouterr().out


def test_what_passes_at_once_leaves_no_report(tmp_path: Path) -> None:
    (tmp_path / "flaky.txt").write_text("of the last run")
    assert tried(tmp_path, "def test_firm():\n    pass\n") == 0
    assert not (tmp_path / "flaky.txt").exists()
