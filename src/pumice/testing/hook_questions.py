"""Every question a session may ask a plugin, asked directly and held to the hook's contract.

Beneath ``conformance``: an answer of the wrong kind, and anything raised, names its hook.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.core.status import ALLOCATED_CLASS, Status
from pumice.core.views import ALL, NodeFacts, Nodes, Rows, Task
from pumice.errors import BadHookResultError, PluginError
from pumice.framework.columns import Jobs, Queues, Tasks
from pumice.framework.plugin import Reason
from pumice.framework.session import Session

Answer = NDArray[Any]
Answers = dict[tuple[Any, ...], Any]
"""Answers by hook and what it was asked about."""

BY_SHAPE = ("filter_shape", "score_shape")
BY_NODES = ("filter_nodes", "score_nodes")
ORDERS: dict[str, Callable[..., Any]] = {
    "order_jobs": Jobs,
    "order_queues": Queues,
    "order_tasks": Tasks,
}
VICTIMS = ("preemptable", "reclaimable")
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

    def has(self, hook: str) -> bool:
        """Say whether the session would ask the plugin this."""
        return bool(self.ssn.hooks[hook])

    def ask(self, hook: str, *args: Any) -> Any:
        """Call a hook; what it raises becomes an error that names it."""
        try:
            return getattr(self.plugin, hook)(*args)
        except Exception as error:
            problem = f"raised {type(error).__name__}: {error}"
            raise PluginError(self.plugin.name, hook, problem) from error

    def refuse(self, hook: str, wanted: str, found: object) -> BadHookResultError:
        """Make the error for an answer of the wrong kind."""
        return BadHookResultError(self.plugin.name, hook, wanted=wanted, found=found)

    # Nodes

    def node_column(self, hook: str, row: int, rows: Rows = ALL) -> Answer:
        """Ask a node hook about a task (row) and some nodes; one number for each."""
        snapshot = self.ssn.snapshot
        task = Task(snapshot, row)
        if hook in BY_SHAPE:
            facts = NodeFacts(snapshot, rows)
            return self.numbers(hook, self.ask(hook, task.shape, facts), len(facts))
        return self.live_column(hook, task, Nodes(snapshot, rows))

    def live_column(self, hook: str, task: Task, nodes: Nodes) -> Answer:
        """Ask a node hook that follows moves about given nodes."""
        return self.numbers(hook, self.ask(hook, task, nodes), len(nodes))

    def numbers(self, hook: str, answer: Any, n: int) -> Answer:
        """Test an answer of a node hook: shape, type, range; None is zero for all."""
        if answer is None:
            return np.zeros(n)
        if not isinstance(answer, np.ndarray) or answer.shape != (n,):
            raise self.refuse(hook, f"an array of {n}", getattr(answer, "shape", answer))
        if hook.startswith("filter"):
            return self._codes(hook, answer)
        if answer.dtype.kind not in "fiu":
            raise self.refuse(hook, "numbers", answer.dtype)
        if not np.isfinite(answer).all():
            raise self.refuse(hook, "finite numbers", answer)
        return answer.copy()  # it may be a view of a column that moves

    def _codes(self, hook: str, answer: Answer) -> Answer:
        if answer.dtype == np.bool_:
            if not answer.all() and not self.plugin.reasons:
                raise self.refuse(hook, "a plugin that states a reason", self.plugin.reasons)
            return np.asarray(~answer, dtype=np.int16)
        if answer.dtype.kind not in "iu":
            raise self.refuse(hook, "booleans or numbers of reasons", answer.dtype)
        known = len(self.plugin.reasons)
        if ((answer < 0) | (answer > known)).any():
            raise self.refuse(hook, f"numbers of {known} reasons", answer)
        return answer.copy()

    def node_answers(self, rows: Iterable[int], hooks: Iterable[str]) -> Answers:
        """Ask node hooks about tasks and all nodes; the key tells what an answer may depend on."""
        out: Answers = {}
        for row in rows:
            task = Task(self.ssn.snapshot, row)
            varies = self.ask("vary_by", task)
            for hook in hooks:
                if self.has(hook):
                    key = (hook, row) if hook in BY_SHAPE else (hook, row, varies)
                    out[key] = self.node_column(hook, row)
        return out

    # Orders

    def keys(self, hook: str, rows: Iterable[int]) -> Answer:
        """Ask for ordering keys (k, n)."""
        index = np.asarray(list(rows), dtype=np.intp)
        answer = np.atleast_2d(np.asarray(self.ask(hook, ORDERS[hook](self.ssn.snapshot, index))))
        if answer.shape[1:] != (len(index),):
            raise self.refuse(hook, f"{len(index)} keys", answer.shape)
        if answer.dtype.kind not in "fiub" or np.isnan(answer.astype(float)).any():
            raise self.refuse(hook, "keys that can be compared", answer)
        return answer

    def ordered(self, hook: str) -> list[int]:
        """Give the rows an ordering hook may be asked about."""
        if hook == "order_tasks":
            return [*self.waiting, *self.running]
        return self.queues if hook == "order_queues" else self.jobs

    # Everything else

    def answers(self) -> Answers:
        """Ask every question about every job, queue and task once."""
        out = self.node_answers(self.waiting[:_SHOWN], (*BY_SHAPE, *BY_NODES, "rank_nodes"))
        for hook in ORDERS:
            if self.has(hook):
                out[hook,] = self.keys(hook, self.ordered(hook))
        out |= self._about_jobs() | self._about_queues() | self._about_tasks()
        return out

    def _about_jobs(self) -> Answers:
        out: Answers = {}
        kinds: dict[str, tuple[tuple[type, ...], str]] = {
            "job_valid": ((str,), "a text"),
            "job_ready": ((bool, np.bool_), "true or false"),
            "job_starving": ((bool, np.bool_), "true or false"),
            "job_enqueueable": ((int, np.integer), "a vote"),
            "job_pipelined": ((int, np.integer), "a vote"),
        }
        for hook, (types, wanted) in kinds.items():
            for row in self.jobs if self.has(hook) else ():
                answer = out[hook, row] = self.ask(hook, self.ssn.job(row))
                if not isinstance(answer, types):
                    raise self.refuse(hook, wanted, answer)
                if wanted == "a vote" and answer not in (-1, 0, 1):
                    raise self.refuse(hook, "a vote of -1, 0 or 1", answer)
        return out

    def _about_queues(self) -> Answers:
        out: Answers = {}
        ssn = self.ssn
        task = Task(ssn.snapshot, self.waiting[0])
        asked: dict[str, tuple[Any, ...]] = {
            "overused": (),
            "allocatable": (task,),
            "preemptive": (task.request[:, 0],),
        }
        for hook, args in asked.items():
            for row in self.queues if self.has(hook) else ():
                answer = out[hook, row] = self.ask(hook, ssn.queue(row), *args)
                if not isinstance(answer, bool | np.bool_):
                    raise self.refuse(hook, "true or false", answer)
        for hook in ("compare_queues", "compare_victim_queues"):
            third = (ssn.queue(self.queues[0]),) if "victim" in hook else ()
            for a in self.queues if self.has(hook) else ():
                for b in self.queues:
                    out[hook, a, b] = self.ask(hook, ssn.queue(a), ssn.queue(b), *third)
        return out

    def _about_tasks(self) -> Answers:
        out: Answers = {}
        snapshot = self.ssn.snapshot
        for row in self.waiting[:_SHOWN]:
            task = Task(snapshot, row)
            if self.has("filter_task"):
                reason = out["filter_task", row] = self.ask("filter_task", task)
                if reason is not None and not isinstance(reason, Reason):
                    raise self.refuse("filter_task", "a Reason or None", reason)
            for hook in VICTIMS:
                if self.has(hook):
                    out[hook, row] = self.victims(hook, row, self.running)
        if self.has("victims"):
            named = out["victims",] = list(self.ask("victims", list(self.running)))
            if not set(named) <= set(self.running):
                raise self.refuse("victims", "some of the running tasks", named)
        return out

    def victims(self, hook: str, row: int, rows: list[int]) -> list[bool] | None:
        """Ask which of some tasks may go for a task."""
        task = Task(self.ssn.snapshot, row)
        return self._mask(hook, self.ask(hook, task, list(rows)), len(rows))

    def bound(self, hook: str, row: int, rows: NDArray[np.intp]) -> list[bool] | None:
        """Ask which of some tasks could ever be named by a hook."""
        task = Task(self.ssn.snapshot, row)
        answer = self.ask("bound_victims", hook, task, rows)
        return self._mask("bound_victims", answer, len(rows))

    def _mask(self, hook: str, answer: Any, n: int) -> list[bool] | None:
        if answer is None:
            return None
        mask = np.asarray(answer)
        if mask.shape != (n,) or mask.dtype != np.bool_:
            raise self.refuse(hook, f"{n} times true or false", answer)
        marks: list[bool] = mask.tolist()
        return marks

    def still_waiting(self, rows: Iterable[int]) -> list[int]:
        """Keep the tasks that are pending at this moment."""
        status = self.ssn.snapshot.tasks.status
        return [row for row in rows if status[row] == Status.PENDING]
