"""The order in which queues and jobs are considered, and which plugin decides that.

Asked of the same ordering hooks that a cycle asks, when the cycle begins; the outcome is taken
from the cycle itself.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pumice.api.decisions import Decisions
from pumice.api.wording import counted
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.missing_pods import lacks_pods, quota_findings
from pumice.diagnosis.runner import Replay
from pumice.examine.job_outcome import reservation, waiting_lines
from pumice.examine.order_keys import Keys, difference, job_keys, ordering_hooks, queue_keys
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.scheduler import Observer


@dataclass(frozen=True, kw_only=True)
class Line:
    """One queue or job at its place in the order."""

    name: str
    keys: dict[str, str] = field(default_factory=dict)
    """Plugin to its order in words."""
    values: dict[str, list[float]] = field(default_factory=dict)
    """Plugin to the keys it gave; lower goes first."""
    after: str = ""
    """Why it comes after the one before it; empty for the first."""
    turn: int | None = None
    """Its place in the order in which jobs were actually taken, queues taking turns; from 1."""
    outcome: str = ""
    reservation: Mapping[str, Any] | None = None
    """When and on which nodes a job is promised to start, if it is."""


@dataclass(frozen=True, kw_only=True)
class QueueOrder:
    """Queues with waiting jobs, and those jobs, first to last."""

    queues: list[Line]
    jobs: dict[str, list[Line]]
    rules: list[tuple[str, str, str]]
    """Queues or jobs, the plugin, and what it puts first, in the order in which they are asked."""
    without_pods: dict[str, str] = field(default_factory=dict)
    """Jobs that are not in line because quotas refuse all their pods, and why."""

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain data."""
        return asdict(self)


def queue_order(world: ClusterState) -> QueueOrder:
    """Return the order in which the next cycle will consider queues and jobs."""
    watcher = _Watcher(world)
    Replay(world).decide(watcher)
    return watcher.order


class _Watcher(Observer):
    """Asks for the order when a session opens, and adds the outcome when it is decided."""

    def __init__(self, world: ClusterState) -> None:
        self._world = world

    def opened(self, ssn: Session) -> None:
        """Put queues and jobs in order."""
        lines, table = waiting_lines(ssn), ssn.snapshot.queues
        self._rows: dict[str, list[int]] = {}
        rows = ssn.ordering.sort_queues(lines)
        jobs: dict[str, list[Line]] = {}
        for row in rows:
            mine = ssn.ordering.sort_jobs(lines[row])
            self._rows[table.names[row]] = mine
            jobs[table.names[row]] = _job_lines(ssn, mine)
        self.order = QueueOrder(queues=_queue_lines(ssn, rows), jobs=jobs, rules=_rules(ssn))

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        """Add when each job had its turn, and the result."""
        for queue, rows in self._rows.items():
            turns = [
                self._with_outcome(ssn, line, row, decisions)
                for line, row in zip(self.order.jobs[queue], rows, strict=True)
            ]
            self.order.jobs[queue] = turns
        in_line = {line.name for lines in self.order.jobs.values() for line in lines}
        for job in self._world.refusals:
            if job not in in_line and (found := quota_findings(self._world, job)):
                self.order.without_pods[job] = found[0].text

    def _with_outcome(self, ssn: Session, line: Line, row: int, decisions: Decisions) -> Line:
        turn = ssn.records.turns.get(row)
        keys, own = ssn.snapshot.tasks.keys, ssn.snapshot.jobs.tasks[row]
        bound = sum(keys[each] in decisions.binds for each in own)
        outcome = counted(bound, "pod") + " bound" if bound else self._why(line.name, decisions)
        return replace(
            line,
            turn=None if turn is None else turn + 1,
            outcome=outcome,
            reservation=reservation(ssn, row),
        )

    def _why(self, job: str, decisions: Decisions) -> str:
        """Return why a job got no node; a session knows of no quota that refuses pods."""
        refused = quota_findings(self._world, job) if lacks_pods(decisions, job) else []
        if refused:
            return refused[0].text
        return decisions.explanations.get(job) or "nothing to place"


def _job_lines(ssn: Session, rows: list[int]) -> list[Line]:
    return _lines([ssn.snapshot.jobs.keys[row] for row in rows], *job_keys(ssn, rows))


def _queue_lines(ssn: Session, rows: list[int]) -> list[Line]:
    return _lines([ssn.snapshot.queues.names[row] for row in rows], *queue_keys(ssn, rows))


def _lines(
    names: Sequence[str], keys: Sequence[Keys], ties: Sequence[tuple[float, str]]
) -> list[Line]:
    return [
        Line(
            name=name,
            keys={each.plugin: each.words(i) for each in keys},
            values={each.plugin: each.rows[i] for each in keys},
            after=_why(i, keys, ties),
        )
        for i, name in enumerate(names)
    ]


def _why(i: int, keys: Sequence[Keys], ties: Sequence[tuple[float, str]]) -> str:
    """Name the first difference from the one before."""
    return difference(i - 1, i, keys, ties) if i else ""


def _rules(ssn: Session) -> list[tuple[str, str, str]]:
    out = []
    orders = {"queues": (Plugin.order_queues, Plugin.compare_queues), "jobs": (Plugin.order_jobs,)}
    for kind, hooks in orders.items():
        for plugin, hook, _ in ordering_hooks(ssn, *hooks):
            method = getattr(type(plugin), hook.__name__)
            text = (inspect.getdoc(method) or "").partition("\n")[0]
            out.append((kind, plugin.name, text.rstrip(".")))
        out.append((kind, "", "The older one first, then by name"))
    return out
