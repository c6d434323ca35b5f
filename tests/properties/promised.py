"""Clusters with everything that decides placement, and jobs whose bounds hold, for promises.

Each feature changes what is drawn: the pods of jobs, nodes, queues or the configuration.  Left out
is what makes a promise depend on pods that may end early, or on queues that may ask for more:
affinity to other pods, spread constraints and shares of proportion.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from pumice.api.annotations import REVOCABLE_ZONE
from pumice.api.conf import SchedulerConf, parse_conf
from pumice.api.objects import from_manifest
from pumice.framework.session import PROMISES
from pumice.framework.session_state import ProcessMemory
from pumice.scheduler import Scheduler
from pumice.sim.engine import Engine
from pumice.sim.workload import ClusterChange, JobSpec, TaskSpec, Workload, expected, in_order
from pumice.testing.builders import hyper_node, node, pod, pod_group, queue

Manifest = dict[str, Any]
START: Final = 1_768_471_200.0
"""2026-01-15T10:00:00Z."""


@dataclass
class Draw:
    """A cluster and its jobs, to be changed."""

    random: np.random.Generator
    jobs: list[Manifest] = field(default_factory=list)
    """Name, arrival, run, bound, queue, priority, fields of the group, and its pods by role."""
    nodes: list[Manifest] = field(default_factory=list)
    queues: list[Manifest] = field(default_factory=list)
    more: list[Manifest] = field(default_factory=list)
    plugins: list[str] = field(default_factory=list)
    changes: list[tuple[float, Manifest]] = field(default_factory=list)

    def chance(self, part: float) -> bool:
        return bool(self.random.random() < part)

    def one_of(self, values: Any) -> Any:
        return values[int(self.random.integers(len(values)))]

    @property
    def pods(self) -> list[Manifest]:
        return [each for job in self.jobs for _, each in job["roles"]]


def features(seed: int) -> list[str]:
    """Draw up to three features, of which at most one limits queues."""
    random = np.random.default_rng(seed)
    names = [*FEATURES]
    found = {names[seed % len(names)], *random.choice(names, int(random.integers(0, 3)))}
    limits = [name for name in names if name in found and name in _LIMITS]
    return [name for name in names if name in found and name not in limits[1:]]


def drawn(seed: int, features: list[str], n: int = 24) -> Draw:
    """Draw gangs of pods of several sizes in three queues, on three nodes, with features."""
    draw = Draw(np.random.default_rng(seed))
    random = draw.random
    draw.nodes = [node(f"node-{at}", cpu=6, memory="12Gi") for at in range(3)]
    draw.queues = [queue(f"q{at}") for at in range(3)]
    arrivals = np.cumsum(random.integers(0, int(draw.one_of([50, 120, 250])), n))
    for at in range(n):
        run = int(random.lognormal(5, 1.2).__ceil__()) % 5000 + 1
        pods = [(int(random.integers(1, 6)), _pod(draw, f"job-{at}"))]
        draw.jobs.append({
            "name": f"job-{at:03d}", "arrival": float(arrivals[at] - arrivals[0]), "run": run,
            "bound": int(run * random.uniform(1, 3)), "queue": f"q{at % 3}", "group": {},
            "priority": "", "roles": pods,
        })  # fmt: skip
    for name in features:
        FEATURES[name](draw)
    return draw


def _pod(draw: Draw, name: str) -> Manifest:
    amounts: Manifest = {
        "cpu": int(draw.random.integers(1, 4)),
        "memory": f"{draw.random.integers(1, 6)}Gi",
    }
    made: Manifest = pod(name, **amounts)
    return made


def conf_of(draw: Draw, mode: str, arguments: str = "") -> SchedulerConf:
    """Return the configuration of a draw."""
    plugins = "".join(f"  - {each}\n" for each in ["name: predicates", *draw.plugins])
    return parse_conf(
        'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - {name: reservation, arguments: '
        f"{{reservation.mode: {mode}{arguments}}}}}\n  - name: gang\n{plugins}"
    )


def workload(draw: Draw) -> Workload:
    """Return the jobs of a draw."""
    jobs = []
    for job in draw.jobs:
        tasks = []
        for at, (count, made) in enumerate(job["roles"]):
            read: Any = from_manifest(made)
            meta = read.metadata
            role = TaskSpec(
                read.spec, count, job["run"], f"role-{at}",
                labels=meta.labels, annotations=meta.annotations,
            )  # fmt: skip
            tasks.append(role)
        size = sum(task.count for task in tasks)
        least = min(job.get("least", size), size)
        fields: Any = from_manifest(
            pod_group(job["name"], queue=job["queue"], min_member=least, **job["group"])
        )
        jobs.append(
            JobSpec(
                job["name"],
                job["arrival"],
                tuple(tasks),
                least,
                job["queue"],
                annotations=expected(job["bound"]),
                priority_class=job["priority"],
                group=fields.spec if job["group"] else None,
            )
        )
    changes = tuple(ClusterChange(at, from_manifest(thing)) for at, thing in draw.changes)
    return Workload(name="drawn", format="jobs", jobs=in_order(jobs), changes=changes, start=START)


def late_starts(draw: Draw, mode: str, arguments: str = "") -> dict[str, tuple[float, float]]:
    """Play a draw; return jobs that start later than first promised: when, and when promised.

    A job of `easy` that another one of higher order took the place of has no promise any more.
    """
    policy = conf_of(draw, mode, arguments)
    scheduler, memory = Scheduler(policy), ProcessMemory()
    scheduler._process = memory
    cluster = [from_manifest(each) for each in (*draw.nodes, *draw.queues, *draw.more)]
    engine = Engine(workload(draw), cluster, policy, scheduler=scheduler)
    first: dict[str, float] = {}
    late: dict[str, tuple[float, float]] = {}
    while engine.step():
        promised = memory.plugins.get(PROMISES, {}).get("starts", {})
        started = {run.key: run.started for run in engine.runs if math.isfinite(run.started)}
        for key in [*first]:
            if key in started:
                at, since = first.pop(key), engine.sim_cluster.epoch
                late |= {key: (started[key], at - since)} if since + started[key] > at else {}
            elif key not in promised and mode == "easy":
                del first[key]
        first = {key: at for key, at in promised.items() if key not in started} | first
    return late | {key: (math.inf, at - engine.sim_cluster.epoch) for key, at in first.items()}


# Queues


def _capacity(draw: Draw) -> None:
    draw.plugins.append("name: capacity")
    if draw.chance(0.7):
        _limit(draw)


def _limit(draw: Draw) -> None:
    for each in draw.queues:
        each["spec"]["capability"] = {"cpu": "14", "memory": "30Gi"}
        if draw.chance(0.3):
            each["spec"]["guarantee"] = {"resource": {"cpu": "2"}}


def _tree(draw: Draw) -> None:
    draw.plugins.append("{name: capacity, enableHierarchy: true}")
    limits: list[Manifest | None] = [None, {"cpu": 12}, {"cpu": 15, "memory": "24Gi"}]
    draw.queues = [queue("root"), queue("dept", parent="root", capability=draw.one_of(limits))]
    for at in range(3):
        parent = draw.one_of(["root", "dept", "dept"])
        made = queue(
            f"q{at}", parent=parent, capability=draw.one_of(limits),
            deserved=draw.one_of([None, {"cpu": 3}]), guarantee=draw.one_of([None, {"cpu": 2}]),
        )  # fmt: skip
        draw.queues.append(made)


def _priorities(draw: Draw) -> None:
    draw.plugins.append("name: priority")
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    for at in range(3):
        draw.more.append({**head, "metadata": {"name": f"p{at}"}, "value": at * 10})
    for job in draw.jobs:
        job["priority"] = draw.one_of(["p0", "p1", "p2"])


def _drf(draw: Draw) -> None:
    draw.plugins.append("name: drf")


# Nodes and pods


def _scores(draw: Draw) -> None:
    draw.plugins.append(draw.one_of(["name: nodeorder", "name: binpack"]))


def _roles(draw: Draw) -> None:
    for job in draw.jobs:
        more = int(draw.random.integers(0, 3))
        job["roles"] = [(min(count, 2), each) for count, each in job["roles"]]
        job["roles"] += [(1, _pod(draw, job["name"])) for _ in range(more)]


def _elastic(draw: Draw) -> None:
    """Jobs start with some of their pods; each other pod runs as long once it has a place."""
    for job in draw.jobs:
        if draw.chance(0.6):
            size = sum(count for count, _ in job["roles"])
            job["least"] = int(draw.random.integers(1, size + 1))


def _windows(draw: Draw) -> None:
    """Some nodes take only revocable pods, and none once their hours are over."""
    draw.nodes.append(node("node-3", cpu=6, memory="12Gi"))
    ends = draw.one_of(["10:04", "10:15", "10:50", "23:59"])
    draw.plugins.append(f"{{name: tdm, arguments: {{tdm.revocable-zone.rz1: '09:00-{ends}'}}}}")
    for each in draw.nodes[2:]:
        each["metadata"].setdefault("labels", {})[REVOCABLE_ZONE] = "rz1"
    for each in draw.pods:
        if draw.chance(0.6):
            each["metadata"].setdefault("annotations", {})[REVOCABLE_ZONE] = "*"


def _marks(draw: Draw) -> None:
    for each, half in zip(draw.nodes, ["left", "right", "right"], strict=False):
        each["metadata"].setdefault("labels", {})["half"] = half
    taint = {"key": "reserved", "value": "yes", "effect": "NoSchedule"}
    draw.nodes[2]["spec"]["taints"] = [taint]
    for each in draw.pods:
        if draw.chance(0.4):
            each["spec"]["nodeSelector"] = {"half": draw.one_of(["left", "right"])}
        if draw.chance(0.7):
            each["spec"]["tolerations"] = [{"key": "reserved", "operator": "Exists"}]


def _anti_affinity(draw: Draw) -> None:
    for each in draw.pods:
        app = draw.one_of("abc")
        each["metadata"].setdefault("labels", {})["app"] = app
        if draw.chance(0.4):
            term = {
                "labelSelector": {"matchLabels": {"app": draw.one_of("abc")}},
                "topologyKey": "kubernetes.io/hostname",
            }
            key = "requiredDuringSchedulingIgnoredDuringExecution"
            each["spec"]["affinity"] = {"podAntiAffinity": {key: [term]}}


def _domains(draw: Draw) -> None:
    draw.plugins.append("name: network-topology-aware")
    draw.nodes.append(node("node-3", cpu=6, memory="12Gi"))
    racks = {"s0": ["node-0", "node-1"], "s1": ["node-2", "node-3"]}
    draw.more += [hyper_node(name, tier=1, nodes=nodes) for name, nodes in racks.items()]
    draw.more.append(hyper_node("top", tier=2, children=[*racks]))
    for job in draw.jobs:
        if draw.chance(0.6):
            rule = {"mode": draw.one_of(["hard", "hard", "soft"]),
                    "highestTierAllowed": draw.one_of([1, 1, 2])}  # fmt: skip
            job["group"] = {"network_topology": rule}


def _cards(draw: Draw) -> None:
    shared = draw.chance(0.5)
    switch = "GPUSharingEnable" if shared else "GPUNumberEnable"
    draw.plugins.append(f"{{name: deviceshare, arguments: {{deviceshare.{switch}: true}}}}")
    for each in draw.nodes:
        for part in ("allocatable", "capacity"):
            amounts = each["status"].setdefault(part, dict(each["status"]["allocatable"]))
            amounts |= {"volcano.sh/gpu-memory": "16000", "volcano.sh/gpu-number": "2"}
    resource = "volcano.sh/gpu-memory" if shared else "volcano.sh/gpu-number"
    for each in draw.pods:
        if draw.chance(0.6):
            amount = str(draw.one_of([2000, 5000, 8000] if shared else [1, 1, 2]))
            asks = each["spec"]["containers"][0]["resources"]
            for part in ("requests", "limits"):
                asks.setdefault(part, {})[resource] = amount


def _drained(draw: Draw) -> None:
    """Nodes are cordoned from the beginning; one comes back, and one comes new."""
    draw.nodes.append(node("node-3", cpu=6, memory="12Gi"))
    back = {**draw.nodes[3], "spec": {**draw.nodes[3]["spec"]}}
    draw.nodes[3]["spec"]["unschedulable"] = True
    draw.changes.append((float(draw.random.integers(200, 3000)), back))
    draw.changes.append((float(draw.random.integers(200, 3000)), node("new", cpu=4, memory="9Gi")))
    draw.changes.sort(key=lambda each: each[0])


FEATURES: Final[dict[str, Callable[[Draw], None]]] = {
    "roles": _roles,
    "elastic": _elastic,
    "capacity": _capacity,
    "tree": _tree,
    "priorities": _priorities,
    "drf": _drf,
    "scores": _scores,
    "marks": _marks,
    "anti-affinity": _anti_affinity,
    "domains": _domains,
    "cards": _cards,
    "drained": _drained,
    "windows": _windows,
}
_LIMITS: Final = ("capacity", "tree")
