"""Answers that take time: one at a time, in a separate process, each within a time limit.

The scheduler is not delayed: the process has a copy of the cluster, which is updated
in small portions, and only for a question.  An answer is cached for its cluster.
"""

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

    def ask(self, about: Hashable, material: Callable[[], Material], question: Ask) -> Answered:
        """Update the copy and ask."""
        if self._about is None or self._about != about:
            self._send(material())
            self._about = about
        self._connection.send(question)
        if not self._connection.poll(LIMIT_S):
            raise TimeoutError
        found: Answered = self._connection.recv()
        return found

    def _send(self, material: Material) -> None:
        if material.world is not None:
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
    """Questions from any thread, answered one after the other."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pumice-answers")
        self._lock = threading.Lock()
        self._respondent: _Respondent | None = None
        self._known: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self._waiting = 0
        self._is_closed = False

    def warm_up(self) -> None:
        """Start the process, so that the first answer does not wait for it."""
        self._thread.submit(self._started)

    def ask(self, about: Hashable, material: Callable[[], Material], question: Ask) -> Future[Any]:
        """Ask about the cluster identified by ``about``; ``material`` returns it if needed.

        The future raises UnansweredError if there is no answer.

        Raises:
            UnansweredError: too many questions wait already.
        """
        key = (about, question)
        with self._lock:
            known = self._known.get(key)
            if known is not None and not (known.done() and known.exception() is not None):
                self._known.move_to_end(key)
                return known
            if self._waiting >= _MOST_WAITING or self._is_closed:
                raise UnansweredError("too many questions are queued; ask again in a moment", 503)
            self._waiting += 1
            future = self._thread.submit(self._answer, about, material, question)
            self._known[key] = future
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
            return future

    def close(self) -> None:
        """End the process; queued questions get no answer."""
        with self._lock:
            self._is_closed = True
            respondent, self._respondent = self._respondent, None
        self._thread.shutdown(wait=False, cancel_futures=True)
        if respondent is not None:
            respondent.end()

    def _started(self) -> _Respondent:
        with self._lock:
            if self._is_closed:
                raise UnansweredError("the dashboard is being stopped", 503)
            if self._respondent is None:
                self._respondent = _Respondent()
            return self._respondent

    def _answer(self, about: Hashable, material: Callable[[], Material], question: Ask) -> Any:
        try:
            found = self._started().ask(about, material, question)
        except TimeoutError:
            self._give_up()
            raise UnansweredError(f"no answer within {LIMIT_S:g} s", 504) from None
        except (OSError, EOFError):
            self._give_up()
            raise UnansweredError("the answering process ended; ask again", 503) from None
        finally:
            with self._lock:
                self._waiting -= 1
        if found.problem:
            raise UnansweredError(found.problem, 500 if found.is_fault else 422)
        return found.value

    def _give_up(self) -> None:
        with self._lock:
            respondent, self._respondent = self._respondent, None
        if respondent is not None:
            with suppress(OSError):
                respondent.end()
