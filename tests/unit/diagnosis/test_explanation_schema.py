"""The output of `explain -o json` matches `explain --schema`, and each remedy proves itself."""

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from pumice.diagnosis.changes import Change
from pumice.diagnosis.explain import explain_job
from pumice.diagnosis.explanation import EXPLANATION
from pumice.testing import node, pod_group, priority_class, queue

WORLD = [queue("default"), node("n1", cpu=4)]


def valid(found: Any) -> Any:
    data = json.loads(json.dumps(found.to_dict()))
    jsonschema.Draft202012Validator(EXPLANATION).validate(data)
    return data


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(EXPLANATION)


@pytest.mark.parametrize("name", ["waits", "starts", "runs", "empty", "lost", "urgent"])
def test_every_answer_is_valid(world: Any, job: Any, name: str) -> None:
    objects = [
        *WORLD,
        priority_class("high", value=10),
        *job("waits", cpu=6, pods=2),
        *job("starts", cpu=1),
        *job("runs", cpu=2, nodes=["n1"], least=0),
        *job("urgent", cpu=2, priority_class="high", created="2026-01-15T09:00:00Z"),
        *job("lost", cpu=1, queue="nowhere"),
        pod_group("empty", phase="Inqueue"),
    ]
    actions = "enqueue, allocate, preempt"
    found = explain_job(world(objects, "priority gang", "predicates", actions=actions), name)
    data = valid(found)
    assert data["job"] == f"default/{name}"


@pytest.mark.parametrize("part", ["causes", "funnel", "remedies", "notEvicted", "state"])
def test_an_answer_without_a_part_is_not_valid(world: Any, job: Any, part: str) -> None:
    data = valid(explain_job(world([*WORLD, *job("j", cpu=6)]), "j"))
    del data[part]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, EXPLANATION)


def test_a_code_that_is_not_of_the_list_is_not_valid(world: Any, job: Any) -> None:
    data = valid(explain_job(world([*WORLD, *job("j", cpu=6)]), "j"))
    data["causes"][0]["code"] = "Unlucky"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, EXPLANATION)


def test_remedies_as_data_start_the_job(world: Any, job: Any) -> None:
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    large = node("large", cpu=8, taints=[taint])
    there = world([*WORLD, large, *job("old", cpu=3, nodes=["n1"]), *job("j", cpu=3)])
    data = valid(explain_job(there, "j"))
    ops = {op["op"] for remedy in data["remedies"] for op in remedy["changes"]}
    assert ops >= {"patch", "add", "wait"}
    for remedy in data["remedies"]:
        change = Change.from_data(remedy["changes"])
        assert explain_job(change(there), "j").state == "starts", remedy["text"]
