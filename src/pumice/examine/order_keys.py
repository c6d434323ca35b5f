"""The keys that order queues and jobs, and the first difference between two of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pumice.api.times import moment_of
from pumice.core.views import Queue
from pumice.examine.job_outcome import waiting_lines
from pumice.framework.columns import Jobs, Queues
from pumice.framework.dispatch import Method
from pumice.framework.hooks import Ask
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session

_NEVER = 2.0**53
"""A time beyond which a deadline counts as none."""


@dataclass(frozen=True)
class Keys:
    """The keys of one plugin for some rows."""

    plugin: str
    rows: list[list[float]]
    is_rank: bool = False

    def words(self, i: int) -> str:
        """Return the keys of one row in words."""
        keys = self.rows[i]
        if self.is_rank:
            return f"rank {keys[0] + 1:g}"
        if self.plugin in _WORDS:
            words = _WORDS[self.plugin](keys)
            has_priority = _WORDS[self.plugin] is _queue_words and any(row[0] for row in self.rows)
            return f"priority {-keys[0] + 0.0:g}, {words}" if has_priority else words
        return ", ".join(f"{key:g}" for key in keys)


def ordering_hooks(ssn: Session, *hooks: Method) -> list[tuple[Plugin, Method, Ask]]:
    """Return (plugin, hook, question) in the order in which they are asked."""
    found = [(plugin, hook, ask) for hook in hooks for plugin, ask in ssn.hooks.bound(hook)]
    return sorted(found, key=lambda entry: entry[0].position)


_KeysAndTies = tuple[list[Keys], list[tuple[float, str]]]


def job_keys(ssn: Session, rows: list[int]) -> _KeysAndTies:
    """Return the keys of jobs, plugin by plugin, and what decides between equals."""
    jobs = ssn.snapshot.jobs
    view = Jobs(ssn.snapshot, np.asarray(rows, dtype=np.intp))
    keys = [
        Keys(plugin.name, _keys_of(ask(view)))
        for plugin, _, ask in ordering_hooks(ssn, Plugin.order_jobs)
    ]
    return keys, [(float(jobs.created[row]), jobs.keys[row]) for row in rows]


def queue_keys(ssn: Session, rows: list[int]) -> _KeysAndTies:
    """Return keys where plugins have any; one that compares pairs gets ranks."""
    queues = ssn.snapshot.queues
    view = Queues(ssn.snapshot, np.asarray(rows, dtype=np.intp))
    keys = [
        Keys(plugin.name, _keys_of(ask(view)))
        if hook is Plugin.order_queues
        else Keys(plugin.name, _ranks(ssn, rows, ask), is_rank=True)
        for plugin, hook, ask in ordering_hooks(ssn, Plugin.order_queues, Plugin.compare_queues)
    ]
    return keys, [(float(queues.created[row]), queues.names[row]) for row in rows]


def _ranks(ssn: Session, rows: list[int], compare: Callable[..., float]) -> list[list[float]]:
    """Turn comparisons of neighbours into ranks: equal ones share a rank."""
    ranks = [0.0] * len(rows)
    for i in range(1, len(rows)):
        left, right = (Queue(ssn.snapshot, row) for row in rows[i - 1 : i + 1])
        ranks[i] = ranks[i - 1] + (1.0 if compare(left, right) < 0 else 0.0)
    return [[rank] for rank in ranks]


def _keys_of(answer: Any) -> list[list[float]]:
    columns: list[list[float]] = np.atleast_2d(np.asarray(answer, dtype=float) + 0.0).tolist()
    return [list(keys) for keys in zip(*columns, strict=True)]


def difference(
    first: int,
    second: int,
    keys: Sequence[Keys],
    ties: Sequence[tuple[float, str]],
    age: str = "younger",
) -> str:
    """Return what puts one before another; ``age`` is the word for the first."""
    for each in keys:
        if each.rows[first] != each.rows[second]:
            return f"{each.plugin}: {each.words(first)} before {each.words(second)}"
    if ties[first][0] != ties[second][0]:
        return f"{age} by {_span(ties[second][0] - ties[first][0])}"
    return "same age; by name"


class OrderBook:
    """The keys that order queues and jobs at one moment of a session."""

    def __init__(self, ssn: Session) -> None:
        lines = waiting_lines(ssn)
        self._queue_of = {row: queue for queue, rows in lines.items() for row in rows}
        self.queues = ssn.ordering.sort_queues(lines)
        self.jobs = {queue: ssn.ordering.sort_jobs(rows) for queue, rows in lines.items()}
        rows = list(self._queue_of)
        self._job_at = {row: i for i, row in enumerate(rows)}
        self._queue_at = {row: i for i, row in enumerate(self.queues)}
        self._job_keys, self._job_ties = job_keys(ssn, rows)
        self._queue_keys, self._queue_ties = queue_keys(ssn, self.queues)
        self._names = ssn.snapshot.queues.names

    def why(self, first: int, second: int) -> str:
        """Name the key that puts a waiting job (row) before another; empty if unknown."""
        queues = [self._queue_of.get(row) for row in (first, second)]
        if None in queues:
            return ""
        if queues[0] == queues[1]:
            i, j = self._job_at[first], self._job_at[second]
            return difference(i, j, self._job_keys, self._job_ties, "older")
        i, j = (self._queue_at[queue] for queue in queues if queue is not None)
        if i > j:
            return "queues take turns"
        return f"its queue: {difference(i, j, self._queue_keys, self._queue_ties, 'older')}"


# Keys in words


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _queue_words(keys: Sequence[float]) -> str:
    """Read the keys of proportion and capacity after priority: share, whether it deserves any."""
    return "deserves nothing" if keys[2:] and keys[2] else f"{_percent(keys[1])} of its share"


def _deadline(keys: Sequence[float]) -> str:
    if keys[0] >= _NEVER:
        return "no deadline"
    return f"due {moment_of(keys[0]):%Y-%m-%d %H:%M:%S}"


def _span(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


_WORDS: dict[str, Callable[[Sequence[float]], str]] = {
    "priority": lambda keys: f"{-keys[0] + 0.0:g}",
    "gang": lambda keys: "ready" if keys[0] else "not ready",
    "drf": lambda keys: _percent(keys[0]),
    "tdm": lambda keys: "preemptable" if keys[0] else "not preemptable",
    "sla": _deadline,
    "proportion": _queue_words,
    "capacity": _queue_words,
}
"""The meaning of built-in plugins' keys; those of others are printed as numbers."""
