"""Jobs whose pod group says less than usual, or names what nobody else does."""

import pytest

from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.api.meta import ResourceList
from pumice.api.objects import PodGroupSpec
from pumice.sim.engine import Engine
from pumice.sim.job_run import Outcome
from pumice.sim.workload import JobSpec, PodSpecs, TaskSpec, Workload
from pumice.testing import node, queue
from tests.unit.sim.made import kube_objects

SPEC = PodSpecs().spec({"cpu": "1"})


def job(number: int, *, queue: str = "default", group: PodGroupSpec | None = None) -> JobSpec:
    task = TaskSpec(SPEC, 1, 10.0)
    return JobSpec(f"job-{number}", float(number), (task,), 1, queue=queue, group=group)


def simulated(*jobs: JobSpec) -> Outcome:
    workload = Workload(name="drawn", format="test", jobs=jobs)
    things = kube_objects(node("n", cpu=3), queue("default"), queue("other"))
    return Engine(workload, things, parse_conf(DEFAULT_CONF)).run()


def test_a_job_without_a_queue_counts_for_the_default_one() -> None:
    queues = ["other", "default", "", "other", "", "default"]
    found = simulated(*(job(i, queue=name) for i, name in enumerate(queues)))
    like = simulated(*(job(i, queue=name or "default") for i, name in enumerate(queues)))
    assert [run.started for run in found.runs] == [run.started for run in like.runs]
    assert all(run.is_finished for run in found.runs)


@pytest.mark.parametrize(("amount", "n_finished"), [("0", 3), ("1", 2)])
def test_a_group_may_reserve_a_resource_that_nobody_has(amount: str, n_finished: int) -> None:
    reserved: ResourceList = {"cpu": "1", "example.com/licence": amount}
    group = PodGroupSpec(min_member=1, queue="default", min_resources=reserved)
    outcome = simulated(job(0), job(1, group=group), job(2))
    assert sum(run.is_finished for run in outcome.runs) == n_finished
