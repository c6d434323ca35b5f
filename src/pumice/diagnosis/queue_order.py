"""The order in which queues and jobs are considered, and which plugin says so.

Asked of the same ordering hooks that a cycle asks, when the cycle begins; what comes of it is told
from the cycle itself.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from pumice.api.decisions import Decisions
from pumice.core.views import Queue
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.job_outcome import waiting_lines
from pumice.diagnosis.replay import Replay
from pumice.framework.columns import Jobs, Queues
from pumice.framework.combining import Ask
from pumice.framework.dispatch import Method
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.scheduler import Observer

_NEVER = 2.0**53
"""A time beyond which a deadline is none."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One queue or job at its place in the order."""

    name: str
    keys: dict[str, str] = field(default_factory=dict)
    """Plugin to what it orders by, in words."""
    values: dict[str, list[float]] = field(default_factory=dict)
    """Plugin to the keys it gave; lower goes first."""
    after: str = ""
    """Why it stands behind the one before it; empty for the first."""
    turn: int | None = None
    """Its place in the order in which jobs were really taken, queues taking turns; from 1."""
    outcome: str = ""


@dataclass(frozen=True, kw_only=True)
class QueueOrder:
    """Queues with waiting jobs, and those jobs, first to last."""

    queues: list[Line]
    jobs: dict[str, list[Line]]
    rules: list[tuple[str, str, str]]
    """Queues or jobs, the plugin, and what it puts first, in the order in which they are asked."""

    def to_dict(self) -> dict[str, Any]:
        """Write all down as plain data."""
        return asdict(self)


def queue_order(world: ClusterState) -> QueueOrder:
    """Say in what order the next cycle will consider queues and jobs."""
    watcher = _Watcher()
    Replay(world).decide(watcher)
    return watcher.order


class _Watcher(Observer):
    """Asks for the order when a session opens, and adds the outcome when it is decided."""

    def opened(self, ssn: Session) -> None:
        """Put queues and jobs in order."""
        lines, table = waiting_lines(ssn), ssn.snapshot.queues
        self._rows: dict[str, list[int]] = {}
        rows = ssn.ordering.sort_queues(lines)
        jobs: dict[str, list[Line]] = {}
        for row in rows:
            mine = ssn.ordering.sort_jobs(lines[row])
            self._rows[table.names[row]] = mine
            jobs[table.names[row]] = _job_lines(ssn, mine)
        self.order = QueueOrder(queues=_queue_lines(ssn, rows), jobs=jobs, rules=_rules(ssn))

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        """Add when each job had its turn, and what came of it."""
        for queue, rows in self._rows.items():
            told = [
                _with_outcome(ssn, line, row, decisions)
                for line, row in zip(self.order.jobs[queue], rows, strict=True)
            ]
            self.order.jobs[queue] = told


def _with_outcome(ssn: Session, line: Line, row: int, decisions: Decisions) -> Line:
    turn = ssn.records.turns.get(row)
    own = {ssn.snapshot.tasks.keys[each] for each in ssn.snapshot.jobs.tasks[row]}
    bound = sum(pod in own for pod in decisions.binds)
    why = decisions.explanations.get(line.name, "")
    outcome = f"{bound} pod{'s' * (bound != 1)} bound" if bound else why or "nothing to place"
    return Line(
        name=line.name,
        keys=line.keys,
        values=line.values,
        after=line.after,
        turn=None if turn is None else turn + 1,
        outcome=outcome,
    )


@dataclass(frozen=True)
class _Keys:
    """What one plugin orders some rows by."""

    plugin: str
    rows: list[list[float]]
    is_rank: bool = False

    def words(self, i: int) -> str:
        keys = self.rows[i]
        if self.is_rank:
            return f"rank {keys[0] + 1:g}"
        if self.plugin in _WORDS:
            return _WORDS[self.plugin](keys)
        return ", ".join(f"{key:g}" for key in keys)


def _hooks(ssn: Session, *hooks: Method) -> list[tuple[Plugin, Method, Ask]]:
    """Return (plugin, hook, question) in the order in which they are asked."""
    found = [(plugin, hook, ask) for hook in hooks for plugin, ask in ssn.hooks.bound(hook)]
    return sorted(found, key=lambda entry: entry[0].position)


_KeysAndTies = tuple[list[_Keys], list[tuple[float, str]]]


def _job_keys(ssn: Session, rows: list[int]) -> _KeysAndTies:
    jobs = ssn.snapshot.jobs
    view = Jobs(ssn.snapshot, np.asarray(rows, dtype=np.intp))
    keys = [
        _Keys(plugin.name, _keys_of(ask(view))) for plugin, _, ask in _hooks(ssn, Plugin.order_jobs)
    ]
    return keys, [(float(jobs.created[row]), jobs.keys[row]) for row in rows]


def _job_lines(ssn: Session, rows: list[int]) -> list[Line]:
    return _lines([ssn.snapshot.jobs.keys[row] for row in rows], *_job_keys(ssn, rows))


def _queue_lines(ssn: Session, rows: list[int]) -> list[Line]:
    return _lines([ssn.snapshot.queues.names[row] for row in rows], *_queue_keys(ssn, rows))


def _queue_keys(ssn: Session, rows: list[int]) -> _KeysAndTies:
    """Return keys where plugins give any; one that compares pairs gives ranks."""
    queues = ssn.snapshot.queues
    view = Queues(ssn.snapshot, np.asarray(rows, dtype=np.intp))
    keys = [
        _Keys(plugin.name, _keys_of(ask(view)))
        if hook is Plugin.order_queues
        else _Keys(plugin.name, _ranks(ssn, rows, ask), is_rank=True)
        for plugin, hook, ask in _hooks(ssn, Plugin.order_queues, Plugin.compare_queues)
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


def _lines(
    names: Sequence[str], keys: Sequence[_Keys], ties: Sequence[tuple[float, str]]
) -> list[Line]:
    return [
        Line(
            name=name,
            keys={each.plugin: each.words(i) for each in keys},
            values={each.plugin: each.rows[i] for each in keys},
            after=_why(i, keys, ties),
        )
        for i, name in enumerate(names)
    ]


def _why(i: int, keys: Sequence[_Keys], ties: Sequence[tuple[float, str]]) -> str:
    """Name the first difference to the one before."""
    return _difference(i - 1, i, keys, ties) if i else ""


def _difference(
    first: int, second: int, keys: Sequence[_Keys], ties: Sequence[tuple[float, str]]
) -> str:
    """Name what puts one before another."""
    for each in keys:
        if each.rows[first] != each.rows[second]:
            return f"{each.plugin}: {each.words(first)} before {each.words(second)}"
    if ties[first][0] != ties[second][0]:
        return f"younger by {_span(ties[second][0] - ties[first][0])}"
    return "same age; by name"


class OrderBook:
    """The keys by which queues and jobs stand in line at one moment of a session."""

    def __init__(self, ssn: Session) -> None:
        lines = waiting_lines(ssn)
        self._queue_of = {row: queue for queue, rows in lines.items() for row in rows}
        self.queues = ssn.ordering.sort_queues(lines)
        self.jobs = {queue: ssn.ordering.sort_jobs(rows) for queue, rows in lines.items()}
        rows = list(self._queue_of)
        self._job_at = {row: i for i, row in enumerate(rows)}
        self._queue_at = {row: i for i, row in enumerate(self.queues)}
        self._job_keys, self._job_ties = _job_keys(ssn, rows)
        self._queue_keys, self._queue_ties = _queue_keys(ssn, self.queues)
        self._names = ssn.snapshot.queues.names

    def why(self, first: int, second: int) -> str:
        """Name the key that puts a waiting job (row) before another; empty if that is not known."""
        queues = [self._queue_of.get(row) for row in (first, second)]
        if None in queues:
            return ""
        if queues[0] == queues[1]:
            i, j = self._job_at[first], self._job_at[second]
            return _difference(i, j, self._job_keys, self._job_ties)
        i, j = (self._queue_at[queue] for queue in queues if queue is not None)
        if i > j:
            return "queues take turns"
        return f"queues: {_difference(i, j, self._queue_keys, self._queue_ties)}"


def _rules(ssn: Session) -> list[tuple[str, str, str]]:
    out = []
    orders = {"queues": (Plugin.order_queues, Plugin.compare_queues), "jobs": (Plugin.order_jobs,)}
    for kind, hooks in orders.items():
        for plugin, hook, _ in _hooks(ssn, *hooks):
            method = getattr(type(plugin), hook.__name__)
            text = (inspect.getdoc(method) or "").partition("\n")[0]
            out.append((kind, plugin.name, text.rstrip(".")))
        out.append((kind, "", "The older one first, then by name"))
    return out


# Keys in words


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _queue_words(keys: Sequence[float]) -> str:
    """Read the keys of proportion and capacity: priority, share, then whether it deserves none."""
    words = f"{_percent(keys[1])} of its share"
    if keys[2:] and keys[2]:
        words = "deserves nothing"
    return f"priority {-keys[0] + 0.0:g}, {words}" if keys[0] else words


def _deadline(keys: Sequence[float]) -> str:
    if keys[0] >= _NEVER:
        return "no deadline"
    return f"due {datetime.fromtimestamp(keys[0], UTC):%Y-%m-%d %H:%M:%S}"


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
"""What the keys of built-in plugins mean; those of others are printed as numbers."""
