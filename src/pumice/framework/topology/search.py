"""The best network domain for a job: dry runs domain by domain, the narrowest tier first.

Used by allocate for jobs with a tier limit or sub-groups.  A dry run moves tasks for real and rolls
the journal back; the placement that wins is made again from its list of moves.
"""

import functools
import heapq
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column, Mask
from pumice.core.tables import NOWHERE
from pumice.core.views import Job, Task
from pumice.framework.job_placement import JobMemory, JobPlacement
from pumice.framework.placing import Fit
from pumice.framework.refusals import Stage, Why
from pumice.framework.session_state import SessionState
from pumice.framework.statement import Moves, Statement
from pumice.framework.topology.domains import Domain, SubGroup


class Worksheet:
    """The rest of a job to place: its sub-groups in order, each with its tasks in order."""

    def __init__(self, order: list[Any], tasks: dict[str, Sequence[int]]) -> None:
        self._order = order
        self.tasks = tasks

    def __len__(self) -> int:
        return len(self._order)

    def copy(self) -> "Worksheet":
        """Return a copy that can be worked through on its own."""
        return Worksheet(list(self._order), dict(self.tasks))

    def parts(self) -> list[SubGroup]:
        """List the sub-groups, in no order."""
        return [entry.obj for entry in self._order]

    def rows(self) -> list[int]:
        """List the tasks."""
        return [*chain.from_iterable(self.tasks.values())]

    def pop(self) -> SubGroup:
        """Take the first sub-group out."""
        part: SubGroup = heapq.heappop(self._order).obj
        return part

    def push(self, part: SubGroup, key: Any) -> None:
        """Put a sub-group back."""
        heapq.heappush(self._order, key(part))


class Trial(msgspec.Struct):
    """A successful placement."""

    domain: Domain
    moves: Moves
    score: float = 0.0
    left: Any = ()
    """The rest to place: tasks of a sub-group, or a worksheet."""
    lies_in: dict[SubGroup, Domain] = msgspec.field(default_factory=dict)
    """Domains of sub-groups afterwards."""
    n_rounds: int = 0
    """How often a sub-group was placed, or more of one; the score is their sum."""


class DomainSearch:
    """Places jobs in the best domain that takes them."""

    def __init__(
        self,
        state: SessionState,
        *,
        remember_errors: bool = True,
        purpose: str = "allocate",
        nodes: Mask | None = None,
    ) -> None:
        self._state = state
        self._purpose = purpose
        self._nodes = nodes
        """Nodes to stay on (n,); None: all."""
        self._is_led = False
        """Whether only domains around the nodes for which tasks are nominated are tried."""
        self._remember_errors = remember_errors
        self._keys: dict[int, Any] = {}
        self._known: dict[tuple[str, int], Trial | None] = {}
        self._levels: dict[str, dict[int, list[list[Domain]]]] = {}
        """Domains to try for a sub-group, tier by tier, by the domain around them."""

    def worksheet(self, job: int) -> Worksheet:
        """List the tasks that a job has to place; sub-groups that it needs to start come first."""
        state = self._state
        sheet, self._keys[job] = make_worksheet(state, job, state.tasks_to_allocate(job))
        return sheet

    def place(self, stmt: Statement, job: int, sheet: Worksheet) -> Trial | None:
        """Leave the best placement of a job in the statement; None if no domain takes it."""
        if job in self._state.topology.led:
            self._is_led = True
            found = self._place(stmt, job, sheet)
            self._is_led = False
            if found is not None:
                return found
        return self._place(stmt, job, sheet)

    def _place(self, stmt: Statement, job: int, sheet: Worksheet) -> Trial | None:
        state = self._state
        self._known.clear()
        self._levels.clear()
        levels = state.policy.domain_levels(state.job(job), state.topology.tree.top, self._purpose)
        for level in self._around(sheet.rows(), levels):
            best = self._best_of(stmt, job, sheet, level)
            if best is not None:
                stmt.repeat(best.moves)
                return best
        if not self._is_led:
            self._explain(job, sum(map(len, levels)))
        return None

    def _around(self, rows: Sequence[int], levels: list[list[Domain]]) -> list[list[Domain]]:
        """Leave out the domains without the nodes that tasks are led to."""
        if not self._is_led:
            return levels
        nodes = self._state.snapshot.tasks.nominated[list(rows)]
        if (nodes == NOWHERE).any():
            return []
        return [[each for each in level if each.mask[nodes].all()] for level in levels]

    def _explain(self, job: int, n_large: int) -> None:
        topology, records = self._state.topology, self._state.records
        if not topology.is_limited(job) and Stage.NODES in records.stops.get(job, {}):
            return  # it may lie anywhere: nodes refuse it, no domain does
        limit, tiers = topology.limit(job), topology.tree.tiers
        total = len(tiers) if limit is None else int((tiers <= limit).sum())
        records.note(job, Stage.NODES, Why.NO_DOMAIN_FITS, limit=limit, large=n_large, total=total)

    def _best_of(
        self, stmt: Statement, job: int, sheet: Worksheet, level: list[Domain]
    ) -> Trial | None:
        """Try a job in domains of one tier; those that cannot be the best are left out."""
        best: Trial | None = None
        is_bound = True
        seen: set[Hashable] = set()
        twins = self._find_twins(sheet) if len(sheet) > 1 and len(level) > 1 else None
        for bound, domain in self._most_promising_first(sheet, level):
            if is_bound and best is not None and best.score >= bound:
                break
            if twins is not None:
                parts = sheet.parts()
                inner = [
                    (part, self._part_levels(part, domain, sheet.tasks[part.id], first=True))
                    for part in parts
                ]
                key = twins.key(domain, inner)
                if key is not None and key in seen:
                    continue
                seen.add(key)
            trial = self._try_job(stmt, job, sheet.copy(), domain)
            is_bound = is_bound and (trial is None or trial.n_rounds == 1)
            if trial is not None and (best is None or trial.score > best.score):
                best = trial
        return best

    def _find_twins(self, sheet: Worksheet) -> "EqualDomains":
        return EqualDomains(
            self._state, [row for part in sheet.parts() for row in sheet.tasks[part.id]]
        )

    def _most_promising_first(
        self, sheet: Worksheet, level: list[Domain]
    ) -> Iterator[tuple[float, Domain]]:
        """Order domains by the best score a job can get there.

        Known beforehand for a job in one piece that one round completes: a domain's score does not
        depend on which of its nodes are taken.
        """
        bounds = np.full(len(level), np.inf)
        part = sheet.copy().pop() if len(sheet) == 1 and len(level) > 1 else None
        if self._is_led:
            part = None
        if part is not None and not self._state.job(part.job).group.spec.min_task_member:
            bounds = self._best_scores(part, level)
        for i in np.argsort(-bounds, kind="stable").tolist():
            yield float(bounds[i]), level[i]

    def _best_scores(self, part: SubGroup, level: list[Domain]) -> Column:
        """Return the best score of a sub-group within each domain; infinity where unknown."""
        found = self._state.policy.levels_within(part, level, self._purpose)
        around = [domain.index for domain in level]
        self._levels.setdefault(part.id, {}).update(zip(around, found, strict=True))
        inner = [*chain.from_iterable(chain.from_iterable(found))]
        if not inner or self._state.policy.rank_domains(part, inner).any():
            return np.full(len(level), np.inf)
        sizes = np.array([_count(levels) for levels in found])
        starts = (sizes.cumsum() - sizes)[sizes > 0]
        bounds = np.full(len(level), -np.inf)
        scores = self._state.policy.score_domains(part, inner)
        bounds[sizes > 0] = np.maximum.reduceat(scores, starts)
        return bounds

    def settle(self, job: Job, trial: Trial) -> None:
        """Record the place of a job now that its placement is final."""
        topology = self._state.topology
        topology.widen(job, trial.domain)
        for part, domain in trial.lies_in.items():
            topology.widen(part, domain)

    def _try_job(self, stmt: Statement, job: int, sheet: Worksheet, domain: Domain) -> Trial | None:
        """Place a job's sub-groups one by one in a domain, and roll everything back."""
        state = self._state
        start = stmt.checkpoint()
        trial = Trial(domain, [], left=sheet)
        self._forget_failures(state.snapshot.jobs.tasks[job])
        while len(sheet):
            part = sheet.pop()
            found = self._place_part(
                stmt, part, sheet.tasks[part.id], domain, first=not trial.moves
            )
            if found is None:
                continue
            trial.moves += found.moves
            trial.score += found.score
            trial.n_rounds += 1
            trial.lies_in[part] = state.topology.widen(part, found.domain)
            sheet.tasks[part.id] = found.left
            if found.left:
                sheet.push(part, self._keys[job])
            if state.policy.job_ready(job):
                break
        works = bool(trial.moves) and (
            state.policy.job_ready(job) or state.policy.job_pipelined(job)
        )
        stmt.rollback(start)
        return trial if works else None

    def _place_part(
        self, stmt: Statement, part: SubGroup, tasks: Sequence[int], within: Domain, *, first: bool
    ) -> Trial | None:
        """Place one sub-group in the best domain of the narrowest tier that takes it."""
        for level in self._part_levels(part, within, tasks, first=first):
            for score, equals in self._by_score(part, level):
                winner = self._first_of(stmt, part, tasks, equals, first=first)
                if winner is not None:
                    stmt.repeat(winner.moves)
                    return Trial(winner.domain, winner.moves, score + winner.score, winner.left)
        return None

    def _part_levels(
        self, part: SubGroup, within: Domain, tasks: Sequence[int], *, first: bool
    ) -> list[list[Domain]]:
        """List the domains to try for a sub-group; the same as before while nothing is placed."""
        known = self._levels.setdefault(part.id, {})
        if first and within.index in known:
            return known[within.index]
        levels = self._state.policy.domain_levels(part, within, self._purpose)
        levels = self._around(tasks, levels)
        if first:
            known[within.index] = levels
        return levels

    def _by_score(
        self, part: SubGroup, level: list[Domain]
    ) -> Iterator[tuple[float, list[Domain]]]:
        """Return domains in groups of the same score, the best first."""
        scores = self._state.policy.score_domains(part, level)
        for score in np.unique(scores)[::-1].tolist():
            yield score, [level[i] for i in np.flatnonzero(scores == score).tolist()]

    def _first_of(
        self,
        stmt: Statement,
        part: SubGroup,
        tasks: Sequence[int],
        equals: list[Domain],
        *,
        first: bool,
    ) -> Trial | None:
        """Try domains of the same score; if several take a sub-group, ranks decide."""
        ranks = self._state.policy.rank_domains(part, equals)
        trials = (self._try_part(stmt, part, tasks, domain, first=first) for domain in equals)
        found = (
            (trial, rank)
            for trial, rank in zip(trials, ranks.tolist(), strict=True)
            if trial is not None
        )
        if not ranks.any():
            return next((trial for trial, _ in found), None)
        ranked = list(found)
        if not ranked:
            return None
        winner, rank = max(ranked, key=lambda each: each[1])
        extra = rank if len(ranked) > 1 else 0.0
        return Trial(winner.domain, winner.moves, extra, winner.left)

    def _try_part(
        self, stmt: Statement, part: SubGroup, tasks: Sequence[int], domain: Domain, *, first: bool
    ) -> Trial | None:
        """Place a sub-group's tasks on the nodes of a domain, and roll everything back.

        While nothing of the job is placed yet the outcome cannot differ from one made before.
        """
        key = (part.id, domain.index)
        if first and key in self._known:
            return self._known[key]
        trial = self._run(stmt, part, tasks, domain)
        if first:
            self._known[key] = trial
        return trial

    def _run(
        self, stmt: Statement, part: SubGroup, tasks: Sequence[int], domain: Domain
    ) -> Trial | None:
        state = self._state
        start = stmt.checkpoint()
        queue = deque(tasks)
        in_parts = state.topology.has_policy(part.job)
        self._forget_failures(part.rows.tolist())
        JobPlacement(
            state,
            part.job,
            queue,
            JobMemory(),
            is_done=lambda: state.policy.subgroup_ready(part),
            allowed=domain.mask if self._nodes is None else domain.mask & self._nodes,
            remember_errors=self._remember_errors,
            goes_on=(lambda: self._goes_on(part)) if in_parts else None,
            on_placed=state.topology.follow(part, domain),
            most=(lambda: part.size - part.ready) if in_parts else None,
        ).run(stmt)
        state.topology.stop_following()
        moves = stmt.moves_since(start)
        works = bool(moves) and (
            state.policy.subgroup_ready(part) or state.policy.subgroup_pipelined(part)
        )
        stmt.rollback(start)
        return Trial(domain, moves, left=tuple(queue)) if works else None

    def _goes_on(self, part: SubGroup) -> bool:
        """Return whether a sub-group can be ready although one of its tasks found no node."""
        job = self._state.job(part.job)
        return job.min_member != len(job.tasks) and part.size < part.n_tasks

    def _forget_failures(self, rows: Iterable[int]) -> None:
        records = self._state.records
        for row in rows:
            records.no_fit.pop(row, None)
            records.barred.pop(row, None)


def _count(levels: list[list[Domain]]) -> int:
    return len(levels[0]) if len(levels) == 1 else sum(map(len, levels))


def make_worksheet(state: SessionState, job: int, rows: list[int]) -> tuple[Worksheet, Any]:
    """List the tasks that a job has to place, with the key that orders its sub-groups.

    These are the given tasks; the sub-groups that make up ``minSubGroups`` come first.
    """
    parts = state.topology.subgroups(job)
    needed = _needed(state, job, parts)

    def compare(left: SubGroup, right: SubGroup) -> int:
        if (left in needed) != (right in needed):
            return -1 if left in needed else 1
        return state.policy.compare_subgroups(left, right)

    key = functools.cmp_to_key(compare)
    tasks: dict[str, list[int]] = {}
    for row in state.ordering.sort_tasks(rows):
        tasks.setdefault(state.topology.subgroup_of(row).id, []).append(row)
    order = [key(part) for part in parts if part.id in tasks]
    heapq.heapify(order)
    return Worksheet(order, dict(tasks)), key


def _needed(state: SessionState, job: int, parts: list[SubGroup]) -> set[SubGroup]:
    """Pick the sub-groups that would complete each policy's minimum number."""
    left = {
        policy.name: policy.min_sub_groups or 0
        for policy in state.job(job).group.spec.sub_group_policy
    }
    if not any(left.values()):
        return set()
    waiting = []
    for part in parts:
        if state.policy.subgroup_ready(part):
            left[part.policy] = left.get(part.policy, 0) - 1
        else:
            waiting.append(part)
    needed = set()
    for part in sorted(waiting, key=functools.cmp_to_key(state.policy.compare_subgroups)):
        if left.get(part.policy, 0) > 0:
            needed.add(part)
            left[part.policy] -= 1
    return needed


class EqualDomains:
    """Distinguishes domains by everything that placing some tasks can see of their nodes."""

    def __init__(self, state: SessionState, rows: list[int]) -> None:
        self._state = state
        self._fits: list[Fit] = []
        tasks = state.snapshot.tasks
        self._known = not state.policy.follows_placements and all(
            tasks.nominated[row] == NOWHERE and self._is_plain(row) for row in rows
        )
        if self._known:
            fits = (state.placing.fit(Task(state.snapshot, row)) for row in rows)
            self._fits = list({id(fit): fit for fit in fits}.values())

    def _is_plain(self, row: int) -> bool:
        """Return whether nodes answer to a task by their amounts, whatever its role."""
        snapshot = self._state.snapshot
        group = snapshot.jobs.groups[snapshot.tasks.job[row]].spec
        task = Task(snapshot, row)
        return not group.min_task_member and self._state.placing.by_amounts(task)

    def key(self, domain: Domain, inner: Iterable[tuple[SubGroup, list[list[Domain]]]]) -> Hashable:
        """Return a value that is the same for equal domains; None where unknown.

        ``inner`` lists the domains below for each sub-group.
        """
        if not self._known:
            return None
        rows, nodes = domain.rows, self._state.snapshot.nodes
        columns: list[NDArray[Any]] = [
            nodes.books[:, :, rows],
            nodes.allocatable[:, rows],
            nodes.view_pods[rows],
        ]
        for fit in self._fits:
            columns += [fit.verdict[rows], fit.room[rows], fit.score[rows]]
        homes = self._state.topology.tree.homes[rows]
        columns.append(np.where(homes < 0, homes, homes - domain.index))
        return (
            *[column.tobytes() for column in columns],
            *[self._look_inside(domain, part, levels) for part, levels in inner],
        )

    def _look_inside(self, domain: Domain, part: SubGroup, levels: list[list[Domain]]) -> Hashable:
        some = [each for level in levels for each in level]
        scores = [
            self._state.policy.score_domains(part, some).tobytes(),
            self._state.policy.rank_domains(part, some).tobytes(),
        ]
        places = [np.searchsorted(domain.rows, each.rows).tobytes() for each in some]
        return (*scores, *places, *[each.tier for each in some])
