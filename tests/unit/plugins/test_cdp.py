"""cdp: a pod that has just started is left alone for a while."""

from typing import Any

import pytest

from pumice.api.codes import Spared
from pumice.api.objects import from_manifest
from pumice.api.times import epoch
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.framework.dispatch import Enabled
from pumice.framework.session import Session
from pumice.plugins.cdp import Cdp
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session

MARK = "volcano.sh/cooldown-time"
SCHEDULED = "2026-01-15T10:00:00Z"


def victim(
    *,
    label: Any = None,
    note: Any = None,
    phase: str = "Running",
    scheduled: str = "True",
    kind: str = "PodScheduled",
) -> Any:
    made = pod(
        "p",
        group="g",
        node="n1",
        phase=phase,
        labels={MARK: label} if label else None,
        annotations={MARK: note} if note else None,
    )
    condition = {"type": kind, "status": scheduled, "lastTransitionTime": SCHEDULED}
    made["status"]["conditions"] = [condition]
    return made


def may_go(made: Any, after: Any, hook: str = "preemptable") -> Any:
    """Ask some seconds after the pod was scheduled."""
    world = [node("n1"), queue("default"), pod_group("g"), made]
    snapshot = Ingest(Snapshot()).load(map(from_manifest, world))
    ssn = Session(snapshot, [[Enabled(Cdp(), {})]], now=epoch(SCHEDULED) + after)
    return bool(getattr(ssn.policy, hook)(ssn.task(0), [0]))


@pytest.mark.parametrize("hook", ["preemptable", "reclaimable"])
def test_a_pod_is_protected_until_its_time_is_over(hook: str) -> None:
    """Ten minutes of protection from the moment it was scheduled."""
    assert not may_go(victim(label="10m"), 599, hook)
    assert may_go(victim(label="10m"), 600, hook)


@pytest.mark.parametrize("text", ["soon", "10", "", "10 m"])
def test_an_unreadable_time_protects_nobody(text: str) -> None:
    made = victim()
    made["metadata"]["labels"] = {MARK: text}
    assert may_go(made, 0)


@pytest.mark.parametrize("condition", [{"scheduled": "False"}, {"kind": "Ready"}])
def test_a_pod_that_was_never_reported_scheduled_is_not_protected(condition: Any) -> None:
    assert may_go(victim(label="10m", **condition), 0)


@pytest.mark.parametrize(("after", "change"), [(0, 600.0), (599, 600.0), (600, None)])
def test_the_next_change_is_the_end_of_a_cooldown(after: int, change: float | None) -> None:
    world = [node("n1"), queue("default"), pod_group("g"), victim(label="10m"), pod("q")]
    plugin, now = Cdp(), epoch(SCHEDULED) + after
    ssn = open_session(world, [plugin], now=now)
    assert plugin.changes_at(ssn) == (None if change is None else epoch(SCHEDULED) + change)


def test_a_pod_is_spared_until_a_time() -> None:
    world = [node("n1"), queue("default"), pod_group("g"), victim(label="10m")]
    plugin = Cdp()
    ssn = open_session(world, [plugin], now=epoch(SCHEDULED))
    why = plugin.why_spared("preemptable", ssn.task(0), ssn.task(0))
    assert why == (Spared.COOLDOWN, {"until": "2026-01-15T10:10:00Z"})
