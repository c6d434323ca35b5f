"""Queue gates: which tasks wait behind one, and what stays reserved for whom."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.annotations import QUEUE_GATE
from pumice.api.conf import parse_conf
from pumice.core.resources import CPU
from pumice.framework.queue_limits.limits import QueueGates
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.reference import ReferenceScheduler
from pumice.testing.samples import snapshot_of

CONF = replace(
    parse_conf("""
actions: "allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""),
    queue_gates=True,
)
OTHER = "example.com/licence"


def gated(
    name: str, *gates: str, group: str | None = "g", opted: str = "true", **options: Any
) -> Any:
    spec = {"schedulingGates": [{"name": gate} for gate in gates], **options.pop("spec", {})}
    marks = {QUEUE_GATE: opted} if opted else {}
    return pod(name, group=group, annotations=marks, spec=spec, **{"cpu": 1, **options})


def world(*pods: Any) -> Any:
    return snapshot_of([node("n"), queue("q"), pod_group("g", queue="q"), *pods])


@pytest.mark.parametrize(
    ("one", "held", "reserves"),
    [
        (gated("p", QUEUE_GATE), True, 0),
        (gated("p", QUEUE_GATE, OTHER), False, 0),
        (gated("p", OTHER), False, 0),
        (gated("p"), False, 1),
        (gated("p", opted=""), False, 0),
        (gated("p", QUEUE_GATE, opted=""), False, 0),
        (gated("p", QUEUE_GATE, opted="True"), False, 0),
        (gated("p", node="n"), False, 0),
        (gated("p", group="unknown"), False, 0),
        (gated("p", group=None), False, 0),
        (gated("p", QUEUE_GATE, group=None), False, 0),
    ],
)
def test_who_waits_behind_a_gate_and_who_reserves(one: Any, held: bool, reserves: int) -> None:
    snapshot = world(one)
    gates = QueueGates(snapshot, set(), enabled=True)
    row = snapshot.tasks.row_of["default/p"]
    assert (row in gates.held) is held
    assert gates.is_reserving is bool(reserves)
    assert gates.reserved(beside=-1)[CPU].sum() == 1000 * reserves


def test_nothing_is_looked_at_unless_the_feature_is_on() -> None:
    gates = QueueGates(world(gated("p", QUEUE_GATE), gated("q")), set(), enabled=False)
    assert gates.held == set()
    assert not gates.is_reserving


def test_an_opened_gate_reserves_for_others_and_not_against_itself() -> None:
    snapshot = world(gated("p", QUEUE_GATE))
    opened: Any = set()
    gates, row = QueueGates(snapshot, opened, enabled=True), snapshot.tasks.row_of["default/p"]
    gates.open(row)
    assert gates.reserved(beside=-1)[CPU].sum() == 1000
    assert gates.reserved(beside=row)[CPU].sum() == 0
    later = QueueGates(snapshot, opened, enabled=True)
    assert later.reserved(beside=-1)[CPU].sum() == 1000
    assert opened == set()


def test_what_was_opened_for_one_pod_is_not_kept_for_another_of_its_name() -> None:
    opened: Any = {("default/p", "an-older-pod")}
    gates = QueueGates(world(gated("p", QUEUE_GATE)), opened, enabled=True)
    assert not gates.is_reserving


@settings(max_examples=60)
@given(
    pods=st.lists(
        st.tuples(
            st.sampled_from(["a", "b"]),
            st.sampled_from([(), (QUEUE_GATE,), (OTHER,), (QUEUE_GATE, OTHER)]),
            st.sampled_from(["true", ""]),
            st.booleans(),
        ),
        max_size=16,
    ),
    room=st.integers(0, 10),
)
def test_no_queue_promises_more_than_it_has_and_runs_equal_single_steps(
    pods: Any, room: int
) -> None:
    """Placed and promised pods never exceed the queue; equal tasks placed as a run change nothing.

    What reserved room when the session opened may exceed it: that was promised by somebody else.
    """
    made = [
        gated(f"p{i:02}", *gates, group=group, opted=opted, spec=_far(far))
        for i, (group, gates, opted, far) in enumerate(pods)
    ]
    groups = [pod_group(name, queue="q", phase="Inqueue") for name in ("a", "b")]
    objects = [node("n", cpu=32), queue("q", capability={"cpu": room or "1m"}), *groups, *made]
    fast, slow = (kind(CONF).cycle(objects, 0.0) for kind in (Scheduler, ReferenceScheduler))
    assert fast == slow
    promised = sum(opted == "true" and not gates for _, gates, opted, _ in pods)
    taken = {*fast.binds, *fast.opened_gates}
    new = [i for i in range(len(pods)) if f"default/p{i:02}" in taken]
    plain = [i for i in new if pods[i][1] or not pods[i][2]]
    assert not plain or len(plain) + promised <= room
    assert len(fast.binds) <= room


def _far(far: bool) -> Any:
    return {"nodeSelector": {"pool": "later"}} if far else {}


@pytest.mark.parametrize("least", [1, 3])
@pytest.mark.parametrize("decide", [Scheduler, ReferenceScheduler])
def test_a_gate_that_is_refused_keeps_no_equal_pod_from_its_own_reservation(
    decide: Any, least: int
) -> None:
    """The queue has room for three pods, which three with open gates have reserved."""
    pods = [gated("g-0", QUEUE_GATE), *(gated(f"g-{i}") for i in (1, 2, 3))]
    group = pod_group("g", queue="q", min_member=least, phase="Inqueue")
    objects = [node("n", cpu=9), queue("q", capability={"cpu": "3"}), group, *pods]
    binds = decide(CONF).decide(snapshot_of(objects), now=0.0).binds
    assert sorted(binds) == ["default/g-1", "default/g-2", "default/g-3"]
