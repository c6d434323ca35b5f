"""What nodes answer to one shape of task, and how the answers of a plugin's two filters are joined.

Used by ``placing``, which keeps fits up to date.
"""

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import STEP, Column, Mask
from pumice.core.views import Nodes, Rows, Task
from pumice.framework.combining import Ask
from pumice.framework.job_records import NoNode
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Failed, Reason

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
    def has_room(self) -> bool:
        """Whether some node takes such a task now."""
        return bool(self.value.max(initial=-np.inf) > -np.inf)

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

    def adopt(self, rows: Rows, answers: "Answers", moved: int) -> None:
        """Store answers that were foreseen for the only rows that have moved since the last."""
        self.take(rows, answers)
        self.cursor = self.judged = moved


class Answers(msgspec.Struct, frozen=True):
    """The answers of some nodes to one shape of task, column by column as in a fit (n,)."""

    verdict: Codes | int
    room: NDArray[np.int8]
    score: Column | float
    value: Column

    def part(self, rows: Rows) -> "Answers":
        """Return the answers of some of them."""
        verdict, score = self.verdict, self.score
        return Answers(
            verdict if isinstance(verdict, int) else verdict[rows],
            self.room[rows],
            score if isinstance(score, float) else score[rows],
            self.value[rows],
        )


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
