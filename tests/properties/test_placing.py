"""Placing: rows asked again equal rows asked first; a roll-back leaves no trace."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core.consistency import cells, changed, check
from pumice.core.resources import fits
from pumice.core.status import Status
from pumice.core.views import Task
from pumice.framework.placing import Placing
from pumice.framework.registry import build_tiers
from pumice.framework.session import Session
from pumice.plugins import builtin_plugins
from pumice.scheduler import Scheduler
from pumice.testing.reference import ReferencePlacing, reference_decide
from pumice.testing.samples import snapshot_of
from tests.properties.clusters import clusters, confs, pending

MOVES = st.sampled_from(["place", "pipeline", "unpipeline", "evict", "mark", "rollback"])


class Walk:
    """A session on which moves are drawn at random."""

    def __init__(self, cluster: Any, conf: Any, data: Any) -> None:
        self.data = data
        self.snapshot = snapshot_of(cluster)
        tiers, _ = build_tiers(conf, builtin_plugins())
        with np.errstate(all="ignore"):
            self.ssn = Session(self.snapshot, tiers, actions=conf.actions)
        self.statement = self.ssn.statement()
        self.marks: list[Any] = []

    def having(self, *statuses: Any) -> Any:
        tasks = self.snapshot.tasks
        return np.flatnonzero(np.isin(tasks.status, statuses) & (tasks.node >= 0)).tolist()

    def step(self) -> None:
        kind = self.data.draw(MOVES)
        if kind == "mark":
            self.marks.append((self.statement.checkpoint(), cells(self.snapshot)))
        elif kind == "rollback":
            if self.marks:
                checkpoint, before = self.marks.pop()
                self.statement.rollback(checkpoint)
                assert changed(before, cells(self.snapshot)) == []
        elif kind == "unpipeline":
            self.move(self.having(Status.PIPELINED), self.statement.unpipeline)
        elif kind == "evict":
            self.move(self.having(Status.RUNNING), self.evict)
        else:
            self.move(pending(self.snapshot), self.place if kind == "place" else self.pipeline)

    def move(self, rows: Any, verb: Any) -> None:
        if rows:
            verb(self.data.draw(st.sampled_from(rows)))

    def evict(self, row: Any) -> None:
        self.statement.evict(row, "preempt")

    def pipeline(self, row: Any) -> None:
        self.statement.pipeline(row, self.data.draw(st.integers(0, self.snapshot.nodes.n - 1)))

    def place(self, row: Any) -> None:
        request = self.snapshot.request(row)[:, None]
        room = np.flatnonzero(fits(request, self.snapshot.nodes.idle)).tolist()
        if room:
            self.statement.place(row, self.data.draw(st.sampled_from(room)))


@settings(max_examples=40)
@given(cluster=clusters(), conf=confs(wide=True), data=st.data())
def test_rows_asked_again_equal_rows_asked_first(cluster: Any, conf: Any, data: Any) -> None:
    """The cached columns, followed row by row, have the bits of fresh columns."""
    walk = Walk(cluster, conf, data)
    asked = pending(walk.snapshot)[:4]
    with np.errstate(all="ignore"):
        for _ in range(8):
            walk.step()
            for row in asked:
                if walk.snapshot.tasks.status[row] != Status.PENDING:
                    continue
                task = Task(walk.snapshot, row)
                kept = walk.ssn.placing.fit(task)
                for way in (Placing, ReferencePlacing):
                    fit = way(walk.snapshot, walk.ssn.hooks, seed=0).fit(task)
                    for name in ("verdict", "room", "score", "value"):
                        assert getattr(fit, name).tolist() == getattr(kept, name).tolist()
    walk.snapshot.release_session()


@settings(max_examples=60)
@given(cluster=clusters(), conf=confs(wide=True), data=st.data())
def test_a_rollback_restores_every_cell(cluster: Any, conf: Any, data: Any) -> None:
    walk = Walk(cluster, conf, data)
    before = cells(walk.snapshot)
    for _ in range(data.draw(st.integers(1, 15))):
        walk.step()
        check(walk.snapshot)
    walk.statement.discard()
    assert changed(before, cells(walk.snapshot)) == []
    walk.snapshot.release_session()


@settings(max_examples=60)
@given(cluster=clusters(), conf=confs(wide=True), seed=st.integers(0, 9))
def test_the_fast_way_decides_as_the_plain_way(cluster: Any, conf: Any, seed: Any) -> None:
    """Caches, dirty rows and runs of equals change nothing."""
    fast = Scheduler(conf, seed=seed).decide(snapshot_of(cluster), 0.0)
    assert fast == reference_decide(snapshot_of(cluster), conf, seed=seed)
