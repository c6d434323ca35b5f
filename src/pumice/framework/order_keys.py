"""Keys of queues and tasks that plain tuples cannot express: how two of them compare."""

import functools

from pumice.core.views import Queue
from pumice.framework.combining import Ask
from pumice.framework.heaps import Key


@functools.total_ordering
class PairKey:
    """A queue that can only be compared, not keyed."""

    __slots__ = ("_compare", "queue", "tie")

    def __init__(self, compare: Ask, queue: Queue) -> None:
        self._compare = compare
        self.queue = queue
        self.tie = (queue.created, queue.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PairKey) and self.queue.row == other.queue.row

    def __lt__(self, other: "PairKey") -> bool:
        order = self._compare(self.queue, other.queue)
        return bool(order < 0) if order else self.tie < other.tie

    __hash__ = None  # type: ignore[assignment]


@functools.total_ordering
class TaskTie:
    """Numbers in pod names decide if both have one and they differ; else age, then uid.

    Where all tasks have a number, or none has, a plain tuple compares the same way.
    """

    __slots__ = ("created", "index", "uid")

    def __init__(self, index: int, created: float, uid: str) -> None:
        self.index = index
        self.created = created
        self.uid = uid

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TaskTie) and self.uid == other.uid and self.index == other.index

    def __lt__(self, other: "TaskTie") -> bool:
        if self.index >= 0 and other.index >= 0 and self.index != other.index:
            return self.index < other.index
        return (self.created, self.uid) < (other.created, other.uid)

    __hash__ = None  # type: ignore[assignment]


@functools.total_ordering
class TaskKey:
    """The keys of a task, some of which may not count against another task."""

    __slots__ = ("_between", "_job", "_keys", "tie")

    def __init__(self, job: int, keys: tuple[float, ...], tie: Key, between: list[bool]) -> None:
        self._job = job
        self._keys = keys
        self._between = between
        self.tie = tie

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TaskKey) and self.tie == other.tie

    def __lt__(self, other: "TaskKey") -> bool:
        same_job = self._job == other._job
        for mine, yours, between in zip(self._keys, other._keys, self._between, strict=True):
            if (between or same_job) and (mine < yours or mine > yours):
                return mine < yours
        return self.tie < other.tie

    __hash__ = None  # type: ignore[assignment]


def are_mixed(numbers: list[int]) -> bool:
    """Return whether some tasks have a number in their name and others have none (below 0)."""
    return bool(numbers) and min(numbers) < 0 <= max(numbers)
