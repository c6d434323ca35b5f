"""Fragments of the changelog are well formed, and a release moves them into the changelog."""

import re
from datetime import date
from pathlib import Path

import pytest

from tools.changelog import KINDS, ChangelogError, fragments, main, move
from tools.packages import ROOT

FOLDER = ROOT / "changelog.d"
NAMES = {"deviceshare", "numa-aware", "preempt", "reclaim"}
"""Names of plugins and actions in lower case that a sentence may begin with."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\nSee `changelog.d/`.\n")
    (tmp_path / "changelog.d").mkdir()
    (tmp_path / "changelog.d" / "README.md").write_text("# Changelog fragments\n")
    return tmp_path


def add(root: Path, name: str, text: str) -> None:
    (root / "changelog.d" / name).write_text(text)


def test_a_fragment_is_made_of_sentences() -> None:
    texts = {file.name: file.read_text(encoding="utf-8") for file in fragments(FOLDER)}
    ends = (".\n", ".)\n", "`\n")  # as a sentence, with one end of line
    assert [name for name, text in texts.items() if not text.endswith(ends)] == []
    firsts = {name: re.split(r"[\s,:]", text, maxsplit=1)[0] for name, text in texts.items()}
    small = {name: first for name, first in firsts.items() if not re.match(r"[A-Z0-9`\"]", first)}
    assert {name: first for name, first in small.items() if first not in NAMES} == {}


def test_links_of_a_fragment_lead_from_its_folder_and_exist() -> None:
    targets = [
        (file.name, target)
        for file in fragments(FOLDER)
        for target in re.findall(r"\]\(([^)\s]+)\)", file.read_text(encoding="utf-8"))
        if "://" not in target
    ]
    assert [each for each in targets if not each[1].startswith("../")] == []
    assert [each for each in targets if not (FOLDER / each[1].partition("#")[0]).exists()] == []


def test_the_page_names_the_kinds() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines() if line.startswith("Kinds:"))
    assert set(re.findall(r"`(\w+)`", line)) == set(KINDS)


def test_fragments_become_a_section_grouped_by_subject_and_kind(root: Path) -> None:
    add(root, "b.fix.md", "A fault is gone.\n")
    add(root, "c.feature.md", "See [here](../docs/sim.md).\nTwo lines.\n")
    add(root, "a.fix.md", "Another fault is gone.\n")
    (root / "CHANGELOG.md").write_text(
        (root / "CHANGELOG.md").read_text() + "\n## 0.0.1 (2025-01-01)\n\nOld.\n"
    )
    add(root, "d.feature.md", "Gangs are placed twice faster.\n")
    assert move(root, "1.2.0", date(2026, 3, 1)) == 4
    text = (root / "CHANGELOG.md").read_text()
    assert text.endswith(
        "## Unreleased\n\nSee `changelog.d/`.\n\n"
        "## 1.2.0 (2026-03-01)\n\n"
        "### Queues, gangs and placing\n\n- See [here](docs/sim.md).\n  Two lines.\n\n"
        "### Faster\n\n- Gangs are placed twice faster.\n\n"
        "### Fixed\n\n- Another fault is gone.\n- A fault is gone.\n\n"
        "## 0.0.1 (2025-01-01)\n\nOld.\n"
    )
    assert [file.name for file in (root / "changelog.d").iterdir()] == ["README.md"]


@pytest.mark.parametrize(
    ("name", "version", "problem"),
    [
        ("a.fix.md", "v1", "expected a version such as 1.2.0 or 1.2.0rc1, got 'v1'"),
        ("a.bug.md", "1.0.0", "expected a name such as short-name.KIND.md"),
        ("", "1.0.0", "expected at least one fragment, got none"),
    ],
)
def test_what_cannot_be_used_changes_nothing(
    root: Path, name: str, version: str, problem: str
) -> None:
    if name:
        add(root, name, "A fault is gone.\n")
    before = (root / "CHANGELOG.md").read_text()
    with pytest.raises(ChangelogError, match=re.escape(problem)):
        move(root, version, date(2026, 3, 1))
    assert (root / "CHANGELOG.md").read_text() == before
    assert not name or (root / "changelog.d" / name).exists()


def test_a_version_is_released_once(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(root, "a.fix.md", "A fault is gone.\n")
    assert main(["1.0.0"], root) == 0
    assert "1 fragments are now 1.0.0" in capsys.readouterr().out
    add(root, "b.fix.md", "A fault is gone.\n")
    assert main(["1.0.0"], root) == 1
    assert "got a section of 1.0.0" in capsys.readouterr().err
