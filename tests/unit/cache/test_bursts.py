"""A burst of changes, counted together, leaves what the same changes leave one by one."""

from typing import Any

import msgspec
import numpy as np
import pytest

from pumice.api.objects import KubeObject, from_manifest, in_namespace
from pumice.cache.ingest import Ingest
from pumice.core.consistency import cells, changed, check
from pumice.core.resources import CPU
from pumice.core.snapshot import Snapshot
from pumice.testing import node, pod, pod_group, queue

NODES, JOBS, QUEUES, PODS = 5, 4, 2, 24
REQUESTS: list[tuple[str | int | None, str | None]] = [
    *(((1, "1Gi"), ("100m", None), (None, None), (3, "1Gi"))),
    (2, "1Ei"),
]
"""Cpu and memory: of the last, sums are not exact."""
FOUND: list[dict[str, Any]] = [
    *({"phase": "Running"}, {"phase": "Pending"}, {"phase": "Unknown"}, {"phase": "Succeeded"}),
]


class Story:
    """The same changes in two sets of tables: counted one by one, and together."""

    def __init__(self, seed: int, shapes: int) -> None:
        self.rng, self.shapes = np.random.default_rng(seed), shapes
        self.single, self.burst = Ingest(Snapshot()), Ingest(Snapshot())
        things = [node(f"n{i}", cpu=64, memory="7Ei") for i in range(NODES)]
        things += [queue(f"q{i}") for i in range(QUEUES)]
        things += [pod_group(f"g{i}", queue=f"q{i % QUEUES}") for i in range(JOBS)]
        for each in things:
            self._tell("upsert", each)
        self.compare()

    def _tell(self, verb: str, manifest: Any) -> None:
        thing = from_manifest(in_namespace(manifest))
        for ingest in (self.single, self.burst):
            alone: KubeObject = msgspec.json.decode(msgspec.json.encode(thing), type=type(thing))
            getattr(ingest, verb)(alone)
        self.single.settle()

    def _any(self, word: str, n: int) -> str:
        return f"{word}{self.rng.integers(n)}"

    def change_a_pod(self) -> None:
        i = int(self.rng.integers(PODS))
        cpu, memory = REQUESTS[i % self.shapes]
        on = self._any("n", NODES + 1) if self.rng.random() < 0.7 else None
        found = FOUND[int(self.rng.integers(len(FOUND)))] if on else {}
        group = f"g{i % (JOBS + 1)}" if i % 3 else None
        made = pod(f"p{i}", group=group, cpu=cpu, memory=memory, node=on, **found)
        if on and self.rng.random() < 0.3:
            made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        if self.rng.random() < 0.1:
            made["status"]["nominatedNodeName"] = "n0"
        self._tell("delete" if self.rng.random() < 0.15 else "upsert", made)

    def change_another_object(self) -> None:
        one = (
            node(self._any("n", NODES + 1), cpu=64, memory="7Ei"),
            pod_group(self._any("g", JOBS), queue=self._any("q", QUEUES)),
            queue(self._any("q", QUEUES)),
        )
        self._tell(
            "delete" if self.rng.random() < 0.3 else "upsert", one[int(self.rng.integers(3))]
        )

    def compare(self) -> None:
        one, two = self.single.settle(), self.burst.settle()
        check(two)
        assert changed(cells(one), cells(two)) == []
        assert one.tasks.row_of == two.tasks.row_of
        assert (one.tasks.free, one.jobs.free) == (two.tasks.free, two.jobs.free)
        assert (one.jobs.tasks, one.nodes.tasks) == (two.jobs.tasks, two.nodes.tasks)


@pytest.mark.parametrize("shapes", [len(REQUESTS) - 1, len(REQUESTS)])
@pytest.mark.parametrize("seed", range(8))
def test_tables_are_those_of_the_way_one_by_one(seed: int, shapes: int) -> None:
    story = Story(seed, shapes)
    for _ in range(12):
        for _ in range(int(story.rng.choice((1, 5, 40, 90)))):
            if story.rng.random() < 0.04:
                story.change_another_object()
            else:
                story.change_a_pod()
        story.compare()


def test_counts_are_up_to_date_for_whoever_asks_for_the_tables() -> None:
    ingest = Ingest(Snapshot())
    ingest.load([from_manifest(node("n", cpu=64, memory="8Gi"))])
    for i in range(30):
        ingest.upsert(from_manifest(pod(f"p{i}", cpu=1, node="n", phase="Running")))
        assert ingest.snapshot.nodes.used[CPU, 0] == 1000 * (i + 1)
