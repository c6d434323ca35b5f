"""Queue: opens, closes and reopens queues along their hierarchy, by command or by parent.

Writes ``spec.parent``, ``status.state`` and one annotation; the scheduler writes
``status.allocated``.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from pumice.api.kinds import COMMAND, POD_GROUP, QUEUE, Manifest, queue_of
from pumice.api.times import epoch_or_zero
from pumice.controllers.base import SOURCE, Delete, Effect, Key, Patch, Plan, Record, View, key_of
from pumice.controllers.view import parent_of

CLOSED_BY_PARENT: Final = "volcano.sh/closed-by-parent"

_ROOT: Final = "root"
_FIRST_DELAY_S: Final = 0.005
_SHUT: Final = frozenset({"Closed", "Closing"})


class QueueController:
    """Keeps ``status.state`` of queues in line with commands, parents and their PodGroups."""

    name = "queue"
    watches: tuple[str, ...] = (QUEUE, POD_GROUP, COMMAND)

    def __init__(self, *, max_requeue_num: int = 15) -> None:
        """Set how often opening is tried again below a closed parent; below 0 for ever."""
        self._patience_s = math.inf
        if max_requeue_num >= 0:  # each wait is twice as long as the one before
            self._patience_s = _FIRST_DELAY_S * (2**max_requeue_num - 1)
        self._refused: dict[str, float] = {}
        """Queues waiting to be opened and until when; losing it loses a pending command."""

    def concerns(self, kind: str, manifest: Manifest, view: View) -> Iterable[Key]:
        """Look at the queue itself and its children, that of a PodGroup, that of a command."""
        if kind == POD_GROUP:
            return (_key(queue_of(manifest)),)
        if kind == COMMAND:
            return (_key(manifest["target"]["name"]),) if _is_for_queues(manifest) else ()
        name = manifest["metadata"]["name"]
        return (_key(name), *(key_of(child) for child in view.below(QUEUE, name)))

    def reconcile(self, key: Key, view: View) -> Plan:
        """Carry out the commands for a queue, then follow its parent."""
        commands = _commands(key.name, view)
        consumed: list[Effect] = [Delete(key_of(command)) for command in commands]
        manifest = view.get(QUEUE, "", key.name)
        if manifest is None:
            self._refused.pop(key.name, None)
            return Plan(consumed)
        queue = _Gate(manifest, view, is_wanted_open=key.name in self._refused)
        for command in commands:
            queue.obey(str(command.get("action", "")))
        queue.follow_parent()
        queue.settle()
        waits, again_in_s = self._wait(queue)
        # a command goes last: should a write fail, the next reconciliation still finds it
        return Plan([*queue.effects(), *waits, *consumed], again_in_s)

    def _wait(self, queue: "_Gate") -> tuple[list[Effect], float | None]:
        """Remember that a queue is to be opened, until that is no longer worth waiting for."""
        if not queue.is_wanted_open:
            self._refused.pop(queue.name, None)
            return [], None
        now = queue.view.now
        left_s = self._refused.setdefault(queue.name, now + self._patience_s) - now
        if left_s > 0:
            return [], None if math.isinf(left_s) else left_s
        del self._refused[queue.name]
        why = _refusal(queue.name, parent_of(queue.manifest))
        return [Record(queue.manifest, "Warning", "OpenQueue", why, SOURCE)], None


@dataclass(slots=True)
class _Gate:
    """One queue while it is reconciled: its state so far, and what changed."""

    manifest: Manifest
    view: View
    state: str = ""
    mark: str | None = None
    has_closed: bool = False
    is_wanted_open: bool = False
    parent: Manifest | None = field(init=False)

    def __post_init__(self) -> None:
        self.state = (self.manifest.get("status") or {}).get("state") or "Open"
        self.parent = self.view.get(QUEUE, "", parent_of(self.manifest) or _ROOT)

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @property
    def annotated(self) -> str | None:
        annotations = self.manifest["metadata"].get("annotations") or {}
        return self.mark or annotations.get(CLOSED_BY_PARENT)

    @property
    def parent_is_shut(self) -> bool:
        return self.parent is not None and _state(self.parent) in _SHUT

    def obey(self, action: str) -> None:
        """Carry out one command; opening may have to wait for the parent."""
        if action == "CloseQueue" and self.state not in _SHUT and self.name != _ROOT:
            self._close()
        elif action == "OpenQueue" and self.state != "Open":
            self.is_wanted_open = True
        if action == "CloseQueue":
            self.is_wanted_open = False

    def follow_parent(self) -> None:
        """Close below a closed parent; reopen below an open one what a parent had closed."""
        if self.is_wanted_open and not self.parent_is_shut:
            self._open()
        if self.name == _ROOT or self.parent is None:
            return
        if self.parent_is_shut and self.state not in _SHUT:
            self.mark = "true"
            self._close()
        elif _state(self.parent) == "Open" and self.state in _SHUT and self.annotated == "true":
            self._open()

    def settle(self) -> None:
        """Close finally once the last PodGroup is gone."""
        if self.state == "Closing" and not self._podgroups():
            self.state = "Closed"

    def effects(self) -> list[Effect]:
        key = _key(self.name)
        effects: list[Effect] = []
        if self.name != _ROOT and not parent_of(self.manifest):
            effects.append(Patch(key, {"spec": {"parent": _ROOT}}))
        if self.mark is not None and self.mark != _mark(self.manifest):
            changes = {"metadata": {"annotations": {CLOSED_BY_PARENT: self.mark}}}
            effects.append(Patch(key, changes))
        if self.state != _state(self.manifest):
            status = {"state": self.state, "reservation": {}}
            effects.append(Patch(key, {"status": status}, subresource="status"))
        if self.has_closed:
            message = "Close queue succeed"
            effects.append(Record(self.manifest, "Normal", "CloseQueue", message, SOURCE))
        return effects

    def _open(self) -> None:
        self.state, self.mark, self.is_wanted_open = "Open", "false", False

    def _close(self) -> None:
        self.state, self.has_closed = "Closing", True

    def _podgroups(self) -> bool:
        """Check for PodGroups that keep the queue from closing.

        Volcano: a queue recreated under an old name does not know the PodGroups of the former.
        """
        made = _made(self.manifest)
        return any(
            queue_of(group) == self.name and _made(group) >= made
            for group in self.view.list(POD_GROUP)
        )


def _refusal(name: str, parent: str) -> str:
    why = (
        f"Failed to open queue {name} because its parent queue {parent} is closing or closed. "
        "Open the parent queue first."
    )
    message = f"sync queue {name} failed for {why}, event is CommandIssued, action is OpenQueue"
    return f"OpenQueue queue failed for {message}"


def _key(name: str) -> Key:
    return Key(QUEUE, "", str(name))


def _state(queue: Manifest) -> str:
    return str((queue.get("status") or {}).get("state") or "")


def _mark(queue: Manifest) -> str | None:
    return (queue["metadata"].get("annotations") or {}).get(CLOSED_BY_PARENT)


def _made(manifest: Manifest) -> float:
    return epoch_or_zero(manifest["metadata"].get("creationTimestamp"))


def _is_for_queues(command: Manifest) -> bool:
    target = command.get("target") or {}
    return (
        target.get("kind") == "Queue"
        and target.get("apiVersion") == "scheduling.volcano.sh/v1beta1"
    )


def _commands(queue: str, view: View) -> list[Manifest]:
    """Return the commands for a queue, oldest first."""
    mine = (
        command
        for command in view.list(COMMAND)
        if _is_for_queues(command) and command["target"].get("name") == queue
    )
    return sorted(mine, key=lambda one: (_made(one), one["metadata"]["name"]))
