"""One scheduling cycle: its state, its input, what plugins see and leave in it, and its outcome."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from pumice.api.annotations import ALLOCATED_HYPER_NODE
from pumice.api.decisions import (
    SCHEDULED,
    Bind,
    BindVolumes,
    ClaimChoice,
    Condition,
    Decisions,
    Evict,
    JobRecord,
    LockNode,
    PodGroupState,
    PromiseChange,
    Reserve,
)
from pumice.api.devices import ClaimReservation
from pumice.api.quantity import format_quantity
from pumice.core.resources import PODS, STEP, Column, IndexArray, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.status import PENDING, PHASE_CODE, PHASES, Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Job, Nodes
from pumice.errors import PluginError
from pumice.framework.columns import all_jobs
from pumice.framework.dispatch import Enabled, Hooks
from pumice.framework.future.promises import Promise
from pumice.framework.job_placement import JobMemory
from pumice.framework.placement.equal_jobs import EqualJobs
from pumice.framework.placing import MakePlacing, Placing
from pumice.framework.plugin import Plugin
from pumice.framework.plugin_session import FutureView
from pumice.framework.queue_limits.device_quota import held_devices
from pumice.framework.queue_limits.limits import ROOT, QueueGates, QueueLimits, QueueTree
from pumice.framework.refusals import Record, Why
from pumice.framework.session_state import SessionState, StandingWarnings
from pumice.framework.statement import Statement
from pumice.framework.waiting import fit_error, gang_message, waiting_pods, waiting_reason

_ABOUT_TURNS: Final = (Plugin.may_try, Plugin.may_start, Plugin.on_blocked)
_FUTURE: Final = "pumice.framework.future.future"
_PROMISE_CHANGES: Final = "pumice.framework.future.promise_changes"
PROMISES: Final = "reservation"
"""The key in the process memory of promised starts: the name of the plugin that makes them."""
_OPENED_GATES: Final = "queue gates"
"""The key in the process memory of pods whose gates the last session opened."""


class NewPlaces(msgspec.Struct, frozen=True):
    """Nodes for pods of a job that were evicted to start elsewhere."""

    nodes: tuple[str, ...]
    since: float
    until: float


class Session(SessionState):
    """What actions work on; plugins see the part that ``PluginSession`` describes."""

    def __init__(
        self,
        snapshot: Snapshot,
        tiers: Iterable[Iterable[Enabled]],
        *,
        now: float = 0.0,
        seed: int = 0,
        actions: tuple[str, ...] = (),
        action_arguments: Mapping[str, Any] | None = None,
        memory: dict[str, Any] | None = None,
        started_at: float | None = None,
        warnings: StandingWarnings | None = None,
        node_usage: Mapping[str, Any] | None = None,
        metrics: Mapping[str, str] | None = None,
        services: Mapping[str, Any] | None = None,
        hooks: Hooks | None = None,
        placing: MakePlacing = Placing,
        queue_gates: bool = False,
        plugged: Callable[[str, str], None] | None = None,
    ) -> None:
        self.tiers = [list(tier) for tier in tiers]
        self.memory = {} if memory is None else memory
        opened = self.memory.setdefault(_OPENED_GATES, set())
        gates = QueueGates(snapshot, opened, enabled=queue_gates)
        super().__init__(snapshot, self.tiers, seed=seed, hooks=hooks, placing=placing, gates=gates)
        self.now = now
        self.actions = actions
        self.action_arguments = action_arguments or {}
        self.started_at = started_at
        self._warnings = warnings or StandingWarnings()
        self.node_usage = node_usage or {}
        self.metrics = metrics or {}
        self.services = services or {}
        self.failures = self.hooks.failures
        self.plugins = self.hooks.plugins
        self.job_memory: dict[int, JobMemory] = {}
        """Memory of allocate about jobs, also if it runs again."""
        self.unschedulable: set[int] = set()
        """Jobs whose condition in this cycle is that they cannot start."""
        self.scheduled: Mask = np.zeros(len(snapshot.jobs.phase), dtype=bool)
        """Jobs whose condition in this cycle is that they can."""
        self.conditions: dict[int, tuple[str, str, str, str]] = {}
        """Job to a new condition: type, status, reason, message."""
        self.promises: dict[int, Promise] = {}
        """Job to the start that it is promised."""
        self._plugged = plugged
        self._called = ""
        """The plugin that is being opened or closed."""
        self._column_owners: dict[str, str] = {}
        self._call_all(Plugin.on_open, "OnSessionOpen")
        self._show_new_places()

    @property
    def new_places(self) -> dict[str, NewPlaces]:
        """Jobs whose pods were evicted to start elsewhere, and where; kept between cycles."""
        found: dict[str, NewPlaces] = self.memory.setdefault("new places", {})
        return found

    def _show_new_places(self) -> None:
        """Nominate pods that start again to the nodes that were found for them."""
        if "new places" not in self.memory:
            return
        jobs, tasks, nodes = self.snapshot.jobs, self.snapshot.tasks, self.snapshot.nodes
        for key, places in list(self.new_places.items()):
            if not places.since <= self.now < places.until:
                del self.new_places[key]
            elif key in jobs.row_of:
                rows = [nodes.row_of[name] for name in places.nodes if name in nodes.row_of]
                for row, node in zip(self.pending_tasks(jobs.row_of[key]), rows, strict=False):
                    self.journal.save(tasks.nominated, row)
                    tasks.nominated[row] = node

    def has_plugin(self, name: str) -> bool:
        """Return whether a plugin is configured."""
        return any(plugin.name == name for plugin in self.plugins)

    @cached_property
    def future(self) -> FutureView:
        """The cluster ahead of now; its module is imported when it is first asked."""
        made: FutureView = import_module(_FUTURE).Future(self, self.now)
        return made

    @cached_property
    def promised_places(self) -> dict[int, list[int]]:
        """Job (row) to the nodes of its pods by the plan, where it is promised a start; at close.

        Jobs behind one that would find no place are not among them.
        """
        known = [each for each in self.promises.values() if math.isfinite(each.start)]
        while known:
            found = self.future.places(known)
            if not isinstance(found, Promise):
                return found
            known = [each for each in known if each.start < found.start]
        return {}

    def promise_changes(self) -> dict[str, PromiseChange]:
        """Return how promised starts differ from those that pod groups state, at close."""
        if PROMISES not in self.memory:
            return {}
        found: dict[str, PromiseChange] = import_module(_PROMISE_CHANGES).promise_changes(self)
        return found

    def refused_ahead(self, jobs: list[int]) -> list[int]:
        """Leave out those of some jobs of which a plugin is sure that they do not start."""
        bound = (pair for hook in _ABOUT_TURNS for pair in self.hooks.bound(hook))
        judges = {plugin.name: plugin for plugin, _ in bound}
        if self.known_refused is None or len(judges) != 1 or not jobs:
            return []
        known, queues = self.known_refused.copy(), self.snapshot.jobs.queue
        for queue in {*queues[jobs].tolist()}:
            if self.policy.overused(queue):  # its jobs wait for that, not for nodes
                known[queues == queue] = False
        (judge,) = judges.values()
        found: list[int] = self.hooks.ask_aside(judge, Plugin.refused_ahead)(jobs, known) or []
        self.left_out[found] = True
        if found:
            self.considered = ~self.left_out
        return found

    def statement(self) -> Statement:
        """Open a statement."""
        return Statement(self)

    @cached_property
    def equal_jobs(self) -> EqualJobs:
        """The jobs that are refused together; found on first use, after admission."""
        return EqualJobs(self)

    def close(self) -> None:
        """Call plugins with the outcome."""
        self.fit_errors = {}
        self._call_all(Plugin.on_close, "OnSessionClose")

    def _call_all(self, hook: Callable[..., None], when: str) -> None:
        """Call each plugin in turn, and report its time."""
        plugged = self._plugged
        if plugged is not None:
            plugged("", when)
        for plugin, ask in self.hooks.bound(hook):
            self._called = plugin.name
            ask(self)
            if plugged is not None:
                plugged(plugin.name, when)
        self._called = ""

    def queue_limits(self) -> QueueLimits | None:
        """Return the limits of queues, stated ones before parts by weight; None without any."""
        limits = [plugin.queue_limits(self.snapshot, self.total) for plugin in self.plugins]
        known = [each for each in limits if each is not None]
        return min(known, key=lambda each: each.follows_demand, default=None)

    # The side of plugins, see PluginSession

    def nodes(self) -> Nodes:
        """Return all nodes."""
        return Nodes(self.snapshot)

    def others_order_queues(self, plugin: str) -> bool:
        """Return whether plugins other than this one put queues in order."""
        hooks = (Plugin.order_queues, Plugin.compare_queues)
        return any(each.name != plugin for hook in hooks for each, _ in self.hooks.bound(hook))

    def sort_jobs(self, rows: Iterable[int]) -> list[int]:
        """Order jobs once."""
        return self.ordering.sort_jobs(rows)

    def sort_tasks(self, rows: Iterable[int]) -> list[int]:
        """Order tasks once."""
        return self.ordering.sort_tasks(rows)

    def add_node_column(self, name: str, fill: float = 0.0) -> Column:
        """Add a node column of a plugin's own (N,); it is written through ``journal.save``."""
        called, owner = self._called, self._column_owners.get(name)
        of_all = hasattr(self.snapshot.nodes, name) or hasattr(Nodes, name)
        if of_all or (owner is not None and (owner != called or not called)):
            whose = "the table of nodes" if of_all else f"plugin '{owner}'"
            problem = f"{whose} has a column '{name}' already; name yours after your plugin"
            raise PluginError(called, "on_open", problem)
        self._column_owners[name] = called
        column = self.snapshot.plugin_columns[name] = np.full(self.snapshot.nodes.n, fill)
        return column

    def annotate(self, task: int, annotations: Mapping[str, str]) -> None:
        """Write annotations on a task's pod when it is bound; a rollback undoes it."""
        self.intents.annotate(task, annotations)

    def drop_annotations(self, task: int) -> None:
        """Write nothing on a task's pod in the end."""
        self.intents.drop_annotations(task)

    def lock_node(self, task: int, lock: str) -> None:
        """Lock the node of a task by an annotation before it is bound; a rollback undoes it."""
        self.intents.lock_node(task, lock)

    def reserve_claims(self, task: int, claims: tuple[ClaimReservation, ...]) -> None:
        """Reserve resource claims for a task before it is bound; a rollback undoes it."""
        self.intents.reserve(task, claims)

    def release_claims(self, claims: Iterable[str]) -> None:
        """Free the devices of claims that only pods without a node have."""
        self.intents.released_claims += claims

    def bind_volumes(self, task: int, choices: Sequence[ClaimChoice], timeout_s: float) -> None:
        """Bind a task's pod only once its claims are bound."""
        self.intents.bind_volumes(task, choices, timeout_s)

    def store(self, config_map: str, data: Mapping[str, str]) -> None:
        """Write data into a ConfigMap after the cycle."""
        self.journal.put(self.intents.stored, config_map, dict(data))

    def mark_scheduled(self, jobs: Mask) -> None:
        """Set the condition Scheduled on the marked jobs (n,)."""
        self.scheduled |= jobs

    def mark_unschedulable(self, job: int, reason: str, message: str) -> None:
        """Set the condition Unschedulable on a job."""
        self.unschedulable.add(job)
        self.conditions[job] = ("Unschedulable", "True", reason, message)

    def warn(self, plugin: str, texts: Collection[str]) -> None:
        """Log what a plugin finds wrong with the cluster; each text once while it lasts."""
        self._warnings.report(plugin, texts)

    def gang_message(self, job: Job) -> str:
        """Return how many tasks a gang lacks, and why, in Volcano's words."""
        return gang_message(self, job)


class Action(msgspec.Struct, frozen=True):
    """A step of a session."""

    place: str
    """Module and function, with a colon between them."""
    evicts: bool = False
    """Whether it makes room by evicting."""

    def load(self) -> Callable[[Session], None]:
        """Import the module, unless that is done already, and return the function."""
        return _loaded(self.place)

    def __call__(self, ssn: Session) -> None:
        """Decide through a session."""
        self.load()(ssn)


@cache
def _loaded(place: str) -> Callable[[Session], None]:
    module, _, name = place.partition(":")
    found: Callable[[Session], None] = getattr(import_module(module), name)
    return found


Phases = NDArray[np.int8]
_UNSCHEDULABLE = ("Unschedulable", "True", "NotEnoughResources", "")
_STATED = [int(status) for status in (Status.RUNNING, Status.SUCCEEDED, Status.FAILED)]
_LABELS = [status.label for status in Status]
_PENDING, _INQUEUE, _RUNNING, _COMPLETED, _UNKNOWN = (
    np.int8(PHASE_CODE[name]) for name in ("Pending", "Inqueue", "Running", "Completed", "Unknown")
)
_IS_WAITING = np.isin(np.arange(len(PHASES)), (_PENDING, _INQUEUE, _UNKNOWN))
_UNPLACED = [int(status) for status in (Status.PENDING, Status.PIPELINED)]


def close_session(ssn: Session, *, only_changes: bool = False, statuses: bool = True) -> Decisions:
    """Close a session and return its outcome.

    With ``only_changes`` pod groups and pods whose status stays as the cluster has it are left
    out; without ``statuses`` what queues hold and why pods wait is.
    """
    ssn.close()
    _report_misplaced(ssn)
    decisions = _moves(ssn)
    phases = phases_of(ssn)
    differs = _differs(ssn, phases)
    reported = _changed(ssn, differs) if only_changes else ssn.snapshot.jobs.listed
    rows = reported.nonzero()[0]
    if len(rows):
        _report_groups(ssn, decisions, phases, rows, differs[rows] if only_changes else None)
    if statuses:
        decisions.queues = _queue_amounts(ssn)
        decisions.waiting_pods = waiting_pods(ssn, only_changes=only_changes)
        decisions.promises = ssn.promise_changes()
    decisions.failures = ssn.failures.lines()
    decisions.failed_for = _failed_for(ssn)
    return decisions


def _report_groups(
    ssn: Session, decisions: Decisions, phases: Phases, rows: IndexArray, differs: Mask | None
) -> None:
    """Report pod groups; what those of equal numbers have in common is made once.

    ``differs`` marks those whose numbers are not as stated (n,): of the others only those with
    other conditions are reported.  None: all of them.
    """
    jobs, states = ssn.snapshot.jobs, _GroupStates(ssn, phases)
    groups, keys = jobs.groups, jobs.keys
    is_new = [True] * len(rows) if differs is None else differs.tolist()
    for row, kind, new in zip(rows.tolist(), states.kinds(rows), is_new, strict=True):
        state, statuses = states.made.get(kind) or states.make(row, kind)
        if new or not _is_known(groups[row], state):
            decisions.pod_groups[keys[row]] = state
            decisions.task_statuses[keys[row]] = statuses
    _explain_groups(ssn, decisions, phases, rows, only_changes=differs is not None)


def _explain_groups(
    ssn: Session, decisions: Decisions, phases: Phases, rows: IndexArray, *, only_changes: bool
) -> None:
    """Report why those of the reported pod groups that wait do so, and the records of jobs."""
    jobs, by_job = ssn.snapshot.jobs, ssn.records.by_job
    short = _IS_WAITING[phases]
    if only_changes:
        short &= ~ssn.scheduled
    waits = (jobs.counts[_UNPLACED] > 0).any(axis=0) | (jobs.n_tasks == 0)
    explained = short | waits
    explained[[*by_job]] = True
    for row in rows[explained[rows]].tolist():
        key = jobs.keys[row]
        if key not in decisions.pod_groups:
            continue
        if short[row]:
            decisions.unschedulable[key] = fit_error(ssn, ssn.job(row))
        sentence = waiting_reason(ssn, ssn.job(row)) if waits[row] else ""
        if sentence:
            decisions.explanations[key] = sentence
        if row in by_job:
            decisions.records[key] = _record(ssn, by_job[row])


def _failed_for(ssn: Session) -> dict[str, list[str]]:
    """Return for which jobs plugins failed: their own, their tasks' or their shapes'."""
    tasks, jobs = ssn.snapshot.tasks, ssn.snapshot.jobs
    lines: dict[int, dict[str, None]] = {}
    for (kind, row), reasons in ssn.failures.about.items():
        if kind == "shape":
            waiting = (tasks.shape == row) & (tasks.status == PENDING)
            owners = np.unique(tasks.job[waiting]).tolist()
        else:
            owners = [row if kind == "job" else int(tasks.job[row])]
        for owner in owners:
            lines.setdefault(owner, {}).update(reasons)
    return {jobs.keys[row]: [*reasons] for row, reasons in lines.items() if row != NOWHERE}


def _record(ssn: Session, record: Record) -> JobRecord:
    """Return a record with names instead of rows."""
    numbers = dict(record.numbers)
    if "queue" in numbers:
        numbers["queue"] = ssn.snapshot.queues.names[numbers["queue"]]
    return JobRecord(record.stage.value, record.why.value, numbers)


def _report_misplaced(ssn: Session) -> None:
    """Set the condition of jobs whose queue has no valid place, before any other."""
    for row, record in ssn.records.by_job.items():
        if record.why is Why.QUEUE_MISPLACED:
            kind, status, reason, message = ssn.conditions.get(row, _UNSCHEDULABLE)
            sentence = waiting_reason(ssn, ssn.job(row))
            ssn.conditions[row] = (
                kind,
                status,
                reason,
                "; ".join(filter(None, (sentence, message))),
            )


def _moves(ssn: Session) -> Decisions:
    """Return where tasks go."""
    tasks = ssn.snapshot.tasks
    decisions = Decisions(opened_gates=[tasks.keys[row] for row in ssn.queue_gates.opened])
    for intent in ssn.intents.made:
        if isinstance(intent, Bind):
            decisions.binds[intent.pod] = intent.node
        elif isinstance(intent, Evict):
            _evicted(decisions, intent)
        elif isinstance(intent, Reserve):
            decisions.reservations[intent.pod] = intent.claims
        elif isinstance(intent, LockNode):
            decisions.node_locks[intent.pod] = intent.locks
        elif isinstance(intent, BindVolumes):
            decisions.volumes[intent.pod] = intent
        else:
            decisions.annotations[intent.pod] = dict(intent.annotations)
    decisions.released_claims = ssn.intents.released_claims
    decisions.stored = dict(ssn.intents.stored)  # the journal puts the mapping back
    if ssn.snapshot.jobs.counts[Status.PIPELINED].any():
        _report_promises(ssn, decisions)
    return decisions


def _report_promises(ssn: Session, decisions: Decisions) -> None:
    """Record which tasks wait for room, and for which of them pods are evicted."""
    tasks, names = ssn.snapshot.tasks, ssn.snapshot.nodes.names
    rows = np.flatnonzero(tasks.status == Status.PIPELINED)
    promised = dict(zip(rows.tolist(), tasks.node[rows].tolist(), strict=True))
    for row, node in promised.items():
        decisions.pipelined[tasks.keys[row]] = names[node]
    for row, node in ssn.intents.nominations.items():
        if node != NOWHERE and row in promised:
            decisions.nominated[tasks.keys[row]] = names[node]


def _evicted(decisions: Decisions, intent: Evict) -> None:
    decisions.evictions.append(intent.pod)
    decisions.evicted_by[intent.pod] = intent.action
    if intent.beneficiary:
        decisions.beneficiaries[intent.pod] = intent.beneficiary
    if intent.note:
        decisions.eviction_notes[intent.pod] = intent.note


def phases_of(ssn: Session) -> Phases:
    """Return the phase of each group, from the status of its tasks (n,)."""
    table, jobs = ssn.snapshot.jobs, all_jobs(ssn.snapshot)
    counts = table.counts
    finished = counts[Status.SUCCEEDED] + counts[Status.FAILED]
    scheduled = jobs.settled + jobs.leaving
    phases = np.where(table.phase == _INQUEUE, _INQUEUE, _PENDING)
    started = np.where(scheduled == finished, _COMPLETED, _RUNNING)
    phases = np.where(scheduled >= table.min_member, started, phases)
    if ssn.unschedulable:
        rows = np.array(list(ssn.unschedulable), dtype=np.intp)
        phases[rows[counts[Status.RUNNING, rows] > 0]] = _UNKNOWN
    return phases


def _differs(ssn: Session, phases: Phases) -> Mask:
    """Mark jobs whose phase or numbers differ from those in the cluster (n,)."""
    jobs = ssn.snapshot.jobs
    return (phases != jobs.stated_phase) | (jobs.counts[_STATED] != jobs.stated_counts).any(axis=0)


def _changed(ssn: Session, differs: Mask) -> Mask:
    """Mark jobs whose status differs from that in the cluster, or whose conditions may (n,)."""
    jobs = ssn.snapshot.jobs
    changed = differs | (ssn.scheduled & ~jobs.stated_scheduled)
    changed[[*ssn.conditions, *ssn.topology.placed_jobs()]] = True
    return changed & jobs.listed & ~ssn.left_out


def _is_known(group: Any, state: PodGroupState) -> bool:
    """Return whether a group's own status says the same."""
    said = group.status
    return (
        said.phase == state.phase
        and (said.running, said.succeeded, said.failed)
        == (state.running, state.succeeded, state.failed)
        and group.metadata.annotations.get(ALLOCATED_HYPER_NODE) == state.hyper_node
        and [_condition(each) for each in said.conditions] == state.conditions
    )


class _GroupStates:
    """States of pod groups; groups without other conditions and domains share equal ones."""

    def __init__(self, ssn: Session, phases: Phases) -> None:
        self._ssn = ssn
        self._phases = phases
        self._has_topology = ssn.snapshot.jobs.has_topology
        self.made: dict[bytes, tuple[PodGroupState, dict[str, int]]] = {}
        """States and numbers of tasks by status, for each kind of group."""

    def kinds(self, rows: IndexArray) -> list[bytes]:
        """Return the kind of each group: its phase, its numbers and whether it is or was ready.

        A group with other conditions or a domain is of a kind of its own.  Bytes are the fastest
        key where there are thousands of groups.
        """
        jobs, conditions = self._ssn.snapshot.jobs, self._ssn.conditions
        is_own = jobs.has_other_conditions | self._has_topology
        is_own[[*conditions]] = True
        own = np.where(is_own, np.arange(len(is_own)), -1)[rows]
        counts = jobs.counts[:, rows]
        ready = self._ssn.scheduled[rows], jobs.stated_scheduled[rows]
        parts = own, self._phases[rows], *ready, *counts
        numbers = np.stack(parts, axis=1, dtype=counts.dtype, casting="same_kind")
        kinds: list[bytes] = numbers.view(f"V{numbers.strides[0]}")[:, 0].tolist()
        return kinds

    def make(self, row: int, kind: bytes) -> tuple[PodGroupState, dict[str, int]]:
        """Return the state of the first group of a kind, and its tasks by status."""
        found = self.made[kind] = self._state(row)
        return found

    def _state(self, row: int) -> tuple[PodGroupState, dict[str, int]]:
        domain = None
        if self._has_topology[row]:
            domain = self._ssn.topology.allocated(self._ssn.job(row))
        counts = self._ssn.snapshot.jobs.counts[:, row].tolist()
        stated = [counts[status] for status in _STATED]
        name, phase = None if domain is None else domain.name, PHASES[self._phases[row]]
        by_status = {_LABELS[status]: n for status, n in enumerate(counts) if n}
        return PodGroupState(phase, _conditions(self._ssn, row), name, *stated), by_status


def _conditions(ssn: Session, row: int) -> list[Condition]:
    """Join old conditions and the new one; one of each type."""
    group: Any = ssn.snapshot.jobs.groups[row]
    out = {each.type: _condition(each) for each in group.status.conditions}
    if ssn.scheduled[row]:
        out[SCHEDULED.type] = SCHEDULED
    new = ssn.conditions.get(row)
    if new is not None:
        out[new[0]] = Condition(*new)
    return list(out.values())


def _condition(said: Any) -> Condition:
    return Condition(said.type, said.status, said.reason, said.message)


def _queue_amounts(ssn: Session) -> dict[str, dict[str, str]]:
    """Return what each queue holds; in a tree it counts for all ancestors, too."""
    queues, names = ssn.snapshot.queues, ssn.snapshot.resources.names
    allocated = queues.allocated
    tree = QueueTree.of(ssn.snapshot) if ROOT in queues.row_of else None
    if tree is not None:
        allocated = tree.sum_up(allocated)
    devices = held_devices(ssn.snapshot, tree) if ssn.snapshot.kind("ResourceClaim") else {}
    return {
        queues.names[row]: {
            name: _format(i, name, amount)
            for i, (name, amount) in enumerate(zip(names, allocated[:, row].tolist(), strict=True))
            if amount >= STEP
        }
        | {
            name: format_quantity(name, amount / 1000)
            for name, amount in devices.get(row, {}).items()
            if amount
        }
        for row in queues.listed.nonzero()[0].tolist()
    }


def _format(row: int, name: str, amount: float) -> str:
    """Write an amount; scalars beyond cpu, memory and pods are kept in milli-units."""
    return format_quantity(name, amount / 1000 if row > PODS else amount)
