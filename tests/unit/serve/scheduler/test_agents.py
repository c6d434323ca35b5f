"""Pods of agents on the scheduler of batch jobs: neither a queue nor a pod group is stated."""

from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.controllers import all_controllers
from pumice.controllers.loop import ControllerLoop
from pumice.scheduler import Scheduler
from pumice.serve.scheduler.live_scheduler import LiveScheduler
from pumice.testing import node, pod, queue

NAMES = ("volcano", "agent-scheduler")


def test_a_pod_of_an_agent_is_bound_in_the_next_cycle() -> None:
    cluster = EmbeddedCluster(VirtualClock())
    agent = pod("agent", cpu=1)
    agent["spec"]["schedulerName"] = NAMES[1]
    for each in (queue("default"), node("n0", cpu=4), agent):
        cluster.create(each)
    made = all_controllers(scheduler_names=NAMES)
    ControllerLoop(cluster, made, cluster.clock, versions=cluster.tables.latest).run_until_quiet()

    LiveScheduler(cluster, Scheduler(parse_conf(DEFAULT_CONF)), names=NAMES).cycle()

    assert cluster.get("Pod", "default", "agent")["spec"]["nodeName"] == "n0"
