"""Guards against slowness: ratios within one run, never seconds, so that a busy machine passes."""

import gc
import math
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bench.clusters import Case
from pumice.api.conf import parse_conf
from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.core.views import Task
from pumice.framework import job_placement as rounds
from pumice.framework.placement.turns import BatchedTurns
from pumice.framework.registry import build_tiers
from pumice.framework.session import Session
from pumice.kernel.library import library
from pumice.plugins import builtin_plugins
from pumice.scheduler import Scheduler
from tests import checking

NOW = 1768478400.0


def load(case: Any) -> Any:
    return Ingest(Snapshot()).load(from_manifest(manifest) for manifest in case.objects())


def fastest(run: Any, times: Any = 3) -> Any:
    """Return the CPU seconds of the fastest of a few runs."""
    best = math.inf
    gc.collect()
    for _ in range(times):
        started = time.process_time()
        run()
        best = min(best, time.process_time() - started)
    return best


def cycle_time(case: Any) -> Any:
    snapshot, scheduler = load(case), Scheduler(parse_conf(case.conf))
    decisions = scheduler.decide(snapshot, NOW)
    assert len(decisions.binds) == case.pods
    return fastest(lambda: scheduler.decide(snapshot, NOW, only_changes=True))


@pytest.fixture(autouse=True)
def time_nothing_but_deciding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "enabled", False)


@pytest.fixture
def session() -> Iterator[Any]:
    case = Case("default", 4000, 20, 20)
    snapshot = load(case)
    tiers, _ = build_tiers(parse_conf(case.conf), builtin_plugins())
    with np.errstate(all="ignore"):
        yield Session(snapshot, tiers, now=NOW)
    snapshot.release_session()


def test_asking_one_moved_row_again_costs_a_fraction_of_asking_all(session: Any) -> None:
    """The journal shows which row moved; the other 3,999 nodes are not asked again."""
    task = Task(session.snapshot, 0)
    fit = session.placing.fit(task)

    def moved() -> None:
        session.journal.touch(7)
        session.placing.fit(task)

    every = np.arange(4000)
    everything = fastest(lambda: session.placing._refresh(fit, task, every), times=20)
    assert fit.score.shape == (4000,)
    assert everything > 3 * fastest(moved, times=40)


def test_time_per_pod_hardly_grows_with_nodes() -> None:
    """Sixteen times the nodes cost much less than sixteen times the time."""
    few, many = (cycle_time(Case("default", nodes, 400, 100)) for nodes in (250, 4000))
    assert math.log(many / few) / math.log(16) < 0.6


def test_time_grows_with_pods_as_they_do() -> None:
    """Eight times the pods cost about eight times the time, not its square."""
    few, many = (cycle_time(Case("default", 500, pods, 50)) for pods in (400, 3200))
    assert math.log(many / few) / math.log(8) < 1.35


@pytest.mark.skipif(library() is None, reason="pods are placed one by one")
def test_turns_and_runs_beat_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gangs of equal pods are placed with a few questions, not a few for each pod."""
    case = Case("default", 500, 1000, 100)
    together = cycle_time(case)
    monkeypatch.setattr(BatchedTurns, "take", lambda *_: False)
    runs = cycle_time(case)
    monkeypatch.setattr(rounds, "_SHORTEST", 10**9)
    assert cycle_time(case) > 2.5 * max(together, runs)


def test_an_idle_cycle_costs_next_to_nothing() -> None:
    """Twenty thousand running pods are not visited one by one."""
    case = Case("idle", 500, 0, 1, 20000)
    objects = case.objects()
    started = time.process_time()
    snapshot = Ingest(Snapshot()).load(from_manifest(manifest) for manifest in objects)
    loading = time.process_time() - started
    scheduler = Scheduler(parse_conf(case.conf))
    scheduler.decide(snapshot, NOW, only_changes=True)
    # groups without a status yet are reported; that is the dearer kind of idle
    assert fastest(lambda: scheduler.decide(snapshot, NOW, only_changes=True)) < loading / 10


def test_a_placement_leaves_few_objects_behind() -> None:
    """What stays allocated after a cycle is its decisions, not copies of the cluster."""
    case = Case("default", 500, 2000, 100)
    snapshot, scheduler = load(case), Scheduler(parse_conf(case.conf))
    scheduler.decide(snapshot, NOW)
    gc.collect()
    before = sys.getallocatedblocks()
    decisions = scheduler.decide(snapshot, NOW, only_changes=True)
    gc.collect()
    assert len(decisions.binds) == 2000
    assert (sys.getallocatedblocks() - before) / 2000 < 8
