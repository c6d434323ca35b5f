"""A record against the cluster itself: the state at any moment is that of then."""

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pumice.api.kinds import kind_of
from pumice.api.redaction import without_secrets
from pumice.cluster.base import Event
from pumice.records.changes import place_of
from pumice.records.history import History
from pumice.records.recorder import Limits, Recorder
from pumice.records.segments import read_entries, read_head, segment_files

START = 1_767_225_600.0
KINDS = (("v1", "Pod"), ("v1", "Node"), ("scheduling.volcano.sh/v1beta1", "PodGroup"))
VALUES: tuple[Any, ...] = (None, 0, "x", [], ["a", None], {}, {"k": None}, {"k": {"l": 1}})
AGE_S, RETRY_S = 300.0, 10.0
"""After so long a recorder has tried a disk again that was full."""
State = dict[Any, Any]


class Life:
    """A cluster that is recorded while disks fill, watches break and clocks step."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.folder = folder
        self.is_aged = bool(seed % 2)
        """Whether old segments are thinned; else the clock may be put back far."""
        age_s = AGE_S if self.is_aged else 1e6
        self.limits = Limits(segment_s=float(self.rng.integers(5, 60)), age_s=age_s)
        self.now = START
        self.objects: State = {}
        self.eras: list[list[tuple[float, State]]] = [[]]
        """Times and clusters; another era begins when the clock is put back."""
        self.safe: list[tuple[float, int]] = []
        """Times and eras at which everything was on the disk."""
        self.is_broken, self.failed_at = False, 0.0
        self._version = 0
        self.recorder = self._open()

    def _open(self) -> Recorder:
        return Recorder(self.folder, lambda: self.now, by="observer", limits=self.limits)

    def draw(self, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
        sync = os.fsync

        def synced(number: int) -> None:
            if self.is_broken:
                raise OSError(errno.ENOSPC, "No space left on device")
            sync(number)

        monkeypatch.setattr("pumice.records.segments.os.fsync", synced)
        for _ in range(steps):
            self._disturb(float(self.rng.random()))
            for _ in range(int(self.rng.integers(0, 4))):
                self._change()
            self.recorder.flush()
            self.eras[-1].append((self.now, dict(self.objects)))
            self.failed_at = self.now if self.is_broken else self.failed_at
            if abs(self.now - self.failed_at) > RETRY_S:
                self.safe.append((self.now, len(self.eras) - 1))
            self.now = round(self.now + float(self.rng.choice([0.8, 1.1, 7.3])), 1)
        self.is_broken, self.now = False, self.now + 10
        self.recorder.close()

    def _change(self) -> None:
        places = [*self.objects]
        if places and self.rng.random() < 0.2:
            gone = self.objects.pop(places[int(self.rng.integers(len(places)))])
            self.recorder.changed([Event("DELETED", gone)])
            return
        one = self._made()
        self.objects[place_of(one)] = one
        self.recorder.changed([Event("MODIFIED", one)])

    def _made(self) -> dict[str, Any]:
        rng, self._version = self.rng, self._version + 1
        version, kind = KINDS[int(rng.integers(len(KINDS)))]
        name, uid = f"o{int(rng.integers(6))}", f"u{int(rng.integers(2))}"
        status = {f"f{int(rng.integers(3))}": VALUES[int(rng.integers(len(VALUES)))] for _ in "ab"}
        meta = {"name": name, "namespace": "d", "uid": uid, "resourceVersion": str(self._version)}
        return {"apiVersion": version, "kind": kind, "metadata": meta, "status": status}

    def _disturb(self, chance: float) -> None:
        if chance < 0.01:
            self.now -= 1.0 if self.is_aged else 400.0
            self.eras.append([])
        elif chance < 0.05:
            self.now += 60.0
        elif chance < 0.16:
            self.is_broken = not self.is_broken
        elif chance < 0.2 and not self.is_broken:
            self.recorder.close()
            self.recorder = self._open()
            self._list()
        elif chance < 0.3:  # a watch broke: what happened meanwhile shows in the next list
            for place in [place for place in self.objects if self.rng.random() < 0.3]:
                del self.objects[place]
            self._list()

    def _list(self) -> None:
        for kind in {kind_of({"apiVersion": version, "kind": kind}) for version, kind in KINDS}:
            self.recorder.listed(kind, [one for at, one in self.objects.items() if at[0] == kind])

    def then(self, when: float, era: int) -> State | None:
        """Return the cluster at a time of an era; None before it."""
        known = [state for at, state in self.eras[era] if at <= when]
        return {at: without_secrets(one) for at, one in known[-1].items()} if known else None

    @property
    def oldest_whole(self) -> float:
        """From when on nothing is thinned."""
        age_s = self.limits.age_s / 2 - self.limits.segment_s - RETRY_S
        return self.now - age_s

    def is_told_twice(self, at: float, era: int) -> bool:
        """Return whether a clock that was put back showed a time in another era, too."""
        others = [one for number, one in enumerate(self.eras) if number != era]
        return any(one[0][0] <= at <= one[-1][0] + 2 * RETRY_S for one in others if one)


@pytest.mark.parametrize("seed", range(100))
@pytest.mark.sample(6)
def test_the_state_at_any_moment_is_the_one_of_then(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(tmp_path / "record", seed)
    life.draw(120, monkeypatch)
    history = History(life.folder)
    assert history.problems == []
    assert history.at().objects == life.then(life.now, len(life.eras) - 1)
    kept = {
        read_head(path).at
        for path in segment_files(life.folder).values()
        if any(entry.checkpoint for entry in read_entries(path, pytest.fail))
    }
    for at, era in life.safe:
        if at < history.start or life.is_told_twice(at, era):
            continue
        found = history.at(at).objects
        if found != life.then(at, era):  # what is left of that time is the checkpoint before it
            assert at < life.oldest_whole
            last = max(each for each in kept if each <= at)
            eras = range(era + 1)
            assert found in [life.then(each, one) for each in (last, last - 0.1) for one in eras], (
                at
            )
