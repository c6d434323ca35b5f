"""Which node: filters and scores of all plugins as cached columns, recomputed only for moved rows.

A ``Fit`` holds, for one shape of task, the answers of every node.  The journal shows which rows
moved since; only those are asked again.  Hooks treat rows independently, so both agree exactly.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from pumice.core.pod_terms import pod_terms
from pumice.core.resources import STEP, Column, Mask
from pumice.core.snapshot import Rows as LoggedRows
from pumice.core.snapshot import Snapshot
from pumice.core.views import ALL, NodeFacts, Nodes, Rows, Task
from pumice.framework.dispatch import Hooks
from pumice.framework.hooks import FIRST_REASON, Ask
from pumice.framework.placement.kernel import (
    AmountTerm,
    ColumnTerm,
    Kernel,
    NodeTerm,
    PodClass,
    PodCounts,
    RankTerm,
)
from pumice.framework.plugin import Plugin, implements, states_terms
from pumice.framework.refusals import Failed, NoNode, Reason
from pumice.kernel.library import library

Codes = NDArray[np.int16]
NO_ROOM, FUTURE, IDLE = 0, 1, 2
"""A node's offer to a request: nothing, room that is being freed, room now."""
_MANY = 256
"""Number of nodes from which resources are compared one by one, if they are requested at all."""


def filter_reasons(plugin: Plugin) -> tuple[Reason, ...]:
    """Return the reasons for which a plugin refuses nodes, last that its filters failed."""
    hooks = Plugin.filter_shape.__name__, Plugin.filter_nodes.__name__
    return (*plugin.reasons, *(Failed(plugin.name, hook).reason for hook in hooks))


class Fit(msgspec.Struct):
    """The answers of all nodes to one shape of task."""

    verdict: Codes
    """0 where all filters agree, else the number of a reason (n,)."""
    room: NDArray[np.int8]
    score: Column
    value: Column
    """The score where the node fits and has room now, else minus infinity (n,)."""
    static_codes: list[Codes | None]
    static_score: Column | None
    rankers: list[Ask] = msgspec.field(default_factory=list)
    """The plugins that compare candidates for such tasks beyond their scores."""
    cursor: int = 0
    """How much of the log of moved rows all columns follow."""
    judged: int = 0
    """How much of it the verdicts follow."""
    no_node: NoNode | None = None
    """Why no node takes such tasks, once that was asked; until a row changes."""

    @property
    def n_bytes(self) -> int:
        """Its memory in bytes."""
        columns = (self.verdict, self.room, self.score, self.value, self.static_score)
        return sum(each.nbytes for each in (*columns, *self.static_codes) if each is not None)

    def take(self, rows: Rows, answers: "Answers") -> None:
        """Store the current answers of some rows."""
        self.no_node = None
        self.verdict[rows] = answers.verdict
        self.room[rows] = answers.room
        self.score[rows] = answers.score
        self.value[rows] = answers.value


class Answers(msgspec.Struct, frozen=True):
    """The answers of some nodes to one shape of task, column by column as in a fit (n,)."""

    verdict: Codes | int
    room: NDArray[np.int8]
    score: Column | float
    value: Column


class PluginFilter:
    """The filters of one plugin, which are asked together; its reasons follow ``offset`` others."""

    __slots__ = ("_at", "_by_nodes", "_curable", "_offset", "by_shape", "position", "vetoes")

    def __init__(
        self,
        at: int,
        offset: int,
        reasons: tuple[Reason, ...],
        asks: tuple[Ask | None, Ask | None],
        *,
        position: int,
    ) -> None:
        self.position = position
        self.by_shape, self._by_nodes = asks
        self._at = at
        self._offset = offset
        self._curable = np.array([True, *(reason.curable for reason in reasons)])
        self.vetoes = any(reason.vetoes for reason in reasons)

    def ask(self, fit: Fit, task: Task, nodes: Nodes, rows: Rows) -> Codes | None:
        """Return reason numbers of the session for some rows; None: all fit."""
        static = fit.static_codes[self._at]
        codes = None if static is None else static[rows]
        if self._by_nodes is not None:
            codes = _merge(codes, codes_of(self._by_nodes(task, nodes)), self._curable)
        return None if codes is None else np.where(codes > 0, codes + self._offset, 0)


def room_on(need: Column, nodes: Nodes) -> NDArray[np.int8]:
    """Compute the offer of nodes to a request (n,)."""
    idle, releasing, pipelined = nodes.idle, nodes.releasing, nodes.pipelined
    n = idle.shape[1]
    if n == 1:
        return _room_on_one(need, idle, releasing, pipelined)
    now = _covers(need, idle)
    stirs = releasing.any() or pipelined.any()
    later = _covers(need, idle + releasing - pipelined) if stirs else now
    return np.left_shift(later.view(np.int8), now.view(np.int8))  # NO_ROOM is 0, FUTURE 1, IDLE 2


def _covers(need: Column, room: Column) -> Mask:
    """Mark nodes with room (R, n) for a request (n,)."""
    if room.shape[1] < _MANY:
        return np.asarray((need - room < STEP).all(axis=0))
    covered = np.ones(room.shape[1], dtype=bool)
    for row, wanted in enumerate(need[:, 0].tolist()):
        if wanted > -np.inf:  # what is not requested always fits
            covered &= wanted - room[row] < STEP
    return covered


def _room_on_one(*amounts: Column) -> NDArray[np.int8]:
    """Compute the offer of one node, in plain floats: need, idle, releasing and pipelined."""
    now = later = True
    columns = [column[:, 0].tolist() for column in amounts]
    for wanted, free, leaving, promised in zip(*columns, strict=True):
        now = now and wanted - free < STEP
        later = later and wanted - (free + leaving - promised) < STEP
    return np.array([later << now], dtype=np.int8)


def values_of(verdict: Codes | int, room: NDArray[np.int8], score: Column | float) -> Column:
    """Return the scores of nodes that fit and have room now, minus infinity for others (n,).

    Where all do, these are the scores themselves.
    """
    fits = room == IDLE
    if not isinstance(verdict, int):  # else none refuses
        fits &= verdict == 0
    if isinstance(score, float) or np.count_nonzero(fits) < len(fits):
        return np.where(fits, score, -np.inf)
    return score


def codes_of(answer: Any) -> Codes | None:
    """Turn an answer into reason numbers of the plugin; None: all fit.

    Counting is several times faster than asking whether there is any.
    """
    if answer is None:
        return None
    codes: Codes = (~answer).astype(np.int16) if answer.dtype == np.bool_ else answer
    return codes if np.count_nonzero(codes) else None


def _merge(static: Codes | None, live: Codes | None, curable: Mask) -> Codes | None:
    """Join two answers of one plugin: reasons that no eviction cures come first."""
    if static is None or live is None:
        return live if static is None else static
    prefer_live = (live > 0) & ((static == 0) | (curable[static] & ~curable[live]))
    return np.where(prefer_live, live, static)


_MOST_BYTES = 256 << 20
"""What all fits of a session may take together; the least recently used are dropped first."""


_Stated = dict[int, list[NodeTerm] | None]
"""What plugins state as data about the nodes of a task, by position; None: they are asked."""


class KernelClass(NamedTuple):
    """A class of equal tasks, as the kernel knows it."""

    number: int
    counts: bool
    """Whether pods elsewhere decide, too."""
    rankers: list[Ask]
    """The plugins that compare candidates beyond their scores, unless all state how."""


class Placing:
    """Answers "which node" for a session; made when all plugins have opened."""

    imagines: ClassVar[bool] = True
    """Whether it can be asked about rows that do not exist yet."""

    def __init__(self, snapshot: Snapshot, hooks: Hooks, seed: int) -> None:
        self.snapshot = snapshot
        self.hooks = hooks
        self._fits: dict[Hashable, Fit] = {}
        self.state = seed & 0xFFFFFFFFFFFFFFFF
        self.reasons: list[Reason] = [Reason("fits")]
        self._filters = self._collect_filters()
        self.vetoing = [each for each in self._filters if each.vetoes]
        self.curable = np.array([reason.curable for reason in self.reasons])
        self.lasting = np.array([not each.curable and each.lasting for each in self.reasons])
        self._verdict: Ask = FIRST_REASON.bind([[each.ask for each in self._filters]])
        self._score_shape = hooks.sums(Plugin.score_shape)
        self._score_nodes = hooks.sums(Plugin.score_nodes)
        self._rank_nodes = hooks.sums(Plugin.rank_nodes)
        self.rankers = hooks.bound(Plugin.rank_nodes)
        self._stating = {
            plugin.position: hooks.ask_aside(plugin, Plugin.node_terms)
            for plugin in hooks.plugins
            if states_terms(plugin)
        }
        """Who states node terms."""
        self._kernel: Kernel | None = None
        self._classes: dict[Hashable, KernelClass | None] = {}
        """Classes of tasks that the kernel knows; None: it cannot."""
        self._best_node = hooks[Plugin.best_node]
        self._picks = bool(hooks.tiers(Plugin.best_node))
        self.varying = [
            hooks.ask_aside(plugin, Plugin.vary_by)
            for plugin in hooks.plugins
            if implements(plugin, "vary_by") and plugin.tells_apart
        ]

    def _collect_filters(self) -> list[PluginFilter]:
        """Bring the two filters of each plugin together, and number all reasons."""
        hooks = self.hooks
        by_shape = {plugin.position: ask for plugin, ask in hooks.bound(Plugin.filter_shape)}
        by_nodes = {plugin.position: ask for plugin, ask in hooks.bound(Plugin.filter_nodes)}
        filters: list[PluginFilter] = []
        for plugin in hooks.plugins:
            at = plugin.position
            if at in by_shape or at in by_nodes:
                reasons = filter_reasons(plugin)
                offset = len(self.reasons) - 1
                asks = by_shape.get(at), by_nodes.get(at)
                filters.append(PluginFilter(len(filters), offset, reasons, asks, position=at))
                self.reasons += reasons
        return filters

    @property
    def moved(self) -> list[LoggedRows]:
        """The log of rows that moved, by which answers are renewed."""
        return self.snapshot.journal.moved

    # Classes that the kernel knows

    @cached_property
    def _declaring(self) -> list[tuple[int, bool, bool]] | None:
        """The plugins (by position) whose node terms count: those of filters, those of scores.

        None where a plugin picks nodes, or answers about them without stating terms.
        """
        hooks = self.hooks
        filters = {plugin.position for plugin, _ in hooks.bound(Plugin.filter_nodes)}
        scores = {plugin.position for plugin, _ in hooks.bound(Plugin.score_nodes)}
        live = sorted(filters | scores)
        if self._picks or not self.imagines or not self._stating.keys() >= {*live}:
            return None
        return [(each, each in filters, each in scores) for each in live]

    @property
    def kernel(self) -> Kernel:
        """The kernel of this session."""
        if self._kernel is None:
            found = library()
            assert found is not None  # noqa: S101  # classes are made only with one
            self._kernel = Kernel(found, self.snapshot, self.moved)
        return self._kernel

    def class_key(self, task: Task) -> Hashable:
        """Return the key of tasks that are equal, also to the counts they are in."""
        if self.varying:
            label_class = self.snapshot.tasks.label_class.item(task.row)
            return self.kind(task), pod_terms(self.snapshot).like(label_class)
        return task.shape.id

    def class_of(self, task: Task) -> "KernelClass | None":
        """Return the class of a task; None if the kernel cannot know it."""
        key = self.class_key(task)
        try:
            return self._classes[key]
        except KeyError:
            made = self._classes[key] = self._make_class(task)
            return made

    def _make_class(self, task: Task) -> "KernelClass | None":
        if library() is None or task.shape.coarse:
            return None
        stated = self._stated(task)
        terms = self._terms_of(stated)
        if terms is None:
            return None
        static_codes, base = self._static(task)
        static = [codes != 0 for codes in static_codes if codes is not None]
        refused = np.logical_or.reduce(static) if static else None
        scores = [term for term in terms if isinstance(term, AmountTerm | ColumnTerm)]
        counts = next((term for term in terms if isinstance(term, PodCounts)), None)
        if base is not None:
            base = np.ascontiguousarray(base, dtype=np.float64)
        silent = any(stated.get(plugin.position) is None for plugin, _ in self.rankers)
        rankers = self._comparing(stated) if silent else []
        ranks = [] if silent else [term for term in terms if isinstance(term, RankTerm)]
        kind = task.shape, self.snapshot.tasks.label_class.item(task.row)
        made = PodClass(*kind, refused, base, scores, counts, ranks)
        return KernelClass(self.kernel.add(made), counts is not None, rankers)

    def _stated(self, task: Task) -> _Stated:
        return {position: ask(task) for position, ask in self._stating.items()}

    def _terms_of(self, stated: _Stated) -> list[NodeTerm] | None:
        if self._declaring is None:
            return None
        found: list[NodeTerm] = []
        for position, filters, scores in self._declaring:
            terms = stated[position]
            if terms is None:
                return None
            for term in terms:
                if isinstance(term, ColumnTerm) and term.name not in self.snapshot.plugin_columns:
                    return None  # the plugin is told when its hook asks for the column
                is_score = isinstance(term, ColumnTerm | RankTerm) or getattr(
                    term, "is_score", False
                )
                if scores if is_score else filters:
                    found.append(term)
        return found

    def by_amounts(self, task: Task) -> bool:
        """Return whether filters and scores of such tasks follow from amounts of nodes alone."""
        terms = self._terms_of(self._stated(task))
        apart = PodCounts, ColumnTerm
        return terms is not None and not any(isinstance(term, apart) for term in terms)

    def pick(
        self, classes: Sequence[int], allowed: Mask | None = None, *, stay_closed: bool = False
    ) -> tuple[list[int], list[int]]:
        """Pick nodes with room now for tasks of some classes, as ``choose`` would one by one.

        Returns the nodes up to the first task that finds none, and the state of the generator
        after each pick.
        """
        return self.kernel.pick(classes, self.state, allowed, stay_closed=stay_closed)

    # Columns of a shape

    def fit(self, task: Task) -> Fit:
        """Return the up-to-date columns of a task."""
        return self.fit_of(self.kind(task), task)

    def kind(self, task: Task) -> Hashable:
        """Return the key of tasks that get the same answers from every node."""
        if self.varying:
            return (task.shape.id, *[vary_by(task) for vary_by in self.varying])
        return task.shape.id

    def fit_of(self, key: Hashable, task: Task) -> Fit:
        """Return the up-to-date columns of a kind of which a task is one."""
        fit, moved = self._fits.pop(key, None), self.moved
        if fit is None:
            fit = self._new_fit(task)
            while self._fits and fit.n_bytes * (len(self._fits) + 1) > _MOST_BYTES:
                self._fits.pop(next(iter(self._fits)))
        elif fit.cursor < len(moved):
            rows = distinct_rows(moved[fit.cursor :], len(fit.score))
            if isinstance(rows, slice) or len(rows):
                self._refresh(fit, task, rows)
        fit.cursor = fit.judged = len(moved)
        self._fits[key] = fit  # the one used last is last
        return fit

    def judged(self, task: Task) -> Fit:
        """Return the columns of a task of which only the verdicts are up to date.

        No scores are asked for: for evictions, where verdicts alone count.
        """
        fit, moved = self._fits.get(self.kind(task)), self.moved
        if fit is None:
            return self.fit(task)
        if fit.judged < len(moved):
            rows = distinct_rows(moved[fit.judged :], len(fit.verdict))
            fit.verdict[rows] = self.verdict(fit, task, Nodes(self.snapshot, rows), rows)
            fit.judged = len(moved)
        return fit

    def _new_fit(self, task: Task) -> Fit:
        n, fit = self.snapshot.nodes.n, self._blank_fit(task)
        fit.verdict = np.zeros(n, dtype=np.int16)
        fit.room = np.zeros(n, dtype=np.int8)
        fit.score, fit.value = np.zeros(n), np.zeros(n)
        self._refresh(fit, task, ALL)
        return fit

    def _blank_fit(self, task: Task) -> Fit:
        """Return what holds for the session, without columns."""
        static_codes, static_score = self._static(task)
        return Fit(
            verdict=np.empty(0, dtype=np.int16),
            room=np.empty(0, dtype=np.int8),
            score=np.empty(0),
            value=np.empty(0),
            static_codes=static_codes,
            static_score=static_score,
            rankers=self._rankers_for(task),
        )

    def _static(self, task: Task) -> tuple[list[Codes | None], Column | None]:
        """Ask the filters and scores that follow from the shape alone."""
        facts = NodeFacts(self.snapshot)
        codes = [
            None if each.by_shape is None else codes_of(each.by_shape(task.shape, facts))
            for each in self._filters
        ]
        score = self._score_shape(0.0, task.shape, facts)
        return codes, None if isinstance(score, float) else score

    def _rankers_for(self, task: Task) -> list[Ask]:
        """Return the plugins that compare candidates for a task."""
        return self._comparing(self._stated(task)) if self.rankers else []

    def _comparing(self, stated: _Stated) -> list[Ask]:
        """Return the plugins that compare candidates, without those that state that they do not."""
        return [ask for plugin, ask in self.rankers if _compares(stated.get(plugin.position))]

    def _refresh(self, fit: Fit, task: Task, rows: Rows) -> None:
        """Ask again about some rows."""
        fit.take(rows, self.answers(fit, task, Nodes(self.snapshot, rows), rows))

    def answers(self, fit: Fit, task: Task, nodes: Nodes, rows: Rows) -> Answers:
        """Ask filters and scores about some rows, imagined ones too, and compute their room."""
        verdict = self.verdict(fit, task, nodes, rows)
        room = room_on(task.need, nodes)
        score = self.score(fit, task, nodes, rows)
        return Answers(verdict, room, score, values_of(verdict, room, score))

    def verdict(self, fit: Fit, task: Task, nodes: Nodes, rows: Rows) -> Codes | int:
        """Ask all filters about some rows: 0 fits, else the number of a reason."""
        return self._verdict(fit, task, nodes, rows)

    def score(self, fit: Fit, task: Task, nodes: Nodes, rows: Rows) -> Column | float:
        """Add up the scores of some rows."""
        static = 0.0 if fit.static_score is None else fit.static_score[rows]
        return self._score_nodes(static, task, nodes)

    # Choosing

    def choose(self, task: Task, fit: Fit, allowed: Mask | None = None) -> tuple[int, bool] | None:
        """Pick the best node: one with room now if there is any, else one with room soon.

        Returns the node's row and whether it has room now; None if no node fits.
        """
        value = fit.value if allowed is None else np.where(allowed, fit.value, -np.inf)
        node = self._best(task, fit.rankers, value)
        if node is not None:
            return node, True
        later = (fit.verdict == 0) & (fit.room == FUTURE)
        if allowed is not None:
            later &= allowed
        if not later.any():
            return None
        node = self._best(task, fit.rankers, np.where(later, fit.score, -np.inf))
        return None if node is None else (node, False)

    def choose_known(self, task: Task, allowed: Mask | None = None) -> int | None:
        """Pick the best node with room now as ``choose`` does; None if the kernel finds none."""
        known = self.class_of(task)
        if known is None:
            return None
        if not known.rankers:
            nodes, draws = self.pick([known.number], allowed)
            if not nodes:
                return None
            self.state = draws[0]
            return nodes[0]
        value = self.fit(task).value if known.counts else self.kernel.values(known.number)
        if allowed is not None:
            value = np.where(allowed, value, -np.inf)
        return self._best(task, known.rankers, value)

    def closed_now(self, task: Task) -> NDArray[np.intp] | None:
        """Return the nodes that refuse a task or lack room now; None if the kernel cannot know."""
        known = self.class_of(task)
        if known is None or known.counts:
            return None
        return np.flatnonzero(self.kernel.values(known.number) == -np.inf)

    def choose_idle(self, task: Task, fit: Fit) -> int | None:
        """Pick the best node that has room now, whatever it has promised to pipelined tasks."""
        has_room = (task.need - self.snapshot.nodes.idle < STEP).all(axis=0)
        value = np.where(has_room & (fit.verdict == 0), fit.score, -np.inf)
        return self._best(task, fit.rankers, value)

    def choose_curable(self, task: Task, fit: Fit, allowed: Mask) -> tuple[int, bool] | None:
        """Pick the best of the allowed nodes by room and score alone, as ``choose`` does."""
        for room in (IDLE, FUTURE):
            value = np.where(allowed & (fit.room == room), fit.score, -np.inf)
            node = self._best(task, fit.rankers, value)
            if node is not None:
                return node, room == IDLE
        return None

    def _best(self, task: Task, rankers: list[Ask], value: Column) -> int | None:
        if rankers or self._picks:
            return self._best_ranked(task, value)
        best = value.max(initial=-np.inf)
        return None if best == -np.inf else self._draw((value == best).nonzero()[0])

    def _best_ranked(self, task: Task, value: Column) -> int | None:
        """Pick the best node after candidates were compared with each other."""
        candidates = (value > -np.inf).nonzero()[0]
        if len(candidates) < 2:
            return int(candidates[0]) if len(candidates) else None
        whole = len(candidates) == len(value)
        nodes = Nodes(self.snapshot, ALL if whole else candidates)
        scores = value.copy() if whole else value[candidates]  # a plugin may write into them
        ranked = self._ranked(task, nodes, scores)
        chosen = self._best_node(task, nodes, ranked)
        if chosen is not None:
            return int(chosen)
        return self._draw(candidates[ranked == ranked.max()])

    def _draw(self, ties: NDArray[np.intp]) -> int:
        return int(ties[self.spin(len(ties))]) if len(ties) > 1 else int(ties[0])

    def _ranked(self, task: Task, nodes: Nodes, scores: Column) -> Column:
        return np.asarray(self._rank_nodes(scores, task, nodes))

    def scores(self, task: Task, rows: NDArray[np.intp]) -> Column:
        """Score given nodes against each other."""
        fit = self.fit(task)
        return self._ranked(task, Nodes(self.snapshot, rows), fit.score[rows])

    def spin(self, n: int) -> int:
        """Pick one of n equals: reproducible from the seed, even over many picks."""
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & (2**64 - 1)
        return (self.state >> 33) % n

    # Explaining

    def plugin_codes(self, task: Task, position: int) -> Codes | None:
        """Return the reason numbers of one plugin for a task, others aside (n,); None: all fit."""
        fit, nodes = self.fit(task), Nodes(self.snapshot)
        for each in self._filters:
            if each.position == position:
                return each.ask(fit, task, nodes, ALL)
        return None

    def incurable(self, fit: Fit) -> Mask:
        """Mark nodes that no eviction could open for the task (n,)."""
        return self.barred(fit.verdict)

    def refusals(self, task: Task, fit: Fit, known: Codes | None = None) -> Codes:
        """Number why each node refuses a task (n,); known refusals stay.

        0: it does not; above 0: the reason of a filter; below 0: it lacks that resource, the
        first of several.
        """
        short = fit.room == NO_ROOM
        if known is not None:
            short &= known == 0
        rows, codes = short.nonzero()[0], fit.verdict.copy()
        if len(rows):
            missing = task.need - Nodes(self.snapshot, rows).future_idle >= STEP
            codes[rows] = -1 - np.argmax(missing, axis=0)
        return codes if known is None else np.where(known == 0, codes, known)

    def refusals_on(self, task: Task, rows: Rows) -> Codes:
        """Number why some nodes refuse a task (n,), without asking for scores."""
        nodes, fit = Nodes(self.snapshot, rows), self._fits.get(self.kind(task))
        fit = self._blank_fit(task) if fit is None else fit
        codes = np.array(np.broadcast_to(self.verdict(fit, task, nodes, rows), len(nodes)))
        short = room_on(task.need, nodes) == NO_ROOM
        if short.any():
            missing = task.need - nodes.future_idle[:, short] >= STEP
            codes[short] = -1 - np.argmax(missing, axis=0)
        return codes

    def barred(self, refusals: Codes) -> Mask:
        """Mark nodes that refuse for a reason which no eviction could cure (n,)."""
        if refusals.max(initial=0) <= 0:
            return np.zeros(len(refusals), dtype=bool)
        return np.asarray(~self.curable[np.maximum(refusals, 0)])

    def count_reasons(self, refusals: Codes) -> dict[str, int]:
        """Count nodes by the reason for which they refuse a task."""
        counts: dict[str, int] = {}
        codes, numbers = np.unique(refusals[refusals != 0], return_counts=True)
        pairs = zip(codes.tolist(), numbers.tolist(), strict=True)
        for code, n in sorted(pairs, key=lambda pair: (pair[0] > 0, abs(pair[0]))):
            if code > 0:
                text = self.reasons[code].text
            else:
                text = f"Insufficient {self.snapshot.resources.names[-1 - code]}"
            counts[text] = counts.get(text, 0) + n
        return counts


def rows_of(moved: Iterable[Any]) -> set[int]:
    """Return the distinct rows of a log."""
    rows: set[int] = set()
    for entry in moved:
        if isinstance(entry, int):
            rows.add(entry)
        else:
            rows.update(entry.tolist())
    return rows


def distinct_rows(moved: list[Any], n: int) -> Rows:
    """Return the same as an index: all if they are most of n, a slice if there is only one."""
    if len(moved) == 1 and isinstance(moved[0], int):
        return slice(moved[0], moved[0] + 1)
    rows = rows_of(moved)
    if len(rows) * 2 > n:
        return ALL
    if len(rows) == 1:
        row = rows.pop()
        return slice(row, row + 1)
    return np.fromiter(rows, dtype=np.intp, count=len(rows))


def _compares(terms: list[NodeTerm] | None) -> bool:
    return terms is None or any(isinstance(term, RankTerm) for term in terms)


MakePlacing = Callable[[Snapshot, Hooks, int], Placing]
"""Makes the placing of a session from a snapshot, its hooks and the seed."""


def vetoed(placing: Placing, task: Task, node: int) -> bool:
    """Return whether a task cannot be placed on a node as it is now, evictions included."""
    if not placing.vetoing:
        return False
    fit, rows = placing.judged(task), np.array([node])
    nodes = Nodes(placing.snapshot, rows)
    answers = (each.ask(fit, task, nodes, rows) for each in placing.vetoing)
    return any(codes is not None and codes[0] > 0 for codes in answers)
