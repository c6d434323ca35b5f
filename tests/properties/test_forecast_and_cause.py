"""The decisive cause of a waiting job and its forecast never contradict each other."""

from pathlib import Path
from typing import Any

import pytest

from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.forecast import forecast_all
from pumice.diagnosis.runner import Replay
from pumice.diagnosis.sources import load_world
from pumice.diagnosis.waiting_jobs import waiting_jobs
from tests.properties.crowded import key
from tests.properties.varied import FEATURES, loaded, varied
from tests.staged.truth import FILES, extender, read, world_of

GOLDEN = Path(__file__).parents[1] / "golden"
EVICTING = [
    path
    for family in ("preempt", "reclaim", "gang-evict", "mixed-cycle")
    for path in sorted((GOLDEN / family).glob("*.json"))[::6]
]
PLAIN = sorted((GOLDEN / "default-conf").glob("*.json"))
pytestmark = pytest.mark.sample(3)
_SLACK_S = 5.0
"""Seconds that cycles take before and after pods are gone."""


def contradictions(world: ClusterState) -> list[Any]:
    """List the jobs whose decisive cause and forecast do not go together."""
    found: list[Any] = []
    for each in waiting_jobs(world):
        seen, cause = each.forecast, each.cause
        if seen is None:
            found.append((each.job, cause.text, seen))
        elif cause.code == "WaitingForEvicted":
            leaves = float(cause.numbers["seconds"]) + _SLACK_S
            kept = seen["in_s"] is not None and seen["in_s"] <= leaves
            if seen["state"] != "unknown" and not kept:
                found.append((each.job, cause.text, seen))
        elif seen["in_s"] == 0:
            found.append((each.job, cause.text, seen))
    return found


@pytest.mark.parametrize("path", EVICTING, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_causes_and_forecasts_of_clusters_with_evictions_agree(path: Path) -> None:
    assert contradictions(load_world([path])) == []


@pytest.mark.parametrize("seed", range(0, len(FEATURES), 2))
def test_causes_and_forecasts_of_drawn_clusters_agree(seed: int) -> None:
    assert contradictions(loaded(varied(seed).content)) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_causes_and_forecasts_of_staged_situations_agree(path: Path) -> None:
    with extender(read(path)) as content:
        assert contradictions(world_of(content)) == []


@pytest.mark.parametrize("path", PLAIN, ids=lambda path: path.stem)
def test_a_forecast_of_now_is_what_the_next_cycle_binds(path: Path) -> None:
    world = load_world([path])
    binds = Replay(world).decide().binds
    for job, found in forecast_all(world).items():
        mine = {key(pod) for pod in world.pods_by_group.get(job, ())}
        bound = {pod: node for pod, node in binds.items() if pod in mine}
        assert (found.places if found.in_s == 0 else {}) == bound, (job, found)
