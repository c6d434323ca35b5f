"""Why no pod was evicted for a job: every pod of other jobs that holds a node, counted by code."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from pumice.api.codes import SPARED_MEANINGS, Cause, Spared
from pumice.api.decisions import Decisions
from pumice.api.wording import counted, first_of
from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Task
from pumice.examine.causes import Examiner
from pumice.examine.findings import Finding, ObjectRef, SparedPods, failed_in
from pumice.examine.gang_needs import gang_request
from pumice.framework.dispatch import Method
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.framework.topology.domains import GangEviction

_PREEMPTING: Final = ("preempt", "gangpreempt")
_RECLAIMING: Final = ("reclaim", "gangreclaim")
_SHOWN: Final = 3
_HOLDING: Final = (Status.RUNNING, Status.BOUND)


class EvictionExaminer(Examiner):
    """Finds also why no pod was evicted for the job, which asks plugins about every pod."""

    def __init__(self, key: str, cycle: int = 1) -> None:
        super().__init__(key, cycle)
        self.spared: list[SparedPods] = []

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        """Find the jobs that went first, and why no pod was evicted."""
        super().decided(ssn, decisions)
        row = ssn.snapshot.jobs.row_of.get(self._key)
        settled = self.outcome.started or self.outcome.makes_room
        if row is not None and self.examination is not None and not settled:
            self.spared = why_spared(ssn, row)


@dataclass
class _Pile:
    """Pods with one code."""

    rows: list[int] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)
    by: dict[str, None] = field(default_factory=dict)
    """The plugins that spare them."""


def why_spared(ssn: Session, job: int) -> list[SparedPods]:
    """Count the pods that were not evicted for a job, by the first reason that holds."""
    pending = ssn.ordering.sort_tasks(ssn.pending_tasks(job))
    if not pending:
        return []
    asker = Task(ssn.snapshot, pending[0])
    tasks, jobs = ssn.snapshot.tasks, ssn.snapshot.jobs
    holding = np.isin(tasks.status, [int(each) for each in _HOLDING])
    rows = np.flatnonzero(holding & (tasks.node != NOWHERE) & (tasks.job != NOWHERE))
    rows = rows[(tasks.job[rows] != job) & jobs.listed[tasks.job[rows]]]
    own = jobs.queue[tasks.job[rows]] == jobs.queue[job]
    piles: dict[Spared, _Pile] = {}
    for part, actions, hook in (
        (rows[own], _PREEMPTING, Plugin.preemptable),
        (rows[~own], _RECLAIMING, Plugin.reclaimable),
    ):
        _sort(ssn, asker, part.tolist(), _Way(actions, hook), piles)
    order = list(Spared)
    return [_describe(ssn, code, piles[code]) for code in sorted(piles, key=order.index)]


@dataclass(frozen=True)
class _Way:
    """How pods could be evicted: by which actions, through which hook."""

    actions: tuple[str, str]
    hook: Method

    @property
    def reclaims(self) -> bool:
        return self.hook is Plugin.reclaimable


def _sort(
    ssn: Session, asker: Task, rows: list[int], way: _Way, piles: dict[Spared, _Pile]
) -> None:
    if not rows:
        return
    barred = _barred(ssn, asker, way)
    if barred is not None:
        _add(piles, barred, rows)
        return
    tasks, jobs, queues = ssn.snapshot.tasks, ssn.snapshot.jobs, ssn.snapshot.queues
    usable = ~ssn.placing.incurable(ssn.placing.fit(asker))
    may_reclaim = not way.reclaims or _may_reclaim(ssn, asker)
    left: dict[int, list[int]] = {}
    for row in rows:
        if way.reclaims and not queues.reclaimable[jobs.queue[tasks.job[row]]]:
            _add(piles, Spared.QUEUE_NOT_RECLAIMABLE, [row])
        elif not may_reclaim:
            _add(piles, Spared.RECLAIMER_OVER_DESERVED, [row])
        elif not tasks.preemptable[row]:
            _add(piles, Spared.NOT_PREEMPTABLE, [row])
        elif not usable[tasks.node[row]]:
            _add(piles, Spared.NODE_EXCLUDED, [row])
        else:
            left.setdefault(int(tasks.node[row]), []).append(row)
    for candidates in left.values():
        _ask_plugins(ssn, asker, candidates, way, piles)


def _barred(ssn: Session, asker: Task, way: _Way) -> Spared | None:
    """Return why a job may not evict in this way at all; None if it may."""
    plain, gang = way.actions
    other = _PREEMPTING if way.reclaims else _RECLAIMING
    has = gang in ssn.actions or (
        plain in ssn.actions and (way.reclaims or not ssn.topology.has_topology(asker.job))
    )
    if not has:
        elsewhere = way.reclaims and any(each in ssn.actions for each in other)
        return Spared.OTHER_QUEUE if elsewhere else Spared.ACTION_MISSING
    if ssn.is_pending(asker.job):
        return Spared.NOT_ADMITTED
    if asker.pod.spec.preemption_policy == "Never":
        return Spared.PREEMPTION_NEVER
    return None if ssn.policy.job_starving(asker.job) else Spared.NOT_STARVING


def _may_reclaim(ssn: Session, asker: Task) -> bool:
    """Return whether the queue of a job may take from others what its gang needs."""
    if ssn.policy.overused(asker.queue):
        return False
    requests = [asker.request[:, 0], gang_request(ssn, asker.job)]
    return all(ssn.policy.preemptive(asker.queue, each) for each in requests if each is not None)


def _ask_plugins(
    ssn: Session, asker: Task, rows: list[int], way: _Way, piles: dict[Spared, _Pile]
) -> None:
    """Sort the candidates of one node by the first plugin that spares them."""
    rows = ssn.ordering.sort_victims(rows, asker.queue)
    hook, who = way.hook, asker
    asked: Any = who
    if way.actions[1] in ssn.actions and way.actions[0] not in ssn.actions:
        hook = Plugin.gang_evictable
        asked = GangEviction(ssn.job(asker.job), ssn.topology.tree.top, way.reclaims)
    offered = set(ssn.hooks.chosen(hook)(asked, rows))
    answers = [
        (plugin, np.asarray(mask, dtype=bool))
        for plugin, ask in ssn.hooks.bound(hook)
        if (mask := ask(asked, rows)) is not None
    ]
    for i, row in enumerate(rows):
        if row in offered:
            _add(piles, Spared.VICTIMS_TOO_SMALL, [row])
            continue
        plugin = next((plugin for plugin, mask in answers if not mask[i]), None)
        if plugin is None:
            _add(piles, Spared.PLUGIN_REFUSED, [row])
            continue
        failed = failed_in(ssn, plugin, hook.__name__)
        if failed is not None:
            _add(piles, Spared.PLUGIN_FAILED, [row], {**failed.numbers, "error": failed.text})
            continue
        candidate = Task(ssn.snapshot, row)
        code, numbers = plugin.why_spared(hook.__name__, asker, candidate)
        _add(piles, code, [row], numbers, by=plugin.name)


def _add(
    piles: dict[Spared, _Pile],
    code: Spared,
    rows: list[int],
    numbers: dict[str, Any] | None = None,
    by: str = "",
) -> None:
    pile = piles.setdefault(code, _Pile())
    pile.rows += rows
    for key, value in (numbers or {}).items():
        pile.numbers[key] = min(pile.numbers.get(key, value), value)
    if by:
        pile.by[by] = None


def _describe(ssn: Session, code: Spared, pile: _Pile) -> SparedPods:
    tasks = ssn.snapshot.tasks
    names = [tasks.keys[row] for row in pile.rows]
    who = f"{counted(len(names), 'pod')} ({first_of(sorted(names), _SHOWN)})"
    rule = SPARED_MEANINGS[code].rstrip(".")
    by = f" ({', '.join(pile.by)})" if pile.by else ""
    more = f", until {pile.numbers['until']}" if "until" in pile.numbers else ""
    more += f" ({pile.numbers['error']})" if "error" in pile.numbers else ""
    return SparedPods(
        code,
        len(names),
        f"{who}: {rule[0].lower()}{rule[1:]}{more}{by}",
        next(_about(ssn, code, pile), None),
        pile.numbers,
    )


def failed_plugins(spared: list[SparedPods]) -> list[Finding]:
    """List the plugins that failed when they were asked for victims, as causes."""
    return [
        Finding(Cause.PLUGIN_FAILED, str(each.numbers["error"]), None, each.numbers)
        for each in spared
        if each.code is Spared.PLUGIN_FAILED
    ]


def _about(ssn: Session, code: Spared, pile: _Pile) -> Iterator[ObjectRef]:
    """Name the queue or pod that it is about, if it is one."""
    tasks, jobs = ssn.snapshot.tasks, ssn.snapshot.jobs
    queues = {int(jobs.queue[tasks.job[row]]) for row in pile.rows}
    if code in (Spared.QUEUE_NOT_RECLAIMABLE, Spared.QUEUE_WITHIN_DESERVED):
        if len(queues) == 1:
            yield ObjectRef("Queue", ssn.snapshot.queues.names[queues.pop()])
    elif code is Spared.ANCESTOR_LEVEL and "queue" in pile.numbers:
        yield ObjectRef("Queue", str(pile.numbers["queue"]))
    elif len(pile.rows) == 1:
        yield ObjectRef.of_key("Pod", tasks.keys[pile.rows[0]])
