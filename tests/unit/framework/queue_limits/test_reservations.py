"""What jobs reserve, job by job, and how the cluster is divided by weight."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from pumice.api.annotations import QUEUE_GATE
from pumice.api.kinds import Manifest
from pumice.core.resources import CPU
from pumice.core.views import Job
from pumice.framework.queue_limits.reservations import QueueCommitments, Reservations
from pumice.framework.queue_limits.weighted import WeightedLimits
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import snapshot_of

NODE = node("n", cpu=64, memory="256Gi", pods=200)
GATES = {
    "none": [],
    "other": ["example.com/gate"],
    "queue": [QUEUE_GATE],
    "both": [QUEUE_GATE, "example.com/gate"],
}


def job(
    name: str,
    phase: str,
    *,
    states: int | None,
    least: int,
    running: int,
    waiting: int = 1,
    gates: tuple[str, ...] = (),
    in_queue: str = "q",
) -> list[Manifest]:
    asks = None if states is None else {"cpu": states}
    made = [pod_group(name, queue=in_queue, phase=phase, min_member=least, min_resources=asks)]
    made += [pod(f"{name}-r-{i}", group=name, cpu=1, node="n") for i in range(running)]
    made += [pod(f"{name}-w-{i}", group=name, cpu=1) for i in range(waiting)]
    held = {"schedulingGates": [{"name": gate} for gate in gates]}
    return made + ([pod(f"{name}-g", group=name, cpu=1, spec=held)] if gates else [])


CASES: list[dict[str, Any]] = [
    dict(zip(("phase", "states", "least", "running", "gates"), case, strict=True))
    for case in product(
        ("Pending", "Inqueue", "Running", "Unknown"),
        (None, 1, 3),
        (0, 1, 2),
        (0, 1, 2, 4),
        ((), ("example.com/gate",)),
    )
]


def reserved(case: Any) -> tuple[float, float]:
    """Return what a job reserves of the cluster, and of its queue, as the documentation says."""
    if case["states"] is None:
        return 0, 0
    gated = len(case["gates"])
    lacks = max(max(case["states"] - case["running"], 0) - gated, 0)
    if case["phase"] == "Inqueue":
        return max(case["states"] - gated, 0), lacks
    if case["phase"] == "Running" and case["running"] >= case["least"]:
        return lacks, lacks
    return 0, 0


@pytest.mark.parametrize("phase", ["Pending", "Inqueue", "Running", "Unknown"])
def test_each_job_reserves_what_it_lacks_to_start(phase: str) -> None:
    for case in (each for each in CASES if each["phase"] == phase):
        snapshot = snapshot_of([NODE, queue("other"), queue("q"), *job("j", **case)])
        found = Reservations(snapshot)
        by_queue = found.by_queue()[CPU, snapshot.queues.row_of["q"]]
        assert (found.total()[CPU] / 1000, by_queue / 1000) == reserved(case), case


def test_jobs_of_several_queues_are_added_up() -> None:
    cases = [each for each in CASES if each["phase"] in ("Inqueue", "Running")]
    made = [NODE, queue("a"), queue("b")]
    for i, case in enumerate(cases):
        made += job(f"j{i}", in_queue="ab"[i % 2], **case)
    snapshot = snapshot_of(made)
    found = Reservations(snapshot)
    by_queue = found.by_queue()[CPU] / 1000
    for name, first in (("a", 0), ("b", 1)):
        wanted = sum(reserved(case)[1] for case in cases[first::2])
        assert by_queue[snapshot.queues.row_of[name]] == wanted
    assert found.total()[CPU] / 1000 == sum(reserved(case)[0] for case in cases)


@pytest.mark.parametrize("phase", ["Inqueue", "Running"])
def test_a_job_whose_queue_does_not_exist_reserves_nothing(phase: str) -> None:
    case: dict[str, Any] = {"phase": phase, "states": 3, "least": 1, "running": 1}
    made = [*job("j", **case), *job("lost", in_queue="gone", **case)]
    snapshot = snapshot_of([NODE, queue("q"), *made])
    assert Reservations(snapshot).total()[CPU] / 1000 == reserved({**case, "gates": ()})[0]
    assert Reservations(snapshot).by_queue()[CPU].sum() / 1000 == 2


@pytest.mark.parametrize(
    ("gates", "wanted"), [("none", 3000), ("queue", 3000), ("other", 2000), ("both", 2000)]
)
def test_what_waits_behind_a_gate_of_others_is_not_reserved(gates: str, wanted: int) -> None:
    held = {"schedulingGates": [{"name": gate} for gate in GATES[gates]]}
    snapshot = snapshot_of(
        [
            NODE,
            queue("q"),
            pod_group("j", queue="q", phase="Pending", min_resources={"cpu": 3}),
            pod("gated", group="j", cpu=1, spec=held),
            pod("free", group="j", cpu=1),
            pod("stray", cpu=1, spec={"schedulingGates": [{"name": "x"}]}),
        ]
    )
    commitments, row = QueueCommitments(snapshot), snapshot.queues.row_of["q"]
    assert commitments.of_queue(row)[CPU] == 0
    commitments.admit(Job(snapshot, 0))
    assert commitments.of_queue(row)[CPU] == wanted


def test_a_job_that_states_nothing_reserves_nothing_when_it_is_admitted() -> None:
    case: dict[str, Any] = {"phase": "Pending", "states": None, "least": 1, "running": 0}
    snapshot = snapshot_of([NODE, queue("q"), *job("j", **case)])
    commitments = QueueCommitments(snapshot)
    commitments.admit(Job(snapshot, 0))
    assert not commitments.by_queue().any()


@pytest.mark.parametrize(("states", "running", "wanted"), [(1, 3, 1), (3, 1, 3), (None, 2, 0)])
def test_a_queue_is_committed_to_the_minimum_of_jobs_that_hold_more(
    states: Any, running: int, wanted: int
) -> None:
    """What a job holds beyond what it needs to start is elastic."""
    case = {"phase": "Running", "states": states, "least": 1, "running": running}
    snapshot = snapshot_of([NODE, queue("q"), *job("j", **case)])
    commitments, row = QueueCommitments(snapshot), snapshot.queues.row_of["q"]
    assert commitments.of_queue(row)[CPU] == wanted * 1000
    assert commitments.by_queue()[CPU, row] == wanted * 1000


def test_reservations_of_the_opening_are_kept_for_the_session() -> None:
    snapshot = snapshot_of([NODE, queue("q")])
    first = Reservations.at_opening(snapshot)
    assert Reservations.at_opening(snapshot) is first
    snapshot.release_session()
    assert Reservations.at_opening(snapshot) is not first


# By weight


def shares(*queues: tuple[int, int, dict[str, Any]], total: int = 20) -> Any:
    """Divide cpus: queues of a weight, with pods that wait, and further fields."""
    made = [node("n", cpu=total, memory="1Ti", pods=1000)]
    for i, (weight, wants, more) in enumerate(queues):
        made.append(queue(f"q{i}", weight=weight, **more))
        if wants:
            made.append(pod_group(f"j{i}", queue=f"q{i}"))
            made += [pod(f"p{i}-{k}", group=f"j{i}", cpu=1) for k in range(wants)]
    snapshot = snapshot_of(made)
    return snapshot, WeightedLimits.of(snapshot, snapshot.total())


@pytest.mark.parametrize(
    ("queues", "wanted"),
    [
        ([(1, 30, {}), (3, 30, {})], [5, 15]),
        ([(1, 30, {}), (3, 6, {})], [14, 6]),
        ([(1, 2, {}), (3, 6, {})], [2, 6]),
        ([(1, 30, {}), (1, 30, {"capability": {"cpu": 4}})], [16, 4]),
        ([(1, 30, {"guarantee": {"cpu": 12}}), (1, 30, {})], [12, 8]),
        ([(1, 1, {"guarantee": {"cpu": 6}}), (1, 30, {})], [6, 14]),
        ([(1, 30, {}), (1, 30, {}), (2, 4, {})], [8, 8, 4]),
        ([(1, 0, {}), (1, 30, {})], [0, 20]),
        ([(4, 2, {}), (2, 8, {}), (2, 30, {})], [2, 8, 10]),
    ],
)
def test_the_cluster_is_divided_by_weight_up_to_what_queues_ask_for(
    queues: Any, wanted: Any
) -> None:
    snapshot, limits = shares(*queues)
    rows = [snapshot.queues.row_of[f"q{i}"] for i in range(len(queues))]
    assert (limits.deserved[CPU, rows] / 1000).round(9).tolist() == wanted
    assert np.array_equal(limits.ceiling, limits.deserved)


@pytest.mark.parametrize(
    ("wants", "more", "wanted"),
    [(5, {}, True), (6, {}, False), (4, {"capability": {"cpu": 3}}, False)],
)
def test_a_queue_that_asks_for_no_more_than_its_first_part_gets_it(
    wants: int, more: Any, wanted: bool
) -> None:
    snapshot, limits = shares((1, wants, more), (3, 30, {}), (7, 0, {}))
    row, others = snapshot.queues.row_of["q0"], [snapshot.queues.row_of["q1"]]
    asked = snapshot.queues.pending[:, row].tolist()
    assert limits.meets_demand(row, asked, [row, *others]) == wanted
    if wanted:
        assert limits.deserved[CPU, row] == wants * 1000
    snapshot.queues.weight[row] = 0
    without = WeightedLimits.of(snapshot, snapshot.total())
    assert not without.meets_demand(row, asked, [row, *others])


def test_a_division_is_kept_until_an_input_changes() -> None:
    snapshot, limits = shares((1, 30, {}), (3, 30, {}))
    total, row = snapshot.total(), snapshot.queues.row_of["q0"]
    again = WeightedLimits.of(snapshot, total)
    assert again.deserved is limits.deserved
    snapshot.queues.pending[CPU, row] = 1000
    assert limits.current().deserved[CPU, row] == 1000
    snapshot.queues.pending[CPU, row] = 30000
    snapshot.queues.weight[row] = 3
    assert WeightedLimits.of(snapshot, total).deserved[CPU, row] == 10000
    assert WeightedLimits.of(snapshot, total * 2).deserved[CPU, row] == 20000
