"""The queues that a scheduler creates before it decides anything."""

from pumice.api.kinds import DEFAULT_QUEUE, QUEUE, Manifest
from pumice.cluster.base import Cluster
from pumice.errors import AlreadyExistsError, NotFoundError


def _queue(name: str, **spec: object) -> Manifest:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, **spec},
    }


def make_queues(cluster: Cluster, default_queue: str = DEFAULT_QUEUE) -> None:
    """Create the queue ``root`` and the default one unless they exist.

    Existing ones are not created again: the webhooks may be down, and scheduling needs none.
    """
    wanted = (
        _queue("root", reclaimable=False),
        _queue(default_queue, reclaimable=True, parent="root"),
    )
    there = _names(cluster)
    for manifest in wanted:
        name = manifest["metadata"]["name"]
        if name in there:
            continue
        try:
            cluster.create(manifest)
        except AlreadyExistsError:
            continue
        status = {"status": {"state": "Open", "reservation": {}}}
        cluster.patch(QUEUE, "", name, status, subresource="status")


def _names(cluster: Cluster) -> set[str]:
    """Name the queues that are known; a list needs no further rights."""
    try:
        queues, _ = cluster.list(QUEUE)
    except NotFoundError:  # a cluster without this kind
        return set()
    return {queue["metadata"]["name"] for queue in queues}
