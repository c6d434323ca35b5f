"""How long jobs run that state nothing, as learned from equal ones that ended."""

import re
from typing import Any, Final

import msgspec
import numpy as np

from pumice.api.annotations import USER
from pumice.api.kinds import CONFIG_MAP
from pumice.api.meta import ConfigMap
from pumice.core.snapshot import Snapshot
from pumice.core.status import HOLDING, Status
from pumice.core.tables import NOWHERE
from pumice.framework.plugin_session import PluginSession

_OPEN: Final = [int(Status.PENDING), int(Status.FAILED), int(Status.RELEASING)]
_UID: Final = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_DIGITS: Final = re.compile(r"[0-9]+")
HISTORY: Final = "history"
"""The key in what is remembered of promises."""
_KEY: Final = "state"
"""Of the data of the ConfigMap."""
_LEAST: Final = 5
"""Runs without which nothing is learned."""
_LAST: Final = 20
"""Runs of a kind that are remembered."""
_MOST: Final = 2000
"""Kinds that are remembered, those of the latest ends."""
_LONGEST: Final = 200
"""Characters of a kind."""
_WRITTEN_EACH_S: Final = 300.0


class Runs(msgspec.Struct):
    """The latest runs of one kind of job."""

    last: list[float]
    """Seconds, the latest one last."""
    n: int = 0
    """How many ended so far."""
    late: int = 0
    """How many of them ran longer than was expected."""


class RunHistory(msgspec.Struct):
    """How long jobs ran, by kind: owner, queue, pattern of the name, and shape."""

    kinds: dict[str, Runs] = msgspec.field(default_factory=dict)
    written: float = 0.0
    """Up to when it was written last."""
    is_new: bool = False
    """Whether jobs have ended since."""
    running: dict[str, tuple[str, float]] = msgspec.field(default_factory=dict)
    """Jobs that run: their kind, and since when; known to this process alone."""

    @classmethod
    def read(cls, snapshot: Snapshot, config_map: str) -> "RunHistory":
        """Return what a ConfigMap has; an empty one if it has none that can be read."""
        stored = snapshot.kind(CONFIG_MAP).get(config_map)
        text = stored.data.get(_KEY, "") if isinstance(stored, ConfigMap) else ""
        try:
            return cls(kinds=msgspec.json.decode(text or "{}", type=dict[str, Runs]))
        except (msgspec.DecodeError, UnicodeEncodeError):
            return cls()

    def expected(self, kind: str, quantile: float) -> float | None:
        """Return a time within which such a part of the jobs of a kind ended."""
        runs = self.kinds.get(kind)
        if runs is None or len(runs.last) < _LEAST:
            return None
        return float(np.quantile(runs.last, quantile, method="higher"))

    def add(self, kind: str, seconds: float, quantile: float) -> None:
        """Add a run; the kinds whose last end is longest ago are forgotten."""
        expected = self.expected(kind, quantile)
        runs = self.kinds.pop(kind, None) or Runs([])
        runs.last = [*runs.last, round(seconds, 1)][-_LAST:]
        runs.n += 1
        runs.late += expected is not None and seconds > expected
        self.kinds[kind] = runs
        if len(self.kinds) > _MOST:
            del self.kinds[next(iter(self.kinds))]

    def observe(self, ssn: PluginSession, quantile: float) -> None:
        """Note which jobs run, and add those that have ended."""
        jobs, tasks = ssn.snapshot.jobs, ssn.snapshot.tasks
        holds = jobs.counts[HOLDING].sum(axis=0) > 0
        for key, (kind, begun) in list(self.running.items()):
            row = jobs.row_of.get(key)
            if row is not None and holds[row]:
                continue
            del self.running[key]
            done = row is not None and jobs.counts[Status.SUCCEEDED, row] > 0
            if done and not jobs.counts[_OPEN, row].any():
                self.add(kind, ssn.now - begun, quantile)
                self.is_new = True
        for row in np.flatnonzero(holds & jobs.listed).tolist():
            if jobs.keys[row] not in self.running:
                begun = np.nanmin(np.append(tasks.started[jobs.tasks[row]], np.inf))
                if np.isfinite(begun):
                    self.running[jobs.keys[row]] = kind_of(ssn.snapshot, row), float(begun)

    def store(self, ssn: PluginSession, config_map: str) -> None:
        """Write it if there is something new, unless that was done a moment ago."""
        if self.is_new and not 0 <= ssn.now - self.written < _WRITTEN_EACH_S:
            self.written, self.is_new = ssn.now, False
            ssn.store(config_map, {_KEY: msgspec.json.encode(self.kinds).decode()})


def kind_of(snapshot: Snapshot, job: int) -> str:
    """Return what jobs have in common that probably run equally long."""
    jobs, tasks = snapshot.jobs, snapshot.tasks
    group: Any = jobs.groups[job]
    meta, queue = group.metadata, int(jobs.queue[job])
    owner = meta.labels.get(USER) or meta.annotations.get(USER) or meta.namespace
    name = _DIGITS.sub("#", _UID.sub("", meta.name))
    place = "" if queue == NOWHERE else snapshot.queues.names[queue]
    shapes = sorted({int(each) for each in tasks.shape[jobs.tasks[job]]})
    rows = [next(r for r in jobs.tasks[job] if tasks.shape[r] == each) for each in shapes]
    amounts = snapshot.requests(np.array(rows, dtype=np.intp)).sum(axis=1)
    names = snapshot.resources.names
    shape = ",".join(f"{names[i]}={amounts[i]:g}" for i in np.flatnonzero(amounts > 0).tolist())
    return f"{owner}|{place}|{name}|{jobs.min_member[job]}x{shape}"[:_LONGEST]
