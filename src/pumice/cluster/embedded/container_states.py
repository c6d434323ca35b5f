"""What the status of a pod says of its containers: since when they run, how often they started."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from pumice.api.kinds import Manifest
from pumice.cluster.embedded.pods import with_condition

_BACK_OFF_S: Final = 10.0
_BACK_OFF_MOST_S: Final = 300.0
"""How long a container that failed waits before it starts again: at first, and at most."""


def state_of(pod: Manifest) -> tuple[str, float | None]:
    """Return since when a pod runs, or since when and how long it waits to start again."""
    status = pod.get("status") or {}
    for one in status.get("containerStatuses") or ():
        state = one.get("state") or {}
        ended = ((one.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
        if "waiting" in state and ended:
            return str(ended), back_off_s(pod)
        if (state.get("running") or {}).get("startedAt"):
            return str(state["running"]["startedAt"]), None
    return str(status.get("startTime") or ""), None


def back_off_s(pod: Manifest) -> float:
    """Return how long a pod that failed waits before it starts again, longer each time."""
    return min(_BACK_OFF_S * 2.0 ** min(restarts(pod), 10), _BACK_OFF_MOST_S)


def readiness(pod: Manifest, now: str, *, ready: bool) -> list[Any]:
    """Return the conditions of a pod whose containers are ready, or are not."""
    conditions = (pod.get("status") or {}).get("conditions")
    state = "True" if ready else "False"
    for name in ("Ready", "ContainersReady"):
        conditions = with_condition(conditions, {"type": name, "status": state}, now)
    return list(conditions or ())


def started(pod: Manifest, host: str, now: str) -> Manifest:
    """Return the status of a pod that starts on a node with an address."""
    spec = pod["spec"]
    images = tuple((one["name"], one.get("image") or "") for one in spec.get("containers") or ())
    status: Manifest = {
        "phase": "Running",
        "startTime": now,
        "conditions": readiness(pod, now, ready=True),
        "containerStatuses": _first_run(images, now),
    }
    if host:
        status["hostIP"] = host
    status["podIP"] = host if host and spec.get("hostNetwork") else _pod_ip(pod)
    return status


@lru_cache(maxsize=256)  # pods of one job start together and share what is equal
def _first_run(images: Sequence[tuple[str, str]], now: str) -> list[Manifest]:
    running = {"running": {"startedAt": now}}
    return [_container_state(name, image, running, ready=True) for name, image in images]


def _pod_ip(pod: Manifest) -> str:
    """Return an address that no other pod has: versions are not assigned twice."""
    version = str(pod["metadata"].get("resourceVersion") or "")
    number = int(version) if version.isdecimal() else 0
    return f"10.{128 + number // 65024 % 128}.{number // 254 % 256}.{number % 254 + 1}"


def _container_state(name: str, image: str, state: Manifest, *, ready: bool) -> Manifest:
    """Return the status of one container; its image is known by its name alone."""
    return {
        "name": name,
        "image": image,
        "imageID": image,
        "ready": ready,
        "restartCount": 0,
        "state": state,
    }


def container_states(pod: Manifest, state: Manifest, *, ready: bool) -> list[Manifest]:
    """Return the statuses of the containers of a pod, all in one state."""
    known = (pod.get("status") or {}).get("containerStatuses") or ()
    before = {status["name"]: status for status in known}
    out = []
    for container in pod["spec"].get("containers") or ():
        old = before.get(container["name"], {})
        made = _container_state(container["name"], container.get("image") or "", state, ready=ready)
        kept = {key: old[key] for key in ("restartCount", "lastState") if key in old}
        out.append({**made, **kept})
    return out


def run_span(pod: Manifest, now: str) -> Manifest:
    """Return when the containers of a pod started and ended, where known."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    starts = [((one.get("state") or {}).get("running") or {}).get("startedAt") for one in statuses]
    start = next((each for each in starts if each), None)
    return {**({"startedAt": start} if start else {}), "finishedAt": now}


def restarts(pod: Manifest) -> int:
    """Return how often a container of a pod was started again."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return max((status.get("restartCount", 0) for status in statuses), default=0)
