"""What the status of a pod says of its containers: since when they run, how often they started."""

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


def container_states(pod: Manifest, state: Manifest, *, ready: bool) -> list[Manifest]:
    """Return the statuses of the containers of a pod, all in one state."""
    known = (pod.get("status") or {}).get("containerStatuses") or ()
    before = {status["name"]: status for status in known}
    out = []
    for container in pod["spec"].get("containers") or ():
        old = before.get(container["name"], {})
        made = {
            "name": container["name"],
            "image": container.get("image", ""),
            "ready": ready,
            "restartCount": old.get("restartCount", 0),
            "state": state,
        }
        out.append({**made, **({"lastState": old["lastState"]} if "lastState" in old else {})})
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
