"""Placement written as plainly as possible: one node at a time, from scratch, nothing remembered.

Slow, and meant to be read: the fast implementation must decide the same.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pumice.api.conf import SchedulerConf
from pumice.api.decisions import Decisions
from pumice.cluster.services import SERVICES
from pumice.core.resources import PODS, STEP, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.views import NodeFacts, Nodes, Task
from pumice.framework.dispatch import Method
from pumice.framework.placing import FUTURE, IDLE, NO_ROOM, Fit, Placing, filter_reasons
from pumice.framework.plugin import Plugin
from pumice.scheduler import Scheduler


class ReferencePlacing(Placing):
    """Asks every hook about every node at every placement."""

    imagines = False

    def fit(self, task: Task) -> Fit:
        """Ask node after node."""
        n = self.snapshot.nodes.n
        fit = Fit(
            verdict=np.zeros(n, dtype=np.int16),
            room=np.zeros(n, dtype=np.int8),
            score=np.zeros(n),
            value=np.full(n, -np.inf),
            static_codes=[],
            static_score=None,
            rankers=[ask for _, ask in self.hooks.bound(Plugin.rank_nodes)],
        )
        for node in range(n):
            fit.verdict[node] = self._verdict_of(task, node)
            fit.room[node] = self._room_of(task, node)
            fit.score[node] = self._score_of(task, node)
            if fit.verdict[node] == 0 and fit.room[node] == IDLE:
                fit.value[node] = fit.score[node]
        return fit

    def ranks(self, task: Task, fit: Fit, *, anywhere: bool = False) -> bool:  # noqa: ARG002  # as in Placing
        """Return True: every task is placed by itself."""
        return True

    def choose(self, task: Task, fit: Fit, allowed: Mask | None = None) -> tuple[int, bool] | None:
        """Pick the best node with room now, else the best with room soon."""
        nodes = [i for i in range(len(fit.verdict)) if allowed is None or allowed[i]]
        for room in (IDLE, FUTURE):
            fitting = [i for i in nodes if fit.verdict[i] == 0 and fit.room[i] == room]
            if len(fitting) == 1:
                return fitting[0], room == IDLE
            if fitting:
                return self._best_of(task, fit, fitting), room == IDLE
        return None

    def _best_of(self, task: Task, fit: Fit, fitting: list[int]) -> int:
        rows = np.array(fitting)
        nodes = Nodes(self.snapshot, rows)
        scores = fit.score[rows].tolist()
        for _, ask in self.hooks.bound(Plugin.rank_nodes):
            ranks = ask(task, nodes)
            if ranks is not None:
                scores = [score + rank for score, rank in zip(scores, ranks.tolist(), strict=True)]
        for _, ask in self.hooks.bound(Plugin.best_node):
            chosen = ask(task, nodes, np.array(scores))
            if chosen is not None:
                return int(chosen)
        best = max(scores)
        ties = [node for node, score in zip(fitting, scores, strict=True) if score == best]
        return ties[self.spin(len(ties))] if len(ties) > 1 else ties[0]

    def _room_of(self, task: Task, node: int) -> int:
        books = self.snapshot.nodes
        room = IDLE
        for row, wanted in enumerate(task.request[:, 0].tolist()):
            idle = books.idle[row, node]
            if row >= PODS and not wanted:
                continue  # a device may be gone while pods still hold it
            if wanted - (idle + books.releasing[row, node] - books.pipelined[row, node]) >= STEP:
                return NO_ROOM
            if wanted - idle >= STEP:
                room = FUTURE
        return room

    def _score_of(self, task: Task, node: int) -> float:
        score, here = 0.0, slice(node, node + 1)
        for _, ask in self.hooks.bound(Plugin.score_shape):
            answer = ask(task.shape, NodeFacts(self.snapshot, here))
            score += 0.0 if answer is None else float(answer[0])
        for _, ask in self.hooks.bound(Plugin.score_nodes):
            answer = ask(task, Nodes(self.snapshot, here))
            score += 0.0 if answer is None else float(answer[0])
        return score

    def _verdict_of(self, task: Task, node: int) -> int:
        """Return the number of the first plugin's reason; an incurable one comes first."""
        number, here = 1, slice(node, node + 1)
        asked: dict[Method, tuple[Any, ...]] = {
            Plugin.filter_shape: (task.shape, NodeFacts(self.snapshot, here)),
            Plugin.filter_nodes: (task, Nodes(self.snapshot, here)),
        }
        for plugin in self.hooks.plugins:
            codes: list[int] = []
            offers = False
            for hook, args in asked.items():
                for owner, ask in self.hooks.bound(hook):
                    if owner is plugin:
                        offers = True
                        codes += _code(ask(*args))
            if codes:
                reasons = filter_reasons(plugin)
                lasting = [code for code in codes if not reasons[code - 1].curable]
                return number + (lasting or codes)[0] - 1
            if offers:
                number += len(filter_reasons(plugin))
        return 0


def _code(answer: Any) -> list[int]:
    """Return the number of the reason that one node was refused for, nothing if it was not."""
    if answer is None:
        return []
    code = int(not answer[0]) if answer.dtype == np.bool_ else int(answer[0])
    return [code] if code else []


class ReferenceScheduler(Scheduler):
    """The scheduler with the plain placement."""

    placing = ReferencePlacing


def reference_decide(
    snapshot: Snapshot,
    conf: SchedulerConf,
    *,
    now: float = 0.0,
    seed: int = 0,
    plugins: Mapping[str, type[Plugin]] | None = None,
    node_usage: Mapping[str, Any] | None = None,
    services: Mapping[str, Any] = SERVICES,
) -> Decisions:
    """Decide one cycle with the slow reference and leave the snapshot unchanged."""
    scheduler = ReferenceScheduler(conf, seed=seed, plugins=plugins, services=services)
    return scheduler.decide(snapshot, now, node_usage)
