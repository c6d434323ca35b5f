"""The state of an embedded cluster on disk: a snapshot and a log of the changes after it.

Used by `pumice up --data`. Each line of both files is a checksum and a JSON record; a snapshot is
complete or absent, a log may end in the middle of a record.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from pumice.api.kinds import Manifest
from pumice.api.output_files import is_temporary, make_folder, replacing, sync_folder
from pumice.cluster.base import Event
from pumice.cluster.embedded.data_records import (
    FORMAT,
    damaged,
    decoded,
    encoded,
    is_stored,
    key_of,
    known_head,
    log_object,
    numbered_lines,
    open_own,
    place_of,
)
from pumice.cluster.embedded.object_tables import ObjectTables
from pumice.errors import InputError, UnavailableError, Words

_SNAPSHOT, _LOG = "snapshot", "log"
_LEAST_LOG: Final = 16 << 20
"""Bytes of a log before a snapshot takes its place; more if the last snapshot was larger."""


@dataclass
class _State:
    """The content of the files."""

    version: int = 0
    now: float = 0.0
    starts: int = 0
    snapshot_bytes: int = 0


class DataDirectory:
    """Holds a directory until it is closed; changes are safe after ``sync``."""

    def __init__(self, folder: Path, history: int = 50_000) -> None:
        """Lock a directory, create it if needed, and read its content; none of it is changed.

        Raises:
            OutputError: it cannot be made or written to.
            InputError: it holds something else, is in use by another process, or is damaged.
        """
        self.folder = folder
        self.tables = ObjectTables(history)
        self.note = ""
        """Data that was left out on reading; empty if none."""
        self._state = _State()
        self._failure: OSError | None = None
        self._has_begun = self._is_dirty = False
        self._log: BinaryIO | None = None
        make_folder(folder, private=True)
        _refuse_foreign(folder)
        self._lock = open_own(folder / "lock", os.O_RDWR | os.O_CREAT)
        try:
            self._hold()
            self.is_new = not self._snapshot.exists()
            objects = {} if self.is_new else self._read()
            self.tables.resume(objects.values(), self._state.version)
            self._state.starts += 1
        except BaseException:
            self.close()
            raise

    def _hold(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                wanted="a directory of its own", found=Words("one in use by another cluster"),
                file=str(self.folder),
            ) from None  # fmt: skip

    @property
    def starts(self) -> int:
        """How often a cluster was started on it, this time included."""
        return self._state.starts

    @property
    def now(self) -> float:
        """The cluster's time at the last change, 0 if there was none."""
        return self._state.now

    @property
    def _snapshot(self) -> Path:
        return self.folder / _SNAPSHOT

    @property
    def _log_file(self) -> Path:
        return self.folder / _LOG

    def record(self, clock: Callable[[], float]) -> None:
        """Note every change of the tables from here on, with the time of a clock."""
        self.tables.listeners.append(lambda _, event: self._append(event, clock()))

    def begin(self) -> None:
        """Keep what the tables hold, all of it or nothing; changes from here on can be synced.

        Raises:
            OutputError: the disk is full or broken; the directory is as it was.
        """
        for left in self.folder.iterdir():
            if is_temporary(left.name):
                left.unlink(missing_ok=True)
        self._compact()
        self._has_begun = True

    def _append(self, event: Event, now: float) -> None:
        self._state.version = int(event.object["metadata"]["resourceVersion"])
        self._state.now = now
        self._is_dirty = True
        if self._failure is not None or self._log is None:
            return  # the next sync writes everything
        content = event.object if event.type != "DELETED" else place_of(event.object)
        try:
            self._log.write(encoded({"type": event.type, "at": now, "object": content}))
        except OSError as error:
            self._failure = error

    def sync(self) -> None:
        """Return when every change is on the disk; hold the lock of the cluster.

        Raises:
            UnavailableError: it is not, because the disk is full or broken.
        """
        if not (self._has_begun and self._is_dirty):
            return
        try:
            most = max(_LEAST_LOG, 2 * self._state.snapshot_bytes)
            if self._failure is not None or self._log is None or self._log.tell() > most:
                self._compact()
            else:
                self._log.flush()
                os.fsync(self._log.fileno())
            self._is_dirty = False
        except OSError as error:
            self._failure = error
            problem = f"kept in memory only: {self.folder}: {error.strerror}"
            raise UnavailableError(problem=problem) from None

    def close(self) -> None:
        """Release the directory; changes that were not synced may be lost."""
        self._has_begun = False
        self._close_log()
        self._lock.close()

    def _close_log(self) -> None:
        if self._log is not None:
            with suppress(OSError):  # what it still had to write was reported as not synced
                self._log.close()
            self._log = None

    def _compact(self) -> None:
        """Write a snapshot of everything, then begin an empty log."""
        state = {"now": self._state.now, "starts": self._state.starts}
        head = {"format": FORMAT, "version": self.tables.version, **state}
        count = 0
        with replacing(self._snapshot, private=True) as file:
            file.write(encoded(head))
            for table in self.tables.tables():
                for manifest in table.all():
                    file.write(encoded(manifest))
                    count += 1
            file.write(encoded({"objects": count}))
            size = file.tell()
        self._state.snapshot_bytes = size
        self._close_log()
        self._log = open_own(self._log_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.fsync(self._log.fileno())
        sync_folder(self.folder)
        self._failure, self._is_dirty = None, False

    def _read(self) -> dict[tuple[str, ...], Manifest]:
        """Read the snapshot, then the log as far as it is whole."""
        objects = {key_of(manifest): manifest for manifest in self._snapshot_objects()}
        for line, record in self._log_records():
            manifest = log_object(record)
            if manifest is None:
                raise damaged(self._log_file, line)
            version = int(manifest["metadata"]["resourceVersion"])
            if version <= self._state.version:
                continue  # the snapshot has it already
            self._state.version, self._state.now = version, float(record["at"])
            if record["type"] == "DELETED":
                objects.pop(key_of(manifest), None)
            else:
                objects[key_of(manifest)] = manifest
        return objects

    def _snapshot_objects(self) -> Iterator[Manifest]:
        """Yield the objects between the head of the snapshot and its foot.

        Raises:
            InputError: the snapshot is damaged, cut off or continued.
        """
        lines = numbered_lines(self._snapshot)
        head = known_head(next(lines, (1, b"")), self._snapshot)
        self._state = _State(head["version"], float(head["now"]), head["starts"])
        last, count = 1, 0
        foot: Any = None
        for last, line in lines:
            content = decoded(line)
            if foot is not None or content is None:
                raise damaged(self._snapshot, last)
            if is_stored(content):
                yield content
                count += 1
            else:
                foot = content
        if foot != {"objects": count}:
            raise damaged(self._snapshot, last if foot is not None else last + 1)

    def _log_records(self) -> Iterator[tuple[int, Any]]:
        """Yield the records of the log and their lines, up to a torn end.

        Raises:
            InputError: a record is damaged and whole ones follow it.
        """
        if not os.path.lexists(self._log_file):
            return
        torn = 0
        for number, line in numbered_lines(self._log_file):
            record = decoded(line)
            if record is None:
                torn = torn or number
            elif torn:
                raise damaged(self._log_file, torn)
            else:
                yield number, record
        if torn:
            self.note = f"{self._log_file}: the end from line {torn} is torn and left out"


def _refuse_foreign(folder: Path) -> None:
    """Refuse a directory with files that are not of a cluster, before anything is written.

    Raises:
        InputError: there is one, or the snapshot is of another format.
    """
    try:
        names = sorted(each.name for each in folder.iterdir())
    except OSError as error:
        raise InputError(
            wanted="a directory to write to", found=Words(error.strerror), file=str(folder)
        ) from None
    if _SNAPSHOT in names:
        known_head(next(numbered_lines(folder / _SNAPSHOT), (1, b"")), folder / _SNAPSHOT)
        return
    for name in names:
        is_lock = name == "lock" and (folder / name).lstat().st_size == 0
        if not (is_lock or is_temporary(name)):
            raise InputError(
                wanted="an empty directory, or one that 'pumice up --data' made",
                found=Words(f"one with {name!r} in it"),
                file=str(folder),
                hint="name another directory; nothing was changed",
            )
