"""The queues that a scheduler makes sure of before it decides anything."""

from typing import Final

from pumice.cluster.base import Cluster, Manifest
from pumice.errors import AlreadyExistsError

QUEUE: Final = "Queue.scheduling.volcano.sh"


def _queue(name: str, **spec: object) -> Manifest:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, **spec},
    }


def make_queues(cluster: Cluster, default_queue: str = "default") -> None:
    """Create the queue ``root`` and the default one unless they are there."""
    wanted = (
        _queue("root", reclaimable=False),
        _queue(default_queue, reclaimable=True, parent="root"),
    )
    for manifest in wanted:
        try:
            cluster.create(manifest)
        except AlreadyExistsError:
            continue
        status = {"status": {"state": "Open"}}
        name = manifest["metadata"]["name"]
        cluster.patch(QUEUE, "", name, status, subresource="status")
