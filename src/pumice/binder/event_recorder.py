"""Events about pods and groups, with the reasons and sentences of Volcano.

Used by the binder.  Events are the least of all writes: what was told last is not told again, and
when too many are on their way the rest are left out.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pumice.api.decisions import JobRecord, PodGroupState
from pumice.api.groups import PodGroup
from pumice.api.meta import KubeObject
from pumice.api.pods import Pod
from pumice.binder.write_results import Outcome
from pumice.cluster.base import Lane

_WAITING: Final = frozenset({"Pending", "Inqueue", "Unknown"})
_NOT_ADMITTED: Final = ("enqueue", "over quota")
_READY: Final = "tasks in gang are ready to be scheduled"
_MOST: Final = 20_000
_EVENT: Final = Outcome("event", "")

Submit = Callable[[str, Mapping[str, Any], Lane, Outcome], None]


class EventRecorder:
    """Writes events and counts those on their way."""

    def __init__(self, submit: Submit, source: str) -> None:
        self._submit = submit
        self._source = source
        self._told: dict[str, str] = {}
        self._underway = 0
        self.lost = 0
        """Events left out because too many were on their way, or that were not taken."""

    def scheduled(self, pod: Pod, node: str) -> None:
        """Tell that a pod has a node."""
        self._tell(pod, "Normal", "Scheduled", f"Successfully assigned {_name(pod)} to {node}")

    def failed_scheduling(self, pod: Pod, message: str) -> None:
        """Tell that a pod has none."""
        self._tell(pod, "Warning", "FailedScheduling", message)

    def evicted(self, pod: Pod, group: KubeObject | None, action: str) -> None:
        """Tell that a pod must go, to it and to its group."""
        self._tell(pod, "Warning", "Evict", f"Pod is evicted, because of {action}")
        if group is not None:
            self._tell(group, "Normal", "Evict", action)

    def group(
        self, group: PodGroup, state: PodGroupState, tasks: Mapping[str, int], why: str | None
    ) -> None:
        """Tell a group whether it can start; the same as last time is not told again."""
        if state.phase in _WAITING:
            if why is None:
                return
            counts = f"{tasks.get('Pending', 0)}/{sum(tasks.values())}"
            message = f"{counts} tasks in gang unschedulable: {why}"
            said = ("Warning", "Unschedulable", message)
        elif any(each.type == "Scheduled" for each in state.conditions):
            said = ("Normal", "Scheduled", _READY)
        else:
            return
        key = _name(group)
        if self._told.get(key) != said[2]:
            self._told[key] = said[2]
            self._tell(group, *said)

    def refused(self, group: PodGroup, record: JobRecord | None) -> None:
        """Tell a group which resource keeps it out of its queue."""
        if record is None or (record.stage, record.reason) != _NOT_ADMITTED:
            return
        resource, cluster = (
            record.numbers.get("resource", ""),
            record.numbers.get("at") == "cluster",
        )
        message = (
            f"resource in cluster is overused: overused {resource}"
            if cluster
            else f"queue resource quota insufficient: insufficient {resource}"
        )
        key = f"{_name(group)} refused"
        if self._told.get(key) != message:
            self._told[key] = message
            self._tell(group, "Normal", "Unschedulable", message)

    def arrived(self, *, failed: bool = False) -> None:
        """Note that an event is no longer on its way."""
        self._underway -= 1
        self.lost += failed

    def prune(self, is_there: Callable[[str], bool]) -> None:
        """Forget what was told to groups that are gone."""
        said = self._told.items()
        self._told = {key: text for key, text in said if is_there(key.partition(" ")[0])}

    def _tell(self, about: KubeObject, event_type: str, reason: str, message: str) -> None:
        if self._underway >= _MOST:
            self.lost += 1
            return
        self._underway += 1
        meta = about.metadata
        arguments = {
            "about": {
                "apiVersion": about.API_VERSION,
                "kind": type(about).__name__,
                "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            },
            "event_type": event_type,
            "reason": reason,
            "message": message,
            "source": self._source,
        }
        self._submit("record", arguments, Lane.EVENT, _EVENT)


def _name(thing: KubeObject) -> str:
    return f"{thing.metadata.namespace}/{thing.metadata.name}"
