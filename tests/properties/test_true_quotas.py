"""Answers about Volcano jobs whose pods quotas refuse, held against sums done by hand."""

import json
from functools import cache
from typing import Any

import pytest

from pumice.diagnosis.explain import explain_job
from pumice.diagnosis.whatif import Question, what_if
from tests.present import present
from tests.properties.crowded import amount, conf, group_of, key, requests, scene, world_of
from tests.properties.full_clusters import Dice
from tests.staged.truth import changed, gets_going

JOB = "default/ask"
SEEDS = range(60)
pytestmark = pytest.mark.sample(4)
FEW = range(0, 60, 6)


def drawn(seed: int) -> list[dict[str, Any]]:
    """Draw a crowded cluster with quotas, in which the job has no pods yet."""
    objects, dice = scene(seed), Dice(seed)
    mine = [one for one in objects if one["kind"] == "Pod" and group_of(one) == JOB]
    [group] = [one for one in objects if one["kind"] == "PodGroup" and key(one) == JOB]
    rest = [one for one in objects if one is not group and one not in mine]
    held = sum(float(requests(one).get("cpu", 0)) for one in rest if one["kind"] == "Pod")
    made = [quota("team", "requests.cpu", held + dice.between(0, 6))]
    if dice.chance(0.5):
        pods = sum(one["kind"] == "Pod" for one in rest)
        made.append(quota("other", "pods", pods + dice.between(0, 5)))
    return [*rest, *made, volcano_job(group, mine)]


def quota(name: str, entry: str, hard: float) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"hard": {entry: f"{int(hard * 1000)}m"}},
    }


def volcano_job(group: Any, pods: list[Any]) -> dict[str, Any]:
    """Write a gang as a Volcano job, a task for each kind of pod."""
    kinds: dict[str, list[Any]] = {}
    for one in pods:
        role = one["metadata"]["annotations"].get("volcano.sh/task-spec") or "w"
        kinds.setdefault(role, []).append(one)
    tasks = []
    for name, some in kinds.items():
        spec = {
            field: some[0]["spec"][field]
            for field in ("containers", "nodeSelector", "tolerations")
            if field in some[0]["spec"]
        }
        tasks.append({"name": name, "replicas": len(some), "template": {"spec": spec}})
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "ask", "namespace": "default"},
        "spec": {
            "schedulerName": "volcano",
            "queue": group["spec"]["queue"],
            "minAvailable": group["spec"]["minMember"],
            "priorityClassName": group["spec"]["priorityClassName"],
            "tasks": tasks,
        },
    }


@cache
def explained(seed: int) -> Any:
    world = world_of(drawn(seed), conf(seed))
    return explain_job(world, JOB, unblock=False, foresee=False).to_dict()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_job_waits_for_quotas_that_have_too_little_for_its_gang(seed: int) -> None:
    """The least that a gang may take is what its smallest pods take."""
    objects, found = drawn(seed), explained(seed)
    world = world_of(objects, conf(seed))
    pods = world.pods_by_group[found["job"]]
    named = {
        cause["object"]["name"] for cause in found["causes"] if cause["code"] == "QuotaExceeded"
    }
    if found["state"] != "waits":
        assert not named
        return
    by_plugin = {(cause["object"] or {}).get("kind") for cause in found["causes"]}
    for one in (one for one in objects if one["kind"] == "ResourceQuota"):
        [(entry, hard)] = one["spec"]["hard"].items()
        smallest = sum(sorted(_takes(pod, entry) for pod in pods)[: found["minMember"]])
        used = sum(_takes(pod, entry) for pod in objects if pod["kind"] == "Pod")
        if smallest and used + smallest > float(amount(hard)):
            assert named or "Queue" in by_plugin, (one["metadata"]["name"], found["causes"])


def _takes(pod: Any, entry: str) -> float:
    return 1.0 if entry == "pods" else float(requests(pod).get("cpu", 0))


@pytest.mark.parametrize("seed", SEEDS)
def test_amounts_are_right(seed: int) -> None:
    for cause in explained(seed)["causes"]:
        numbers = cause["numbers"]
        if cause["code"] == "QuotaExceeded" and "resource" in numbers:
            over = numbers["used"] + numbers["request"] - numbers["limit"]
            assert numbers["over"] == pytest.approx(over)
            assert over > 0, cause


@pytest.mark.parametrize("seed", FEW)
def test_explain_and_whatif_agree(seed: int) -> None:
    world = world_of(drawn(seed), conf(seed))
    answer = present(what_if(world, Question(job=JOB)).job)
    if explained(seed)["state"] == "starts":
        assert answer.state in ("now", "after evictions"), answer
    if explained(seed)["causes"] and explained(seed)["causes"][0]["code"] == "QuotaExceeded":
        assert answer.state != "now", answer


@pytest.mark.parametrize("seed", FEW)
def test_remedies_help(seed: int) -> None:
    if "QuotaExceeded" not in [cause["code"] for cause in explained(seed)["causes"]]:
        return
    content: dict[str, Any] = {"objects": drawn(seed), "conf": conf(seed)}
    found = explain_job(world_of(content["objects"], content["conf"]), JOB)
    for remedy in json.loads(json.dumps(found.to_dict()))["remedies"]:
        better = changed(content, remedy["changes"])
        assert gets_going(world_of(better["objects"], better["conf"]), JOB), remedy["text"]
