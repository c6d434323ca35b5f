"""A scheduler that records what it sees and decides, for `--record`.

The cluster is wrapped, so that objects are recorded as the scheduler gets them; each cycle follows.
"""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from pumice.api.decisions import Decisions
from pumice.cluster.base import Cluster
from pumice.records.entries import CycleEntry, Settings
from pumice.records.observed import BESIDE, Follower, ObservedCluster
from pumice.records.recorder import Limits, Recorder
from pumice.serve.scheduler.live_scheduler import Cycle

_C = TypeVar("_C")


class Recording:
    """Records one scheduler until it is closed."""

    def __init__(
        self,
        folder: Path,
        now: Callable[[], float],
        *,
        conf: Callable[[], tuple[str, str] | None],
        limits: Limits | None = None,
        steady: Callable[[], float] | None = None,
        beside: Cluster | None = None,
        hidden: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Make one; ``conf`` returns text and place of the configuration that counts.

        ``beside`` is a cluster of which kinds are recorded that the scheduler does not read;
        ``hidden`` returns those that it cannot show at present, with the reasons.

        Raises:
            OutputError: the folder cannot be made or written to.
            InputError: it holds something else, or another process records to it.
        """
        self.recorder = Recorder(folder, now, by="scheduler", limits=limits)
        self._conf = conf
        self._steady = steady or now
        self._beside = None
        if beside is not None:
            self._beside = Follower(beside, self.recorder, BESIDE, hidden=hidden)

    def observed(self, cluster: _C) -> _C:
        """Return a cluster for the scheduler alone: what it is shown is recorded."""
        return cast("_C", ObservedCluster(cluster, self.recorder))

    def note_conf(self) -> None:
        """Record the configuration if it changed."""
        found = self._conf()
        if found is not None:
            self.recorder.configured(*found)

    def finished(self, cycle: Cycle) -> None:
        """Record a cycle, and the measured use that it saw."""
        if cycle.usage is not None:
            self.recorder.measured(cycle.usage)
        self.note_conf()
        self.recorder.decided(cycle_entry(cycle, self._steady()))
        if self._beside is not None:
            self._beside.step()

    def start(self, settings: Settings) -> None:
        """Begin to write, with the options of the scheduler that decide with it."""
        self.recorder.settings(settings)
        self.note_conf()
        self.recorder.start()

    def close(self) -> None:
        """Write the rest and end."""
        self.recorder.close()


def cycle_entry(cycle: Cycle, steady: float = 0.0) -> CycleEntry:
    """Write a cycle as a line of a record."""
    decided = cycle.decisions
    return CycleEntry(
        now=cycle.at,
        steady=steady,
        binds=dict(decided.binds),
        evictions={pod: decided.evicted_by.get(pod, "") for pod in decided.evictions},
        beneficiaries=dict(decided.beneficiaries),
        pipelined=dict(decided.pipelined),
        phases={group: state.phase for group, state in decided.pod_groups.items()},
        results=[
            (each.what, each.key, each.uid, type(each.error).__name__ if each.error else "")
            for each in cycle.writes.results
        ],
        dropped=cycle.dropped,
        arriving=[*cycle.withheld.jobs],
        figures=not cycle.withheld.figures,
        digest=digest(decided),
    )


def digest(decided: Decisions) -> str:
    """Return a short form of all decisions, the same for the same ones."""
    text = msgspec.json.encode(decided.to_expect())
    return hashlib.blake2b(text, digest_size=8).hexdigest()
