"""Files written to do harm: every verb that reads one ends in one sentence."""

import io
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from tests.hostile.files import FILES, UNREADABLE

GOOD = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
"""
VERBS = {
    "run": ("run", "FILE"),
    "run with -f": ("run", "-f", "GOOD", "-f", "FILE"),
    "run with a configuration": ("run", "GOOD", "--conf", "FILE"),
    "test": ("test", "FILE"),
    "test with expectations": ("test", "GOOD", "--expect", "FILE"),
    "test with a configuration": ("test", "SCENARIO", "--conf", "FILE"),
    "explain": ("explain", "-f", "FILE"),
    "whatif": ("whatif", "-f", "GOOD", "--job", "FILE"),
    "lint": ("lint", "FILE"),
    "config check": ("config", "check", "FILE"),
    "snapshot": ("snapshot", "show", "FILE"),
    "queue order": ("queue", "order", "-f", "FILE"),
    "explain with a configuration": ("explain", "-f", "GOOD", "--conf", "FILE"),
    "job list": ("job", "list", "-k", "FILE"),
    "job run": ("job", "run", "-f", "FILE", "-k", "NOWHERE"),
    "jobflow create": ("jobflow", "create", "-f", "FILE", "-k", "NOWHERE"),
    "jobtemplate delete": ("jobtemplate", "delete", "-f", "FILE", "-k", "NOWHERE"),
    "up": ("up", "--nodes-file", "FILE", "--conf", "MISSING_TIERS"),
    "explain a cluster": ("explain", "-k", "FILE"),
}
FINDINGS = {"lint", "config check"}  # verbs that report what is wrong and exit with 1
ORIGINAL = {
    "job list",
    "job run",
    "jobflow create",
    "jobtemplate delete",
}  # verbs with the exit codes of vcctl


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", "")
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "scenario.yaml").write_text("objects: []\nexpect: {binds: {}}\n")
    (tmp_path / "no-actions.conf").write_text("tiers: []\n")  # no cluster starts with it
    (tmp_path / "nowhere.yaml").write_text(
        "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "contexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n"
    )
    return tmp_path


def written(folder: Path, name: str) -> Path:
    file, content = folder / name, FILES[name]
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def called(folder: Path, verb: str, file: Path) -> Any:
    names = {
        "FILE": str(file),
        "GOOD": str(folder / "good.yaml"),
        "SCENARIO": str(folder / "scenario.yaml"),
        "NOWHERE": str(folder / "nowhere.yaml"),
        "MISSING_TIERS": str(folder / "no-actions.conf"),
    }
    return CliRunner().invoke(main, [names.get(word, word) for word in VERBS[verb]])


@pytest.mark.sample(5)
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", FILES)
def test_a_verb_ends_in_one_sentence(folder: Path, name: str, verb: str) -> None:
    result = called(folder, verb, written(folder, name))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert result.exit_code in ((255, 1, 0, 2) if verb in ORIGINAL else (0, 1, 2))
    assert "Traceback" not in result.output
    if result.exit_code == 2:
        assert len(result.output) < 2000


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("name", "verb"),
    [
        (name, verb)
        for name in UNREADABLE
        for verb in sorted({*VERBS} - FINDINGS - {"job list"})
        # a configuration has rules of its own for what it does not know
        if "configuration" not in verb or name not in {"duplicate.yaml", "nan.json", "tag.yaml"}
    ],
)
def test_a_file_that_cannot_be_read_is_named(folder: Path, name: str, verb: str) -> None:
    file = written(folder, name)
    result = called(folder, verb, file)
    assert result.exit_code == (255 if verb in ORIGINAL else 2)
    assert str(file) in result.output
    assert "expected" in result.output
    assert "got" in result.output


def test_what_standard_input_holds_is_read_alike() -> None:
    for name, content in UNREADABLE.items():
        given = content if isinstance(content, bytes) else content.encode()
        result = CliRunner().invoke(main, ["run", "-"], input=io.BytesIO(given))
        assert result.exit_code == 2, name
        assert "expected" in result.output
