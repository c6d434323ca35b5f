"""A cycle's plan and its bounds follow from kept sums as they do from all jobs and tables."""

from typing import Any

import numpy as np
import pytest

from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.core.resources import PODS
from pumice.framework.queue_limits.limits import ClusterLimit
from pumice.framework.queue_limits.weighted import WeightedLimits
from pumice.sim.bounds import Bounds
from pumice.sim.engine import Engine
from pumice.sim.waiting_jobs import WaitingJobs
from tests.unit.sim.made import kube_objects
from tests.unit.sim.test_kept_answers import DIRECT, POLICIES, crowded_cluster, crowded_jobs


def planned_of_all(waiting: WaitingJobs, *, anew: bool, new: set[Any]) -> list[tuple[Any, ...]]:
    """Count the jobs of every class, one after the other."""
    found = []
    for each in waiting._waiting:
        if anew or not each.kind.is_steady or each.kind in new:
            admitted, fresh = waiting._count(each, waiting.bounds)
            found += [(each, admitted, fresh)] if admitted or fresh else []
    return found


def follow_plans(monkeypatch: pytest.MonkeyPatch, check: Any) -> list[int]:
    """Check after every plan; count those with jobs."""
    plan, noted = WaitingJobs.plan, list[int]()

    def checked(waiting: WaitingJobs) -> bool:
        freed, new = waiting.has_freed_room, {*waiting._with_new_jobs}
        found = plan(waiting)
        follows = waiting.bounds is not None and waiting.bounds.follow_demand
        check(waiting, anew=freed or follows, new=new)
        noted.extend([1] if found else [])
        return found

    monkeypatch.setattr(WaitingJobs, "plan", checked)
    return noted


@pytest.mark.parametrize("policy", [*POLICIES, "no queue limits"])
def test_a_plan_has_every_job_that_might_get_something(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(waiting: WaitingJobs, **how: Any) -> None:
        assert waiting._planned == planned_of_all(waiting, **how)

    noted = follow_plans(monkeypatch, check)
    rng = np.random.default_rng([*policy.encode()])
    jobs, machines = crowded_jobs(rng, several_classes=False), crowded_cluster(rng)
    conf = parse_conf({**POLICIES, **DIRECT}[policy])
    Engine(jobs, kube_objects(*machines), conf).run()
    assert len(noted) > 20


def agree(bounds: Bounds) -> None:
    """Compare what bounds know of queues with the tables."""
    queues, limits = bounds.snapshot.queues, bounds.limits
    assert isinstance(limits, WeightedLimits)
    held = queues.allocated_or_pipelined
    deserved, committed = limits.current().deserved, limits.committed()
    for name in ("q1", "q2", "q3"):
        row = queues.row_of[name]
        assert bounds.held(row) == held[:, row].tolist()
        if (held + queues.pending)[:, row].any():
            assert bounds.deserved(limits, row) == deserved[:, row].tolist()
        found = np.array(bounds.committed(limits, row))
        assert np.delete(found - committed[:, row], PODS).tolist() == [0.0] * (len(found) - 1)
    for limit in bounds.admission_limits:
        if isinstance(limit, ClusterLimit):
            idle, reserved = limit.idle().tolist(), limit.reserved().tolist()
            assert bounds.idle_and_reserved(limit) == (idle, reserved)


@pytest.mark.parametrize("seed", range(2))
def test_sums_that_are_kept_by_queue_are_those_of_the_tables(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = []

    def check(waiting: WaitingJobs, **_: Any) -> None:
        if waiting.bounds is not None and waiting:
            known.append(waiting._cluster.ledger() is not None)
            waiting._cluster.write_due()
            agree(waiting.bounds)

    follow_plans(monkeypatch, check)
    rng = np.random.default_rng(seed)
    jobs, machines = crowded_jobs(rng, several_classes=False), crowded_cluster(rng)
    Engine(jobs, kube_objects(*machines), parse_conf(DEFAULT_CONF)).run()
    assert sum(known) > 20
