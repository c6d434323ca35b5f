"""Every question a session may ask a plugin, asked directly and checked against its contract.

Beneath ``conformance``: an answer of the wrong kind, and anything raised, names its hook.  What a
hook is asked about follows from the types of its parameters.
"""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column
from pumice.core.status import ALLOCATED_CLASS, Status
from pumice.core.views import ALL, Job, NodeFacts, Nodes, Queue, Rows, Task
from pumice.errors import BadHookResultError, PluginError
from pumice.framework.columns import Jobs, Queues, Tasks
from pumice.framework.dispatch import Method
from pumice.framework.hook_answers import MASK
from pumice.framework.hooks import EACH, KEYS, Hook
from pumice.framework.plugin import HOOKS, Plugin
from pumice.framework.session import Session
from pumice.framework.topology.domains import Domain, GangEviction, SubGroup

Answer = NDArray[Any]
Answers = dict[tuple[Any, ...], Any]
"""Answers by hook and what it was asked about."""
Choices = list[tuple[tuple[Any, ...], Any]]
"""Things of one type to ask about, each with its identity."""

BY_SHAPE: tuple[Method, ...] = (Plugin.filter_shape, Plugin.score_shape)
BY_NODES: tuple[Method, ...] = (Plugin.filter_nodes, Plugin.score_nodes)
ORDERS: tuple[Method, ...] = tuple(hook.method for hook in HOOKS.values() if hook.rule is KEYS)
VICTIMS: tuple[Method, ...] = (Plugin.preemptable, Plugin.reclaimable)
_SHOWN = 6


class Questions:
    """Asks the only plugin of a session; answers come back in one comparable form."""

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        (self.plugin,) = ssn.plugins
        snapshot = ssn.snapshot
        self.jobs = ssn.jobs()
        self.waiting = [row for job in self.jobs for row in ssn.pending_tasks(job)]
        holding = np.isin(snapshot.tasks.status, [*ALLOCATED_CLASS])
        self.running = np.flatnonzero(holding & (snapshot.tasks.job >= 0)).tolist()
        self.queues = sorted(snapshot.queues.row_of.values())

    def has(self, hook: Method) -> bool:
        """Return whether the session would ask the plugin this."""
        return bool(self.ssn.hooks.tiers(hook))

    def having(self, hooks: Iterable[Method]) -> list[Method]:
        """List those of some hooks that the session would ask."""
        return [hook for hook in hooks if self.has(hook)]

    def ask(self, method: Method, *args: Any) -> Any:
        """Call a hook, or a serving method; an exception becomes an error that names it."""
        name = method.__name__
        try:
            return getattr(self.plugin, name)(*args)
        except Exception as error:
            problem = f"raised {type(error).__name__}: {error}"
            raise PluginError(self.plugin.name, name, problem) from error

    def answer(self, method: Method, *args: Any) -> Any:
        """Ask a hook, and refuse an answer that is not exactly as promised."""
        hook = HOOKS[method.__name__]
        found = self.ask(method, *args)
        check = hook.answer.exact or hook.answer.check
        wanted = check(found, args, self.plugin.reasons) if check is not None else ""
        if wanted:
            raise BadHookResultError(self.plugin.name, hook.name, wanted=wanted, found=found)
        # an array may be a view of a column that moves
        return found.copy() if isinstance(found, np.ndarray) else found

    # Nodes

    def node_column(self, hook: Method, row: int, rows: Rows = ALL) -> Answer:
        """Ask a node hook about a task (row) and some nodes; one number for each."""
        snapshot = self.ssn.snapshot
        task = Task(snapshot, row)
        if hook in BY_SHAPE:
            facts = NodeFacts(snapshot, rows)
            return _numbers(self.answer(hook, task.shape, facts), len(facts))
        return self.live_column(hook, task, Nodes(snapshot, rows))

    def live_column(self, hook: Method, task: Task, nodes: Nodes) -> Answer:
        """Ask a node hook that follows moves about given nodes."""
        return _numbers(self.answer(hook, task, nodes), len(nodes))

    def node_answers(self, rows: Iterable[int], hooks: Iterable[Method]) -> Answers:
        """Ask node hooks about tasks and all nodes; the key is what an answer may depend on."""
        out: Answers = {}
        asked = [hook for hook in hooks if self.has(hook)]
        for row in rows:
            task = Task(self.ssn.snapshot, row)
            varies = self.ask(Plugin.vary_by, task) if self.plugin.tells_apart else None
            for hook in asked:
                key = (hook, row) if hook in BY_SHAPE else (hook, row, varies)
                out[key] = self.node_column(hook, row)
        return out

    # Orders

    def keys(self, hook: Method, rows: Iterable[int]) -> Answer:
        """Ask for ordering keys (k, n)."""
        index = np.asarray(list(rows), dtype=np.intp)
        (view,) = HOOKS[hook.__name__].parameters.values()
        return np.atleast_2d(np.asarray(self.answer(hook, view(self.ssn.snapshot, index))))

    def ordered(self, hook: Method) -> list[int]:
        """Return the rows an ordering hook may be asked about."""
        if hook is Plugin.order_tasks:
            return [*self.waiting, *self.running]
        return self.queues if hook is Plugin.order_queues else self.jobs

    # Everything

    def answers(self) -> Answers:
        """Ask every question about every job, queue and task once."""
        out = self.node_answers(self.waiting[:_SHOWN], (*BY_SHAPE, *BY_NODES, Plugin.rank_nodes))
        for hook in HOOKS.values():
            if hook.rule is not EACH and self.has(hook.method):
                for key, args in self._cases(hook):
                    out[hook.method, *key] = self.answer(hook.method, *args)
        return out

    def _cases(self, hook: Hook) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
        """Combine all possible arguments of a hook, without nodes."""
        kinds = hook.parameters.values()
        if Nodes in kinds or NodeFacts in kinds:
            return
        for chosen in product(*map(self._choices, kinds)):
            yield tuple(part for key, _ in chosen for part in key), tuple(x for _, x in chosen)

    def _choices(self, kind: Any) -> Choices:
        """List the things of a type."""
        ssn, snapshot, top = self.ssn, self.ssn.snapshot, self.ssn.topology.tree.top
        jobs: Choices = [((row,), ssn.job(row)) for row in self.jobs]
        parts: Choices = [
            ((part.id,), part) for row in self.jobs for part in ssn.topology.subgroups(row)
        ]
        choices: dict[Any, Choices] = {
            Job: jobs,
            Queue: [((row,), ssn.queue(row)) for row in self.queues],
            Task: [((row,), Task(snapshot, row)) for row in self.waiting[:_SHOWN]],
            SubGroup: parts[:_SHOWN],
            SubGroup | Job: [*parts[:_SHOWN], *jobs],
            Domain: [((), top)],
            list[Domain]: [((), [top])],
            GangEviction: [
                ((job.row, reclaims), GangEviction(job, top, reclaims))
                for _, job in jobs[:_SHOWN]
                for reclaims in (False, True)
            ],
            Column: [((), Task(snapshot, self.waiting[0]).request[:, 0])],
            list[int]: [((), list(self.running))],
            str: [((purpose,), purpose) for purpose in ("allocate", "evict")],
        }
        for hook, view in (
            (Plugin.order_jobs, Jobs),
            (Plugin.order_queues, Queues),
            (Plugin.order_tasks, Tasks),
        ):
            choices[view] = [((), view(snapshot, np.asarray(self.ordered(hook), dtype=np.intp)))]
        return choices[kind]

    def victims(self, hook: Method, row: int, rows: list[int]) -> Answer | None:
        """Ask which of some tasks may be evicted for a task."""
        found = self.answer(hook, Task(self.ssn.snapshot, row), list(rows))
        return None if found is None else np.asarray(found)

    def bound(self, hook: Method, row: int, rows: NDArray[np.intp]) -> Answer | None:
        """Ask which of some tasks could ever be named by a hook."""
        args = (hook.__name__, Task(self.ssn.snapshot, row), rows)
        found, check = self.ask(Plugin.bound_victims, *args), MASK.exact
        wanted = check(found, args, ()) if check is not None else ""
        if wanted:
            raise BadHookResultError(self.plugin.name, "bound_victims", wanted=wanted, found=found)
        return None if found is None else np.asarray(found)

    def still_waiting(self, rows: Iterable[int]) -> list[int]:
        """Keep the tasks that are pending at this moment."""
        status = self.ssn.snapshot.tasks.status
        return [row for row in rows if int(status[row]) == Status.PENDING]


def _numbers(answer: Any, n: int) -> Answer:
    """Turn an answer about nodes into numbers: None is zero for all, true is no reason."""
    if answer is None:
        return np.zeros(n)
    return np.asarray(~answer, dtype=np.int16) if answer.dtype == np.bool_ else answer
