"""Events about pods and groups, with the reasons and sentences of Volcano.

Used by the binder.  Events are the least of all writes: what was recorded last is not recorded
again, and when too many are in flight the rest are dropped.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from pumice.api.decisions import (
    CLUSTER,
    RESOURCE_QUOTA,
    JobRecord,
    PodGroupState,
    PromiseChange,
    Short,
    short_of,
)
from pumice.api.groups import PodGroup
from pumice.api.meta import KubeObject
from pumice.api.pods import Pod
from pumice.api.quantity import amount_text
from pumice.binder.write_results import WriteResult
from pumice.cluster.base import Lane

_WAITING: Final = frozenset({"Pending", "Inqueue", "Unknown"})
_NOT_ADMITTED: Final = ("enqueue", "over quota")
_READY: Final = "pod group is ready"
_MOST: Final = 20_000
_EVENT: Final = WriteResult("event", "")
_LANE: Final = Lane.EVENT

Submit = Callable[[str, Mapping[str, Any], Lane, WriteResult], None]


class EventRecorder:
    """Writes events and counts those in flight."""

    def __init__(self, submit: Submit | None, source: str) -> None:
        """Make one; without a way to hand events in nothing is recorded."""
        self._submit = submit
        self._source = source
        self._last_messages: dict[str, str] = {}
        self._underway = 0
        self.lost = 0
        """Events dropped because too many were in flight, or refused."""

    def scheduled(self, pod: Pod, node: str) -> None:
        """Record that a pod has a node."""
        self._record(pod, "Normal", "Scheduled", f"Successfully assigned {_name(pod)} to {node}")

    def failed_scheduling(self, pod: Pod, message: str) -> None:
        """Record that a pod has none."""
        self._record(pod, "Warning", "FailedScheduling", message)

    def evicted(self, pod: Pod, group: KubeObject | None, action: str) -> None:
        """Record that a pod is evicted, for it and for its group."""
        self._record(pod, "Warning", "Evict", f"Pod is evicted, because of {action}")
        if group is not None:
            self._record(group, "Normal", "Evict", action)

    def group(
        self, group: PodGroup, state: PodGroupState, tasks: Mapping[str, int], why: str | None
    ) -> None:
        """Record whether a group can start; the same as last time is not recorded again."""
        if state.phase in _WAITING:
            if why is None:
                return
            counts = f"{tasks.get('Pending', 0)}/{sum(tasks.values())}"
            message = f"{counts} tasks in gang unschedulable: {why}"
            event = ("Warning", "Unschedulable", message)
        elif any(each.type == "Scheduled" for each in state.conditions):
            event = ("Normal", "Scheduled", _READY)
        else:
            return
        self._record_once(group, "", event)

    def waits(self, group: PodGroup, code: str, text: str) -> None:
        """Record why a group waits; asked only when that has changed.

        Normal, as it comes beside Volcano's own warning: alerts on warnings count what they did.
        """
        self._record(group, "Normal", code, text)

    def promised(self, group: PodGroup, change: PromiseChange) -> None:
        """Record that a promised start is made, moved, kept or dropped."""
        if change.reason:
            self._record_once(group, "promise", ("Normal", change.reason, change.message))

    def refused(self, group: PodGroup, record: JobRecord | None) -> None:
        """Record which resources keep a group from being admitted."""
        if record is None or (record.stage, record.reason) != _NOT_ADMITTED:
            return
        event = ("Normal", "Unschedulable", _refusal(record.numbers))
        self._record_once(group, "refused", event)

    def plugin_failed(self, group: PodGroup, lines: Sequence[str]) -> None:
        """Record which plugins failed for a group, and in which hooks."""
        self._record_once(group, "failed", ("Warning", "PluginFailed", "; ".join(lines)))

    def finished(self, *, failed: bool = False) -> None:
        """Record that an event is no longer in flight."""
        self._underway -= 1
        self.lost += failed

    def prune(self, is_there: Callable[[str], bool]) -> None:
        """Forget groups that are gone."""
        last = self._last_messages.items()
        self._last_messages = {key: text for key, text in last if is_there(key.partition(" ")[0])}

    def _record_once(self, group: PodGroup, topic: str, event: tuple[str, str, str]) -> None:
        """Record an event unless it equals the last one of its topic."""
        if self._submit is None:
            return
        key = f"{_name(group)} {topic}"
        if self._last_messages.get(key) != event[2]:
            self._last_messages[key] = event[2]
            self._record(group, *event)

    def _record(self, about: KubeObject, event_type: str, reason: str, message: str) -> None:
        if self._submit is None:
            return
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
        self._submit("record", arguments, _LANE, _EVENT)


def _refusal(numbers: Mapping[str, Any]) -> str:
    """Name every resource that is short; of a resource quota also its name and the amounts."""
    at, short = numbers.get("at", ""), short_of(numbers)
    if at == CLUSTER:
        return f"resource in cluster is overused: {_each('overused', short)}"
    if not at.startswith(RESOURCE_QUOTA):
        return f"queue resource quota insufficient: {_each('insufficient', short)}"
    requested, used, limited = (
        ",".join(f"{each.resource}={amount_text(each.resource, amount(each))}" for each in short)
        for amount in (attrgetter("request"), attrgetter("used"), attrgetter("limit"))
    )
    return f"{at} insufficient, requested: {requested}, used: {used}, limited: {limited}"


def _each(word: str, short: list[Short]) -> str:
    return ", ".join(f"{word} {each.resource}" for each in short)


def _name(thing: KubeObject) -> str:
    return f"{thing.metadata.namespace}/{thing.metadata.name}"
