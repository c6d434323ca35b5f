"""The notebooks of the examples run from top to bottom, and what they claim holds."""

from pathlib import Path
from shutil import copytree, ignore_patterns

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 3


@pytest.mark.sample(3)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUMICE_TRACE", raising=False)
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]
    copytree(path.parent, tmp_path, dirs_exist_ok=True, ignore=ignore_patterns("*.ipynb"))
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=240, kernel_name="python3", resources=where).execute()
