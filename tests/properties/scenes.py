"""Clusters at a random moment of their life, with what then really happens in them.

A scene is played on a whole control plane: API server, controllers, kubelet and scheduler.  At some
moment all objects are written down, as `kubectl get` would, and the play continues.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from pumice.api.conf import parse_conf
from pumice.api.objects import KINDS
from pumice.clock import VirtualClock
from pumice.cluster.embedded.quotas import PodQuotas
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.diagnosis.cluster_state import ClusterState, title_of
from pumice.diagnosis.sources import load_world
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.serve.scheduler.live_scheduler import Cycle
from pumice.testing import node, pod, pod_group, priority_class, queue

START = 1_768_471_200.0  # 2026-01-15T10:00:00Z
HORIZON = 240.0
"""Seconds that are played after the moment."""
DUMPED = [
    "Job.batch.volcano.sh",
    *(f"{k}.{v.partition('/')[0]}" if "/" in v else k for v, k in KINDS),
]

PLAIN = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion},
    {name: nodeorder}]
"""
PREEMPT = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: conformance}]
- plugins: [{name: gang, enablePreemptable: false}, {name: predicates}, {name: nodeorder}]
"""
RECLAIM = """
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""
CDP = PREEMPT.replace("{name: conformance}", "{name: conformance}, {name: cdp}")
SLA = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: sla}]
- plugins: [{name: overcommit, arguments: {overcommit-factor: 1.0}}, {name: predicates},
    {name: nodeorder}]
"""
TDM = """
actions: "enqueue, allocate, shuffle, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins:
  - name: tdm
    arguments:
      tdm.revocable-zone.rz1: 10:02-10:04
      tdm.evict.period: 45s
  - name: predicates
  - name: nodeorder
"""
ZONE = "volcano.sh/revocable-zone"


T = TypeVar("T")


class Dice:
    """Random choices, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def randint(self, low: int, high: int) -> int:
        """Draw a whole number, both bounds included."""
        return int(self._rng.integers(low, high + 1))

    def choice(self, options: list[T]) -> T:
        """Draw one of some things."""
        return options[self.randint(0, len(options) - 1)]


@dataclass
class Scene:
    """A cluster at a moment, and what happened to the jobs that waited then."""

    world: ClusterState
    starts: dict[str, tuple[float, dict[str, str]]] = field(default_factory=dict)
    """Job to the seconds until it started, and the nodes of the pods it started with."""
    victims: dict[str, set[str]] = field(default_factory=dict)
    """Job to the pods that were evicted for it until it started."""


class Stage:
    """A control plane on which jobs arrive."""

    def __init__(self, random: Dice, conf: str, nodes: Iterable[Any], *, idle: bool) -> None:
        self.random = random
        self.conf = conf
        self.store = EmbeddedCluster(VirtualClock(START))
        self.plane = EmbeddedControlPlane(
            parse_conf(conf), cluster=self.store, idle_period_s=1.0 if idle else None
        )
        for one in (*nodes, priority_class("high", value=100), priority_class("mid", value=50)):
            self.store.create(one)

    def queue(self, name: str, **spec: Any) -> None:
        """Add an open queue."""
        made = self.store.create(queue(name, **spec))
        self.store.update_status({**made, "status": {"state": "Open"}})

    def at(self, second: float, act: Callable[[], object]) -> None:
        """Do something later."""
        self.store.clock.call_at(START + second, act)

    def gang(self, name: str, pods: int, cpu: int, runs: float | None, **options: Any) -> None:
        """Add a pod group and its pods."""
        marks = {} if runs is None else {"pumice.dev/run-seconds": str(runs)}
        marks |= options.pop("marks", {})
        spec = {"terminationGracePeriodSeconds": options.pop("grace", 30)}
        rank = options.get("priority_class")
        if rank:
            spec["priorityClassName"] = rank
        labels = options.pop("labels", None)
        group_marks = options.pop("group_marks", None)
        group = pod_group(
            name,
            min_member=options.pop("least", pods),
            phase=None,
            min_resources={"cpu": cpu * pods},
            **options,
        )
        if group_marks:
            group["metadata"]["annotations"] = group_marks
        self.store.create(group)
        for i in range(pods):
            made = pod(f"{name}-{i}", group=name, cpu=cpu, annotations=dict(marks), spec=dict(spec))
            if labels:
                made["metadata"]["labels"] = labels
            self.store.create(made)

    def job(self, name: str, pods: int, cpu: int, runs: float, **options: Any) -> None:
        """Add a Volcano job."""
        grace = options.pop("grace", 30)
        template = {
            "metadata": {"annotations": {"pumice.dev/run-seconds": str(runs)}},
            "spec": {
                "restartPolicy": "OnFailure",
                "terminationGracePeriodSeconds": grace,
                "containers": [
                    {"name": "a", "image": "b", "resources": {"requests": {"cpu": str(cpu)}}}
                ],
            },
        }
        spec = {
            "schedulerName": "volcano",
            "queue": "default",
            "minAvailable": pods,
            "maxRetry": 100,
            "tasks": [{"name": "w", "replicas": pods, "template": template}],
            **options,
        }
        head = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
        meta = {"name": name, "namespace": "default"}
        self.store.create({**head, "metadata": meta, "spec": spec})

    def scene(self, moment: float, *arrivals: Callable[[], object]) -> Scene:
        """Play up to a moment, at which some jobs arrive, write the cluster down, and play on."""
        self.store.clock.run_due()
        self.plane.run(until=START + moment)
        for arrive in arrivals:
            arrive()
        objects = [one for kind in DUMPED for one in self._listed(kind)]
        scene = Scene(_loaded(objects, self.conf, START + moment))
        watch = _Watch(self, scene, START + moment)
        self.plane.on_cycle.append(watch.cycle)
        self.plane.run(until=START + moment + HORIZON)
        return scene

    def _listed(self, kind: str) -> list[Any]:
        return self.store.list(kind)[0]


def _loaded(objects: list[Any], conf: str, now: float) -> ClusterState:
    text = "\n---\n".join(json.dumps(one) for one in objects) + "\n"
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"},
        "data": {"volcano-scheduler.conf": conf},
    }
    return load_world([text, json.dumps(config) + "\n"], now=now)


class _Watch:
    """Notes what each cycle does for jobs that have not started yet."""

    def __init__(self, stage: Stage, scene: Scene, since: float) -> None:
        self._store, self._scene, self._since = stage.store, scene, since

    def _job(self, key: str) -> str:
        space, _, name = key.partition("/")
        found = self._store.peek("Pod", space, name)
        if found is not None:
            name = found["metadata"]["annotations"]["scheduling.k8s.io/group-name"]
        group = self._store.peek("PodGroup.scheduling.volcano.sh", space, name)
        return key if group is None else title_of(group)

    def cycle(self, cycle: Cycle) -> None:
        scene, decisions = self._scene, cycle.decisions
        for victim in decisions.evictions:
            whose = self._job(decisions.beneficiaries.get(victim, ""))
            if whose not in scene.starts:
                scene.victims.setdefault(whose, set()).add(victim)
        for bound, home in decisions.binds.items():
            at = cycle.at - self._since
            when, places = scene.starts.setdefault(self._job(bound), (at, {}))
            if when == at:
                places[bound] = home


# Families of scenes

_RANKS = ["high", "mid"]


def _nodes(random: Dice, most: int = 3, cpu: int = 4) -> list[Any]:
    return [node(f"n{i}", cpu=cpu, memory="64Gi") for i in range(random.randint(1, most))]


def chain_of_jobs(random: Dice) -> Scene:
    """Twenty jobs that wait for each other."""
    stage = Stage(random, PLAIN, _nodes(random, 2), idle=False)
    add = random.choice([stage.gang, stage.job])
    for i in range(20):
        runs, cpu = random.randint(3, 20), random.randint(2, 4)
        stage.at(i // 4, partial(add, f"j{i:02d}", 1, cpu, float(runs)))
    return stage.scene(random.randint(5, 12))


def gangs(random: Dice) -> Scene:
    """Gangs of several pods in two queues."""
    stage = Stage(random, PLAIN, _nodes(random), idle=False)
    stage.queue("blue", weight=2)
    for i in range(random.randint(5, 9)):
        pods, cpu = random.randint(1, 4), random.randint(1, 2)
        where = random.choice(["default", "blue"])
        runs = float(random.randint(5, 60))
        stage.at(random.randint(0, 9), partial(stage.gang, f"g{i}", pods, cpu, runs, queue=where))
    return stage.scene(10)


def preemption(random: Dice) -> Scene:
    """Pods of low priority make room, with grace periods, and are made again."""
    stage = Stage(random, PREEMPT, _nodes(random, 2), idle=False)
    add = random.choice([stage.gang, stage.job])
    for i in range(4):
        runs, grace = float(random.randint(60, 200)), random.choice([0, 3, 10, 30])
        stage.at(i, partial(add, f"low{i}", random.randint(1, 2), 2, runs, grace=grace))
    moment = random.randint(8, 32)
    word = "priority_class" if add == stage.gang else "priorityClassName"
    tops = [
        partial(add, f"top{i}", 1, random.randint(2, 4), 50.0, **{word: random.choice(_RANKS)})
        for i in range(random.randint(2, 3))
    ]
    stage.at(random.randint(6, moment), tops.pop())
    return stage.scene(moment, *tops)


def reclaim(random: Dice) -> Scene:
    """A queue reclaims its share."""
    stage = Stage(random, RECLAIM, _nodes(random, 2), idle=False)
    stage.queue("blue", weight=1)
    stage.queue("red", weight=1)
    for i in range(6):
        act = partial(
            stage.gang,
            f"blue{i}",
            1,
            1,
            float(random.randint(80, 300)),
            queue="blue",
            grace=random.choice([0, 5, 20]),
        )
        stage.at(i // 2, act)
    moment = random.randint(6, 20)
    reds = [partial(stage.gang, f"red{i}", 1, 1, 40.0, queue="red") for i in range(3)]
    stage.at(random.randint(5, moment), reds.pop())
    return stage.scene(moment, *reds)


def cooldown(random: Dice) -> Scene:
    """Running pods are protected for a while."""
    stage = Stage(random, CDP, _nodes(random, 1), idle=True)
    for i in range(2):
        label = {"volcano.sh/cooldown-time": f"{random.randint(10, 90)}s"}
        grace = random.choice([0, 5])
        act = partial(stage.gang, f"low{i}", 1, 2, 400.0, labels=label, grace=grace)
        stage.at(i, act)
    stage.at(4, partial(stage.gang, "top", 1, random.choice([2, 4]), 30.0, priority_class="high"))
    return stage.scene(random.randint(5, 9))


def waiting_time(random: Dice) -> Scene:
    """An overdue job is admitted although there is no room for it."""
    stage = Stage(random, SLA, _nodes(random, 1), idle=True)
    for i in range(3):
        stage.at(i, partial(stage.gang, f"old{i}", 1, 2, float(random.randint(60, 120))))
    marks = {"sla-waiting-time": f"{random.randint(20, 50)}s"}
    stage.at(4, partial(stage.job, "late", 2, 2, 30.0))
    stage.at(5, partial(stage.gang, "due", 1, 4, 30.0, group_marks=marks))
    return stage.scene(random.randint(6, 15))


def windows(random: Dice) -> Scene:
    """Nodes are lent while a window is open, and reclaimed when it closes."""
    lent = node("lent", cpu=4, memory="64Gi", labels={ZONE: "rz1"})
    stage = Stage(random, TDM, [node("own", cpu=2, memory="64Gi"), lent], idle=True)
    marks = {ZONE: "*", "volcano.sh/preemptable": "true"}
    kinds = {"volcano.sh/preemptable": "true"}
    for i in range(random.randint(2, 4)):
        act = partial(
            stage.gang,
            f"loan{i}",
            1,
            2,
            float(random.randint(30, 200)),
            marks=marks,
            group_marks=kinds,
            grace=random.choice([0, 10]),
        )
        stage.at(random.randint(0, 20), act)
    stage.at(3, partial(stage.gang, "firm", 1, 2, 60.0))
    late = partial(stage.gang, "late", 1, 2, 40.0, marks=marks, group_marks=kinds)
    return stage.scene(random.choice([25, 100, 130, 200]), late)


def quotas(random: Dice) -> Scene:
    """A namespace may use less than the nodes have, so that jobs wait for their pods."""
    stage = Stage(
        random, PLAIN, [node(f"n{i}", cpu=8, memory="64Gi") for i in range(2)], idle=False
    )
    stage.store.quotas = PodQuotas(stage.store)
    for name in ["team", "other"][: random.randint(1, 2)]:
        hard = {random.choice(["cpu", "requests.cpu", "pods"]): str(random.randint(3, 6))}
        meta = {"name": name, "namespace": "default"}
        head = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta}
        stage.store.create({**head, "spec": {"hard": hard}})
    for i in range(random.randint(4, 8)):
        pods, cpu = random.randint(1, 4), random.randint(1, 2)
        least, runs = random.randint(1, pods), float(random.randint(5, 60))
        add = partial(stage.job, f"q{i}", pods, cpu, runs, minAvailable=least)
        stage.at(random.randint(0, 9), add)
    new = partial(stage.job, "new", random.randint(2, 4), 1, 20.0)
    return stage.scene(random.randint(10, 20), new)


FAMILIES: dict[str, tuple[Callable[[Dice], Scene], int]] = {
    "chain": (chain_of_jobs, 12),
    "gangs": (gangs, 12),
    "preemption": (preemption, 12),
    "reclaim": (reclaim, 10),
    "cooldown": (cooldown, 6),
    "waiting time": (waiting_time, 6),
    "windows": (windows, 6),
    "quotas": (quotas, 20),
}
"""Name to the maker of scenes and how many are played."""
