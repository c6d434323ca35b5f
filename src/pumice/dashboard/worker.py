"""The answering process: it holds a copy of the cluster and receives the changes.

Not imported by the scheduler; it is started by ``answers``.
"""

import signal
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from pumice.api.kinds import Manifest
from pumice.api.wording import crash_text
from pumice.dashboard.material import Material
from pumice.dashboard.questions import Ask, Respondent
from pumice.errors import PumiceError

Key = tuple[str, str, str]
"""Kind, namespace and name."""


@dataclass(frozen=True)
class Update:
    """Objects that differ from those that the worker has; the last one completes the cluster."""

    changed: list[tuple[str, Manifest]] = field(default_factory=list)
    """With their kinds."""
    gone: list[Key] = field(default_factory=list)


@dataclass(frozen=True)
class Complete:
    """The cluster is complete: everything except the objects, and their order."""

    header: dict[str, Any]
    order: dict[str, list[Key]] | None = None
    """Keys by kind; None if the material is a world or a record."""
    material: Material | None = None


@dataclass(frozen=True)
class Answered:
    """The result of a question."""

    value: Any = None
    problem: str = ""
    """Why there is no answer, in one sentence."""
    is_fault: bool = False
    """Whether the fault is ours, not the question's."""


def key_of(kind: str, manifest: Manifest) -> Key:
    """Name an object."""
    meta = manifest["metadata"]
    return kind, str(meta.get("namespace") or ""), str(meta["name"])


def serve(connection: Connection) -> None:
    """Answer until the other side closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this
    objects: dict[Key, Manifest] = {}
    material: Material | None = None
    who: Respondent | None = None
    while True:
        try:
            message = connection.recv()
        except (EOFError, OSError):
            return
        if isinstance(message, Update):
            objects.update({key_of(kind, one): one for kind, one in message.changed})
            for key in message.gone:
                objects.pop(key, None)
            continue
        if isinstance(message, Complete):
            material, who = _assembled(message, objects), None
            continue
        found, who = _answer(message, material, who)
        connection.send(found)


def _assembled(message: Complete, objects: dict[Key, Manifest]) -> Material:
    if message.material is not None:
        return message.material
    order = message.order or {}
    return Material(
        objects={kind: [objects[key] for key in keys] for kind, keys in order.items()},
        **message.header,
    )


def _answer(
    question: Ask, material: Material | None, who: Respondent | None
) -> tuple[Answered, Respondent | None]:
    try:
        if who is None:
            if material is None:
                return Answered(problem="there is no cluster yet"), None
            who = Respondent(material.to_world())
        return Answered(question.answer(who)), who
    except PumiceError as error:
        return Answered(problem=str(error)), who
    except Exception as error:  # noqa: BLE001  # reported to whoever asked; the next may do better
        return Answered(problem=crash_text(error), is_fault=True), who
