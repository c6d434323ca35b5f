"""YAML text to plain values, typed as Kubernetes' reader types them, with the line of each fault.

Hostile text (an anchor inside itself, anchors that multiply, bottomless nesting) is refused before
it costs anything.  The plain block style, as ``kubectl get -o yaml`` writes it, is read line by
line: the parser that reads all of YAML takes twenty times as long and ten times the memory.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

import yaml

from pumice.api.json_text import DEPTH, lone_surrogate
from pumice.errors import ManifestError, Words

TAG: Final = "tag:yaml.org,2002:"
PLAIN: Final = "!plain"
"""The tag of a scalar without quotes and without a tag: its text decides."""
BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one is ten times faster
_TRUE: Final = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE: Final = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(_TRUE, True),
    **dict.fromkeys(_FALSE, False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_INT: Final = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_OLD_OCTAL: Final = re.compile(r"[-+]?0[0-7]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INT64: Final = 1 << 63


def line_of(node: yaml.Node) -> int:
    """Return the line on which a node starts, counted from 1."""
    return int(node.start_mark.line) + 1


def plain_value(text: str) -> Any:
    """Resolve the type of an unquoted scalar: null, bool, int, float or str.

    Unlike PyYAML, ``1e3`` is a float, ``12:30`` and ``2024-01-01`` are text, ``y`` and ``n`` are
    booleans, as in the reader that kubectl and Volcano use. An integer beyond 64 bits is a float.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    bare = text.replace("_", "")
    if _INT.fullmatch(bare) and len(bare) < 80:
        number = int(bare, 8 if _OLD_OCTAL.fullmatch(bare) else 0)
        if -_INT64 <= number < _INT64:
            return number
    if _FLOAT.fullmatch(bare) and math.isfinite(value := float(bare)):
        return value
    return text


def deep_line(text: str, most: int) -> int:
    """Return the line on which the nesting passes ``most`` levels, 0 if none does.

    A composer recurses and would crash on it. A level of a block takes a column, one of a flow a
    bracket; so most texts need no second look.
    """
    longest = max(map(len, text.splitlines()), default=0)
    if longest < most and text.count("[") + text.count("{") < most:
        return 0
    depth = 0
    for event in yaml.parse(text, Loader=BaseLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > most:
            return int(event.start_mark.line) + 1
    return 0


_TAB: Final = "a tab, where YAML wants spaces"
_LOOSE_COLON: Final = "a ':' where no key can be: look at the indentation and the quotes"
_NOTHING: Final = re.compile(r"(?:did|could) not find (?:the )?expected (?P<what>.+)")
_PLACES: Final = {
    "block collection": " in a list",
    "flow sequence": " in a list in brackets",
    "flow mapping": " in a mapping in braces",
    "block mapping": " in a mapping",
}
"""How the parser names a place, and how an author does."""
_INSTEAD: Final = re.compile(r"expected (?P<wanted>.+), but (?:found|got) (?P<found>.+)")


def fault_words(fault: yaml.MarkedYAMLError, text: str) -> Words:
    """Describe what a reader of YAML found in place of what it could read."""
    problem = str(fault.problem or "").removeprefix("but ").removeprefix("found ")
    if "tab character" in problem:
        return Words(_TAB)
    if "cannot start any token" in problem:
        return _unusable_character(fault, text)
    if problem.startswith("mapping values are not allowed"):
        return Words(_LOOSE_COLON)
    if "<document start>" in problem:
        return Words("more after the end of the value")
    if problem == "unexpected end of stream" and "quoted" in str(fault.context):
        return Words("a quote that is not closed")
    context = str(fault.context or "")
    where = next((words for part, words in _PLACES.items() if part in context), "")
    return Words(f"{_thing(problem)}{where or (context and f' {context}')}")


def _unusable_character(fault: yaml.MarkedYAMLError, text: str) -> Words:
    """Name the character: a tab, or one that has a meaning of its own in YAML."""
    lines = text.split("\n")
    mark = fault.problem_mark
    line = lines[mark.line] if mark and mark.line < len(lines) else ""
    character = line[mark.column : mark.column + 1] if mark else ""
    if character == "\t":
        return Words(_TAB)
    shown = repr(character) if character else "a character"
    return Words(f"{shown}, with which no text can begin unless it is in quotes")


def _thing(problem: str) -> str:
    """Write a problem as what is there, for a sentence that goes on after "found"."""
    if found := _NOTHING.fullmatch(problem):
        return f"no {found['what'].removesuffix(' indicator')}"
    if found := _INSTEAD.fullmatch(problem):
        return f"{found['found']} in place of {found['wanted']}"
    if not problem or problem.startswith(("a ", "an ", "no ", "the ")):
        return problem or "something else"
    return f"{'an' if problem[0] in 'aeiou' else 'a'} {problem}"


_ENTRY: Final = re.compile(
    r"(?P<dashes>(?:- )*)"
    r"(?:(?:(?P<key>[A-Za-z0-9_./](?:[^\t #:]|:(?! |$)){0,200})|"
    r"""(?P<quote>["'])(?P<quoted>[^\t"'\\]{0,200})(?P=quote)):(?: +|$))?"""
    r"(?P<value>.*)"
)
_PLAIN: Final = re.compile(
    r"(?:[A-Za-z0-9_./+~$(]|-(?=[^\t ]))(?:[^\t #:]|:(?! |$)| (?!#)|(?<! )#)*"
)
_SINGLE_QUOTED: Final = re.compile(r"'((?:[^\t']|'')*)'")
_DOUBLE_QUOTED: Final = re.compile(r'"([^\t"\\]*)"')


class Kind(Enum):
    """What the value of an entry is."""

    SCALAR = 1
    EMPTY = 2  # {} or []
    BELOW = 3  # on the lines that follow, or null
    LITERAL = 4  # text, after |
    OTHER = 5  # for the full parser
    TEXT = 6  # the line is no entry: it goes on with the value of one


SCALAR, EMPTY, BELOW, LITERAL, OTHER, TEXT = Kind
Entry = tuple[int, str | None, Kind, Any]
"""Dashes, key, kind of the value, and the value."""
_NO_ENTRY: Final[Entry] = (0, None, TEXT, None)
_SHORT: Final[dict[str, tuple[Kind, Any]]] = {
    "": (BELOW, None),
    "{}": (EMPTY, dict),
    "[]": (EMPTY, list),
    "|": (LITERAL, ""),
    "|-": (LITERAL, "-"),
    "|+": (LITERAL, "+"),
}


def entry_of(body: str) -> Entry:
    """Take a line without its indentation apart."""
    match = _ENTRY.fullmatch(body.rstrip(" "))
    if match is None:
        return _NO_ENTRY
    key, value = match["key"], match["value"]
    if key is None:
        key = match["quoted"]
    elif not isinstance(plain_value(key), str):
        return _NO_ENTRY
    dashes = len(match["dashes"]) // 2
    if key is None and value == "-":
        dashes, value = dashes + 1, ""
    if key is None and not dashes:
        return _NO_ENTRY
    return dashes, key, *(_SHORT.get(value) or _scalar(value))


def _scalar(text: str) -> tuple[Kind, Any]:
    """Return what is written as the value of an entry."""
    if _PLAIN.fullmatch(text):
        value = plain_value(text)
        return (OTHER, None) if isinstance(value, float) else (SCALAR, value)
    if match := _SINGLE_QUOTED.fullmatch(text):
        return SCALAR, match[1].replace("''", "'")
    if match := _DOUBLE_QUOTED.fullmatch(text):
        return SCALAR, match[1]
    return OTHER, None


_MOST_LEVELS: Final = DEPTH // 2
"""Nested levels here, and again in a value that is given away: together within the bound."""
_REMEMBERED: Final = 1 << 16
"""Different lines; most lines of a long text occur many times in it."""
_STRANGE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)
"""Not printable, another end of a line, or a mark of byte order."""
_ROOT: Final = 2
"""How many collections are open in the outermost one: itself, and what holds the document."""
_ITEM: Final = -1
"""The key of the newest item of a list."""


class _NotPlainError(Exception):
    """The text is for the full parser."""


class BlockDocument(NamedTuple):
    """One document and where it is; lines are counted from 0."""

    content: Any
    lines: Sequence[str]  # of the whole text
    first: int
    end: int
    item_lines: Sequence[int]
    """Where each of ``items`` begins, which all are mappings."""

    def passage(self, item: int | None = None) -> tuple[int, str]:
        """Return the first line of the document, or of one of its items, and their text.

        The text of an item has spaces in place of the dash.
        """
        if item is None:
            return self.first, _joined(self.lines[self.first : self.end])
        first = self.item_lines[item]
        is_last = item + 1 == len(self.item_lines)
        end = self._end_of_items() if is_last else self.item_lines[item + 1]
        return first, _joined(self.lines[first:end]).replace("- ", "  ", 1)

    def _end_of_items(self) -> int:
        """Return the first line that is not of the last item."""
        start = self.item_lines[-1]
        column, end = _indent(self.lines[start]), start + 1
        while end < self.end and (
            _indent(line := self.lines[end]) > column or line.lstrip(" ")[:1] in ("", "#")
        ):
            end += 1
        return end


def read_blocks(text: str, read_any: Callable[[str], list[Any]]) -> list[BlockDocument] | None:
    """Return the documents of a text in plain block style; None: the full parser must read it.

    ``read_any`` is that parser: a text to the values of its documents.
    """
    if not text.endswith("\n") or _STRANGE.search(text):
        return None
    try:
        return list(_Reader(text, read_any).documents())
    except _NotPlainError:
        return None


class _Reader:
    """Reads a text; the mappings and lists that are open are a stack with their columns."""

    def __init__(self, text: str, read_any: Callable[[str], list[Any]]) -> None:
        self._lines = text.split("\n")[:-1]
        self._read_any = read_any
        self._entries: dict[str, Entry] = {}
        self._columns: list[int] = []
        self._open: list[Any] = []
        self._items: list[Any] | None = None
        self._item_lines: list[int] = []

    def documents(self) -> Iterator[BlockDocument]:
        """Yield the documents; those without content are left out."""
        at = 0
        while at < len(self._lines):
            self._columns, self._open = [-1], [[None]]
            self._items, self._item_lines = None, []
            holder = self._open[0]
            first, end = self._document(at)
            if first >= 0:
                yield BlockDocument(holder[0], self._lines, first, end, self._item_lines)
            at = end + 1

    def _document(self, at: int) -> tuple[int, int]:
        """Read one document; return its first line with content, or -1, and the line behind it."""
        lines, columns, opened = self._lines, self._columns, self._open
        first, place = -1, at
        target: Any = opened[0]  # where the value of the newest entry goes, which is in `place`
        key: Any = _ITEM
        waits = True  # for a value on the lines below it
        while at < len(lines):
            line = lines[at]
            body = line.lstrip(" ")
            if not body or body[0] == "#":
                at += 1
                continue
            if line == "---":
                break
            first = at if first < 0 else first
            column = len(line) - len(body)
            dashes, name, kind, value = self._entries.get(body) or self._entry(body)
            if column > columns[-1] and (not waits or kind is TEXT):
                at = self._given_away(place, target, key, at)
                waits = False
                continue
            if kind is TEXT:
                raise _NotPlainError
            place, at = at, at + 1
            if dashes or column != columns[-1] or type(opened[-1]) is list:
                self._enter(column, dashes, target if waits else None, key)
            target, key = self._slot(column, dashes, name, place) if dashes else (opened[-1], name)
            waits = kind is BELOW
            if not dashes and key in target:
                raise _NotPlainError  # a key that is given twice
            target[key] = value() if kind is EMPTY else value
            if kind is LITERAL or kind is OTHER:
                at = self._long_value(kind, value, place, target, key)
        return first, at

    def _enter(self, column: int, dashes: int, waiting: Any, key: Any) -> None:
        """Make the collection of an entry the innermost open one.

        ``waiting`` is that of the entry before, if its value under ``key`` is yet to come.
        """
        columns, opened = self._columns, self._open
        if column == columns[-1]:
            is_list = type(opened[-1]) is list
            if is_list is (dashes > 0):
                return
            if dashes:  # a list may be in the column of its key
                self._push(column, [], waiting, key)
                return
            columns.pop()
            opened.pop()
        elif column > columns[-1]:
            self._push(column, [] if dashes else {}, waiting, key)
            return
        while columns[-1] > column:
            columns.pop()
            opened.pop()
        if not dashes and columns[-1] == column == columns[-2]:
            columns.pop()
            opened.pop()
        if columns[-1] != column or (type(opened[-1]) is list) is not (dashes > 0):
            raise _NotPlainError

    def _push(self, column: int, new: Any, waiting: Any, key: Any) -> None:
        """Open a collection that is the value of an entry."""
        if waiting is None or len(self._columns) > _MOST_LEVELS:
            raise _NotPlainError
        if key == "items" and len(self._open) == _ROOT and type(new) is list:
            self._items = new
        waiting[key] = new
        self._columns.append(column)
        self._open.append(new)

    def _slot(self, column: int, dashes: int, name: str | None, at: int) -> tuple[Any, Any]:
        """Add an item to the innermost list; return the collection and the key of its value."""
        target = self._open[-1]
        if target is self._items:
            self._item_lines.append(at)
            if name is None:
                raise _NotPlainError
        target.append(None)
        for more in range(1, dashes):
            self._push(column + 2 * more, [None], target, _ITEM)
            target = self._open[-1]
        if name is None:
            return target, _ITEM
        self._push(column + 2 * dashes, {}, target, _ITEM)
        return self._open[-1], name

    def _long_value(self, kind: Kind, end: Any, place: int, target: Any, key: Any) -> int:
        """Read a value that may take several lines; return the line behind it."""
        column, lines, at = self._columns[-1], self._lines, place + 1
        indent = _indent(lines[at]) if at < len(lines) else 0
        if kind is not LITERAL or indent <= column or lines[at][indent:][:1] in ("", "\t"):
            return self._given_away(place, target, key, place)
        found: list[str] = []
        while at < len(lines) and (_indent(line := lines[at]) >= indent or not line.strip(" ")):
            found.append(line[indent:])
            at += 1
        text = _joined(found)
        if end != "+":
            text = text.rstrip("\n") + ("" if end else "\n")
        target[key] = text
        return at

    def _given_away(self, place: int, target: Any, key: Any, at: int) -> int:
        """Have the full parser read the value of an entry with all lines that are indented more.

        Returns the line behind it, which is past ``at``.
        """
        column, lines, end = self._columns[-1], self._lines, place + 1
        if column < 0 or (key == "items" and len(self._open) == _ROOT):
            raise _NotPlainError  # a document that is one scalar, or items of unknown lines
        while end < len(lines) and (_indent(line := lines[end]) > column or not line.strip(" ")):
            end += 1
        part = " " * column + _joined((lines[place][column:], *lines[place + 1 : end]))
        if end <= at or "&" in part or "*" in part:
            raise _NotPlainError  # an anchor may be meant elsewhere
        try:
            if deep_line(part, _MOST_LEVELS):
                raise _NotPlainError
            (content,) = self._read_any(part)
            (target[key],) = content if key is _ITEM else content.values()
        except (ManifestError, yaml.YAMLError, ValueError):
            raise _NotPlainError from None
        return end

    def _entry(self, body: str) -> Entry:
        """Take a line apart, and remember it."""
        entry = entry_of(body)
        if len(self._entries) < _REMEMBERED:
            self._entries[body] = entry
        return entry


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


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
