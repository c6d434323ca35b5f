"""Pods alike that were loaded before are not compared again; the tables are the same."""

from typing import Any

import pytest

from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.cache.new_tasks import PodRuns
from pumice.core.snapshot import Snapshot
from pumice.testing import node, pod, pod_group

NODES = [node("n"), node("m")]
GROUPS = [pod_group("g"), pod_group("h")]


def members(group: str, number: int) -> list[Any]:
    return [
        pod(f"{group}-w-{i}", group=group, node="nm"[i % 2], phase="Running") for i in range(number)
    ]


def typed(manifests: Any) -> list[Any]:
    return [from_manifest(each) for each in manifests]


def loaded(things: Any, pods: Any, runs: PodRuns | None) -> Any:
    """Load pods as an informer does, and return what the tables hold of them."""
    ingest = Ingest(Snapshot(), runs=runs)
    with ingest.counting_once():
        for thing in things:
            ingest.upsert(thing)
        place = 0
        while place < len(pods):
            ingest.upsert(pods[place])
            place = ingest.add_alike(pods, place + 1)
    snapshot = ingest.settle()
    tasks, nodes, jobs = snapshot.tasks, snapshot.nodes, snapshot.jobs
    rows = range(len(pods))
    columns = (tasks.index, tasks.node, tasks.job, tasks.shape, tasks.status, tasks.in_view)
    cells = [column[: len(pods)].tolist() for column in columns]
    named = [(tasks.keys[row], tasks.uids[row], tasks.pods[row]) for row in rows]
    sums = (nodes.books.tolist(), jobs.sums.tolist(), jobs.counts.tolist())
    return cells, named, [*nodes.tasks], [*jobs.tasks], sums, tasks.row_of


FIRST = [*members("g", 5), *members("h", 4)]
NEW = pod("g-w-2x", group="g", node="n", phase="Running")
AMONG = {
    "none": lambda pods: pods,
    "one between": lambda pods: [*pods[:3], from_manifest(NEW), *pods[3:]],
    "one before": lambda pods: [from_manifest(NEW), *pods],
    "one gone": lambda pods: [*pods[:2], *pods[3:]],
    "first gone": lambda pods: pods[1:],
    "turned round": lambda pods: pods[::-1],
}


@pytest.mark.parametrize("change", AMONG.values(), ids=AMONG)
def test_pods_that_were_loaded_before_get_the_rows_of_a_first_load(change: Any) -> None:
    things, pods, runs = typed([*NODES, *GROUPS]), typed(FIRST), PodRuns()
    assert loaded(things, pods, runs) == loaded(things, typed(FIRST), None)
    for _ in range(2):
        assert loaded(things, change(pods), runs) == loaded(things, change(typed(FIRST)), None)
