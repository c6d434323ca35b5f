"""Writes a record: takes changes and decisions from any thread, and puts them on disk each second.

Objects are kept by reference, as the caches of a cluster hold them, and redacted when they are
written.  Whatever goes wrong with the disk ends a segment; the next one begins with a checkpoint.
"""

import fcntl
import os
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from pumice import __version__, logs
from pumice.api.duration import parse_duration
from pumice.api.kinds import Manifest
from pumice.api.output_files import is_temporary, make_folder
from pumice.api.quantity import value
from pumice.api.redaction import conf_without_secrets, without_secrets
from pumice.api.wording import value_of
from pumice.cluster.base import Event
from pumice.cluster.embedded.data_records import open_own
from pumice.errors import InputError, OutputError, PumiceError, Words
from pumice.records.changes import difference, is_touch, place_of, without_heartbeats
from pumice.records.entries import (
    FORMAT,
    VERSION,
    Conf,
    CycleEntry,
    Entry,
    Head,
    Place,
    Settings,
    line_of,
)
from pumice.records.segments import (
    BACK_S,
    LOCK,
    SegmentWriter,
    drop,
    foreign_names,
    read_head,
    segment_files,
    thin,
)
from pumice.records.stores import Hold, is_remote, located, reaching

_log = logs.get("record")
FLUSH_S: Final = 0.8
"""How often changes are written: with the time of the write itself, a second may be lost."""
_RETRY_S: Final = 5.0
_SILENCE_S: Final = 60.0
"""After how long without a change a line says that there was none."""
_HOUR_S: Final = 3600.0
_LEAST_BYTES: Final = 1 << 20
_LEAST_CHANGES: Final = 20_000
_IN_A_PIECE: Final = 500
"""Objects of a checkpoint that are compressed together."""
_MOST_WAITING: Final = 200_000
"""Changes that wait for a disk that hangs, before they are dropped."""


@dataclass(frozen=True)
class Limits:
    """How much is kept: segments past half the age are thinned, past all of it dropped.

    Beyond ``size`` bytes the oldest are thinned, then dropped.
    """

    size: int = 4 << 30
    age_s: float = 30 * 86400.0
    segment_s: float = _HOUR_S
    """How long a segment lasts at most."""

    @classmethod
    def of(cls, size: str, age: str, mark: str = "") -> "Limits":
        """Read both as people write them; ``mark`` stands before their names in errors.

        Raises:
            InputError: they are something else.
        """
        with value_of(f"{mark}size"):
            most = value(size)
        with value_of(f"{mark}age"):
            age_s = parse_duration(age)
            if age_s <= 0:
                raise InputError(wanted="more than 0", found=age)
        return cls(most, age_s)


@dataclass(frozen=True, slots=True)
class _Change:
    """One object that changed: its version before and after."""

    at: float
    place: Place
    old: Manifest | None
    new: Manifest | None


_Waiting = _Change | Entry


class Recorder:
    """Owns the folder of a record until it is closed."""

    def __init__(
        self, folder: Path, now: Callable[[], float], *, by: str, limits: Limits | None = None
    ) -> None:
        """Lock a folder, and make it if needed; nothing in it is changed yet.

        Raises:
            OutputError: it cannot be made or written to.
            InputError: it holds something else, or another process writes to it.
        """
        self.folder = folder = located(folder)
        self._now = now
        self._by = by
        self._limits = limits or Limits()
        self._run = ""
        self._lock = threading.Lock()
        self._known: dict[Place, Manifest] = {}
        self._facts: dict[str, Entry] = {}
        """What else a checkpoint has: configuration, hidden kinds, settings, measured use."""
        self._usage: dict[str, Any] = {}
        self._waiting: list[_Waiting] = []
        self._is_behind = False
        self._segment: SegmentWriter | None = None
        self._checkpoint_bytes = self._changes = 0
        """Bytes of the checkpoint of the segment, and changes after it."""
        self._failed_at: float | None = None
        self._written_at = 0.0
        self._problem = ""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._kept: dict[Path, _Kept] = {}
        """What is known of segments that were written before."""
        self._hold = _held(folder) if is_remote(folder) else _locked(folder)

    # What happens, from any thread

    def listed(self, kind: str, objects: Iterable[Manifest]) -> None:
        """Take the complete list of a kind: other objects of it are gone."""
        found = {place_of(each): each for each in objects}
        at = self._now()
        with self._lock:
            missing = [place for place in self._known if place[0] == kind and place not in found]
            for place in missing:
                self._change(at, place, None)
            for place, manifest in found.items():
                if self._known.get(place) is not manifest:
                    self._change(at, place, manifest)

    def changed(self, events: Iterable[Event]) -> None:
        """Take steps of a watch."""
        at = self._now()
        with self._lock:
            for event in events:
                if event.type != "BOOKMARK":
                    is_gone = event.type == "DELETED"
                    self._change(at, place_of(event.object), None if is_gone else event.object)

    def put(self, manifest: Manifest) -> None:
        """Take one object as it is now."""
        place = place_of(manifest)
        with self._lock:
            if self._known.get(place) != manifest:
                self._change(self._now(), place, manifest)

    def _change(self, at: float, place: Place, new: Manifest | None) -> None:
        old = self._known.pop(place, None) if new is None else self._known.get(place)
        if new is not None:
            self._known[place] = new
        if old is not None or new is not None:
            self._wait(_Change(at, place, old, new))

    def _wait(self, what: _Waiting) -> None:
        if len(self._waiting) >= _MOST_WAITING:
            self._waiting.clear()
            self._is_behind = True
        self._waiting.append(what)

    @property
    def count(self) -> int:
        """How many objects are known."""
        return len(self._known)

    def configured(self, text: str, source: str) -> None:
        """Take the configuration that counts from now on."""
        conf = Conf(conf_without_secrets(text), source)
        known = self._facts.get("conf")
        if known is None or known.conf != conf:
            self._state("conf", Entry(at=self._now(), conf=conf))

    def hidden(self, kinds: Mapping[str, str]) -> None:
        """Take the kinds that cannot be read, with the reasons."""
        known = self._facts.get("hidden")
        if dict(kinds) != (known.hidden if known is not None else {}):
            self._state("hidden", Entry(at=self._now(), hidden=dict(kinds)))

    def settings(self, values: Settings) -> None:
        """Take options of the scheduler that decide with it."""
        self._state("settings", Entry(at=self._now(), settings=values))

    def _state(self, name: str, entry: Entry) -> None:
        with self._lock:
            self._facts[name] = entry
            self._wait(entry)

    def measured(self, usage: Mapping[str, Any]) -> None:
        """Take the measured use of all nodes."""
        known = self._usage
        news = {node: dict(one) for node, one in usage.items() if known.get(node) != one}
        gone = [node for node in known if node not in usage]
        if not news and not gone:
            return
        at = self._now()
        with self._lock:
            self._usage = dict(usage)
            self._facts["usage"] = Entry(at=at, usage=dict(usage))
            self._wait(Entry(at=at, usage={**news, **dict.fromkeys(gone)}))

    def decided(self, cycle: CycleEntry) -> None:
        """Take a cycle of the scheduler."""
        with self._lock:
            self._wait(Entry(at=cycle.now, cycle=cycle))

    # To the disk

    def start(self) -> None:
        """Begin to write, in a thread."""
        self._thread = threading.Thread(target=self._write_on, name="record", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write what waits, and release the folder."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._wait(Entry(at=self._now(), note="the recorder was stopped"))
        self._failed_at = None
        self.flush()
        if self._segment is not None:
            self._segment.close()
            self._segment = None
        self._hold.close()

    def _write_on(self) -> None:
        while not self._stop.wait(FLUSH_S):
            self.flush()

    def flush(self) -> None:
        """Put everything so far on the disk; a failure is logged once, and tried again later."""
        now, failed = self._now(), self._failed_at
        if failed is not None and failed - BACK_S <= now < failed + _RETRY_S:
            return
        try:
            if self._segment is None or self._is_behind or self._is_full(now):
                self._begin_segment(now)
            else:
                if self._append(self._segment, self._take()) or self._is_silent(now):
                    self._written_at = now
                self._segment.sync()
        except (OSError, PumiceError) as error:
            self._failed(error, now)
        else:
            if self._problem:
                _log.info("recording again", folder=self.folder)
            self._problem, self._failed_at = "", None

    def _is_silent(self, now: float) -> bool:
        """Write that nothing happened, if it is long ago that something did; return whether."""
        if self._segment is None or now - self._written_at < _SILENCE_S:
            return False
        self._segment.append([line_of(Entry(at=now))])
        return True

    def _failed(self, error: Exception, now: float) -> None:
        if self._segment is not None:
            try:
                self._segment.close()
            except OSError:
                self._segment = None  # it had more to write, which the next checkpoint has
        self._segment, self._failed_at = None, now
        if str(error) != self._problem:
            self._problem = str(error)
            _log.error("cannot record", folder=self.folder, error=error)

    def _take(self) -> list[_Waiting]:
        with self._lock:
            taken, self._waiting = self._waiting, []
        return taken

    def _is_full(self, now: float) -> bool:
        """Return whether the changes take longer to read than the objects, or the hour is over."""
        segment = self._segment
        if segment is None:
            return False
        changes = segment.size - self._checkpoint_bytes
        most = max(_LEAST_BYTES, self._checkpoint_bytes)
        if now < self._written_at - BACK_S:
            return True  # times within a segment do not go back
        is_long = changes > most or self._changes > max(_LEAST_CHANGES, 2 * self.count)
        return is_long or now - segment.head.at >= self._limits.segment_s

    def _append(self, segment: SegmentWriter, waiting: list[_Waiting]) -> bool:
        """Append changes as one piece; return whether there were any."""
        lines = [line for each in waiting if (line := _line(each)) is not None]
        if lines:
            segment.append(lines)
            self._changes += len(lines)
        return bool(lines)

    def _begin_segment(self, now: float) -> None:
        """Write a checkpoint to a new segment; changes meanwhile go to both.

        The first one of a run begins empty, so that everything comes in the order in which a
        scheduler saw it.  Where changes were lost, another run begins.
        """
        old = self._segment
        self._take_again()
        number = max(segment_files(self.folder), default=0) + 1
        with self._lock:
            known, facts = dict(self._known), dict(self._facts)
            taken, self._waiting = self._waiting, []
            is_behind, self._is_behind = self._is_behind, False
        if not self._run:
            known, facts = {}, {}
        elif old is not None and not is_behind:
            self._append(old, [*taken, Entry(at=now, next=number)])
            old.sync()
        if old is None or is_behind:
            old, self._run, taken = None, secrets.token_hex(8), taken if not self._run else []
        head = Head(
            format=FORMAT,
            version=VERSION,
            segment=number,
            run=self._run,
            at=now,
            by=self._by,
            pumice=__version__,
        )
        new = SegmentWriter(self.folder, head, self._hold if isinstance(self._hold, Hold) else None)
        try:
            meanwhile = self._write_checkpoint(new, old, known, facts)
            self._append(new, meanwhile if old is not None else taken)
            new.sync()
        except BaseException:
            new.discard()
            raise
        ended, self._segment, self._written_at = self._segment, new, now
        if ended is not None:
            ended.close()
        self._keep_to_limits(now)

    def _take_again(self) -> None:
        """Create and lock the folder again if it was removed or moved."""
        if isinstance(self._hold, Hold):
            return
        try:
            is_there = os.path.samestat((self.folder / LOCK).stat(), os.fstat(self._hold.fileno()))
        except FileNotFoundError:
            is_there = False
        if not is_there:
            before, self._hold = self._hold, _locked(self.folder)
            before.close()

    def _write_checkpoint(
        self,
        new: SegmentWriter,
        old: SegmentWriter | None,
        known: Mapping[Place, Manifest],
        facts: Mapping[str, Entry],
    ) -> list[_Waiting]:
        """Write all objects; return what changed meanwhile."""
        at, written = new.head.at, self._now()
        objects, count = list(known.items()), 0
        meanwhile: list[_Waiting] = []
        for start in range(0, len(objects), _IN_A_PIECE):
            some = objects[start : start + _IN_A_PIECE]
            lines = [_line(_Change(at, place, None, each)) for place, each in some]
            kept = [line for line in lines if line is not None]
            new.append(kept)
            count += len(kept)
            if old is not None and self._now() - written >= FLUSH_S:
                written = self._now()
                more = self._take()
                meanwhile += more
                self._append(old, more)
                old.sync()
        end = Entry(at=at, checkpoint=count)
        new.append([*map(line_of, facts.values()), line_of(end)])
        self._checkpoint_bytes, self._changes = new.size, 0
        return meanwhile

    def _keep_to_limits(self, now: float) -> None:
        """Thin and drop old segments; the one that is written stays."""
        known, self._kept = self._kept, {}
        for path in [*segment_files(self.folder).values()][:-1]:
            kept = self._kept[path] = known.get(path) or _Kept(path, now)
            age = now - kept.began
            if age > self._limits.age_s:
                kept.shorten(drop)
            elif age > self._limits.age_s / 2:
                kept.shorten(thin)
        for how in (thin, drop):
            for kept in self._kept.values():
                if self._size <= self._limits.size:
                    break
                kept.shorten(how)
        for kept in self._kept.values():  # what has no checkpoint is only good after another one
            if not kept.is_empty:
                break
            kept.shorten(drop)

    @property
    def _size(self) -> int:
        own = 0 if self._segment is None else self._segment.size
        return own + sum(kept.size for kept in self._kept.values())


def _line(waiting: _Waiting) -> bytes | None:
    """Write a change as a line; None for one that scheduling does not depend on."""
    if isinstance(waiting, Entry):
        return line_of(waiting)
    at, place = round(waiting.at, 3), waiting.place
    if waiting.new is None:
        return line_of(Entry(at=at, gone=place))
    try:
        new = _kept(place, waiting.new)
        old = None if waiting.old is None else _kept(place, waiting.old)
    except (AttributeError, KeyError, TypeError, ValueError):
        # what cannot be taken apart cannot be freed of secrets
        return line_of(Entry(at=at, note=f"left out: {place[0]} {place[1]}/{place[2]} is odd"))
    is_same = old is not None and old["metadata"].get("uid") == new["metadata"].get("uid")
    patch = difference(old, new) if old is not None and is_same else None
    if patch is None:
        return line_of(Entry(at=at, put=new))
    if is_touch(patch) and place[0] == "Node":
        return None
    return line_of(Entry(at=at, of=place, patch=patch))


def _kept(place: Place, manifest: Manifest) -> Manifest:
    found = without_secrets(manifest)
    return without_heartbeats(found) if place[0] == "Node" else found


class _Kept:
    """A segment that is complete; what is known of it is not read again."""

    def __init__(self, path: Path, now: float) -> None:
        self._path = path
        self._done: set[object] = set()
        self.size = path.stat().st_size
        self.is_empty = False
        """Whether it has no objects any more."""
        try:
            self.began = read_head(path).at
        except InputError:
            self.began = now  # whatever it is, it is not ours to drop

    def shorten(self, how: Callable[[Path], int | None]) -> None:
        """Thin or drop it, once; a failure is logged, and the segment stays as it is."""
        if how in self._done:
            return
        self._done.add(how)
        try:
            objects = how(self._path)
            self.size = self._path.stat().st_size if how is thin else 0
            self.is_empty = objects == 0
        except (OSError, PumiceError) as error:
            _log.error("cannot shorten the record", file=self._path, error=error)


def _refuse_foreign(folder: Path) -> None:
    """Refuse a folder with other files, before anything is written.

    Raises:
        InputError: there is one.
    """
    try:
        with reaching(folder):
            names = foreign_names(folder)
    except FileNotFoundError:  # a store has folders only while something is in them
        names = []
    except OSError as error:
        raise InputError(
            wanted="a directory to write to", found=Words(error.strerror), file=str(folder)
        ) from None
    if names:
        raise InputError(
            wanted="an empty directory, or one with a record",
            found=Words(f"one with {names[0]!r} in it"),
            file=str(folder),
            hint="name another directory; nothing was changed",
        )


def _held(folder: Path) -> Hold:
    """Take a folder of a store."""
    _refuse_foreign(folder)
    try:
        return Hold(folder / LOCK)
    except OSError as error:
        found = error.strerror or str(error)
        raise OutputError(error.errno, found, str(folder), "a place to write to") from None


def _locked(folder: Path) -> BinaryIO:
    """Lock a folder, and make it if needed."""
    make_folder(folder, private=True)
    _refuse_foreign(folder)
    held = open_own(folder / LOCK, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        held.close()
        raise InputError(
            wanted="a directory of its own",
            found=Words("one that another process records to"),
            file=str(folder),
        ) from None
    for left in folder.iterdir():
        if is_temporary(left.name):
            left.unlink(missing_ok=True)
    return held
