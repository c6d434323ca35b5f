"""resourcequota: a job is admitted only where its namespace's quotas have room."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.api.decisions import short_of
from pumice.framework.refusals import Why
from pumice.plugins.resourcequota import ResourceQuotas
from pumice.scheduler import Scheduler
from pumice.testing import node, pod_group, queue


def quota(name: str = "quota", namespace: Any = "default", *, hard: Any, used: Any = None) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": used or {}},
    }


def wants(name: Any, *, created: Any = 0, namespace: Any = "default", **needs: Any) -> Any:
    return pod_group(
        name,
        namespace=namespace,
        min_resources=needs or None,
        created=f"2026-01-01T00:00:{created:02}Z",
    )


def admitted(*objects: Any, conf: str = "  - name: resourcequota") -> Any:
    text = f'actions: "enqueue"\ntiers:\n- plugins:\n{conf}\n'
    world = [queue("default"), node("n"), *objects]
    groups = Scheduler(parse_conf(text)).cycle(world, 1e10).pod_groups
    return [key.partition("/")[2] for key, state in groups.items() if state.phase == "Inqueue"]


def test_jobs_admitted_in_a_cycle_count_against_the_quota() -> None:
    """Quota 8 cpu, 2 used: the first job of 4 gets in; 2 + 4 + 4 is more than 8 for the second."""
    bound = quota(hard={"cpu": "8"}, used={"cpu": "2"})
    assert admitted(bound, wants("a", cpu=4), wants("b", cpu=4, created=1)) == ["a"]


def test_a_smaller_job_behind_a_refused_one_still_gets_in() -> None:
    bound = quota(hard={"cpu": "8"}, used={"cpu": "2"})
    jobs = [wants("a", cpu=4), wants("b", cpu=4, created=1), wants("c", cpu=2, created=2)]
    assert admitted(bound, *jobs) == ["a", "c"]


@pytest.mark.parametrize(("cpu", "names"), [("4", ["a"]), ("4001m", []), ("4.0000001", [])])
def test_quantities_are_compared_exactly(cpu: str, names: Any) -> None:
    assert admitted(quota(hard={"cpu": "4"}), wants("a", cpu=cpu)) == names


def test_every_quota_of_the_namespace_must_have_room() -> None:
    bounds = [quota("wide", hard={"cpu": "9"}), quota("tight", hard={"memory": "1Gi"})]
    assert admitted(*bounds, wants("a", cpu=1, memory="2Gi")) == []
    assert admitted(*bounds, wants("a", cpu=1, memory="1Gi")) == ["a"]


def test_keys_are_compared_as_they_are_written() -> None:
    """A quota on requests.cpu does not bound a job that asks for cpu."""
    bound = quota(hard={"requests.cpu": "1"})
    assert admitted(bound, wants("a", cpu=4)) == ["a"]
    assert admitted(bound, wants("a", **{"requests.cpu": 4})) == []


def test_names_that_only_the_job_or_only_the_quota_knows_are_passed_over() -> None:
    bound = quota(hard={"memory": "1Gi", "count/pods": "0"}, used={"memory": "9Gi"})
    assert admitted(bound, wants("a", cpu=4)) == ["a"]


def test_quotas_of_other_namespaces_do_not_matter() -> None:
    bound = quota(namespace="other", hard={"cpu": "1"})
    assert admitted(bound, wants("a", cpu=4)) == ["a"]
    assert admitted(bound, wants("a", cpu=4, namespace="other")) == []


def test_a_quota_without_status_bounds_nothing() -> None:
    silent = quota(hard={"cpu": "1"})
    del silent["status"]
    assert admitted(silent, wants("a", cpu=4)) == ["a"]


def test_a_job_that_names_no_needs_is_admitted() -> None:
    assert admitted(quota(hard={"cpu": "1"}, used={"cpu": "1"}), wants("a")) == ["a"]


def test_a_job_refused_by_another_plugin_is_not_counted() -> None:
    """The first job fails overcommit; the quota is all there for the second."""
    both = "  - name: resourcequota\n  - name: overcommit"
    jobs = [wants("a", cpu=6), wants("b", cpu=3, created=1)]
    assert admitted(quota(hard={"cpu": "6"}), *jobs, conf=both) == ["b"]


def test_a_job_admitted_by_an_earlier_tier_is_counted() -> None:
    overdue = "  - name: sla\n    arguments:\n      sla-waiting-time: 1s\n- plugins:\n"
    fresh = pod_group("b", min_resources={"cpu": 2}, created="2400-01-01T00:00:00Z")
    world = [quota(hard={"cpu": "5"}), wants("a", cpu=4), fresh]
    assert admitted(*world, conf=overdue + "  - name: resourcequota") == ["a"]


def test_a_refusal_says_which_quota_and_how_much(open_session: Any) -> None:
    """Amounts are in thousandths for cpu, also under a quota's longer name."""
    bound = quota("team", hard={"requests.cpu": "8"}, used={"requests.cpu": "6500m"})
    world = [queue("default"), node("n"), bound, wants("a", **{"requests.cpu": 2})]
    ssn = open_session(world, ResourceQuotas())
    refusal = ssn.policy.job_enqueueable(0)
    assert not refusal
    assert refusal.why is Why.OVER_QUOTA
    assert refusal.numbers == {
        "queue": 0,
        "at": "resource quota team",
        "resource": "requests.cpu",
        "used": 6500.0,
        "request": 2000.0,
        "limit": 8000.0,
    }


def test_a_refusal_names_every_short_resource_of_the_quota(open_session: Any) -> None:
    bound = quota("team", hard={"cpu": "1", "memory": "1Gi", "pods": "9"})
    world = [queue("default"), node("n"), bound, wants("a", cpu=2, memory="2Gi", pods=1)]
    refusal = open_session(world, ResourceQuotas()).policy.job_enqueueable(0)
    assert [each.resource for each in short_of(refusal.numbers)] == ["cpu", "memory"]
