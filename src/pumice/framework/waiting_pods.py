"""Why each pod that waits has no node, in the words of Volcano's condition `PodScheduled`.

Used at the close of a session.  Decides nothing.  Equal pods share a text, and a text stands for
its pods as a number: thousands of pods whose conditions stay cost a comparison of two columns.
"""

import numpy as np

from pumice.api.decisions import WaitingPod
from pumice.core.resources import IndexArray
from pumice.core.status import N_STATUS, PENDING, Status
from pumice.core.tables import NOWHERE, wait_number
from pumice.framework.fit_errors import fit_error, no_node_text
from pumice.framework.job_records import Place
from pumice.framework.session import Session

UNSCHEDULABLE = "Unschedulable"
"""The reason by which autoscalers find pods."""
SCHEDULABLE = "Schedulable"
_PROMISED = [int(status) for status in (Status.ALLOCATED, Status.PIPELINED)]
_WAITS = np.isin(np.arange(N_STATUS), [PENDING, *_PROMISED])
_NONE = -1


def waiting_pods(ssn: Session, *, only_changes: bool) -> dict[str, WaitingPod]:
    """Return why pods of jobs in the session wait; gated ones are the cluster's to report.

    With ``only_changes`` only those whose own status says something else, or that still name a
    node that was promised to them before.
    """
    tasks = ssn.snapshot.tasks
    rows = _waiting_rows(ssn)
    if not len(rows):
        return {}
    texts = _Texts(ssn)
    texts.find(rows)
    which = texts.which[rows]
    if only_changes:
        numbers = np.array([wait_number(*each) for each in texts.made], dtype=np.int64)
        stale = (tasks.nominated[rows] != NOWHERE) & (tasks.status[rows] == PENDING)
        changed = (numbers[which] != tasks.stated_wait[rows]) | stale
        rows, which = rows[changed], which[changed]
    return {
        tasks.keys[row]: WaitingPod(*texts.made[text])
        for row, text in zip(rows.tolist(), which.tolist(), strict=True)
    }


def _waiting_rows(ssn: Session) -> IndexArray:
    """Return the pods without a node of jobs that the session contains, but for gated ones."""
    tasks, jobs = ssn.snapshot.tasks, ssn.snapshot.jobs
    rows = np.flatnonzero(_WAITS[tasks.status] & ~tasks.gated & (tasks.job != NOWHERE))
    return rows[jobs.listed[tasks.job[rows]]]


class _Texts:
    """The reasons and messages of a session's pods, each made once."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self.which = np.full(ssn.snapshot.tasks.n, _NONE, dtype=np.int64)
        """The text of each task that waits (n,)."""
        self.made: list[tuple[str, str]] = []
        """Reason and message by text."""

    def find(self, rows: IndexArray) -> None:
        """Find the texts of tasks: what they found, why they found nothing, or the job's."""
        tasks = self._ssn.snapshot.tasks
        self._failed()
        self._promised(rows[tasks.status[rows] != PENDING])
        self._lost()
        self._of_jobs(rows[self.which[rows] == _NONE])

    def _add(self, reason: str, message: str) -> int:
        self.made.append((reason, message))
        return len(self.made) - 1

    def _failed(self) -> None:
        """Tasks that found no node; equal ones share their numbers of nodes by reason."""
        ssn, no_fit = self._ssn, self._ssn.records.no_fit
        owners = ssn.snapshot.tasks.job[[*no_fit]].tolist()
        has_topology = ssn.snapshot.jobs.has_topology
        known: dict[int, int] = {}
        texts = []
        for (row, reasons), job in zip(no_fit.items(), owners, strict=True):
            text = known.get(id(reasons))
            if text is None:
                text = self._add(UNSCHEDULABLE, no_node_text(ssn, ssn.job(job), row))
                if reasons and not has_topology[job]:  # else the text is of its pod or job
                    known[id(reasons)] = text
            texts.append(text)
        self.which[[*no_fit]] = texts

    def _promised(self, rows: IndexArray) -> None:
        """Tasks that have a place in this session, but are not bound to it."""
        tasks = self._ssn.snapshot.tasks
        for row in rows.tolist():
            pipelined = int(tasks.status[row]) == Status.PIPELINED
            self._place(row, Place(int(tasks.node[row]), pipelined))

    def _lost(self) -> None:
        """Tasks that had a place until their gang was given up."""
        for row, place in self._ssn.records.given_up.items():
            self._place(row, place)

    def _place(self, row: int, place: Place) -> None:
        snapshot = self._ssn.snapshot
        found = f"Pod {snapshot.tasks.keys[row]} can possibly be assigned to "
        found += snapshot.nodes.names[place.node]
        if place.pipelined:
            once = "once resource is released and minAvailable is satisfied"
            self.which[row] = self._add(UNSCHEDULABLE, f"{found}, {once}")
        else:
            self.which[row] = self._add(SCHEDULABLE, f"{found}, once minAvailable is satisfied")

    def _of_jobs(self, rows: IndexArray) -> None:
        """Tasks that were not tried: their text is that of their job."""
        ssn, owners = self._ssn, self._ssn.snapshot.tasks.job[rows]
        jobs, at = np.unique(owners, return_inverse=True)
        texts = [self._add(UNSCHEDULABLE, fit_error(ssn, ssn.job(job))) for job in jobs.tolist()]
        self.which[rows] = np.array(texts, dtype=np.int64)[at]
