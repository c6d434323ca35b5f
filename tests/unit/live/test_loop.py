"""The loop of a served scheduler: ready before it decides, fenced, and not stopped by failures."""

import threading

import pytest

from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.cluster.base import DirectWriter
from pumice.cluster.embedded.clock import VirtualClock
from pumice.cluster.embedded.nodes import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import ConfError, FencedError, UnavailableError
from pumice.live import LiveOptions, run_scheduler
from pumice.live.loop import SchedulerLoop
from pumice.metrics import Metrics
from pumice.testing import pod, pod_group

QUEUE = "Queue.scheduling.volcano.sh"
ODD = 'actions: "enqueue, allocate, backfill"\ntiers: [{plugins: [{name: gang}]}]\n'


class Cluster(EmbeddedCluster):
    """An embedded cluster with what the loop asks of a real one."""

    def __init__(self):
        super().__init__(VirtualClock(0.0))
        self.missing = []
        self.fence = lambda: True

    def wait_synced(self, timeout_s):
        return self.missing.pop() if self.missing else []

    def submit(self, write, *, lane, done=None):
        if not self.fence():
            done(FencedError())
        else:
            DirectWriter(self).submit(write, lane=lane, done=done)

    def flush(self, timeout_s):
        return True


@pytest.fixture
def cluster():
    cluster = Cluster()
    add_node(cluster, "n", {"cpu": "4", "memory": "8Gi"})
    return cluster


def job(cluster, name="g"):
    cluster.create(pod_group(name, phase=None))
    cluster.create(pod(f"{name}-0", group=name, cpu=1))


def node_of(cluster, name="g-0"):
    return cluster.get("Pod", "default", name)["spec"].get("nodeName")


def ended_after(cycles, **options):
    """Give options that end the loop after some cycles, and what ends it."""
    stop, seen = threading.Event(), []

    def count(cycle):
        seen.append(cycle)
        if len(seen) == cycles:
            stop.set()

    given = {"conf": default(), "period_s": 0.0, "on_cycle": count, **options}
    return LiveOptions(**given), stop, seen


def default():
    conf = parse_conf(DEFAULT_CONF)
    return lambda: conf


def test_queues_are_made_and_pods_are_bound(cluster):
    job(cluster)
    options, stop, seen = ended_after(3)
    run_scheduler(cluster, options, Metrics(), stop)
    assert {m["metadata"]["name"] for m in cluster.list(QUEUE)[0]} == {"root", "default"}
    assert node_of(cluster) == "n"
    assert len(seen) == 3


def test_nothing_is_decided_before_caches_are_complete(cluster):
    cluster.missing = [["Pod"], ["Pod", "Node"]]
    told = []
    options, stop, _ = ended_after(1, on_ready=told.append)
    run_scheduler(cluster, options, None, stop)
    assert cluster.missing == []
    assert told == [True, False]


def test_a_stop_ends_the_wait_for_caches(cluster):
    stop = threading.Event()
    stop.set()
    told = []
    options = LiveOptions(conf=default(), on_ready=told.append)
    run_scheduler(cluster, options, None, stop)
    assert told == [False]
    assert cluster.list(QUEUE)[0] == []


def test_late_caches_are_told_once_and_waited_for(cluster, caplog):
    cluster.missing = [["Pod"]] * 3
    times = iter(range(0, 1000, 50))
    options, stop, _ = ended_after(1)
    run_scheduler(cluster, options, None, stop, clock=lambda: next(times))
    assert sum("caches are not complete" in r.message for r in caplog.records) == 1


def test_only_the_leader_decides(cluster):
    job(cluster)
    leads = iter([False, False, False])
    options, stop, seen = ended_after(2, is_leader=lambda: next(leads, True))
    run_scheduler(cluster, options, Metrics(), stop)
    assert len(seen) == 2
    assert node_of(cluster) == "n"


def test_what_was_decided_when_the_lease_was_lost_is_dropped(cluster):
    job(cluster)
    answers = [True, False]
    options, stop, seen = ended_after(2, is_leader=lambda: answers.pop(0) if answers else True)
    run_scheduler(cluster, options, Metrics(), stop)
    assert seen[0].dropped
    assert seen[0].decisions.binds == {"default/g-0": "n"}
    assert not seen[1].dropped
    assert node_of(cluster) == "n"


def looping(cluster, **options):
    """Give a loop to be turned by hand."""
    given = {"conf": default(), **options}
    return SchedulerLoop(cluster, LiveOptions(**given), None, cluster.now)


def test_who_leads_again_starts_from_the_cluster(cluster):
    """A write held back by the fence is neither lost nor remembered."""
    job(cluster)
    leads = [True, True, False, True, True]
    loop = looping(cluster, is_leader=lambda: leads.pop(0))
    cluster.fence = lambda: False
    loop._turn()
    assert node_of(cluster) is None
    cluster.fence = lambda: True
    loop._turn()
    loop._turn()
    assert node_of(cluster) == "n"
    assert leads == []


def test_after_each_failed_cycle_the_pause_is_longer(cluster, monkeypatch):
    loop = looping(cluster)

    def down(manifest):
        raise UnavailableError(problem="down")

    with monkeypatch.context() as patched:
        patched.setattr(cluster, "create", down)
        assert [loop._turn() for _ in range(6)] == [2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert loop._turn() == 1.0


def test_a_cycle_broken_while_writing_starts_over(cluster):
    job(cluster)
    loop = looping(cluster)
    loop._turn()
    first = loop._live
    first._write = None
    assert loop._turn() == 2.0
    assert loop._live is None
    loop._turn()
    assert loop._live is not first


def test_a_new_configuration_is_used_from_the_next_cycle(cluster):
    confs = [parse_conf(DEFAULT_CONF)] * 2 + [parse_conf(ODD)]
    used = []
    options, stop, _ = ended_after(3, conf=lambda: confs.pop(0))
    loop = SchedulerLoop(cluster, options, None, cluster.now)
    for _ in range(3):
        loop._turn()
        used.append(loop._live.scheduler)
    assert used[0] is used[1]
    assert used[2] is not used[1]
    assert stop.is_set()


def test_a_refused_configuration_leaves_the_last_good_one(cluster, caplog):
    good, bad = parse_conf(DEFAULT_CONF), parse_conf('actions: "allocate, dance"\n')
    confs = [good, bad, bad]
    options, _, _ = ended_after(9, conf=lambda: confs.pop(0))
    loop = SchedulerLoop(cluster, options, None, cluster.now)
    for _ in range(3):
        assert loop._turn() == 0.0
        assert loop._live.scheduler.conf is good
    assert sum("configuration refused" in r.message for r in caplog.records) == 1


def test_without_any_good_configuration_nothing_is_decided(cluster):
    bad = parse_conf('actions: "allocate, dance"\n')
    options, _, seen = ended_after(9, conf=lambda: bad)
    loop = SchedulerLoop(cluster, options, None, cluster.now)
    with pytest.raises(ConfError):
        loop._configured()
    loop._turn()
    assert seen == []


def test_use_of_nodes_is_measured_as_the_configuration_says(cluster, monkeypatch):
    made = []

    class Fake:
        def __init__(self, metrics, clock):
            if metrics.get("address") == "bad":
                raise ConfError
            self.metrics, self.state, self.nodes = metrics, "", []
            made.append(self)

        def start(self):
            self.state = "runs"

        def stop(self):
            self.state = "ended"

        def tell_nodes(self, nodes):
            self.nodes = [node.metadata.name for node in nodes]

        def latest(self):
            return {"n": {"cpu": 1.0}}

    monkeypatch.setattr("pumice.live.loop.BackgroundUsage", Fake)
    text = f"{ODD}metrics: {{type: prometheus, address: %s}}\n"
    confs = [parse_conf(text % "a"), parse_conf(text % "a"), parse_conf(text % "bad")]
    options, _, _ = ended_after(9, conf=lambda: confs.pop(0))
    loop = SchedulerLoop(cluster, options, None, cluster.now)
    for _ in range(2):
        loop._turn()
        assert loop._node_usage(0.0) == {"n": {"cpu": 1.0}}
    (source,) = made
    assert (source.state, source.nodes) == ("runs", ["n"])
    loop._turn()
    assert source.state == "ended"
    assert loop._node_usage(0.0) == {}


def test_figures_are_counted(cluster):
    job(cluster)
    metrics = Metrics()
    options, stop, _ = ended_after(3)
    run_scheduler(cluster, options, metrics, stop)
    text = metrics.text()
    for line in (
        'volcano_schedule_attempts_total{result="scheduled"} 1',
        'pumice_writes_total{result="ok",verb="bind"} 1',
        'volcano_action_scheduling_latency_milliseconds_count{action="allocate"} 3',
        "volcano_e2e_scheduling_latency_milliseconds_count 3",
        'pumice_cache_objects{kind="Pod"} 1',
        'volcano_e2e_job_scheduling_duration{job_name="g"',
    ):
        assert line in text
