"""reservation: for whom others are held back, for how long, and who is evicted."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.api.conf import parse_conf
from pumice.api.decisions import Decisions
from pumice.api.times import epoch, rfc3339
from pumice.scheduler import Scheduler
from pumice.testing.builders import node, pod, pod_group, queue

STAGE = yaml.safe_load(Path("tests/staged/would-delay-a-promised-gang.yaml").read_text("utf-8"))


def decided(
    actions: str = "enqueue, allocate",
    marks: dict[str, str] | None = None,
    priority: int = 0,
    after_s: float = 0.0,
    **given: Any,
) -> Decisions:
    """Decide on the staged cluster: wide is promised both nodes in an hour, long would delay it.

    ``marks`` are the annotations of the job that runs, ``priority`` is that of wide.
    """
    arguments = {f"reservation.{name}": value for name, value in given.items()}
    plugins = [
        *({"name": name} for name in ("priority", "predicates")),
        {"name": "gang", "enablePreemptable": False},
        {"name": "reservation", "arguments": arguments},
    ]
    conf = parse_conf(json.dumps({"actions": actions, "tiers": [{"plugins": plugins}]}))
    objects = copy.deepcopy(STAGE["objects"])
    for one in objects:
        if marks is not None and one["metadata"]["name"] == "old":
            one["metadata"]["annotations"] = marks
        if priority and one["metadata"]["name"].startswith("wide"):
            one["spec"]["priorityClassName"] = "high"
            if one["kind"] == "Pod":
                one["spec"]["priority"] = priority
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": priority}
    objects.append({**kind, "metadata": {"name": "high"}})
    return Scheduler(conf).cycle(objects, epoch(STAGE["now"]) + after_s)


def test_what_a_job_is_told_does_not_change_with_the_clock() -> None:
    now, later = (decided(mode="easy", after_s=each).explanations for each in (0, 600))
    assert now["default/long"] == later["default/long"] == "it would delay default/wide"


@pytest.mark.parametrize("mode", ["strict", "easy", "conservative"])
@pytest.mark.parametrize(
    ("given", "passes"),
    [
        ({}, False),
        ({"minPriority": 5, "priority": 5}, False),
        ({"minPriority": 5, "priority": 4}, True),
        ({"maxHold": "2h"}, False),
        ({"maxHold": "30m"}, True),
    ],
)
def test_others_pass_a_job_for_which_nobody_is_held_back(
    mode: str, given: dict[str, Any], passes: bool
) -> None:
    assert [*decided(mode=mode, **given).binds] == ["default/long-0"] * passes


@pytest.mark.parametrize(("within", "evicts"), [("0s", True), ("30m", True), ("2h", False)])
def test_nobody_is_evicted_for_a_job_whose_promised_start_suffices(
    within: str, evicts: bool
) -> None:
    found = decided("enqueue, allocate, preempt", priority=9, sufficesWithin=within)
    assert found.evictions == ["default/old-0"] * evicts


@pytest.mark.parametrize(
    ("enforced", "marks", "evicts"),
    [
        (False, {"pumice.dev/walltime-seconds": "3600"}, False),
        (True, {"pumice.dev/walltime-seconds": "3600"}, True),
        (True, {"pumice.dev/walltime-seconds": "3601"}, False),
        (True, {"pumice.dev/run-seconds": "60"}, False),
    ],
)
def test_a_bound_is_enforced_only_if_asked_for_and_an_estimate_never(
    enforced: bool, marks: dict[str, str], evicts: bool
) -> None:
    found = decided("enqueue, allocate, shuffle", marks, enforceWalltime=enforced)
    assert found.evictions == ["default/old-0"] * evicts


def running_and_waiting(
    nodes: dict[str, int],
    *jobs: tuple[str, int, int, int, str],
    mode: str = "easy",
    grace_s: float = 600,
    affinity: Any = None,
) -> Decisions:
    """Decide at 10:00; a job is its name, pods, CPUs of each, seconds, and its node or "".

    Those named `left` are being deleted.
    """
    now = epoch("2026-01-01T10:00:00Z")
    objects = [queue("q"), *(node(name, cpu=cpu) for name, cpu in nodes.items())]
    for name, size, cpu, seconds, where in jobs:
        marks = {"pumice.dev/run-seconds": str(seconds)}
        phase = "Running" if where else "Inqueue"
        objects.append(pod_group(name, min_member=size, queue="q", phase=phase, annotations=marks))
        for at in range(size):
            one = pod(f"{name}-{at}", group=name, cpu=cpu, node=where or None, labels={"app": "x"})
            one["spec"]["affinity"] = affinity
            one["status"] |= {"startTime": rfc3339(now)} if where else {}
            if name == "left":
                one["metadata"]["deletionTimestamp"] = rfc3339(now + grace_s)
            objects.append(one)
    mine = {"name": "reservation", "arguments": {"reservation.mode": mode}}
    tiers = [{"plugins": [mine, {"name": "gang"}, {"name": "predicates"}]}]
    conf = parse_conf(json.dumps({"actions": "enqueue, allocate", "tiers": tiers}))
    return Scheduler(conf).cycle(objects, now)


def starts(decisions: Decisions) -> dict[str, str]:
    told = {key: json.loads(each.text)["start"] for key, each in decisions.promises.items()}
    return {key.removeprefix("default/"): at[11:19] for key, at in told.items()}


@pytest.mark.parametrize(("grace_s", "start"), [(600, "10:10:00"), (0, "10:05:00")])
def test_a_pod_that_is_being_deleted_keeps_its_place_until_its_grace_is_over(
    grace_s: float, start: str
) -> None:
    jobs = ("left", 1, 1, 9, "a"), ("old", 1, 1, 300, "b"), ("wide", 2, 1, 9, "")
    assert starts(running_and_waiting({"a": 1, "b": 1}, *jobs, grace_s=grace_s)) == {"wide": start}


@pytest.mark.parametrize("mode", ["strict", "easy", "conservative"])
@pytest.mark.parametrize("size", [1, 2])
def test_a_job_that_waits_only_for_leaving_pods_is_promised_a_start_too(
    mode: str, size: int
) -> None:
    """Also where some of its pods have a place already; the next job starts after it."""
    jobs = ("left", 1, 1, 9, "a"), ("wide", size, 2 // size, 9, ""), ("xlong", 1, 1, 7200, "")
    found = running_and_waiting({"a": 2}, *jobs, mode=mode)
    assert starts(found) == {"wide": "10:10:00", "xlong": "10:10:09"}
    assert found.pipelined.keys() == {f"default/wide-{size - 1}"}
    assert not found.binds


@pytest.mark.parametrize("mode", ["easy", "conservative"])
def test_a_start_is_promised_on_a_node_that_ends_earlier_than_a_pod_leaves(mode: str) -> None:
    jobs = ("left", 1, 1, 9, "a"), ("old", 1, 1, 60, "b"), ("wide", 1, 1, 9, "")
    assert starts(running_and_waiting({"a": 1, "b": 1}, *jobs, mode=mode)) == {"wide": "10:01:00"}


@pytest.mark.parametrize("mode", ["easy", "conservative"])
def test_a_leaving_pod_keeps_others_away_until_it_is_gone(mode: str) -> None:
    apart = {
        "labelSelector": {"matchLabels": {"app": "x"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    jobs = ("left", 1, 1, 9, "a"), ("wide", 1, 1, 9, "")
    found = running_and_waiting({"a": 4}, *jobs, mode=mode, affinity=rule)
    assert starts(found) == {"wide": "10:10:00"}
