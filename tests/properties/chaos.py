"""A cluster that answers late, loses answers and reports late, around an embedded one.

Its users see what a scheduler sees of an API server on a bad day.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from pumice.cluster.base import DirectWriter, Lane
from pumice.errors import ConflictError, RejectedError, UnavailableError


class LateCluster:
    """Shows a cluster whose watches lag behind; reads of single objects are true."""

    def __init__(self, inner: Any, random: Any) -> None:
        self._inner = inner
        self._random = random
        self._silent: dict[Any, Any] = {}
        self.calm = False

    def __getattr__(self, name: Any) -> Any:
        return getattr(self._inner, name)

    def watch(self, kind: Any, namespace: str = "", since: str = "") -> Any:
        events = list(self._inner.watch(kind, namespace, since))
        if self.calm or not events:
            return iter(events)
        random = self._random
        if random.random() < 0.05:
            self._inner.compact()
        if self._silent.get(kind, 0) > 0:
            self._silent[kind] -= 1
            return iter(())
        self._silent[kind] = random.choice([0, 0, 1, 4])
        return iter(events[: random.randint(0, len(events))])


class BadWriter:
    """Takes writes and does with them what networks and servers do.

    Each is done now or later, or lost; the answer comes now or later, or leaves doubt.
    """

    def __init__(self, cluster: Any, random: Any) -> None:
        self._direct = DirectWriter(cluster)
        self._random = random
        self._count = 0
        self.waiting: list[Any] = []
        self.answers: list[Any] = []
        self.stray: list[Any] = []
        self.calm = False
        self._open: set[Any] = set()
        self.refuses: Callable[[Any], bool] = lambda write: False
        """Decides whether the cluster refuses writes, also when all is calm."""
        self.refused: list[Any] = []

    def submit(self, write: Any, *, lane: Any, done: Any = None) -> None:
        """Take a write; a second one of a kind about a pod must wait until the first has failed."""
        done = done or (lambda error: None)
        if write.verb in ("bind", "evict"):
            mark = write.verb, write.arguments["uid"]
            assert mark not in self._open, f"{write} again, and nothing says that it failed"
            self._open.add(mark)
            done = self._closing(mark, done)
        self._count += 1
        self.waiting.append((write, (lane, self._count), done))

    def _closing(self, mark: Any, done: Any) -> Any:
        def close(error: Any) -> None:
            if error is not None:
                self._open.discard(mark)
            done(error)

        return close

    def flush(self, timeout_s: Any) -> bool:
        return not self.waiting

    def step(self) -> None:
        """Advance the time."""
        random = self._random
        answers, self.answers = self.answers, []
        for done, error in answers:
            done(error)
        stray, self.stray = self.stray, []
        for write in stray:
            self._do(write)
        waiting, self.waiting = self.waiting, []
        blocked = set()
        if not self.calm and random.random() < 0.5:
            random.shuffle(waiting)
        for each in _in_order(waiting):
            place = _object(each)
            if not self.calm and (place in blocked or random.random() < 0.3):
                blocked.add(place)
                self.waiting.append(each)
            else:
                self._handle(*each)

    def kill(self) -> None:
        """End the process that writes: some of what waits still goes out, without an answer."""
        for write, _, _ in self.waiting:
            if self._random.random() < 0.3:
                self._do(write)
        for write in self.stray:
            self._do(write)
        self.waiting, self.answers, self.stray = [], [], []

    def _handle(self, write: Any, lane: Any, done: Any) -> None:
        fate = "done" if self.calm else self._random.choice(["done"] * 6 + FATES)
        lost = UnavailableError("Pod", problem="no answer")
        if self.refuses(write):
            self.refused.append(_object((write,)))
            done(RejectedError(problem="never"))
        elif fate == "unsent":
            done(UnavailableError("Pod", problem="not sent", sent=False))
        elif fate == "lost":
            done(lost)
        elif fate == "refused":
            done(RejectedError("Pod", problem="an admission webhook said no"))
        elif fate == "stray":
            self.stray.append(write)
            done(lost)
        elif fate == "unheard":
            self._do(write)
            done(lost)
        else:
            error = self._do(write)
            if fate == "answered later":
                self.answers.append((done, error))
            elif fate == "conflict" and error is None and write.verb in ("bind", "evict"):
                done(ConflictError("Pod", problem="was done by an attempt whose answer was lost"))
            else:
                done(error)

    def _do(self, write: Any) -> Any:
        found: list[Any] = []
        self._direct.submit(write, lane=Lane(0), done=found.append)
        return found[0]


FATES = ["lost", "unsent", "refused", "unheard", "stray", "answered later", "conflict"]


class TornError(Exception):
    """What a scheduler did not expect."""


def tear(live: Any, random: Any) -> Any:
    """Make a scheduler fail in the middle of a cycle, now and then, until repaired."""
    places = [
        (live.binder, "_follow_up"),
        (live.binder, "_write_group"),
        (live.recovery, "_learn"),
        (live.recovery, "assume_groups"),
        (live.recovery, "_settle_bind"),
    ]
    for owner, name in places:
        setattr(owner, name, _tearing(getattr(owner, name), random))

    def mend() -> None:
        for owner, name in places:
            delattr(owner, name)

    return mend


def _tearing(method: Any, random: Any) -> Any:
    def call(*args: Any, **more: Any) -> None:
        if random.random() < 0.03:
            raise TornError
        method(*args, **more)
        if random.random() < 0.03:
            raise TornError

    return call


def _object(each: Any) -> Any:
    arguments = each[0].arguments
    if each[0].verb == "record":
        return "event"
    return arguments.get("namespace"), arguments.get("pod") or arguments.get("name")


def _in_order(waiting: Any) -> Any:
    """Put writes about one object back in the order of their lanes; others stay shuffled."""
    places = defaultdict(list)
    for each in waiting:
        places[_object(each)].append(each)
    for found in places.values():
        found.sort(key=lambda each: each[1])
        found.reverse()
    return [places[_object(each)].pop() for each in waiting]
