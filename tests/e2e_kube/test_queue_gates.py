"""Scheduling gates as queue admission on a real API server: added, removed, and room kept."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from deploy.webhooks import WEBHOOKS
from pumice.testing.builders import pod, pod_group, queue
from tests.e2e_kube.controlplane.processes import free_ports
from tests.e2e_kube.install import HOME, on_loopback
from tests.e2e_kube.servers import conf
from tests.e2e_kube.space import fresh
from tests.e2e_kube.waiting import stays, until

GATE: Final = "scheduling.volcano.sh/queue-allocation-gate"
FEATURE: Final = "SchedulingGatesQueueAdmission=true"
CONF: Final = conf("predicates", "capacity", "nodeorder")

pytestmark = pytest.mark.usefixtures("controllers", "gating")


@pytest.fixture
def gating(plane: Any, servers: Any, kubectl: Any, tmp_path: Path) -> Iterator[None]:
    """Run and register the one webhook that adds gates."""
    pair, port = plane.authority.server("webhooks"), free_ports(1)[0]
    conf = tmp_path / "volcano-admission.conf"
    conf.write_text("resourceGroups: []\n")
    flags = {
        "listen-address": "127.0.0.1",
        "port": port,
        "tls-cert-file": pair.certificate,
        "tls-private-key-file": pair.key,
        "enabled-admission": "/pods/mutate",
        "webhook-url": f"https://127.0.0.1:{port}",
        "admission-conf": conf,
        "feature-gates": FEATURE,
    }
    mutating = next(each for each in WEBHOOKS if each.path == "/pods/mutate")
    with servers.serving("webhooks", flags):
        own = plane.authority.own.certificate
        registered = on_loopback([mutating.manifest(HOME)], port, own)
        kubectl.apply(*registered)
        try:
            yield
        finally:
            kubectl("delete", registered[0]["kind"], registered[0]["metadata"]["name"])


def opted_in(name: str, **spec: Any) -> Any:
    marks = {GATE: "true"}
    return fresh(pod(name, group="slot", cpu=1, annotations=marks, spec=spec))


def test_pods_pass_their_queue_one_by_one_and_keep_its_room(space: Any, scheduler: Any) -> None:
    """A queue of one CPU: a pod runs, one waits for a node, and the last one comes after both."""

    def gates(name: str) -> list[str]:
        spec = space.kubectl.get(f"pod/{name}")["spec"]
        return [gate["name"] for gate in spec.get("schedulingGates") or ()]

    def reasons(name: str) -> list[str]:
        said = space.kubectl.get(f"pod/{name}")["status"].get("conditions") or ()
        return [each["reason"] for each in said if each["type"] == "PodScheduled"]

    space.nodes(1, cpu=4)
    space.kubectl.create(fresh(queue("small", capability={"cpu": 1})))
    space.kubectl.wait("queue/small", ".status.state", "Open")
    space.kubectl.create(fresh(pod_group("slot", queue="small", phase=None)))
    space.kubectl.create(opted_in("one"))
    assert gates("one") == [GATE]
    with scheduler(CONF, feature_gates=FEATURE):
        until("the first pod running", space.running, lambda seen: seen == 1)
        assert gates("one") == []
        elsewhere = opted_in("two", nodeSelector={"pool": "not-there-yet"})
        space.kubectl.create(elsewhere)
        other = opted_in("three", schedulingGates=[{"name": "example.com/licence"}])
        space.kubectl.create(other)
        assert gates("three") == ["example.com/licence", GATE]
        stays("gated", lambda: gates("two"), lambda seen: seen == [GATE], for_s=2)
        assert reasons("two") == ["SchedulingGated"]
        space.kubectl("delete", "pod/one", "--grace-period=0", "--force")
        until("unschedulable", lambda: reasons("two"), lambda seen: seen == ["Unschedulable"])
        assert gates("two") == []
        rest = '[{"op": "remove", "path": "/spec/schedulingGates/0"}]'
        space.kubectl("patch", "pod/three", "--type=json", "-p", rest)
        stays("gated", lambda: gates("three"), lambda seen: seen == [GATE], for_s=2)
        space.kubectl("delete", "pod/two", "--grace-period=0", "--force")
        until("the last pod placed", lambda: "three" in space.placed())
