"""A control plane that runs by itself: timers, controllers, kubelet and cycles on the real clock.

A cycle follows at once on what a client changes, and each period at the latest.
"""

import threading
import time
from collections.abc import Callable
from typing import Final

from pumice.clock import RealClock, wall_time
from pumice.serve.embedded import EmbeddedControlPlane

_BREATH_S: Final = 0.02
"""The least time between two cycles, in which clients are served."""


class FastClock(RealClock):
    """The machine's time, sped up from the moment it is made."""

    def __init__(self, speed: float = 1.0, timer: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.speed = speed
        self._timer = timer
        self._start = wall_time()
        self._started = timer()

    def now(self) -> float:
        """Return the time in seconds since 1970."""
        return self._start + (self._timer() - self._started) * self.speed


class RunningPlane:
    """Runs a control plane in a thread until it is stopped."""

    def __init__(self, plane: EmbeddedControlPlane, clock: FastClock) -> None:
        self.plane = plane
        self.cycles = 0
        self.failure: Exception | None = None
        """What ended the thread before it was told to stop."""
        self._clock = clock
        self._stop = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pumice-plane", daemon=True)

    def start(self) -> None:
        """Begin to run."""
        self._thread.start()

    def wake(self) -> None:
        """Look at once at what changed."""
        self._woken.set()

    def stop(self) -> None:
        """Finish the cycle and end."""
        self._stop.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            in_a_row = 0
            while not self._stop.is_set():
                self._woken.clear()
                with self.plane.cluster.lock:
                    self._clock.run_due()
                changed = self.plane.step()
                self.cycles += 1
                in_a_row = in_a_row + 1 if changed else 0
                self._wait(in_a_row)
        except Exception as error:  # noqa: BLE001  # told by the command, which waits elsewhere
            self.failure = error

    def _wait(self, in_a_row: int) -> None:
        """Wait for a client, a timer or the next cycle; what changes for ever slows down."""
        period = self.plane.period_s
        due_s = period
        if in_a_row:
            due_s = min(period, _BREATH_S * 2 ** min(in_a_row - 1, 10))
        with self.plane.cluster.lock:
            timer = self._clock.next_at()
        if timer is not None:
            due_s = min(due_s, (timer - self._clock.now()) / self._clock.speed)
        self._stop.wait(_BREATH_S)
        self._woken.wait(max(0.0, due_s - _BREATH_S))
