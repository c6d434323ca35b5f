"""One pod as a row: ready containers, status in one word, restarts, age.

The word is kubectl's: the most telling reason of the pod or of its containers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pumice.api.kinds import ENDED_PHASES, Manifest
from pumice.api.times import epoch
from pumice.cli.vcctl.columns import age

Status = Mapping[str, Any]


@dataclass(frozen=True)
class PodRow:
    """The cells of a pod."""

    name: str
    ready: str
    status: str
    restarts: str
    age: str
    node: str

    COLUMNS: ClassVar = (
        ("Name", "name"),
        ("Ready", "ready"),
        ("Status", "status"),
        ("Restart", "restarts"),
        ("Age", "age"),
    )


def pod_row(pod: Manifest, now: float) -> PodRow:
    """Summarise a pod."""
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    statuses = status.get("containerStatuses") or ()
    inits = status.get("initContainerStatuses") or ()
    sidecars = {
        container["name"]
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }
    word, ready = _initialising(inits, sidecars, len(spec.get("initContainers") or ()))
    counted = [*inits]
    if not word or _condition(status, "Initialized"):
        counted = [*(one for one in inits if one["name"] in sidecars), *statuses]
        ready += sum(_is_running(one) for one in statuses)
        word = _main_word(status, statuses, word or _phase(status))
    total = len(spec.get("containers") or ()) + len(sidecars)
    return PodRow(
        metadata["name"],
        f"{ready}/{total}",
        _ending(pod, status) or word,
        _restarts(counted, now),
        age(metadata.get("creationTimestamp"), now),
        spec.get("nodeName") or "<none>",
    )


def _phase(status: Status) -> str:
    """Return the word of a pod before its containers are checked."""
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return status.get("reason") or status.get("phase") or ""


def _initialising(inits: Iterable[Status], sidecars: set[str], total: int) -> tuple[str, int]:
    """Return the word of the first init container that has not finished, and the ready sidecars."""
    ready = 0
    for at, one in enumerate(inits):
        state = one.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if ended and not ended.get("exitCode"):
            continue
        if one["name"] in sidecars and one.get("started"):
            ready += bool(one.get("ready"))
        elif ended:
            return f"Init:{_end_word(ended)}", ready
        elif waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}", ready
        else:
            return f"Init:{at}/{total}", ready
    return "", ready


def _main_word(status: Status, statuses: Iterable[Status], word: str) -> str:
    """Return the word by the containers, the first one last."""
    running = False
    for one in reversed(list(statuses)):
        state = one.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if waiting.get("reason"):
            word = waiting["reason"]
        elif ended:
            word = _end_word(ended)
        running = running or _is_running(one)
    if word == "Completed" and running:
        return "Running" if _condition(status, "Ready") else "NotReady"
    return word


def _is_running(one: Status) -> bool:
    state = one.get("state") or {}
    waits = (state.get("waiting") or {}).get("reason")
    running = state.get("running") is not None and not state.get("terminated") and not waits
    return running and bool(one.get("ready"))


def _end_word(ended: Status) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _ending(pod: Manifest, status: Status) -> str:
    """Return the word of a pod that is being deleted."""
    if not pod["metadata"].get("deletionTimestamp"):
        return ""
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return "" if status.get("phase") in ENDED_PHASES else "Terminating"


def _restarts(counted: Iterable[Status], now: float) -> str:
    total, last = 0, ""
    for one in counted:
        total += one.get("restartCount") or 0
        ended = (one.get("lastState") or {}).get("terminated") or {}
        moment = ended.get("finishedAt") or ""
        if moment and (not last or epoch(moment) > epoch(last)):
            last = moment
    return f"{total} ({age(last, now)} ago)" if total and last else str(total)


def _condition(status: Status, name: str) -> bool:
    return any(
        condition["type"] == name and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )
