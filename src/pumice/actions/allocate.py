"""allocate: place the tasks of admitted jobs on nodes, gang by gang."""

from collections import deque
from functools import cached_property

from pumice.core.tables import NOWHERE
from pumice.framework.arguments import AllocateArguments, arguments_of
from pumice.framework.job_placement import JobMemory, JobPlacement
from pumice.framework.ordering import Heap
from pumice.framework.placement.equal_jobs import RefusedTurns
from pumice.framework.placement.turns import BatchedTurns
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Stage, Verdict, Why
from pumice.framework.session import Session
from pumice.framework.statement import Statement
from pumice.framework.topology.search import DomainSearch, Worksheet


def allocate(ssn: Session) -> None:
    """Take the best queue, its best job, place one round, and continue until nothing is left."""
    considered = ssn.considered
    Allocation(ssn).run()
    ssn.considered = considered


class Allocation:
    """The queues, jobs and tasks that one run of allocate works through."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self._remember_errors = arguments_of(
            ssn.action_arguments, "allocate", AllocateArguments
        ).remember_errors
        self._tasks: dict[int, deque[int]] = {}
        self._memory = ssn.job_memory
        self._sheets: dict[int, Worksheet] = {}
        self._jobs = self._collect()

    @cached_property
    def _refused(self) -> RefusedTurns:
        return RefusedTurns(self._ssn, self._ssn.equal_jobs)

    @cached_property
    def _search(self) -> DomainSearch:
        return DomainSearch(self._ssn, remember_errors=self._remember_errors)

    def _collect(self) -> dict[int, Heap]:
        """Find jobs with something to place; admit pending ones if no enqueue action will."""
        ssn, snapshot = self._ssn, self._ssn.snapshot
        found: dict[int, list[int]] = {}
        if "enqueue" not in ssn.actions:
            for job in ssn.pending_jobs():
                ssn.set_phase(job, "Inqueue")
        waiting = [job for job in ssn.waiting_jobs() if self._is_valid(job)]
        refused = {*ssn.refused_ahead(waiting)}
        for job in waiting:
            rows = [] if job in refused else ssn.tasks_to_allocate(job)
            if rows:
                found[job] = rows
        ssn.ordering.sort_ahead([rows for rows in found.values() if len(rows) > 1])
        by_queue: dict[int, list[int]] = {}
        for job, rows in found.items():
            self._tasks[job] = deque(rows if len(rows) == 1 else ssn.ordering.sort_tasks(rows))
            by_queue.setdefault(int(snapshot.jobs.queue[job]), []).append(job)
            if ssn.topology.needs_search(job):
                self._sheets[job] = self._search.worksheet(job)
        return {queue: ssn.ordering.job_heap(rows) for queue, rows in by_queue.items()}

    def _is_valid(self, job: int) -> bool:
        known = self._ssn.known_refused
        if known is not None and known[job]:
            return True
        problem = self._ssn.policy.job_valid(job)
        if problem:
            self._ssn.records.note(job, Stage.VALIDATE, Why.NOT_VALID, problem=problem)
        return not problem

    def run(self) -> None:
        """Work through the queues."""
        ssn = self._ssn
        if not self._jobs:
            return
        queues = ssn.ordering.queue_heap(self._jobs, keep_keys=True)
        batched = BatchedTurns(ssn, self._jobs, self._tasks, self._memory)
        while len(queues):
            if batched.take(queues):
                continue
            queue = queues.pop()
            batched.forget(queue)
            jobs = self._jobs[queue]
            if ssn.policy.overused(queue):
                self._note_overused(queue, queues)
                continue
            if not len(jobs):
                continue
            job = jobs.pop()
            ssn.records.take_turn(job)
            if not (self._may_try(job) and self._take_turn(job)):
                ssn.policy.job_blocked(job)
            elif len(self._sheets.get(job, self._tasks[job])):
                jobs.push(job)
            queues.push(queue)

    def _take_turn(self, job: int) -> bool:
        """Place one round of a job, unless an equal one was refused; True if it was committed."""
        if len(self._tasks) == 1:
            return self._place(job)
        equal = self._refused.begin(job, self._tasks[job])
        if equal != NOWHERE:
            known = self._memory[equal]
            self._memory[job] = JobMemory({*known.failed_roles}, known.mixed_roles)
            return False
        if self._place(job):
            return True
        self._refused.end()
        return False

    def _note_overused(self, queue: int, queues: Heap) -> None:
        """Refuse the jobs of a queue; one at a time where plugins hear of each in its turn."""
        jobs, each_in_turn = self._jobs[queue], self._ssn.hooks.tiers(Plugin.on_blocked)
        while len(jobs):
            job = jobs.pop()
            self._ssn.records.note(job, Stage.QUEUE, Why.QUEUE_OVERUSED, queue=queue)
            if each_in_turn:
                self._ssn.policy.job_blocked(job)
                queues.push(queue)
                return

    def _place(self, job: int) -> bool:
        """Place one round of a job; True if it was committed."""
        ssn = self._ssn
        stmt, before = ssn.statement(), ssn.records.by_job.get(job)
        if job in self._sheets:
            if not self._place_in_domain(stmt, job):
                stmt.discard()
                return False
        else:
            JobPlacement(
                ssn,
                job,
                self._tasks[job],
                self._memory.setdefault(job, JobMemory()),
                is_done=lambda: ssn.policy.job_ready(job),
                remember_errors=self._remember_errors,
                on_placed=ssn.topology.follow_job(job),
            ).run(stmt)
            ssn.topology.stop_following()
        is_silent = ssn.records.by_job.get(job) is before
        ready = ssn.policy.job_ready(job)
        if ready and len(stmt) and not self._may_start(job):
            stmt.discard()
            return False
        if ready:
            if len(stmt) or is_silent:  # else the record keeps why the tasks beyond the gang wait
                ssn.records.note(job, Stage.DONE, Why.SCHEDULED)
            stmt.commit()
            return True
        if ssn.policy.job_pipelined(job):
            ssn.records.note_eviction(job, [])
            return False
        if is_silent:
            self._note_short(job, ready)
        stmt.discard()
        return False

    def _may_try(self, job: int) -> bool:
        """Return whether a job is placed; one that is watched is, to see what else it lacks."""
        may = self._ssn.policy.may_try(job)
        if not may:
            self._ssn.records.note_refused(job, Stage.QUEUE, may, Why.QUEUE_POSITION)
        return bool(may) or job in self._ssn.records.watched

    def _may_start(self, job: int) -> bool:
        may = self._ssn.policy.may_start(job)
        if not may:
            self._ssn.records.note_refused(job, Stage.QUEUE, may, Why.QUEUE_POSITION)
        return bool(may)

    def _note_short(self, job: int, no: Verdict) -> None:
        view = self._ssn.job(job)
        placed = view.ready + view.pending_best_effort
        needed = view.min_member
        self._ssn.records.note_refused(
            job, Stage.GANG, no, Why.GANG_SHORT, placed=placed, needed=needed
        )

    def _place_in_domain(self, stmt: Statement, job: int) -> bool:
        """Place one round of a job in the best network domain; False if none takes it."""
        trial = self._search.place(stmt, job, self._sheets[job])
        if trial is None:
            return False
        self._sheets[job] = trial.left
        if self._ssn.policy.job_ready(job):
            self._search.settle(self._ssn.job(job), trial)
        return True
