"""The queues that a scheduler creates: ``root``, and the queue of jobs that name none."""

from collections.abc import Callable
from typing import Final

from pumice import logs
from pumice.api.kinds import DEFAULT_QUEUE, QUEUE, Manifest
from pumice.cluster.base import Cluster
from pumice.errors import AlreadyExistsError, ClusterError, NotFoundError

_log = logs.get("scheduler")
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 30.0


class DefaultQueues:
    """Creates the default queues, and tries again later if the API server refuses.

    A webhook that is registered and does not answer yet refuses every queue.  Jobs of existing
    queues need none of these, so that no cycle waits for them or fails with them.
    """

    def __init__(self, cluster: Cluster, default_queue: str, clock: Callable[[], float]) -> None:
        self._cluster = cluster
        self._default_queue = default_queue
        self._clock = clock
        self._exist = False
        self._pause_s = _FIRST_PAUSE_S
        self._due = clock()
        self._problem = ""

    def look_again(self) -> None:
        """Check at the next call whether the queues exist: another leader may have removed them."""
        self._exist, self._pause_s, self._due = False, _FIRST_PAUSE_S, self._clock()

    def ensure(self) -> None:
        """Create the queues unless they exist or the last try was a moment ago."""
        if self._exist or self._clock() < self._due:
            return
        try:
            make_queues(self._cluster, self._default_queue)
        except ClusterError as error:
            self._due = self._clock() + self._pause_s
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
            if str(error) != self._problem:
                _log.warning("cannot create the default queues, trying again", error=error)
            self._problem = str(error)
            return
        if self._problem:
            _log.info("default queues exist")
        self._exist, self._problem = True, ""


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
