"""Changes of all kinds leave what a fresh start with the last objects leaves, row by row."""

from typing import Any

import numpy as np
import pytest

from pumice.api.decisions import SCHEDULED
from pumice.api.objects import from_manifest, in_namespace
from pumice.cache.ingest import Ingest
from pumice.core.consistency import check
from pumice.core.snapshot import Snapshot
from pumice.testing import node, pod, pod_group, priority_class, queue
from tests.properties.clusters import described


class World:
    """Objects that change at random, told to a set of tables."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.ingest = Ingest(Snapshot())
        self.known: dict[tuple[str, str], Any] = {}

    def any_of(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def name(self, letter: str, n: int) -> str:
        return f"{letter}{self.rng.integers(n)}"

    def some_pod(self) -> Any:
        i = int(self.rng.integers(14))
        on = self.any_of(None, None, self.name("n", 5), self.name("n", 5))
        made = pod(
            f"p-{i}",
            namespace=("default", "team")[i % 2],
            group=self.any_of(None, f"g{i % 4}", f"g{i % 4}"),
            role=self.any_of(None, "ps", "worker"),
            cpu=self.any_of(None, 1, "250m"),
            memory=self.any_of(None, "1Gi"),
            resources=self.any_of({}, {}, {"example.com/chip": 2}),
            node=on,
            phase=self.any_of("Running", "Pending", "Succeeded", "Failed", "Unknown")
            if on
            else None,
            priority=self.any_of(None, 5, -5),
            preemptable=self.any_of(None, True, False),
            labels=self.any_of({}, {"app": "x"}),
            nominated_node=self.any_of(None, None, self.name("n", 5)),
            scheduler=self.any_of("volcano", "volcano", "other"),
            created=self.any_of(None, "2026-01-01T00:00:00Z"),
        )
        if on and self.rng.random() < 0.2:
            made["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
        if on and self.rng.random() < 0.4:
            made["status"]["startTime"] = "2026-01-01T00:00:05Z"
        if self.rng.random() < 0.2:
            made["spec"]["schedulingGates"] = [{"name": "wait"}]
        return made

    def some_group(self) -> Any:
        made = pod_group(
            self.name("g", 4),
            namespace=self.any_of("default", "team"),
            min_member=self.any_of(None, 0, 3),
            queue=self.any_of(None, self.name("q", 4)),
            phase=self.any_of("Pending", "Inqueue", "Running"),
            min_resources=self.any_of(None, {"cpu": 2}, {"example.com/chip": 1}),
            priority_class=self.any_of(None, "high", "low"),
            network_topology=self.any_of(None, {"mode": "soft"}),
            created=self.any_of(None, "2026-01-01T00:00:00Z"),
        )
        made["status"] |= self.any_of({}, {"running": 2, "succeeded": 1, "failed": 3})
        return made

    def some_queue(self) -> Any:
        return queue(
            self.name("q", 4),
            weight=self.any_of(None, 3),
            parent=self.any_of(None, self.name("q", 4)),
            priority=self.any_of(None, 7),
            state=self.any_of("Open", "Closed"),
            reclaimable=self.any_of(None, True, False),
            capability=self.any_of({}, {"cpu": 5}),
            deserved=self.any_of({}, {"cpu": 4, "example.com/chip": 0}),
            guarantee=self.any_of({}, {"memory": "1Gi"}),
        )

    def some_node(self) -> Any:
        return node(
            self.name("n", 5),
            cpu=self.any_of(4, 8),
            labels=self.any_of({}, {"zone": "x"}),
            taints=self.any_of([], [{"key": "k", "effect": "NoSchedule"}]),
            unschedulable=self.any_of(False, True),
        )

    def some_class(self) -> Any:
        return priority_class(
            self.any_of("high", "low"),
            value=int(self.rng.integers(100)),
            global_default=bool(self.rng.integers(2)),
        )

    def change(self) -> None:
        makers = [self.some_pod] * 10 + [self.some_group] * 3
        makers += [self.some_queue, self.some_node, self.some_class]
        made = in_namespace(self.any_of(*makers)())
        meta = made["metadata"]
        key = (made["kind"], f"{meta.get('namespace')}/{meta['name']}")
        if self.rng.random() < 0.2:
            gone = self.known.pop(key, made)
            self.ingest.delete(from_manifest(gone))
            return
        if key in self.known and self.rng.random() < 0.5:
            made = self.vary(self.known[key], made)
        self.known[key] = made
        self.ingest.upsert(from_manifest(made))

    def vary(self, old: Any, new: Any) -> Any:
        """Change node and status alone, as a cluster does most often."""
        if old["kind"] != "Pod":
            return {**old, "status": new.get("status", {})}
        spec = {**old["spec"]}
        spec.pop("nodeName", None)
        if "nodeName" in new["spec"]:
            spec["nodeName"] = new["spec"]["nodeName"]
        meta = {k: v for k, v in old["metadata"].items() if k != "deletionTimestamp"}
        if "deletionTimestamp" in new["metadata"]:
            meta["deletionTimestamp"] = new["metadata"]["deletionTimestamp"]
        return {**old, "metadata": meta, "spec": spec, "status": new["status"]}

    def compare(self) -> None:
        found = self.ingest.settle()
        check(found)
        fresh = Ingest(Snapshot())
        for each in self.known.values():
            fresh.upsert(from_manifest(each))
        assert described(found) == described(fresh.settle())


@pytest.mark.parametrize("seed", range(24))
def test_changes_leave_what_a_fresh_start_leaves(seed: int) -> None:
    world = World(seed)
    for _ in range(8):
        for _ in range(int(world.rng.choice((3, 20, 60)))):
            world.change()
        world.compare()


def group_cells(**status: Any) -> Any:
    made = pod_group("g", phase="Running", created="1970-01-01T00:00:07Z")
    made["status"] |= status
    jobs = Ingest(Snapshot()).load([from_manifest(made)]).jobs
    return jobs, jobs.row_of["default/g"]


SAID = {"type": SCHEDULED.type, "status": SCHEDULED.status, "reason": SCHEDULED.reason}
DONE = {**SAID, "message": SCHEDULED.message}


@pytest.mark.parametrize(
    ("conditions", "scheduled", "others"),
    [
        ([], False, False),
        ([DONE], True, False),
        ([{**DONE, "reason": "other"}], True, True),
        ([{**DONE, "message": "other"}], True, True),
        ([{**DONE, "status": "False"}], False, True),
        ([{**DONE, "type": "Unschedulable"}], False, True),
        ([{**DONE, "type": "Unschedulable"}, DONE], True, True),
    ],
)
def test_the_conditions_of_a_group_are_read(conditions: Any, scheduled: bool, others: bool) -> None:
    jobs, row = group_cells(conditions=conditions)
    assert bool(jobs.stated_scheduled[row]) is scheduled
    assert bool(jobs.has_other_conditions[row]) is others
