"""A pod whose bind was refused is decided again as if it were new."""

from typing import Any

from pumice.api.conf import parse_conf
from pumice.clock import VirtualClock
from pumice.cluster.base import DirectWriter
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import RejectedError
from pumice.scheduler import Scheduler
from pumice.serve.scheduler.default_queues import make_queues
from pumice.serve.scheduler.live_scheduler import LiveScheduler
from pumice.testing import pod, pod_group

CONF = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: nodeorder}]
"""


class Refusing(DirectWriter):
    """Refuses every bind."""

    def submit(self, write: Any, *, lane: Any, done: Any = None) -> None:
        if write.verb == "bind":
            done(RejectedError("Pod", problem="no"))
        else:
            super().submit(write, lane=lane, done=done)


def test_a_pod_that_was_refused_still_goes_to_its_nominated_node_first() -> None:
    clock = VirtualClock(0.0)
    cluster = EmbeddedCluster(clock)
    make_queues(cluster)
    add_node(cluster, "nominated", {"cpu": "1", "memory": "8Gi"})
    add_node(cluster, "better", {"cpu": "64", "memory": "8Gi"})
    cluster.create(pod_group("g", phase=None))
    cluster.create(pod("p", group="g", cpu=1))
    cluster.merge_status("Pod", "default", "p", {"nominatedNodeName": "nominated"})
    live = LiveScheduler(
        cluster, Scheduler(parse_conf(CONF)), assume=True, writer=Refusing(cluster), confirm_s=10.0
    )
    tried: list[tuple[str, str]] = []
    for _ in range(6):
        tried += live.cycle().decisions.binds.items()
        clock.advance(1)
    assert tried == [("default/p", "nominated")] * 3
