"""Jobs on their way: pods start, finish, are evicted and lost, and decisions are carried out."""

import heapq
import math
from collections.abc import Callable, Mapping
from itertools import groupby

import msgspec

from pumice.api.decisions import Decisions
from pumice.api.kinds import DEFAULT_QUEUE
from pumice.api.objects import PodGroupSpec
from pumice.api.wording import part_of_its, verb
from pumice.sim.direct_cycle import DirectDecisions
from pumice.sim.event_log import NONE, EventKind, EventLog
from pumice.sim.job_run import DELETED, JobRun, SimulationCost, State
from pumice.sim.options import Evicted
from pumice.sim.sim_cluster import SimCluster
from pumice.sim.waiting_jobs import WaitingJobs


class Execution:
    """Writes what happens to jobs into the tables and the log."""

    def __init__(
        self,
        cluster: SimCluster,
        waiting_jobs: WaitingJobs,
        evicted: Evicted,
        may_unlist: Callable[[JobRun], bool],
        *,
        grace: float = 0.0,
        learned: Callable[[int], float | None] | None = None,
    ) -> None:
        self._cluster = cluster
        self._may_unlist = may_unlist
        """Tells whether a job with rows may go on without them."""
        self._waiting_jobs = waiting_jobs
        self._evicted = evicted
        self._learned = learned
        """Returns how long jobs (rows) run of which nobody states it."""
        self._grace = grace
        """Seconds for which an evicted pod keeps its place."""
        self._leaving: list[tuple[float, int, JobRun, int]] = []
        """When evicted pods are gone: time, a number, job and pod."""
        self.log = EventLog()
        self.cost = SimulationCost()
        self.now = 0.0
        """Seconds since the simulation began."""
        self.n_ended = 0
        """Jobs that have ended."""
        self._ends: list[tuple[float, int, JobRun]] = []
        self._n_ends = 0
        self._outdated_phases: dict[JobRun, None] = {}
        """Jobs whose pods got nodes in the last cycle: the next one will write that they run."""

    @property
    def next_end(self) -> float | None:
        """When the next pods will have finished."""
        return self._ends[0][0] if self._ends else None

    @property
    def next_leave(self) -> float | None:
        """When the next evicted pod is gone."""
        return self._leaving[0][0] if self._leaving else None

    @property
    def has_outdated_phases(self) -> bool:
        """Whether a cycle has to write that jobs run."""
        return bool(self._outdated_phases)

    def arrive(self, run: JobRun) -> None:
        """Make a new job wait."""
        self.log.add(self.now, EventKind.ARRIVE, run.number)
        self._waiting_jobs.add(run)

    def arrive_running(self, run: JobRun, nodes: Mapping[str, str]) -> None:
        """Add a job of which pods run on nodes already."""
        self.log.add(self.now, EventKind.ARRIVE, run.number)
        self._waiting_jobs.learn(run.kind)
        run.phase = "Running"
        self._cluster.add_job(run)
        self._bind(nodes, {})
        self._set_phase(run, "Running")

    # What becomes of jobs besides

    def cancel(self, run: JobRun) -> None:
        """Delete a job, as its user did."""
        for task in run.tasks_in(State.RUNNING):
            run.move(task, State.DONE)
            self.log.add(self.now, EventKind.FINISH, run.number, task, run.nodes[task])
            run.nodes[task] = NONE
        for task in run.tasks_in(State.WAITING):
            run.move(task, State.LOST)
            self.log.add(self.now, EventKind.LOSE, run.number, task)
        if not run.in_tables:
            self._waiting_jobs.withdraw(run)
        self._end_job(run)
        run.reason = DELETED

    def regroup(self, run: JobRun, group: PodGroupSpec) -> None:
        """Change the pod group of a job: queue, priority or size have changed."""
        is_fresh = not run.in_tables
        if is_fresh:
            self._waiting_jobs.withdraw(run)
        else:
            self._waiting_jobs.leave(run)
        run.spec = msgspec.structs.replace(
            run.spec,
            group=group,
            queue=group.queue or DEFAULT_QUEUE,
            priority_class=group.priority_class_name,
            min_member=group.min_member or 0,
        )
        classes = self._waiting_jobs.job_classes
        classes.learn([run.spec])
        run.kind = classes.of(run.spec)
        if is_fresh:
            self._waiting_jobs.add(run)
        else:
            self._set_phase(run, run.phase)

    def empty_node(self, node: int) -> None:
        """Evict the pods of a node (row) that is lost or drained."""
        for run in self._evict([run.pod_key(i) for run, i in self._cluster.runs_on(node)]):
            self._set_phase(run, run.phase)

    def finish(self) -> bool:
        """End the pods of a job whose time has come; False if they were evicted before."""
        end, _, run = heapq.heappop(self._ends)
        if run.is_unlisted:
            self._finish_whole(run, end)
            return True
        ends = run.ends
        tasks = [i for i in run.tasks_in(State.RUNNING) if ends[i] == end]
        if not tasks:
            return False
        for task in tasks:
            run.move(task, State.DONE)
            self.log.add(end, EventKind.FINISH, run.number, task, run.nodes[task])
            run.nodes[task] = NONE
        if run.is_over:
            self._end_job(run)
        else:
            self._cluster.finish_pods(run, tasks)
        return True

    def leave(self) -> None:
        """Delete an evicted pod whose time is over; a new one may wait in its place."""
        _, _, run, task = heapq.heappop(self._leaving)
        run.leaving.discard(task)
        self._cluster.delete_pod(run, task)
        if run.is_over:
            self._forget(run)
        elif run.states[task] == State.WAITING:
            self._make_again(run, task)

    def _make_again(self, run: JobRun, task: int) -> None:
        run.missing.append(task)
        if not run.kind.late_pods:
            self._cluster.create_missing_pods(run, self.now)

    def _forget(self, run: JobRun) -> None:
        """Delete a job that is over, once all its pods are gone."""
        if run.in_tables and not run.leaving:
            self._cluster.delete_job(run)

    def _finish_whole(self, run: JobRun, end: float) -> None:
        """End a job all of whose pods end together."""
        self._cluster.unlisted.end(run, run.nodes)
        run.move_all(State.DONE)
        self.log.add_all(end, EventKind.FINISH, run.number, run.nodes)
        run.nodes = [NONE] * len(run.nodes)
        self._end_job(run)

    def _end_job(self, run: JobRun) -> None:
        self._waiting_jobs.leave(run)
        run.ended = self.now
        run.reason = ""
        if not run.is_finished:
            n = run.tally[State.LOST]
            lost = f"{part_of_its(n, run.spec.size, 'pod')} {verb(n, 'was', 'were')} lost"
            run.reason = f"{lost} by evictions"
        self.n_ended += 1
        self._forget(run)

    # Decisions

    def apply_directly(self, decisions: DirectDecisions) -> bool:
        """Carry out what was decided without a session; return whether anything changed."""
        changed = bool(decisions.admitted) or any(map(_is_outdated, self._outdated_phases))
        self.write_outdated_phases()
        self._waiting_jobs.hide_all()
        for run, nodes in decisions.started.items():
            self._waiting_jobs.start(run)
            self._cluster.unlisted.start(run)
            self._run_whole(run, nodes)
            self.cost.decisions += len(nodes)
            self._outdated_phases[run] = None
        for run in sorted(decisions.admitted):
            if run in decisions.started:
                self._note_admission(run)
            elif run.in_tables:
                self._set_phase(run, "Inqueue")
            else:
                self._waiting_jobs.admit(run)
                self._note_admission(run)
        return changed or bool(decisions.started)

    def _note_admission(self, run: JobRun) -> None:
        self.cost.decisions += 1
        self.log.add(self.now, EventKind.ENQUEUE, run.number)

    def apply(self, decisions: Decisions) -> bool:
        """Carry the decisions of a session out; return whether anything changed."""
        outdated = [*self._outdated_phases]
        started_alone = [run for run in outdated if run.is_unlisted]
        for run in started_alone:
            self._cluster.unlisted.write_phase(run)
        self._outdated_phases.clear()
        changed = self._carry_out(decisions) or bool(started_alone)
        for run in outdated:
            self._unlist(run)
        return changed

    def pass_over(self) -> bool:
        """Do what a session does that decides nothing; return whether anything changed."""
        changed = any(map(_is_outdated, self._outdated_phases))
        self.write_outdated_phases()
        return changed

    def write_outdated_phases(self) -> None:
        """Write the phases that skipped cycles would have: jobs with nodes run."""
        for run in self._outdated_phases:
            if run.is_unlisted:
                self._cluster.unlisted.write_phase(run)
            elif run.in_tables:
                self._set_phase(run, run.settled_phase())
                self._unlist(run)
        self._outdated_phases.clear()

    def _unlist(self, run: JobRun) -> None:
        """Remove the rows of a job whose phase was written, if it may go on without them."""
        if run.in_tables and run.phase == "Running" and self._may_unlist(run):
            self._cluster.unlist_running_job(run)

    def _carry_out(self, decisions: Decisions) -> bool:
        """Evict and start pods and write statuses; return whether anything changed."""
        moved = self._evict(decisions.evictions)
        self.cost.decisions += len(decisions.evictions)
        started = self._bind(decisions.binds, decisions.annotations)
        for run, task, node in self._cluster.nominate(decisions):
            self.log.add(self.now, EventKind.NOMINATE, run.number, task, node)
        changed = bool(decisions.evictions or decisions.binds)
        touched = {**moved, **started}
        for found in self._cluster.runs_of(decisions.pod_groups):
            state = decisions.pod_groups[found.key]
            found.take_in(state)
            if state.phase != found.phase:
                changed = True
                touched.pop(found, None)
                self._set_phase(found, state.phase)
            elif found not in touched:
                self._cluster.write_group(found)
            found.reason = decisions.explanations.get(found.key, found.reason)
        for run in touched:
            self._set_phase(run, run.phase)
        return changed

    def _set_phase(self, run: JobRun, phase: str) -> None:
        """Write the status of a job and file it accordingly."""
        before = run.phase
        self._waiting_jobs.step_out(run)
        run.phase = phase
        self._cluster.write_group(run)
        if phase == "Inqueue" and before == "Pending":
            self._note_admission(run)
        self._cluster.create_missing_pods(run, self.now)
        if run.waiting:
            self._waiting_jobs.put_back(run)
        else:
            self._waiting_jobs.leave(run)

    def _bind(
        self, binds: Mapping[str, str], annotations: Mapping[str, dict[str, str]]
    ) -> dict[JobRun, None]:
        """Run pods on their nodes until their time is over."""
        runs: dict[JobRun, set[float]] = {}
        owner, rows = self._cluster.owner, self._cluster.snapshot.nodes.row_of
        for run, names in groupby(binds, key=lambda name: owner(name)[0]):
            theirs = {name: binds[name] for name in names}
            self._cluster.run_on(theirs, self.now, annotations)
            ends = runs.setdefault(run, set())
            for name, node in theirs.items():
                ends.add(self._run_pod(run, owner(name)[1], rows[node]))
        for run, ends in runs.items():
            self._note_start(run, ends)
        self.cost.decisions += len(binds)
        started = dict.fromkeys(runs)
        self._outdated_phases |= started
        return started

    def _run_pod(self, run: JobRun, task: int, node: int) -> float:
        """Run a pod on a node; return when it will have finished."""
        run.move(task, State.RUNNING)
        run.nodes[task] = node
        end = run.ends[task] = self.now + self._seconds(run, task)
        self.log.add(self.now, EventKind.BIND, run.number, task, node)
        return end

    def _seconds(self, run: JobRun, task: int) -> float:
        """Return how long a pod runs; where nobody states it, as long as equal jobs did."""
        if self._learned is None or run.is_timed(task):
            return run.seconds(task)
        row = self._cluster.snapshot.jobs.row_of.get(run.key)
        learned = None if row is None else self._learned(row)
        return run.seconds(task) if learned is None else learned

    def _run_whole(self, run: JobRun, nodes: list[int]) -> None:
        """Run all pods of a job, which are equal, on their nodes."""
        run.move_all(State.RUNNING)
        end = self.now + self._seconds(run, 0)
        run.nodes, run.ends = nodes, [end] * len(nodes)
        self.log.add_all(self.now, EventKind.BIND, run.number, nodes)
        self._note_start(run, {end})

    def _note_start(self, run: JobRun, ends: set[float]) -> None:
        """Note that pods of a job have started, and when they will have finished."""
        if math.isnan(run.started) and run.running >= run.spec.min_member:
            run.started = self.now
        for end in sorted(ends):
            self._n_ends += 1
            heapq.heappush(self._ends, (end, self._n_ends, run))

    def _evict(self, names: list[str]) -> dict[JobRun, None]:
        """Evict pods from their nodes; new ones wait in their place, or none."""
        runs: dict[JobRun, list[int]] = {}
        for name in names:
            run, task = self._cluster.owner(name)
            if run.states[task] == State.RUNNING:
                runs.setdefault(run, []).append(task)
                self._evict_pod(run, task)
        for run, tasks in runs.items():
            fate = run.spec.evicted or self._evicted
            if fate == "lose":
                self._lose(run, tasks)
            elif fate == "restart" and run.settled_phase() != "Running":
                for task in run.tasks_in(State.RUNNING):
                    self._evict_pod(run, task)
        return {run: None for run in runs if run.in_tables}

    def _evict_pod(self, run: JobRun, task: int) -> None:
        """Evict a pod from its node; a new one will wait in its place."""
        run.evictions += 1
        run.reruns[task] = run.reruns.get(task, 0) + 1
        run.ends[task] = math.inf
        self.log.add(self.now, EventKind.EVICT, run.number, task, run.nodes[task])
        run.nodes[task] = NONE
        run.move(task, State.WAITING)
        if self._grace:
            run.leaving.add(task)
            self._cluster.terminate_pod(run, task, self.now)
            self._n_ends += 1
            heapq.heappush(self._leaving, (self.now + self._grace, self._n_ends, run, task))
            return
        self._cluster.delete_pod(run, task)
        self._make_again(run, task)

    def _lose(self, run: JobRun, gone: list[int]) -> None:
        """Forget evicted pods of a job, and those that can no longer start without them."""
        left = run.spec.size - run.tally[State.LOST] - len(gone)
        if left < run.spec.min_member:
            gone = sorted({*gone, *run.tasks_in(State.WAITING)})
        run.missing = [task for task in run.missing if task not in gone]
        for task in gone:
            run.move(task, State.LOST)
            self.log.add(self.now, EventKind.LOSE, run.number, task)
            if task not in run.leaving:
                self._cluster.delete_pod(run, task)
        if run.is_over:
            self._end_job(run)


def _is_outdated(run: JobRun) -> bool:
    """Return whether a session would write another phase of a job that got nodes."""
    return run.is_unlisted or (run.in_tables and run.settled_phase() != run.phase)
