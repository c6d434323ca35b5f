"""The data of an explanation: the findings, before they are worded for a screen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pumice.api.codes import Cause, Spared
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session

EXTENDER: Final = "extender"


@dataclass(frozen=True)
class ObjectRef:
    """An object that a finding is about."""

    kind: str
    name: str
    namespace: str = ""

    @classmethod
    def of_key(cls, kind: str, key: str) -> "ObjectRef":
        """Read "namespace/name"."""
        namespace, _, name = key.rpartition("/")
        return cls(kind, name, namespace)

    def to_data(self) -> dict[str, str]:
        """Return it as JSON data."""
        return {"kind": self.kind, "namespace": self.namespace, "name": self.name}


@dataclass(frozen=True)
class Finding:
    """One cause that alone keeps a job waiting."""

    code: Cause
    text: str
    about: ObjectRef | None = None
    numbers: Mapping[str, Any] = field(default_factory=dict)
    """What was compared; amounts in cores, bytes or pieces."""

    def to_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            "code": self.code.value,
            "text": self.text,
            "object": self.about.to_data() if self.about else None,
            "numbers": dict(self.numbers),
        }


@dataclass(frozen=True)
class SparedPods:
    """Pods that were not evicted for a job, and why."""

    code: Spared
    pods: int
    text: str
    about: ObjectRef | None = None
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def to_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            "code": self.code.value,
            "pods": self.pods,
            "text": self.text,
            "object": self.about.to_data() if self.about else None,
            "numbers": dict(self.numbers),
        }


@dataclass(frozen=True)
class FunnelRow:
    """How many nodes are left after a constraint."""

    constraint: str
    left: int
    text: str

    def to_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {"constraint": self.constraint, "left": self.left, "text": self.text}


@dataclass(frozen=True, kw_only=True)
class Position:
    """The place of a job in the order when the cycle begins."""

    queue: str
    place: int
    """In its queue, from 1."""
    of: int
    queue_place: int
    """Of its queue among the queues with waiting jobs, from 1."""
    queues: int
    turn: int | None = None
    """When it was actually taken to be placed, from 1; None if it never was."""
    behind: Sequence[tuple[str, str]] = ()
    """The jobs of its queue right before it, each with the key that puts it first."""

    def to_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            "queue": self.queue,
            "place": self.place,
            "of": self.of,
            "queuePlace": self.queue_place,
            "queues": self.queues,
            "turn": self.turn,
            "behind": [{"job": job, "key": key} for job, key in self.behind],
        }


def failed_in(ssn: Session, plugin: Plugin, hook: str) -> Finding | None:
    """Return that a plugin failed in a hook, if it did."""
    text = ssn.failures.line(plugin.name, hook)
    if not text:
        return None
    return Finding(Cause.PLUGIN_FAILED, text, None, {"plugin": plugin.name, "hook": hook})
