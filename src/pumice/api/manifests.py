"""Manifest files to objects: YAML or JSON, several documents, lists unpacked.

Used by the commands and the scenario runner; the only part of pumice.api that reads files. Every
error names the file and the line.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import yaml

from pumice.api.conf_lines import line_of
from pumice.api.objects import KubeObject, from_manifest, in_namespace
from pumice.api.yaml_text import Builder, child, compose_all, line_at
from pumice.errors import ManifestError

_TEXT: Final = "<text>"
_SPACE: Final = re.compile(r"\s*")


@dataclass(frozen=True, kw_only=True)
class Document:
    """One document of a file, or one item of a list: its content and where it stands."""

    content: Any
    file: str
    line: int  # counted from 1; in JSON, the line of the whole document
    node: yaml.Node | None = None  # None in JSON

    @property
    def source(self) -> str:
        """File and line, as editors read them."""
        return f"{self.file}:{self.line}"


def load_manifests(path_or_text: Path | str) -> list[KubeObject]:
    """Read all objects of a file or of a text, in order.

    A string of one line that is no flow mapping is taken as a path: no object fits on such a line.

    Raises:
        ManifestError: a file that cannot be read or parsed, or an object that cannot be used.
    """
    file, text = _open(path_or_text)
    json_documents = _parse_json(text, file)
    if json_documents is None:
        return [_read(document) for document in _parse_yaml(text, file)]
    try:
        return [_read(document) for document in json_documents]
    except ManifestError as error:
        raise _with_line(error, text, file) from None


def load_documents(path_or_text: Path | str) -> list[Document]:
    """Read the documents of a file or of a text without judging them; lists are unpacked.

    Raises:
        ManifestError: a file that cannot be read or parsed.
    """
    file, text = _open(path_or_text)
    documents = _parse_json(text, file)
    return list(_parse_yaml(text, file)) if documents is None else documents


def _open(path_or_text: Path | str) -> tuple[str, str]:
    """Tell a path from a text; return the name to use in errors, and the text."""
    if isinstance(path_or_text, str):
        start = path_or_text.lstrip()
        if not start or "\n" in path_or_text or start[0] in "{[":
            return _TEXT, path_or_text
    path = Path(path_or_text)
    try:
        return str(path), path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise ManifestError(wanted="UTF-8 text", found=f"byte {byte}", file=str(path)) from None
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise ManifestError(wanted="a readable file", found=found, file=str(path)) from None


def _read(document: Document) -> KubeObject:
    """Make the object of a document; point an error at the line of the field."""
    try:
        return from_manifest(in_namespace(document.content), source=document.source)
    except ManifestError as error:
        if document.node is not None:
            error.file = f"{document.file}:{line_at(document.node, error.path)}"
        raise


def _parse_yaml(text: str, file: str) -> Iterator[Document]:
    """Yield what stands in the documents, with the marks of every field."""
    for root in compose_all(text, file):
        content = Builder(file).build(root)
        for step, item in _items(content, f"{file}:{line_of(root)}"):
            node = root if step is None else _item_node(root, step)
            yield Document(content=item, file=file, line=line_of(node), node=node)


def _parse_json(text: str, file: str) -> list[Document] | None:
    """Read JSON values that follow each other; None when the text is rather YAML."""
    position = _after_space(text, 0)
    if text[position : position + 1] not in {"{", "["}:
        return None
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
    documents: list[Document] = []
    while position < len(text):
        line = text.count("\n", 0, position) + 1
        try:
            content, end = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            if not file.endswith(".json"):
                return None  # YAML in flow style looks alike
            raise ManifestError(
                wanted="readable JSON", found=error.msg, file=f"{file}:{error.lineno}"
            ) from None
        except ManifestError as error:
            error.file = f"{file}:{line}"
            raise
        except RecursionError:
            raise ManifestError(
                wanted="fewer nested levels", found="too many", file=f"{file}:{line}"
            ) from None
        items = _items(content, f"{file}:{line}")
        documents += [Document(content=item, file=file, line=line) for _, item in items]
        position = _after_space(text, end)
    return documents


def _items(content: Any, source: str) -> Iterator[tuple[int | None, Any]]:
    """Yield the objects of a list, or the one object, each with its index."""
    if isinstance(content, dict) and content.get("kind") == "List":
        items = content.get("items") or []
        if not isinstance(items, list):
            raise ManifestError(
                wanted="a list", found=items, field="items", file=source, subject="List"
            )
        yield from enumerate(items)
    else:
        yield None, content


def _item_node(root: yaml.Node, step: int) -> yaml.Node:
    items = child(root, "items")
    return (child(items, step) if items is not None else None) or root


def _with_line(error: ManifestError, text: str, file: str) -> ManifestError:
    """Find the line of a fault in JSON by reading it as the YAML it also is."""
    try:
        for document in _parse_yaml(text, file):
            _read(document)
    except ManifestError as placed:
        if (placed.subject, placed.path) == (error.subject, error.path):
            return placed
    return error


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict, refusing a key given twice."""
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ManifestError(wanted="each key once", found=twice)
    return content


def _no_constant(name: str) -> NoReturn:
    raise ManifestError(wanted="a finite number", found=name)


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
