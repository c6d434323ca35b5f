"""overcommit: jobs are admitted while their needs fit the cluster counted a little larger."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.framework.refusals import Why
from pumice.plugins.overcommit import Overcommit
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue


def wants(name: Any, cpu: Any, **more: Any) -> Any:
    return pod_group(name, min_resources={"cpu": cpu}, **more)


def phases(objects: Any, factor: Any = None, tail: str = "") -> Any:
    conf = 'actions: "enqueue"\ntiers:\n- plugins:\n  - name: overcommit\n'
    if factor is not None:
        conf += f"    arguments:\n      overcommit-factor: {factor}\n"
    decisions = Scheduler(parse_conf(conf + tail)).cycle([queue("default"), *objects], 0.0)
    return {key.removeprefix("default/"): s.phase for key, s in decisions.pod_groups.items()}


@pytest.mark.parametrize(
    ("factor", "cpu", "phase"),
    [
        (None, "12", "Inqueue"),
        (None, "12001m", "Pending"),
        (1.5, "15", "Inqueue"),
        (1.5, "15001m", "Pending"),
        (1, "10", "Inqueue"),
        (1, "10001m", "Pending"),
    ],
)
def test_the_cluster_counts_factor_times(factor: Any, cpu: str, phase: str) -> None:
    """Room is the total times the factor less what is used; the factor is 1.2 unless given."""
    assert phases([node("n", cpu=10), wants("j", cpu)], factor) == {"j": phase}


@pytest.mark.parametrize("factor", [0.8, 0, -3])
def test_a_factor_below_one_counts_as_the_default(factor: float) -> None:
    world = [node("n", cpu=10)]
    assert phases([*world, wants("j", 12)], factor) == {"j": "Inqueue"}
    assert phases([*world, wants("j", "12001m")], factor) == {"j": "Pending"}


@pytest.mark.parametrize("least", [1, 2])
def test_a_job_in_phase_inqueue_reserves_all_it_needs_even_what_it_already_holds(
    least: int,
) -> None:
    old = [
        wants("old", 5, phase="Inqueue", min_member=least),
        pod("p", group="old", cpu=3, node="n"),
    ]
    world = [node("n", cpu=10), *old]
    assert phases([*world, wants("j", 4)])["j"] == "Inqueue"
    assert phases([*world, wants("j", "4001m")])["j"] == "Pending"


def test_a_refusal_is_recorded_with_its_numbers(open_session: Any) -> None:
    ssn = open_session([queue("default"), node("n", cpu=10), wants("j", 13)], Overcommit())
    refusal = ssn.policy.job_enqueueable(0)
    assert not refusal
    assert refusal.why is Why.OVER_QUOTA
    assert refusal.numbers == {
        "queue": 0,
        "at": "cluster",
        "resource": "cpu",
        "used": 0.0,
        "request": 13000.0,
        "limit": 12000.0,
        "factor": 1.2,
        "reserved": {"cpu": 0.0},
    }
