"""Candidates in line on some nodes, and who of them goes when nodes are emptied in order.

Where a plugin lets each job lose so many tasks, and no more, it is known in advance whom it offers
on a node after others went from the nodes before; whom it keeps, the next tier may still offer.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pumice.core.resources import IndexArray, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.views import Task
from pumice.framework.columns import Jobs
from pumice.framework.combining import Ask

InTurn = list[tuple[Ask, Mask]]
"""Plugins that judge in turn, and whom of those in line each of them could ever offer (k,)."""

JobKeys = dict[int, tuple[float, ...]]
"""What orders jobs, by job."""


@dataclass(frozen=True, slots=True)
class Judge:
    """A plugin that is asked about victims."""

    ask: Ask
    is_alone: bool
    """Whether it judges each candidate by itself; otherwise it judges in turn."""
    bound: Ask
    """Returns whom it could ever offer."""
    surplus: Ask | None
    """Returns how many tasks of each job it offers; None: it does not go by jobs alone."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Candidates of some nodes: node after node, on each who is least worth keeping first."""

    at: IndexArray
    """Their places among all candidates (k,)."""
    rows: IndexArray
    """Their tasks (k,)."""
    place: IndexArray
    """The place of each one's node among the nodes that were asked about (k,)."""
    offered: Mask
    """Whom plugins let go, unless one that judges in turn keeps some of them (k,)."""
    known: Mask
    """Nodes whose answer follows from ``offered`` if those who judge in turn offer all (n,)."""
    final: Callable[[], Mask]
    """Returns those on which nobody else would be offered once these are gone (n,)."""
    in_turn: InTurn
    """Who judges in turn on the known nodes."""
    job_keys: JobKeys = field(default_factory=dict)
    """The keys of jobs in line; empty if no node has two of them."""
    split: list[int] | None = None
    """How many go from each node before the next tier offers the rest; None: one tier decides."""
    in_turn_later: InTurn = field(default_factory=list)
    """Who judges in turn in that next tier."""
    counted: frozenset[int] = frozenset()
    """Jobs of which too many are in line: nodes follow from all before them being emptied."""
    lasts: bool = False
    """Whether it holds for the next job, too, if those who judge alone offer it as much."""


class SurplusTier:
    """A first tier that lets each job lose so many tasks, and the tier that offers the others."""

    def __init__(self, snapshot: Snapshot, tiers: list[list[Judge]], *, lasts: bool) -> None:
        """``lasts``: tasks in line keep their order while others go."""
        self._snapshot = snapshot
        self._lasts = lasts
        first, *rest = tiers or [[]]
        self._alone = [judge for judge in first if judge.surplus is None]
        self._surplus = [judge.surplus for judge in first if judge.surplus is not None]
        self._next: list[Judge] | None = rest[0] if rest else None
        self.exists = len(self._surplus) == 1 and all(judge.is_alone for judge in self._alone)

    def lines(
        self,
        task: Task,
        at: IndexArray,
        rows: IndexArray,
        place: IndexArray,
        *,
        n: int,
        job_keys: JobKeys,
    ) -> Lines | None:
        """Put candidates in line in the order in which they go from n nodes, one after the other.

        None where others than the plugin that counts keep somebody.
        """
        jobs = self._snapshot.tasks.job.take(rows).tolist()
        spare = self._spare_tasks(jobs)
        if spare is None or not _offer_all(self._alone, task, rows):
            return None
        counted = frozenset(job for job, n in Counter(jobs).items() if n > spare[job])
        everywhere, nowhere = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
        if not counted:
            everybody = np.ones(len(rows), dtype=bool)
            return Lines(
                *(at, rows, place, everybody, everywhere, lambda: nowhere, [], job_keys),
                lasts=self._lasts,
            )
        first, later = _split(place.tolist(), jobs, spare, n)
        kept = [i for each in later for i in each]
        in_turn = self._offer_later(task, rows[kept])
        if in_turn is None:
            later = [[] for _ in first]
        order = [i for pair in zip(first, later, strict=True) for part in pair for i in part]
        final = everywhere if self._next is None else nowhere
        return Lines(
            at[order],
            rows[order],
            place[order],
            np.ones(len(order), dtype=bool),
            everywhere,
            lambda: final,
            [],
            job_keys,
            split=[len(each) for each in first],
            in_turn_later=[(ask, np.ones(len(order), dtype=bool)) for ask in in_turn or ()],
            counted=counted,
            lasts=self._lasts,
        )

    def still(self, task: Task, lines: Lines) -> bool:
        """Return whether those in line are also offered to an equal task of another job."""
        judges = [judge for judge in (*self._alone, *(self._next or ())) if judge.is_alone]
        return lines.lasts and _offer_all(judges, task, lines.rows)

    def _spare_tasks(self, jobs: list[int]) -> dict[int, int] | None:
        """Return how many tasks each job can lose."""
        owners = [*dict.fromkeys(jobs)]
        found = self._surplus[0](Jobs(self._snapshot, np.array(owners, dtype=np.intp)))
        return None if found is None else dict(zip(owners, found.tolist(), strict=True))

    def _offer_later(self, task: Task, rows: IndexArray) -> list[Ask] | None:
        """Return who judges in turn in the next tier; None if it may keep some of these tasks."""
        judges = self._next or []
        if not judges or not _offer_all([each for each in judges if each.is_alone], task, rows):
            return None
        in_turn = [judge.ask for judge in judges if not judge.is_alone]
        return in_turn or None


def _offer_all(judges: list[Judge], task: Task, rows: IndexArray) -> bool:
    """Return whether plugins that judge each task by itself offer all, or have no opinion."""
    candidates = rows.tolist()
    answers = [judge.ask(task, candidates) for judge in judges]
    return all(answer is None or bool(answer.all()) for answer in answers)


def _split(
    place: list[int], jobs: list[int], spare: dict[int, int], n: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Part those in line on each node into those that their jobs can lose, and the others."""
    first: list[list[int]] = [[] for _ in range(n)]
    later: list[list[int]] = [[] for _ in range(n)]
    left = dict(spare)
    for i, (on, job) in enumerate(zip(place, jobs, strict=True)):
        left[job] -= 1
        (first if left[job] >= 0 else later)[on].append(i)
    return first, later
