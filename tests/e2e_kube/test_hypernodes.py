"""HyperNodes on a real API server: found by node labels, counted, used, and gone again."""

from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml

from pumice.controllers.hypernode_discovery import SOURCE_LABEL
from tests.e2e_kube.install import HOME, manifests
from tests.e2e_kube.waiting import until

RACK: Final = "example.com/rack"
MAP: Final = "volcano-controller-configmap"
HOST: Final = {"nodeLabel": "kubernetes.io/hostname"}

pytestmark = pytest.mark.usefixtures("controllers")


@pytest.fixture
def configure(kubectl: Any) -> Iterator[Any]:
    """Yield what writes the discovery settings; in the end they are those of the deployment."""
    deployed = next(each for each in manifests() if each["metadata"]["name"] == MAP)

    def write(*sources: Any) -> None:
        text = yaml.safe_dump({"networkTopologyDiscovery": [*sources]})
        kubectl.apply({**deployed, "data": {"volcano-controller.conf": text}})

    yield write
    kubectl.apply(deployed)


def racks(space: Any) -> dict[str, tuple[list[str], int]]:
    """Return the racks: their nodes, and how many are counted."""
    return {
        each["metadata"]["labels"][RACK]: (
            [one["selector"]["exactMatch"]["name"] for one in each["spec"]["members"]],
            each.get("status", {}).get("nodeCount", 0),
        )
        for each in space.kubectl.items("hypernodes", "-l", f"{SOURCE_LABEL}=label")
    }


def test_racks_follow_the_labels_of_nodes(space: Any, configure: Any) -> None:
    def shows(*wanted: Any) -> None:
        until("the racks", lambda: racks(space), lambda seen: seen == dict(wanted))

    space.nodes(3)
    types = {"racks": [{"nodeLabel": RACK}, HOST]}
    source = {"source": "label", "enabled": True, "config": {"networkTopologyTypes": types}}
    for node, rack in (("node-0", "a"), ("node-1", "a"), ("node-2", "b")):
        space.kubectl("label", f"node/{node}", f"{RACK}={rack}")
    assert racks(space) == {}
    configure(source)
    shows(("a", (["node-0", "node-1"], 2)), ("b", (["node-2"], 1)))
    name = space.kubectl.items("hypernodes", "-l", f"{RACK}=a")[0]["metadata"]["name"]
    assert name.startswith("hypernode-racks-tier1-")
    space.kubectl("label", "node/node-1", f"{RACK}=b", "--overwrite")
    shows(("a", (["node-0"], 1)), ("b", (["node-1", "node-2"], 2)))
    space.kubectl("delete", f"hypernode/{name}")
    shows(("a", (["node-0"], 1)), ("b", (["node-1", "node-2"], 2)))
    configure({**source, "interval": "often", "enabled": "maybe"})
    until("notified of the mistake", lambda: _reported(space))
    configure(source)
    for number in range(3):
        space.kubectl("label", f"node/node-{number}", f"{RACK}-")
    shows()


def _reported(space: Any) -> bool:
    events = space.kubectl.items("events", "-n", HOME, "--field-selector=reason=TopologyDiscovery")
    return any("expected true or false, got 'maybe'" in each["message"] for each in events)
