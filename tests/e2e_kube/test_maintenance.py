"""Others cordon, taint and drain nodes while a gang waits and runs."""

from typing import Any

import pytest

from tests.e2e_kube.space import job
from tests.e2e_kube.waiting import stays, until

pytestmark = pytest.mark.usefixtures("controllers", "webhooks", "default_scheduler")


def test_a_gang_waits_whole_while_one_of_its_nodes_is_cordoned_or_tainted(space: Any) -> None:
    cordoned, tainted = space.nodes(2, cpu=4)
    space.kubectl("cordon", cordoned)
    space.kubectl.create(job("train", replicas=2, cpu=4))
    until("both pods", space.pods, lambda pods: len(pods) == 2)
    stays("without a place", space.placed, lambda placed: not placed, for_s=2)
    space.kubectl("taint", "node", tainted, "maintenance=now:NoSchedule")
    space.kubectl("uncordon", cordoned)
    stays("without a place", space.placed, lambda placed: not placed, for_s=2)
    space.kubectl("taint", "node", tainted, "maintenance-")
    space.wait_running("train", 2)
    assert {*space.placed().values()} == {cordoned, tainted}


def test_a_drained_gang_runs_on_with_a_new_pod_elsewhere(space: Any) -> None:
    names = space.nodes(3, cpu=4)
    space.kubectl.create(job("train", replicas=2, cpu=4))
    space.wait_running("train", 2)
    drained = min(space.placed().values())
    space.kubectl("drain", drained, "--force", "--grace-period=1", "--timeout=30s")
    until(
        "both off the node", space.placed, lambda placed: len({*placed.values()} - {drained}) == 2
    )
    space.wait_running("train", 2)
    assert {*space.placed().values()} == {*names} - {drained}
    space.wait_phase("train", "Running")
