"""A disk that fills up while a command writes: one sentence, the old content, nothing beside it."""

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from pumice.cli.main import main

ROOT: Final = Path(__file__).resolve().parents[2]
TRACE: Final = ROOT / "tests/data/traces/small.swf"
SCENARIO: Final = (ROOT / "examples/first-cluster.yaml").read_text(encoding="utf-8")
OLD: Final = "the old content\n"

COMMANDS: Final[dict[str, tuple[list[Any], str]]] = {
    "run --write": (["run", "scenario.json", "--write"], "scenario.json"),
    "snapshot save": (["snapshot", "save", "cluster.yaml", "-o", "out.json"], "out.json"),
    "test --junit": (["test", "scenario.json", "--junit", "out.xml"], "out.xml"),
    "trace convert": (["trace", "convert", TRACE, "out.csv"], "out.csv"),
    "trace convert to Parquet": (["trace", "convert", TRACE, "out.parquet"], "out.parquet"),
    "sim": (["sim", "--trace", TRACE, "-d", "."], "jobs.csv"),
    "sweep": (["sweep", "--trace", TRACE, "-d", "."], "summary.csv"),
    "demo": (["demo", "--report", "out.html"], "out.html"),
}
"""What to run, and a file that it writes."""


@contextmanager
def full_after(size: int) -> Iterator[None]:
    """Refuse to make a file larger, as a full disk does."""
    before, compiles = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # Python takes half a compiled file for a whole one
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = compiles


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    command, written = COMMANDS[name]
    if written.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    for place in ("cluster.yaml", "scenario.json", written):
        Path(place).write_text(OLD)
    Path("cluster.yaml").write_text(SCENARIO)
    objects = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}'
    Path("scenario.json").write_text(f'{{"objects": [{objects}]}}')
    before = {file: file.read_bytes() for file in Path().iterdir()}
    with full_after(20):
        done = CliRunner().invoke(main, [str(word) for word in command])
    assert done.exit_code == 2, done.output
    assert "expected a file that can be written, got File too large" in done.output
    assert "free some space" in done.output
    assert isinstance(done.exception, SystemExit)
    assert {file: file.read_bytes() for file in Path().iterdir()} == before


@pytest.mark.parametrize("name", ["run --write", "trace convert", "test --junit"])
def test_a_link_is_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    command, written = COMMANDS[name]
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    Path("scenario.json").write_text('{"objects": []}')
    source = Path("there") / written
    source.write_bytes(Path(written).read_bytes() if Path(written).exists() else b"")
    source.chmod(0o640)
    Path(written).unlink(missing_ok=True)
    Path(written).symlink_to(source)
    done = CliRunner().invoke(main, [str(word) for word in command])
    assert "Error" not in done.output
    assert Path(written).is_symlink()
    assert source.stat().st_size > 20
    assert source.stat().st_mode & 0o777 == 0o640


def test_a_snapshot_is_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cluster.yaml").write_text(SCENARIO)
    Path("other").write_text(OLD)
    Path("link.json").symlink_to("other")
    command = ["snapshot", "save", "cluster.yaml", "-o"]
    assert CliRunner().invoke(main, [*command, "out.json"]).exit_code == 0
    assert Path("out.json").stat().st_mode & 0o777 == 0o600
    refused = CliRunner().invoke(main, [*command, "link.json"])
    assert refused.exit_code == 2
    assert "link.json" in refused.output
    assert Path("other").read_text() == OLD


def test_a_snapshot_can_go_to_a_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cluster.yaml").write_text(SCENARIO)
    done = CliRunner().invoke(main, ["snapshot", "save", "cluster.yaml", "-o", "/dev/stdout"])
    assert done.exit_code == 0
    assert "objects:" in capfd.readouterr().out
    assert list(Path().iterdir()) == [Path("cluster.yaml")]
