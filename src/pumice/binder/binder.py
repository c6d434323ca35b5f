"""Turns decisions into writes, hands them to a writer and gathers their results.

Used by the scheduler's loop, always from one thread; the writer may report on any.  What the
cluster already has, or was sent a moment ago, is not written again.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from uuid import NAMESPACE_OID, uuid5

import msgspec

from pumice import logs
from pumice.api.annotations import GROUP_NAME, QUEUE_GATE, RESERVATION, WAITING_CAUSE, WAITING_WHY
from pumice.api.decisions import Decisions, PodGroupState, PromiseChange
from pumice.api.devices import ClaimReservation
from pumice.api.groups import PodGroup, PodGroupStatus, Queue
from pumice.api.kinds import CONFIG_MAP, POD_GROUP, QUEUE, Manifest
from pumice.api.meta import KubeObject
from pumice.api.objects import from_manifest
from pumice.api.pods import Pod
from pumice.api.times import rfc3339
from pumice.binder.bind_writes import BindWrites
from pumice.binder.claim_writes import Known
from pumice.binder.event_recorder import EventRecorder
from pumice.binder.status_writes import (
    StatusWrites,
    group_annotations,
    group_patch,
    group_status,
    queue_patch,
    waiting_patch,
)
from pumice.binder.write_results import WriteResult, WriteResults
from pumice.cluster.base import Cluster, DirectWriter, Done, Lane, Write, Writer
from pumice.core.status import Status
from pumice.errors import (
    ClusterError,
    ConflictError,
    FencedError,
    InputError,
    NotFoundError,
    RejectedError,
    UnavailableError,
)

_STATUS_OF: Final = {
    "pod status": "Pod",
    "gate": "Pod",
    "group": POD_GROUP,
    "promise": POD_GROUP,
    "queue": QUEUE,
}
_PRUNED_EACH: Final = 64  # cycles
_STARTING: Final = frozenset(status.label for status in (Status.BINDING, Status.BOUND))
"""Statuses of pods that are on their way to run."""
_log = logs.get("binder")


class _WaitingStatus(msgspec.Struct):
    """The status to write for a pod: why it waits, and for which node."""

    reason: str = "Unschedulable"
    message: str = ""
    nominated: str | None = None


class _Held(NamedTuple):
    """A status of a group that counts as written, and since when it waits for the next one."""

    state: PodGroupState
    since: float
    uid: str


class Binder:
    """Writes what a scheduler decided."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        writer: Writer | None = None,
        known: Known | None = None,
        waits: Callable[[str], bool] | None = None,
        source: str = "volcano",
        write_conditions: bool = True,
        write_events: bool = True,
        clock: Callable[[], float] | None = None,
        on_failure: Callable[[], None] | None = None,
        hold_s: float = 0.0,
    ) -> None:
        """Make one.

        ``known`` returns objects without asking the cluster, ``waits`` whether a pod still has
        no place.  Without ``write_conditions`` no condition shows why pods wait, without
        ``write_events`` no event tells what happened.  ``clock`` measures how long answers take.
        ``on_failure`` is called once the result of a failed write can be drained, on any thread.
        The status of a job whose pods are being bound is held for ``hold_s``: it changes again
        when they are bound and when they run, and is then written once.
        """
        self._cluster = cluster
        self._writer: Writer = writer or DirectWriter(cluster)
        self._known = known or self._ask
        self._waits = waits or self._has_no_node
        self._source = source
        self._write_conditions = write_conditions
        self._clock = clock or cluster.now
        self._on_failure = on_failure
        self._binds = BindWrites(self._writer, self._known, cluster.now)
        self._reported: deque[WriteResult] = deque()
        self._underway: set[tuple[str, str, str]] = set()
        self._statuses = StatusWrites(self._clock)
        self._hold_s = hold_s
        self._held: dict[str, _Held] = {}
        """Statuses of groups whose jobs are starting."""
        self._at = 0.0
        self._deferred: dict[str, _WaitingStatus] = {}
        self._stored: dict[str, Mapping[str, str]] = {}
        """Data of ConfigMaps as last written."""
        self._evicted: dict[str, tuple[Pod, str]] = {}
        """Leaving pods as they were, since they may be gone when the answer arrives."""
        self.written_groups: dict[str, tuple[PodGroupStatus, dict[str, str]]] = {}
        """Status and annotations of groups that the last ``apply`` handed in, or holds."""
        self._events = EventRecorder(self._submit if write_events else None, source)
        self._cycles = 0
        self._time = ""
        self._transition = ""
        """Names the cycle in the conditions that it writes."""

    def apply(self, decisions: Decisions, at: float | None = None) -> WriteResults:
        """Hand all decisions in; return results of these and earlier writes known so far.

        ``at`` is the time of the cycle, by which statuses are held: a replay has the same.
        """
        self._at = self._cluster.now() if at is None else at
        self._cycles += 1
        self._time = self._now()
        self._transition = str(uuid5(NAMESPACE_OID, f"{self._source} {self._time} {self._cycles}"))
        self.written_groups = {}
        self._binds.expect(decisions)
        for pod, node in decisions.binds.items():
            claims = decisions.reservations.get(pod, ())
            self.bind(pod, node, decisions.annotations.get(pod, {}), claims)
        for pod in decisions.evictions:
            because = decisions.evicted_by.get(pod, "") or "preempt"
            note = decisions.eviction_notes.get(pod)
            self._evict(pod, f"{because}: {note}" if note else because)
        for claim in decisions.released_claims:
            self._binds.release(claim)
        for config_map, data in decisions.stored.items():
            self._store(config_map, data)
        for pod in decisions.opened_gates:
            self._remove_gate(pod)
        self._write_groups(decisions)
        for group, change in decisions.promises.items():
            self._write_promise(group, change)
        for queue, amounts in decisions.queues.items():
            self._write_queue(queue, amounts)
        self._write_pod_statuses(decisions)
        self._record_group_events(decisions)
        results = self.drain()
        if self._cycles % _PRUNED_EACH == 0:
            self._prune()
        return results

    def drain(self) -> WriteResults:
        """Return the results of writes since the last time, and write what follows from them."""
        results = WriteResults()
        while self._reported:
            result = self._reported.popleft()
            self._underway.discard((result.what, result.key, result.uid))
            if result.what == "event":
                self._events.finished(failed=result.error is not None)
            else:
                results.results.append(result)
        for result in results.results:  # all are returned, whatever the next writes do
            try:
                self._follow_up(result)
            except Exception as error:  # noqa: BLE001
                _log.error("a callback after a write failed", of=result.key, error=repr(error))
        return results

    def is_underway(self, what: str, pod: str, uid: str) -> bool:
        """Return whether a "bind" or "evict" was handed in whose result is not known yet."""
        return (what, pod, uid) in self._underway

    @property
    def events_lost(self) -> int:
        """The number of events that were dropped or that the cluster refused."""
        return self._events.lost

    def bind(
        self,
        pod: str,
        node: str,
        annotations: Mapping[str, str],
        claims: tuple[ClaimReservation, ...] = (),
    ) -> None:
        """Hand a bind in, after what it needs; the bind of an unknown pod fails."""
        namespace, _, name = pod.partition("/")
        known = self._known("Pod", pod)
        if not isinstance(known, Pod):
            error = NotFoundError("Pod", namespace, name)
            self._reported.append(WriteResult("bind", pod, "", error, node))
            return
        uid = known.metadata.uid
        arguments = {
            "namespace": namespace,
            "pod": name,
            "node": node,
            "annotations": annotations,
            "uid": uid,
        }
        self._underway.add(("bind", pod, uid))
        report = self._reporter(WriteResult("bind", pod, uid, None, node))
        self._binds.bind(pod, known, claims, Write("bind", arguments), report)

    def unreserve(self, pod: str, uid: str) -> bool:
        """Release claims and node lock of a pod that is not bound; True: a result will follow."""
        return self._binds.unreserve(pod, uid, self._reporter(WriteResult("release", pod, uid)))

    def write_storage(self, kind: str, key: str, known: KubeObject, patch: Manifest) -> None:
        """Hand in what a pod's bind waits for: a patch of a claim or of a volume."""
        self._patch(kind, kind, key, known, patch)

    def report_unbound_volumes(self, pod: str, node: str, why: str) -> None:
        """Report on a pod that it does not get its node, because its claims are not bound."""
        known = self._known("Pod", pod)
        if isinstance(known, Pod):
            message = f"failed to bind volumes for node {node}: {why}"
            self._report_failure(pod, known, message, is_condition=True)

    # Writes

    def _submit(
        self, verb: Any, arguments: Mapping[str, Any], lane: Lane, result: WriteResult
    ) -> None:
        self._writer.submit(Write(verb, arguments), lane=lane, done=self._reporter(result))

    def _reporter(self, result: WriteResult) -> Done:
        """Record the result of a write; may be called on any thread."""
        append, clock, started = self._reported.append, self._clock, self._clock()
        what, key, uid, node = result.what, result.key, result.uid, result.node

        def report(error: ClusterError | None) -> None:
            append(WriteResult(what, key, uid, error, node, clock() - started))
            if error is not None and self._on_failure is not None:
                self._on_failure()

        return report

    def _evict(self, pod: str, because: str) -> None:
        namespace, _, name = pod.partition("/")
        known = self._known("Pod", pod)
        if not isinstance(known, Pod):
            return
        reason = f"{self._source}: preempting to accommodate a higher priority pod"
        self._evicted[pod] = known, because
        arguments = {
            "namespace": namespace,
            "pod": name,
            "reason": reason,
            "uid": known.metadata.uid,
        }
        self._underway.add(("evict", pod, known.metadata.uid))
        self._submit("evict", arguments, Lane.EVICT, WriteResult("evict", pod, known.metadata.uid))

    def _store(self, config_map: str, data: Mapping[str, str]) -> None:
        namespace, _, name = config_map.partition("/")
        self._stored[config_map] = data
        place = {"kind": CONFIG_MAP, "namespace": namespace, "name": name}
        arguments = {**place, "patch": {"data": data}}
        self._submit("patch", arguments, Lane.STATUS, WriteResult("state", config_map, ""))

    def _make_store(self, config_map: str) -> None:
        namespace, _, name = config_map.partition("/")
        metadata = {"namespace": namespace, "name": name}
        parts = {"metadata": metadata, "data": self._stored[config_map]}
        manifest = {"apiVersion": "v1", "kind": CONFIG_MAP, **parts}
        result = WriteResult("new state", config_map, "")
        self._submit("create", {"manifest": manifest}, Lane.STATUS, result)

    def _remove_gate(self, pod: str) -> None:
        known = self._known("Pod", pod)
        if isinstance(known, Pod) and self._statuses.begin("gate", pod, known, QUEUE_GATE):
            gates = [{"$patch": "delete", "name": QUEUE_GATE}]
            patch = {"metadata": {"uid": known.metadata.uid}, "spec": {"schedulingGates": gates}}
            self._patch("gate", "Pod", pod, known, patch, patch_type="strategic")

    def _write_groups(self, decisions: Decisions) -> None:
        """Write statuses of groups, and those that were held long enough."""
        for group, state in decisions.pod_groups.items():
            is_starting = not _STARTING.isdisjoint(decisions.task_statuses.get(group, ()))
            self._write_group(group, state, is_starting=is_starting)
        for group, held in [*self._held.items()]:
            known = self._known(POD_GROUP, group)
            if known is None or known.metadata.uid != held.uid:
                del self._held[group]
            elif not self._is_fresh(held.since):
                self._write_group(group, held.state)

    def _is_fresh(self, since: float) -> bool:
        return 0 <= self._at - since < self._hold_s

    def forget_held(self) -> None:
        """Drop statuses that are held; those that are still to be written are decided again."""
        self._held.clear()

    def _write_group(self, group: str, state: PodGroupState, *, is_starting: bool = False) -> None:
        known, held = self._known(POD_GROUP, group), self._held.pop(group, None)
        if not isinstance(known, PodGroup):
            return
        annotations = group_annotations(known, state)
        status = group_status(known, state, cycle=self._transition, time=self._time)
        if status is None and not annotations:
            if held is not None:  # what was held counted as written
                self.written_groups[group] = known.status, {}
            return
        status, since = status or known.status, held.since if held else self._at
        if is_starting and self._is_fresh(since):
            self._held[group] = _Held(state, since, known.metadata.uid)
            self.written_groups[group] = status, annotations
        elif self._statuses.begin("group", group, known, state):
            patch = group_patch(known, status, annotations)
            self._patch("group", POD_GROUP, group, known, patch)
            self.written_groups[group] = status, annotations
        elif held is not None:  # it counts as written: another one is still on its way
            self._held[group] = _Held(state, self._at, known.metadata.uid)

    def _write_promise(self, group: str, change: PromiseChange) -> None:
        known = self._known(POD_GROUP, group)
        if not isinstance(known, PodGroup):
            return
        if self._statuses.begin("promise", group, known, change):
            patch = {"metadata": {"annotations": {RESERVATION: change.text or None}}}
            self._patch("promise", POD_GROUP, group, known, patch)
            self._events.promised(known, change)

    def write_cause(self, group: str, code: str, text: str, *, is_new: bool = True) -> None:
        """Write on a pod group why its job waits, recorded if ``is_new``; no code: no more."""
        known = self._known(POD_GROUP, group)
        if not isinstance(known, PodGroup):
            return
        marks = {WAITING_CAUSE: code or None, WAITING_WHY: text or None}
        written = known.metadata.annotations
        if any(written.get(name) != value for name, value in marks.items()):
            self._patch("cause", POD_GROUP, group, known, {"metadata": {"annotations": marks}})
        if code and is_new:
            self._events.waits(known, code, text)

    def _write_queue(self, queue: str, amounts: Mapping[str, str]) -> None:
        known = self._known(QUEUE, queue)
        if not isinstance(known, Queue):
            return
        patch = queue_patch(known, amounts)
        if patch is not None and self._statuses.begin("queue", queue, known, dict(amounts)):
            self._patch("queue", QUEUE, queue, known, patch, subresource="status")

    def _patch(
        self, what: str, kind: str, key: str, known: KubeObject, patch: Manifest, **more: str
    ) -> None:
        namespace, _, name = key.rpartition("/")
        arguments = {"kind": kind, "namespace": namespace, "name": name, "patch": patch, **more}
        lane = Lane.STATUS if what in _STATUS_OF else Lane.BIND
        self._submit("patch", arguments, lane, WriteResult(what, key, known.metadata.uid))

    # Pods that wait

    def _write_pod_statuses(self, decisions: Decisions) -> None:
        """Write why pods wait and for which node; what had to be deferred before comes first."""
        deferred, self._deferred = self._deferred, {}
        statuses = {pod: status for pod, status in deferred.items() if self._waits(pod)}
        for pod, why in decisions.waiting_pods.items():
            known = self._known("Pod", pod)
            stale = isinstance(known, Pod) and known.status.nominated_node_name
            nominated = "" if stale and pod not in decisions.pipelined else None
            message = why.message if self._write_conditions else ""
            statuses[pod] = _WaitingStatus(why.reason, message, nominated)
        for pod, node in decisions.nominated.items():
            statuses.setdefault(pod, _WaitingStatus()).nominated = node
        for pod, status in statuses.items():
            self._write_pod_status(pod, status)

    def _write_pod_status(self, pod: str, status: _WaitingStatus) -> None:
        known = self._known("Pod", pod)
        if not isinstance(known, Pod) or known.spec.node_name:
            return
        patch = waiting_patch(
            known,
            reason=status.reason,
            message=status.message,
            nominated=status.nominated,
            time=self._time,
        )
        if patch is None:
            return
        if self._statuses.is_underway("pod status", pod):
            self._deferred[pod] = status
        elif self._statuses.begin("pod status", pod, known, status):
            more = {"patch_type": "strategic", "subresource": "status"}
            self._patch("pod status", "Pod", pod, known, patch, **more)
            if status.message:
                self._events.failed_scheduling(known, status.message)

    def _record_group_events(self, decisions: Decisions) -> None:
        for group, state in decisions.pod_groups.items():
            known = self._known(POD_GROUP, group)
            if isinstance(known, PodGroup):
                self._events.group(
                    known,
                    state,
                    decisions.task_statuses.get(group, {}),
                    decisions.unschedulable.get(group),
                )
                self._events.refused(known, decisions.records.get(group))
        for group, lines in decisions.failed_for.items():
            known = self._known(POD_GROUP, group)
            if isinstance(known, PodGroup):
                self._events.plugin_failed(known, lines)

    # Results

    def _follow_up(self, result: WriteResult) -> None:
        error, key = result.error, result.key
        if result.what == "bind":
            self._after_bind(result)
        elif result.what == "evict":
            evicted = self._evicted.pop(key, None)
            if error is None and evicted is not None:
                pod, action = evicted
                group = f"{pod.metadata.namespace}/{pod.metadata.annotations.get(GROUP_NAME, '')}"
                self._events.evicted(pod, self._known(POD_GROUP, group), action)
        elif result.what in _STATUS_OF:
            self._after_status(result)
        elif result.what == "state" and isinstance(error, NotFoundError):
            self._make_store(key)
        elif result.what in ("state", "new state") and error is not None:
            _log.warning("state of plugins cannot be written", config_map=key, why=error)

    def _after_bind(self, result: WriteResult) -> None:
        error, pod = result.error, self._known("Pod", result.key)
        if error is None:
            self._binds.forget(result.key, result.uid)
        if not isinstance(pod, Pod) or pod.metadata.uid != result.uid:
            return
        if error is None:
            self._events.scheduled(pod, result.node)
        elif not (isinstance(error, NotFoundError | FencedError) or _is_unsent(error)):
            message = f"failed to bind to node {result.node}: {error}"
            is_condition = isinstance(error, RejectedError)
            self._report_failure(result.key, pod, message, is_condition=is_condition)

    def _report_failure(self, key: str, pod: Pod, message: str, *, is_condition: bool) -> None:
        if is_condition and self._write_conditions:
            self._deferred[key] = _WaitingStatus("SchedulerError", message)
        else:
            self._events.failed_scheduling(pod, message)

    def _after_status(self, result: WriteResult) -> None:
        status = self._statuses.finish(result)
        if isinstance(status, _WaitingStatus) and isinstance(result.error, ConflictError):
            self._deferred[result.key] = status  # it changed meanwhile: once more, if it waits

    def _prune(self) -> None:
        self._statuses.prune(lambda what, key: self._known(_STATUS_OF[what], key))
        self._events.prune(lambda group: self._known(POD_GROUP, group) is not None)
        self._binds.prune()

    # Without an informer

    def _ask(self, kind: str, key: str) -> KubeObject | None:
        namespace, _, name = key.rpartition("/")
        try:
            return from_manifest(self._cluster.get(kind, namespace, name))
        except (NotFoundError, InputError):
            return None

    def _has_no_node(self, pod: str) -> bool:
        known = self._known("Pod", pod)
        return isinstance(known, Pod) and not known.spec.node_name

    def _now(self) -> str:
        return rfc3339(self._cluster.now())


def _is_unsent(error: ClusterError) -> bool:
    """Return whether a write was not even sent: an event about it would not be either."""
    return isinstance(error, UnavailableError) and not error.sent
