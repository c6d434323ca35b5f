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


@pytest.mark.parametrize(("cpu", "names"), [("4", ["a"]), ("4001m", []), ("4.0000001", [])])
def test_quantities_are_compared_exactly(cpu: str, names: Any) -> None:
    assert admitted(quota(hard={"cpu": "4"}), wants("a", cpu=cpu)) == names


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
