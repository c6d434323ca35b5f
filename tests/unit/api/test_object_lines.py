"""The line of an object in a scenario."""

from pathlib import Path
from typing import Any

import pytest

from pumice.api.manifests import object_lines

LIST = """\
name: s
objects:
- kind: Node
  metadata:
    name: n1
- kind: PodList
  items:
  - kind: Pod
    metadata: {name: a}
  - kind: Pod
    metadata: {name: b}
"""
TEXT = """\
objects: |
  kind: Node
  metadata: {name: n1}
  ---
  kind: Pod
  metadata:
    name: p
"""


@pytest.fixture
def file(tmp_path: Path) -> Any:
    return tmp_path / "s.yaml"


def places(file: Any, *path: Any) -> Any:
    return [int(each.at(path).rpartition(":")[2]) for each in object_lines(file)]


def test_items_and_the_items_of_lists_have_lines(file: Any) -> None:
    file.write_text(LIST)
    assert places(file) == [3, 8, 10]
    assert places(file, "metadata", "name") == [5, 9, 11]


def test_objects_in_a_text_have_the_lines_of_the_file(file: Any) -> None:
    file.write_text(TEXT)
    assert places(file) == [2, 5]
    assert places(file, "metadata", "name") == [3, 7]


def test_objects_of_other_files_are_named_with_them(file: Any) -> None:
    (file.parent / "more.yaml").write_text("kind: Node\n---\nkind: Pod\n")
    file.write_text("objectsFrom: [more.yaml]\n")
    assert [each.at() for each in object_lines(file)] == [
        f"{file.parent / 'more.yaml'}:1",
        f"{file.parent / 'more.yaml'}:3",
    ]


@pytest.mark.parametrize("text", ["objects: [", "a: 1\n---\nb: 2\n", "objectsFrom: [gone.yaml]\n"])
def test_what_cannot_be_read_has_no_lines(file: Any, text: str) -> None:
    file.write_text(text)
    assert object_lines(file) == []
