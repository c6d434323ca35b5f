"""YAML 1.1 text to plain values that remember their lines; the reader beneath ``api.conf``.

Scalars get the type that Volcano's own YAML reader gives them, because plugin arguments are
judged by it. Every fault is recorded with its line and reading continues; nothing here raises.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec
import yaml

from pumice.api.yaml_text import PLAIN, TAG, deep_line, fault_words, line_of, plain_value
from pumice.errors import ABSENT, Words
from pumice.errors import Problem as BaseProblem

Severity = Literal["error", "ignored", "odd"]

_WANTED: Final = "readable YAML"
_DEPTH: Final = 50  # nested levels; a configuration needs 7
TAGGED: Final[dict[str, tuple[type, ...]]] = {
    TAG + "int": (int,),
    TAG + "float": (float, int),
    TAG + "bool": (bool,),
    TAG + "null": (type(None),),
}


@dataclass(frozen=True, kw_only=True)
class Problem(BaseProblem):
    """One fault of a configuration.

    An ``error`` stops the load. An ``ignored`` fault leaves the configuration usable without the
    faulty part: a scenario run warns about it, a check or a live start refuses it. An ``odd`` value
    works as written and is probably not intended; a check reports it.
    """

    severity: Severity = "error"

    @property
    def path(self) -> str:
        """Its place, as in ``tiers[0].plugins[1].name``."""
        return self.field

    @property
    def message(self) -> str:
        """What is wrong, without the place and the hint."""
        return str(BaseProblem(wanted=self.wanted, found=self.found, says=self.says))


class Entry(msgspec.Struct, frozen=True):
    """One key of a mapping: the line of the key, and the node of its value."""

    line: int
    node: yaml.Node


class _Loader(yaml.BaseLoader):
    """Composes nodes only; distinguishes an unquoted scalar from one tagged or quoted as text."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            return PLAIN
        return super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]


class YamlReader:
    """Walks one YAML document and records problems; a faulty part reads as if it were absent."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._entries: dict[int, dict[str, Entry]] = {}
        self._values: dict[int, Any] = {}

    def note(
        self,
        line: int,
        path: str,
        wanted: str,
        *,
        found: object = ABSENT,
        hint: str = "",
        severity: Severity = "error",
    ) -> None:
        """Record one problem."""
        self.problems.append(
            Problem(
                line=line,
                field=path,
                wanted=wanted,
                found=summary(found),
                hint=hint,
                severity=severity,
            )
        )

    def compose(self, text: str) -> yaml.Node | None:
        """Return the root node, or None when the text is empty or not YAML."""
        try:
            if line := deep_line(text, _DEPTH):
                self.note(line, "", _WANTED, found=Words("very deep nesting"))
                return None
            loader = _Loader(text)
            try:
                root = loader.get_single_node()
            finally:
                loader.dispose()
        except yaml.reader.ReaderError as fault:
            line = text.count("\n", 0, fault.position) + 1
            self.note(line, "", "printable characters", found=chr(fault.character))
        except yaml.MarkedYAMLError as fault:
            mark = fault.problem_mark or fault.context_mark
            line = mark.line + 1 if mark else 0
            self.note(line, "", _WANTED, found=fault_words(fault, text))
        else:
            return root if root is None or self._finite(root) else None
        return None

    def entries(self, node: yaml.Node, path: str) -> dict[str, Entry]:
        """Return the keys of a mapping, merged mappings included; anything else has none."""
        if id(node) not in self._entries:
            self._entries[id(node)] = self._read_entries(node, path)
        return self._entries[id(node)]

    def items(self, node: yaml.Node, path: str) -> Iterator[tuple[str, yaml.Node]]:
        """Yield path and node of each item of a list; null is an empty list."""
        if isinstance(node, yaml.SequenceNode):
            yield from ((f"{path}[{place}]", item) for place, item in enumerate(node.value))
        elif not self.is_null(node):
            self.note(line_of(node), path, "a list", found=self.value(node, path))

    def is_null(self, node: yaml.Node) -> bool:
        """Return whether a node is YAML's null, written or left empty."""
        if not isinstance(node, yaml.ScalarNode):
            return False
        return node.tag == TAG + "null" or (node.tag == PLAIN and plain_value(node.value) is None)

    def text(self, node: yaml.Node, path: str) -> str | None:
        """Return a scalar as it is written, whatever its type; None for null and on a fault."""
        if isinstance(node, yaml.ScalarNode):
            return None if self.is_null(node) else str(node.value)
        self.note(line_of(node), path, "one text", found=self.value(node, path))
        return None

    def value(self, node: yaml.Node, path: str) -> Any:
        """Return a node as dicts with text keys, lists and typed scalars."""
        if id(node) not in self._values:
            self._values[id(node)] = self._read_value(node, path)
        return self._values[id(node)]

    def _read_value(self, node: yaml.Node, path: str) -> Any:
        if isinstance(node, yaml.MappingNode):
            return {
                key: self.value(entry.node, f"{path}.{key}")
                for key, entry in self.entries(node, path).items()
            }
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, where) for where, item in self.items(node, path)]
        return self._read_scalar(node, path)

    def _read_scalar(self, node: yaml.Node, path: str) -> Any:
        text = str(node.value)
        if node.tag == PLAIN:
            return plain_value(text)
        if node.tag in TAGGED:
            value = plain_value(text)
            kinds = TAGGED[node.tag]
            if type(value) in kinds:
                return None if value is None else kinds[0](value)
            self.note(line_of(node), path, f"!!{node.tag.removeprefix(TAG)}", found=text)
        elif node.tag != TAG + "str":
            hint = "known are !!str, !!int, !!float, !!bool and !!null"
            self.note(line_of(node), path, "a known tag", found=node.tag, hint=hint)
        return text

    def _read_entries(self, node: yaml.Node, path: str) -> dict[str, Entry]:
        if not isinstance(node, yaml.MappingNode):
            if not self.is_null(node):
                self.note(line_of(node), path, "a mapping", found=self.value(node, path))
            return {}
        own: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.note(line_of(key), path, "a text as key", found=self.value(key, path))
            elif key.tag == PLAIN and key.value == "<<":
                for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    merged = self.entries(source, f"{path}.<<") | merged
            elif key.value in own:
                first = f"first on line {own[key.value].line}"
                self.note(line_of(key), path, "each key once", found=key.value, hint=first)
            else:
                own[key.value] = Entry(line_of(key), value)
        return merged | own

    def _finite(self, root: yaml.Node) -> bool:
        """Refuse endless or nearly endless input: an anchor inside itself, very deep nesting."""
        heights: dict[int, int] = {}
        inside: set[int] = set()
        todo = [(root, False)]
        while todo:
            node, leaving = todo.pop()
            if leaving:
                inside.discard(id(node))
                heights[id(node)] = 1 + max((heights[id(c)] for c in _children(node)), default=0)
                if heights[id(node)] > _DEPTH:
                    self.note(line_of(node), "", _WANTED, found=Words("very deep nesting"))
                    return False
            elif id(node) in inside:
                self.note(line_of(node), "", _WANTED, found=Words("an anchor inside itself"))
                return False
            elif id(node) not in heights:
                inside.add(id(node))
                todo.append((node, True))
                todo.extend((child, False) for child in _children(node))
        return True


def summary(value: object) -> object:
    """Return a short stand-in for a list or mapping in a message."""
    if isinstance(value, dict):
        return Words("a mapping")
    return Words("a list") if isinstance(value, list) else value


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    for child in () if isinstance(node, yaml.ScalarNode) else node.value:
        if isinstance(child, tuple):
            yield from child
        else:
            yield child
