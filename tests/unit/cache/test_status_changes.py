"""A pod that stays on its node and changes its status counts as one that is found so afresh."""

from typing import Any

import pytest

from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.consistency import check
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
