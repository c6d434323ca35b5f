"""Pods whose bind was refused: they stay out of sessions for a while, each time for longer."""

from collections.abc import Container
from typing import Final

from pumice.cache.informer import Informer

_LONGEST_S: Final = 60.0
"""The longest time for which a pod is held back."""
_PAUSE_S: Final = 1.0
"""After this time a pod that was busy is looked at again."""
_SPARE: Final = 32
"""Refusals that are remembered beyond those of pods that are held back now."""


class HeldPods:
    """Holds pods ("namespace/name") back, and releases them in time."""

    def __init__(self, informer: Informer) -> None:
        self._informer = informer
        self._until: dict[str, float] = {}
        self._refused: dict[str, tuple[str, int]] = {}
        """Uids of pods, and how often they were refused in a row."""

    @property
    def next_release(self) -> float | None:
        """When the first pod may be placed again; None: none is held back."""
        return min(self._until.values(), default=None)

    def hold(self, pod: str, uid: str, now: float, longest_s: float = _LONGEST_S) -> None:
        """Keep a pod out of sessions."""
        known, times = self._refused.get(pod, (uid, 0))
        times = times + 1 if known == uid else 1
        self._refused[pod] = uid, times
        self._until[pod] = now + min(2.0 ** min(times - 1, 10), longest_s)
        self._informer.hold(pod)

    def hold_gone(self, pod: str, uid: str, now: float) -> None:
        """Keep a pod out of sessions that is gone, until the cluster reports it."""
        if self._is(pod, uid):
            self._refused[pod] = uid, 1
            self._until[pod] = now + _LONGEST_S
            self._informer.hold(pod)

    def accepted(self, pod: str) -> None:
        """Forget earlier refusals of a pod that is bound."""
        self._refused.pop(pod, None)

    def release(self, now: float, busy: Container[str]) -> None:
        """Release the pods whose time is over, except those (uid) that are busy."""
        for pod in [pod for pod, until in self._until.items() if until <= now]:
            if self._refused.get(pod, ("", 0))[0] in busy:
                self._until[pod] = now + _PAUSE_S
                continue
            del self._until[pod]
            self._informer.undo(pod, "held")
        if len(self._refused) > len(self._until) + _SPARE:
            self._refused = {
                pod: refused for pod, refused in self._refused.items() if self._is(pod, refused[0])
            }

    def move_to(self, informer: Informer) -> None:
        """Continue with rebuilt tables."""
        self._informer = informer
        for pod in self._until:
            if self._is(pod, self._refused.get(pod, ("", 0))[0]):
                informer.hold(pod)

    def _is(self, pod: str, uid: str) -> bool:
        """Return whether a pod is still the same one."""
        known = self._informer.known("Pod", pod)
        return (known.metadata.uid if known is not None else "") == uid
