"""A kubelet for all nodes at once that runs no containers: pods start, last and end by the clock.

Works on the embedded store only.  ``sync`` processes changes; timers do the rest.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, Final

import msgspec

from pumice.api.annotations import GROUP_NAME, RUN_SECONDS
from pumice.api.kinds import ENDED_PHASES, POD_GROUP, Manifest
from pumice.api.times import epoch, rfc3339
from pumice.clock import Timer
from pumice.cluster.base import Event
from pumice.cluster.embedded.node_operations import address_of, lose_pods
from pumice.cluster.embedded.pods import with_condition
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import GoneError, NotFoundError, RejectedError

FAIL_AFTER_SECONDS: Final = "pumice.dev/fail-after-seconds"
FAIL_TIMES: Final = "pumice.dev/fail-times"
EXIT_CODE: Final = "pumice.dev/exit-code"

Durations = Callable[[Manifest], float | None]
"""How long a pod runs that does not state it itself; None for ever."""
_ODD: Final = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
_OVER: Final = frozenset({"Succeeded", "Failed"})
_HIGHEST_CODE: Final = 255
_KILLED: Final = 137
_BACK_OFF_S: Final = 10.0
_BACK_OFF_MOST_S: Final = 300.0
"""How long a container that failed waits before it starts again: at first, and at most."""


class _PodRun(msgspec.Struct):
    """What is due for one pod."""

    uid: str
    timer: Timer | None = None
    leaves_in_s: float | None = None
    """The grace with which it was deleted."""
    was_leaving: bool = False
    """Whether it was already terminating when it was first seen."""


class Kubelet:
    """Acts as the kubelet of every node of an embedded cluster."""

    def __init__(
        self,
        cluster: EmbeddedCluster,
        *,
        start_delay_s: float = 0.0,
        durations: Durations | None = None,
        grace_s: float | None = None,
        keeps: Callable[[Manifest], bool] = lambda _: False,
    ) -> None:
        """Make one; ``grace_s`` is how long pods take to end, by default as long as they may.

        ``durations``: by default a pod runs as long as its pod group states.
        ``keeps`` marks pods that are being deleted and do not end.
        """
        self._cluster = cluster
        self._start_delay_s = start_delay_s
        self._durations = durations or self._lasts_by_group
        self._grace_s = grace_s
        self._keeps = keeps
        self._since = {"Pod": "", "Node": ""}
        self._runs: dict[tuple[str, str], _PodRun] = {}
        self._at_ease: set[str] = set()
        """Uids of pods that run for ever; nothing else is kept of them."""

    def sync(self) -> int:
        """Process changed pods and removed nodes; return their number."""
        gone = self._nodes_gone()
        for name in gone:
            lose_pods(self._cluster, name)
        if not self._since["Pod"]:
            pods, self._since["Pod"] = self._cluster.list("Pod")
            self._look_at(pods)
            return len(pods) + len(gone)
        events, complete = self._watch("Pod")
        if not complete:
            self._forget_missing(event.object for event in events)
        for event in events:
            if event.type == "DELETED":
                metadata = event.object["metadata"]
                self._forget((metadata["namespace"], metadata["name"]), metadata["uid"])
            else:
                self._look_at((event.object,))
        return len(events) + len(gone)

    def _look_at(self, pods: Iterable[Manifest]) -> None:
        for pod in pods:
            with suppress(*_ODD):  # a pod of odd content affects only itself
                if pod["spec"].get("nodeName"):
                    self._look(pod)

    def _nodes_gone(self) -> list[str]:
        """Return the nodes that were removed since the last time and did not come back."""
        events, complete = self._watch("Node")
        if complete:
            names = [e.object["metadata"]["name"] for e in events if e.type == "DELETED"]
        else:
            names = [p["spec"].get("nodeName") or "" for p in self._cluster.list("Pod")[0]]
        there = self._cluster.peek
        return [name for name in dict.fromkeys(names) if name and there("Node", "", name) is None]

    def _watch(self, kind: str) -> tuple[list[Event], bool]:
        """Return what happened since the last time, or all objects if that is forgotten."""
        complete = True
        try:
            events = list(self._cluster.watch(kind, since=self._since[kind], bookmarks=True))
        except GoneError:
            complete = False
            events = list(self._cluster.watch(kind, bookmarks=True))
        self._since[kind] = events.pop().object["metadata"]["resourceVersion"]
        return events, complete

    def fail(
        self, namespace: str, pod: str, exit_code: int = 1, reason: str = "", message: str = ""
    ) -> None:
        """Make a pod fail now.

        Raises:
            RejectedError: it has already ended, or is on no node.
        """
        manifest = self._cluster.get("Pod", namespace, pod)
        phase = (manifest.get("status") or {}).get("phase")
        if phase in _OVER or not manifest["spec"].get("nodeName"):
            problem = f"expected a pod that may run, got one that is {phase} on no node"
            if phase in _OVER:
                problem = f"expected a pod that may run, got one that is {phase}"
            raise RejectedError("Pod", namespace, pod, problem)
        self._end(manifest, exit_code, reason, message)

    def finish(self, namespace: str, pod: str) -> None:
        """Make a pod succeed now."""
        self._end(self._cluster.get("Pod", namespace, pod), 0)

    def restart(self, namespace: str, pod: str) -> None:
        """Restart the containers of a pod in place."""
        manifest = self._cluster.get("Pod", namespace, pod)
        statuses = (manifest.get("status") or {}).get("containerStatuses") or []
        again = [{**s, "restartCount": s.get("restartCount", 0) + 1} for s in statuses]
        self._cluster.merge_status("Pod", namespace, pod, {"containerStatuses": again})

    def _look(self, pod: Manifest) -> None:
        metadata = pod["metadata"]
        place, uid = (metadata["namespace"], metadata["name"]), metadata["uid"]
        phase = (pod.get("status") or {}).get("phase")
        leaves = bool(metadata.get("deletionTimestamp"))
        run = self._runs.get(place)
        if run is None or run.uid != uid:
            if phase == "Running" and not leaves and self._is_at_ease(pod):
                self._at_ease.add(uid)
                return
            if phase in _OVER and not leaves:
                self._at_ease.discard(uid)
                return
            run = self._begin(pod, place, phase)
        if leaves:
            self._let_leave(pod, run)
        elif phase in _OVER:
            self._forget(place, uid)

    def _is_at_ease(self, pod: Manifest) -> bool:
        """Return whether a running pod runs for ever, whenever it started."""
        if pod["metadata"]["uid"] in self._at_ease:
            return True
        try:
            return _state_of(pod)[1] is None and self._end_of(pod) is None
        except _ODD:
            return False

    def _begin(self, pod: Manifest, place: tuple[str, str], phase: str | None) -> _PodRun:
        """Keep what is due for a pod from now on."""
        metadata = pod["metadata"]
        run = self._runs[place] = _PodRun(metadata["uid"])
        if run.uid in self._at_ease:
            self._at_ease.remove(run.uid)
            return run
        run.was_leaving = bool(metadata.get("deletionTimestamp"))
        if phase == "Running":  # it ran before this kubelet looked
            self._go_on(pod, run)
        elif phase not in _OVER:
            self._after(self._start_delay_s, run, self._start, place)
        return run

    def _after(
        self, seconds: float, run: _PodRun, act: Callable[..., None], *arguments: Any
    ) -> None:
        if run.timer is not None:
            run.timer.cancel()
        run.timer = None
        clock = self._cluster.clock
        if seconds <= 0:
            act(run, *arguments)
        else:
            run.timer = clock.call_at(clock.now() + seconds, partial(act, run, *arguments))

    def _mine(self, run: _PodRun, place: tuple[str, str]) -> Manifest | None:
        """Return the pod of a run, None if it is another one or gone."""
        pod = self._cluster.peek("Pod", *place)
        return pod if pod is not None and pod["metadata"]["uid"] == run.uid else None

    def _start(self, run: _PodRun, place: tuple[str, str]) -> None:
        pod = self._mine(run, place)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return
        node = self._cluster.peek("Node", "", pod["spec"]["nodeName"])
        if node is None:
            self._confirm(run, place)
            return
        status = _started(pod, address_of(node), rfc3339(self._cluster.now()))
        self._cluster.merge_status("Pod", *place, status)
        self._let_run(pod, run)

    def _go_on(self, pod: Manifest, run: _PodRun) -> None:
        """Resume a pod that another kubelet started: the time it has run counts."""
        since, waits_s = _state_of(pod)
        metadata = pod["metadata"]
        end = self._end_of(pod) if waits_s is None else None
        place = metadata["namespace"], metadata["name"]
        done_s = max(0.0, self._cluster.now() - epoch(since)) if since else 0.0
        if waits_s is not None:
            self._after(max(0.0, waits_s - done_s), run, self._start_again, place)
        elif end is not None:
            self._after(end[0] - done_s, run, self._end_now, place, end[1])

    def _let_run(self, pod: Manifest, run: _PodRun) -> None:
        """Set the end of a pod that starts now."""
        end = self._end_of(pod)
        if end is not None:
            metadata = pod["metadata"]
            place = metadata["namespace"], metadata["name"]
            self._after(end[0], run, self._end_now, place, end[1])

    def _end_of(self, pod: Manifest) -> tuple[float, int] | None:
        """Return after how long a pod ends, and its exit code; None if it runs for ever."""
        marks = pod["metadata"].get("annotations") or {}
        fails = _seconds(marks[FAIL_AFTER_SECONDS]) if FAIL_AFTER_SECONDS in marks else None
        if fails is not None:
            times = _seconds(marks.get(FAIL_TIMES))
            fails = None if times is not None and _restarts(pod) >= times else fails
        lasts = _seconds(marks[RUN_SECONDS]) if RUN_SECONDS in marks else None
        if lasts is None:
            lasts = self._durations(pod)
        if fails is not None and (lasts is None or fails <= lasts):
            return fails, min(max(int(_seconds(marks.get(EXIT_CODE)) or 1), 0), _HIGHEST_CODE)
        return None if lasts is None else (lasts, 0)

    def _lasts_by_group(self, pod: Manifest) -> float | None:
        """Return the run time that the pod group states, which has it from its job."""
        metadata = pod["metadata"]
        name = (metadata.get("annotations") or {}).get(GROUP_NAME)
        group = self._cluster.peek(POD_GROUP, metadata["namespace"], name) if name else None
        marks = {} if group is None else group["metadata"].get("annotations") or {}
        return _seconds(marks[RUN_SECONDS]) if RUN_SECONDS in marks else None

    def _end_now(self, run: _PodRun, place: tuple[str, str], exit_code: int) -> None:
        """End the containers of a pod; those that failed start again if its policy says so."""
        pod = self._mine(run, place)
        if pod is None or (pod.get("status") or {}).get("phase") != "Running":
            return
        policy = pod["spec"].get("restartPolicy", "Always")
        if exit_code and policy != "Never" and not pod["metadata"].get("deletionTimestamp"):
            self._back_off(pod, run, place, exit_code)
        else:
            self._end(pod, exit_code)

    def _back_off(
        self, pod: Manifest, run: _PodRun, place: tuple[str, str], exit_code: int
    ) -> None:
        """Make the containers of a pod wait before they start again, longer each time."""
        now = rfc3339(self._cluster.now())
        ended = {"exitCode": exit_code, "reason": "Error", **_run_span(pod, now)}
        wait_s = _back_off_s(pod)
        waiting = {
            "reason": "CrashLoopBackOff",
            "message": f"back-off {wait_s:g}s restarting failed container",
        }
        statuses = _container_states(pod, {"waiting": waiting}, ready=False)
        status = {
            "conditions": _readiness(pod, now, ready=False),
            "containerStatuses": [{**one, "lastState": {"terminated": ended}} for one in statuses],
        }
        self._cluster.merge_status("Pod", *place, status)
        self._after(wait_s, run, self._start_again, place)

    def _start_again(self, run: _PodRun, place: tuple[str, str]) -> None:
        """Start the containers of a pod that waited for it."""
        pod = self._mine(run, place)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return
        now = rfc3339(self._cluster.now())
        running = _container_states(pod, {"running": {"startedAt": now}}, ready=True)
        again = [{**one, "restartCount": one["restartCount"] + 1} for one in running]
        status = {"conditions": _readiness(pod, now, ready=True), "containerStatuses": again}
        self._cluster.merge_status("Pod", *place, status)
        fresh = self._mine(run, place)
        if fresh is not None:
            self._let_run(fresh, run)

    def _end(self, pod: Manifest, exit_code: int, reason: str = "", message: str = "") -> None:
        now = rfc3339(self._cluster.now())
        outcome = "Error" if exit_code else "Completed"
        ended = {"exitCode": exit_code, "reason": outcome, **_run_span(pod, now)}
        status: dict[str, Any] = {
            "phase": "Failed" if exit_code else "Succeeded",
            "conditions": _readiness(pod, now, ready=False),
            "containerStatuses": _container_states(pod, {"terminated": ended}, ready=False),
        }
        details = {"reason": reason, "message": message}
        status |= {key: text for key, text in details.items() if text}
        metadata = pod["metadata"]
        self._cluster.merge_status("Pod", metadata["namespace"], metadata["name"], status)

    def _let_leave(self, pod: Manifest, run: _PodRun) -> None:
        """End a pod that is being deleted; on a repeated deletion, only if it is to end sooner."""
        if self._keeps(pod):
            return
        metadata = pod["metadata"]
        grace = float(metadata.get("deletionGracePeriodSeconds") or 0)
        if run.was_leaving:  # some of its grace may be over
            left_s = max(0.0, epoch(metadata["deletionTimestamp"]) - self._cluster.now())
            grace = min(grace, left_s) if metadata.get("deletionGracePeriodSeconds") else left_s
        if self._grace_s is not None:
            grace = min(grace, self._grace_s)
        if run.leaves_in_s is not None and run.leaves_in_s <= grace:
            return
        run.leaves_in_s = grace
        self._after(grace, run, self._confirm, (metadata["namespace"], metadata["name"]))

    def _confirm(self, run: _PodRun, place: tuple[str, str]) -> None:
        """Remove a pod whose containers have ended; one that finalizers keep holds no room."""
        pod = self._mine(run, place) or {"metadata": {}}
        is_over = (pod.get("status") or {}).get("phase") in ENDED_PHASES
        if pod["metadata"].get("finalizers") and not is_over:
            self._end(pod, _KILLED)
        try:
            self._cluster.delete("Pod", *place, grace_s=0, uid=run.uid)
        except NotFoundError:  # another client was faster
            return

    def _forget(self, place: tuple[str, str], uid: str) -> None:
        self._at_ease.discard(uid)
        run = self._runs.get(place)
        if run is not None and run.uid == uid:
            del self._runs[place]
            if run.timer is not None:
                run.timer.cancel()

    def _forget_missing(self, pods: Iterable[Manifest]) -> None:
        present = {pod["metadata"].get("uid") for pod in pods}
        self._at_ease &= present
        for place, run in [*self._runs.items()]:
            if run.uid not in present:
                self._forget(place, run.uid)


def _seconds(text: str | None) -> float | None:
    """Read a number of an annotation; anything else counts as absent."""
    if text is None:
        return None
    try:
        number = float(text)
    except (ValueError, TypeError):
        return None
    return number if math.isfinite(number) else None


def _state_of(pod: Manifest) -> tuple[str, float | None]:
    """Return since when a pod runs, or since when and how long it waits to start again."""
    status = pod.get("status") or {}
    for one in status.get("containerStatuses") or ():
        state = one.get("state") or {}
        ended = ((one.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
        if "waiting" in state and ended:
            return str(ended), _back_off_s(pod)
        if (state.get("running") or {}).get("startedAt"):
            return str(state["running"]["startedAt"]), None
    return str(status.get("startTime") or ""), None


def _back_off_s(pod: Manifest) -> float:
    """Return how long a pod that failed waits before it starts again, longer each time."""
    return min(_BACK_OFF_S * 2.0 ** min(_restarts(pod), 10), _BACK_OFF_MOST_S)


def _readiness(pod: Manifest, now: str, *, ready: bool) -> list[Any]:
    """Return the conditions of a pod whose containers are ready, or are not."""
    conditions = (pod.get("status") or {}).get("conditions")
    state = "True" if ready else "False"
    for name in ("Ready", "ContainersReady"):
        conditions = with_condition(conditions, {"type": name, "status": state}, now)
    return list(conditions or ())


def _started(pod: Manifest, host: str, now: str) -> Manifest:
    """Return the status of a pod that starts on a node with an address."""
    spec = pod["spec"]
    images = tuple((one["name"], one.get("image") or "") for one in spec.get("containers") or ())
    status: Manifest = {
        "phase": "Running",
        "startTime": now,
        "conditions": _readiness(pod, now, ready=True),
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


def _container_states(pod: Manifest, state: Manifest, *, ready: bool) -> list[Manifest]:
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


def _run_span(pod: Manifest, now: str) -> Manifest:
    """Return when the containers of a pod started and ended, where known."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    starts = [((one.get("state") or {}).get("running") or {}).get("startedAt") for one in statuses]
    start = next((each for each in starts if each), None)
    return {**({"startedAt": start} if start else {}), "finishedAt": now}


def _restarts(pod: Manifest) -> int:
    """Return how often a container of a pod was started again."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return max((status.get("restartCount", 0) for status in statuses), default=0)
