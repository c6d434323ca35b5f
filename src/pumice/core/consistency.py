"""Checks that the tables of a snapshot agree with each other; for tests and debugging.

Every sum is added up again from the tasks.  Differences are reported with the rows behind them.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import STEP
from pumice.core.snapshot import Snapshot
from pumice.core.status import ALLOCATED_CLASS, BOOKED_CLASS, N_STATUS, Status
from pumice.core.tables import (
    ALLOCATED,
    IDLE,
    NOWHERE,
    PIPELINED,
    RELEASING,
    USED,
    VIEW,
    SumTable,
    Table,
)
from pumice.errors import InvariantError

_HOLDS = [*ALLOCATED_CLASS, Status.RELEASING, Status.UNKNOWN]
"""Statuses that are in a node's ``used`` while the task has a node."""

_SHOWN = 12
_Numbers = NDArray[np.float64]
_Owner = tuple[str, SumTable, Sequence[str], NDArray[np.int32], list[int]]
"""Owners of sums: kind, table, names, that of each task, and those of absent tasks."""


def check(snapshot: Snapshot) -> None:
    """Compare every table with the tasks it sums up.

    Raises:
        InvariantError: Two tables disagree; the story lists the tasks behind the numbers.
    """
    _Check(snapshot).run()


def cells(snapshot: Snapshot) -> dict[str, NDArray[Any]]:
    """Copy every column of every table, those of plugins included, by name."""
    out: dict[str, NDArray[Any]] = {}
    for kind in ("nodes", "tasks", "jobs", "queues", "namespaces"):
        for name, value in vars(getattr(snapshot, kind)).items():
            if isinstance(value, np.ndarray):
                out[f"{kind}.{name}"] = value.copy()
    for name, column in snapshot.plugin_columns.items():
        out[f"nodes.{name}"] = column.copy()
    return out


def changed(before: dict[str, NDArray[Any]], after: dict[str, NDArray[Any]]) -> list[str]:
    """Name the columns that differ exactly; columns that were added do not count."""
    return [
        name
        for name, old in before.items()
        if not np.array_equal(old, after[name], equal_nan=old.dtype.kind == "f")
    ]


class _Check:
    """One run; what all rules need is gathered once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.names = snapshot.resources.names
        tasks = snapshot.tasks
        self.rows = np.flatnonzero(tasks.status[: tasks.n] != Status.GONE)
        self.status = tasks.status[self.rows].astype(np.intp)

    def run(self) -> None:
        """Check indices first: the sums need valid ones."""
        self.check_tables()
        self.check_indices()
        snapshot, tasks = self.snapshot, self.snapshot.tasks
        shapes = [shape.request[:, 0] for shape in snapshot.shapes]
        table = np.array(shapes).reshape(len(shapes), len(self.names))
        self.request = table[tasks.shape[self.rows]]  # (T, R)
        self.node = tasks.node[self.rows]
        self.job = tasks.job[self.rows]
        self.absent = self.absent_pods()
        self.check_lists()
        self.check_books()
        self.check_view()
        self.check_room()
        self.check_jobs()
        self.check_sums()

    # Rows and indices

    def check_tables(self) -> None:
        """Compare names with rows, and columns with the resource axis."""
        snapshot = self.snapshot
        named: tuple[tuple[str, Table, Sequence[str | None], dict[str, int]], ...] = (
            ("node", snapshot.nodes, snapshot.nodes.names, snapshot.nodes.row_of),
            ("task", snapshot.tasks, snapshot.tasks.keys, snapshot.tasks.row_of),
            ("job", snapshot.jobs, snapshot.jobs.keys, snapshot.jobs.row_of),
            ("queue", snapshot.queues, snapshot.queues.names, snapshot.queues.row_of),
            (
                "namespace",
                snapshot.namespaces,
                snapshot.namespaces.names,
                snapshot.namespaces.row_of,
            ),
        )
        for kind, table, names, row_of in named:
            free = set(table.free)
            found = {name: row for row, name in enumerate(names[: table.n]) if row not in free}
            _agree(f"row_of finds every {kind} where it is", found, row_of)
            _agree(f"free {kind} rows are free once", len(free), len(table.free))
            if table is not snapshot.tasks:
                _agree(
                    f"{kind} columns are as wide as there are resources",
                    len(self.names),
                    table.n_resources,
                )
        _agree("a node row is never free", [], snapshot.nodes.free)
        gone = np.setdiff1d(np.arange(snapshot.tasks.n), self.rows).tolist()
        _agree("a task row is gone exactly if it is free", gone, sorted(snapshot.tasks.free))
        wide = [shape.id for shape in snapshot.shapes if len(shape.request) != len(self.names)]
        _agree("shapes are as wide as there are resources", [], wide)

    def check_indices(self) -> None:
        """Test that every row number names a row."""
        s, tasks, jobs = self.snapshot, self.snapshot.tasks, self.snapshot.jobs
        live_jobs = np.array(sorted(jobs.row_of.values()), dtype=np.intp)
        live_queues = np.array(sorted(s.queues.row_of.values()), dtype=np.intp)
        some = NOWHERE  # where NOWHERE is allowed
        _index("a task's shape", tasks.shape[self.rows], len(s.shapes))
        _index("a task's label class", tasks.label_class[self.rows], len(s.label_classes))
        _index("a task's role", tasks.role[self.rows], len(s.roles), some)
        _index("a task's node", tasks.node[self.rows], s.nodes.n, some)
        _index("a task's nominated node", tasks.nominated[self.rows], s.nodes.n, some)
        _index("a task's job", tasks.job[self.rows], jobs.row_of.values(), some)
        _index("a job's queue", jobs.queue[live_jobs], s.queues.row_of.values(), some)
        _index("a job's namespace", jobs.namespace[live_jobs], s.namespaces.n)
        _index("a queue's parent", s.queues.parent[live_queues], s.queues.row_of.values(), some)
        _index("a node's taint class", s.nodes.taint_class[: s.nodes.n], len(s.taint_sets))

    # Nodes

    def check_books(self) -> None:
        """Add up what the tasks of every node take."""
        nodes = self.snapshot.nodes
        used = self.per_node(self.having(_HOLDS)) + self.absent[0]
        layers = {
            "used": (USED, used),
            "idle": (IDLE, nodes.allocatable[:, : nodes.n] - used),
            "releasing": (RELEASING, self.per_node(self.having([Status.RELEASING]))),
            "pipelined": (PIPELINED, self.per_node(self.having([Status.PIPELINED]))),
        }
        for name, (layer, wanted) in layers.items():
            self.compare_nodes(name, wanted, nodes.books[layer, :, : nodes.n])

    def check_lists(self) -> None:
        """Compare the tasks that nodes list with the tasks that name the node.

        What a session placed is not listed; what it evicts still is.
        """
        nodes = self.snapshot.nodes
        placed = self.having([Status.ALLOCATED, Status.BINDING, Status.PIPELINED])
        came = ~placed & (self.node != NOWHERE)
        here: list[list[int]] = [[] for _ in range(nodes.n)]
        for task, node in zip(self.rows[came].tolist(), self.node[came].tolist(), strict=True):
            here[node].append(task)
        listed = [sorted(rows) for rows in nodes.tasks[: nodes.n]]
        _agree("a node lists the tasks it came with", here, listed)

    def check_view(self) -> None:
        """Add up the Kubernetes view of every node; it stays empty while it is not live."""
        snapshot = self.snapshot
        nodes = snapshot.nodes
        seen = snapshot.tasks.in_view[self.rows]
        absent, n_absent, absent_nonzero = self.absent
        used = self.per_node(seen) + absent
        self.compare_nodes("view_used", used, nodes.books[VIEW, :, : nodes.n])
        here = self.node[seen]
        pods = np.bincount(here[here != NOWHERE], minlength=nodes.n) + n_absent
        _agree(
            "view_pods counts the pods in view", pods.tolist(), nodes.view_pods[: nodes.n].tolist()
        )
        nonzero = np.array([s.nonzero[:, 0] for s in snapshot.shapes]).reshape(-1, 2)
        amounts = nonzero[snapshot.tasks.shape[self.rows]]
        wanted = _add_up(amounts, seen & (self.node != NOWHERE), self.node, nodes.n)
        wanted += absent_nonzero
        self.compare_nodes("view_nonzero", wanted, nodes.view_nonzero[:, : nodes.n])

    def check_room(self) -> None:
        """Refuse a node that a session filled beyond its allocatable amounts.

        A node may be over-committed at first; every placement may overshoot by less than a step.
        """
        nodes = self.snapshot.nodes
        placed = self.having([Status.ALLOCATED, Status.BINDING])
        n_placed = np.bincount(self.node[placed & (self.node != NOWHERE)], minlength=nodes.n)
        held = self.per_node(self.having(_HOLDS) & ~placed) + self.absent[0]
        came = nodes.allocatable[:, : nodes.n] - held
        asked = self.per_node(placed) > 0
        over = asked & (nodes.idle[:, : nodes.n] < np.minimum(came, 0) - STEP * n_placed)
        if over.any():
            row, node = np.argwhere(over)[0].tolist()
            self.fail(
                "no node is filled beyond what it offers",
                f"{nodes.names[node]}, {self.names[row]} idle",
                (min(0.0, came[row, node]), nodes.idle[row, node]),
                self.node == node,
            )

    def compare_nodes(self, name: str, wanted: _Numbers, found: _Numbers) -> None:
        wrong = _apart(wanted, found)
        if len(wrong):
            row, node = wrong[0].tolist()
            self.fail(
                f"'{name}' of a node is what its tasks add up to",
                f"{self.snapshot.nodes.names[node]}, {self.names[row]}",
                (wanted[row, node], found[row, node]),
                self.node == node,
            )

    # Jobs, queues, namespaces

    def check_jobs(self) -> None:
        snapshot = self.snapshot
        jobs, tasks = snapshot.jobs, snapshot.tasks
        in_job = self.job != NOWHERE
        counts = np.zeros((N_STATUS, jobs.n), dtype=np.int64)
        np.add.at(counts, (self.status[in_job], self.job[in_job]), 1)
        self.compare_jobs("counts", counts, jobs.counts[:, : jobs.n])
        self.compare_jobs("n_tasks", counts.sum(axis=0), jobs.n_tasks[: jobs.n])
        idle = self.having([Status.PENDING]) & tasks.best_effort[self.rows] & in_job
        waiting = np.bincount(self.job[idle], minlength=jobs.n)
        self.compare_jobs("n_pending_best_effort", waiting, jobs.n_pending_best_effort[: jobs.n])
        members: dict[int, set[int]] = {row: set() for row in jobs.row_of.values()}
        for task, job in zip(self.rows[in_job].tolist(), self.job[in_job].tolist(), strict=True):
            members[job].add(task)
        for job, wanted in members.items():
            _agree(
                f"job {jobs.keys[job]} lists its tasks once",
                sorted(wanted),
                sorted(jobs.tasks[job]),
            )

    def compare_jobs(self, name: str, wanted: NDArray[np.int64], found: NDArray[np.int32]) -> None:
        """Compare numbers of jobs; the last axis is the job."""
        wrong = np.argwhere(wanted != found)
        if len(wrong):
            job = int(wrong[0][-1])
            self.fail(
                f"'{name}' of a job is what its tasks count up to",
                self.snapshot.jobs.keys[job],
                (wanted[..., job].tolist(), found[..., job].tolist()),
                self.job == job,
            )

    def check_sums(self) -> None:
        """Add up the requests of every job, queue and namespace."""
        s, in_job = self.snapshot, self.job != NOWHERE
        queue, space = np.full_like(self.job, NOWHERE), np.full_like(self.job, NOWHERE)
        queue[in_job] = s.jobs.queue[self.job[in_job]]
        space[in_job] = s.jobs.namespace[self.job[in_job]]
        rows = list(s.absent.jobs)
        theirs = s.jobs.sums[:, :, rows]
        owners: tuple[_Owner, ...] = (
            ("job", s.jobs, s.jobs.keys, self.job, rows),
            ("queue", s.queues, s.queues.names, queue, s.jobs.queue[rows].tolist()),
            ("namespace", s.namespaces, s.namespaces.names, space, s.jobs.namespace[rows].tolist()),
        )
        self.check_absent(theirs[ALLOCATED].sum(axis=1))
        statuses = ([*ALLOCATED_CLASS], [*BOOKED_CLASS], [Status.PENDING])
        for kind, table, names, owner, absent in owners:
            for layer, counted in enumerate(statuses):
                where = self.having(counted) & (owner != NOWHERE)
                wanted = _add_up(self.request, where, owner, table.n)
                for at, sums in zip(absent, theirs[layer].T, strict=True):
                    wanted[:, at] += sums
                found = table.sums[layer, :, : table.n]
                wrong = _apart(wanted, found)
                if len(wrong):
                    row, at = wrong[0].tolist()
                    name = ("allocated", "allocated_or_pipelined", "pending")[layer]
                    self.fail(
                        f"'{name}' of a {kind} is what its tasks add up to",
                        f"{names[at]}, {self.names[row]}",
                        (wanted[row, at], found[row, at]),
                        owner == at,
                    )

    def check_absent(self, found: _Numbers) -> None:
        """Compare what jobs hold for pods without rows with those on nodes (R,)."""
        wanted = self.absent[0].sum(axis=1)
        if not np.allclose(wanted, found, rtol=1e-9, atol=1e-6):
            rule = "pods without rows are on nodes as jobs count them"
            nobody = np.zeros(len(self.job), dtype=bool)
            self.fail(rule, "all nodes", (wanted.tolist(), found.tolist()), nobody)

    # Helpers

    def absent_pods(self) -> tuple[_Numbers, NDArray[np.intp], _Numbers]:
        """Add up pods without rows by node: requests (R, n), number (n,), nonzero (2, n)."""
        snapshot, n_nodes = self.snapshot, self.snapshot.nodes.n
        requests, numbers = np.zeros((len(self.names), n_nodes)), np.zeros(n_nodes, dtype=np.intp)
        nonzero = np.zeros((2, n_nodes))
        for (number, node), n in snapshot.absent.on_nodes.items():
            shape = snapshot.shapes[number]
            requests[:, node] += n * shape.request[:, 0]
            numbers[node] += n
            nonzero[:, node] += n * shape.nonzero[:, 0]
        return requests, numbers, nonzero

    def having(self, statuses: Iterable[int]) -> NDArray[np.bool_]:
        wanted = np.zeros(N_STATUS, dtype=np.bool_)
        wanted[list(statuses)] = True
        return wanted[self.status]

    def per_node(self, counted: NDArray[np.bool_]) -> _Numbers:
        where = counted & (self.node != NOWHERE)
        return _add_up(self.request, where, self.node, self.snapshot.nodes.n)

    def fail(
        self, rule: str, what: str, numbers: tuple[object, object], whose: NDArray[np.bool_]
    ) -> NoReturn:
        """Raise with the two numbers that differ and the tasks behind them."""
        wanted, found = numbers
        line = f"{what}: the tasks say {wanted}, the table says {found}"
        raise InvariantError(rule, [line, *self.describe(self.rows[whose])])

    def describe(self, rows: NDArray[np.intp]) -> list[str]:
        """Describe tasks: what they are and what they ask for."""
        tasks, lines = self.snapshot.tasks, []
        for row in rows[:_SHOWN].tolist():
            status = Status(int(tasks.status[row])).label
            asks = self.snapshot.request(row).tolist()
            amounts = ", ".join(f"{n} {a:g}" for n, a in zip(self.names, asks, strict=True) if a)
            lines.append(f"{tasks.keys[row]} is {status}, asks for {amounts}")
        more = len(rows) - _SHOWN
        return [*lines, f"and {more} more tasks"] if more > 0 else lines


def _add_up(
    amounts: _Numbers, where: NDArray[np.bool_], owner: NDArray[np.int32], n: int
) -> _Numbers:
    """Add (T, R) amounts of some tasks up by owner (R, n)."""
    out = np.zeros((n, amounts.shape[1]))
    np.add.at(out, owner[where], amounts[where])
    return out.T


def _apart(wanted: _Numbers, found: _Numbers) -> NDArray[np.intp]:
    """Return the places at which numbers differ; nearly always they are equal to the last bit."""
    if np.array_equal(wanted, found):
        return np.empty((0, wanted.ndim), dtype=np.intp)
    return np.argwhere(~np.isclose(wanted, found, rtol=1e-9, atol=1e-6))


def _agree(rule: str, wanted: object, found: object) -> None:
    if wanted != found:
        raise InvariantError(rule, [f"expected {wanted}", f"found {found}"])


def _index(what: str, found: NDArray[np.int32], rows: Iterable[int] | int, *also: int) -> None:
    valid = {*(range(rows) if isinstance(rows, int) else rows), *also}
    wrong = [row for row in found.tolist() if row not in valid]
    _agree(f"{what} names a row", [], wrong)
