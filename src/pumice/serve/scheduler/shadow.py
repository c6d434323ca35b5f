"""A shadow scheduler: it decides every cycle, writes nothing, and compares.

The actions of the running scheduler since the last cycle are compared with the shadow's decisions.
"""

import json
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from pumice import logs
from pumice.api.output_files import write_file
from pumice.api.times import rfc3339
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Task
from pumice.errors import OutputError
from pumice.metrics import Metrics
from pumice.serve.scheduler.live_scheduler import Cycle

_log = logs.get("shadow")
PATIENCE_S: Final = 10.0
"""How long the running scheduler may take for a decision of the shadow, before it counts."""
_KEPT: Final = 200
"""Differences that a report lists, the last ones."""
_REPORT_EACH_S: Final = 5.0

SAME, OTHER_NODE, ONLY_RUNNING = "same", "other_node", "only_running"
"""Outcomes: both did it; both, on different nodes; only the running scheduler did."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """An action of the running scheduler that the shadow decided differently."""

    at: str
    pod: str
    job: str
    what: str
    """``bind`` or ``evict``."""
    running: str
    """What the running scheduler did."""
    shadow: str
    """What the shadow decided, or why it decided nothing."""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A pod that the shadow would place and the running scheduler leaves waiting."""

    pod: str
    job: str
    node: str
    since: str
    running_says: str
    """The running scheduler's own message on the pod, if any."""


@dataclass(frozen=True)
class _Choice:
    """What the shadow decided for a pod, and since when."""

    node: str
    since: float


class Shadow:
    """Compares cycle by cycle; counts in metrics, lists differences in a report."""

    def __init__(self, metrics: Metrics, report: str = "") -> None:
        self._metrics = metrics
        self._report = Path(report) if report else None
        self._written_at = -_REPORT_EACH_S
        self._since: float | None = None
        self._cycles = 0
        self._binds: Counter[str] = Counter()
        self._evictions: Counter[str] = Counter()
        self._differences: deque[Difference] = deque(maxlen=_KEPT)
        self._pending: dict[str, str] = {}
        """Pods that waited in the last cycle: key to uid."""
        self._running: dict[str, str] = {}
        self._choices: dict[str, _Choice] = {}
        self._evicted: dict[str, str] = {}
        """Pods that the shadow would have evicted: key to action."""
        self._reasons: Mapping[str, str] = {}

    def see(self, cycle: Cycle, snapshot: Snapshot) -> None:
        """Compare what happened since the last cycle, then keep this one's decisions."""
        self._since = cycle.at if self._since is None else self._since
        self._cycles += 1
        self._judge_binds(cycle.at, snapshot)
        self._judge_evictions(cycle.at, snapshot)
        self._remember(cycle, snapshot)
        self._metrics.shadow_waiting(len(self._overdue(cycle.at)))
        if self._report is not None and cycle.at - self._written_at >= _REPORT_EACH_S:
            self._written_at = cycle.at
            self._write(self._report, self.report(cycle.at, snapshot))

    # What the running scheduler did

    def _judge_binds(self, now: float, snapshot: Snapshot) -> None:
        tasks, nodes = snapshot.tasks, snapshot.nodes.names
        for pod, uid in self._pending.items():
            row = tasks.row_of.get(pod)
            if row is None or tasks.uids[row] != uid or tasks.node[row] == NOWHERE:
                continue
            theirs, choice = nodes[tasks.node[row]], self._choices.get(pod)
            if choice is None:
                reason = self._reasons.get(_job(snapshot, row), "not placed")
                self._differ(now, snapshot, row, what="bind", running=theirs, shadow=reason)
            elif choice.node != theirs:
                self._differ(now, snapshot, row, what="bind", running=theirs, shadow=choice.node)
            outcome = (
                ONLY_RUNNING if choice is None else SAME if choice.node == theirs else OTHER_NODE
            )
            self._binds[outcome] += 1
            self._metrics.shadow_bind(outcome)

    def _judge_evictions(self, now: float, snapshot: Snapshot) -> None:
        tasks = snapshot.tasks
        for pod, uid in self._running.items():
            row = tasks.row_of.get(pod)
            if row is None or tasks.uids[row] != uid or int(tasks.status[row]) != Status.RELEASING:
                continue
            if not _is_evicted(Task(snapshot, row)):  # a user may delete a pod, too
                continue
            outcome = SAME if pod in self._evicted else ONLY_RUNNING
            if outcome == ONLY_RUNNING:
                did = {"running": "evicted", "shadow": "not evicted"}
                self._differ(now, snapshot, row, what="evict", **did)
            self._evictions[outcome] += 1
            self._metrics.shadow_eviction(outcome)

    def _differ(
        self, now: float, snapshot: Snapshot, row: int, *, what: str, running: str, shadow: str
    ) -> None:
        pod = snapshot.tasks.keys[row]
        job = _job(snapshot, row)
        found = Difference(
            at=rfc3339(now), pod=pod, job=job, what=what, running=running, shadow=shadow
        )
        self._differences.append(found)
        _log.v(1).info("decided otherwise", pod=pod, what=what, running=running, shadow=shadow)

    # What the shadow decided

    def _remember(self, cycle: Cycle, snapshot: Snapshot) -> None:
        tasks, decided = snapshot.tasks, cycle.decisions
        pending = np.flatnonzero((tasks.status == Status.PENDING) & (tasks.job != NOWHERE))
        running = np.flatnonzero((tasks.status == Status.RUNNING) & (tasks.job != NOWHERE))
        self._pending = {tasks.keys[row]: tasks.uids[row] for row in pending.tolist()}
        self._running = {tasks.keys[row]: tasks.uids[row] for row in running.tolist()}
        known, self._choices = self._choices, {}
        for pod, node in decided.binds.items():
            before = known.get(pod)
            self._choices[pod] = _Choice(node, before.since if before is not None else cycle.at)
        self._evicted = dict(decided.evicted_by)
        self._reasons = dict(decided.explanations)

    def _overdue(self, now: float) -> dict[str, _Choice]:
        return {
            pod: choice for pod, choice in self._choices.items() if now - choice.since >= PATIENCE_S
        }

    # The report

    def report(self, now: float, snapshot: Snapshot) -> dict[str, Any]:
        """Sum up as plain data."""
        judged = self._binds.total()
        return {
            "since": rfc3339(now if self._since is None else self._since),
            "until": rfc3339(now),
            "cycles": self._cycles,
            "agreement": round(1 - self._binds[ONLY_RUNNING] / judged, 4) if judged else None,
            "binds": {
                outcome: self._binds[outcome] for outcome in (SAME, OTHER_NODE, ONLY_RUNNING)
            },
            "evictions": {outcome: self._evictions[outcome] for outcome in (SAME, ONLY_RUNNING)},
            "wouldPlace": [asdict(each) for each in self._waiting(now, snapshot)],
            "differences": [asdict(each) for each in self._differences],
        }

    def _waiting(self, now: float, snapshot: Snapshot) -> list[Waiting]:
        tasks = snapshot.tasks
        return [
            Waiting(
                pod=pod,
                job=_job(snapshot, tasks.row_of[pod]),
                node=choice.node,
                since=rfc3339(choice.since),
                running_says=_last_words(Task(snapshot, tasks.row_of[pod])),
            )
            for pod, choice in list(self._overdue(now).items())[:_KEPT]
            if pod in tasks.row_of
        ]

    def _write(self, path: Path, report: Mapping[str, Any]) -> None:
        """Replace the report; a full disk must not end the loop."""
        try:
            write_file(path, f"{json.dumps(report, indent=1)}\n")
        except OutputError as error:
            _log.error("cannot write the report", error=error)


def _job(snapshot: Snapshot, row: int) -> str:
    return snapshot.jobs.keys[snapshot.tasks.job[row]]


def _is_evicted(task: Task) -> bool:
    """Return whether a scheduler marked a pod that it deleted."""
    return any(
        each.reason == "Evict" or each.type == "DisruptionTarget"
        for each in task.pod.status.conditions
    )


def _last_words(task: Task) -> str:
    conditions = (each for each in task.pod.status.conditions if each.type == "PodScheduled")
    return next((each.message or each.reason for each in conditions), "")
