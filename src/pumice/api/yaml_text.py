"""YAML text to plain values, typed as Kubernetes' reader types them, with the line of each fault.

Used by pumice.api.manifests. Hostile text (an anchor inside itself, anchors that multiply,
bottomless nesting) is refused before it costs anything.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import yaml

from pumice.api.conf_lines import line_of, plain_value
from pumice.errors import ManifestError

_PLAIN: Final = "!plain"  # a scalar without quotes and without a tag: its text decides
_TAG: Final = "tag:yaml.org,2002:"
_TYPED: Final = frozenset({_PLAIN, *(_TAG + name for name in ("int", "float", "bool", "null"))})
_DEPTH: Final = 100  # nested levels; a manifest needs 20
_EXPANDED: Final = 1_000_000  # values that anchors may stand for in one document
_BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one is ten times faster


class _Loader(_BaseLoader):  # type: ignore[misc]
    """Composes nodes only; leaves the type of a plain scalar open."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> Any:
        if kind is yaml.ScalarNode and implicit[0]:
            return _PLAIN
        return super().resolve(kind, value, implicit)


def compose_all(text: str, file: str) -> Iterator[yaml.Node]:
    """Yield the root node of each document; empty documents are skipped.

    Raises:
        ManifestError: not YAML; names the file and the line.
    """
    try:
        if _is_deep(text):
            raise ManifestError(wanted=f"at most {_DEPTH} nested levels", found="more", file=file)
        loader = _Loader(text)
        while loader.check_node():
            root = loader.get_node()
            if root.tag != _PLAIN or root.value:
                yield root
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        where = f"{file}:{mark.line + 1}" if mark else file
        found = " ".join(part for part in (fault.problem, fault.context) if part)
        raise ManifestError(wanted="readable YAML", found=found, file=where) from None
    except yaml.reader.ReaderError as fault:
        line = text.count("\n", 0, fault.position) + 1
        raise ManifestError(
            wanted="printable characters", found=fault.reason, file=f"{file}:{line}"
        ) from None


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

    def __init__(self, file: str) -> None:
        self._file = file
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
                self._refuse(node, f"anchors for at most {_EXPANDED} values", "more")
            return value
        if id(node) in self._open:
            self._refuse(node, "anchors that end", "one inside itself")
        self._open.add(id(node))
        before = self._count
        value = self._mapping(node) if isinstance(node, yaml.MappingNode) else self._list(node)
        self._open.discard(id(node))
        self._built[id(node)] = value, self._count - before
        return value

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        if node.tag in _TYPED:
            return plain_value(node.value)
        if node.tag != _TAG + "str":
            self._refuse(node, "a value without a tag", node.tag)
        return node.value

    def _list(self, node: yaml.Node) -> list[Any]:
        return [self.build(item) for item in node.value]

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key, item in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._refuse(key, "a string as key", "a list or a mapping")
            if key.tag == _PLAIN and key.value == "<<":
                merged |= self._merged(item)
                continue
            if key.value in own:
                self._refuse(key, "each key once", key.value)
            own[key.value] = self.build(item)
        return merged | own if merged else own

    def _merged(self, node: yaml.Node) -> dict[str, Any]:
        """Read what ``<<`` brings in: one mapping, or a list of which the first wins."""
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


def _is_deep(text: str) -> bool:
    """Say whether the nesting is beyond reason; the C composer recurses and would crash on it.

    A level of a block takes a column, one of a flow a bracket; so most texts need no second look.
    """
    longest = max(map(len, text.splitlines()), default=0)
    if longest < _DEPTH and text.count("[") + text.count("{") < _DEPTH:
        return False
    depth = 0
    for event in yaml.parse(text, Loader=_BaseLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEPTH:
            return True
    return False
