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


def test_what_any_pod_uses_is_taken_off() -> None:
    """Also pods of no job, and of other schedulers."""
    used = pod("other", cpu=4, node="n", scheduler="default-scheduler")
    world = [node("n", cpu=10), used]
    assert phases([*world, wants("j", 8)]) == {"j": "Inqueue"}
    assert phases([*world, wants("j", "8001m")]) == {"j": "Pending"}


def test_jobs_admitted_before_count_and_a_smaller_one_behind_a_refused_one_still_gets_in() -> None:
    jobs = [
        wants("a", 8, created="2026-01-01T00:00:00Z"),
        wants("b", 5, created="2026-01-01T00:00:01Z"),
        wants("c", 4, created="2026-01-01T00:00:02Z"),
    ]
    assert phases([node("n", cpu=10), *jobs]) == {"a": "Inqueue", "b": "Pending", "c": "Inqueue"}


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


def test_a_running_job_reserves_what_is_left_of_its_needs() -> None:
    old = [wants("old", 5, phase="Running"), pod("p", group="old", cpu=3, node="n")]
    world = [node("n", cpu=10), *old]
    assert phases([*world, wants("j", 7)])["j"] == "Inqueue"
    assert phases([*world, wants("j", "7001m")])["j"] == "Pending"


def test_a_running_job_below_its_least_number_reserves_nothing() -> None:
    """Its pods have finished; it will not ask again."""
    old = [
        wants("old", 5, phase="Running"),
        pod("p", group="old", cpu=3, node="n", phase="Succeeded"),
    ]
    assert phases([node("n", cpu=10), *old, wants("j", 12)])["j"] == "Inqueue"


def test_gated_pods_are_not_reserved_for() -> None:
    gated = pod("p", group="a", cpu=5, spec={"schedulingGates": [{"name": "example.com/wait"}]})
    world = [node("n", cpu=10), wants("a", 8, phase="Inqueue"), gated]
    assert phases([*world, wants("j", 9)])["j"] == "Inqueue"
    assert phases([*world, wants("j", "9001m")])["j"] == "Pending"


def test_pods_that_wait_at_the_queue_s_own_gate_alone_are_reserved_for() -> None:
    gate = {"name": "scheduling.volcano.sh/queue-allocation-gate"}
    for gates, phase in (([gate], "Pending"), ([gate, {"name": "example.com/wait"}], "Inqueue")):
        gated = pod("p", group="a", cpu=5, spec={"schedulingGates": gates})
        world = [node("n", cpu=10), wants("a", 8, phase="Inqueue"), gated]
        assert phases([*world, wants("j", 9)])["j"] == phase


def test_the_needs_of_a_job_include_its_gated_pods() -> None:
    gated = pod("p", group="a", cpu=13, spec={"schedulingGates": [{"name": "example.com/wait"}]})
    assert phases([node("n", cpu=10), wants("a", 13), gated]) == {"a": "Pending"}


def test_only_what_a_job_asks_for_is_compared() -> None:
    """A cluster overrun in memory still admits a job that asks for cpu alone."""
    full = pod("p", memory="16Gi", node="n", scheduler="default-scheduler")
    assert phases([node("n", cpu=10, memory="8Gi"), full, wants("j", 12)]) == {"j": "Inqueue"}


def test_a_job_that_names_no_needs_is_admitted() -> None:
    full = pod("p", cpu=99, node="n", scheduler="default-scheduler")
    assert phases([node("n", cpu=1), full, pod_group("j")]) == {"j": "Inqueue"}


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
