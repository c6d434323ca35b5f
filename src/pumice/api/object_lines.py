"""On which line an object of a scenario stands, for messages about it.

A file is read for lines only once there is something to say; nothing here judges what it holds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from pumice.api.yaml_text import child, compose_all, line_at
from pumice.errors import ManifestError


@dataclass(frozen=True)
class ObjectLine:
    """Where one object begins, and its fields."""

    file: str
    node: yaml.Node
    lines_before: int = 0
    """Lines of the file before the text that the object stands in."""

    def at(self, path: Sequence[str | int] = ()) -> str:
        """Give file and line of a field, as editors read them."""
        return f"{self.file}:{self.lines_before + line_at(self.node, path)}"


def object_lines(file: Path) -> list[ObjectLine]:
    """List where the objects of a scenario stand, in their order; empty if that cannot be told."""
    try:
        roots = list(compose_all(file.read_text(encoding="utf-8-sig"), str(file)))
        if len(roots) != 1:
            return []
        return [each for part in _parts(roots[0], file) for each in _unpacked(part)]
    except (OSError, ValueError, ManifestError):
        return []


def _parts(root: yaml.Node, file: Path) -> Iterator[ObjectLine]:
    """Give the documents of `objects`, a list or a text, and of the files of `objectsFrom`."""
    inside = child(root, "objects")
    if isinstance(inside, yaml.SequenceNode):
        for node in inside.value:
            yield ObjectLine(str(file), node)
    elif isinstance(inside, yaml.ScalarNode):
        before = inside.start_mark.line + (1 if inside.style in ("|", ">") else 0)
        for node in compose_all(inside.value, str(file)):
            yield ObjectLine(str(file), node, before)
    names = child(root, "objectsFrom")
    for name in names.value if isinstance(names, yaml.SequenceNode) else ():
        other = file.parent / str(name.value)
        for node in compose_all(other.read_text(encoding="utf-8-sig"), str(other)):
            items = node.value if isinstance(node, yaml.SequenceNode) else [node]
            yield from (ObjectLine(str(other), item) for item in items)


def _unpacked(part: ObjectLine) -> Iterator[ObjectLine]:
    """Give the items of a list such as PodList, else the object itself."""
    kind, items = child(part.node, "kind"), child(part.node, "items")
    named = isinstance(kind, yaml.ScalarNode) and str(kind.value).endswith("List")
    if named and isinstance(items, yaml.SequenceNode):
        for node in items.value:
            yield from _unpacked(ObjectLine(part.file, node, part.lines_before))
    else:
        yield part
