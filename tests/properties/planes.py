"""One workload on two machines: the simulator's engine, and a whole control plane.

The control plane has an API server, all controllers, a kubelet and the scheduler's loop; jobs come
to it as Volcano jobs.  What both give is when each pod took which node, and when all was over.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from pumice.app import EmbeddedControlPlane
from pumice.cluster.embedded.clock import VirtualClock
from pumice.cluster.embedded.kubelet import RUN_SECONDS, Kubelet
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import AlreadyExistsError
from pumice.sim.engine import Engine
from pumice.sim.log import What
from pumice.sim.runs import EPOCH


@dataclass
class Story:
    """Who took which node when, in order, and when the last pod ended."""

    binds: list = field(default_factory=list)
    evictions: list = field(default_factory=list)
    ends: dict = field(default_factory=dict)
    makespan: float = 0.0


def by_engine(workload, cluster, conf, **options):
    engine = Engine(workload, [*map(thing, cluster)], conf, **options)
    return told(engine.run())


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
    story.binds.sort()
    story.evictions.sort()
    story.makespan = max(story.ends.values(), default=0.0)
    return story


def by_plane(workload, cluster, conf, *, seed=0):
    """Run a workload on a whole control plane."""
    store = EmbeddedCluster(VirtualClock(EPOCH), seed=seed)
    plane = EmbeddedControlPlane(conf, cluster=store, kubelet=Kubelet(store, grace_s=0), seed=seed)
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
    for job in workload.jobs:
        store.clock.call_at(EPOCH + job.arrival, lambda job=job: store.create(volcano_job(job)))
    store.clock.run_due()
    plane.run()
    return finished(story)


def volcano_job(job) -> Mapping:
    """Write a job of a workload as a user would."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": job.name, "namespace": job.namespace},
        "spec": {
            "schedulerName": "volcano",
            "queue": job.queue,
            "minAvailable": job.min_member,
            "priorityClassName": job.priority_class,
            "maxRetry": 1000,
            "tasks": [
                {
                    "name": task.role,
                    "replicas": task.count,
                    "template": {
                        "metadata": {
                            "labels": dict(task.labels),
                            "annotations": {RUN_SECONDS: repr(task.run_seconds)},
                        },
                        "spec": {
                            **msgspec.to_builtins(task.spec),
                            "restartPolicy": "OnFailure",
                        },
                    },
                }
                for task in job.tasks
            ],
        },
    }
