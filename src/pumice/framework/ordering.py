"""Order: keys of queues, jobs and tasks, and the heaps that hold them."""

import functools
import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, Final

import numpy as np

from pumice.core.resources import Column
from pumice.core.snapshot import Snapshot
from pumice.core.views import Queue
from pumice.framework.columns import Jobs, Queues, Tasks
from pumice.framework.dispatch import Hooks
from pumice.framework.hooks import FIRST_DIFFERENCE, Ask
from pumice.framework.plugin import Plugin, implements

Key = Any
_ALONE: Final[Key] = ()
"""The key of a single row: no plugin is asked for it."""


class Heap:
    """Rows in the order of their keys, which are computed when a row is added to others.

    With ``ask_alone`` also that of a single row, so that a plugin that fails is noticed there, too.

    Evictions move the keys of rows that sit inside; placements only those of the row that is out.
    With ``moves``, which grows whenever keys may move, rows are compared as Volcano does: when one
    leaves, another is sunk from the top by the keys of that moment.  So the next row is fixed
    before the one that left is served, and others move only where a row sinks past them.
    """

    def __init__(
        self,
        keys: Callable[[list[int]], list[Key]],
        rows: Iterable[int] = (),
        *,
        moves: Sized | None = None,
        ask_alone: bool = False,
    ) -> None:
        self._keys = keys
        self._moves = moves
        self._ask_alone = ask_alone
        self._asked: dict[int, int] = {}
        """The number of moves when the key of a row was computed again."""
        self._first_moves = 0 if moves is None else len(moves)
        start = list(rows)
        self.entries: list[tuple[Key, int]] = []
        """Keys and rows, the first first."""
        if len(start) == 1 and not ask_alone:
            self.entries.append((_ALONE, start[0]))
        elif start:
            self.entries += zip(keys(start), start, strict=True)
        heapq.heapify(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def push(self, row: int) -> None:
        """Put a row (back) in."""
        entries = self.entries
        if not entries and not self._ask_alone:
            entries.append((_ALONE, row))
            return
        if entries and entries[0][0] is _ALONE:
            entries[0] = (self._keys([entries[0][1]])[0], entries[0][1])
        heapq.heappush(entries, (self._keys([row])[0], row))

    def pop(self) -> int:
        """Take the first row out."""
        if self._moves is None or len(self._moves) == self._first_moves:
            return heapq.heappop(self.entries)[1]  # with keys that stand it sinks rows as well
        entries = self.entries
        entries[0], entries[-1] = entries[-1], entries[0]
        row = entries.pop()[1]
        if len(entries) > 1:
            self._sink(len(self._moves))
        return row

    def _sink(self, now: int) -> None:
        """Sink the first row to its place, by the keys of this moment."""
        entries, at = self.entries, 0
        while (child := 2 * at + 1) < len(entries):
            self._ask_again(slice(0, 3) if not at else slice(child, child + 2), now)
            if child + 1 < len(entries) and entries[child + 1] < entries[child]:
                child += 1
            if not entries[child] < entries[at]:
                return
            entries[at], entries[child] = entries[child], entries[at]
            at = child

    def _ask_again(self, places: slice, now: int) -> None:
        """Compute the keys of some rows again, if anything has moved since."""
        asked, first = self._asked, self._first_moves
        rows = [row for _, row in self.entries[places]]
        if any(asked.get(row, first) != now for row in rows):
            self.entries[places] = zip(self._keys(rows), rows, strict=True)
            asked.update(dict.fromkeys(rows, now))


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


class Ordering:
    """Keys from the plugins' ordering hooks, with the fixed tie-breaks behind them."""

    def __init__(self, snapshot: Snapshot, hooks: Hooks) -> None:
        self._snapshot = snapshot
        self._job_policy = hooks.keys(Plugin.order_jobs)
        self._task_orders = hooks.bound(Plugin.order_tasks)
        self.keeps_orders = all(plugin.foreseeable for plugin, _ in self._task_orders)
        """Whether the order of tasks stands for the session."""
        self._moving = [
            (plugin, ask)
            for plugin, ask in self._task_orders
            if not plugin.foreseeable and implements(plugin, "on_place")
        ]
        """Orders of tasks that may change while these are placed."""
        self._moves_tasks: dict[int, bool] = {}
        self._queue_policy = hooks.keys(Plugin.order_queues)
        self._ask_alone = any(
            plugin.simulator is None
            for hook in (Plugin.order_jobs, Plugin.order_queues)
            for plugin, _ in hooks.bound(hook)
        )
        self.queues_by_pair = bool(hooks.tiers(Plugin.compare_queues))
        """Whether queues have no keys of their own."""
        self._compare_queues = FIRST_DIFFERENCE.bind([self._queue_comparisons(hooks)])
        self._queue_key: dict[int, tuple[int, Key]] = {}
        """The last key of a queue, with the number of moves until then."""
        self._keeps_job_keys = not self._ask_alone and all(
            plugin.foreseeable for plugin, _ in hooks.bound(Plugin.order_jobs)
        )
        """Whether the keys of a job stand until its own tasks move."""
        self._job_key: dict[int, tuple[bytes, Key]] = {}
        """The last key of a job, with its numbers and sums of tasks at that time."""
        self._compare_victim_queues = hooks[Plugin.compare_victim_queues]
        self._failures = hooks.failures
        self._orders: dict[int, tuple[list[int], list[int]]] = {}
        """Tasks that were put in order, and their order, by the first of them."""

    def _queue_comparisons(self, hooks: Hooks) -> list[Ask]:
        """List keyed and pairwise orders of queues as comparisons, in the order of the plugins."""
        keyed: list[tuple[int, Ask]] = [
            (plugin.position, functools.partial(_compare_keys, self._snapshot, ask))
            for plugin, ask in hooks.bound(Plugin.order_queues)
        ]
        pairwise = [(plugin.position, ask) for plugin, ask in hooks.bound(Plugin.compare_queues)]
        return [ask for _, ask in sorted([*keyed, *pairwise], key=lambda entry: entry[0])]

    def job_policy_keys(self, rows: list[int]) -> list[tuple[float, ...]]:
        """Return the plugins' keys of jobs, without tie-breaks."""
        view = Jobs(self._snapshot, np.asarray(rows, dtype=np.intp))
        return _by_row(self._job_policy(view), len(rows))

    def job_keys(self, rows: list[int]) -> list[Key]:
        """Order jobs: plugins, then age, then name."""
        return self.job_keys_of(Jobs(self._snapshot, np.asarray(rows, dtype=np.intp)))

    def job_keys_of(self, view: Jobs) -> list[Key]:
        """Order jobs as they are or are imagined to be."""
        jobs, rows = self._snapshot.jobs, view.index.tolist()
        policy = _by_row(self._job_policy(view), len(rows))
        return [
            (*key, float(jobs.created[row]), jobs.keys[row])
            for key, row in zip(policy, rows, strict=True)
        ]

    def task_keys(self, rows: list[int]) -> list[Key]:
        """Order tasks: plugins, then the number in the pod name, then age, then uid."""
        return self._task_keys(rows)[0]

    def plain_task_keys(self, rows: list[int]) -> list[Key] | None:
        """Return the same keys as plain tuples; None where they may form no order."""
        keys, is_order = self._task_keys(rows)
        return keys if is_order else None

    def _task_keys(self, rows: list[int]) -> tuple[list[Key], bool]:
        """Return the keys of tasks, and whether these are plain tuples."""
        columns, between = self.task_columns(rows)
        policy = _by_row([column.tolist() for column in columns], len(rows))
        ties = self._ties(rows)
        jobs = self._snapshot.tasks.job[rows].tolist()
        is_silent = any(np.count_nonzero(np.isnan(column)) for column in columns)
        if not is_silent and (all(between) or len(set(jobs)) == 1):
            is_plain = not (ties and isinstance(ties[0], TaskTie))
            return list(zip(policy, ties, strict=True)), is_plain
        return [TaskKey(*each, between) for each in zip(jobs, policy, ties, strict=True)], False

    def _ties(self, rows: list[int]) -> list[Key]:
        """Return keys that decide between tasks which the plugins call equal."""
        tasks = self._snapshot.tasks
        numbers, created = tasks.index[rows].tolist(), tasks.created[rows].tolist()
        ties = zip(numbers, created, [tasks.uids[row] for row in rows], strict=True)
        return [TaskTie(*tie) for tie in ties] if are_mixed(numbers) else [*ties]

    def task_columns(self, rows: list[int]) -> tuple[list[Column], list[bool]]:
        """List the plugins' keys of tasks, and which of them count between jobs.

        Not a number: the plugin does not order the task's job.
        """
        view = Tasks(self._snapshot, np.asarray(rows, dtype=np.intp))
        columns: list[Column] = []
        between: list[bool] = []
        for plugin, ask in self._task_orders:
            keys = np.atleast_2d(np.asarray(ask(view)))
            if not plugin.foreseeable and np.isnan(keys[0]).all():
                continue
            columns += list(keys)
            between += [at == 0 for at in range(len(keys))]
        return columns, between

    def queue_keys(self, rows: list[int]) -> list[Key]:
        """Order queues: plugins, then age, then name."""
        if self.queues_by_pair:
            return [PairKey(self._compare_queues, Queue(self._snapshot, row)) for row in rows]
        return self.keys_of(Queues(self._snapshot, np.asarray(rows, dtype=np.intp)))

    def keys_of(self, view: Queues) -> list[Key]:
        """Order queues as they are or are imagined to be, where they are not compared in pairs."""
        queues, rows = self._snapshot.queues, view.rows.tolist()
        policy = _by_row(self._queue_policy(view), len(rows))
        return [
            (*key, float(queues.created[row]), queues.names[row])
            for key, row in zip(policy, rows, strict=True)
        ]

    def compare_queues(self, left: int, right: int) -> int:
        """Compare two queues: negative if the left one goes first."""
        one, two = Queue(self._snapshot, left), Queue(self._snapshot, right)
        order = self._compare_queues(one, two)
        if not order:
            order = -1 if (one.created, one.name) < (two.created, two.name) else left != right
        return -1 if order < 0 else int(order > 0)

    def queue_heap(
        self, rows: Iterable[int] = (), *, live: bool = False, keep_keys: bool = False
    ) -> Heap:
        """Return a heap of queues, the best first.

        ``keep_keys``: only moves of tasks may change their order while it is used.
        """
        may_keep = keep_keys and not (live or self._ask_alone or self.queues_by_pair)
        keys = self._kept_queue_keys if may_keep else self.queue_keys
        return Heap(keys, rows, moves=self._moves(live=live), ask_alone=self._ask_alone)

    def _kept_queue_keys(self, rows: list[int]) -> list[Key]:
        """Return the keys of queues; that of a single one is kept until something moves."""
        if len(rows) > 1:
            return self.queue_keys(rows)
        now, row = len(self._snapshot.journal.moved), rows[0]
        if self._queue_key.get(row, (None,))[0] != now:
            self._queue_key[row] = (now, self.queue_keys(rows)[0])
        return [self._queue_key[row][1]]

    def job_heap(self, rows: Iterable[int] = (), *, live: bool = False) -> Heap:
        """Return a heap of jobs, the best first."""
        keys = self._kept_job_keys if live and self._keeps_job_keys else self.job_keys
        return Heap(keys, rows, moves=self._moves(live=live), ask_alone=self._ask_alone)

    def _moves(self, *, live: bool) -> Sized | None:
        """Return what grows with every move, for a heap that is in use while others are evicted."""
        return self._snapshot.journal.moved if live else None

    def _kept_job_keys(self, rows: list[int]) -> list[Key]:
        """Return the keys of jobs; each is kept until tasks of its job move."""
        jobs, known = self._snapshot.jobs, self._job_key
        now = [jobs.counts[:, row].tobytes() + jobs.sums[..., row].tobytes() for row in rows]
        if any(known.get(row, (b"",))[0] != each for row, each in zip(rows, now, strict=True)):
            known.update(zip(rows, zip(now, self.job_keys(rows), strict=True), strict=True))
        return [known[row][1] for row in rows]

    def sort_jobs(self, rows: Iterable[int]) -> list[int]:
        """Order jobs once."""
        return _sorted(list(rows), self.job_keys)

    def sort_tasks(self, rows: Iterable[int]) -> list[int]:
        """Order tasks; what was ordered in this session is known where the order stands."""
        tasks = list(rows)
        if not tasks or (len(tasks) == 1 and self.keeps_orders):
            return tasks
        known, order = self._orders.get(tasks[0], ((), []))
        if known == tasks:
            return [*order]
        found = _sorted(self._settled(tasks), self.task_keys)
        if self.keeps_orders and not self._failures.errors:
            self._orders[tasks[0]] = tasks, [*found]
        return found

    def sort_ahead(self, jobs: list[list[int]]) -> None:
        """Put the tasks of several jobs in order with one question, where the answer will stand.

        It does where plugins say so.
        """
        if not self.keeps_orders or not jobs:
            return
        keys = self.plain_task_keys([row for tasks in jobs for row in tasks])
        if keys is None or self._failures.errors:
            return
        keyed = iter(keys)
        for tasks in jobs:
            worth = zip(itertools.islice(keyed, len(tasks)), tasks, strict=True)
            self._orders[tasks[0]] = tasks, [row for _, row in sorted(worth)]

    def _settled(self, tasks: list[int]) -> list[int]:
        """Take tasks in an order of their own where their keys may form a cycle.

        The result must not depend on the order of arrival.
        """
        if not self.keeps_orders or are_mixed(self._snapshot.tasks.index[tasks].tolist()):
            return sorted(tasks, key=self._snapshot.tasks.uids.__getitem__)
        return tasks

    def moves_tasks(self, job: int) -> bool:
        """Return whether tasks of a job may change places in the order while they are placed."""
        if not self._moving:
            return False
        if job not in self._moves_tasks:
            tasks = np.asarray(self._snapshot.jobs.tasks[job], dtype=np.intp)
            view = Tasks(self._snapshot, tasks)
            self._moves_tasks[job] = any(
                not np.isnan(np.atleast_2d(ask(view))[0]).all()
                if plugin.moving_jobs is None
                else job in plugin.moving_jobs
                for plugin, ask in self._moving
            )
        return self._moves_tasks[job]

    def first_task(self, rows: Iterable[int]) -> int:
        """Return the task of one job that goes first at this moment."""
        tasks = list(rows)
        first = np.arange(len(tasks))
        for column in self.task_columns(tasks)[0]:
            keys = column[first]
            first = first[keys == keys.min()]
        equals = [tasks[i] for i in first.tolist()]
        return int(min(zip(self._ties(equals), equals, strict=True))[1])

    def sort_queues(self, rows: Iterable[int]) -> list[int]:
        """Order queues once."""
        return _sorted(list(rows), self.queue_keys)

    def sort_victims(self, victims: list[int], preemptor_queue: int) -> list[int]:
        """Order victims: the least valuable goes first."""
        if len(victims) < 2:
            return list(victims)
        compare = self.victim_order(victims, preemptor_queue)
        return sorted(self._settled(victims), key=functools.cmp_to_key(compare))

    def victim_order(self, victims: list[int], preemptor_queue: int) -> Callable[[int, int], int]:
        """Return the comparison of victims at this moment: negative if the left one goes first."""
        tasks, jobs = self._snapshot.tasks, self._snapshot.jobs
        job_of = {row: int(tasks.job[row]) for row in victims}
        job_rows = sorted(set(job_of.values()))
        job_key = dict(zip(job_rows, self.job_policy_keys(job_rows), strict=True))
        task_key = dict(zip(victims, self.task_keys(victims), strict=True))
        queues: dict[tuple[int, int], int] = {}

        def compare(left: int, right: int) -> int:
            a, b = job_of[left], job_of[right]
            if a != b:
                queue_a, queue_b = int(jobs.queue[a]), int(jobs.queue[b])
                if queue_a != queue_b:
                    pair = (queue_a, queue_b)
                    if pair not in queues:
                        queues[pair] = self.compare_victim_queues(*pair, preemptor_queue)
                    return queues[pair]
                if job_key[a] != job_key[b]:
                    return -1 if job_key[a] > job_key[b] else 1
            return -1 if task_key[right] < task_key[left] else 1

        return compare

    def victims_in_turn(self, victims: list[int], preemptor_queue: int) -> Iterator[int]:
        """Return sorted victims one by one, while evictions move the order.

        Volcano: a heap is sifted when a victim leaves it, so the next one is fixed before the
        one that left is evicted; the rest is only put in order on the way.
        """
        heap = list(victims)
        job = self._snapshot.tasks.job
        if len({job.item(row) for row in heap}) < 2:
            yield from heap
            return
        moved = self._snapshot.journal.moved
        compare, seen = self.victim_order(heap, preemptor_queue), len(moved)
        while heap:
            if seen != len(moved):
                compare, seen = self.victim_order(heap, preemptor_queue), len(moved)
            heap[0], heap[-1] = heap[-1], heap[0]
            first = heap.pop()
            _sift(heap, compare)
            yield first

    def compare_victim_queues(self, left: int, right: int, preemptor: int) -> int:
        """Compare queues as sources of victims: negative if the left one loses tasks first."""
        snapshot = self._snapshot
        order = self._compare_victim_queues(
            Queue(snapshot, left), Queue(snapshot, right), Queue(snapshot, preemptor)
        )
        if order:
            return -1 if order < 0 else 1
        return -self.compare_queues(left, right)


def _sift(heap: list[int], compare: Callable[[int, int], int]) -> None:
    """Sink the first element of a binary heap to its place."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= len(heap):
            return
        if child + 1 < len(heap) and compare(heap[child + 1], heap[child]) < 0:
            child += 1
        if compare(heap[child], heap[at]) >= 0:
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child


def _by_row(columns: list[list[float]], n: int) -> list[tuple[float, ...]]:
    """Turn keys to be compared in turn into one key for each of n rows."""
    return list(zip(*columns, strict=True)) if columns else [()] * n


def _compare_keys(snapshot: Snapshot, order_queues: Ask, left: Queue, right: Queue) -> int:
    """Compare two queues by the keys that one plugin gives them."""
    view = Queues(snapshot, np.asarray([left.row, right.row], dtype=np.intp))
    first, second = zip(*np.atleast_2d(np.asarray(order_queues(view))).tolist(), strict=True)
    return (first > second) - (first < second)


def _sorted(rows: list[int], keys: Callable[[list[int]], list[Key]]) -> list[int]:
    return [row for _, row in sorted(zip(keys(rows), rows, strict=True))] if rows else []
