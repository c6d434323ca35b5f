"""Cards on a real API server: the node is locked and the pod annotated before it is bound."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e_kube.servers import conf
from tests.e2e_kube.space import job
from tests.e2e_kube.waiting import until
from tests.unit.plugins.test_deviceshare_mig import A100, config_map

pytestmark = pytest.mark.usefixtures("controllers")

CARDS = {"deviceshare.VGPUEnable": True, "deviceshare.NodeLockEnable": True}
CONF = conf("predicates", "nodeorder", {"name": "deviceshare", "arguments": CARDS})
LOCK, IDS = "hamivgpu", "volcano.sh/vgpu-ids-new"
REGISTER = f"volcano.sh/node-vgpu-register=GPU-0,10,40960,{A100},true,mig:"


@pytest.fixture
def cards(space: Any) -> Iterator[str]:
    """Yield the name of a node with one card, which can be cut."""
    amounts = {"volcano.sh/vgpu-number": 10, "volcano.sh/vgpu-memory": 40960}
    (name,) = space.nodes(1, cpu=8, resources={**amounts, "volcano.sh/vgpu-cores": 100})
    space.kubectl("annotate", "node", name, REGISTER)
    space.kubectl("apply", "--namespace=kube-system", "-f", "-", given=json.dumps(config_map()))
    yield name
    space.kubectl("delete", "--namespace=kube-system", "configmap", "volcano-vgpu-device-config")


def wanting(name: str, memory: int) -> Any:
    made = job(name)
    container = made["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container["resources"]["limits"] = {"volcano.sh/vgpu-memory": str(memory)}
    return made


def lock(space: Any, node: str) -> str | None:
    found: str | None = space.kubectl.get("node", node)["metadata"]["annotations"].get(LOCK)
    return found


def given(space: Any, name: str) -> list[str]:
    """List the card annotations of a job's pods."""
    return [each["metadata"]["annotations"].get(IDS, "") for each in space.pods(name)]


def finish(space: Any, node: str, name: str) -> None:
    """Do what the device plugin of the node does when it has handed the devices out."""
    (pod,) = (each["metadata"]["name"] for each in space.pods(name))
    space.kubectl("annotate", "pod", pod, "--overwrite", "volcano.sh/bind-phase=success")
    space.kubectl("annotate", "node", node, f"{LOCK}-")


def test_one_pod_at_a_time_gets_its_part_of_a_card(
    space: Any, scheduler: Any, cards: str, audit: Any
) -> None:
    with scheduler(CONF):
        space.kubectl.create(wanting("first", 8000))
        space.wait_running("first", 1)
        assert given(space, "first") == ["GPU-0[group2-0],NVIDIA,8000,0:"]
        assert lock(space, cards) is not None
        space.kubectl.create(wanting("second", 3000))
        until(
            "the second waits and says why",
            lambda: [
                condition.get("message", "")
                for each in space.pods("second")
                for condition in each["status"].get("conditions") or ()
            ],
            lambda reported: any("node is locked" in text for text in reported),
        )
        assert space.placed("second") == {}
        finish(space, cards, "first")
        space.wait_running("second", 1)
        assert given(space, "second") == ["GPU-0[group2-3],NVIDIA,3000,0:"]
    order = [
        (each.resource, each.status)
        for each in audit.requests()
        if "scheduler" in each.user
        and (each.resource, each.verb) in (("nodes", "patch"), ("pods/binding", "create"))
    ]
    assert order == [("nodes", 200), ("pods/binding", 201)] * 2


def test_a_refused_bind_takes_the_lock_back(
    space: Any, scheduler: Any, cards: str, no_binds: Any
) -> None:
    with scheduler(CONF):
        space.kubectl.create(wanting("refused", 3000))
        until(
            "the bind is refused",
            lambda: [each["message"] for each in space.events("FailedScheduling")],
            lambda reported: any("no binds today" in text for text in reported),
        )
        until("the node is free again", lambda: lock(space, cards), lambda held: held is None)
        no_binds()
        space.wait_running("refused", 1)
        assert lock(space, cards) is not None
