"""extender: call an external service at nearly every step of scheduling."""

import logging
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, Protocol, TypeVar

import msgspec
import numpy as np

from pumice.api.annotations import HIERARCHY, HIERARCHY_WEIGHTS, REVOCABLE_ZONE
from pumice.api.codes import Cause
from pumice.api.json_text import FrozenJson
from pumice.api.objects import to_manifest
from pumice.core.resources import CPU, MEMORY, PODS, STEP, Column, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.status import FINISHED, Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Job, Nodes, Queue, Task
from pumice.errors import ABSENT, ExtenderError, InputError
from pumice.framework.arguments import Duration, Fault, arg, dump_arguments
from pumice.framework.plugin import ABSTAIN, PERMIT, REJECT, Codes, Plugin, Reason
from pumice.framework.plugin_session import PluginSession

_Int64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_Float64 = Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]


class IgnoredAnswer(msgspec.Struct):
    """An answer whose content is ignored."""


class Fit(msgspec.Struct):
    """Why a node does not fit, empty if it does."""

    status: str = ""
    code: _Int64 = 0


class Scores(msgspec.Struct):
    """Scores by node name."""

    nodeScore: dict[str, _Float64] | None = None  # noqa: N815  # the key of the answer
    errorMessage: str = ""  # noqa: N815


class Amounts(msgspec.Struct):
    """The request of a task in an answer."""

    MilliCPU: _Float64 = 0.0
    Memory: _Float64 = 0.0
    ScalarResources: dict[str, _Float64] = {}
    MaxTaskNum: _Int64 = 0


class Victim(msgspec.Struct):
    """A task in an answer; only its UID counts, the rest must have the right types."""

    UID: str = ""
    Job: str = ""
    Name: str = ""
    Namespace: str = ""
    TaskRole: str = ""
    Resreq: Amounts | None = None
    InitResreq: Amounts | None = None
    NodeName: str = ""
    Status: _Int64 = 0
    Priority: Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)] = 0
    Preemptable: bool = False
    BestEffort: bool = False
    SchGated: bool = False
    RevocableZone: str = ""
    Pod: dict[str, Any] = {}


class Victims(msgspec.Struct):
    """Tasks that may be evicted, and whether the service has an opinion."""

    status: _Int64 = 0
    victims: list[Victim] = []


class Overused(msgspec.Struct):
    """Whether a queue must wait."""

    overused: bool = False


class Vote(msgspec.Struct):
    """A vote on a job."""

    status: _Int64 = 0


class Ready(msgspec.Struct):
    """Whether a job can start."""

    status: bool = False


class Handled(msgspec.Struct):
    """The error of a placement or an eviction."""

    errorMessage: str = ""  # noqa: N815


_PARTS: Final[dict[tuple[type, str], type[msgspec.Struct]]] = {
    (Victims, "victims"): Victim,
    (Victim, "Resreq"): Amounts,
    (Victim, "InitResreq"): Amounts,
}
"""Fields that hold structures, alone or in a list."""
A = TypeVar("A", bound=msgspec.Struct)


def read_answer(found: Mapping[str, Any], kind: type[A]) -> A:
    """Read an answer.

    Raises:
        InputError: something in it has the wrong type.
    """
    if not found:
        return kind()
    try:
        return msgspec.convert(_fitted(found, kind), kind)
    except msgspec.ValidationError as error:
        raise InputError(wanted="an answer of the right types", hint=str(error)) from error


@cache
def _names(kind: type[msgspec.Struct]) -> dict[str, str]:
    return {name.casefold(): name for name in kind.__struct_fields__}


def _fitted(value: Any, kind: type[msgspec.Struct]) -> Any:
    """Rename the keys of a structure to those of its fields, and drop nulls."""
    if not isinstance(value, dict):
        return value
    names = _names(kind)
    fitted: dict[str, Any] = {}
    for key, item in value.items():
        name = names.get(key.casefold())
        if name is not None and len(name) == len(key) and item is not None:
            fitted[name] = _fitted_item(item, _PARTS.get((kind, name)))
    return fitted


def _fitted_item(item: Any, part: type[msgspec.Struct] | None) -> Any:
    if part is not None and isinstance(item, list):
        return [_fitted(each, part) for each in item if each is not None]
    if part is not None:
        return _fitted(item, part)
    if isinstance(item, dict):
        return {key: content for key, content in item.items() if content is not None}
    return item


Json = dict[str, Any]

_READY_NODE = 1


def resource(amounts: Column, names: list[str]) -> Json:
    """Write amounts (R,): scalars by name, the pod number among them."""
    scalars = {
        name: float(amount)
        for row, (name, amount) in enumerate(zip(names, amounts.tolist(), strict=True))
        if row not in (CPU, MEMORY) and amount >= STEP
    }
    return {
        "MilliCPU": float(amounts[CPU]),
        "Memory": float(amounts[MEMORY]),
        "ScalarResources": scalars,
        "MaxTaskNum": int(amounts[PODS]),
    }


def task_info(snapshot: Snapshot, row: int) -> Json:
    """Write one task with its pod."""
    task, tasks = Task(snapshot, row), snapshot.tasks
    names = snapshot.resources.names
    request = resource(task.request[:, 0], names)
    job = task.job
    return {
        "UID": tasks.uids[row],
        "Job": "" if job == NOWHERE else snapshot.jobs.keys[job],
        "Name": task.name,
        "Namespace": task.namespace,
        "TaskRole": task.role,
        "Resreq": request,
        "InitResreq": request,
        "NodeName": "" if task.node == NOWHERE else snapshot.nodes.names[task.node],
        "Status": status_code(task.status),
        "Priority": task.priority,
        "Preemptable": task.preemptable,
        "BestEffort": task.best_effort,
        "SchGated": bool(tasks.gated[row]),
        "RevocableZone": task.pod.metadata.annotations.get(REVOCABLE_ZONE, ""),
        "Pod": to_manifest(task.pod),
    }


def status_code(status: Status) -> int:
    """Return the bit of a status in Volcano."""
    return 1 << (status - 1)


def job_info(snapshot: Snapshot, row: int) -> Json:
    """Write one job with all its tasks."""
    job, names = Job(snapshot, row), snapshot.resources.names
    tasks = {snapshot.tasks.uids[task]: task_info(snapshot, task) for task in job.tasks}
    by_status: dict[str, Json] = {}
    for uid, task in tasks.items():
        by_status.setdefault(str(task["Status"]), {})[uid] = task
    asking = [t for t in job.tasks if int(snapshot.tasks.status[t]) not in FINISHED]
    total = sum((snapshot.request(task) for task in asking), np.zeros(len(names)))
    spec = job.group.spec
    return {
        "UID": job.key,
        "PgUID": job.group.metadata.uid,
        "Name": job.group.metadata.name,
        "Namespace": job.group.metadata.namespace,
        "Queue": "" if job.queue == NOWHERE else snapshot.queues.names[job.queue],
        "Priority": job.priority,
        "MinAvailable": job.min_member,
        "Tasks": tasks,
        "TaskStatusIndex": by_status,
        "TaskMinAvailable": dict(spec.min_task_member),
        "TaskMinAvailableTotal": sum(spec.min_task_member.values()),
        "Allocated": resource(job.allocated, names),
        "TotalRequest": resource(total, names),
        "CreationTimestamp": job.group.metadata.creation_timestamp or None,
        "PodGroup": to_manifest(job.group),
    }


class NodePayloads:
    """Nodes as JSON, each written once and again when it has moved."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._kept: dict[int, FrozenJson] = {}
        self._seen = 0
        self._tasks: dict[int, list[int]] | None = None

    def of(self, rows: Iterable[int]) -> list[FrozenJson]:
        """Return some nodes."""
        self._follow()
        return [self._kept.get(row) or self._write(row) for row in rows]

    def _follow(self) -> None:
        """Forget the nodes in the log of moved rows."""
        moved = self._snapshot.journal.moved
        for entry in moved[self._seen :]:
            for row in [entry] if isinstance(entry, int) else entry.tolist():
                self._kept.pop(row, None)
                if self._tasks is not None:
                    self._tasks.pop(row, None)
        self._seen = len(moved)

    def _write(self, row: int) -> FrozenJson:
        if self._tasks is None:
            self._tasks = tasks_by_node(self._snapshot)
        on_node = self._tasks.get(row)
        if on_node is None:
            on_node = np.flatnonzero(
                self._snapshot.tasks.node[: self._snapshot.tasks.n] == row
            ).tolist()
        found = self._kept[row] = FrozenJson(node_info(self._snapshot, row, on_node))
        return found


def tasks_by_node(snapshot: Snapshot) -> dict[int, list[int]]:
    """List the tasks of every node, in the order of their rows."""
    tasks = snapshot.tasks.node[: snapshot.tasks.n]
    order = np.argsort(tasks, kind="stable")
    ends = np.searchsorted(tasks[order], np.arange(snapshot.nodes.n + 1))
    parts = zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    rows = order.tolist()
    return {node: rows[start:end] for node, (start, end) in enumerate(parts)}


def node_info(snapshot: Snapshot, row: int, on_node: list[int]) -> Json:
    """Write one node with its books and its tasks."""
    nodes, names = snapshot.nodes, snapshot.resources.names
    node: Any = nodes.objects[row]
    return {
        "Name": nodes.names[row],
        "Node": to_manifest(node),
        "State": {"Phase": _READY_NODE, "Reason": ""},
        "Releasing": resource(nodes.releasing[:, row], names),
        "Pipelined": resource(nodes.pipelined[:, row], names),
        "Idle": resource(nodes.idle[:, row], names),
        "Used": resource(nodes.used[:, row], names),
        "Allocatable": resource(nodes.allocatable[:, row], names),
        "Capacity": resource(nodes.capacity_amounts[:, row], names),
        "Tasks": {snapshot.tasks.keys[task]: task_info(snapshot, task) for task in on_node},
        "RevocableZone": nodes.labels[row].get(REVOCABLE_ZONE, ""),
    }


def queue_info(queue: Queue) -> Json:
    """Write one queue."""
    marks = queue.object.metadata.annotations
    return {
        "UID": queue.name,
        "Name": queue.name,
        "Weight": queue.object.spec.weight,
        "Weights": marks.get(HIERARCHY_WEIGHTS, ""),
        "Hierarchy": marks.get(HIERARCHY, ""),
        "Queue": to_manifest(queue.object),
    }


def session_info(snapshot: Snapshot, jobs: list[int]) -> Json:
    """Write the initial state of a session."""
    queues = [row for row in range(snapshot.queues.n) if snapshot.queues.listed[row]]
    tasks = tasks_by_node(snapshot)
    rows = snapshot.nodes.row_of.items()
    nodes = {name: node_info(snapshot, row, tasks[row]) for name, row in rows}
    return {
        "Jobs": {snapshot.jobs.keys[row]: job_info(snapshot, row) for row in jobs},
        "Nodes": nodes,
        "Queues": {snapshot.queues.names[row]: queue_info(Queue(snapshot, row)) for row in queues},
        "NamespaceInfo": {name: {"Name": name} for name in snapshot.namespaces.row_of},
        "RevocableNodes": {name: node for name, node in nodes.items() if node["RevocableZone"]},
        "NodeList": list(nodes),
    }


log = logging.getLogger(__name__)

SERVICE = "extender"
_FAILED, _CURABLE, _FINAL = 1, 2, 3
_UNSCHEDULABLE = 2
"""The code of an answer for a node that evictions might open."""
_PATIENCE = 3
"""Failed calls in a row after which the service is not called in a session any more."""


class ExtenderClient(Protocol):
    """The plugin's interface to a connection."""

    def post(self, verb: str, payload: Any, *, answer: bool = True) -> Mapping[str, Any]:
        """Send a payload and return the answer; raise ExtenderError if there is none."""
        ...


def _verb(name: str, doc: str) -> Any:
    return arg(f"extender.{name}Verb", default="", doc=f"path called {doc}")


@dataclass(kw_only=True)
class Extender(Plugin, name="extender"):
    """Call an HTTP service to filter and score nodes, vote on jobs and queues, and name victims."""

    reasons = (
        Reason("the extender failed", curable=False, code=Cause.EXTENDER_REFUSED, lasting=False),
        Reason("refused by the extender", code=Cause.EXTENDER_REFUSED),
        Reason("refused by the extender for good", curable=False, code=Cause.EXTENDER_REFUSED),
    )
    url_prefix: str = arg("extender.urlPrefix", default="", doc="address of the service")
    timeout: Duration = arg(
        "extender.httpTimeout", default=Duration(1.0), doc="limit of a call; 0s for ten minutes"
    )
    ignorable: bool = arg("extender.ignorable", default=False, doc="ignore its failures")
    managed: list[str] = arg(
        "extender.managedResources",
        default_factory=list,
        doc="ask only about pods that name one of these; default: about all",
    )
    one_answer: bool = arg(
        "extender.oneAnswerPerShape",
        default=False,
        doc="ask once for pods that differ only in name, job and age; not in Volcano",
    )
    open_verb: str = _verb("onSessionOpen", "when a session opens")
    close_verb: str = _verb("onSessionClose", "when a session closes")
    predicate_verb: str = _verb("predicate", "to decide whether a node fits a task")
    prioritize_verb: str = _verb("prioritize", "to score nodes for a task")
    preemptable_verb: str = _verb("preemptable", "to choose victims for a task of their queue")
    reclaimable_verb: str = _verb("reclaimable", "to choose victims for another queue")
    overused_verb: str = _verb("queueOverused", "to decide whether a queue must wait")
    enqueueable_verb: str = _verb(
        "jobEnqueueable", "to decide whether a job is admitted to its queue"
    )
    enqueued_verb: str = _verb("jobEnqueued", "when a job was admitted to its queue")
    ready_verb: str = _verb("jobReady", "to decide whether a job can start")
    allocate_verb: str = _verb("allocateFunc", "when a task gets a node")
    deallocate_verb: str = _verb("deallocateFunc", "when a task loses its node")

    def faults(self) -> Iterator[Fault]:
        """Refuse verbs without an address; without verbs the plugin does nothing."""
        if not self.url_prefix:
            key, wanted = "extender.urlPrefix", "the address of the service"
            yield Fault(key, wanted, ABSENT, severity="error" if self._has_verbs else "ignored")

    @property
    def _has_verbs(self) -> bool:
        return any(key.endswith("Verb") and value for key, value in dump_arguments(self).items())

    def on_open(self, ssn: PluginSession) -> None:
        """Connect and send the initial state of the session to the service.

        If that fails and failures count, the service is left out of this session.
        """
        self._journal = ssn.journal
        self._snapshot = ssn.snapshot
        self._nodes = NodePayloads(ssn.snapshot)
        self._failures = 0
        self._error = ""
        self._words: dict[str, None] = {}
        self._open = True
        self._client = self._connect(ssn)
        if self.open_verb:
            payload = session_info(ssn.snapshot, ssn.jobs())
            opened = self._ask(self.open_verb, payload, IgnoredAnswer, answer=False)
            self._open = opened is not None or self.ignorable

    def _connect(self, ssn: PluginSession) -> ExtenderClient | None:
        """Take the client of earlier sessions if there is one."""
        factory: Callable[[str, float], ExtenderClient] | None = ssn.services.get(SERVICE)
        known: dict[Hashable, ExtenderClient] = ssn.memory.setdefault(self.name, {})
        key = (self.url_prefix, self.timeout)
        if key not in known and factory is not None:
            known[key] = factory(*key)
        return known.get(key)

    def _ask(self, verb: str, payload: Any, kind: type[A], *, answer: bool = True) -> A | None:
        """Call the service and read its answer; None if that failed."""
        if self._client is None or self._failures >= _PATIENCE:
            return None
        try:
            found = read_answer(self._client.post(verb, payload, answer=answer), kind)
        except (ExtenderError, InputError) as error:
            self._failures += 1
            self._error = str(error)
            log.warning("verb %s: %s", verb, error)
            return None
        self._failures = 0
        return found

    def _minds(self, verb: str, task: Task | None = None) -> bool:
        """Return whether a verb is configured and the service handles a task."""
        if not verb or not self._open:
            return False
        return task is None or not self.managed or self._is_managed(task)

    def _is_managed(self, task: Task) -> bool:
        spec, managed = task.shape.spec, set(self.managed)
        parts = [container.resources for container in (*spec.containers, *spec.init_containers)]
        return any(not managed.isdisjoint({*part.requests, *part.limits}) for part in parts)

    def vary_by(self, task: Task) -> Hashable:
        """Ask about each task, since the service sees more than its shape, unless configured.

        Then tasks may differ only in name, job and age.
        """
        if not self._minds(self.predicate_verb, task):
            return None
        if not self.one_answer:
            return task.row
        return int(self._snapshot.tasks.label_class[task.row]), task.role

    def filter_nodes(self, task: Task, nodes: Nodes) -> Codes | None:
        """Ask node by node."""
        if not self._minds(self.predicate_verb, task):
            return None
        about = FrozenJson(task_info(self._snapshot, task.row))
        sent = self._nodes.of(nodes.index.tolist())
        return np.array([self._test(about, node) for node in sent], dtype=np.int16)

    def _test(self, task: FrozenJson, node: FrozenJson) -> int:
        found = self._ask(self.predicate_verb, {"task": task, "node": node}, Fit)
        if found is None:
            return 0 if self.ignorable else _FAILED
        if not found.status:
            return 0
        self._words[found.status] = None
        return _CURABLE if found.code == _UNSCHEDULABLE else _FINAL

    def own_words(self) -> list[str]:
        """Return the service's messages about nodes that it refused, and the last error."""
        return [*self._words, *filter(None, [self._error])]

    def refusal_numbers(self, task: Task) -> dict[str, Any]:
        """Return the address of the service, and the last error."""
        if not self._minds(self.predicate_verb, task):
            return {}
        error = {"error": self._error} if self._error else {}
        return {"extender": {"address": self.url_prefix, **error}}

    def rank_nodes(self, task: Task, nodes: Nodes) -> Column | None:
        """Ask for the scores of all candidates at once; unnamed nodes get none."""
        if not self._minds(self.prioritize_verb, task):
            return None
        about = self._nodes.of(nodes.index.tolist())
        payload = {"task": task_info(self._snapshot, task.row), "nodes": about}
        found = self._ask(self.prioritize_verb, payload, Scores)
        if found is None or found.errorMessage or found.nodeScore is None:
            return None
        return np.array([found.nodeScore.get(name, 0.0) for name in nodes.names])

    def preemptable(self, preemptor: Task, candidates: list[int]) -> Mask | None:
        """Ask which tasks may be evicted."""
        return self._victims(self.preemptable_verb, preemptor, candidates)

    def reclaimable(self, reclaimer: Task, candidates: list[int]) -> Mask | None:
        """Ask which tasks may be evicted."""
        return self._victims(self.reclaimable_verb, reclaimer, candidates)

    def _victims(self, verb: str, evictor: Task, candidates: list[int]) -> Mask | None:
        """Mark the tasks that the answer names; none at all if there is no answer."""
        if not self._minds(verb, evictor):
            return None
        found = self._ask(verb, _eviction(self._snapshot, evictor, candidates), Victims)
        if found is None:
            return np.zeros(len(candidates), dtype=bool)
        if found.status == ABSTAIN:
            return None
        uids = {each.UID for each in found.victims}
        return np.array([self._snapshot.tasks.uids[row] in uids for row in candidates], dtype=bool)

    def overused(self, queue: Queue) -> bool:
        """Ask whether a queue must wait."""
        if not self._minds(self.overused_verb):
            return False
        found = self._ask(self.overused_verb, {"queue": queue_info(queue)}, Overused)
        return not self.ignorable if found is None else found.overused

    def job_enqueueable(self, job: Job) -> int:
        """Ask for a vote."""
        if not self._minds(self.enqueueable_verb):
            return ABSTAIN
        found = self._ask(self.enqueueable_verb, {"job": job_info(self._snapshot, job.row)}, Vote)
        if found is None:
            return PERMIT if self.ignorable else REJECT
        return found.status

    def on_enqueued(self, job: Job) -> None:
        """Notify the service that a job was admitted."""
        if self._minds(self.enqueued_verb):
            self._ask(self.enqueued_verb, {"job": job_info(self._snapshot, job.row)}, IgnoredAnswer)

    def job_ready(self, job: Job) -> bool:
        """Ask whether a job can start."""
        if not self._minds(self.ready_verb):
            return True
        found = self._ask(self.ready_verb, {"job": job_info(self._snapshot, job.row)}, Ready)
        return self.ignorable if found is None else found.status

    def on_place(self, task: Task, node: int) -> None:
        """Notify the service of a placement, and of its roll-back."""
        self._notify(self.allocate_verb, task)
        self._journal.on_rollback(self._notify, self.deallocate_verb, task)

    def on_evict(self, task: Task, node: int) -> None:
        """Notify the service of an eviction, and of its roll-back."""
        self._notify(self.deallocate_verb, task)
        self._journal.on_rollback(self._notify, self.allocate_verb, task)

    def _notify(self, verb: str, task: Task) -> None:
        if self._minds(verb, task):
            found = self._ask(verb, {"task": task_info(self._snapshot, task.row)}, Handled)
            if found is not None and found.errorMessage:
                log.warning("extender on task %s: %s", task.key, found.errorMessage)

    def on_close(self, ssn: PluginSession) -> None:
        """Notify the service that the session is over; later roll-backs are not reported."""
        if self.close_verb:
            self._ask(self.close_verb, {}, IgnoredAnswer, answer=False)
        self._open = False


def _eviction(snapshot: Snapshot, evictor: Task, candidates: list[int]) -> dict[str, Any]:
    return {
        "evictor": task_info(snapshot, evictor.row),
        "evictees": [task_info(snapshot, row) for row in candidates],
    }


_HARMLESS: Final = ("predicate_verb", "prioritize_verb")


@dataclass(kw_only=True)
class AskedExtender(Extender, name="extender"):
    """An extender that is asked about nodes alone."""

    def __post_init__(self) -> None:
        for field in type(self).__dataclass_fields__:
            if field.endswith("_verb") and field not in _HARMLESS:
                setattr(self, field, "")


@dataclass(kw_only=True)
class UnaskedExtender(Extender, name="extender"):
    """An extender that is not asked at all."""

    def __post_init__(self) -> None:
        for field in type(self).__dataclass_fields__:
            if field.endswith("_verb"):
                setattr(self, field, "")
