"""A pod that stays on its node and changes its status counts as one that is found so afresh."""

from itertools import permutations
from typing import Any

import pytest

from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.consistency import cells, changed, check
from pumice.core.resources import CPU
from pumice.core.snapshot import Snapshot
from pumice.testing import node, pod, pod_group, queue

FOUND: dict[str, dict[str, Any]] = {
    "bound": {"phase": "Pending"},
    "running": {"phase": "Running"},
    "leaving": {"phase": "Running", "deleting": True},
    "unknown": {"phase": "Unknown"},
}


def found(way: str, *, group: str | None) -> Any:
    reported = dict(FOUND[way])
    leaving = reported.pop("deleting", False)
    made = pod("g-0", group=group, node="n", cpu="1", memory="1Gi", **reported)
    if leaving:
        made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return from_manifest(made)


def others() -> list[Any]:
    made = [queue("q"), pod_group("g", queue="q"), node("n", cpu=8, memory="8Gi")]
    made.append(pod("g-1", group="g", node="n", cpu="2", memory="1Gi", phase="Running"))
    return [from_manifest(each) for each in made]


@pytest.mark.parametrize("group", ["g", None])
@pytest.mark.parametrize(("before", "after"), [*permutations(FOUND, 2)])
def test_a_change_of_status_leaves_what_a_pod_found_so_leaves(
    before: Any, after: Any, group: Any
) -> None:
    ingest, afresh = Ingest(Snapshot()), Ingest(Snapshot())
    ingest.load([*others(), found(before, group=group)])
    ingest.upsert(found(after, group=group))
    ingest.settle()
    afresh.load([*others(), found(after, group=group)])
    check(ingest.snapshot)
    assert changed(cells(afresh.snapshot), cells(ingest.snapshot)) == []
    ingest.upsert(found(before, group=group))
    afresh = Ingest(Snapshot())
    afresh.load([*others(), found(before, group=group)])
    check(ingest.settle())
    assert changed(cells(afresh.snapshot), cells(ingest.snapshot)) == []


@pytest.mark.parametrize(
    ("asked", "told", "allocated", "refused", "held"),
    [
        ("3", "1", "1", False, 3000),
        ("500m", "3", "2", False, 3000),
        ("500m", "1", "3", False, 3000),
        ("3", "1", "2", True, 2000),
        ("3", None, "4", False, 3000),
    ],
)
@pytest.mark.parametrize("group", ["g", None])
def test_a_pod_that_is_resized_in_place_counts_with_the_largest_of_its_amounts(
    asked: str, told: Any, allocated: str, refused: Any, held: int, group: Any
) -> None:
    """Volcano: the report of a kubelet without amounts in force changes nothing."""
    resized = pod("g-0", group=group, node="n", cpu=asked, memory="1Gi", phase="Running")
    report: dict[str, Any] = {"name": resized["spec"]["containers"][0]["name"]}
    report["allocatedResources"] = {"cpu": allocated, "memory": "1Gi"}
    if told is not None:
        report["resources"] = {"requests": {"cpu": told, "memory": "1Gi"}}
    resized["status"]["containerStatuses"] = [report]
    if refused:
        why = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
        resized["status"]["conditions"] = [why]
    ingest, afresh = Ingest(Snapshot()), Ingest(Snapshot())
    ingest.load([*others(), found("running", group=group)])
    ingest.upsert(from_manifest(resized))
    afresh.load([*others(), from_manifest(resized)])
    check(ingest.settle())
    used = ingest.snapshot.nodes.used[CPU, 0]
    assert used == 2000 + held
    assert used == afresh.snapshot.nodes.used[CPU, 0]
    ingest.upsert(found("running", group=group))  # the kubelet has acted
    assert ingest.settle().nodes.used[CPU, 0] == 2000 + 1000


def test_a_pod_that_starts_to_leave_becomes_the_last_of_its_node_and_job() -> None:
    """Lists end as if it had just come, whichever place it had, and lose it when it goes."""

    def one(number: int, *, leaves: bool) -> Any:
        made = pod(f"g-{number}", group="g", node="n", cpu="1", memory="1Gi", phase="Running")
        if leaves:
            made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return from_manifest(made)

    ingest = Ingest(Snapshot())
    made = [queue("q"), pod_group("g", queue="q"), node("n", cpu=8, memory="8Gi")]
    pods = [one(number, leaves=False) for number in range(4)]
    snapshot = ingest.load([*map(from_manifest, made), *pods])

    def listed() -> list[list[str]]:
        check(ingest.settle())
        (job,) = snapshot.jobs.row_of.values()
        lists = snapshot.nodes.tasks[snapshot.nodes.row_of["n"]], snapshot.jobs.tasks[job]
        return [[snapshot.tasks.keys[row][-1] for row in rows] for rows in lists]

    for number, leaves, wanted in (
        (1, True, "0231"),
        (1, False, "0231"),
        (0, True, "2310"),
        (3, True, "2103"),
    ):
        ingest.upsert(one(number, leaves=leaves))
        assert listed() == [[*wanted]] * 2
    for number, wanted in ((3, "210"), (2, "10")):
        ingest.delete(one(number, leaves=True))
        assert listed() == [[*wanted]] * 2
