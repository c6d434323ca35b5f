"""Kubernetes' own PodGroups on an API server that has them: placed as gangs, and told so."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from pumice.testing.builders import pod, queue
from tests.e2e_kube.servers import conf
from tests.e2e_kube.space import fresh
from tests.e2e_kube.test_hypernodes import HOST, RACK, configure
from tests.e2e_kube.waiting import stays, until

__all__ = ["configure"]
VERSION: Final = "scheduling.k8s.io/v1alpha2"
PLURAL: Final = "podgroups.scheduling.k8s.io"
QUEUE: Final = "scheduling.volcano.sh/queue-name"

pytestmark = pytest.mark.usefixtures("controllers", "scheduling")


@pytest.fixture
def scheduling(scheduler: Any, space: Any) -> Iterator[None]:
    plugins = "predicates", "proportion", "nodeorder", "network-topology-aware"
    with scheduler(conf(*plugins)):
        yield
    for one in space.kubectl.items(PLURAL):  # the controller that lets groups go does not run
        kept = json.dumps({"metadata": {"finalizers": None}})
        space.kubectl("patch", PLURAL, one["metadata"]["name"], "--type=merge", "-p", kept)


def gang(name: str, policy: Any, *, queue: str = "", **spec: Any) -> Any:
    metadata = {"name": name, "annotations": {QUEUE: queue} if queue else {}}
    spec = {"schedulingPolicy": policy, **spec}
    return {"apiVersion": VERSION, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def members(name: str, count: int) -> list[Any]:
    group = {"podGroupName": name}
    made = (pod(f"{name}-{n}", cpu=2, spec={"schedulingGroup": group}) for n in range(count))
    return [fresh(one) for one in made]


def said(space: Any, name: str) -> Any:
    """Return the condition of a group, nothing if it has none."""
    found = space.kubectl.get(f"{PLURAL}/{name}")
    return next(iter(found.get("status", {}).get("conditions") or ()), {})


def test_a_gang_starts_as_a_whole_and_its_group_is_told(space: Any) -> None:
    space.kubectl.create(queue("research", weight=1))
    space.nodes(1, cpu=4)
    space.kubectl.create(*members("train", 3))
    space.kubectl.create(gang("train", {"gang": {"minCount": 3}}, queue="research"))
    waiting = until("a condition", lambda: said(space, "train"))
    assert (waiting["type"], waiting["status"]) == ("PodGroupScheduled", "False")
    assert waiting["reason"] == "Unschedulable"
    assert "pod group is not ready" in waiting["message"]
    assert space.placed() == {}
    assert [one["spec"]["queue"] for one in space.groups()] == ["research"]
    space.nodes(1, prefix="more", cpu=4)
    until("three pods running", space.running, lambda seen: seen == 3)
    told = until(
        "the group scheduled",
        lambda: said(space, "train"),
        lambda seen: seen.get("status") == "True",
    )
    assert (told["reason"], told["message"]) == ("Scheduled", "")
    space.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
    stays("scheduled once and for all", lambda: said(space, "train")["status"] == "True", for_s=1)


def test_pods_of_a_basic_group_start_one_by_one(space: Any) -> None:
    space.nodes(1, cpu=4)
    space.kubectl.create(gang("serve", {"basic": {}}), *members("serve", 3))
    until("two pods running", space.running, lambda seen: seen == 2)
    until("told", lambda: said(space, "serve"), lambda seen: seen.get("status") == "True")


def test_a_gang_stays_in_one_domain(space: Any, configure: Any) -> None:
    space.nodes(4, cpu=4)
    for number, rack in enumerate("abab"):
        space.kubectl("label", f"node/node-{number}", f"{RACK}={rack}")
    topology = {"topology": [{"key": RACK}]}
    group = gang("near", {"gang": {"minCount": 3}}, schedulingConstraints=topology)
    space.kubectl.create(group, *members("near", 3))
    waiting = until("a condition", lambda: said(space, "near"))
    assert f"no HyperNode has the tierName {RACK}" in waiting["message"]
    types = {"racks": [{"nodeLabel": RACK}, HOST]}
    configure({"source": "label", "enabled": True, "config": {"networkTopologyTypes": types}})
    until("three pods running", space.running, lambda seen: seen == 3)
    assert {int(node[-1]) % 2 for node in space.placed().values()} in ({0}, {1})
