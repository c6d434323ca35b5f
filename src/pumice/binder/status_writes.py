"""The last written status of each object, and whether it may be written again.

Used by the binder.  One status of an object is in flight at a time, and one that the cluster
refuses is retried with growing delays.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from pumice import logs
from pumice.api.annotations import ALLOCATED_HYPER_NODE
from pumice.api.decisions import Condition, PodGroupState
from pumice.api.groups import PodGroup, PodGroupStatus, Queue
from pumice.api.kinds import Manifest
from pumice.api.meta import Condition as StatusCondition
from pumice.api.meta import KubeObject
from pumice.api.pods import POD_SCHEDULED, Pod
from pumice.binder.write_results import WriteResult
from pumice.errors import RejectedError


def waiting_patch(
    pod: Pod, *, reason: str, message: str, nominated: str | None, time: str
) -> Manifest | None:
    """Write why a pod waits and, unless None, for which node ("" removes it).

    The patch is for the pod as it was seen: a pod that has got a node meanwhile must not be
    reported as waiting.
    """
    status: Manifest = {}
    if message:
        condition = _waiting_condition(pod, reason, message, time)
        if condition is not None:
            status["conditions"] = [condition]
    if nominated is not None and nominated != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nominated or None
    if not status:
        return None
    metadata = {"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version}
    return {"metadata": metadata, "status": status}


def _waiting_condition(pod: Pod, reason: str, message: str, time: str) -> Manifest | None:
    """Return the condition of a pod that waits; its time moves only with its status."""
    since = time
    for known in pod.status.conditions:
        if known.type == POD_SCHEDULED and known.status == "False":
            if known.reason == reason and known.message == message:
                return None
            since = known.last_transition_time or time
    return {
        "type": POD_SCHEDULED,
        "status": "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }


def group_status(
    group: PodGroup, state: PodGroupState, *, cycle: str, time: str
) -> PodGroupStatus | None:
    """Return the status a group is to have, None if it has it; unchanged conditions stay."""
    known = {Condition(c.type, c.status, c.reason, c.message): c for c in group.status.conditions}
    conditions = tuple(
        known.get(each)
        or StatusCondition(
            type=each.type,
            status=each.status,
            reason=each.reason,
            message=each.message,
            last_transition_time=time,
            transition_id=cycle,
        )
        for each in state.conditions
    )
    status = PodGroupStatus(
        phase=state.phase,
        conditions=conditions,
        running=state.running,
        succeeded=state.succeeded,
        failed=state.failed,
    )
    return None if status == group.status else status


def group_annotations(group: PodGroup, state: PodGroupState) -> dict[str, str]:
    """Return the annotations that a group should have and lacks."""
    wanted = {ALLOCATED_HYPER_NODE: state.hyper_node} if state.hyper_node else {}
    annotations = group.metadata.annotations
    return {name: value for name, value in wanted.items() if annotations.get(name) != value}


def group_patch(
    group: PodGroup, status: PodGroupStatus, annotations: Mapping[str, str]
) -> Manifest:
    """Write status and annotations of a group."""
    metadata: Manifest = {"uid": group.metadata.uid}
    if annotations:
        metadata["annotations"] = dict(annotations)
    counts = {"running": status.running, "succeeded": status.succeeded, "failed": status.failed}
    conditions = [_condition(each) for each in status.conditions]
    return {
        "metadata": metadata,
        "status": {"phase": status.phase, "conditions": conditions, **counts},
    }


def _condition(stated: StatusCondition) -> dict[str, str]:
    texts: dict[str, str | None] = {
        "type": stated.type,
        "status": stated.status,
        "reason": stated.reason,
        "message": stated.message,
        "transitionID": stated.transition_id,
        "lastTransitionTime": stated.last_transition_time,
    }
    return {key: text for key, text in texts.items() if text}


def queue_patch(queue: Queue, amounts: Mapping[str, str]) -> Manifest | None:
    """Write the allocated amounts of a queue; what is reserved stays, and is there as Volcano's."""
    old = queue.status.allocated
    if old == amounts:
        return None
    return {"status": {"allocated": {**_gone(old, amounts), **amounts}, "reservation": {}}}


def _gone(old: Iterable[str], new: Mapping[str, Any]) -> dict[str, None]:
    return dict.fromkeys(name for name in old if name not in new)


_LOST_S: Final = 600.0
"""After this time without an answer, the write counts as lost."""
_LONGEST_S: Final = 60.0
"""The longest delay before a refused status is sent again."""
_log = logs.get("binder")

StatusKey = tuple[str, str]
"""The sort of status, and its object."""


class _Sent(msgspec.Struct):
    """The last status written of an object: on which version, its content, when."""

    version: str
    content: Any
    at: float
    answered: bool = False


class _Refused(msgspec.Struct):
    """A status that the cluster refused: how often, and until when it is not sent again."""

    uid: str
    times: int
    until: float


class StatusWrites:
    """Remembers statuses by object; times are those of the clock given."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sent: dict[StatusKey, _Sent] = {}
        self._refused: dict[StatusKey, _Refused] = {}

    def __len__(self) -> int:
        """Count the objects of which something is remembered."""
        return len(self._sent.keys() | self._refused.keys())

    def is_underway(self, what: str, key: str) -> bool:
        """Return whether a status of an object is in flight."""
        sent = self._sent.get((what, key))
        return sent is not None and not sent.answered and self._clock() - sent.at < _LOST_S

    def begin(self, what: str, key: str, known: KubeObject, content: Any) -> bool:
        """Return whether a status may be written now; it then counts as in flight.

        False while one of the object is in flight or the cluster has just refused one, and if
        the cluster was sent just this and has not changed the object since.
        """
        status, version = (what, key), known.metadata.resource_version
        refused = self._refused.get(status)
        if refused is not None and refused.uid != known.metadata.uid:
            del self._refused[status]
        elif refused is not None and self._clock() < refused.until:
            return False
        sent = self._sent.get(status)
        if self.is_underway(what, key) or (
            sent is not None
            and sent.answered
            and (sent.version, sent.content) == (version, content)
        ):
            return False
        self._sent[status] = _Sent(version, content, self._clock())
        return True

    def finish(self, result: WriteResult) -> Any:
        """Process the result of one; return the content of one that failed."""
        status = result.what, result.key
        sent = self._sent.get(status)
        if sent is None:
            return None
        if result.error is None:
            sent.answered = True
            self._refused.pop(status, None)
            return None
        del self._sent[status]
        if isinstance(result.error, RejectedError):
            self._refuse(status, result)
        return sent.content

    def _refuse(self, status: StatusKey, result: WriteResult) -> None:
        before = self._refused.get(status)
        times = 1 if before is None or before.uid != result.uid else before.times + 1
        pause = min(2.0 ** min(times - 1, 10), _LONGEST_S)
        self._refused[status] = _Refused(result.uid, times, self._clock() + pause)
        if times == 1:
            _log.warning(
                "status refused, retrying with growing delays",
                what=result.what,
                of=result.key,
                why=result.error,
            )

    def prune(self, known: Callable[[str, str], KubeObject | None]) -> None:
        """Forget objects that are gone or that the cluster has changed since."""
        for status in [status for status, sent in self._sent.items() if sent.answered]:
            found = known(*status)
            if found is None or found.metadata.resource_version != self._sent[status].version:
                del self._sent[status]
        for status in [status for status in self._refused if known(*status) is None]:
            del self._refused[status]
