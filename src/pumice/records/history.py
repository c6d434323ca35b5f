"""Reads a record: the cluster at any moment of it, and what happened in between.

Whatever cannot be read is named in ``problems`` with its place; the rest is read.
"""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pumice.api.duration import parse_duration
from pumice.api.kinds import Manifest
from pumice.api.times import DAY, epoch, lenient_epoch, rfc3339
from pumice.cluster.embedded.patches import merge_patch
from pumice.errors import InputError, Words
from pumice.garbage_collection import paused
from pumice.records.changes import keeps_identity, merge_into, place_of
from pumice.records.entries import Conf, Entry, Head, Place, Settings, is_object
from pumice.records.segments import (
    BACK_S,
    Piece,
    checkpoint_of,
    entries_of,
    foreign_names,
    read_entries,
    read_head,
    read_pieces,
    segment_files,
)
from pumice.records.stores import is_remote, located, reaching

_CLOCK: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?")
_MOST_PROBLEMS: Final = 100
_SILENCE_S: Final = 150.0
"""Without a line for so long the recorder did not run: it writes one each minute."""
_AT_ONCE: Final = 16
"""Segments of a store that are asked for at the same time."""
_WANTED: Final = 'a time such as "03:10", "-2h" or "2026-01-15T10:00:19Z"'


@dataclass
class Moment:
    """A cluster at a moment: its objects in the order in which they came."""

    now: float = 0.0
    objects: dict[Place, Manifest] = field(default_factory=dict)
    conf: Conf | None = None
    usage: dict[str, dict[str, float]] = field(default_factory=dict)
    hidden: dict[str, str] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    is_shared: bool = True
    """Whether others may hold objects, so that one that changes is another one."""

    def apply(self, entry: Entry) -> bool:
        """Apply an entry; return False for a change that does not fit what is known."""
        if entry.put is not None:
            self.objects[place_of(entry.put)] = entry.put
        elif entry.of is not None:
            return self._patch(entry.of, entry.patch or {})
        elif entry.gone is not None:
            return self.objects.pop(entry.gone, None) is not None
        else:
            self._learn(entry)
        return True

    def _patch(self, place: Place, patch: dict[str, Any]) -> bool:
        known = self.objects.get(place)
        if known is None:
            return False
        is_same = keeps_identity(patch)
        if is_same and not self.is_shared:
            merge_into(known, patch)
            return True
        made = merge_patch(known, patch)
        if not is_same and not (is_object(made) and place_of(made) == place):
            return False
        self.objects[place] = made
        return True

    def _learn(self, entry: Entry) -> None:
        if entry.conf is not None:
            self.conf = entry.conf
        if entry.hidden is not None:
            self.hidden = entry.hidden
        if entry.settings is not None:
            self.settings = entry.settings
        for node, use in (entry.usage or {}).items():
            if use is None:
                self.usage.pop(node, None)
            else:
                self.usage[node] = use

    def by_kind(self) -> dict[str, list[Manifest]]:
        """Return the objects by kind."""
        found: dict[str, list[Manifest]] = {}
        for place, one in self.objects.items():
            found.setdefault(place[0], []).append(one)
        return found


@dataclass(frozen=True)
class Step:
    """One entry of a record and the cluster after it."""

    entry: Entry
    moment: Moment
    is_first: bool = False
    """Whether a run begins here: what happened before it is not known."""


class History:
    """The past of a cluster, as a folder holds it."""

    def __init__(self, folder: Path) -> None:
        """Look at the segments; only their first lines are read.

        Raises:
            InputError: there is no record in the folder, or nothing of it can be read.
        """
        self.folder = folder = located(folder)
        self.problems: list[str] = []
        self._reports = 0
        self._heads: dict[int, Head] = {}
        self._ends: dict[int, Piece | None] = {}
        """Where the checkpoints of segments end, as far as known; None if one is not whole."""
        try:
            with reaching(folder):
                self._files = segment_files(folder)
                foreign = foreign_names(folder)
        except OSError as error:
            raise _no_record(folder, error.strerror or str(error)) from None
        for name in foreign:
            self._report(f"{folder / name}: not a part of the record; left out")
        for number, head in zip(self._files, self._read_heads(), strict=True):
            if isinstance(head, Head):
                self._heads[number] = head
            else:
                self._report(str(head))
        for before, after in pairwise(self._files):
            if after > before + 1:
                self._report(f"{folder}: segments {before + 1} to {after - 1} are missing")
        if not self._heads:
            raise _no_record(folder, "none that can be read" if self._files else "none")

    def _read_heads(self) -> Iterator[Head | InputError]:
        if not is_remote(self.folder):
            return map(_head, self._files.values())
        with ThreadPoolExecutor(_AT_ONCE) as pool:  # each is a request
            return pool.map(_head, self._files.values())

    def _report(self, problem: str) -> None:
        self._reports += 1
        if len(self.problems) < _MOST_PROBLEMS and problem not in self.problems:
            self.problems.append(problem)

    @property
    def start(self) -> float:
        """When it begins."""
        return min(head.at for head in self._heads.values())

    @property
    def end(self) -> float:
        """When it ends: the time of the last entry."""
        number, last = max(self._heads), Piece(0, [], 0, 0)
        for piece in read_pieces(self._files[number], lambda _: None):
            last = piece if piece.lines else last
        times = (entry.at for entry in entries_of(last, self._files[number], lambda _: None))
        return max((self._heads[number].at, *times))

    @property
    def by(self) -> str:
        """What wrote the last segment: "scheduler", or "observer" beside one."""
        return self._heads[max(self._heads)].by

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        return sum(self._files[number].stat().st_size for number in self._heads)

    def time(self, text: str) -> float:
        """Read a time: RFC 3339, "03:10" for the last such moment (UTC), "-2h" from the end.

        Raises:
            InputError: it is none of these.
        """
        if clock := _CLOCK.fullmatch(text):
            hours, minutes, seconds = (int(part or 0) for part in clock.groups())
            end = self.end
            found = end - end % DAY + hours * 3600 + minutes * 60 + seconds
            return found if found <= end else found - DAY
        try:
            if text.startswith("-"):
                return self.end - parse_duration(text[1:])
            return epoch(text) if "T" in text.upper() else lenient_epoch(text)
        except (InputError, ValueError):
            raise InputError(wanted=_WANTED, found=text) from None

    def at(self, when: float | str | None = None) -> Moment:
        """Return the cluster at a time, by default the last that is known.

        Raises:
            InputError: the record does not reach so far back.
        """
        if isinstance(when, str):
            when = self.time(when)
        numbers = [n for n, head in self._heads.items() if when is None or head.at <= when]
        if when is not None:  # a clock may have been put back
            numbers.sort(key=lambda number: self._heads[number].at)
        for number in reversed(numbers):
            with paused():
                moment, is_whole = self._opened(number, when)
            if is_whole:
                moment.now = max(moment.now, self._heads[number].at)
                if when is not None:
                    self._report_silence(number, moment.now, when)
                    moment.now = when
                return moment
        raise InputError(
            wanted=f"a time from {rfc3339(self.start)} on",
            found=Words("none" if when is None else rfc3339(when)),
            file=str(self.folder),
            hint="the record begins later, or its first checkpoint is damaged",
        )

    def _opened(self, number: int, until: float | None) -> tuple[Moment, bool]:
        """Read a segment up to a time; return whether its checkpoint is whole."""
        moment, is_whole, unknown = Moment(is_shared=False), False, 0
        for entry in read_entries(self._files[number], self._report):
            is_later = until is not None and (
                entry.at > until or entry.at < moment.now - BACK_S  # the clock was put back
            )
            if is_whole and is_later:
                break
            moment.now = max(moment.now, entry.at)
            is_whole |= entry.checkpoint is not None
            unknown += not moment.apply(entry)
        self._report_unknown(number, unknown)
        return moment, is_whole

    def _report_silence(self, number: int, known: float, when: float) -> None:
        if when - known > _SILENCE_S:
            path, times = self._files[number], f"{rfc3339(known)} to {rfc3339(when)}"
            self._report(f"{path}: nothing from {times}; the cluster is as it was before")

    def _report_unknown(self, number: int, unknown: int) -> None:
        if unknown:
            path = self._files[number]
            self._report(f"{path}: {unknown} changes of objects whose beginning is lost left out")

    def steps(
        self, since: float | None = None, until: float | None = None, *, only: bytes = b""
    ) -> Iterator[Step]:
        """Yield what happened from one time to another, with the cluster after it.

        The objects of the first checkpoint come first, as of its time.  With ``only``, lines
        without that word are mostly left out unread, and so are their objects.
        """
        first = max(
            (n for n, head in self._heads.items() if since is None or head.at <= since),
            default=min(self._heads),
        )
        if since is None:
            first = min(self._heads)
        moment, following = Moment(), 0
        for number in [n for n in self._heads if n >= first and self._is_whole(n)]:
            is_new = number != following
            if is_new:
                moment = Moment()
            following, known = 0, self._reports
            for step in self._segment_steps(number, moment, only, is_new=is_new):
                if step.entry.next is not None:
                    is_sound = self._reports == known
                    following = step.entry.next if is_sound else 0  # else it begins again
                elif until is not None and step.entry.at > until:
                    return
                else:
                    yield step

    def _is_whole(self, number: int) -> bool:
        """Return whether the checkpoint of a segment is whole; if not, the one before goes on."""
        if number not in self._ends:
            pieces = read_pieces(self._files[number], self._report)
            ends = (
                replace(piece, lines=[]) for piece in pieces if checkpoint_of(piece) is not None
            )
            self._ends[number] = next(ends, None)
        return self._ends[number] is not None

    def _segment_steps(
        self, number: int, moment: Moment, only: bytes, *, is_new: bool
    ) -> Iterator[Step]:
        """Yield the steps of a segment, up to where the next one goes on.

        Of its checkpoint only if the cluster before it is not known.
        """
        is_first, unknown = is_new, 0
        for entry in self._entries(number, only, is_new=is_new):
            if entry.next is not None:
                if entry.next in self._heads and self._is_whole(entry.next):
                    yield Step(entry, moment)
                    break
                continue
            moment.now = max(moment.now, entry.at)
            unknown += not moment.apply(entry) and not only
            yield Step(entry, moment, is_first)
            is_first = False
        self._report_unknown(number, unknown)

    def _entries(self, number: int, only: bytes, *, is_new: bool) -> Iterator[Entry]:
        """Yield the lines of a segment, of its checkpoint only if it ``is_new``."""
        path = self._files[number]
        for piece in read_pieces(path, self._report, None if is_new else self._ends[number]):
            if only:  # the last line tells the time, and where the next segment goes on
                kept = [line for line in piece.lines[:-1] if only in line]
                piece = replace(piece, lines=[*kept, *piece.lines[-1:]])  # noqa: PLW2901
            yield from entries_of(piece, path, self._report)


def _head(path: Path) -> Head | InputError:
    try:
        return read_head(path)
    except InputError as error:
        return error


def _no_record(folder: Path, found: str) -> InputError:
    return InputError(
        wanted="a directory with a record, made by 'pumice record' or --record",
        found=Words(found),
        file=str(folder),
    )
