"""Ends a program by SIGKILL at every line that writes files, one after the other.

Run as a program of its own: it forks, so that each attempt begins with the same loaded modules.
``python -m tests.hostile.kill_points NAME`` plays one of the writers below.
"""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final

from pumice.api import output_files
from pumice.api.output_files import replacing
from pumice.clock import VirtualClock
from pumice.cluster.embedded import data_directory
from pumice.cluster.embedded.data_directory import DataDirectory
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import InputError
from pumice.records import recorder as record_writer
from pumice.records import segments
from pumice.records.history import History
from pumice.records.recorder import Limits, Recorder

_WRITING: Final = (output_files, data_directory, record_writer, segments)
WATCHED: Final = {str(one.__file__) for one in _WRITING} | {__file__}
MOST: Final = 2000
"""Lines after which something is wrong: the writers have a tenth of them."""
PIECE: Final = b"x" * 70_000
"""More than a buffer, so that a part of the content is on the disk before its end."""


class _Killer:
    """Counts the lines of some files, and ends the process at one of them."""

    def __init__(self, last: int) -> None:
        self._left = last

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in WATCHED:
            return None
        if event == "line":
            self._left -= 1
            if self._left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return self.trace


def each_kill(write: Callable[[], None], check: Callable[[], None]) -> int:
    """Run a writer again and again, each time a line further, until it ends; count the kills."""
    for point in range(MOST):
        child = os.fork()
        if not child:
            sys.settrace(_Killer(point).trace)
            write()
            sys.settrace(None)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        check()
        if not os.WIFSIGNALED(status):
            assert status == 0, status
            return point
    raise AssertionError("the writer did not end")


def file_writer(folder: Path) -> int:
    """Replace a file in two pieces."""
    file = folder / "file"
    old, new = b"old", PIECE + PIECE

    def write() -> None:
        with replacing(file) as out:
            out.write(PIECE)
            out.flush()
            out.write(PIECE)

    def check() -> None:
        assert file.read_bytes() in (old, new)
        file.write_bytes(old)

    file.write_bytes(old)
    return each_kill(write, check)


def new_file_writer(folder: Path) -> int:
    """Write a file that does not exist yet."""
    file = folder / "file"

    def write() -> None:
        with replacing(file, private=True) as out:
            out.write(PIECE)
            out.flush()
            out.write(PIECE)

    def check() -> None:
        assert not file.exists() or file.read_bytes() == PIECE + PIECE
        file.unlink(missing_ok=True)

    return each_kill(write, check)


def _open(folder: Path) -> tuple[DataDirectory, EmbeddedCluster]:
    data = DataDirectory(folder)
    data.record(lambda: 1000.0)
    return data, EmbeddedCluster(VirtualClock(1000.0), seed=data.starts, tables=data.tables)


def _config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def first_start(folder: Path) -> int:
    """Start a cluster on a directory that does not exist yet."""
    return _starts(folder, lambda _: None)


def next_start(folder: Path) -> int:
    """Start a cluster on a directory with a snapshot and a log."""

    def prepare(place: Path) -> None:
        data, cluster = _open(place)
        data.begin()
        cluster.create(_config_map("before"))
        data.sync()
        data.close()

    return _starts(folder, prepare)


def _starts(folder: Path, prepare: Callable[[Path], None]) -> int:
    """Keep three objects, the last in a new snapshot; what was acknowledged must be there."""
    acknowledged, place = folder / "acknowledged", folder / "data"
    names = ["first", "second", "third"]

    def write() -> None:
        data, cluster = _open(place)
        cluster.create(_config_map(names[0]))
        data.begin()
        acknowledged.write_text("1")
        cluster.create(_config_map(names[1]))
        data.sync()
        acknowledged.write_text("2")
        cluster.create(_config_map(names[2]))
        setattr(data_directory, "_LEAST_LOG", 0)  # noqa: B010  # the next sync writes a snapshot
        data._state.snapshot_bytes = 0
        data.sync()
        acknowledged.write_text("3")
        data.close()

    def check() -> None:
        data, cluster = _open(place)
        kept = [one["metadata"]["name"] for one in cluster.list("ConfigMap")[0]]
        data.close()
        ours = [name for name in kept if name != "before"]
        assert ours == names[: len(ours)], ours
        assert len(ours) >= int(acknowledged.read_text()), ours
        begin()

    def begin() -> None:
        shutil.rmtree(place, ignore_errors=True)
        prepare(place)
        acknowledged.write_text("0")

    begin()
    return each_kill(write, check)


def recorder(folder: Path) -> int:
    """Record two changes, the last in a new segment; what was flushed must be there."""
    acknowledged, place = folder / "acknowledged", folder / "record"
    names = ["first", "second"]

    def write() -> None:
        now = [1000.0]
        record = Recorder(place, lambda: now[0], by="observer", limits=Limits(segment_s=1.0))
        for number, name in enumerate(names, start=1):
            now[0] += 1
            record.put(_config_map(name))
            record.flush()
            acknowledged.write_text(str(number))
        record.close()

    def check() -> None:
        wanted = int(acknowledged.read_text())
        kept: list[str] = []
        with suppress(InputError):  # killed before anything was there
            kept = [each[2] for each in History(place).at().objects]
        assert kept == names[: len(kept)], kept
        assert len(kept) >= wanted, kept
        begin()

    def begin() -> None:
        shutil.rmtree(place, ignore_errors=True)
        acknowledged.write_text("0")

    begin()
    return each_kill(write, check)


WRITERS: Final = {
    "record": recorder,
    "file": file_writer,
    "new-file": new_file_writer,
    "first-start": first_start,
    "next-start": next_start,
}


if __name__ == "__main__":
    memory = Path("/dev/shm")  # noqa: S108  # syncs cost nothing there
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        print(WRITERS[sys.argv[1]](Path(folder)))  # noqa: T201
