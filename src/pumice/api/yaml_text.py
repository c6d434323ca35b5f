"""YAML text to plain values, typed as Kubernetes' reader types them, with the line of each fault.

Used by pumice.api.manifests. Hostile text (an anchor inside itself, anchors that multiply,
bottomless nesting) is refused before it costs anything.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import yaml

from pumice.api.json_text import DEPTH, lone_surrogate
from pumice.api.yaml_blocks import BlockDocument, read_blocks
from pumice.api.yaml_faults import fault_words
from pumice.api.yaml_nodes import PLAIN, TAG, BaseLoader, deep_line, line_of, plain_value
from pumice.errors import ManifestError, Words

NOT_YAML: Final = "readable YAML"
"""The message where a text is not YAML at all."""
_TYPED: Final = frozenset({PLAIN, *(TAG + name for name in ("int", "float", "bool", "null"))})
_EXPANDED: Final = 1_000_000  # values that anchors may stand for in one document


class _Loader(BaseLoader):  # type: ignore[misc]
    """Composes nodes only; leaves the type of a plain scalar open."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> Any:
        if kind is yaml.ScalarNode and implicit[0]:
            return PLAIN
        return super().resolve(kind, value, implicit)


def compose_all(text: str, file: str) -> Iterator[yaml.Node]:
    """Yield the root node of each document; empty documents are skipped.

    Raises:
        ManifestError: not YAML; names the file and the line.
    """
    try:
        if line := deep_line(text, DEPTH):
            wanted = f"at most {DEPTH} nested levels"
            raise ManifestError(wanted=wanted, found=Words("more"), file=f"{file}:{line}")
        loader = _Loader(text)
        while loader.check_node():
            root = loader.get_node()
            if root.tag != PLAIN or root.value:
                yield root
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        where = f"{file}:{mark.line + 1}" if mark else file
        raise ManifestError(wanted=NOT_YAML, found=fault_words(fault, text), file=where) from None
    except yaml.reader.ReaderError as fault:
        line = text.count("\n", 0, fault.position) + 1
        raise ManifestError(
            wanted="printable characters", found=chr(fault.character), file=f"{file}:{line}"
        ) from None


def parse_yaml(text: str, file: str, *, unique: bool = True) -> list[Any]:
    """Return the values of all documents of a text; ``unique`` refuses a key given twice.

    Raises:
        ManifestError: not YAML that Kubernetes reads; names the file and the line.
    """
    blocks = plain_blocks(text)
    if blocks is not None:
        return [document.content for document in blocks]
    return _parse_any(text, file, unique=unique)


def plain_blocks(text: str) -> list[BlockDocument] | None:
    """Return the documents of a text if it is in plain block style, which is read much faster."""
    return read_blocks(text, _parse_any)


def _parse_any(text: str, file: str = "", *, unique: bool = True) -> list[Any]:
    return [Builder(file, unique=unique).build(root) for root in compose_all(text, file)]


def child(node: yaml.Node, step: str | int) -> yaml.Node | None:
    """Return the node under a key or an index, or None."""
    if isinstance(node, yaml.MappingNode):
        return next((item for key, item in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        found: yaml.Node = node.value[step]
        return found
    return None


def line_at(node: yaml.Node, path: Sequence[str | int]) -> int:
    """Return the line of the value at a path, or of the nearest thing around it."""
    for step in path:
        below = child(node, step)
        if below is None:
            break
        node = below
    return line_of(node)


class Builder:
    """Turns the nodes of one document into dicts, lists and scalars; an anchor is built once."""

    def __init__(self, file: str, *, unique: bool = True) -> None:
        self._file = file
        self._unique = unique
        self._built: dict[int, tuple[Any, int]] = {}  # node id to value and number of values in it
        self._open: set[int] = set()
        self._count = 0

    def build(self, node: yaml.Node) -> Any:
        """Return the value of a node.

        Raises:
            ManifestError: a key given twice, a tag unknown to Kubernetes, or hostile anchors.
        """
        self._count += 1
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if id(node) in self._built:
            value, size = self._built[id(node)]
            self._count += size
            if self._count > _EXPANDED:
                self._refuse(node, f"anchors for at most {_EXPANDED} values", Words("more"))
            return value
        if id(node) in self._open:
            self._refuse(node, "anchors that end", Words("one inside itself"))
        self._open.add(id(node))
        before = self._count
        value = self._mapping(node) if isinstance(node, yaml.MappingNode) else self._list(node)
        self._open.discard(id(node))
        self._built[id(node)] = value, self._count - before
        return value

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        if node.tag in _TYPED:
            value = plain_value(node.value)
            if isinstance(value, float) and not math.isfinite(value):
                self._refuse(node, "a finite number", node.value)
            return value
        if node.tag != TAG + "str":
            self._refuse(node, "a value without a tag", node.tag)
        if lone_surrogate(node.value):
            self._refuse(node, "whole characters", node.value)
        return node.value

    def _list(self, node: yaml.Node) -> list[Any]:
        return [self.build(item) for item in node.value]

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key, item in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._refuse(key, "a string as key", Words("a list or a mapping"))
            if key.tag == PLAIN and key.value == "<<":
                merged |= self._merged(item)
                continue
            name = self._key(key)
            if name in own and self._unique:
                self._refuse(key, "each key once", Words(f"{name!r} twice"))
            own[name] = self.build(item)
        return merged | own if merged else own

    def _key(self, node: yaml.ScalarNode) -> str:
        """Return a key as text; kubectl writes ``y`` as ``true`` and ``010`` as ``8``."""
        value = self._scalar(node)
        if isinstance(value, str):
            return value
        if value is None:
            self._refuse(node, "a string as key", None)
        return str(value).lower() if isinstance(value, bool) else str(value).removesuffix(".0")

    def _merged(self, node: yaml.Node) -> dict[str, Any]:
        """Read the content of ``<<``: one mapping, or a list in which the first wins."""
        value = self.build(node)
        parts = value if isinstance(value, list) else [value]
        merged: dict[str, Any] = {}
        for part in reversed(parts):
            if not isinstance(part, dict):
                self._refuse(node, "a mapping to merge", part)
            merged |= part
        return merged

    def _refuse(self, node: yaml.Node, wanted: str, found: object) -> None:
        raise ManifestError(wanted=wanted, found=found, file=f"{self._file}:{line_of(node)}")
