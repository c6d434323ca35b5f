"""One workload on two machines: the simulator's engine, and a whole control plane.

The control plane has an API server, all controllers, a kubelet and the scheduler's loop; jobs come
to it as Volcano jobs.  What both give is when each pod took which node, and when all was over.
"""

from collections import Counter
from dataclasses import dataclass, field

import msgspec

from pumice.app import EmbeddedControlPlane
from pumice.cluster.embedded.clock import VirtualClock
from pumice.cluster.embedded.kubelet import RUN_SECONDS, Kubelet
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import AlreadyExistsError
from pumice.framework.placing import Placing
from pumice.scheduler import Scheduler
from pumice.sim.engine import Engine
from pumice.sim.log import What
from pumice.sim.runs import EPOCH
from pumice.testing import pod, pod_group


HORIZON = 300.0
"""Seconds after which a story is broken off: evictions may go in circles."""


class _FirstOfEquals(Placing):
    """Takes the first of equally good nodes instead of drawing lots."""

    def spin(self, n):
        return 0


class PlainScheduler(Scheduler):
    """Draws no lots: those drawn for a gang that then does not fit would shift all later ones."""

    placing = _FirstOfEquals


@dataclass
class Story:
    """Who took which node when, in order, and when the last pod ended."""

    binds: list = field(default_factory=list)
    evictions: list = field(default_factory=list)
    ends: dict = field(default_factory=dict)
    makespan: float = 0.0


def by_engine(workload, cluster, conf, **options):
    scheduler = PlainScheduler(conf)
    engine = Engine(workload, [*map(thing, cluster)], conf, scheduler=scheduler, **options)
    while engine.now <= HORIZON and engine.step():
        pass
    return told(engine)


def thing(manifest):
    from pumice.api.objects import from_manifest, in_namespace

    return from_manifest(in_namespace(manifest))


def told(outcome):
    """Tell the story of a simulation."""
    story, log, runs = Story(), outcome.log, outcome.runs
    names = outcome.snapshot.nodes.names
    columns = (each.tolist() for each in (log.time, log.what, log.job, log.task, log.node))
    for time, what, job, task, node in zip(*columns, strict=True):
        if what == What.BIND:
            story.binds.append((time, runs[job].pod_name(task), names[node]))
        elif what == What.EVICT:
            story.evictions.append((time, runs[job].pod_name(task)))
        elif what == What.FINISH:
            story.ends[runs[job].pod_name(task)] = time
    return finished(story)


def finished(story):
    story.binds = sorted(bind for bind in story.binds if bind[0] <= HORIZON)
    story.evictions = sorted(each for each in story.evictions if each[0] <= HORIZON)
    story.ends = {pod: time for pod, time in story.ends.items() if time <= HORIZON}
    story.makespan = max(story.ends.values(), default=0.0)
    return story


def by_plane(workload, cluster, conf, *, seed=0, evicted="requeue"):
    """Run a workload on a whole control plane."""
    store = EmbeddedCluster(VirtualClock(EPOCH), seed=seed)
    plane = EmbeddedControlPlane(
        conf,
        cluster=store,
        kubelet=Kubelet(store, grace_s=0),
        scheduler=PlainScheduler(conf),
        seed=seed,
    )
    story = Story()
    held: dict[str, str] = {}

    def hear(kind, event):
        if kind != "Pod":
            return
        meta, now = event.object["metadata"], store.now() - EPOCH
        name, uid, node = meta["name"], meta["uid"], event.object["spec"].get("nodeName")
        phase = event.object["status"]["phase"]
        if event.type == "DELETED":
            if held.pop(uid, None) is not None and phase not in ("Succeeded", "Failed"):
                story.evictions.append((now, name))
                if name in pods and evicted == "requeue":
                    again = pods[name]
                    store.clock.call_at(store.now(), lambda: store.create(again))
        elif node and uid not in held:
            held[uid] = node
            story.binds.append((now, name, node))
        elif phase == "Succeeded":
            story.ends.setdefault(name, now)

    store.listeners.append(hear)
    for manifest in cluster:
        try:
            made = store.create(manifest)
        except AlreadyExistsError:
            continue
        if manifest["kind"] == "Queue":
            store.update_status({**made, "status": {"state": "Open"}})
    pods = {}
    for job in workload.jobs:
        manifests = [volcano_job(job)] if job.late_pods else manifests_of(job)
        pods |= {each["metadata"]["name"]: each for each in manifests if each["kind"] == "Pod"}
        for manifest in manifests:
            store.clock.call_at(EPOCH + job.arrival, lambda each=manifest: store.create(each))
    store.clock.run_due()
    plane.run(until=EPOCH + HORIZON)
    return finished(story)


def manifests_of(job):
    """Write a job of a workload as a pod group and pods."""
    members, needs = [], Counter()
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
    least = {name: f"{n}Gi" if name == "memory" else str(n) for name, n in needs.items()}
    group = pod_group(
        job.name,
        min_member=job.min_member,
        queue=job.queue,
        phase=None,
        min_resources=least,
        priority_class=job.priority_class or None,
    )
    return [group, *members]


def volcano_job(job):
    """Write a job of a workload as a Volcano job: its pods are made once it is let in."""
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
