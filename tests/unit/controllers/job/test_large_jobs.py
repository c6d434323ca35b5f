"""Jobs that ask for more pods than any cluster can hold: bounded work, and a turn for others."""

from typing import Any

import pytest

from pumice.controllers.base import Create, Key
from pumice.controllers.job.actions import BATCH
from pumice.controllers.job.state import MOST_HOSTS, hosts, pod_index
from pumice.testing.recorded.stage import NAMESPACE
from tests.unit.controllers.job.stage import JOB, PODGROUP, Stage, job, task

HUGE = 2_000_000_000


def names(stage: Any, start: str) -> list[str]:
    return [name for name in stage.pods() if name.startswith(start)]


def admitted(*manifests: Any) -> Any:
    """Bring jobs in, so that their pods are about to be made."""
    stage = Stage()
    stage.play({"apply": list(manifests)})
    for group in stage.cluster.list(PODGROUP, NAMESPACE)[0]:
        name = group["metadata"]["name"]
        stage.cluster.merge_status(PODGROUP, NAMESPACE, name, {"phase": "Inqueue"})
    return stage


def test_a_job_of_two_billion_pods_takes_turns_with_others() -> None:
    huge = job(task("w", HUGE, minAvailable=1), name="huge")
    small = job(task("w", 3), name="small")
    stage = admitted(huge, small)
    stage.loop.run_until_quiet(limit=6)
    assert len(names(stage, "small-")) == 3
    made = len(names(stage, "huge-"))
    assert 0 < made <= 6 * BATCH
    assert made % BATCH == 0
    stage.loop.run_until_quiet(limit=2000)
    assert len(names(stage, "huge-")) > made


def test_what_is_made_at_a_time_is_counted_and_the_rest_follows() -> None:
    stage = admitted(job(task("a", BATCH - 1), task("b", BATCH + 2), name="j"))
    key = Key(JOB, NAMESPACE, "j")
    assert [*stage.loop.view.refresh()]
    (controller,) = (one for one in stage.loop._controllers if one.name == "job")
    plan = controller.reconcile(key, stage.loop.view)
    made = [one for one in plan.effects if type(one).__name__ == "Create"]
    assert sum(one.manifest["kind"] == "Pod" for one in made) == BATCH
    assert plan.is_part
    stage.loop.look_at("job", key)
    stage.settle()
    assert len(stage.pods()) == 2 * BATCH + 1
    assert stage.status["pending"] == 2 * BATCH + 1


@pytest.mark.parametrize(
    ("missing", "made"),
    [
        ([100, 0, 150], [100, 0, 150]),
        ([1, BATCH, BATCH], [1, 125, 124]),
        ([HUGE, 2], [BATCH - 2, 2]),
        ([2] * (BATCH + 1), [1] * (BATCH + 1)),
    ],
)
def test_every_task_has_its_turn(missing: list[int], made: list[int]) -> None:
    tasks = [task(f"t{i:03}", replicas, minAvailable=0) for i, replicas in enumerate(missing)]
    stage = admitted(job(*tasks, name="j", minAvailable=1))
    assert [*stage.loop.view.refresh()]
    (controller,) = (one for one in stage.loop._controllers if one.name == "job")
    plan = controller.reconcile(Key(JOB, NAMESPACE, "j"), stage.loop.view)
    pods = [one.manifest for one in plan.effects if isinstance(one, Create)]
    order = [one["metadata"]["name"].split("-")[1] for one in pods if one["kind"] == "Pod"]
    assert order == [f"t{i:03}" for i, number in enumerate(made) for _ in range(number)]
    assert plan.is_part


def test_a_task_that_waits_for_two_billion_pods_costs_nothing() -> None:
    waits = task("b", 1, dependsOn={"name": ["a"]})
    stage = admitted(job(task("a", HUGE, minAvailable=1), waits, name="j"))
    stage.loop.run_until_quiet(limit=3)
    assert names(stage, "j-b-") == []


def test_the_hosts_that_plugins_write_are_bounded() -> None:
    manifest = job(task("w", HUGE))
    found = hosts(manifest, manifest["spec"]["tasks"][0])
    assert len(found) == MOST_HOSTS
    assert found[-1][0] == f"j-w-{MOST_HOSTS - 1}"


def test_only_names_of_a_task_have_an_index() -> None:
    assert pod_index("j", "w", "j-w-0") == 0
    assert pod_index("j", "w", "j-w-12") == 12
    others = ("j-w-", "j-w-01", "j-w-x", "j-w-\u0663", "k-w-0", "0", "", f"j-w-{'9' * 5000}")
    for other in others:
        assert pod_index("j", "w", other) is None
