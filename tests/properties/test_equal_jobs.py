"""Equal jobs are refused together, and cycles stand while nothing changes.

What is decided and stated is as if each job were tried in each cycle.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.conf import DEFAULT_CONF, SchedulerConf, parse_conf
from pumice.api.decisions import Decisions
from pumice.api.kinds import POD
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.core.snapshot import Snapshot
from pumice.errors import NotFoundError
from pumice.framework.placement.equal_jobs import EqualJobs
from pumice.framework.session import Session
from pumice.scheduler import Observer, Scheduler
from pumice.serve.scheduler.live_scheduler import LiveScheduler
from pumice.testing import node, pod, pod_group, priority_class, queue
from tests.properties.full_clusters import Dice

NOW = 1768478400.0
EXAMPLES = Path(__file__).parents[2] / "examples"
CAPACITY = """
actions: "enqueue, allocate, reclaim, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}, {name: sla}]
- plugins: [{name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}, {name: tdm}]
"""
NO_GANGS = CAPACITY.replace("{name: gang}, ", "")
CONFIGURATIONS = {
    "default": DEFAULT_CONF,
    "evicting": (EXAMPLES / "volcano-scheduler.conf").read_text(),
    "capacity": CAPACITY,
    "no gangs": NO_GANGS,
}


class History:
    """A small cluster without much room, and what happens to it."""

    def __init__(self, seed: int) -> None:
        self._dice = Dice(seed)
        self._n = 0
        self._pods: dict[str, dict[str, Any]] = {}
        self._queues = self._dice.one_of([["blue"], ["blue", "green"]])
        self._levels = self._dice.one_of([["low"], ["low", "high"]])
        self._nodes = [f"n{each}" for each in range(self._dice.between(2, 4))]

    def first(self) -> Iterator[dict[str, Any]]:
        for name, value in (("low", 1), ("high", 1000)):
            yield priority_class(name, value=value)
        for name in self._queues:
            capability = {"cpu": self._dice.between(4, 12)} if self._dice.chance(0.3) else None
            deserved: dict[str, Any] = {"cpu": self._dice.between(2, 8), "memory": "16Gi"}
            yield queue(name, capability=capability, deserved=deserved)
        for name in self._nodes:
            yield node(name, cpu=4, memory="16Gi", pods=self._dice.one_of([3, 110]))
        for _ in range(self._dice.between(2, 8)):
            yield from self._gang(running=True)
        for _ in range(self._dice.between(4, 12)):
            yield from self._gang()

    def _gang(self, *, running: bool = False) -> Iterator[dict[str, Any]]:
        dice, name = self._dice, f"j{self._n}"
        self._n += 1
        size, cpu, level = dice.one_of([1, 2, 2]), dice.one_of([1, 2]), dice.one_of(self._levels)
        created = f"2026-01-15T10:{self._n // 60:02d}:{self._n % 60:02d}Z"
        yield pod_group(
            name,
            min_member=1 if running else size,
            queue=dice.one_of(self._queues),
            phase="Running" if running else dice.one_of(["Inqueue"] * 4 + ["Pending"]),
            min_resources={"cpu": size * cpu},
            priority_class=level,
            created=created,
        )
        for each in range(size):
            made = pod(
                f"{name}-w-{each}",
                group=name,
                role="w",
                cpu=cpu,
                memory=dice.one_of(["1Gi"] * 9 + ["6Gi"]),
                node=dice.one_of(self._nodes) if running else None,
                priority={"low": 1, "high": 1000}[level],
                priority_class=level,
                preemptable=True if running else None,
                labels={"job": name},
                created=created,
            )
            self._pods[made["metadata"]["name"]] = made
            yield made

    def change(self, cluster: EmbeddedCluster) -> None:
        """Make a gang come, a pod leave, or a node close or open."""
        what = self._dice.between(0, 4)
        if what == 0 or not self._pods:
            for manifest in self._gang():
                cluster.create(manifest)
        elif what < 3:
            name = self._dice.one_of([*self._pods])
            del self._pods[name]
            with suppress(NotFoundError):
                cluster.delete(POD, "default", name, grace_s=0)
        elif what < 4:
            changed = cluster.get("Node", "", self._dice.one_of(self._nodes))
            changed.setdefault("spec", {})["unschedulable"] = self._dice.chance(0.5)
            cluster.update(changed)


class Records(Observer):
    """Takes what a session knows of its jobs in the end."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        del decisions
        keys, records = ssn.snapshot.jobs.keys, ssn.records
        self.found = {
            keys[row]: (
                each.stage,
                each.why,
                {name: part for name, part in each.numbers.items() if name != "idle"},
                ssn.conditions.get(row),
                [records.no_fit.get(task) for task in ssn.snapshot.jobs.tasks[row]],
                [records.given_up.get(task) for task in ssn.snapshot.jobs.tasks[row]],
            )
            for row, each in records.by_job.items()
        }


def decide_alone(conf: SchedulerConf, snapshot: Snapshot) -> tuple[Decisions, dict[str, Any]]:
    records = Records()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EqualJobs, "key", lambda *_: None)
        found = Scheduler(conf).decide(snapshot, NOW, only_changes=True, observer=records)
    return found, records.found


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), name=st.sampled_from([*CONFIGURATIONS]))
def test_a_history_is_decided_as_if_every_job_were_tried(seed: int, name: str) -> None:
    history, cluster = History(seed), EmbeddedCluster(VirtualClock(NOW), record_events=False)
    cluster.restore([*history.first()])
    conf = parse_conf(CONFIGURATIONS[name])
    live, records = LiveScheduler(cluster, Scheduler(conf)), Records()
    for _ in range(8):
        live.catch_up()
        alone = decide_alone(conf, live.informer.snapshot)
        assert (live.cycle(records).decisions, records.found) == alone
        history.change(cluster)
    assert not live.scheduler.take_mismatches()
