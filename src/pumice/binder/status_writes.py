"""What was written last of each object's status, and whether it may be written again.

Used by the binder.  One status of an object is on its way at a time, and what the cluster refuses
is offered again ever more rarely.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pumice import logs
from pumice.api.meta import KubeObject
from pumice.binder.write_results import Outcome
from pumice.errors import RejectedError

_LOST_S: Final = 600.0
"""After so long without an answer none is waited for any more."""
_LONGEST_S: Final = 60.0
"""The longest that a refused status is not offered again."""
_log = logs.get("binder")

Mark = tuple[str, str]
"""What sort of status, and of which object."""


@dataclass(slots=True)
class _Sent:
    """The last status written of an object: on top of which version, what it said, when."""

    version: str
    said: Any
    at: float
    answered: bool = False


@dataclass(slots=True)
class _Refused:
    """A status that the cluster refused: how often, and until when it is left alone."""

    uid: str
    times: int
    until: float


class Statuses:
    """Remembers statuses by object; times are those of the clock given."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sent: dict[Mark, _Sent] = {}
        self._refused: dict[Mark, _Refused] = {}

    def __len__(self) -> int:
        """Count the objects of which something is remembered."""
        return len(self._sent.keys() | self._refused.keys())

    def is_underway(self, what: str, key: str) -> bool:
        """Say whether a status of an object is on its way."""
        sent = self._sent.get((what, key))
        return sent is not None and not sent.answered and self._clock() - sent.at < _LOST_S

    def take(self, what: str, key: str, known: KubeObject, said: Any) -> bool:
        """Say whether a status is to be written now; it is then taken to be.

        It is not while one of the object is on its way or the cluster has just refused one, nor if
        the cluster was told just this and has not spoken of the object since.
        """
        mark, version = (what, key), known.metadata.resource_version
        refused = self._refused.get(mark)
        if refused is not None and refused.uid != known.metadata.uid:
            del self._refused[mark]
        elif refused is not None and self._clock() < refused.until:
            return False
        sent = self._sent.get(mark)
        if self.is_underway(what, key) or (
            sent is not None and sent.answered and (sent.version, sent.said) == (version, said)
        ):
            return False
        self._sent[mark] = _Sent(version, said, self._clock())
        return True

    def learn(self, outcome: Outcome) -> Any:
        """Take in what came of one; gives what it said if it failed."""
        mark = outcome.what, outcome.key
        sent = self._sent.get(mark)
        if sent is None:
            return None
        if outcome.error is None:
            sent.answered = True
            self._refused.pop(mark, None)
            return None
        del self._sent[mark]
        if isinstance(outcome.error, RejectedError):
            self._refuse(mark, outcome)
        return sent.said

    def _refuse(self, mark: Mark, outcome: Outcome) -> None:
        before = self._refused.get(mark)
        times = 1 if before is None or before.uid != outcome.uid else before.times + 1
        pause = min(2.0 ** min(times - 1, 10), _LONGEST_S)
        self._refused[mark] = _Refused(outcome.uid, times, self._clock() + pause)
        if times == 1:
            _log.warning(
                "status refused, offered again ever more rarely",
                what=outcome.what,
                of=outcome.key,
                why=outcome.error,
            )

    def prune(self, known: Callable[[str, str], KubeObject | None]) -> None:
        """Forget objects that are gone or of which the cluster has spoken since."""
        for mark in [mark for mark, sent in self._sent.items() if sent.answered]:
            found = known(*mark)
            if found is None or found.metadata.resource_version != self._sent[mark].version:
                del self._sent[mark]
        for mark in [mark for mark in self._refused if known(*mark) is None]:
            del self._refused[mark]
