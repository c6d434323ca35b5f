"""The loop of a served scheduler: ready before it decides, fenced, and not stopped by failures."""

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from pumice.api.annotations import PREEMPTABLE, REVOCABLE_ZONE
from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.clock import VirtualClock
from pumice.cluster.base import DirectWriter
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import FencedError, RejectedError, UnavailableError
from pumice.framework.plugin_session import PluginSession
from pumice.metrics import Metrics
from pumice.plugins.gang import Gang
from pumice.plugins.rescheduling import Rescheduling, Strategy
from pumice.scheduler import Scheduler
from pumice.serve.options import SchedulerOptions
from pumice.serve.scheduler.conf_reload import ConfFile
from pumice.serve.scheduler.default_queues import make_queues
from pumice.serve.scheduler.loop import SchedulerLoop
from pumice.testing import pod, pod_group, queue

QUEUE = "Queue.scheduling.volcano.sh"
ODD = 'actions: "enqueue, allocate, backfill"\ntiers: [{plugins: [{name: gang}]}]\n'


class Cluster(EmbeddedCluster):
    """An embedded cluster with what the loop asks of a real one."""

    def __init__(self) -> None:
        super().__init__(VirtualClock(0.0))
        self.missing: list[Any] = []
        self.outdated: list[Any] = []
        self.fence: Callable[[], bool] = lambda: True

    def wait_current(self, timeout_s: Any) -> Any:
        return self.outdated

    def wait_synced(self, timeout_s: Any) -> Any:
        return self.missing.pop() if self.missing else []

    def read(self, kind: Any, namespace: Any, name: Any, *, timeout_s: Any) -> Any:
        return self.get(kind, namespace, name)

    def new_wake(self) -> threading.Event:
        return threading.Event()

    def troubles(self) -> Any:
        return {}

    def submit(self, write: Any, *, lane: Any, done: Any = None) -> None:
        if not self.fence():
            done(FencedError())
        else:
            DirectWriter(self).submit(write, lane=lane, done=done)

    def flush(self, timeout_s: Any) -> bool:
        return True


@pytest.fixture
def cluster() -> Any:
    cluster = Cluster()
    make_queues(cluster)
    add_node(cluster, "n", {"cpu": "4", "memory": "8Gi"})
    return cluster


def job(cluster: Any, name: str = "g") -> None:
    cluster.create(pod_group(name, phase=None))
    cluster.create(pod(f"{name}-0", group=name, cpu=1))


def node_of(cluster: Any, name: str = "g-0") -> Any:
    return cluster.get("Pod", "default", name)["spec"].get("nodeName")


def looping(cluster: Any, period_s: float = 1.0, cycle: str = "event", **given: Any) -> Any:
    """Return a loop to be turned by hand."""
    given = {"latest_scheduler": default(), "metrics": Metrics(), "clock": cluster.now, **given}
    return SchedulerLoop(
        cluster, SchedulerOptions(schedule_period_s=period_s, cycle=cycle), **given
    )


def ended_after(cluster: Any, cycles: Any, **given: Any) -> Any:
    """Return a loop without pauses, what ends it after some cycles, and the cycles seen."""
    stop, seen = threading.Event(), []

    def count(cycle: Any) -> None:
        seen.append(cycle)
        if len(seen) == cycles:
            stop.set()

    return looping(cluster, 0.0, **{"on_cycle": count, **given}), stop, seen


def default() -> Any:
    scheduler = Scheduler(parse_conf(DEFAULT_CONF))
    return lambda: scheduler


def test_queues_are_made_and_pods_are_bound() -> None:
    cluster = Cluster()
    add_node(cluster, "n", {"cpu": "4", "memory": "8Gi"})
    job(cluster)
    loop, stop, seen = ended_after(cluster, 3)
    loop.run(stop)
    assert {m["metadata"]["name"] for m in cluster.list(QUEUE)[0]} == {"root", "default"}
    assert node_of(cluster) == "n"
    assert len(seen) == 3


def test_nothing_is_decided_before_caches_are_complete(cluster: Any) -> None:
    cluster.missing = [["Pod"], ["Pod", "Node"]]
    left = []

    class Watching(Metrics):
        def ready(self, *, is_ready: bool) -> None:
            left.append((len(cluster.missing), is_ready))

    loop, stop, _ = ended_after(cluster, 1, metrics=Watching())
    loop.run(stop)
    assert left == [(0, True)]


def test_nothing_is_decided_or_written_while_caches_may_be_behind(
    cluster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    times, metrics = itertools.count(), Metrics()
    job(cluster)
    loop = looping(cluster, clock=lambda: next(times), metrics=metrics)
    cluster.outdated = ["Pod", "Node"]
    before = cluster.version
    with caplog.at_level("INFO"):
        for _ in range(5):
            assert loop._turn() == 0.0
    assert cluster.version == before
    (line,) = lines(caplog, "waiting for objects to be synced")
    assert line.values["kinds"] == "Pod, Node"
    assert 'pumice_watch_ok{kind="Pod"} 0' in metrics.text()
    cluster.outdated = []
    with caplog.at_level("INFO"):
        assert loop._turn() == 1.0
    assert len(lines(caplog, "objects synced")) == 1
    assert 'pumice_watch_ok{kind="Pod"} 1' in metrics.text()
    assert cluster.list(QUEUE)[0]
    assert node_of(cluster) == "n"
    job(cluster, "later")
    cluster.outdated = ["Pod"]  # a gap later on
    loop._turn()
    assert node_of(cluster, "later-0") is None


def test_a_stop_ends_the_wait_for_caches() -> None:
    cluster = Cluster()
    stop, metrics = threading.Event(), Metrics()
    stop.set()
    looping(cluster, metrics=metrics).run(stop)
    assert "pumice_ready 0" in metrics.text()
    assert cluster.list(QUEUE)[0] == []


def test_the_lead_can_be_lost_and_won_more_than_once(cluster: Any) -> None:
    leads = True
    metrics = Metrics()
    loop = looping(cluster, is_leader=lambda: leads, metrics=metrics)

    def reported(number: int) -> bool:
        return f"pumice_leader {number}" in metrics.text().splitlines()

    for turn in range(3):
        leads = True
        job(cluster, f"g{turn}")
        for _ in range(3):
            loop._turn()
        assert node_of(cluster, f"g{turn}-0") == "n"
        assert reported(1)
        leads = False
        loop._turn()
        assert reported(0)
        job(cluster, f"unled{turn}")
        loop._turn()
        assert node_of(cluster, f"unled{turn}-0") is None


def test_what_was_decided_when_the_lease_was_lost_is_dropped(cluster: Any) -> None:
    job(cluster)
    answers = [True, False]
    loop, stop, seen = ended_after(
        cluster, 2, is_leader=lambda: answers.pop(0) if answers else True
    )
    loop.run(stop)
    assert seen[0].dropped
    assert seen[0].decisions.binds == {"default/g-0": "n"}
    assert not seen[1].dropped
    assert node_of(cluster) == "n"


def test_who_leads_again_starts_from_the_cluster(cluster: Any) -> None:
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


def test_after_each_failed_cycle_the_pause_is_longer(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = looping(cluster)

    def down() -> None:
        raise UnavailableError(problem="down")

    with monkeypatch.context() as patched:
        patched.setattr(loop, "_latest_scheduler", down)
        assert [loop._turn() for _ in range(6)] == [2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
        assert loop.problem() == "6 cycles failed in a row: UnavailableError: : down"
    assert loop._turn() == 1.0
    assert loop.problem() == ""


def test_pods_of_other_queues_are_bound_while_a_webhook_refuses_the_default_queues(
    monkeypatch: pytest.MonkeyPatch, talkative: Any
) -> None:
    cluster = Cluster()
    add_node(cluster, "n", {"cpu": "4", "memory": "8Gi"})
    cluster.create(queue("mine"))
    cluster.patch(QUEUE, "", "mine", {"status": {"state": "Open"}}, subresource="status")
    cluster.create(pod_group("g", queue="mine", phase=None))
    cluster.create(pod("g-0", group="g", cpu=1))
    now = [0.0]

    def down(manifest: Any) -> None:
        if manifest["kind"] == "Queue":
            tried.append(now[0])
        raise UnavailableError(problem="failed calling webhook")

    tried: list[float] = []
    loop = looping(cluster, clock=lambda: now[0])
    with monkeypatch.context() as patched:
        patched.setattr(cluster, "create", down)
        for at in range(12):
            now[0] = float(at)
            assert loop._turn() == 1.0
        assert node_of(cluster) == "n"
        assert tried == [0.0, 1.0, 3.0, 7.0]
    now[0] = 15.0
    loop._turn()
    names = {m["metadata"]["name"] for m in cluster.list(QUEUE)[0]}
    assert names == {"mine", "root", "default"}
    assert len(lines(talkative, "cannot create the default queues, trying again")) == 1


def torn(loop: Any, monkeypatch: pytest.MonkeyPatch, name: str = "_write") -> None:
    """Make a cycle fail in one of its parts."""

    def raises(*_: Any) -> None:
        raise RuntimeError("torn")

    with monkeypatch.context() as patched:
        patched.setattr(loop._live, name, raises)
        loop._turn()


class Slow(Cluster):
    """Queues writes, and does them on demand."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Any] = []

    def submit(self, write: Any, *, lane: Any, done: Any = None) -> None:
        self.waiting.append((write, lane, done))

    def flush(self, timeout_s: Any) -> bool:
        return not self.waiting

    def go(self, *verbs: Any) -> None:
        waiting, self.waiting = self.waiting, []
        for write, lane, done in waiting:
            if write.verb in verbs:
                DirectWriter(self).submit(write, lane=lane, done=done)


@pytest.fixture
def slow() -> Any:
    cluster = Slow()
    make_queues(cluster)
    add_node(cluster, "n", {"cpu": "1", "memory": "8Gi"})
    job(cluster)
    return cluster


def test_writes_in_flight_are_waited_for_at_the_end(
    slow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flush(timeout_s: float) -> bool:
        slow.go("bind", "patch")
        return timeout_s > 0

    monkeypatch.setattr(slow, "flush", flush)
    loop, stop, _ = ended_after(slow, 1)
    loop.run(stop)
    assert node_of(slow) == "n"


def binds(cluster: Any) -> Any:
    return [write.arguments["pod"] for write, _, _ in cluster.waiting if write.verb == "bind"]


def test_binds_still_queued_keep_their_room_after_a_cycle_broke_off(
    slow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither are they decided twice nor is their room given to others."""
    loop = looping(slow)
    loop._turn()
    assert binds(slow) == ["g-0"]
    torn(loop, monkeypatch)
    job(slow, "h")
    for _ in range(3):
        slow.clock.advance(60)
        loop._turn()
        assert binds(slow) == ["g-0"]
    slow.go("bind", "patch")
    loop._turn()
    assert node_of(slow) == "n"
    assert loop._live.recovery.open == 0


def test_who_leads_again_remembers_what_it_has_sent(slow: Any) -> None:
    leads = [True]
    loop = looping(slow, is_leader=lambda: leads[0])
    loop._turn()
    leads[0] = False
    loop._turn()
    job(slow, "h")
    leads[0] = True
    loop._turn()
    assert binds(slow) == ["g-0"]


def test_an_old_bind_without_an_answer_is_looked_up_and_not_sent_again(
    slow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its decision is based on replaced tables: others may have taken the room."""
    loop = looping(slow)
    loop._turn()
    torn(loop, monkeypatch)
    for write, _, done in slow.waiting:
        if write.verb == "bind":
            done(UnavailableError(problem="no answer"))
    slow.waiting = []
    loop._turn()
    assert binds(slow) == []
    slow.clock.advance(6)
    loop._turn()
    assert loop._live.recovery.undone == 1


@dataclass(kw_only=True)
class Everybody(Strategy, name="everybody"):
    """Finds that every task should run elsewhere."""

    def victims(self, ssn: PluginSession, running: list[int]) -> list[int]:
        return running


@dataclass(kw_only=True)
class Restless(Rescheduling, name="rescheduling"):
    registry = MappingProxyType({Everybody.name: Everybody})


RESCHEDULING = """
actions: "shuffle"
tiers:
- plugins:
  - name: rescheduling
    arguments: {interval: 10m, strategies: [{name: everybody}]}
"""
TDM = """
actions: "shuffle"
tiers:
- plugins:
  - name: tdm
    arguments: {tdm.evict.period: 10m, tdm.revocable-zone.z: "10:00-11:00"}
"""


@pytest.mark.parametrize(
    ("text", "evicted_at"), [(RESCHEDULING, [601.0]), (TDM, [0.0, 600.0])], ids=["wait", "begin"]
)
def test_a_reload_does_not_forget_when_a_plugin_last_ran(
    cluster: Any, text: str, evicted_at: list[float]
) -> None:
    """Rescheduling also waits one interval from the start of the process, as Volcano does."""
    cluster.patch("Node", "", "n", {"metadata": {"labels": {REVOCABLE_ZONE: "z"}}})
    cluster.create(pod_group("g", min_member=0))
    running = pod("g-0", group="g", cpu=1, node="n", annotations={PREEMPTABLE: "true"})

    def reloaded() -> Scheduler:
        return Scheduler(parse_conf(text), plugins={"rescheduling": Restless})

    seen: list[Any] = []
    loop = looping(cluster, latest_scheduler=reloaded, on_cycle=seen.append)
    for at in (0.0, 3.0, 5.0, 600.0, 601.0, 605.0):
        cluster.clock.advance_to(at)
        cluster.restore([{**running, "metadata": {**running["metadata"], "uid": f"at {at}"}}])
        loop._turn()
    assert [cycle.at for cycle in seen if cycle.decisions.evictions] == evicted_at


def test_a_refused_configuration_leaves_the_last_good_one(
    cluster: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "conf"
    path.write_text(ODD)
    conf_file = ConfFile(str(path), Scheduler)
    loop = looping(cluster, 0.0, latest_scheduler=conf_file.latest)
    good = conf_file.current
    for text in (ODD, 'actions: "allocate, dance"\n', 'actions: "allocate, dance"\n# again\n'):
        path.write_text(text)
        assert loop._turn() == 0.0
        assert loop._live.scheduler is good
    assert sum("configuration not usable" in r.message for r in caplog.records) == 1


def lines(caplog: pytest.LogCaptureFixture, message: Any) -> Any:
    return [record for record in caplog.records if record.message == message]


@pytest.fixture
def talkative(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level("INFO", logger="pumice")
    return caplog


def test_where_a_cycle_failed_is_reported_once_for_each_failure(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, talkative: Any
) -> None:
    loop = looping(cluster)
    loop._turn()
    for _ in range(3):
        torn(loop, monkeypatch)
    (line,) = lines(talkative, "where it failed")
    assert "RuntimeError: torn" in line.values["trace"]
    assert len(lines(talkative, "cycle failed")) == 3


def test_a_cycle_that_fails_because_of_the_cluster_needs_no_trace(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, talkative: Any
) -> None:
    loop = looping(cluster)
    monkeypatch.setattr(loop, "_cycle", raising(RejectedError("Queue", "", "root", "no")))
    loop._turn()
    (line,) = lines(talkative, "cycle failed")
    assert line.values["error"] == "RejectedError: Queue root: no"
    assert not lines(talkative, "where it failed")


def raising(error: Exception) -> Any:
    def fail() -> None:
        raise error

    return fail


def test_a_failed_write_is_reported_at_once_then_seldom(cluster: Any, talkative: Any) -> None:
    for name in ("a", "b", "c"):
        job(cluster, name)
    cluster.submit = lambda write, *, lane, done: done(RejectedError("Pod", problem="no"))
    loop = looping(cluster)
    loop._turn()
    reported = [line for line in lines(talkative, "write failed") if line.values["what"] == "bind"]
    assert len(reported) == 1
    cluster.clock.advance(61)
    loop._turn()
    reported = [line for line in lines(talkative, "write failed") if line.values["what"] == "bind"]
    assert [line.values.get("more") for line in reported] == [None, 2]


def test_a_skipped_plugin_is_reported_once(cluster: Any, talkative: Any, monkeypatch: Any) -> None:
    close, failing = Gang.on_close, [False, True, True, True, False]

    def fails_at_times(self: Any, ssn: Any) -> None:
        if failing.pop(0):
            raise RuntimeError("no")
        close(self, ssn)

    monkeypatch.setattr(Gang, "on_close", fails_at_times)
    loop = looping(cluster)

    def turn(number: int) -> None:
        cluster.create(queue(f"new-{number}"))  # else the last cycle stands
        loop._turn()

    for each in range(4):
        turn(each)
    assert len(lines(talkative, "plugin failed and was skipped")) == 1
    turn(4)
    assert len(lines(talkative, "all plugins work again")) == 1


def test_a_bad_object_is_reported_once_by_name(cluster: Any, talkative: Any) -> None:
    bad = pod("bad", cpu=1)
    bad["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "much"}}
    cluster.create(bad)
    loop = looping(cluster)
    for _ in range(2):
        loop._turn()
        change = {"metadata": {"labels": {"at": str(cluster.version)}}}
        cluster.patch("Pod", "default", "bad", change)
    (line,) = lines(talkative, "object skipped")
    assert (line.values["kind"], line.values["object"]) == ("Pod", "default/bad")


def test_a_kind_that_is_not_followed_is_reported_and_counted(cluster: Any, talkative: Any) -> None:
    troubles, metrics = {"Pod": "403"}, Metrics()
    cluster.troubles = lambda: dict(troubles)
    loop = looping(cluster, metrics=metrics)
    for _ in range(2):
        loop._turn()
    assert len(lines(talkative, "watch interrupted")) == 1
    assert 'pumice_watch_ok{kind="Pod"} 0' in metrics.text()
    troubles.clear()
    loop._turn()
    assert len(lines(talkative, "watch resumed")) == 1
    assert 'pumice_watch_ok{kind="Pod"} 1' in metrics.text()


def test_cycles_go_on_while_there_are_pods_and_no_jobs() -> None:
    cluster = Cluster()
    make_queues(cluster)
    add_node(cluster, "n", {"cpu": "4", "memory": "8Gi"})
    loop = looping(cluster, cycle="period")
    cluster.create(pod("alone", cpu=1))
    for number in range(4):
        cluster.patch("Node", "", "n", {"metadata": {"labels": {"number": str(number)}}})
        loop._turn()
    assert loop.problem() == ""


def test_a_bind_decided_but_never_handed_in_is_decided_again(
    slow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = looping(slow)
    loop._turn()
    slow.waiting = []
    loop._live.binder._underway.clear()
    torn(loop, monkeypatch)
    for _ in range(4):
        slow.clock.advance(3)
        loop._turn()
    assert binds(slow) == ["g-0"]
