"""One workload on two machines: the simulator's engine, and a whole control plane.

The control plane has an API server, all controllers, a kubelet and the scheduler's loop.  What both
tell is when each pod took which node, who was evicted when, and when each pod ended.
"""

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest.mock import patch

import msgspec
from hypothesis import strategies as st

from pumice.api.annotations import RUN_SECONDS
from pumice.api.objects import from_manifest, in_namespace
from pumice.clock import VirtualClock
from pumice.cluster.embedded.kubelet import Kubelet
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import AlreadyExistsError
from pumice.framework.placing import Placing
from pumice.scheduler import Scheduler
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.sim.engine import Engine
from pumice.sim.event_log import EventKind
from pumice.sim.job_run import EPOCH
from pumice.sim.workload import JobSpec, PodSpecs, TaskSpec, Workload, in_order
from pumice.testing import node, pod, pod_group, priority_class, queue

HORIZON = 300.0
"""Seconds after which a story is broken off: evictions may go in circles."""

CONFS = {
    "default": """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
""",
    "no enqueue": """
actions: "allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: binpack}]
""",
    "capacity": """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - {name: gang, enablePreemptable: false, enableReclaimable: false}
  - name: conformance
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}, {name: binpack}]
""",
    "proportion": """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
""",
    "tree": """
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins:
  - name: predicates
  - {name: capacity, enableHierarchy: true}
  - name: nodeorder
  - name: binpack
""",
}


first_of_equals = patch.multiple(Placing, spin=lambda _placing, _n: 0, imagines=False)
"""Takes the first of equally good nodes: lots drawn for a gang that then does not fit would shift
all later ones.  The kernel draws its own, so nodes are chosen without it."""


@dataclass
class Story:
    """Times and nodes of binds, evictions and ends of pods."""

    binds: list[Any] = field(default_factory=list)
    evictions: list[Any] = field(default_factory=list)
    ends: dict[Any, Any] = field(default_factory=dict)

    def sorted(self) -> Any:
        """Put what happened up to the horizon in order."""
        return Story(
            sorted(each for each in self.binds if each[0] <= HORIZON),
            sorted(each for each in self.evictions if each[0] <= HORIZON),
            {pod: time for pod, time in sorted(self.ends.items()) if time <= HORIZON},
        )


# The engine


def things(cluster: Any) -> Any:
    return [from_manifest(in_namespace(manifest)) for manifest in cluster]


@first_of_equals
def by_engine(workload: Any, cluster: Any, conf: Any, **options: Any) -> Any:
    """Run a workload in the simulator."""
    engine = Engine(workload, things(cluster), conf, **options)
    while engine.now <= HORIZON and engine.step():
        pass
    story, runs, names = Story(), engine.runs, engine.snapshot.nodes.names
    log = engine.log
    columns = (each.tolist() for each in (log.time, log.kind, log.job, log.task, log.node))
    for time, what, job, task, row in zip(*columns, strict=True):
        if what == EventKind.BIND:
            story.binds.append((time, runs[job].pod_name(task), names[row]))
        elif what == EventKind.EVICT:
            story.evictions.append((time, runs[job].pod_name(task)))
        elif what == EventKind.FINISH:
            story.ends[runs[job].pod_name(task)] = time
    return story.sorted()


# The control plane


class Listener:
    """Listens to pods in a store, writes their story and replaces those that are evicted."""

    def __init__(self, store: Any, pods: Any) -> None:
        self.story = Story()
        self._store = store
        self._pods = pods
        self._held: set[Any] = set()
        store.listeners.append(self.hear)

    def hear(self, kind: Any, event: Any) -> None:
        if kind != "Pod":
            return
        meta, now = event.object["metadata"], self._store.now() - EPOCH
        name, uid, home = meta["name"], meta["uid"], event.object["spec"].get("nodeName")
        phase = event.object["status"]["phase"]
        if event.type == "DELETED":
            if uid in self._held and phase not in ("Succeeded", "Failed"):
                self.story.evictions.append((now, name))
                self._replace(name)
        elif home and uid not in self._held:
            self._held.add(uid)
            self.story.binds.append((now, name, home))
        elif phase == "Succeeded":
            self.story.ends.setdefault(name, now)

    def _replace(self, name: Any) -> None:
        if name in self._pods:  # else the job controller does
            store, again = self._store, self._pods[name]
            store.clock.call_at(store.now(), lambda: store.create(again))


@first_of_equals
def by_plane(workload: Any, cluster: Any, conf: Any) -> Any:
    """Run a workload on a whole control plane."""
    store = EmbeddedCluster(VirtualClock(EPOCH))
    kubelet = Kubelet(store, grace_s=0)
    scheduler = Scheduler(conf)
    plane = EmbeddedControlPlane(conf, cluster=store, kubelet=kubelet, scheduler=scheduler)
    for manifest in cluster:
        try:
            made = store.create(manifest)
        except AlreadyExistsError:
            continue
        if manifest["kind"] == "Queue":
            store.update_status({**made, "status": {"state": "Open"}})
    pods: dict[Any, Any] = {}
    for job in workload.jobs:
        manifests = [volcano_job(job)] if job.late_pods else group_and_pods(job)
        pods |= {each["metadata"]["name"]: each for each in manifests if each["kind"] == "Pod"}
        for manifest in manifests:
            store.clock.call_at(EPOCH + job.arrival, partial(store.create, manifest))
    listener = Listener(store, pods)
    store.clock.run_due()
    plane.run(until=EPOCH + HORIZON)
    return listener.story.sorted()


def group_and_pods(job: Any) -> Any:
    """Write a job of a workload as a pod group and pods."""
    members: list[Any] = []
    needs: Counter[Any] = Counter()
    for task in job.tasks:
        asked = task.spec.containers[0].resources.requests
        for number in range(task.count):
            if len(members) < max(job.min_member, 1):
                needs.update({name: int(str(x).removesuffix("Gi")) for name, x in asked.items()})
            members.append(
                pod(
                    f"{job.name}-{task.role}-{number}",
                    group=job.name,
                    role=task.role,
                    resources=asked,
                    annotations={RUN_SECONDS: repr(task.run_seconds)},
                )
            )
    group = pod_group(
        job.name,
        min_member=job.min_member,
        queue=job.queue,
        phase=None,
        min_resources={"cpu": needs["cpu"], "memory": f"{needs['memory']}Gi"},
        priority_class=job.priority_class or None,
    )
    return [group, *members]


def volcano_job(job: Any) -> Any:
    """Write a job of a workload as a Volcano job: its pods are made once it is admitted."""
    tasks = [
        {
            "name": task.role,
            "replicas": task.count,
            "template": {
                "metadata": {"annotations": {RUN_SECONDS: repr(task.run_seconds)}},
                "spec": {**msgspec.to_builtins(task.spec), "restartPolicy": "OnFailure"},
            },
        }
        for task in job.tasks
    ]
    spec = {
        "schedulerName": "volcano",
        "queue": job.queue,
        "minAvailable": job.min_member,
        "maxRetry": 1000,
        "tasks": tasks,
        **({"priorityClassName": job.priority_class} if job.priority_class else {}),
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": job.name, "namespace": job.namespace},
        "spec": spec,
    }


# Small workloads


@st.composite
def tasks(draw: Any, book: Any) -> Any:
    found = []
    for role in ("a", "b")[: draw(st.sampled_from([1, 1, 2]))]:
        cpus, gigabytes = draw(st.integers(1, 2)), draw(st.integers(1, 2))
        spec = book.spec({"cpu": str(cpus), "memory": f"{gigabytes}Gi"})
        seconds = float(draw(st.integers(2, 19)))
        found.append(TaskSpec(spec, draw(st.integers(1, 4)), seconds, role=role))
    return tuple(found)


@st.composite
def workloads(draw: Any, *, max_jobs: Any = 10) -> Any:
    """Draw jobs that come within a minute or so."""
    book, second, jobs = PodSpecs(), 0, []
    late = draw(st.booleans())
    for number in range(draw(st.integers(2, max_jobs))):
        second += draw(st.integers(0, 5))
        parts = draw(tasks(book))
        size = sum(task.count for task in parts)
        jobs.append(
            JobSpec(
                f"job-{number:03d}",
                float(second),
                parts,
                min_member=draw(st.sampled_from([size, size, draw(st.integers(1, size))])),
                queue=draw(st.sampled_from(["default", "blue", "red"])),
                priority_class=draw(st.sampled_from(["", "", "", "high"])),
                late_pods=late,
            )
        )
    return Workload(name="drawn", format="drawn", jobs=in_order(jobs))


@st.composite
def clusters(draw: Any, *, tree: Any) -> Any:
    """Draw nodes of four cpus, and queues side by side or under one of their own."""
    n = draw(st.integers(1, 3))
    cpus = 4 * n
    team: dict[str, Any] = {"parent": "team"} if tree else {}
    limit = draw(st.sampled_from([None, {"cpu": cpus * 3 // 4}]))
    found = [
        queue("blue", weight=2, deserved={"cpu": cpus // 2, "memory": f"{cpus}Gi"}, **team),
        queue("red", deserved={"cpu": n, "memory": f"{2 * n}Gi"}, capability=limit, **team),
        priority_class("high", value=1000),
    ]
    if tree:
        most = {"cpu": cpus * 3 // 4 + 1, "memory": f"{2 * cpus}Gi"}
        due = {"cpu": cpus * 3 // 4, "memory": f"{cpus * 3 // 2}Gi"}
        found.append(queue("team", deserved=due, capability=most))
    return [*(node(f"n{i}", cpu=4, memory="8Gi") for i in range(n)), *found]
