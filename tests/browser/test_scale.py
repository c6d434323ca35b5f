"""A large cluster in a real browser: 5,000 nodes and 50,000 jobs."""

from collections.abc import Callable
from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.dashboard.feed import Feed
from pumice.dashboard.material import Material
from pumice.dashboard.serving import ServingOptions, served_dashboard
from pumice.dashboard.sources import About
from pumice.scheduler import Scheduler
from pumice.testing.builders import node, pod, pod_group, queue
from tests.unit.dashboard.test_live import eventually

NODES, JOBS, RUNNING = 5_000, 50_000, 20_000
MAP_MS, FILTER_MS, TRIES = 1_000, 200, 5
QUIET = """
actions: "enqueue"
tiers:
- plugins: [{name: gang}, {name: proportion}]
"""


class LargeSource:
    """A cluster of which there is only a picture."""

    problem = ""
    cluster = None

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.about = About(title="large", kind="embedded", decides=True, speed=0.0)

    def material(self) -> Material:
        return Material(now=0.0)

    def events(self, namespace: str) -> Any:
        return ()


@pytest.fixture(scope="module")
def large(answers: Any) -> Any:
    zones = [{"topology.kubernetes.io/zone": f"zone-{i}"} for i in range(8)]
    objects = [node(f"node-{i:04}", cpu=32, labels=zones[i % 8]) for i in range(NODES)]
    objects += [queue(f"team-{i}") for i in range(20)]
    phase: dict[str, Any] = {"namespace": "ns", "created": "2026-01-15T10:00:00Z"}
    for i in range(JOBS):
        at = f"node-{i % NODES:04}" if i < RUNNING else None
        state = "Running" if at else "Pending"
        group_phase = "Running" if at else "Inqueue"
        objects.append(pod_group(f"job-{i:05}", queue=f"team-{i % 20}", phase=group_phase, **phase))
        objects.append(
            pod(f"pod-{i:05}", group=f"job-{i:05}", cpu=4, node=at, phase=state, **phase)
        )
    feed = Feed()
    snapshot = Ingest(Snapshot()).load([from_manifest(one) for one in objects])
    Scheduler(parse_conf(QUIET)).decide(snapshot, 1_768_500_000.0, observer=feed)
    with served_dashboard(LargeSource(feed), ServingOptions(), answers=answers) as url:
        yield url


def within(limit_ms: float, measured: Callable[[], float]) -> bool:
    """Return whether something takes less than that once in a few tries; others may be busy."""
    return any(measured() < limit_ms for _ in range(TRIES))


@pytest.mark.slow
def test_the_map_of_5000_nodes_is_drawn_within_a_second(visit: Any, large: Any) -> None:
    visitor = visit(large)

    def drawn_ms() -> float:
        page = visitor.go("/nodes")
        page.wait_for_selector("canvas[data-drawn]")
        assert "5,000 nodes" in (page.get_attribute("canvas", "aria-label") or "")
        return float(page.get_attribute("canvas", "data-drawn") or "inf")

    assert within(MAP_MS, drawn_ms)


FILTERED = """async () => {
  const box = document.querySelector("input[name=q]");
  const best = [];
  for (const words of ["job-049", "team-7", "job-12345"]) {
    box.value = words;
    const started = performance.now();
    box.dispatchEvent(new InputEvent("input", { bubbles: true }));
    await new Promise(requestAnimationFrame);
    await new Promise((done) => setTimeout(done, 0));
    best.push(performance.now() - started);
  }
  return Math.min(...best);
}"""


@pytest.mark.slow
def test_50000_jobs_are_filtered_within_200_ms(visit: Any, large: Any) -> None:
    page = visit(large).go("/jobs")
    page.wait_for_selector(f"text={JOBS:,} jobs")
    assert page.locator(".long .whole .row").count() < 100  # only what is in view exists
    assert within(FILTER_MS, lambda: float(page.evaluate(FILTERED)))
    eventually(lambda: page.locator(".long .whole .row").count() == 1)
