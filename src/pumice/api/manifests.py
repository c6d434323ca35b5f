"""Manifest files to objects: YAML or JSON, several documents, lists unpacked.

Used by the commands and the scenario runner. Every error names the file and the
line.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from pumice.api.json_text import NOT_JSON, parse_json_stream, starts_like_json
from pumice.api.objects import KubeObject, from_manifest, in_namespace
from pumice.api.text_files import is_stdin, read_text, shown_name
from pumice.api.yaml_text import Builder, child, compose_all, line_at, line_of, plain_blocks
from pumice.errors import InputError, ManifestError

TEXT: Final = "<text>"
"""The name of a text without a file."""


class Document(NamedTuple):
    """One document of a file, or one item of a list: its content and its place."""

    content: Any
    file: str
    line: int  # counted from 1; in JSON, the line of the whole document
    text: str = ""
    """What a file in plain block style says there, from which fields are found."""
    node: yaml.Node | None = None  # of other YAML

    @property
    def source(self) -> str:
        """File and line, as editors read them."""
        return f"{self.file}:{self.line}"

    def place_of(self, path: Sequence[str | int]) -> str:
        """File and line of a field; in JSON, of the whole document."""
        return f"{self.file}:{self.line_of_field(path) or self.line}"

    def line_of_field(self, path: Sequence[str | int]) -> int | None:
        """Return the line of a field, or of the nearest thing around it; None in JSON."""
        if self.node is not None:
            return line_at(self.node, path)
        if not self.text or len(self.text) > _MOST_BYTES:
            return None
        return self.line - 1 + line_at(_root_of(self.text, self.file), path)


@lru_cache(maxsize=1)  # an object may have thousands of faults
def _root_of(text: str, file: str) -> yaml.Node:
    (root,) = compose_all(text, file)
    return root


class Pack(NamedTuple):
    """One document of a file as the objects in it: the items of a list, or the document itself."""

    contents: Sequence[Any]
    file: str
    lines: Sequence[int]
    """Where each object begins; in JSON, where the document does."""

    def part(self, start: int, end: int) -> "Pack":
        """Return some of the objects."""
        return Pack(self.contents[start:end], self.file, self.lines[start:end])

    def documents(self) -> "list[Document]":
        """Return the objects with their place."""
        places = zip(self.contents, self.lines, strict=True)
        return [Document(content=one, file=self.file, line=line) for one, line in places]


class Root(NamedTuple):
    """One document of a file as it is written."""

    content: Any
    file: str
    line: int
    item_lines: Sequence[int] = ()
    """Where each item of a list begins; unknown in JSON."""

    def pack(self) -> Pack:
        """Return the objects of a list, or the one object.

        Raises:
            ManifestError: the items of a list are not a list.
        """
        steps = list(_items(self.content, f"{self.file}:{self.line}"))
        contents = [one for _, one in steps]
        if self.item_lines and steps[0][0] is not None:
            return Pack(contents, self.file, self.item_lines)
        return Pack(contents, self.file, [self.line] * len(contents))


def load_manifests(path_or_text: Path | str) -> list[KubeObject]:
    """Read all objects of a file or of a text, in order.

    A string of one line that is not a flow mapping is a path: no object fits on such a line.

    Raises:
        ManifestError: a file that cannot be read or parsed, or an object that cannot be used.
    """
    file, text = _open(path_or_text)
    roots = _parse_json(text, file)
    if roots is None:
        return [_read(document) for document in yaml_documents(text, file)]
    try:
        return [_read(document) for root in roots for document in root.pack().documents()]
    except ManifestError as error:
        raise _with_line(error, text, file) from None


def load_documents(path_or_text: Path | str) -> list[Document]:
    """Read the documents of a file or of a text without checking them; lists are unpacked.

    Raises:
        ManifestError: a file that cannot be read or parsed.
    """
    file, text = _open(path_or_text)
    return documents_in(text, file)


def documents_in(text: str, file: str) -> list[Document]:
    """Read the documents of a text that was in a file, packed perhaps.

    Raises:
        ManifestError: a text that cannot be parsed.
    """
    roots = _parse_json(text, file)
    if roots is None:
        return list(yaml_documents(text, file))
    return [document for root in roots for document in root.pack().documents()]


def load_packs(path_or_text: Path | str) -> list[Pack]:
    """Read the objects of a file or of a text as ``load_documents`` does, document by document.

    Raises:
        ManifestError: a file that cannot be read or parsed.
    """
    return [root.pack() for root in load_roots(path_or_text)]


def load_values(path_or_text: Path | str) -> list[Any]:
    """Read the values of the documents of a file or of a text as written, JSON or YAML.

    Raises:
        ManifestError: a file that cannot be read or parsed.
    """
    return [root.content for root in load_roots(path_or_text)]


def load_roots(path_or_text: Path | str) -> list[Root]:
    """Read the documents of a file or of a text as written, with their lines.

    Raises:
        ManifestError: a file that cannot be read or parsed.
    """
    file, text = _open(path_or_text)
    roots = _parse_json(text, file)
    return list(_yaml_roots(text, file)) if roots is None else roots


def _yaml_roots(text: str, file: str) -> Iterator[Root]:
    blocks = plain_blocks(text)
    if blocks is not None:
        for block in blocks:
            yield Root(block.content, file, block.first + 1, [at + 1 for at in block.item_lines])
        return
    for root in compose_all(text, file):
        items = child(root, "items")
        lines = list(map(line_of, items.value)) if isinstance(items, yaml.SequenceNode) else []
        yield Root(Builder(file).build(root), file, line_of(root), lines)


def _open(path_or_text: Path | str) -> tuple[str, str]:
    """Distinguish a path from a text; return the name to use in errors, and the text."""
    if isinstance(path_or_text, str):
        start = path_or_text.lstrip()
        if not start or "\n" in path_or_text or start[0] in "{[":
            return TEXT, path_or_text
    path = Path(path_or_text)
    return shown_name(path), read_text(path, ManifestError)


def _read(document: Document) -> KubeObject:
    """Make the object of a document; point an error at the line of the field."""
    try:
        return from_manifest(in_namespace(document.content), source=document.source)
    except ManifestError as error:
        error.file = document.place_of(error.path)
        raise


def yaml_documents(text: str, file: str) -> Iterator[Document]:
    """Yield the documents of a text in YAML, or in JSON, which is YAML too; with their lines.

    Raises:
        ManifestError: a text that cannot be parsed.
    """
    blocks = plain_blocks(text)
    if blocks is not None:
        for block in blocks:
            for step, item in _items(block.content, f"{file}:{block.first + 1}"):
                first, passage = block.passage(step)
                yield Document(content=item, file=file, line=first + 1, text=passage)
        return
    for root in compose_all(text, file):
        content = Builder(file).build(root)
        for step, item in _items(content, f"{file}:{line_of(root)}"):
            node = root if step is None else _item_node(root, step)
            yield Document(content=item, file=file, line=line_of(node), node=node)


def _parse_json(text: str, file: str) -> list[Root] | None:
    """Read JSON values that follow each other; None when the text may be YAML."""
    if not starts_like_json(text):
        return None
    try:
        return [Root(each.content, file, each.line) for each in parse_json_stream(text, file)]
    except ManifestError as error:
        if _may_be_yaml(error, file):
            return None
        raise


def _may_be_yaml(error: ManifestError, file: str) -> bool:
    """Return whether a text that is not JSON may be YAML in flow style, which looks similar."""
    return error.wanted == NOT_JSON and not file.endswith(".json")


def _items(content: Any, source: str) -> Iterator[tuple[int | None, Any]]:
    """Yield the objects of a list, or the one object, each with its index."""
    if isinstance(content, dict) and content.get("kind") == "List":
        yield from enumerate(unpacked(content, source))
    else:
        yield None, content


def unpacked(content: Any, source: str) -> list[Any]:
    """Return the items of a list such as PodList; anything else is one object.

    Raises:
        ManifestError: the items are not a list; ``source`` is the file and line to name.
    """
    kind = content.get("kind") if isinstance(content, Mapping) else None
    if not isinstance(kind, str) or not kind.endswith("List"):
        return [content]
    items = content.get("items") or []
    if not isinstance(items, list):
        raise ManifestError(wanted="a list", found=items, field="items", file=source, subject=kind)
    return items


def _item_node(root: yaml.Node, step: int) -> yaml.Node:
    items = child(root, "items")
    return (child(items, step) if items is not None else None) or root


def _with_line(error: ManifestError, text: str, file: str) -> ManifestError:
    """Find the line of a fault in JSON by reading it as the YAML it also is."""
    try:
        for document in yaml_documents(text, file):
            _read(document)
    except ManifestError as placed:
        if (placed.subject, placed.path) == (error.subject, error.path):
            return placed
    return error


@dataclass(frozen=True)
class ObjectLine:
    """Where one object begins, and its fields."""

    file: str
    node: yaml.Node
    lines_before: int = 0
    """Lines of the file before the text that contains the object."""

    def at(self, path: Sequence[str | int] = ()) -> str:
        """Return file and line of a field, as editors read them."""
        return f"{self.file}:{self.lines_before + line_at(self.node, path)}"


def object_lines(file: Path) -> list[ObjectLine]:
    """List where the objects of a scenario are, in order; empty if unknown."""
    try:
        roots = list(compose_all(read_text(file), str(file)))
        if len(roots) != 1:
            return []
        return [each for part in _parts(roots[0], file) for each in _unpacked(part)]
    except (OSError, ValueError, ManifestError):
        return []


def _parts(root: yaml.Node, file: Path) -> Iterator[ObjectLine]:
    """Return the documents of `objects`, a list or a text, and of the files of `objectsFrom`."""
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
        if not other.is_file():  # a pipe would be waited for
            return
        for node in compose_all(read_text(other), str(other)):
            items = node.value if isinstance(node, yaml.SequenceNode) else [node]
            yield from (ObjectLine(str(other), item) for item in items)


def _unpacked(part: ObjectLine) -> Iterator[ObjectLine]:
    """Return the items of a list such as PodList, else the object itself."""
    kind, items = child(part.node, "kind"), child(part.node, "items")
    named = isinstance(kind, yaml.ScalarNode) and str(kind.value).endswith("List")
    if named and isinstance(items, yaml.SequenceNode):
        for node in items.value:
            yield from _unpacked(ObjectLine(part.file, node, part.lines_before))
    else:
        yield part


_MOST_BYTES = 1 << 20
"""Larger files are not read again for the line of a field: as YAML that takes seconds."""
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


@contextmanager
def pointing_to_fields() -> Iterator[None]:
    """Make errors of manifests name the line of the field."""
    try:
        yield
    except ManifestError as error:
        point_to_field(error)
        raise


def point_to_field(error: ManifestError) -> None:
    """Make an error name the line of its field, if it names that of a whole object."""
    name, _, line = error.file.rpartition(":")
    path = error.path or _steps(error.field)
    if not (path and line.isdigit() and _is_small(Path(name))):
        return
    try:
        text = read_text(Path(name))
        documents = list(yaml_documents(text, name))
    except InputError:
        return
    named = [one for one in documents if _is_about(error.subject, one)]
    found = [one for one in named or documents if one.source == error.file] or named
    is_sure = named or len(documents) == 1 or not starts_like_json(text)
    if len(found) == 1 and is_sure:  # all items of a list in JSON were read as of one line
        error.file = found[0].place_of(path)


def _is_small(file: Path) -> bool:
    """Return whether something is a file, or was standard input, that is soon read again."""
    if is_stdin(file):
        return len(read_text(file)) <= _MOST_BYTES
    return file.is_file() and file.stat().st_size <= _MOST_BYTES


def _steps(field: str) -> tuple[str | int, ...]:
    """Take a field apart: ``spec.tasks[0].replicas``."""
    return tuple(int(index) if index else key for index, key in _STEP.findall(field))


def _is_about(subject: str, document: Document) -> bool:
    """Return whether an error names the object of a document, as in ``Job default/train``."""
    content: Any = document.content
    metadata = content.get("metadata") if isinstance(content, dict) else None
    if not isinstance(metadata, dict):
        return False
    name, namespace = metadata.get("name"), metadata.get("namespace") or "default"
    kind = content.get("kind")
    return subject in (f"{kind} {name}", f"{kind} {namespace}/{name}")
