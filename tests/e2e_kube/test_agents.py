"""Pods of agents on a real API server: bound without a PodGroup, by the rights of the chart."""

from typing import Any

from pumice.testing import pod
from tests.e2e_kube.space import fresh, job
from tests.e2e_kube.waiting import until

AGENT = "agent-scheduler"


def test_pods_of_agents_need_no_group_and_share_nodes_with_gangs(
    space: Any, servers: Any, scheduler: Any
) -> None:
    space.nodes(1, cpu=3)
    with servers.serving("controllers"), scheduler(agent_scheduler_name=AGENT):
        space.kubectl.apply(job("gang", replicas=2))
        space.wait_running("gang", 2)
        for name in ("a", "late"):
            space.kubectl.apply(fresh(pod(name, scheduler=AGENT, cpu=1)))
            until("a decision", lambda: conditions(space, name), bool)  # noqa: B023  # at once
        assert conditions(space, "a")["PodScheduled"] == "True"
        assert conditions(space, "late")["PodScheduled"] == "False"
        assert [each["metadata"]["ownerReferences"][0]["name"] for each in space.groups()] == [
            "gang"
        ]
        space.kubectl("delete", "pod/a", "--grace-period=0", "--force")
        until(
            "the last pod",
            lambda: conditions(space, "late"),
            lambda it: it["PodScheduled"] == "True",
        )


def conditions(space: Any, name: str) -> dict[str, str]:
    """Return what is known about a pod."""
    found = {each["metadata"]["name"]: each for each in space.pods()}
    return {one["type"]: one["status"] for one in found[name]["status"].get("conditions", ())}
