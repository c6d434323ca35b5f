"""Which node: filters and scores of all plugins as cached columns, asked again only for moved rows.

A ``Fit`` holds, for one shape of task, what every node answers.  The journal says which rows moved
since; only those are asked again.  Hooks treat rows independently, so both ways agree exactly.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import STEP, Column, Mask
from pumice.core.views import ALL, NodeFacts, Nodes, Rows, Task
from pumice.framework.dispatch import guard
from pumice.framework.plugin import Plugin, Reason

if TYPE_CHECKING:
    from pumice.framework.session import Session

Codes = NDArray[np.int16]
NO_ROOM, FUTURE, IDLE = 0, 1, 2
"""What a node can offer a request: nothing, room that is being freed, room now."""

_MAX_FITS = 256
_PLUGIN_FAILED = Reason("a plugin failed", curable=False)


@dataclass(slots=True)
class Fit:
    """What all nodes say to one shape of task."""

    verdict: Codes
    """0 where all filters agree, else the number of a reason (n,)."""
    room: NDArray[np.int8]
    score: Column
    value: Column
    """The score where the node fits and has room now, else minus infinity (n,)."""
    static_codes: list[Codes | None]
    static_score: Column | None
    cursor: int = 0


@dataclass(slots=True)
class _Filter:
    """One plugin's filters; its reasons start at ``offset`` in the session's list."""

    plugin: Plugin
    offset: int
    by_shape: Callable[..., Any] | None
    by_nodes: Callable[..., Any] | None
    curable: Mask


class Placing:
    """Answers "which node" for a session."""

    def __init__(self, ssn: "Session") -> None:
        self._ssn = ssn
        self.snapshot = ssn.snapshot
        self._fits: dict[Hashable, Fit] = {}
        self._filters: list[_Filter] = []
        self.state = ssn.seed & 0xFFFFFFFFFFFFFFFF
        self.reasons: list[Reason] = [Reason("fits")]

    def bind(self) -> None:
        """Collect the node hooks, after plugins have opened."""
        hooks = self._ssn.hooks
        by_shape = {m.plugin.position: m for tier in hooks["filter_shape"] for m in tier}  # type: ignore[attr-defined]
        by_nodes = {m.plugin.position: m for tier in hooks["filter_nodes"] for m in tier}  # type: ignore[attr-defined]
        for plugin in self._ssn.plugins:
            at = plugin.position
            if at in by_shape or at in by_nodes:
                reasons = (*plugin.reasons, _PLUGIN_FAILED)
                self._filters.append(
                    _Filter(
                        plugin,
                        len(self.reasons) - 1,
                        by_shape.get(at),
                        by_nodes.get(at),
                        np.array([True, *(r.curable for r in reasons)]),
                    )
                )
                self.reasons += reasons
        self.curable = np.array([r.curable for r in self.reasons])
        self._score_shape = [m for tier in hooks["score_shape"] for m in tier]
        self._score_nodes = [m for tier in hooks["score_nodes"] for m in tier]
        self._rank_nodes = [m for tier in hooks["rank_nodes"] for m in tier]
        self._best_node = [m for tier in hooks["best_node"] for m in tier]
        self.varying = [
            guard(plugin, "vary_by", self._ssn.failures)
            for plugin in self._ssn.plugins
            if type(plugin).vary_by is not Plugin.vary_by
        ]

    # Columns of a shape

    def fit(self, task: Task) -> Fit:
        """Give the up-to-date columns of a task."""
        key: Hashable = task.shape.id
        if self.varying:
            key = (key, *[vary_by(task) for vary_by in self.varying])
        fit = self._fits.get(key)
        moved = self.snapshot.journal.moved
        if fit is None:
            fit = self._new_fit(task)
            if len(self._fits) >= _MAX_FITS:
                self._fits.pop(next(iter(self._fits)))
            self._fits[key] = fit
        elif fit.cursor < len(moved):
            self._refresh(fit, task, _unique(moved[fit.cursor :], len(fit.score)))
        fit.cursor = len(moved)
        return fit

    def _new_fit(self, task: Task) -> Fit:
        n = self.snapshot.nodes.n
        facts = NodeFacts(self.snapshot)
        static_codes = [
            None if f.by_shape is None else self._codes(f, f.by_shape(task.shape, facts), n)
            for f in self._filters
        ]
        static_score: Column | None = None
        for method in self._score_shape:
            column = method(task.shape, facts)
            if column is not None:
                static_score = column if static_score is None else static_score + column
        fit = Fit(
            verdict=np.zeros(n, dtype=np.int16),
            room=np.zeros(n, dtype=np.int8),
            score=np.zeros(n),
            value=np.zeros(n),
            static_codes=static_codes,
            static_score=static_score,
        )
        self._refresh(fit, task, ALL)
        return fit

    def _refresh(self, fit: Fit, task: Task, rows: Rows) -> None:
        """Ask about some rows again."""
        nodes = Nodes(self.snapshot, rows)
        verdict = self.verdict(fit, task, nodes, rows)
        need = task.need
        idle = nodes.idle
        now = (need - idle < STEP).all(axis=0)
        later = (need - (idle + nodes.releasing - nodes.pipelined) < STEP).all(axis=0)
        room = np.where(later, np.where(now, IDLE, FUTURE), NO_ROOM)
        score = self.score(fit, task, nodes, rows)
        fit.verdict[rows] = verdict
        fit.room[rows] = room
        fit.score[rows] = score
        fit.value[rows] = np.where((room == IDLE) & (verdict == 0), score, -np.inf)

    def verdict(self, fit: Fit, task: Task, nodes: Nodes, rows: Rows) -> Codes | int:
        """Ask all filters about some rows: 0 fits, else the number of a reason."""
        verdict: Codes | int = 0
        for entry, static in zip(self._filters, fit.static_codes, strict=True):
            codes = None if static is None else static[rows]
            if entry.by_nodes is not None:
                live = self._codes(entry, entry.by_nodes(task, nodes), len(nodes))
                codes = _merge(codes, live, entry.curable)
            if codes is None:
                continue
            shifted = np.where(codes > 0, codes + entry.offset, 0)
            verdict = (
                shifted if isinstance(verdict, int) else np.where(verdict == 0, shifted, verdict)
            )
        return verdict

    def _codes(self, entry: _Filter, answer: Any, n: int) -> Codes | None:
        """Turn an answer into reason numbers of the plugin; None: all fit."""
        if answer is None:
            if (entry.plugin.name, "filter_nodes") in self._ssn.failures.errors or (
                entry.plugin.name,
                "filter_shape",
            ) in self._ssn.failures.errors:
                return np.full(n, len(entry.curable) - 1, dtype=np.int16)
            return None
        codes: Codes = (~answer).astype(np.int16) if answer.dtype == np.bool_ else answer
        return codes if codes.any() else None

    def score(self, fit: Fit, task: Task, nodes: Nodes, rows: Rows) -> Column | float:
        """Add up the scores of some rows."""
        score: Column | float = 0.0 if fit.static_score is None else fit.static_score[rows]
        for method in self._score_nodes:
            column = method(task, nodes)
            if column is not None:
                score = score + column
        return score

    # Choosing

    def feasible(self, fit: Fit) -> Mask:
        """Mark nodes that pass all filters and have room, now or soon (n,)."""
        return (fit.verdict == 0) & (fit.room != NO_ROOM)

    def choose(self, task: Task, fit: Fit, allowed: Mask | None = None) -> tuple[int, bool] | None:
        """Pick the best node: one with room now if there is any, else one with room soon.

        Returns the node's row and whether it has room now; None if no node fits.
        """
        value = fit.value if allowed is None else np.where(allowed, fit.value, -np.inf)
        node = self._best(task, value)
        if node is not None:
            return node, True
        later = (fit.verdict == 0) & (fit.room == FUTURE)
        if allowed is not None:
            later &= allowed
        if not later.any():
            return None
        node = self._best(task, np.where(later, fit.score, -np.inf))
        return None if node is None else (node, False)

    def choose_curable(self, task: Task, fit: Fit, allowed: Mask) -> tuple[int, bool] | None:
        """Pick the best of the allowed nodes by room and score alone, as ``choose`` does."""
        for room in (IDLE, FUTURE):
            value = np.where(allowed & (fit.room == room), fit.score, -np.inf)
            node = self._best(task, value)
            if node is not None:
                return node, room == IDLE
        return None

    def ranks(self, task: Task, fit: Fit) -> bool:
        """Say whether candidates are compared with each other beyond their scores."""
        if not self._rank_nodes and not self._best_node:
            return False
        nodes = Nodes(self.snapshot, np.flatnonzero(fit.value > -np.inf))
        ranked = any(method(task, nodes) is not None for method in self._rank_nodes)
        return ranked or bool(self._best_node)

    def _best(self, task: Task, value: Column) -> int | None:
        if not len(value):
            return None
        best = value.max()
        if best == -np.inf:
            return None
        if self._rank_nodes or self._best_node:
            candidates = np.flatnonzero(value > -np.inf)
            if len(candidates) == 1:
                return int(candidates[0])
            nodes = Nodes(self.snapshot, candidates)
            ranked = self._ranked(task, nodes, value[candidates])
            for method in self._best_node:
                chosen = method(task, nodes, ranked)
                if chosen is not None:
                    return int(chosen)
            ties = candidates[ranked == ranked.max()]
        else:
            ties = np.flatnonzero(value == best)
        return int(ties[self.spin(len(ties))]) if len(ties) > 1 else int(ties[0])

    def _ranked(self, task: Task, nodes: Nodes, scores: Column) -> Column:
        for method in self._rank_nodes:
            column = method(task, nodes)
            if column is not None:
                scores = scores + column
        return scores

    def scores(self, task: Task, rows: NDArray[np.intp]) -> Column:
        """Score given nodes against each other."""
        fit = self.fit(task)
        return self._ranked(task, Nodes(self.snapshot, rows), fit.score[rows])

    def spin(self, n: int) -> int:
        """Pick one of n equals: reproducible from the seed, even over many picks."""
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & (2**64 - 1)
        return (self.state >> 33) % n

    # Explaining

    def incurable(self, fit: Fit) -> Mask:
        """Mark nodes that no eviction could open for the task (n,)."""
        return np.asarray(~self.curable[fit.verdict])

    def count_reasons(
        self, task: Task, fit: Fit, allowed: Mask | None = None, *, room: bool = True
    ) -> dict[str, int]:
        """Count (allowed) nodes by the reason they cannot take a task.

        A node short of several resources counts for the first; without ``room`` filters alone
        are told.
        """
        counts: dict[str, int] = {}
        short = fit.room == NO_ROOM if room else np.zeros(len(fit.room), dtype=bool)
        asked = np.ones_like(short) if allowed is None else allowed
        missing = task.need - self.snapshot.nodes.future_idle >= STEP
        lacking = np.argmax(missing, axis=0)[short & asked]
        for row, n in enumerate(np.bincount(lacking).tolist()):
            if n:
                counts[f"Insufficient {self.snapshot.resources.names[row]}"] = n
        for code, n in enumerate(np.bincount(fit.verdict[~short & asked]).tolist()):
            if code and n:
                counts[self.reasons[code].text] = counts.get(self.reasons[code].text, 0) + n
        return counts


def _merge(static: Codes | None, live: Codes | None, curable: Mask) -> Codes | None:
    """Join two answers of one plugin: what no eviction cures is told first."""
    if static is None or live is None:
        return live if static is None else static
    prefer_live = (live > 0) & ((static == 0) | (curable[static] & ~curable[live]))
    return np.where(prefer_live, live, static)


def _unique(moved: list[Any], n: int) -> Rows:
    """Give the distinct rows of a log, as a slice if there is only one."""
    if len(moved) == 1 and isinstance(moved[0], int):
        return slice(moved[0], moved[0] + 1)
    rows: set[int] = set()
    for entry in moved:
        if isinstance(entry, int):
            rows.add(entry)
        else:
            rows.update(entry.tolist())
    if len(rows) * 2 > n:
        return ALL
    if len(rows) == 1:
        row = rows.pop()
        return slice(row, row + 1)
    return np.fromiter(rows, dtype=np.intp, count=len(rows))
