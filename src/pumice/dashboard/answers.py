"""Answers that take time: in separate processes, a few at once, each within a time limit.

The scheduler is not delayed: each process has a copy of the cluster, which is updated in small
portions, and only for a question.  An answer is cached for its cluster.  A question that nobody
asks any more is given up.
"""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Final

from pumice.api.kinds import Manifest
from pumice.dashboard.material import Material, header
from pumice.dashboard.questions import Ask
from pumice.dashboard.worker import Answered, Complete, Key, Update, key_of, serve
from pumice.errors import PumiceError

LIMIT_S: Final = 60.0
"""Time limit of an answer."""
_AT_ONCE: Final = 2
"""Processes, each with a copy of the cluster; the second starts once the first has work."""
_LOOK_S: Final = 0.5
"""How often it is checked whether somebody still waits."""
_MOST_WAITING: Final = 16
"""Questions that may be queued."""
_KEPT: Final = 256
_PORTION: Final = 100
"""Objects sent at once: writing them takes milliseconds, between which other threads run."""
_BREATH_S: Final = 0.001


class UnansweredError(PumiceError):
    """A question without an answer; ``status`` is that of HTTP."""

    def __init__(self, problem: str, status: int) -> None:
        super().__init__(problem)
        self.status = status


class _NobodyWaitsError(Exception):
    """Nobody has asked a question again for a while."""


class _Respondent:
    """The process, and what it has received."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self._connection: Connection
        self._connection, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=serve, args=(theirs,), name="pumice-answers", daemon=True
        )
        self._process.start()
        theirs.close()
        self._sent: dict[Key, Manifest] = {}
        self._about: Hashable = None

    def has(self, about: Hashable) -> bool:
        """Return whether its copy is of that cluster."""
        return self._about is not None and self._about == about

    def ask(
        self,
        about: Hashable,
        material: Callable[[], Material],
        question: Ask,
        is_wanted: Callable[[], bool],
    ) -> Answered:
        """Update the copy and ask."""
        if not self.has(about):
            self._send(material())
            self._about = about
        self._connection.send(question)
        end = time.monotonic() + LIMIT_S
        while not self._connection.poll(_LOOK_S):
            if time.monotonic() > end:
                raise TimeoutError
            if not is_wanted():
                raise _NobodyWaitsError
        found: Answered = self._connection.recv()
        return found

    def _send(self, material: Material) -> None:
        if material.world is not None or material.record is not None:
            self._connection.send(Complete(header={}, material=material))
            return
        order: dict[str, list[Key]] = {}
        changed: list[tuple[str, Manifest]] = []
        for kind, manifests in material.objects.items():
            keys = order[kind] = []
            for one in manifests:
                key = key_of(kind, one)
                keys.append(key)
                if self._sent.get(key) is not one:
                    self._sent[key] = one
                    changed.append((kind, one))
        present = {key for keys in order.values() for key in keys}
        gone = [key for key in self._sent if key not in present]
        for key in gone:
            del self._sent[key]
        for start in range(0, len(changed), _PORTION):
            self._connection.send(Update(changed[start : start + _PORTION]))
            time.sleep(_BREATH_S)
        self._connection.send(Update(gone=gone))
        self._connection.send(Complete(header=header(material), order=order))

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self._connection.close()
        self._process.kill()
        self._process.join()


class Answers:
    """Questions from any thread, a few answered at once."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="pumice-answers")
        self._lock = threading.Lock()
        self._idle: list[_Respondent] = []
        self._started: list[_Respondent] = []
        self._known: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self._wanted_until: dict[Hashable, float] = {}
        """Questions that are given up at a time unless they are asked again."""
        self._waiting = 0
        self._is_closed = False

    def warm_up(self) -> None:
        """Start a process, so that the first answer does not wait for it."""
        self._threads.submit(lambda: self._release(self._take(None)))

    def ask(
        self,
        about: Hashable,
        material: Callable[[], Material],
        question: Ask,
        wanted_s: float = math.inf,
    ) -> Future[Any]:
        """Ask about the cluster identified by ``about``; ``material`` returns it if needed.

        The future raises UnansweredError if there is no answer.  A question that is not asked
        again within ``wanted_s`` is given up.

        Raises:
            UnansweredError: too many questions wait already.
        """
        key = (about, question)
        with self._lock:
            until = time.monotonic() + wanted_s
            known = self._known.get(key)
            if known is not None and not (known.done() and known.exception() is not None):
                self._wanted_until[key] = until
                self._known.move_to_end(key)
                return known
            if self._waiting >= _MOST_WAITING or self._is_closed:
                raise UnansweredError("too many questions are queued; ask again in a moment", 503)
            self._waiting += 1
            self._wanted_until[key] = until
            future = self._threads.submit(self._answer, key, material)
            self._known[key] = future
            while len(self._known) > _KEPT:
                self._wanted_until.pop(self._known.popitem(last=False)[0], None)
            return future

    def close(self) -> None:
        """End the processes; queued questions get no answer."""
        with self._lock:
            self._is_closed = True
            started, self._started = self._started, []
        self._threads.shutdown(wait=False, cancel_futures=True)
        for each in started:
            with suppress(OSError):
                each.end()

    def _take(self, about: Hashable) -> _Respondent:
        """Return a process that has nothing to do, best one that knows the cluster."""
        with self._lock:
            if self._is_closed:
                raise UnansweredError("the dashboard is being stopped", 503)
            if self._idle:
                best = next((each for each in self._idle if each.has(about)), self._idle[-1])
                self._idle.remove(best)
                return best
            made = _Respondent()
            self._started.append(made)
            return made

    def _release(self, respondent: _Respondent) -> None:
        with self._lock:
            self._idle.append(respondent)

    def _answer(self, key: tuple[Hashable, Ask], material: Callable[[], Material]) -> Any:
        try:
            found = self._asked(key, material)
        except TimeoutError:
            raise UnansweredError(f"no answer within {LIMIT_S:g} s", 504) from None
        except _NobodyWaitsError:
            raise UnansweredError("the question was given up; ask again", 503) from None
        except (OSError, EOFError):
            raise UnansweredError("the answering process ended; ask again", 503) from None
        finally:
            with self._lock:
                self._waiting -= 1
        if found.problem:
            raise UnansweredError(found.problem, 500 if found.is_fault else 422)
        return found.value

    def _asked(self, key: tuple[Hashable, Ask], material: Callable[[], Material]) -> Answered:
        about, question = key

        def is_wanted() -> bool:
            return time.monotonic() <= self._wanted_until.get(key, 0.0)

        if not is_wanted():
            raise _NobodyWaitsError
        respondent = self._take(about)
        try:
            found = respondent.ask(about, material, question, is_wanted)
        except BaseException:
            self._give_up(respondent)
            raise
        self._release(respondent)
        return found

    def _give_up(self, respondent: _Respondent) -> None:
        with self._lock:
            if respondent in self._started:
                self._started.remove(respondent)
        with suppress(OSError):
            respondent.end()
