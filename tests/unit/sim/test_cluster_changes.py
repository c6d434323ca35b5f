"""A cluster that changes while a workload runs."""

from dataclasses import replace

import pytest

from pumice.api.conf import parse_conf
from pumice.api.objects import Node, NodeSpec, ObjectMeta, PodGroup, PodGroupSpec
from pumice.sim.figures import figures_of
from pumice.sim.inputs import SimulationInput, equal_nodes, simulate
from pumice.sim.job_run import Outcome
from pumice.sim.measure import Measures
from pumice.sim.options import SimulationOptions
from pumice.sim.sim_cluster import open_queue
from pumice.sim.workload import ClusterChange, JobSpec, PodSpecs, TaskSpec, Workload

CONF = parse_conf("""
actions: enqueue, allocate, backfill
tiers: [{plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: nodeorder}]}]
""")
NODE, OTHER = equal_nodes(2, {"cpu": "4", "memory": "8Gi", "pods": "10"})
SPEC = PodSpecs().spec({"cpu": "4"})


def job(name: str, arrival: float, *, node: str = "", reruns: tuple[float, ...] = ()) -> JobSpec:
    task = TaskSpec(SPEC, 1, 100.0, reruns=reruns, node=node)
    return JobSpec(name=name, arrival=arrival, tasks=(task,), min_member=1)


def group(name: str, queue: str = "default") -> PodGroup:
    return PodGroup(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PodGroupSpec(min_member=1, queue=queue),
    )


def play(*jobs: JobSpec, changes: tuple[ClusterChange, ...] = (), grace: float = 0.0) -> Outcome:
    workload = Workload(name="w", format="test", jobs=jobs, changes=changes, grace=grace)
    return simulate(
        SimulationInput(workload, (NODE, open_queue("other"))), CONF, SimulationOptions()
    )


def starts(outcome: Outcome) -> list[float]:
    return [run.started for run in outcome.runs]


def cordoned(node: Node) -> Node:
    return Node(metadata=node.metadata, spec=NodeSpec(unschedulable=True), status=node.status)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param((), [0, 100], id="nothing"),
        pytest.param((ClusterChange(40, OTHER),), [0, 40], id="a node comes"),
        pytest.param(
            (ClusterChange(50, cordoned(NODE)), ClusterChange(150, NODE)), [0, 150], id="cordoned"
        ),
        pytest.param(
            (ClusterChange(30, group("a"), is_gone=True),), [0, 30], id="a user deletes what runs"
        ),
        pytest.param(
            (ClusterChange(30, group("b", "other")),), [0, 100], id="a job moves to another queue"
        ),
    ],
)
def test_jobs_start_as_the_cluster_allows(
    changes: tuple[ClusterChange, ...], expected: list[float]
) -> None:
    found = play(job("a", 0), job("b", 10), changes=changes)
    assert starts(found) == pytest.approx(expected, abs=1)
    assert all(run.is_finished for run in found.runs)


def test_a_job_that_its_user_deletes_never_starts() -> None:
    gone = ClusterChange(30, group("b"), is_gone=True)
    found = play(job("a", 0), job("b", 10), job("c", 20), changes=(gone,))
    assert found.runs[1].reason == "deleted by its user"
    assert found.runs[2].started == pytest.approx(100, abs=1)
    assert figures_of(Measures("", found))["wait.max"] < 100  # it does not wait for ever


def test_pods_of_a_lost_node_run_again_as_long_as_they_did_then() -> None:
    lost, back = ClusterChange(40, NODE, is_gone=True), ClusterChange(60, NODE)
    found = play(job("a", 0, reruns=(30.0,)), changes=(lost, back))
    run = found.runs[0]
    assert run.evictions == 1
    assert run.ended == pytest.approx(90, abs=2)
    assert found.offered is not None
    used = figures_of(Measures("", found))["utilisation.cpu"]
    assert used == pytest.approx(1.0, abs=0.05)  # 70 of the 70 s in which there was a node


def test_jobs_may_run_from_the_beginning() -> None:
    found = play(job("a", 0, node=NODE.metadata.name), job("b", 0))
    assert starts(found) == pytest.approx([0, 100], abs=1)


def test_an_evicted_pod_keeps_its_place_for_its_grace_period() -> None:
    drained = ClusterChange(40, OTHER, empties=True)
    workload = Workload(
        name="w",
        format="test",
        jobs=(job("a", 0, node=OTHER.metadata.name), job("b", 1), job("c", 2)),
        changes=(drained,),
    )
    began = {}  # when it runs again
    for grace in (0.0, 30.0):
        setup = SimulationInput(replace(workload, grace=grace), (NODE, OTHER))
        found = simulate(setup, CONF, SimulationOptions())
        began[grace] = found.runs[0].ended - 100.0
    assert began == pytest.approx({0.0: 40, 30.0: 70}, abs=2)
