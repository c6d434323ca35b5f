"""The base of a job plugin: its additions to pods, and its objects for a job."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import msgspec

from pumice.api.annotations import TASK_SPEC
from pumice.api.kinds import Manifest
from pumice.controllers.job.names import TASK_INDEX
from pumice.controllers.ownership import controlled_by

KeyMaker = Callable[[], tuple[str, str]]
"""Makes a private and a public key."""

_Flag = TypeVar("_Flag", bool, int, str)
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


class Owned(msgspec.Struct, frozen=True):
    """An object that a plugin keeps for a job; written only when it is needed."""

    kind: str
    name: str
    build: Callable[[], Manifest]
    rewritten: bool = False
    """Whether it is updated at every reconciliation, not only created when it is missing."""


class JobPlugin:
    """Base of the job plugins: does nothing."""

    name: ClassVar[str] = ""
    listed: ClassVar[bool] = True
    """Whether the status of the job names the plugin among its resources."""

    defaults: ClassVar[Mapping[str, Any]] = {}
    """The flags that the plugin knows, with the values they have unless the job says otherwise."""

    def __init__(self, arguments: Sequence[str], keys: KeyMaker) -> None:
        """Read the arguments of the job's spec; unreadable ones end the reading."""
        self.flags = flags(arguments, self.defaults)
        self.keys = keys

    def on_pod_create(self, pod: Manifest, job: Manifest) -> None:
        """Add to a pod that is about to be created."""

    def objects(self, job: Manifest) -> list[Owned]:  # noqa: ARG002
        """List the objects that exist as long as the job may run."""
        return []


def flags(arguments: Sequence[str], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Read arguments as Go's flag package does: -name value, --name=value, --switch.

    Reading stops at the first thing that is not a known flag; earlier ones are kept.
    """
    values = dict(defaults)
    words = iter(arguments)
    for word in words:
        body = word.removeprefix("-").removeprefix("-")
        name, equals, text = body.partition("=")
        if word == body or name not in defaults:
            break
        if not equals and isinstance(defaults[name], bool):
            text = "true"
        elif not equals:
            following = next(words, None)
            if following is None:
                break
            text = following
        value = _parsed(text, defaults[name])
        if value is None:
            break
        values[name] = value
    return values


def _parsed(text: str, default: _Flag) -> _Flag | None:
    """Read a value of the type of its default, None when it is not one."""
    if isinstance(default, bool):
        known = text in _TRUE or text in _FALSE
        return text in _TRUE if known else None
    if isinstance(default, int):
        digits = text.removeprefix("-").removeprefix("+")
        return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None
    return text


def task_of(pod: Manifest) -> str:
    """Name the task of a pod."""
    return str(pod["metadata"]["annotations"][TASK_SPEC])


def index_of(pod: Manifest) -> int:
    """Return the index of a pod in its task."""
    return int(pod["metadata"]["annotations"][TASK_INDEX])


def find_task(job: Manifest, name: str) -> Manifest | None:
    """Return a task of a job by its name."""
    tasks: list[Manifest] = job["spec"].get("tasks") or []
    return next((task for task in tasks if task.get("name") == name), None)


def containers(pod: Manifest) -> list[Manifest]:
    """List the containers of a pod, the init containers first."""
    return [*(pod["spec"].get("initContainers") or []), *(pod["spec"].get("containers") or [])]


def add_env(container: Manifest, **variables: str) -> None:
    """Append environment variables to a container."""
    listed = container.setdefault("env", [])
    listed.extend({"name": name, "value": value} for name, value in variables.items())


def open_port(container: Manifest, name: str, number: int) -> None:
    """Open a port of a container unless it is open already."""
    ports = container.setdefault("ports", [])
    if all(port.get("containerPort") != number for port in ports):
        ports.append({"name": name, "containerPort": number, "protocol": "TCP"})


def mount(pod: Manifest, volume: Manifest, path: str, **extra: str) -> None:
    """Add a volume to a pod and mount it into all its containers."""
    pod["spec"].setdefault("volumes", []).append(volume)
    for container in containers(pod):
        place = {"mountPath": path, "name": volume["name"], **extra}
        container.setdefault("volumeMounts", []).append(place)


def made_for(job: Manifest, api_version: str, kind: str, name: str, **body: Any) -> Manifest:
    """Write an object that belongs to a job."""
    metadata = {
        "name": name,
        "namespace": job["metadata"]["namespace"],
        "ownerReferences": [controlled_by(job)],
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}
