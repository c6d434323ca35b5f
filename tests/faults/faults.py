"""What goes wrong, drawn from a seed: each run has its own mixture of faults and its own rates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

_T = TypeVar("_T")

_REQUEST_FAULTS: Final = {
    "lost": 0.02,
    "unheard": 0.03,
    "half": 0.01,
    "slow": 0.03,
    "late": 0.004,
    "done and failed": 0.02,
    "409": 0.03,
    "429": 0.03,
    "500": 0.02,
}
"""What may happen to a request, and how often at most."""
_LINE_FAULTS: Final = {"twice": 0.02, "again": 0.02, "cut": 0.01, "gone": 0.005, "ended": 0.005}
"""What may happen to a line of a watch."""
_LONG_LAGS_S: Final = (0.1, 3.0)
_CLIENT_PATIENCE_S: Final = 30.0


class Chance:
    """Draws from a seeded stream of its own, whatever others draw."""

    def __init__(self, seed: int, stream: int) -> None:
        self._random = np.random.default_rng([seed, stream])

    def number(self) -> float:
        """Draw a number from 0 to 1."""
        return float(self._random.random())

    def between(self, low: float, high: float) -> float:
        """Draw a number from a range, in milliseconds so that it can be read."""
        return round(low + (high - low) * float(self._random.random()), 3)

    def integer(self, low: int, high: int) -> int:
        """Draw a whole number from a range, both ends included."""
        return int(self._random.integers(low, high + 1))

    def some(self, choices: Sequence[_T], rate: float) -> list[_T]:
        """Draw each of several or not."""
        return [each for each in choices if self.happens(rate)]

    def one_of(self, choices: Sequence[_T]) -> _T:
        """Draw one of several."""
        return choices[int(self._random.integers(len(choices)))]

    def happens(self, rate: float) -> bool:
        """Draw whether something happens."""
        return rate > 0 and bool(self._random.random() < rate)


@dataclass(frozen=True)
class Fate:
    """What happens to one request; ``status`` is an answer without an effect."""

    kind: str = ""
    delay_s: float = 0.0
    status: int = 0
    retry_after_s: int = 0


class Faults:
    """The faults of one run; none once it is calm."""

    def __init__(self, seed: int) -> None:
        self._chance = Chance(seed, 1)
        chance = self._chance
        self.calm = False
        self.rates = {
            name: round(most * chance.number() * 2, 4) if chance.happens(0.6) else 0.0
            for name, most in {**_REQUEST_FAULTS, **_LINE_FAULTS}.items()
        }
        if chance.happens(0.2):  # one thing goes wrong again and again
            self.rates[chance.one_of([*_REQUEST_FAULTS, *_LINE_FAULTS])] = 0.3
        self.rates["refused"] = chance.one_of([0.0, 0.01, 0.05])
        self.rates["watch gone"] = chance.one_of([0.0, 0.02, 0.1])
        self._slow_s = chance.one_of([1.0, 3.0, 8.0])
        self._lags_s = chance.one_of([(0.01, 0.05), (0.01, 0.5), _LONG_LAGS_S])
        self.rates["long lags"] = 0.0  # of all watches, whatever the seed draws
        self.page = chance.one_of([0, 0, 2, 5])
        """Objects in a part of a list; 0 if the server gives as many as it is asked for."""
        self.streams = chance.happens(0.6)
        """Whether a watch may begin with the objects there are; older servers know lists only."""
        self.rates["rest of list gone"] = chance.one_of([0.0, 0.1, 0.3])
        self._lag_of: dict[tuple[str, str], float] = {}
        self._silent_until: dict[tuple[str, str], float] = {}
        self.counts: dict[str, int] = {}
        """How often each fault has happened."""

    def latency_s(self) -> float:
        """Draw the latency of a message."""
        return self._chance.between(0.001, 0.02)

    def refuses_connection(self) -> bool:
        """Draw whether a connection is refused."""
        return self._happens("refused")

    def watch_is_gone(self) -> bool:
        """Draw whether a watch starts from too far back, as the server sees it."""
        return self._happens("watch gone")

    def rest_of_list_is_gone(self) -> bool:
        """Draw whether the server has forgotten the version of a list that was begun."""
        return self._happens("rest of list gone")

    def silence(self, process: str, kind: str, until: float) -> None:
        """Silence a kind for a process until a time."""
        self._silent_until[process, kind] = until

    def lag_s(self, process: str, kind: str, now: float) -> float:
        """Return how far a process is behind with a kind; it changes now and then."""
        low, high = _LONG_LAGS_S if self.rates["long lags"] else self._lags_s
        if self.calm:
            return 0.01
        place = process, kind
        silent_s = self._silent_until.get(place, now) - now
        if silent_s > 0:
            return silent_s
        if place not in self._lag_of or self._chance.happens(0.05):
            self._lag_of[place] = self._chance.between(low, high)
        return self._lag_of[place]

    def older(self, lines: Sequence[bytes]) -> bytes:
        """Draw one of the lines that were sent before."""
        return self._chance.one_of(lines) if lines else b""

    def line_fate(self) -> str:
        """Draw what happens to a line of a watch; nothing, most of the time."""
        return self._first(_LINE_FAULTS)

    def fate(self, method: str, *, is_lease: bool) -> Fate:
        """Draw what happens to a request."""
        delay_s = self.latency_s()
        kind = self._first(_REQUEST_FAULTS)
        if kind == "slow":
            return Fate(kind, self._chance.between(0.1, self._slow_s))
        if kind == "late":  # done after its sender gave up
            return Fate(kind, _CLIENT_PATIENCE_S + self._chance.between(0.1, 4.0))
        if kind == "409":
            return Fate(kind, delay_s, 409 if method in ("PUT", "PATCH", "POST") else 500)
        if kind == "429":
            return Fate(kind, delay_s, 429, self._chance.integer(0, 2))
        if kind == "500":
            return Fate(kind, delay_s, 500)
        return Fate(kind, delay_s)

    def _first(self, kinds: dict[str, float]) -> str:
        if self.calm:
            return ""
        draw = self._chance.number()
        for kind in kinds:
            draw -= self.rates[kind]
            if draw < 0:
                self.counts[kind] = self.counts.get(kind, 0) + 1
                return kind
        return ""

    def _happens(self, kind: str) -> bool:
        found = not self.calm and self._chance.happens(self.rates[kind])
        if found:
            self.counts[kind] = self.counts.get(kind, 0) + 1
        return found
