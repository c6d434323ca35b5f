"""Observes one cycle for one job: its gates as the cycle begins, and the outcome."""

from collections.abc import Iterator

import numpy as np

from pumice.api.codes import Cause
from pumice.api.decisions import Decisions
from pumice.api.wording import counted, first_of, verb
from pumice.core.status import PHASE_CODE
from pumice.core.tables import NOWHERE
from pumice.examine.findings import Finding, ObjectRef, Position
from pumice.examine.funnel import Funnel
from pumice.examine.gang_quota import still_needed
from pumice.examine.job_outcome import Watcher
from pumice.examine.limits import refused
from pumice.examine.needed_pods import pending_rows
from pumice.examine.node_causes import finding_of
from pumice.examine.order_keys import OrderBook
from pumice.examine.session_causes import Examination, examine
from pumice.framework.job_records import Stage
from pumice.framework.refusals import Why
from pumice.framework.session import Session

_NAMED = 3
_IN_ITS_QUEUE = (Stage.QUEUE, Stage.QUOTA)


class Examiner(Watcher):
    """Asks every gate as the cycle begins; at its end finds the jobs ahead."""

    def __init__(self, key: str, cycle: int = 1) -> None:
        super().__init__(key, cycle)
        self.book: OrderBook | None = None
        """Keys that others use, too; made if missing."""
        self.asks = True
        """Whether every gate is asked, or only the outcome is observed."""
        self.examination: Examination | None = None
        self.position: Position | None = None
        self.actions: tuple[str, ...] = ()
        """The actions of the configuration, in their order."""
        self.ahead: Finding | None = None
        self.limit: Finding | None = None
        """The limit of a queue that leaves no room beside the jobs ahead."""
        self.shut: list[Finding] = []
        """Constraints without which nodes would have room beside the jobs ahead."""

    def opened(self, ssn: Session) -> None:
        """Ask every gate."""
        super().opened(ssn)
        self.actions = tuple(ssn.actions)
        row = ssn.snapshot.jobs.row_of.get(self._key)
        if row is None or not ssn.snapshot.jobs.listed[row]:
            return
        self._book = self.book or OrderBook(ssn)
        self._stated = ssn.snapshot.jobs.phase.copy()
        self.examination = examine(ssn, row) if self.asks else Examination()

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        """Find the jobs that went first."""
        super().decided(ssn, decisions)
        row = ssn.snapshot.jobs.row_of.get(self._key)
        if row is None or self.examination is None:
            return
        self.position = self._place(ssn, row)
        if self.outcome.started or self.outcome.makes_room or not self.asks:
            return
        self.ahead = self._who_is_ahead(ssn, row)
        if self.ahead is not None:
            self.limit = self._limit_beside_them(ssn, row)
            self.shut = list(self._shut_beside_them(ssn, row))

    def _place(self, ssn: Session, row: int) -> Position | None:
        jobs, queues = ssn.snapshot.jobs, ssn.snapshot.queues
        queue = int(jobs.queue[row])
        line = self._book.jobs.get(queue, [])
        if row not in line:
            return None
        at = line.index(row)
        before = line[max(0, at - _NAMED) : at]
        turn = ssn.records.turns.get(row)
        return Position(
            queue=queues.names[queue],
            place=at + 1,
            of=len(line),
            queue_place=self._book.queues.index(queue) + 1,
            queues=len(self._book.queues),
            turn=None if turn is None else turn + 1,
            behind=[(jobs.keys[each], self._book.why(each, row)) for each in before],
        )

    def _who_is_ahead(self, ssn: Session, row: int) -> Finding | None:
        """Return the jobs that received in this cycle what the job needs, the first one first."""
        jobs = ssn.snapshot.jobs
        stop = self.outcome.last
        if stop is not None and stop.stage is Stage.ENQUEUE:
            rows = self._admitted(ssn)
        else:
            rows = self._served(ssn, row)
        rows = [each for each in rows if each != row]
        if stop is not None and stop.stage in _IN_ITS_QUEUE:
            rows = [each for each in rows if self._shares_queue(ssn, each, row)]
        if not rows:
            return None
        turns = ssn.records.turns
        rows.sort(key=lambda each: (turns.get(each, len(turns)), jobs.keys[each]))
        names = [jobs.keys[each] for each in rows]
        key = self._book.why(rows[0], row)
        admitted = stop is not None and stop.stage is Stage.ENQUEUE
        return Finding(
            Cause.JOB_AHEAD,
            _went_first(names, "admitted" if admitted else "placed", key),
            ObjectRef.of_key("PodGroup", names[0]),
            {"jobs": names, "key": key},
        )

    def _limit_beside_them(self, ssn: Session, row: int) -> Finding | None:
        """Return the limit of a queue that the job and those ahead of it exceed together."""
        record = ssn.records.by_job.get(row)
        if record is None or record.why is not Why.OVER_QUOTA:
            return None
        if record.numbers.get("at") not in ssn.snapshot.queues.row_of:
            return None
        admitting = record.stage is Stage.ENQUEUE
        code = Cause.QUEUE_OVER_CAPABILITY
        found = refused(ssn, code, record.why, record.numbers, row, admitting=admitting)
        return None if found.numbers.get("wholeCluster") else found

    def _shut_beside_them(self, ssn: Session, row: int) -> Iterator[Finding]:
        """Yield the constraints that alone keep the job from nodes which those ahead left free."""
        pending = ssn.ordering.sort_tasks(pending_rows(ssn, row))
        if not pending or self.examination is None or not self.examination.starts:
            return
        funnel = Funnel(ssn, ssn.task(pending[0]))
        needed = min(max(still_needed(ssn, row), 1), len(pending))
        for constraint, opened in funnel.but_for():
            held = funnel.holds(funnel.fitting | opened)
            if constraint.code is not Cause.INSUFFICIENT_RESOURCE and held >= needed:
                yield finding_of(funnel, constraint)

    def _admitted(self, ssn: Session) -> list[int]:
        """List the jobs that this cycle admitted to their queue."""
        jobs = ssn.snapshot.jobs
        pending = np.isin(self._stated, [PHASE_CODE[""], PHASE_CODE["Pending"]])
        now = jobs.phase[: len(pending)] == PHASE_CODE["Inqueue"]
        return np.flatnonzero(pending & now & jobs.listed[: len(pending)]).tolist()

    def _served(self, ssn: Session, row: int) -> list[int]:
        """List the jobs whose pods got room in this cycle that the job could use."""
        tasks, decided = ssn.snapshot.tasks, self.decisions
        pods = [tasks.row_of[pod] for pod in {**decided.binds, **decided.pipelined}]
        pending = ssn.ordering.sort_tasks(ssn.pending_tasks(row))
        if pending:
            usable = Funnel(ssn, ssn.task(pending[0])).usable
            pods = [pod for pod in pods if usable[tasks.node[pod]]]
        rows = {int(tasks.job[pod]) for pod in pods}
        return [each for each in rows if each != NOWHERE]

    def _shares_queue(self, ssn: Session, other: int, row: int) -> bool:
        jobs = ssn.snapshot.jobs
        return int(jobs.queue[other]) == int(jobs.queue[row]) or self._at_above()

    def _at_above(self) -> bool:
        """Return whether a queue above the job's own refused it."""
        stop = self.outcome.last
        at = stop.numbers.get("at") if stop is not None else None
        return at is not None and at != self.outcome.queue


def _went_first(names: list[str], done: str, key: str) -> str:
    """Describe which jobs were placed or admitted before, and by which key."""
    n = len(names)
    who = f"job {names[0]}" if n == 1 else f"{counted(n, 'job')} ({first_of(names, _NAMED)})"
    why = f"; {names[0]} goes first: {key}" if key else ""
    was, hold = verb(n, "was", "were"), verb(n, "holds", "hold")
    return f"{who} {was} {done} before it in this cycle and {hold} what it needs{why}"
