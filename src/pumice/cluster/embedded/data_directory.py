"""The state of an embedded cluster on disk: a snapshot and a log of the changes after it.

Used by `pumice up --data`. Each line of both files is a checksum and a JSON record; a snapshot is
complete or absent, a log may end in the middle of a record.
"""

import fcntl
import json
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from pumice.api.kinds import Manifest
from pumice.cluster.base import Event
from pumice.cluster.embedded.object_tables import ObjectTables
from pumice.errors import InputError, UnavailableError, Words

_FORMAT: Final = 1
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
        """Lock a directory, create it if needed, and read its content.

        Raises:
            InputError: it cannot be used, is in use by another process, or is damaged.
        """
        self.folder = folder
        self.tables = ObjectTables(history)
        self.note = ""
        """Data that was left out on reading; empty if none."""
        self._state = _State()
        self._failure: OSError | None = None
        self._is_dirty = False
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / "lock").open("wb")
        except OSError as error:
            raise InputError(
                wanted="a directory to write to", found=error.strerror, file=str(folder)
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise InputError(
                wanted="a directory of its own", found=Words("one in use by another cluster"),
                file=str(folder),
            ) from None  # fmt: skip
        self.is_new = not self._snapshot.exists()
        self._log: BinaryIO | None = None
        try:
            objects = self._read()
            self.tables.resume(objects.values(), self._state.version)
            self._state.starts += 1
            self._compact()
        except (OSError, InputError):
            self.close()
            raise

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
        return self.folder / "snapshot"

    @property
    def _log_file(self) -> Path:
        return self.folder / "log"

    def record(self, clock: Callable[[], float]) -> None:
        """Append every change of the tables from here on to the log, with the time of a clock."""
        self.tables.listeners.append(lambda _, event: self._append(event, clock()))

    def _append(self, event: Event, now: float) -> None:
        self._state.version = int(event.object["metadata"]["resourceVersion"])
        self._state.now = now
        self._is_dirty = True
        if self._failure is not None or self._log is None:
            return  # the next sync writes everything
        content = event.object if event.type != "DELETED" else _place(event.object)
        try:
            self._log.write(_line({"type": event.type, "at": now, "object": content}))
        except OSError as error:
            self._failure = error

    def sync(self) -> None:
        """Return when every change is on the disk; hold the lock of the cluster.

        Raises:
            UnavailableError: it is not, because the disk is full or broken.
        """
        try:
            if self._log is None or not self._is_dirty:
                return
            most = max(_LEAST_LOG, 2 * self._state.snapshot_bytes)
            if self._failure is not None or self._log.tell() > most:
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
        if self._log is not None:
            self._log.close()
            self._log = None
        self._lock.close()

    def _compact(self) -> None:
        """Write a snapshot of everything, then begin an empty log."""
        aside = self.folder / "snapshot.new"
        head = {"format": _FORMAT, "version": self.tables.version, **_head(self._state)}
        count = 0
        with aside.open("wb") as file:
            file.write(_line(head))
            for table in self.tables.tables():
                for manifest in table.all():
                    file.write(_line(manifest))
                    count += 1
            file.write(_line({"objects": count}))
            file.flush()
            os.fsync(file.fileno())
            self._state.snapshot_bytes = file.tell()
        aside.replace(self._snapshot)
        self._sync_folder()
        if self._log is not None:
            self._log.close()
        self._log = self._log_file.open("wb")
        os.fsync(self._log.fileno())
        self._sync_folder()
        self._failure = None

    def _sync_folder(self) -> None:
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _read(self) -> dict[tuple[str, ...], Manifest]:
        """Read the snapshot, then the log as far as it is whole."""
        objects: dict[tuple[str, ...], Manifest] = {}
        if self.is_new:
            return objects
        head, *items, foot = self._whole_lines()
        self._state = _State(int(head["version"]), float(head["now"]), int(head["starts"]))
        if head["format"] != _FORMAT or foot != {"objects": len(items)}:
            raise self._damaged(self._snapshot, len(items) + 2, foot)
        for manifest in items:
            objects[_key(manifest)] = manifest
        for record in self._log_records():
            manifest = record["object"]
            version = int(manifest["metadata"]["resourceVersion"])
            if version <= self._state.version:
                continue  # the snapshot has it already
            self._state.version, self._state.now = version, float(record["at"])
            if record["type"] == "DELETED":
                objects.pop(_key(manifest), None)
            else:
                objects[_key(manifest)] = manifest
        return objects

    def _whole_lines(self) -> list[Any]:
        lines = self._snapshot.read_bytes().split(b"\n")
        found = [_record(line) for line in lines[:-1]]
        if None in found or len(found) < 2 or lines[-1]:
            number = found.index(None) + 1 if None in found else len(lines)
            raise self._damaged(self._snapshot, number, "something else")
        return found

    def _log_records(self) -> Iterator[Any]:
        """Yield the records of the log up to a torn end.

        Raises:
            InputError: a record is damaged and whole ones follow it.
        """
        if not self._log_file.exists():
            return
        lines = self._log_file.read_bytes().split(b"\n")
        for number, line in enumerate(lines[:-1], start=1):
            record = _record(line)
            if record is None:
                if any(_record(later) is not None for later in lines[number:-1]):
                    raise self._damaged(self._log_file, number, "something else")
                self.note = f"{self._log_file}: the end from line {number} is torn and left out"
                return
            yield record
        if lines[-1]:
            self.note = f"{self._log_file}: the end from line {len(lines)} is torn and left out"

    @staticmethod
    def _damaged(file: Path, line: int, found: object) -> InputError:
        hint = "the file is damaged; restore it from a copy or start with another directory"
        return InputError(
            wanted="a record with its checksum", found=found, file=f"{file}:{line}", hint=hint
        )


def _head(state: _State) -> dict[str, Any]:
    return {"now": state.now, "starts": state.starts}


def _place(manifest: Manifest) -> Manifest:
    """Return the parts needed to find an object that is gone."""
    metadata = manifest["metadata"]
    kept = {
        key: metadata[key] for key in ("name", "namespace", "resourceVersion") if key in metadata
    }
    return {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": kept}


def _key(manifest: Manifest) -> tuple[str, ...]:
    metadata = manifest["metadata"]
    place = metadata.get("namespace", ""), metadata["name"]
    return manifest["apiVersion"], manifest["kind"], *place


def _line(content: Any) -> bytes:
    text = json.dumps(content, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _record(line: bytes) -> Any:
    """Read a line; None if its checksum does not fit."""
    text = line[9:]
    if line[:9] != b"%08x " % zlib.crc32(text):
        return None
    return json.loads(text)
