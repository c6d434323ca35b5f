"""Answers about jobs that wait for several reasons, held against sums done by hand."""

import json
import re
from functools import cache
from typing import Any

import pytest

from pumice.diagnosis.explain import explain_job
from pumice.diagnosis.runner import Replay
from pumice.diagnosis.whatif import Question, what_if
from tests.present import present
from tests.properties.crowded import Book, conf, group_of, key, requests, scene, world_of
from tests.staged.truth import changed, gets_going

JOB = "default/ask"
SEEDS = range(60)
pytestmark = pytest.mark.sample(4)
FEW = range(0, 60, 6)
_BESIDE = "of the job placed)"


@cache
def explained(seed: int) -> Any:
    world = world_of(scene(seed), conf(seed))
    return explain_job(world, JOB, unblock=False, foresee=False).to_dict()


def waits(seed: int) -> bool:
    """Return whether the drawn job waits."""
    return bool(explained(seed)["state"] == "waits")


@pytest.mark.parametrize("seed", SEEDS)
def test_nodes_are_left_as_a_look_at_each_of_them_says(seed: int) -> None:
    book, rows = Book(scene(seed)), explained(seed)["funnel"]
    if not rows or not waits(seed):
        return
    name = re.match(r"for pod (\S+),", rows[0]["text"])
    one, left = book.pods[f"default/{present(name)[1]}"], set(book.nodes)
    assert rows[0]["left"] == len(left)
    for row in rows[1:]:
        if _BESIDE in row["text"]:
            return  # pods of the job itself take room there
        left -= {each for each in left if book.refuses(row["constraint"], one, each)}
        assert row["left"] == len(left), row


@pytest.mark.parametrize("seed", SEEDS)
def test_amounts_of_causes_are_right(seed: int) -> None:
    book, found = Book(scene(seed)), explained(seed)
    for cause in found["causes"]:
        numbers, about = cause["numbers"], cause["object"] or {}
        if "nearest" in numbers and _BESIDE not in cause["text"]:
            asked = requests(book.pods[numbers["pod"]])
            assert numbers["lacks"] == book.lacks(asked, numbers["nearest"], empty=False)
        if about.get("kind") == "Queue" and "resource" in numbers:
            assert numbers["over"] == pytest.approx(
                numbers["used"] + numbers["request"] - numbers["limit"]
            )
            assert numbers["over"] > 0, cause
            if book.groups[JOB]["status"]["phase"] == "Inqueue":
                assert numbers["used"] == book.held(about["name"], numbers["resource"]), cause


@pytest.mark.parametrize("seed", SEEDS)
def test_a_gang_too_large_for_the_limit_of_its_queue_is_told_so(seed: int) -> None:
    """Whatever the nodes say: all pods of the gang, where it needs all, against what is stated."""
    book, found = Book(scene(seed)), explained(seed)
    spec = book.groups[JOB]["spec"]
    mine = [one for one in book.pods.values() if group_of(one) == JOB]
    limit = book.queues[spec["queue"]]["spec"].get("capability") or {}
    if not waits(seed):
        return
    if spec["minMember"] < len(mine) or "capacity" not in conf(seed) or "cpu" not in limit:
        return
    asked = float(sum(requests(one).get("cpu", 0) for one in mine))
    codes = [cause["code"] for cause in found["causes"]]
    if asked + book.held(spec["queue"], "cpu") > float(limit["cpu"]) and asked:
        assert "QueueOverCapability" in codes, codes


def is_open(seed: int) -> bool:
    """Return whether the queue of the job takes new ones."""
    book = Book(scene(seed))
    return bool(book.queues[book.groups[JOB]["spec"]["queue"]]["status"]["state"] == "Open")


@pytest.mark.parametrize("seed", FEW)
def test_a_new_job_and_the_same_job_that_is_there_get_one_answer(seed: int) -> None:
    if not is_open(seed):
        return
    objects = scene(seed)
    mine = [one for one in objects if _is_asked(one)]
    for one in mine:
        one["metadata"]["creationTimestamp"] = "2026-01-15T10:00:00Z"
        if one["kind"] == "PodGroup":
            one["status"] = {}
    rest = world_of([one for one in objects if not _is_asked(one)], conf(seed))
    there = world_of(objects, conf(seed))
    new = present(what_if(rest, Question(new_job=mine)).job)
    old = present(what_if(there, Question(job=JOB)).job)
    assert (new.state, new.in_s, new.victims, new.places) == (
        old.state,
        old.in_s,
        old.victims,
        old.places,
    )
    binds = {pod: home for pod, home in Replay(there).decide().binds.items() if pod in _keys(mine)}
    assert (new.places if new.in_s == 0 else {}) == binds


@pytest.mark.parametrize("seed", FEW)
def test_remedies_help_and_name_no_node_too_many(seed: int) -> None:
    if not waits(seed):
        return
    content: dict[str, Any] = {"objects": scene(seed), "conf": conf(seed)}
    found = explain_job(world_of(content["objects"], content["conf"]), JOB)
    for remedy in json.loads(json.dumps(found.to_dict()))["remedies"]:
        assert _starts(content, remedy["changes"]), remedy["text"]
        added = [change for change in remedy["changes"] if _adds_node(change)]
        if added and present(found.forecast)["in_s"] is None:
            fewer = [change for change in remedy["changes"] if change is not added[-1]]
            assert not _starts(content, fewer), remedy["text"]


def _starts(content: Any, changes: Any) -> bool:
    better = changed(content, changes)
    return gets_going(world_of(better["objects"], better["conf"]), JOB)


def _adds_node(change: Any) -> bool:
    return bool(change["op"] == "add" and change["object"]["kind"] == "Node")


def _is_asked(one: Any) -> bool:
    return key(one) == JOB or (one["kind"] == "Pod" and group_of(one) == JOB)


def _keys(objects: Any) -> set[str]:
    return {key(one) for one in objects}
