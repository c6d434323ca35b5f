"""Whether installed distributions may offer plugins."""

import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import pytest

from pumice.framework.registry import may_offer

GROUP = "pumice.plugins"


@pytest.fixture(autouse=True)
def _no_other_finders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out finders that libraries of other tests have added."""
    monkeypatch.setattr(sys, "meta_path", [PathFinder])


def install(folder: Path, name: str, text: str) -> None:
    metadata = folder / name
    metadata.mkdir()
    (metadata / "entry_points.txt").write_text(text)


@pytest.mark.parametrize("name", ["x-1.dist-info", "x.egg-info", "X.Dist-Info"])
def test_a_distribution_that_names_the_group_may(tmp_path: Path, name: str) -> None:
    install(tmp_path, "other.dist-info", "[console_scripts]\na = b:c\n")
    assert not may_offer(GROUP, [str(tmp_path)])
    install(tmp_path, name, f"[{GROUP}]\nmine = mine:Mine\n")
    assert may_offer(GROUP, [str(tmp_path)])


def test_other_files_and_missing_folders_do_not(tmp_path: Path) -> None:
    (tmp_path / "old.egg-info").write_text("Name: old\n")
    (tmp_path / "bare.dist-info").mkdir()
    install(tmp_path, "notes", f"[{GROUP}]\n")
    assert not may_offer(GROUP, [str(tmp_path), str(tmp_path / "gone")])


def test_what_cannot_be_seen_may(tmp_path: Path, monkeypatch: Any) -> None:
    archive = tmp_path / "modules.zip"
    archive.write_bytes(b"")
    egg = tmp_path / "x.egg"
    egg.mkdir()
    assert may_offer(GROUP, [str(archive)])
    assert may_offer(GROUP, [str(egg)])

    class Finder:
        @staticmethod
        def find_distributions(context: Any) -> Any:
            raise NotImplementedError

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert may_offer(GROUP, [])
