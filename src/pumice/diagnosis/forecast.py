"""When a waiting job would start: running pods end, cycles are decided, until it has its nodes.

A small event loop on the deciding core with a virtual clock.  How long a pod runs says its
annotation, or that of its pod group, or a default; a pod that none speaks of never ends.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from pumice.api.annotations import RUN_SECONDS
from pumice.api.decisions import Decisions
from pumice.api.kinds import Manifest
from pumice.api.times import epoch
from pumice.diagnosis.cluster_state import group_of, key_of
from pumice.diagnosis.replay import Replay
from pumice.errors import InputError

MOST_EVENTS: Final = 5000
"""Instants at which pods end before a forecast gives up."""


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """When a job starts, and what ends before it does."""

    at: float | None
    """Epoch seconds; None if it does not start as far as can be seen."""
    ended: list[str] = field(default_factory=list)
    """Jobs with pods that end before, in order."""
    last: list[str] = field(default_factory=list)
    """Jobs whose end was the last thing it waited for."""
    evictions: list[str] = field(default_factory=list)
    """Pods evicted on the way."""
    places: dict[str, str] = field(default_factory=dict)
    endless: int = 0
    """Pods that still run with no known end."""
    until: float = 0.0
    """How far was looked."""


class Clock:
    """Ends of pods to come in a replay."""

    def __init__(self, replay: Replay, default_s: float | None) -> None:
        self._replay = replay
        self._default_s = default_s
        self._ends: list[tuple[float, str]] = []
        for pod in replay.pods():
            self._expect(pod)

    def _expect(self, pod: Manifest) -> None:
        end = self.end_of(pod)
        if end is not None:
            heapq.heappush(self._ends, (max(end, self._replay.now), key_of(pod)))

    def follow(self, decisions: Iterable[Decisions]) -> None:
        """Expect the end of pods that were bound."""
        for each in decisions:
            for pod in each.binds:
                self._expect(self._replay.objects["Pod", pod])

    def end_of(self, pod: Manifest) -> float | None:
        """Say when a pod ends; None if it does not run or nobody knows."""
        if not _runs(pod):
            return None
        length = self._run_seconds(pod)
        if length is None:
            return None
        status, meta = pod.get("status") or {}, pod["metadata"]
        start = status.get("startTime") or meta.get("creationTimestamp")
        return (epoch(start) if start else self._replay.now) + length

    def _run_seconds(self, pod: Manifest) -> float | None:
        group = self._replay.objects.get(("PodGroup", group_of(pod)))
        for one in (pod, group):
            text = ((one or {}).get("metadata", {}).get("annotations") or {}).get(RUN_SECONDS)
            if text is not None:
                return _seconds(text, key_of(one or pod))
        return self._default_s if group is not None else None

    def next_ends(self) -> tuple[float, list[str]] | None:
        """Take the pods that end next, all of one instant."""
        due: list[str] = []
        at = 0.0
        while self._ends and (not due or self._ends[0][0] <= at):
            end, key = heapq.heappop(self._ends)
            pod = self._replay.objects.get(("Pod", key))
            if pod is None or not _runs(pod) or (self.end_of(pod) or 0.0) > max(end, at):
                continue  # it was evicted, or started anew
            due.append(key)
            at = end
        return (at, due) if due else None


def forecast(replay: Replay, job: str, *, default_s: float | None, horizon_s: float) -> Forecast:
    """Let time pass in a replay until a job gets a node."""
    clock, start = Clock(replay, default_s), replay.now
    ended: dict[str, None] = {}
    evictions: list[str] = []
    own = {key_of(pod) for pod in replay.pods() if group_of(pod) == job}
    at = start
    for _ in range(MOST_EVENTS):
        event = clock.next_ends()
        if event is None or event[0] - start > horizon_s:
            break
        at, due = event
        replay.now = max(replay.now, at)
        finishing = dict.fromkeys(group_of(replay.objects["Pod", pod]) for pod in due)
        replay.finish(due)
        ended |= finishing
        played = replay.settle()
        clock.follow(played)
        evictions += [pod for each in played for pod in each.evictions]
        places = {p: n for each in played for p, n in each.binds.items() if p in own}
        if places:
            return Forecast(
                at=at,
                ended=list(ended),
                last=list(finishing),
                evictions=evictions,
                places=places,
                until=at,
            )
    endless = sum(_runs(pod) and clock.end_of(pod) is None for pod in replay.pods())
    return Forecast(at=None, ended=list(ended), endless=endless, until=at, evictions=evictions)


def _runs(pod: Manifest) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase == "Running" and bool((pod.get("spec") or {}).get("nodeName"))


def _seconds(text: Any, key: str) -> float:
    try:
        length = float(text)
    except (TypeError, ValueError):
        length = -1.0
    if not 0 <= length < float("inf"):
        raise InputError(
            wanted="a number of seconds", found=text, field=f"{key}: annotation {RUN_SECONDS}"
        )
    return length
