"""Equal pods that come, start and go at once leave the tables that they leave one by one."""

from collections.abc import Iterator

import msgspec
import numpy as np
import pytest

from pumice.api.objects import Pod, from_manifest, in_namespace
from pumice.cache.identity import key_of
from pumice.cache.ingest import Ingest
from pumice.core.consistency import cells, changed, check
from pumice.core.snapshot import Snapshot
from pumice.testing import node, pod, pod_group, queue

NODES = [f"n{i}" for i in range(6)]
SHAPES: list[tuple[str | int | None, str | None]] = [
    (1, "1Gi"),
    ("100m", None),
    (None, None),
    (2, "1Ei"),
]
"""Cpu and memory: common ones, one that asks for nothing, and one for which sums are not exact."""


class TwoWays:
    """The same story in two sets of tables: pods one by one, and all at once."""

    def __init__(self) -> None:
        self.single, self.whole = Ingest(Snapshot()), Ingest(Snapshot())
        self.jobs: dict[str, list[Pod]] = {}
        """Jobs with their pods, those that run with their node."""
        for ingest in (self.single, self.whole):
            objects = [queue("q"), *(node(name, cpu=64, memory="7Ei") for name in NODES)]
            ingest.load([from_manifest(in_namespace(each)) for each in objects])

    def add(self, name: str, shape: int, n: int) -> None:
        group = from_manifest(in_namespace(pod_group(name, min_member=n, queue="q")))
        cpu, memory = SHAPES[shape]
        manifests = [pod(f"{name}-w-{i}", group=name, cpu=cpu, memory=memory) for i in range(n)]
        made = [from_manifest(in_namespace(each)) for each in manifests]
        pods = [each for each in made if isinstance(each, Pod)]
        for ingest in (self.single, self.whole):
            ingest.upsert(group)
        for each in _copies(pods):
            self.single.upsert(each)
        self.whole.equal_pods.add(list(_copies(pods)))
        self.jobs[name] = pods

    def start(self, name: str, nodes: list[str]) -> None:
        pods = [
            msgspec.structs.replace(
                each,
                spec=msgspec.structs.replace(each.spec, node_name=on),
                status=msgspec.structs.replace(
                    each.status, phase="Running", start_time="2024-01-01T00:00:05Z"
                ),
            )
            for each, on in zip(self.jobs[name], nodes, strict=True)
        ]
        for each in _copies(pods):
            self.single.upsert(each)
        self.whole.equal_pods.start(list(_copies(pods)))
        self.jobs[name] = pods

    def delete(self, name: str) -> None:
        pods = self.jobs.pop(name)
        for each in pods:
            self.single.delete(each)
        self.whole.equal_pods.delete([key_of(each) for each in pods])

    def compare(self) -> None:
        one, two = self.single.settle(), self.whole.settle()
        check(two)
        before, after = cells(one), cells(two)
        assert before.keys() == after.keys()
        assert changed(before, after) == []
        assert one.tasks.row_of == two.tasks.row_of
        assert one.tasks.free == two.tasks.free
        for attribute in ("keys", "uids", "pods"):
            assert getattr(one.tasks, attribute) == getattr(two.tasks, attribute)
        assert one.jobs.tasks == two.jobs.tasks
        assert one.nodes.tasks == two.nodes.tasks


def _copies(pods: list[Pod]) -> Iterator[Pod]:
    """Copy pods, so that tables share no object."""
    for each in pods:
        yield msgspec.json.decode(msgspec.json.encode(each), type=Pod)


@pytest.mark.parametrize("seed", range(12))
def test_tables_are_those_of_the_way_one_by_one(seed: int) -> None:
    rng, both = np.random.default_rng(seed), TwoWays()
    waiting: list[str] = []
    for step in range(40):
        choice = rng.random()
        if choice < 0.45 or not both.jobs:
            name = f"job{step}"
            both.add(name, int(rng.integers(len(SHAPES))), int(rng.choice((1, 2, 3, 5, 17))))
            waiting.append(name)
        elif waiting and choice < 0.8:
            name = waiting.pop(int(rng.integers(len(waiting))))
            both.start(name, rng.choice(NODES, len(both.jobs[name])).tolist())
        else:
            name = str(rng.choice(sorted(both.jobs)))
            both.delete(name)
            if name in waiting:
                waiting.remove(name)
        both.compare()


def test_a_nomination_is_over_once_pods_run() -> None:
    both = TwoWays()
    both.add("a", 0, 4)
    promised = [
        msgspec.structs.replace(
            each, status=msgspec.structs.replace(each.status, nominated_node_name="n1")
        )
        for each in both.jobs["a"]
    ]
    for ingest in (both.single, both.whole):
        for each in _copies(promised):
            ingest.upsert(each)
    both.compare()
    both.start("a", NODES[:4])
    both.compare()
