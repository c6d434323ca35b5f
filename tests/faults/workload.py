"""What a run has to do, drawn from its seed: nodes, queues, jobs and bare gangs in turn."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Final

from pumice.api.annotations import RUN_SECONDS
from pumice.api.kinds import Manifest
from pumice.cluster.embedded.kubelet import FAIL_AFTER_SECONDS
from pumice.testing import (
    device,
    device_class,
    node,
    pod,
    pod_group,
    priority_class,
    queue,
    resource_claim_template,
    resource_slice,
)
from tests.faults.faults import Chance
from tests.properties.planes import CONFS

CPUS: Final = 4
DIVIDED: Final = 0.15
"""How many runs have two schedulers with a part of the nodes each."""
SCHEDULERS: Final = ("volcano", "second")
ARRIVALS_S: Final = 22.0
"""All work has come after so long."""
OUTAGE_AT_S: Final = 3.0
"""When the outage of a short run begins."""
_POLICIES: Final[tuple[list[Mapping[str, str]], ...]] = (
    [],
    [{"event": "TaskCompleted", "action": "CompleteJob"}],
    [{"event": "PodEvicted", "action": "RestartJob"}],
)
_POLICIES_FOR_FAILURES: Final[tuple[list[Mapping[str, str]], ...]] = (
    [{"event": "PodFailed", "action": "RestartJob"}],
    [{"event": "PodFailed", "action": "AbortJob"}],
    [{"event": "PodFailed", "action": "TerminateJob"}],
    [{"event": "PodFailed", "action": "RestartPod"}],
    [{"event": "*", "action": "RestartTask"}],
)
"""Without one of these a gang that lost a member to a failure waits for ever, and rightly so."""
_PREEMPTABLE: Final = {"volcano.sh/preemptable": "true"}
QUOTA: Final = frozenset({"default", "capacity", "proportion", "tree"})
"""Configurations under which queues hold no more than their capability."""


@dataclass
class Workload:
    """A cluster and what is created in it, by seconds from the start."""

    conf: str
    nodes: list[Manifest]
    settings: list[Manifest]
    """Queues and priority classes, parents first."""
    cpus: int
    """CPUs that gangs may need together: of all nodes, or of the part of one scheduler."""
    arrivals: list[tuple[float, list[Manifest]]] = field(default_factory=list)
    is_divided: bool = False
    """Whether two schedulers have a part of the nodes each."""

    @property
    def jobs(self) -> list[Manifest]:
        """The jobs in it."""
        return self._of("Job")

    @property
    def may_fail(self) -> list[str]:
        """Names of the jobs with policies for failed pods."""
        return [
            each["metadata"]["name"]
            for each in self.jobs
            if each["spec"]["policies"] in _POLICIES_FOR_FAILURES
        ]

    @cached_property
    def gangs(self) -> dict[str, dict[str, Manifest]]:
        """Pods of bare gangs by group and name."""
        found: dict[str, dict[str, Manifest]] = {}
        for each in self._of("Pod"):
            name = each["metadata"]["name"]
            found.setdefault(name.partition("-")[0], {})[name] = each
        return found

    def _of(self, kind: str) -> list[Manifest]:
        return [each for _, some in self.arrivals for each in some if each["kind"] == kind]


def draw(seed: int) -> Workload:
    """Draw the work of a run."""
    chance, is_divided = Chance(seed, 2), Chance(seed, 7).happens(DIVIDED)
    work = _cluster(chance, most_nodes=5, halves="nm" if is_divided else "n")
    count = chance.integer(4, 9)
    _add_work(work, chance, count, lambda: chance.between(0.0, ARRIVALS_S), jobs=0.65)
    if is_divided:
        work.is_divided = True
        _divide(work, Chance(seed, 8))
    return work


def draw_around_outage(seed: int) -> Workload:
    """Draw the work of a short run: some comes just before an outage, so that it is half done."""
    chance = Chance(seed, 10)
    work = _cluster(chance, most_nodes=3)

    def when() -> float:
        begins = OUTAGE_AT_S
        periods = (0.0, begins), (begins - 0.6, begins), (begins, begins + 7.0)
        return chance.between(*chance.one_of(periods))

    jobs = 0.5 if chance.happens(0.15) else 0.0
    _add_work(work, chance, chance.integer(2, 4), when, jobs=jobs, lasts_s=(1, 4))
    return work


def _cluster(chance: Chance, most_nodes: int, halves: str = "n") -> Workload:
    """Draw nodes, a configuration and the settings that it needs."""
    conf = chance.one_of([*CONFS])
    count = chance.integer(2, most_nodes)
    nodes = [node(f"{half}{i}", cpu=CPUS, memory="64Gi") for half in halves for i in range(count)]
    queues = _queues(chance, count * CPUS, tree=conf == "tree")
    classes = [priority_class("high", value=100), priority_class("low", value=-1)]
    return Workload(
        conf, nodes, [*classes, *queues, *_storage_and_devices(nodes)], cpus=count * CPUS
    )


def _add_work(
    work: Workload,
    chance: Chance,
    count: int,
    when: Callable[[], float],
    *,
    jobs: float,
    lasts_s: tuple[int, int] = (2, 9),
) -> None:
    """Draw jobs and bare gangs that fit into their queues."""
    queues = [each for each in work.settings if each["kind"] == "Queue"]
    names = [each["metadata"]["name"] for each in queues if each["metadata"]["name"] != "team"]
    for number in range(count):
        at = when()
        target = chance.one_of(["default", *names])
        most = _most(queues, target, work.cpus)
        if "proportion" in CONFS[work.conf]:  # a gang larger than its share may wait for ever
            most = min(most, work.cpus * (2 if target == "blue" else 1) // 4)
        if chance.happens(jobs):
            work.arrivals.append((at, [_job(chance, f"j{number}", target, most, lasts_s)]))
        else:
            work.arrivals.append((at, _gang(chance, f"g{number}", target, most, lasts_s)))


def _divide(work: Workload, chance: Chance) -> None:
    """Name a second scheduler in some of the work.

    Nothing is kept on disks: a node that goes to the other scheduler takes them along.
    """
    for _, manifests in work.arrivals:
        name = chance.one_of(SCHEDULERS)
        manifests[:] = [each for each in manifests if each["kind"] != "PersistentVolumeClaim"]
        for each in manifests:
            if each["kind"] in ("Job", "Pod"):
                each["spec"]["schedulerName"] = name
                each["spec"].pop("volumes", None)


def _queues(chance: Chance, cpus: int, *, tree: bool) -> list[Manifest]:
    parent: dict[str, Any] = {"parent": "team"} if tree else {}
    limit = chance.one_of([None, {"cpu": max(cpus // 2, 3)}])
    found = [
        queue("blue", state=None, weight=2, deserved={"cpu": cpus // 2}, **parent),
        queue("red", state=None, deserved={"cpu": cpus // 4}, capability=limit, **parent),
    ]
    if tree:
        due = {"cpu": cpus * 3 // 4}
        found.insert(0, queue("team", state=None, deserved=due, capability={"cpu": cpus * 3 // 4}))
    for each in found:
        each.pop("status", None)
    return found


def _storage_and_devices(nodes: list[Manifest]) -> list[Manifest]:
    """Make a class whose volumes lie on the node of their first pod, and a device for each CPU."""
    local = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "disks.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    devices = [device(f"gpu{i}") for i in range(CPUS)]
    names = [each["metadata"]["name"] for each in nodes]
    slices = [resource_slice(name, node=name, devices=devices) for name in names]
    return [local, device_class("gpu"), *slices]


def _most(queues: list[Manifest], name: str, cpus: int) -> int:
    """Return the CPUs that a gang of a queue may need at once."""
    known = {each["metadata"]["name"]: each["spec"] for each in queues}
    while name in known:
        limit = known[name].get("capability") or {}
        cpus = min(cpus, int(limit.get("cpu", cpus)))
        name = known[name].get("parent") or ""
    return cpus


def _job(chance: Chance, name: str, target: str, most: int, lasts_s: tuple[int, int]) -> Manifest:
    tasks, total, cpus = [], 0, chance.integer(1, 2)
    may_fail = chance.happens(0.5)
    for role in ("a", "b")[: chance.integer(1, 2)]:
        replicas = chance.integer(1, 3)
        if (total + replicas) * cpus > most:
            continue
        total += replicas
        marks = _marks(chance, lasts_s, fails=may_fail and chance.happens(0.3))
        tasks.append(_task(role, replicas, cpus, marks))
    if not tasks:
        total, tasks = 1, [_task("a", 1, 1, _marks(chance, lasts_s))]
    spec: dict[str, Any] = {
        "schedulerName": "volcano",
        "queue": target,
        "minAvailable": chance.one_of([total, total, chance.integer(1, total)]),
        "maxRetry": 3,
        "policies": chance.one_of(_POLICIES_FOR_FAILURES if may_fail else _POLICIES),
        "tasks": tasks,
    }
    rank = chance.one_of(["", "", "high", "low"])
    if rank:
        spec["priorityClassName"] = rank
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "annotations": _PREEMPTABLE},
        "spec": spec,
    }


def _marks(chance: Chance, lasts_s: tuple[int, int], *, fails: bool = False) -> dict[str, str]:
    """Draw how long a pod runs."""
    marks = {RUN_SECONDS: str(chance.integer(*lasts_s))}
    return {**marks, FAIL_AFTER_SECONDS: "1"} if fails else marks


def _task(role: str, replicas: int, cpus: int, marks: dict[str, str]) -> Manifest:
    resources = {"requests": {"cpu": str(cpus)}}
    container = {"name": "main", "image": "busybox", "resources": resources}
    template = {
        "metadata": {"annotations": marks},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    return {"name": role, "replicas": replicas, "template": template}


def _gang(
    chance: Chance, name: str, target: str, most: int, lasts_s: tuple[int, int]
) -> list[Manifest]:
    cpus = chance.integer(1, 2)
    size = min(chance.integer(1, 4), max(most // cpus, 1))
    rank = chance.one_of([None, None, "high"])
    marks = {**_marks(chance, lasts_s), **_PREEMPTABLE}
    group = pod_group(name, min_member=size, queue=target, phase=None, priority_class=rank)
    pods = [
        pod(f"{name}-{i}", group=name, cpu=cpus, annotations=marks, priority_class=rank)
        for i in range(size)
    ]
    wants = [_template(name, pods)] if chance.happens(0.25) else []
    if size * cpus <= CPUS and chance.happens(0.35):  # else its node may never have room for all
        wants.append(_claim(pods[0]))
    for each in (group, *pods, *wants):
        each.pop("status", None)
        each["metadata"].pop("uid", None)
    return [group, *wants, *pods]


def _template(name: str, pods: list[Manifest]) -> Manifest:
    """Have each pod get a device of its own."""
    for each in pods:
        each["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": name}]
    return resource_claim_template(name)


def _claim(first: Manifest) -> Manifest:
    """Have a pod keep its data on a disk of the node that it gets."""
    name = first["metadata"]["name"]
    source = {"persistentVolumeClaim": {"claimName": name}}
    first["spec"]["volumes"] = [{"name": "data", **source}]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def cpus_of(pod: Manifest) -> int:
    """Return the CPUs that a pod asks for."""
    containers = pod["spec"]["containers"]
    return sum(int(each["resources"]["requests"]["cpu"]) for each in containers)


@cache
def conf_file(conf: str) -> str:
    """Write a configuration where a simulated scheduler reads it, once for all runs."""
    path = Path(gettempdir()) / f"pumice-faults-{conf.replace(' ', '-')}.conf"
    text = CONFS[conf]
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    return str(path)
