"""A record: the cluster at any moment of it, whatever happened to its files."""

import errno
import json
import os
import shutil
import time
import zlib
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pumice.api.redaction import without_secrets
from pumice.cluster.base import Event
from pumice.errors import InputError
from pumice.records import segments
from pumice.records.entries import MAGIC, CycleEntry, Entry, Head, PieceHead, line_of, piece_of
from pumice.records.history import History
from pumice.records.recorder import Limits, Recorder
from pumice.records.segments import segment_files

START = 1_767_225_600.0
SECRET = "hunter2"  # noqa: S105  # planted


class Played:
    """A recorder on a clock of its own, and the same cluster beside it, kept whole."""

    def __init__(self, folder: Path, **limits: Any) -> None:
        self.now = START
        self.folder = folder
        self.recorder = Recorder(folder, lambda: self.now, by="observer", limits=Limits(**limits))
        self.objects: dict[str, Any] = {}
        self.states: list[tuple[float, dict[str, Any]]] = []
        self._version = 0

    def put(self, name: str, **status: Any) -> None:
        self._version += 1
        known = self.objects.get(name)
        self.objects[name] = pod(name, self._version, {**(known or {}).get("status", {}), **status})
        self.recorder.changed([Event("MODIFIED" if known else "ADDED", self.objects[name])])

    def drop(self, name: str) -> None:
        self.recorder.changed([Event("DELETED", self.objects.pop(name))])

    def tick(self, seconds: float = 1.0) -> None:
        """Flush, keep the state, and let time pass."""
        self.recorder.flush()
        self.states.append((self.now, deepcopy(self.objects)))
        self.now += seconds

    def play(self, steps: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        for number in range(steps):
            names = [*self.objects]
            for _ in range(int(rng.integers(1, 4))):
                name = names[int(rng.integers(len(names)))] if names and rng.random() < 0.7 else ""
                if name in self.objects and rng.random() < 0.3:
                    self.drop(name)
                else:
                    self.put(name or f"p{number}", phase="Running", number=int(rng.integers(9)))
            self.tick()


def pod(name: str, version: int, status: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "d", "uid": f"u-{name}", "resourceVersion": str(version)}
    env = [{"name": "PASSWORD", "value": SECRET}]
    spec = {"containers": [{"name": "c", "env": env, "args": [SECRET]}], "nodeName": None}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def shown(history: History, when: float | None = None) -> dict[str, Any]:
    return {place[2]: one for place, one in history.at(when).objects.items()}


def redacted(objects: dict[str, Any]) -> dict[str, Any]:
    return {name: without_secrets(one) for name, one in objects.items()}


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    yield (made := Played(tmp_path / "record", segment_s=20.0))
    made.recorder.close()


@pytest.mark.parametrize("seed", range(2))
def test_the_state_at_any_moment_is_the_one_of_then(played: Played, seed: int) -> None:
    played.play(60, seed)
    history = History(played.folder)
    assert len(segment_files(played.folder)) > 2
    for at, objects in played.states:
        assert shown(history, at) == redacted(objects), at
    last: dict[str, Any] = {}
    for step in history.steps():
        last = {place[2]: one for place, one in step.moment.objects.items()}
    assert last == redacted(played.objects)
    assert history.problems == []
    assert SECRET.encode() not in b"".join(map(_unzipped, segment_files(played.folder).values()))


def _unzipped(path: Path) -> bytes:
    content, found = path.read_bytes(), b""
    while content:
        opener = zlib.decompressobj(31)
        found += opener.decompress(content)
        content = opener.unused_data
    return found


def test_a_file_cut_at_any_byte_has_all_whole_pieces(tmp_path: Path) -> None:
    """A kill or a full disk leaves a beginning of what was written."""
    played = Played(tmp_path / "record")
    played.play(12)
    played.recorder.close()
    (path,) = segment_files(played.folder).values()
    content = path.read_bytes()
    pieces = [*segments.read_pieces(path, lambda _: None)]
    ends = [piece.end for piece in pieces]
    assert ends[-1] == len(content)
    states: dict[int, Any] = {0: {}} | {
        number: objects for number, (_, objects) in enumerate(played.states, 1)
    }
    for cut in range(ends[1], len(content), 3):  # head and first checkpoint are whole
        path.write_bytes(content[:cut])
        history = History(played.folder)
        whole = sum(end <= cut for end in ends) - 2
        assert shown(history) == redacted(states[min(whole, 12)])
        assert bool(history.problems) == (cut not in ends)


@pytest.mark.parametrize("seed", range(16))
def test_damage_is_named_with_its_place_and_the_rest_is_read(tmp_path: Path, seed: int) -> None:
    played = Played(tmp_path / "record", segment_s=5.0)
    played.play(20)
    played.recorder.close()
    rng = np.random.default_rng(seed)
    paths = [*segment_files(played.folder).values()]
    path = paths[int(rng.integers(len(paths) - 1))]
    content = bytearray(path.read_bytes())
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(len(content)))
        if rng.random() < 0.5:
            content[place] ^= 1 << int(rng.integers(8))
        else:
            del content[place : place + int(rng.integers(1, 40))]
    path.write_bytes(bytes(content))
    history = History(played.folder)
    steps = [*history.steps()]
    assert shown(history) == redacted(played.objects)  # the segments after it are whole
    assert steps
    assert all(str(path) in problem for problem in history.problems[:1])
    if not history.problems:  # a bit of a gzip header that nothing depends on
        assert [shown(history, at) for at, _ in played.states] == [
            redacted(objects) for _, objects in played.states
        ]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"version": 2}, "version 2 of the format; this Pumice reads 1"),
        ({"format": "other"}, "a file of format 'other', not 'pumice-record'"),
    ],
)
def test_a_segment_of_another_version_is_named_and_the_others_are_read(
    played: Played, change: dict[str, Any], problem: str
) -> None:
    played.play(25)
    first = segment_files(played.folder)[1]
    head = {"format": "pumice-record", "version": 1, "segment": 1, "run": "x", "at": 1.0}
    packer = zlib.compressobj(wbits=31)
    first.write_bytes(packer.compress(json.dumps({**head, **change}).encode()) + packer.flush())
    (played.folder / "notes.txt").write_text("mine")
    history = History(played.folder)
    assert [problem in each and str(first) in each for each in history.problems] == [False, True]
    assert history.problems[0].endswith("notes.txt: not a part of the record; left out")
    assert shown(history) == redacted(played.objects)


def test_a_folder_without_a_record_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a directory with a record, .* got none"):
        History(tmp_path)
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(InputError, match=r"one with 'mine.txt' in it .*nothing was changed"):
        Recorder(tmp_path, lambda: START, by="observer")
    assert [each.name for each in tmp_path.iterdir()] == ["mine.txt"]


def test_a_pipe_is_no_segment(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "00000001.jsonl.gz")
    assert not segments.is_record(tmp_path)
    assert segment_files(tmp_path) == {}


def test_a_folder_has_one_recorder_at_a_time(played: Played) -> None:
    with pytest.raises(InputError, match="one that another process records to"):
        Recorder(played.folder, lambda: START, by="observer")


def test_old_segments_are_thinned_then_dropped(tmp_path: Path) -> None:
    played = Played(tmp_path / "record", segment_s=10.0, age_s=80.0)
    played.play(100)
    history = History(played.folder)
    assert START + 10 <= history.start < START + 30
    assert shown(history, history.start) == redacted(dict(played.states)[history.start])
    with pytest.raises(InputError, match="expected a time from 2026-01-01T00:00:"):
        history.at(START + 1)
    recent = [each for each in played.states if each[0] > START + 65]
    assert all(shown(history, at) == redacted(objects) for at, objects in recent)
    firsts = [step.entry.at for step in history.steps() if step.is_first]
    assert len(firsts) > 3  # after each thinned segment the cluster is known again
    played.recorder.close()


def test_the_size_is_bounded(tmp_path: Path) -> None:
    played = Played(tmp_path / "record", segment_s=10.0, size=6000)
    played.play(150)
    assert History(played.folder).size < 9000
    assert shown(History(played.folder)) == redacted(played.objects)
    played.recorder.close()


def test_a_full_disk_costs_what_happened_meanwhile(
    played: Played, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    played.play(5)

    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("pumice.records.segments.os.fsync", fail)
        played.put("lost", phase="Running")
        played.tick(6.0)
        played.tick(6.0)
    played.put("kept", phase="Running")
    played.tick()
    history = History(played.folder)
    assert shown(history) == redacted(played.objects)
    assert sum(step.is_first for step in history.steps()) == 2  # a gap is a new beginning
    assert history.problems == []  # segments that had no room are gone
    assert caplog.text.count("cannot record") == 1


@pytest.mark.parametrize("moved", [True, False])
def test_a_folder_that_is_removed_is_made_again(
    played: Played, moved: bool, caplog: pytest.LogCaptureFixture
) -> None:
    played.play(5)
    if moved:
        played.folder.rename(played.folder.with_name("moved"))
    else:
        shutil.rmtree(played.folder)
    played.play(25, seed=1)
    assert shown(History(played.folder)) == redacted(played.objects)
    with pytest.raises(InputError, match="one that another process records to"):
        Recorder(played.folder, lambda: START, by="observer")
    assert (
        "it was deleted" in str([each.__dict__.get("values") for each in caplog.records])
    ) != moved


def test_a_segment_that_cannot_be_thinned_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(segments, "write_file", fail)
    played = Played(tmp_path / "record", segment_s=10.0, age_s=80.0)
    played.play(100)
    history = History(played.folder)
    assert history.problems == []
    assert history.start < START + 30
    recent = [each for each in played.states if each[0] > history.start]
    assert all(shown(history, at) == redacted(objects) for at, objects in recent)
    assert 0 < caplog.text.count("cannot shorten the record") < 10  # once for each segment
    played.recorder.close()


def test_a_checkpoint_that_was_not_finished_does_not_count(played: Played) -> None:
    played.play(30)
    played.recorder.flush()
    number = max(segment_files(played.folder))
    path = segment_files(played.folder)[number]
    before = [at for at, _ in played.states if at <= START + 20 * (number - 1)]
    head = next(segments.read_pieces(path, lambda _: None))
    path.write_bytes(path.read_bytes()[: head.end])
    history = History(played.folder)
    assert shown(history, before[-1]) == redacted(dict(played.states)[before[-1]])
    assert [*history.steps()][-1].entry.at == before[-1]


def test_a_missing_segment_is_named_and_so_is_a_moment_of_it(tmp_path: Path) -> None:
    played = Played(tmp_path / "record", segment_s=200.0)
    for _ in range(9):
        played.put("p", number=played.now)
        played.tick(70.0)
    played.recorder.close()
    segment_files(played.folder)[2].unlink()
    history = History(played.folder)
    assert history.problems == [f"{played.folder}: segments 2 to 2 are missing"]
    assert shown(history, START + 390) == redacted(played.states[3][1])
    assert "nothing from 2026-01-01T00:03:30Z to 2026-01-01T00:06:30Z" in history.problems[1]


def test_a_clock_may_be_put_back(tmp_path: Path) -> None:
    played = Played(tmp_path / "record")
    played.play(10)
    played.now -= 3600
    played.recorder.flush()
    played.play(10, seed=1)
    history = History(played.folder)
    assert shown(history) == redacted(played.objects)
    for at, objects in played.states:
        assert shown(history, at) == redacted(objects), at
    played.recorder.close()


def test_node_heartbeats_are_left_out(tmp_path: Path) -> None:
    now = [START]
    recorder = Recorder(tmp_path / "record", lambda: now[0], by="observer")

    def node(version: int, ready: str) -> dict[str, Any]:
        condition = {"type": "Ready", "status": ready, "lastHeartbeatTime": str(version)}
        metadata = {"name": "n", "uid": "n", "resourceVersion": str(version)}
        status = {"conditions": [condition]}
        return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}

    for version, ready in enumerate(("True", "True", "True", "False")):
        recorder.changed([Event("MODIFIED", node(version, ready))])
    recorder.close()
    changes = [s.entry for s in History(tmp_path / "record").steps() if s.entry.put or s.entry.of]
    assert [entry.patch["status"] for entry in changes[1:] if entry.patch] == [
        {"conditions": [{"type": "Ready", "status": "False"}]}
    ]


def test_times_are_taken_by_the_clock_and_from_the_end(tmp_path: Path) -> None:
    played = Played(tmp_path / "record")
    played.now += 7 * 3600
    played.tick(4 * 3600)
    played.put("p")
    played.tick()
    history = History(played.folder)
    assert history.time("03:10") == START + 3 * 3600 + 600
    assert history.time("-30m") == history.end - 1800
    assert history.time("2026-01-01T05:00:00Z") == START + 5 * 3600
    assert history.time("2026-01-01 05:00") == START + 5 * 3600
    with pytest.raises(InputError, match='expected a time such as "03:10"'):
        history.time("yesterday")
    played.recorder.close()


def test_decisions_configurations_and_usage_are_kept(tmp_path: Path) -> None:
    now = [START]
    recorder = Recorder(tmp_path / "record", lambda: now[0], by="scheduler")
    recorder.configured('actions: "allocate"\nmetrics: {token: abc}\n', "conf.yaml")
    recorder.measured({"n1": {"cpu": 1.0}, "n2": {"cpu": 2.0}})
    recorder.flush()
    now[0] += 10
    recorder.measured({"n2": {"cpu": 3.0}})
    recorder.decided(CycleEntry(now=now[0], binds={"d/p": "n2"}))
    recorder.close()
    history = History(tmp_path / "record")
    assert history.at(START).usage == {"n1": {"cpu": 1.0}, "n2": {"cpu": 2.0}}
    assert history.at().usage == {"n2": {"cpu": 3.0}}
    conf = history.at().conf
    assert conf is not None
    assert (conf.source, "abc" in conf.text, "redacted" in conf.text) == ("conf.yaml", False, True)
    assert [s.entry.cycle.binds for s in history.steps() if s.entry.cycle] == [{"d/p": "n2"}]


def test_a_piece_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "00000001.jsonl.gz"
    head = Head(format="pumice-record", version=1, segment=1, run="x", at=START)
    bomb = zlib.compressobj(9, wbits=31)
    content = b"".join(bomb.compress(b" " * (1 << 20)) for _ in range(65)) + bomb.flush()
    whole = piece_of(head, [line_of(Entry(at=START, checkpoint=0))])
    path.write_bytes(whole + content)
    history = History(tmp_path)
    assert history.at().objects == {}
    assert "a piece of more than 64 MiB" in history.problems[0]


def test_pieces_that_together_unpack_to_far_too_much_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "00000001.jsonl.gz"
    head = Head(format="pumice-record", version=1, segment=1, run="x", at=START)
    whole = piece_of(head, [line_of(Entry(at=START, checkpoint=0))])
    long = [b" " * (60 << 20)]
    path.write_bytes(whole + b"".join(piece_of(PieceHead(number), long) for number in range(1, 6)))
    history = History(tmp_path)
    assert history.at().objects == {}
    assert "far too much for the size of the file" in history.problems[-1]
    lists = line_of(Entry(at=START, patch={"a": [[]] * 400_000}))
    path.write_bytes(whole + b"".join(piece_of(PieceHead(n), [lists]) for n in range(1, 4)))
    history = History(tmp_path)
    assert history.at().objects == {}
    assert "far too much for the size of the file" in history.problems[-1]


def test_more_lines_than_a_file_has_room_for_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "00000001.jsonl.gz"
    head = Head(format="pumice-record", version=1, segment=1, run="x", at=START)
    whole = piece_of(head, [line_of(Entry(at=START, checkpoint=0))])
    path.write_bytes(whole + piece_of(PieceHead(1), [line_of(Entry(at=START))] * 300_000))
    history = History(tmp_path)
    assert history.at().objects == {}
    assert "far too much for the size of the file" in history.problems[-1]


def test_many_pieces_are_read_in_a_time_that_grows_with_their_number(tmp_path: Path) -> None:
    path = tmp_path / "00000001.jsonl.gz"
    head = Head(format="pumice-record", version=1, segment=1, run="x", at=START)
    whole = piece_of(head, [line_of(Entry(at=START, checkpoint=0))])

    def seconds(count: int) -> float:
        # behind the pieces that are read is as much again that need not be looked at
        pieces = b"".join(piece_of(PieceHead(number), []) for number in range(1, count))
        path.write_bytes(whole + pieces + bytes(count * 500))
        started = time.process_time()
        assert sum(1 for _ in segments.read_pieces(path, lambda _: None)) == count
        return time.process_time() - started

    assert seconds(8_000) < 16 * seconds(1_000)


def test_places_without_a_piece_are_not_looked_at_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "00000001.jsonl.gz"
    head = Head(format="pumice-record", version=1, segment=1, run="x", at=START)
    path.write_bytes(piece_of(head, [line_of(Entry(at=START, checkpoint=0))]) + MAGIC * 50_000)
    reports: list[str] = []
    assert sum(1 for _ in segments.read_pieces(path, reports.append)) == 1
    assert len(reports) < 2_000


def test_a_record_that_has_only_begun_ends_when_it_began(tmp_path: Path) -> None:
    path = tmp_path / "00000001.jsonl.gz"
    head = Head(format="pumice-record", version=1, segment=1, run="x", at=START)
    path.write_bytes(piece_of(head, []))
    assert History(tmp_path).end == START


def _nested(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels):
        found = {"a": found}
    return found


@pytest.mark.parametrize(
    "line",
    [
        {"put": {}},
        {"put": {"apiVersion": "v1", "kind": "Pod", "metadata": 5}},
        {"put": {"apiVersion": "v1", "kind": 5, "metadata": {"name": "a"}}},
        {"of": ["Pod", "d", "p"], "patch": {"metadata": 5}},
        {"of": ["Pod", "d", "p"], "patch": {"metadata": {"name": "q"}}},
        {"of": ["Pod", "d", "p"], "patch": _nested(150)},
        {"put": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "x": _nested(900)}},
        {"at": 1e308},
        {"at": -1.0},
        {"cycle": {"now": 253_402_300_800}},
    ],
)
def test_what_is_no_object_is_left_out_and_named(tmp_path: Path, line: dict[str, Any]) -> None:
    path = tmp_path / "00000001.jsonl.gz"
    head = Head(format="pumice-record", version=1, segment=1, run="x", at=START)
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d"}}
    known = line_of(Entry(at=START, put=manifest))
    odd = json.dumps({"at": START, **line}).encode()
    path.write_bytes(piece_of(head, [line_of(Entry(at=START, checkpoint=0)), known, odd]))
    history = History(tmp_path)
    assert list(history.at().objects.values()) == [manifest]
    assert history.problems
    assert str(path) in history.problems[0]
