"""What stands is not decided again: a cycle that moved nothing, and jobs that were refused."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.core.snapshot import Snapshot
from pumice.plugin import Plugin
from pumice.scheduler import Scheduler
from pumice.serve.scheduler.live_scheduler import LiveScheduler
from pumice.standing.refused_jobs import CHECKED_EACH_S
from pumice.testing import node, pod, pod_group, queue

CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}, {name: predicates}, %s]
"""
FULL = [
    queue("default"),
    node("n1", cpu=4),
    pod_group("big", min_member=1, phase="Inqueue"),
    pod("big-0", group="big", cpu=8),
]


class Moody(Plugin, name="moody"):
    """Declares nothing."""


class Count(Scheduler):
    """Counts the cycles that it decides."""

    n = 0

    def _act(self, *args: Any) -> bool:
        self.n += 1
        return super()._act(*args)


def loaded(*more: dict[str, Any]) -> Ingest:
    ingest = Ingest(Snapshot())
    ingest.load(map(from_manifest, [*FULL, *more]))
    return ingest


def decided(plugin: str, *times: float, ingest: Ingest | None = None) -> Count:
    """Decide at some times, with nothing changed in between."""
    scheduler = Count(parse_conf(CONF % plugin), plugins={"moody": Moody})
    snapshot = (ingest or loaded()).snapshot
    for at in times:
        decisions = scheduler.decide(snapshot, at, repeats=True)
        assert decisions.explanations.keys() == {"default/big"}
    return scheduler


@pytest.mark.parametrize(
    ("plugin", "times", "n"),
    [
        pytest.param("{name: binpack}", (0, 1, 2), 1, id="it stands"),
        pytest.param("{name: moody}", (0, 1, 2), 3, id="a plugin says nothing"),
        pytest.param("{name: binpack}", (0, 59, 60, 61), 2, id="it is compared each minute"),
        pytest.param(
            '{name: tdm, arguments: {tdm.revocable-zone.a: "00:00-00:30"}}',
            (1790, 1799, 1865),
            2,
            id="a window closes",
        ),
    ],
)
def test_a_cycle_stands_until_time_or_a_plugin_may_change_it(
    plugin: str, times: tuple[float, ...], n: int
) -> None:
    scheduler = decided(plugin, *times)
    assert (scheduler.n, scheduler.standing.mismatches) == (n, 0)


def test_a_change_or_a_placement_is_followed_by_another_cycle() -> None:
    ingest = loaded()
    scheduler = decided("{name: binpack}", 0, 1, ingest=ingest)
    for manifest in (pod_group("small", phase="Inqueue"), pod("small-0", group="small", cpu=1)):
        ingest.upsert(from_manifest(manifest))
    snapshot = ingest.settle()
    for _ in range(2):
        assert scheduler.decide(snapshot, 2, repeats=True).binds == {"default/small-0": "n1"}
    assert scheduler.n == 3


def test_a_cycle_that_should_not_have_stood_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    ingest = loaded()
    scheduler = decided("{name: binpack}", 0, ingest=ingest)
    before = ingest.snapshot.changes
    ingest.upsert(from_manifest(node("n1", cpu=16)))
    snapshot = ingest.settle()
    snapshot.changes = before  # as if ingest had not said so
    assert not scheduler.decide(snapshot, 1, repeats=True).binds
    assert scheduler.decide(snapshot, CHECKED_EACH_S, repeats=True).binds
    assert scheduler.standing.mismatches == 1
    assert "decided otherwise" in caplog.text


# Jobs that were refused

BIG = [
    manifest
    for name in ("big-1", "big-2", "big-3")
    for manifest in (
        pod_group(name, min_member=1, phase="Inqueue"),
        pod(f"{name}-0", group=name, cpu=8),
    )
]


def put(cluster: EmbeddedCluster, *manifests: dict[str, Any]) -> None:
    """Make objects, or replace the node."""
    for manifest in manifests:
        if manifest["kind"] != "Node":
            cluster.create(manifest)
            continue
        spec = {"unschedulable": bool(manifest.get("spec"))}
        known = cluster.update(cluster.get("Node", "", "n1") | {"spec": spec})
        cluster.update_status(known | {"status": manifest["status"]})


def served(
    plugin: str = "binpack", clock: VirtualClock | None = None
) -> tuple[EmbeddedCluster, LiveScheduler]:
    """Return a full cluster whose scheduler has said all that there is to say."""
    cluster = EmbeddedCluster(clock or VirtualClock(0), record_events=False)
    cluster.restore([*FULL, *BIG])
    conf = parse_conf(CONF % f"{{name: {plugin}}}")
    live = LiveScheduler(cluster, Scheduler(conf, plugins={"moody": Moody}))
    for _ in range(2):
        live.cycle()
    return cluster, live


def test_refused_jobs_that_should_have_been_tried_are_counted() -> None:
    clock = VirtualClock(0)
    cluster, live = served(clock=clock)
    before = live.informer.snapshot.other_changes
    for pause_s, binds in ((0, 0), (CHECKED_EACH_S, 2)):
        put(cluster, node("n1", cpu=16), pod_group(f"empty-{binds}"))
        clock.advance(pause_s)
        live.informer.sync()
        live.informer.snapshot.other_changes = before  # as if ingest had not said so
        assert len(live.cycle().decisions.binds) == binds
    assert live.scheduler.take_mismatches() == 1


def test_heartbeats_of_nodes_change_nothing() -> None:
    cluster, live = served()
    seen = []
    for second in range(3):
        beat = {
            "type": "Ready",
            "status": "True",
            "lastHeartbeatTime": f"2026-01-15T10:00:0{second}Z",
        }
        cluster.patch("Node", "", "n1", {"status": {"conditions": [beat]}}, subresource="status")
        live.informer.sync()
        seen.append(live.informer.snapshot.changes)
    assert seen[0] == seen[1] == seen[2]
