"""What a record tells about a cluster: the hour before a moment, and the lives of jobs.

Computed in an answering process.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from pumice.api.annotations import GROUP_NAME
from pumice.api.decisions import Decisions
from pumice.api.kinds import POD, POD_GROUP, QUEUE
from pumice.api.meta import KubeObject
from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.dashboard.feed import CycleRecord, Sample
from pumice.dashboard.questions import Respondent
from pumice.diagnosis.cluster_state import title_of
from pumice.diagnosis.job_history import spans_of
from pumice.errors import PumiceError
from pumice.records.changes import place_of
from pumice.records.entries import CycleEntry, Entry, Place
from pumice.records.history import History, Moment

_HOUR_S: Final = 3600.0
_SAMPLE_S: Final = 60.0
_QUIET_S: Final = 600.0
"""How far back cycles are listed that decided nothing."""
_SAMPLED: Final = frozenset({"Node", POD, POD_GROUP, QUEUE})


class Hour(NamedTuple):
    """What happened before a moment, as a feed would remember it."""

    cycles: list[CycleRecord]
    samples: list[Sample]


@dataclass(frozen=True)
class LastHour:
    """The cycles and the use of a cluster in the hour before a moment of its record."""

    folder: Path
    at: float
    resources: tuple[str, ...]
    """Names of the amounts of a sample, in order."""

    def answer(self, who: Respondent) -> Hour:
        """Read the hour."""
        del who
        since = self.at - _HOUR_S
        found, use, due = Hour([], []), _Use(self.resources), since
        for step in History(self.folder).steps(since, self.at):
            entry, moment = step.entry, step.moment
            while entry.at > due:
                if use.has_news:
                    found.samples.append(use.sample(due, moment))
                due += _SAMPLE_S
            if step.is_first:
                use = _Use(self.resources)
            use.see(entry)
            cycle = entry.cycle
            if cycle is not None and entry.at > (since if _decides(cycle) else self.at - _QUIET_S):
                number = len(found.cycles) + 1
                found.cycles.append(_recorded(number, entry.at, cycle, moment))
        return found


def _decides(cycle: CycleEntry) -> bool:
    return bool(cycle.binds or cycle.evictions or cycle.pipelined)


def _recorded(number: int, at: float, cycle: CycleEntry, moment: Moment) -> CycleRecord:
    """Return a cycle as it was recorded; how long it took is not."""
    return CycleRecord(
        number=number,
        at=at,
        took_s=nan,
        actions=(),
        plugins=(),
        decisions=Decisions(
            binds=dict(cycle.binds),
            evictions=[*cycle.evictions],
            evicted_by=dict(cycle.evictions),
            beneficiaries=dict(cycle.beneficiaries),
            pipelined=dict(cycle.pipelined),
        ),
        jobs=dict(_titles((*cycle.binds, *cycle.evictions, *cycle.beneficiaries.values()), moment)),
        dropped=cycle.dropped,
        failed=[f"{what} {key}: {error}" for what, key, _, error in cycle.results if error],
    )


def _titles(pods: Iterable[str], moment: Moment) -> Iterator[tuple[str, str]]:
    for key in pods:
        namespace, _, name = key.partition("/")
        pod = moment.objects.get((POD, namespace, name), {"metadata": {}})
        group = (pod["metadata"].get("annotations") or {}).get(GROUP_NAME, "")
        known = moment.objects.get((POD_GROUP, namespace, str(group)))
        if known is not None:
            yield key, title_of(known)


@dataclass
class _Use:
    """How full the cluster is, brought up to date for each sample."""

    resources: tuple[str, ...]
    ingest: Ingest = field(default_factory=lambda: Ingest(Snapshot()))
    known: dict[Place, KubeObject] = field(default_factory=dict)
    news: set[Place] = field(default_factory=set)
    has_news: bool = False

    def see(self, entry: Entry) -> None:
        """Note which object an entry is about."""
        place = place_of(entry.put) if entry.put is not None else entry.of or entry.gone
        if place is not None and place[0] in _SAMPLED:
            self.news.add(place)
            self.has_news = True

    def sample(self, at: float, moment: Moment) -> Sample:
        """Count what is in use."""
        for place in self.news:
            self._take(place, moment)
        self.news.clear()
        self.ingest.settle()
        snapshot = self.ingest.snapshot
        nodes, tasks = snapshot.nodes, snapshot.tasks
        row = {name: row for row, name in enumerate(snapshot.resources.names)}
        used, total = nodes.used[:, : nodes.n].sum(axis=1), snapshot.total()
        return Sample(
            at=at,
            used=np.array([used[row[name]] if name in row else 0.0 for name in self.resources]),
            total=np.array([total[row[name]] if name in row else 0.0 for name in self.resources]),
            waiting=int((tasks.status[: tasks.n] == Status.PENDING).sum()),
        )

    def _take(self, place: Place, moment: Moment) -> None:
        manifest, old = moment.objects.get(place), self.known.pop(place, None)
        try:
            new = None if manifest is None else from_manifest(manifest)
        except PumiceError:  # a scheduler skips it, too
            new = None
        if new is not None:
            self.known[place] = new
            self.ingest.upsert(new)
        elif old is not None:
            self.ingest.delete(old)


@dataclass(frozen=True)
class Life:
    """What became of a job: each of its states with its cause, over the whole record."""

    folder: Path
    job: str

    def answer(self, who: Respondent) -> dict[str, Any]:
        """Read the record; also name the namespaces that it knows."""
        del who
        history = History(self.folder)
        every = spans_of(history)
        return {
            "spans": [
                {
                    "state": each.state,
                    "cause": each.cause,
                    "why": each.why,
                    "since": each.since,
                    "until": each.until,
                    "open": each.is_open,
                }
                for each in every
                if each.job == self.job
            ],
            "namespaces": sorted({each.job.partition("/")[0] for each in every}),
            "problems": history.problems[:10],
        }
