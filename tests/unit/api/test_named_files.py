"""A file names other files in its own folder only."""

import os
from pathlib import Path

import pytest

from pumice.api.text_files import named_file
from pumice.diagnosis.sources import load_world
from pumice.errors import InputError
from pumice.scenarios.scenario import load_scenario

HUSH = "- root:x:0:0 do not quote\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "given"
    (inside / "below").mkdir(parents=True)
    (tmp_path / "secret.yaml").write_text(HUSH)
    (inside / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    (inside / "circle.yaml").symlink_to(inside / "circle.yaml")
    (inside / "elsewhere").symlink_to(tmp_path)
    os.mkfifo(inside / "pipe.yaml")
    (inside / "below" / "fine.yaml").write_text("")
    return inside


ELSEWHERE = (
    "../secret.yaml", "below/../../secret.yaml", "link.yaml", "elsewhere/secret.yaml",
    "circle.yaml", "pipe.yaml", "below", "/dev/zero", "/etc/passwd", "\0", "a" * 5000, "..", ".",
)  # fmt: skip


@pytest.mark.parametrize("name", [*ELSEWHERE, "ABSOLUTE"])
def test_files_elsewhere_are_neither_read_nor_quoted(folder: Path, name: str) -> None:
    named = str(folder.parent / "secret.yaml") if name == "ABSOLUTE" else name
    file = folder / "scenario.yaml"
    for text in (f"objectsFrom: [{named!r}]\n", f"objects: []\nconfFrom: {named!r}\n"):
        file.write_text(text.replace("'\\x00'", '"\\0"'))
        for read in (load_scenario, lambda path: load_world([path])):
            with pytest.raises(InputError, match="in the folder of scenario") as told:
                read(file)
            assert "root:x" not in str(told.value)


def test_files_in_the_folder_are_found(folder: Path) -> None:
    found = named_file(folder / "scenario.yaml", "below/fine.yaml", "objectsFrom")
    assert found == folder / "below" / "fine.yaml"
    assert named_file(folder / "scenario.yaml", "missing", "confFrom") == folder / "missing"


def test_a_text_names_no_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(InputError, match="no names of files in a text"):
        load_world(["objectsFrom: [below/fine.yaml]\n"])
