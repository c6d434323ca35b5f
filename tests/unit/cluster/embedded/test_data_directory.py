"""The state of an embedded cluster on disk: what was synced is there again, whatever happened."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from pumice.clock import VirtualClock
from pumice.cluster.embedded import data_directory
from pumice.cluster.embedded.data_directory import DataDirectory
from pumice.cluster.embedded.data_records import encoded
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import GoneError, InputError, OutputError, UnavailableError


def config_map(name: str, **data: str) -> Any:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class Run:
    """A cluster on a directory, from its start to its end."""

    def __init__(self, folder: Path, at: float = 1000.0) -> None:
        self.data = DataDirectory(folder)
        clock = VirtualClock(max(at, self.data.now))
        self.data.record(clock.now)
        self.cluster = EmbeddedCluster(clock, seed=self.data.starts, tables=self.data.tables)
        self.data.begin()

    def crash(self) -> None:
        """Close without a last sync; what was not synced is lost."""
        synced = (self.data.folder / "log").read_bytes()
        self.data.close()
        (self.data.folder / "log").write_bytes(synced)

    def names(self) -> list[str]:
        return [m["metadata"]["name"] for m in self.cluster.list("ConfigMap")[0]]


def test_objects_versions_and_time_are_there_again(tmp_path: Path) -> None:
    first = Run(tmp_path / "new" / "data")
    assert first.data.is_new
    made = first.cluster.create(config_map("a", x="1"))
    first.cluster.create(config_map("b"))
    first.cluster.patch("ConfigMap", "default", "b", {"data": {"x": "2"}})
    first.cluster.create(config_map("gone"))
    first.cluster.delete("ConfigMap", "default", "gone")
    version = first.cluster.version
    first.data.sync()
    first.crash()
    second = Run(tmp_path / "new" / "data", at=0.0)
    assert not second.data.is_new
    assert (first.data.starts, second.data.starts) == (1, 2)
    assert second.names() == ["a", "b"]
    assert second.cluster.get("ConfigMap", "default", "a") == made
    assert second.cluster.get("ConfigMap", "default", "b")["data"] == {"x": "2"}
    assert second.cluster.version == version
    assert second.cluster.now() == 1000.0
    assert second.cluster.create(config_map("c"))["metadata"]["uid"] != made["metadata"]["uid"]
    with pytest.raises(GoneError):
        list(second.cluster.watch("ConfigMap", since=str(version - 1)))
    second.data.close()


def test_owners_are_known_again(tmp_path: Path) -> None:
    first = Run(tmp_path)
    owner = first.cluster.create(config_map("owner"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}
    owned = config_map("owned")
    owned["metadata"]["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"]}]
    first.cluster.create(owned)
    first.data.sync()
    first.crash()
    second = Run(tmp_path)
    second.cluster.delete("ConfigMap", "default", "owner")
    assert second.names() == []
    second.data.close()


def test_an_old_log_beside_a_new_snapshot_counts_for_nothing(tmp_path: Path) -> None:
    first = Run(tmp_path)
    first.cluster.create(config_map("a"))
    first.cluster.delete("ConfigMap", "default", "a")
    first.cluster.create(config_map("a", x="new"))
    first.data.sync()
    log = (tmp_path / "log").read_bytes()
    first.data._compact()
    first.crash()
    (tmp_path / "log").write_bytes(log)  # as if the crash had come between the two
    second = Run(tmp_path)
    assert second.cluster.get("ConfigMap", "default", "a")["data"] == {"x": "new"}
    second.data.close()


def test_a_directory_belongs_to_one_cluster(tmp_path: Path) -> None:
    first = Run(tmp_path)
    with pytest.raises(InputError, match="in use by another cluster"):
        DataDirectory(tmp_path)
    first.data.close()
    Run(tmp_path).data.close()


def test_a_file_in_the_place_of_a_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="expected a folder that can be written to"):
        DataDirectory(tmp_path / "file")


def test_a_full_disk_is_reported_and_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    run.cluster.create(config_map("a"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(UnavailableError, match="No space left"):
            run.data.sync()
        run.cluster.create(config_map("b"))
        with pytest.raises(UnavailableError, match="No space left"):
            run.data.sync()
    run.data.sync()
    run.crash()
    again = Run(tmp_path)
    assert again.names() == ["a", "b"]
    again.data.close()


def damaged(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        DataDirectory(folder)
    return str(caught.value)


def stored(folder: Path) -> list[bytes]:
    """Make a directory with two objects in its snapshot; return the lines of that."""
    run = Run(folder)
    for name in ("a", "b"):
        run.cluster.create(config_map(name))
    run.data.sync()
    run.crash()
    Run(folder).data.close()
    return (folder / "snapshot").read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda lines: [], 1),
        (lambda lines: lines[:1], 2),
        (lambda lines: lines[:-1], 6),
        (lambda lines: [lines[0], lines[1][:-5] + b"\n", *lines[2:]], 2),
        (lambda lines: [b"x" + lines[0], *lines[1:]], 1),
        (lambda lines: [lines[0].replace(b"starts", b"stasts"), *lines[1:]], 1),
        (lambda lines: [*lines, b"more"], 7),
        (lambda lines: [lines[0], *lines[2:]], 5),
    ],
)
def test_where_a_snapshot_is_damaged_is_reported(tmp_path: Path, change: Any, line: int) -> None:
    lines = stored(tmp_path)
    assert len(lines) == 6  # head, two namespaces, two objects, foot
    (tmp_path / "snapshot").write_bytes(b"".join(change(lines)))
    found = damaged(tmp_path)
    assert f"snapshot:{line}: expected a record with its checksum" in found
    assert "restore it from a copy" in found


def test_a_snapshot_of_another_format_is_refused(tmp_path: Path) -> None:
    head, *rest = stored(tmp_path)
    content = json.loads(head[9:])
    assert content["format"] == 1
    changed = encoded({**content, "format": 2})
    (tmp_path / "snapshot").write_bytes(b"".join([changed, *rest]))
    found = damaged(tmp_path)
    assert "snapshot: expected data of format 1, got format 2" in found
    assert "another version of Pumice" in found


@pytest.mark.parametrize(
    ("change", "kept", "line"),
    [
        (lambda lines: lines, ["a", "b", "c"], None),
        (lambda lines: [*lines[:-1], lines[-1][:-1]], ["a", "b"], 3),
        (lambda lines: [*lines[:-1], lines[-1][:-9] + b"\n"], ["a", "b"], 3),
        (lambda lines: [*lines[:-1], lines[-1][:1]], ["a", "b"], 3),
        (lambda lines: [*lines[:-2], b"odd\n", b"odd\n"], ["a"], 2),
        (lambda lines: [], [], None),
    ],
)
def test_the_end_of_a_log_may_be_torn(
    tmp_path: Path, change: Any, kept: Any, line: int | None
) -> None:
    first = Run(tmp_path)
    first.data._compact()
    for name in ("a", "b", "c"):
        first.cluster.create(config_map(name))
    first.data.sync()
    first.crash()
    lines = (tmp_path / "log").read_bytes().splitlines(keepends=True)
    assert len(lines) == 3
    (tmp_path / "log").write_bytes(b"".join(change(lines)))
    second = Run(tmp_path)
    assert second.names() == kept
    torn = f"{tmp_path / 'log'}: the end from line {line} is torn and left out" if line else ""
    assert second.data.note == torn
    second.cluster.create(config_map("d"))
    second.data.close()
    third = Run(tmp_path)
    assert (third.names(), third.data.note) == ([*kept, "d"], "")
    third.data.close()


def test_damage_before_whole_records_is_reported_with_its_line(tmp_path: Path) -> None:
    first = Run(tmp_path)
    for name in ("a", "b", "c"):
        first.cluster.create(config_map(name))
    first.data.sync()
    first.crash()
    lines = (tmp_path / "log").read_bytes().splitlines(keepends=True)
    (tmp_path / "log").write_bytes(b"".join([lines[0], b"odd\n", *lines[2:]]))
    assert "log:2: expected a record" in damaged(tmp_path)


def test_without_a_log_the_snapshot_counts(tmp_path: Path) -> None:
    stored(tmp_path)
    (tmp_path / "log").unlink()
    run = Run(tmp_path)
    assert (run.names(), run.data.note) == (["a", "b"], "")
    run.data.close()


@pytest.mark.parametrize("name", ["log", "lock", "snapshot.new", "notes.txt", "snapshot"])
def test_a_directory_with_other_content_is_refused_and_unchanged(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("not ours\n")
    assert name in damaged(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "not ours\n"


@pytest.mark.parametrize("name", ["log", "lock", "snapshot"])
@pytest.mark.parametrize("is_new", [True, False])
def test_links_are_refused_and_their_targets_unchanged(
    tmp_path: Path, name: str, *, is_new: bool
) -> None:
    folder, target = tmp_path / "data", tmp_path / "precious"
    target.write_text("precious")
    if is_new:
        folder.mkdir()
    else:
        stored(folder)
        (folder / name).unlink()
    (folder / name).symlink_to(target)
    with pytest.raises((InputError, OutputError), match=str(folder)):
        Run(folder)
    assert target.read_text() == "precious"
    assert (folder / name).is_symlink()


def test_a_pipe_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    stored(tmp_path)
    (tmp_path / "log").unlink()
    os.mkfifo(tmp_path / "log")
    assert "expected a plain file, got something else" in damaged(tmp_path)


def test_only_the_owner_can_read_the_files(tmp_path: Path) -> None:
    stored(tmp_path / "data")
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    for file in (tmp_path / "data").iterdir():
        assert file.stat().st_mode & 0o777 == 0o600, file


def test_a_first_start_keeps_everything_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    data = DataDirectory(tmp_path)
    data.record(lambda: 1000.0)
    cluster = EmbeddedCluster(VirtualClock(1000.0), tables=data.tables)
    cluster.create(config_map("a"))
    data.sync()  # it has not begun
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OutputError, match=r"snapshot: .*No space left on device.*free some"):
            data.begin()
    data.close()
    assert [file.name for file in tmp_path.iterdir()] == ["lock"]
    again = Run(tmp_path)
    assert again.data.is_new
    assert (again.data.starts, again.names()) == (1, [])
    again.data.close()


def test_reading_changes_nothing(tmp_path: Path) -> None:
    stored(tmp_path)
    with (tmp_path / "log").open("ab") as log:
        log.write(b"torn")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    DataDirectory(tmp_path).close()
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / ".pumice-0123456789abcdef.part"
    left.write_text("half")
    run = Run(tmp_path)
    assert run.data.is_new
    assert not left.exists()
    run.data.close()


OBJECT: Any = {**config_map("c"), "metadata": {"name": "c", "uid": "u", "resourceVersion": "9"}}


@pytest.mark.parametrize(
    "record",
    [
        {"type": "ADDED", "at": 1.0},
        {"type": "ADDED", "at": "soon", "object": OBJECT},
        {"type": "ADDED", "at": 1e300, "object": OBJECT},
        {"type": "ADDED", "at": 1.0, "object": {**OBJECT, "metadata": None}},
        {"type": "ADDED", "at": 1.0, "object": {**OBJECT, "kind": 5}},
        {"type": "ADDED", "at": 1.0, "object": {**OBJECT, "metadata": {"name": "c"}}},
        {"type": "ADDED", "at": 1.0, "object": {
            **OBJECT, "metadata": {**OBJECT["metadata"], "resourceVersion": "9" * 5000}}},
        {"type": "ADDED", "at": 1.0, "object": {
            **OBJECT, "metadata": {**OBJECT["metadata"], "ownerReferences": [{}]}}},
        5,
        None,
    ],
)  # fmt: skip
@pytest.mark.parametrize("file", ["log", "snapshot"])
def test_records_of_something_else_are_refused(tmp_path: Path, record: Any, file: str) -> None:
    lines = stored(tmp_path)
    if file == "log":
        (tmp_path / file).write_bytes(encoded(record) * 2)
        assert "log:1: expected a record" in damaged(tmp_path)
    else:
        (tmp_path / file).write_bytes(b"".join([*lines[:-1], encoded(record), lines[-1]]))
        assert "snapshot:" in damaged(tmp_path)


@pytest.mark.parametrize(
    "change",
    [{"version": -1}, {"version": "x"}, {"now": float("nan")}, {"now": 1e18}, {"starts": None}],
)
def test_a_head_of_something_else_is_refused(tmp_path: Path, change: Any) -> None:
    head, *rest = stored(tmp_path)
    changed = encoded({**json.loads(head[9:]), **change})
    (tmp_path / "snapshot").write_bytes(b"".join([changed, *rest]))
    assert "snapshot:1: expected a record" in damaged(tmp_path)


def test_a_long_log_is_replaced_by_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_directory, "_LEAST_LOG", 1000)
    run = Run(tmp_path)
    for number in range(100):
        run.cluster.create(config_map(f"c{number}"))
        run.data.sync()
        assert (tmp_path / "log").stat().st_size < 50_000
    run.crash()
    again = Run(tmp_path)
    assert len(again.names()) == 100
    again.data.close()
