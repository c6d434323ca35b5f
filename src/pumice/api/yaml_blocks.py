"""The plain block style of YAML, as ``kubectl get -o yaml`` writes it, read line by line.

Used by pumice.api.yaml_text, whose parser reads all of YAML but takes twenty times as long and
ten times the memory.  What is read here means the same to it: one entry a line, a plain or a
quoted scalar as its value, literal text.  A single value in any other style, long text for
example, is given to that parser together with its lines.  A text with anything else, mistakes
above all, is left to it as a whole.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import yaml

from pumice.api.json_text import DEPTH
from pumice.api.yaml_entries import BELOW, EMPTY, LITERAL, OTHER, TEXT, Entry, Kind, entry_of
from pumice.api.yaml_nodes import deep_line
from pumice.errors import ManifestError

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
