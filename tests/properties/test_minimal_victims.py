"""Victims no more than needed: none can be spared, no set is cheaper, and the laws of eviction.

The seven laws are those that Apache YuniKorn states for preemption, in the words of Volcano's
queues: a queue is entitled to what it deserves.
"""

from collections import Counter
from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.conf import parse_conf
from pumice.api.decisions import Decisions
from pumice.framework.session import Session
from pumice.framework.session_state import ProcessMemory
from pumice.scheduler import Observer, Scheduler
from pumice.testing import node, pod, pod_group, priority_class, queue
from pumice.testing.samples import snapshot_of
from tests.properties.full_clusters import Dice

NOW = 1_767_229_200.0
LEVELS = {"low": 1, "middle": 10, "high": 1000}
SEEDS = st.integers(0, 10**6)


def conf(action: str, *tiers: str, **arguments: Any) -> str:
    given = {"minimalVictims": True, **arguments}
    plugins = "\n".join(
        f"- plugins: [{', '.join(f'{{name: {name}}}' for name in tier.split())}]" for tier in tiers
    )
    return f"""
actions: "allocate, {action}"
configurations:
- name: {action}
  arguments: {given}
tiers:
{plugins}
"""


def running(name: str, host: str, job: str, cpu: int, level: str, age: int = 0) -> Any:
    made = pod(name, group=job, cpu=cpu, node=host, priority=LEVELS[level])
    at = np.datetime64(int(NOW - age), "s")
    made["status"]["startTime"] = f"{at}Z"
    return made


def drawn(
    seed: int, held: str = "default", asking: str = "default", *, wide: bool = True
) -> list[Any]:
    """Draw nodes full of jobs of all priorities in some queues, and jobs that wait in others."""
    dice = Dice(seed)
    objects = [priority_class(name, value=value) for name, value in LEVELS.items()]
    room = {f"n{i}": dice.between(2, 8) for i in range(dice.between(1, 4))}
    objects += [node(host, cpu=cpu, memory="64Gi") for host, cpu in room.items()]
    for number in range(dice.between(4, 10)):
        level, job = dice.one_of([*LEVELS]), f"run-{number}"
        pods = []
        for task in range(dice.between(1, 4)):
            host, cpu = dice.one_of([*room]), dice.between(1, 3)
            if cpu <= room[host]:
                room[host] -= cpu
                age = dice.one_of([10, 100, 1000])
                pods.append(running(f"{job}-{task}", host, job, cpu, level, age))
        group = pod_group(
            job,
            queue=dice.one_of(held.split()),
            min_member=dice.between(0, len(pods)),
            phase="Running",
            priority_class=level,
        )
        objects += [group, *pods]
    for number in range(dice.between(1, 3) if wide else 1):
        level, size = dice.one_of([*LEVELS]), dice.between(1, 3) if wide else 1
        job = f"wait-{number}"
        objects.append(
            pod_group(
                job,
                queue=dice.one_of(asking.split()),
                min_member=size,
                phase="Inqueue",
                priority_class=level,
            )
        )
        objects += [
            pod(f"{job}-{task}", group=job, cpu=dice.between(1, 4), priority=LEVELS[level])
            for task in range(size)
        ]
    return objects


class Parts(Observer):
    """Copies what queues deserve and hold, by cpu, when a session opens."""

    def opened(self, ssn: Session) -> None:
        """Copy it."""
        limits, queues = ssn.queue_limits(), ssn.snapshot.queues
        assert limits is not None
        self.deserved = dict(zip(queues.names, limits.deserved[0].tolist(), strict=False))
        self.held = dict(zip(queues.names, queues.allocated[0].tolist(), strict=False))


def decide(objects: list[Any], text: str, observer: Observer | None = None) -> Decisions:
    decisions = Scheduler(parse_conf(text)).decide(snapshot_of(objects), NOW, observer=observer)
    assert decisions.failures == []
    return decisions


def cpu_of(one: Any) -> int:
    return int(one["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def by_key(objects: list[Any], kind: str) -> dict[str, Any]:
    return {f"default/{each['metadata']['name']}": each for each in objects if each["kind"] == kind}


def job_of(one: Any) -> str:
    return f"default/{one['metadata']['annotations']['scheduling.k8s.io/group-name']}"


PREEMPTING = [("priority",), ("priority gang", "conformance"), ("gang", "drf predicates nodeorder")]


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, tiers=st.sampled_from(PREEMPTING))
def test_no_victim_of_preempt_can_be_spared(seed: int, tiers: tuple[str, ...]) -> None:
    objects = drawn(seed)
    decisions = decide([queue("default"), *objects], conf("preempt", *tiers))
    _assert_none_can_be_spared(objects, decisions)


def _assert_none_can_be_spared(objects: list[Any], decisions: Decisions) -> None:
    """Add up by hand what nodes hold once all is done."""
    pods, nodes = by_key(objects, "Pod"), by_key(objects, "Node")
    places = {**decisions.binds, **decisions.pipelined}
    used: Counter[str] = Counter()
    for key, one in pods.items():
        host = places.get(key) or one["spec"].get("nodeName")
        if host and key not in decisions.evictions:
            used[host] += cpu_of(one)
    for key, each in nodes.items():
        host = key.removeprefix("default/")
        assert used[host] <= int(each["status"]["allocatable"]["cpu"])
    for victim in decisions.evictions:
        host = pods[victim]["spec"]["nodeName"]
        room = int(nodes[f"default/{host}"]["status"]["allocatable"]["cpu"])
        assert used[host] + cpu_of(pods[victim]) > room, victim


Cost = tuple[int, int, float, int]


def _cost(objects: list[Any], victims: tuple[str, ...]) -> Cost:
    """Compute the cost of a set as docs/actions/preempt.md states it."""
    pods, groups = by_key(objects, "Pod"), by_key(objects, "PodGroup")
    sizes = Counter(job_of(one) for one in pods.values() if one["spec"].get("nodeName"))
    gone = Counter(job_of(pods[key]) for key in victims)
    broken = {
        job
        for job, n in gone.items()
        if sizes[job] - n < groups[job]["spec"]["minMember"] <= sizes[job]
    }
    lost = [
        NOW - float(np.datetime64(one["status"]["startTime"].rstrip("Z")).astype(int))
        for key, one in pods.items()
        if one["spec"].get("nodeName") and (key in victims or job_of(one) in broken)
    ]
    return (
        max(pods[key]["spec"]["priority"] for key in victims),
        len(broken),
        sum(lost),
        len(victims),
    )


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_no_other_set_of_victims_is_cheaper(seed: int) -> None:
    objects = drawn(seed, wide=False)
    decisions = decide([queue("default"), *objects], conf("preempt", "priority"))
    if decisions.binds:
        return
    pods = by_key(objects, "Pod")
    asks = pods["default/wait-0-0"]
    sets: list[Cost] = []
    for key, each in by_key(objects, "Node").items():
        host = key.removeprefix("default/")
        here = {name for name, one in pods.items() if one["spec"].get("nodeName") == host}
        free = int(each["status"]["allocatable"]["cpu"]) - sum(cpu_of(pods[k]) for k in here)
        lower = sorted(k for k in here if pods[k]["spec"]["priority"] < asks["spec"]["priority"])
        sizes = range(1, len(lower) + 1)
        sets += [
            _cost(objects, some)
            for some in chain.from_iterable(combinations(lower, n) for n in sizes)
            if free + sum(cpu_of(pods[k]) for k in some) >= cpu_of(asks)
        ]
    assert bool(decisions.evictions) == bool(sets)
    if sets:
        assert _cost(objects, tuple(decisions.evictions)) == min(sets)


RECLAIMING = [("priority", "proportion"), ("gang", "proportion"), ("gang", "capacity")]


def reclaiming(seed: int) -> tuple[list[Any], list[Any]]:
    """Draw queues that deserve different amounts, and a cluster; most pods run in one queue."""
    dice = Dice(seed + 1)
    parts = {"red": (0, 3), "green": (2, 8), "fenced": (2, 8)}
    queues = [
        queue(
            name,
            weight=dice.between(1, 3),
            deserved={"cpu": dice.between(*part)},
            reclaimable=name != "fenced",
        )
        for name, part in parts.items()
    ]
    return queues, drawn(seed, "red red green fenced", "green fenced")


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, tiers=st.sampled_from(RECLAIMING))
def test_reclaim_obeys_the_laws_of_eviction(seed: int, tiers: tuple[str, ...]) -> None:
    queues, objects = reclaiming(seed)
    parts = Parts()
    decisions = decide([*queues, *objects], conf("reclaim", *tiers), parts)
    pods, groups = by_key(objects, "Pod"), by_key(objects, "PodGroup")
    _assert_none_can_be_spared(objects, decisions)
    lost: Counter[str] = Counter()
    for victim in decisions.evictions:
        asks = pods[decisions.beneficiaries[victim]]
        mine, theirs = job_of(asks), job_of(pods[victim])
        own, other = groups[mine]["spec"]["queue"], groups[theirs]["spec"]["queue"]
        lost[other] += 1000 * cpu_of(pods[victim])
        assert mine != theirs  # no job evicts for itself
        assert own != other
        assert pods[victim]["spec"]["priority"] <= asks["spec"]["priority"]
        assert other != "fenced"  # one way: its own jobs may reclaim
        assert parts.held[own] < parts.deserved[own]  # it is owed more
        assert parts.held[other] > parts.deserved[other]  # it has more than its part
    for name, cpu in lost.items():
        assert parts.held[name] - cpu >= parts.deserved[name]  # and keeps its part


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, tiers=st.sampled_from(PREEMPTING))
def test_preempt_obeys_the_laws_of_eviction(seed: int, tiers: tuple[str, ...]) -> None:
    objects = drawn(seed)
    decisions = decide([queue("default"), *objects], conf("preempt", *tiers))
    pods = by_key(objects, "Pod")
    for victim in decisions.evictions:
        asks = pods[decisions.beneficiaries[victim]]
        assert job_of(asks) != job_of(pods[victim])
        assert pods[victim]["spec"]["priority"] <= asks["spec"]["priority"]


def test_what_a_pod_costs_is_a_preference_and_no_protection() -> None:
    """A dear pod is spared where a cheaper one will do, and evicted where none will."""
    dear = running("dear", "n1", "old", 1, "middle", age=1000)
    cheap = running("cheap", "n1", "old", 1, "low", age=10)
    group = pod_group("old", min_member=0, phase="Running", priority_class="low")
    classes = [priority_class(name, value=value) for name, value in LEVELS.items()]
    fixed = [queue("default"), node("n1", cpu=2), group, *classes]
    for size, evicted in ((1, ["default/cheap"]), (2, ["default/cheap", "default/dear"])):
        new = pod_group("new", phase="Inqueue", priority_class="high")
        asks = pod("new-0", group="new", cpu=size, priority=1000)
        found = decide([*fixed, dear, cheap, new, asks], conf("preempt", "priority"))
        assert sorted(found.evictions) == evicted


def _after(objects: list[Any], decisions: Decisions) -> list[Any]:
    """Return the objects of the next cycle: placed pods run, evicted ones wait again."""
    places = {**decisions.binds, **decisions.pipelined}
    left = []
    for one in objects:
        key = f"default/{one['metadata']['name']}"
        if one["kind"] != "Pod" or (key not in places and key not in decisions.evictions):
            left.append(one)
            continue
        level = {value: name for name, value in LEVELS.items()}[one["spec"]["priority"]]
        job = job_of(one).removeprefix("default/")
        name, cpu = one["metadata"]["name"], cpu_of(one)
        waits = pod(name, group=job, cpu=cpu, priority=LEVELS[level])
        left.append(running(name, places[key], job, cpu, level) if key in places else waits)
    return left


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, most=st.integers(0, 3))
def test_evicted_jobs_do_not_evict_at_once_and_evictions_are_capped(seed: int, most: int) -> None:
    text = conf("preempt", "drf predicates", hysteresis="120s", maxEvictionsPerMinute=most)
    scheduler, process = Scheduler(parse_conf(text)), ProcessMemory()
    objects, lost = drawn(seed), dict[str, float]()
    times: list[float] = []
    for cycle in range(12):
        now = NOW + 20.0 * cycle
        decisions = scheduler.decide(
            snapshot_of([queue("default"), *objects]), now, process=process
        )
        pods = by_key(objects, "Pod")
        for victim in decisions.evictions:
            asks = job_of(pods[decisions.beneficiaries[victim]])
            assert now - lost.get(asks, -1e9) >= 120.0
            times.append(now)
        for victim in decisions.evictions:
            lost[job_of(pods[victim])] = now
        assert not most or sum(at > now - 60.0 for at in times) <= most
        objects = _after(objects, decisions)


@pytest.mark.parametrize("name", ["minimalVictims", "preempt.minimalVictims"])
def test_the_argument_may_carry_the_name_of_its_action(name: str) -> None:
    dear, cheap = (
        running(each, host, "old", 1, "low", age)
        for each, host, age in (("dear", "n1", 1000), ("cheap", "n2", 10))
    )
    fixed = [
        queue("default"),
        node("n1", cpu=1),
        node("n2", cpu=1),
        priority_class("high", value=9),
    ]
    groups = [pod_group("old", min_member=0, phase="Running")]
    groups += [pod_group("new", phase="Inqueue", priority_class="high")]
    asks = pod("new-0", group="new", cpu=1, priority=9)
    text = conf("preempt", "priority").replace("minimalVictims", name)
    found = decide([*fixed, *groups, dear, cheap, asks], text)
    assert found.evictions == ["default/cheap"]
