"""A scheduler that is recorded decides again as it did, decision by decision."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from pumice.api.annotations import RUN_SECONDS
from pumice.api.conf import parse_conf
from pumice.cli.main import main
from pumice.clock import VirtualClock
from pumice.cluster.base import Cluster, DirectWriter, Write
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.cluster.services import SERVICES
from pumice.errors import ConflictError, InputError, RejectedError
from pumice.records.entries import Settings
from pumice.records.history import History
from pumice.records.recorder import Limits, Recorder
from pumice.replay.exact import Fidelity, replay_exactly
from pumice.scheduler import Scheduler
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.serve.recording import Recording
from pumice.serve.scheduler.live_scheduler import LiveScheduler
from pumice.testing import pod, pod_group, priority_class, queue

START = 1_767_225_600.0
CONF = """
actions: enqueue, allocate, backfill, preempt, reclaim
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}, {name: binpack}]
"""


class FaultyCluster(EmbeddedCluster):
    """Refuses some writes, as a cluster does in which others write too."""

    def __init__(self, clock: VirtualClock, rng: np.random.Generator) -> None:
        super().__init__(clock)
        self._rng = rng

    def bind(self, namespace: str, pod: str, *words: Any, **given: Any) -> None:
        if self._rng.random() < 0.1:
            raise ConflictError("Pod", namespace, pod, "somebody was faster")
        super().bind(namespace, pod, *words, **given)

    def evict(self, namespace: str, pod: str, *words: Any, **given: Any) -> None:
        if self._rng.random() < 0.1:
            raise RejectedError("Pod", namespace, pod, "it has to stay")
        super().evict(namespace, pod, *words, **given)


def record_churn(
    folder: Path, seed: int, hours: float, conf: str = CONF, *, disturbed: bool = True
) -> EmbeddedCluster:
    """Record jobs that come, run, are evicted and deleted, and nodes that come and go."""
    rng, clock = np.random.default_rng(seed), VirtualClock(START)
    cluster = FaultyCluster(clock, rng)
    recorded = Recorded(folder, cluster, conf)
    for number in range(4):
        add_node(cluster, f"n{number}", {"cpu": "8", "memory": "32Gi"})
    for name, cpu in (("a", 8), ("b", 24)):
        cluster.create(queue(name, deserved={"cpu": cpu}))
    for name, value in (("high", 100), ("low", 1)):
        cluster.create(priority_class(name, value=value))
    number = 0
    while clock.now() < START + 3600 * hours:
        number += 1
        _arrive(cluster, rng, f"j{number}")
        if disturbed:
            _disturb(cluster, rng, number)
            recorded.disturb(number)
        recorded.plane.run(clock.now() + float(rng.integers(20, 200)))
    recorded.recording.close()
    return cluster


class Recorded:
    """A recorded scheduler that is started again, configured anew, and cut off from its watches."""

    def __init__(self, folder: Path, cluster: EmbeddedCluster, conf: str) -> None:
        self._folder, self._cluster = folder, cluster
        self._texts = [
            conf,
            conf.replace("{name: predicates}, ", "{name: predicates}, {name: sla}, "),
        ]
        self.start()

    def start(self) -> None:
        cluster, now = self._cluster, self._cluster.clock.now
        self.recording = recording = Recording(
            self._folder, now, conf=lambda: (self._texts[0], "test"), beside=cluster,
            limits=Limits(segment_s=1200.0),
        )  # fmt: skip

        def observed(found: EmbeddedCluster) -> Cluster:
            return recording.observed(found)

        self.plane = EmbeddedControlPlane(
            parse_conf(self._texts[0]), cluster=cluster, observed=observed, write_causes=True,
            idle_period_s=60.0,
        )  # fmt: skip
        recording.recorder.settings(Settings())
        recording.note_conf()
        self.plane.on_cycle += [recording.finished, lambda _: recording.recorder.flush()]

    def disturb(self, number: int) -> None:
        if number % 31 == 0:
            self.recording.close()
            self.start()
        elif number % 13 == 0:
            self._texts.reverse()
            self.plane.scheduler.scheduler = Scheduler(
                parse_conf(self._texts[0]), services=SERVICES
            )
            self.recording.note_conf()
        elif number % 7 == 0:
            self._cluster.compact()


def _arrive(cluster: EmbeddedCluster, rng: np.random.Generator, name: str) -> None:
    size, cpu = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    priority = ("high", "low")[int(rng.random() < 0.7)]
    group = pod_group(
        name, min_member=size, queue="ab"[int(rng.integers(2))], priority_class=priority
    )
    cluster.create(group)
    seconds = {RUN_SECONDS: str(int(rng.integers(60, 900)))}
    for task in range(size):
        made = pod(
            f"{name}-{task}", group=name, cpu=cpu, annotations=seconds, priority_class=priority
        )
        cluster.create(made)


def _disturb(cluster: EmbeddedCluster, rng: np.random.Generator, number: int) -> None:
    chance = rng.random()
    if chance < 0.1:
        add_node(cluster, f"more{number}", {"cpu": "8", "memory": "32Gi"})
    elif chance < 0.2:
        nodes = cluster.list("Node")[0]
        name = nodes[int(rng.integers(len(nodes)))]["metadata"]["name"]
        cluster.patch("Node", "", name, {"spec": {"unschedulable": bool(rng.random() < 0.5)}})
    elif chance < 0.3:
        pods = cluster.list("Pod")[0]
        if pods:
            cluster.delete("Pod", "default", pods[0]["metadata"]["name"])


RESERVED = """
actions: enqueue, allocate, backfill, reclaim
tiers:
- plugins: [{name: priority}, {name: gang}, {name: reservation}]
- plugins: [{name: fairshare}, {name: predicates}, {name: capacity}, {name: nodeorder}]
"""


@pytest.mark.parametrize(("seed", "conf", "hours"), [(1, CONF, 6.0), (1, RESERVED, 2.0)])
def test_hours_of_churn_with_faults_are_decided_again_exactly(
    tmp_path: Path, seed: int, conf: str, hours: float
) -> None:
    record_churn(tmp_path / "record", seed, hours, conf)
    history = History(tmp_path / "record")
    found = replay_exactly(history)
    assert found.differences == []
    assert found.is_exact
    assert found.evictions > 10
    assert found.gaps == 33 * int(hours) // 31
    assert found.binds > 40 * hours
    assert found.cycles > 60 * hours
    assert history.problems == []


class LateWriter:
    """Carries writes out some cycles after they were handed in, as a real cluster does."""

    def __init__(self, cluster: EmbeddedCluster, rng: np.random.Generator) -> None:
        self._direct = DirectWriter(cluster)
        self._rng = rng
        self._queue: list[Any] = []

    def submit(self, write: Write, **given: Any) -> None:
        self._queue.append((write, given))

    def deliver(self) -> None:
        some, self._queue = self._queue, []
        for write, given in some:
            if self._rng.random() < 0.6:
                self._direct.submit(write, **given)
            else:
                self._queue.append((write, given))

    def flush(self, timeout_s: float) -> bool:
        return True


@pytest.mark.parametrize("wake", [None, lambda: None], ids=["period", "event"])
def test_writes_that_end_late_or_fail_end_so_again(tmp_path: Path, wake: Any) -> None:
    rng, clock, conf = np.random.default_rng(1), VirtualClock(START), parse_conf(CONF)
    cluster = FaultyCluster(clock, rng)
    recording = Recording(tmp_path / "record", clock.now, conf=lambda: (CONF, "test"))
    plane, writer = EmbeddedControlPlane(conf, cluster=cluster), LateWriter(cluster, rng)
    live = LiveScheduler(
        recording.observed(cluster), Scheduler(conf), assume=True, writer=writer, clock=clock.now,
        wake=wake,
    )  # fmt: skip
    recording.recorder.settings(Settings(assume=True))
    add_node(cluster, "n1", {"cpu": "8", "memory": "32Gi"})
    for name, value in (("high", 100), ("low", 1)):
        cluster.create(priority_class(name, value=value))
    for name in "ab":
        cluster.create(queue(name, deserved={"cpu": 4}))
    for number in range(120):
        if number % 12 == 0:
            _arrive(cluster, rng, f"j{number}")
        if wake is not None:
            live.look()
        plane.settle()
        recording.finished(live.cycle())
        writer.deliver()
        clock.advance_to(clock.now() + (5.0 if wake is None else float(rng.choice([0.2, 9.8]))))
    recording.close()
    found = replay_exactly(History(tmp_path / "record"))
    assert (found.differences, found.cycles) == ([], 120)
    assert found.binds >= 10


def test_another_configuration_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record_churn(tmp_path / "record", 0, 0.5)
    done = CliRunner().invoke(main, ["replay", str(tmp_path / "record")])
    assert done.exit_code == 0, done.output
    assert "all as recorded" in done.stdout
    monkeypatch.setattr("pumice.replay.exact.parse_conf", lambda _: parse_conf(OTHER))
    done = CliRunner().invoke(main, ["replay", str(tmp_path / "record")])
    assert done.exit_code == 1
    assert "The first cycles that differ" in done.stdout


OTHER = "actions: enqueue, allocate\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n"


def test_a_record_of_an_observer_has_nothing_to_decide(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "record", lambda: START, by="observer")
    recorder.put(pod("p"))
    recorder.close()
    with pytest.raises(InputError, match="a record with the cycles of a scheduler"):
        replay_exactly(History(tmp_path / "record"))
    assert Fidelity().share == 1.0
