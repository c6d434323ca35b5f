"""The story: read from the file in this package, and played on an embedded cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final

import yaml

from pumice.api.annotations import GROUP_NAME, HOSTNAME, RUN_SECONDS
from pumice.api.conf import parse_conf
from pumice.api.kinds import ENDED_PHASES, JOB, POD_GROUP, QUEUE, Manifest
from pumice.api.quantity import milli_value
from pumice.clock import EPOCH, VirtualClock
from pumice.cluster.base import Event
from pumice.cluster.embedded.kubelet import Kubelet
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.serve.scheduler.live_scheduler import Cycle

NAMESPACE = "default"
USES = "pumice.dev/demo-uses-cpu"
"""Annotation of a pod: the cpus it actually uses."""
_PART_USED = 0.6
"""The part of its request that a pod uses, unless stated otherwise."""


@dataclass(frozen=True)
class Chapter:
    """Jobs that arrive at a second, and what they are to show."""

    at: float
    kind: str
    title: str
    text: str
    jobs: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Story:
    """A whole story."""

    title: str
    conf: str
    objects: tuple[Manifest, ...]
    """Nodes, queues and priority classes."""
    deserved: Mapping[str, float]
    """Queue to the cpus it deserves."""
    chapters: tuple[Chapter, ...]
    until: float
    """When it ends."""

    @property
    def jobs(self) -> dict[str, tuple[Chapter, Mapping[str, Any]]]:
        """All jobs by name, each with its chapter."""
        return {job["name"]: (chapter, job) for chapter in self.chapters for job in chapter.jobs}


def load_story() -> Story:
    """Read the story."""
    file = resources.files("pumice.cli.demo").joinpath("story.yaml")
    data = yaml.safe_load(file.read_text(encoding="utf-8"))
    return Story(
        title=data["title"],
        conf=data["conf"],
        objects=(
            *_nodes(data["nodes"]),
            *(_queue(name, facts) for name, facts in data["queues"].items()),
            *(_priority(name, value) for name, value in data["priorities"].items()),
        ),
        deserved={name: float(facts["deserved"]) for name, facts in data["queues"].items()},
        chapters=tuple(
            Chapter(each["at"], each["kind"], each["title"], each["text"], tuple(each["jobs"]))
            for each in data["chapters"]
        ),
        until=data["until"],
    )


def _nodes(facts: Mapping[str, Any]) -> list[Manifest]:
    amounts = {"cpu": str(facts["cpu"]), "memory": facts["memory"], "pods": "110"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {HOSTNAME: name}},
            "spec": {},
            "status": {"allocatable": amounts, "capacity": amounts},
        }
        for name in facts["names"]
    ]


def _queue(name: str, facts: Mapping[str, Any]) -> Manifest:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"reclaimable": True, "deserved": {"cpu": str(facts["deserved"])}},
        "status": {"state": "Open"},
    }


def _priority(name: str, value: int) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def job_manifest(job: Mapping[str, Any]) -> Manifest:
    """Write a job as the Volcano job that a user would submit."""
    uses = job.get("uses", round(_PART_USED * job["cpu"], 3))
    marks = {RUN_SECONDS: str(job["seconds"]), USES: str(uses)}
    requests = {"cpu": str(job["cpu"]), "memory": "1Gi"}
    container = {"name": "main", "image": "work", "resources": {"requests": requests}}
    spec: Manifest = {
        "schedulerName": "volcano",
        "queue": job["queue"],
        "minAvailable": job["gang"],
        "tasks": [
            {
                "name": "worker",
                "replicas": job["pods"],
                "template": {
                    "metadata": {"annotations": marks},
                    "spec": {"restartPolicy": "Never", "containers": [container]},
                },
            }
        ],
    }
    if job.get("priority"):
        spec["priorityClassName"] = job["priority"]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": job["name"], "namespace": NAMESPACE},
        "spec": spec,
    }


_GRACE_S: Final = 2.0
_IDLE_S: Final = 5.0
"""The longest time without a cycle: what is measured changes by itself."""
_SCRAPE_S: Final = 15.0
"""How often the use of nodes is measured."""


@dataclass(frozen=True)
class PodEvent:
    """One thing that happened to a pod: bind, evict or finish; times are seconds of the story."""

    at: float
    what: str
    pod: str
    job: str
    node: str
    whom: str = ""
    """Of an eviction: the job that the room is for, empty if for none."""
    by: str = ""
    """Of an eviction: the action that decided it."""


@dataclass
class StoryRecord:
    """The record of the whole story."""

    story: Story
    pod_events: list[PodEvent] = field(default_factory=list)
    waits: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    """Job to the sentences with which cycles left it waiting, each once."""
    held: list[tuple[float, dict[str, float]]] = field(default_factory=list)
    """Cpus that queues hold, each time they change."""
    measured: list[tuple[float, dict[str, float]]] = field(default_factory=list)
    """Percent of cpu in use by node, at each measurement."""
    phases: dict[str, str] = field(default_factory=dict)
    """How jobs ended."""
    priorities: dict[str, int] = field(default_factory=dict)
    """Job to the priority of its pods."""
    queues: dict[str, str] = field(default_factory=dict)
    """Job to the queue of its pod group."""
    cycles: int = 0

    def of(
        self, what: str, *, job: str | None = None, pod: str | None = None, whom: str | None = None
    ) -> list[PodEvent]:
        """Return the events of one kind: of a job, of a pod, for a job."""
        return [
            each
            for each in self.pod_events
            if each.what == what
            and job in (None, each.job)
            and pod in (None, each.pod)
            and whom in (None, each.whom)
        ]


class Player:
    """One performance."""

    def __init__(self, story: Story) -> None:
        self.played = StoryRecord(story)
        cluster = EmbeddedCluster(VirtualClock(EPOCH))
        self._cluster = cluster
        self._plane = EmbeddedControlPlane(
            parse_conf(story.conf, source="story.yaml"),
            cluster=cluster,
            kubelet=Kubelet(cluster, grace_s=_GRACE_S),
            idle_period_s=_IDLE_S,
            usage=self._usage,
        )
        self._job_of: dict[str, str] = {}
        """Pod to its job, pods that are gone included."""
        self._node_of: dict[str, str] = {}
        """Pods that hold a place, and where."""
        self._plane.on_cycle.append(self._note_cycle)
        cluster.listeners.append(self._note_event)
        for manifest in story.objects:
            cluster.create(manifest)

    def play(self) -> StoryRecord:
        """Submit the jobs, each at its time, and run until the end of the story."""
        played = self.played
        for chapter in played.story.chapters:
            played.cycles += self._plane.run(EPOCH + chapter.at)
            for job in chapter.jobs:
                self._cluster.create(job_manifest(job))
        played.cycles += self._plane.run(EPOCH + played.story.until)
        for job in self._cluster.list(JOB)[0]:
            phase = ((job.get("status") or {}).get("state") or {}).get("phase", "")
            played.phases[job["metadata"]["name"]] = phase
        return played

    def _seconds(self) -> float:
        return self._cluster.now() - EPOCH

    # The record

    def _note_event(self, kind: str, event: Event) -> None:
        """Follow pods: to which job they belong, and when they end."""
        if kind == POD_GROUP:
            job = self._of_group(event.object["metadata"]["name"])
            self.played.queues[job] = event.object["spec"]["queue"]
        if kind != "Pod":
            return
        pod = event.object
        key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        group = (pod["metadata"].get("annotations") or {}).get(GROUP_NAME, "")
        job = self._job_of[key] = self._of_group(group)
        self.played.priorities[job] = int(pod["spec"].get("priority") or 0)
        if (pod.get("status") or {}).get("phase") in ENDED_PHASES and key in self._node_of:
            self._note(self._seconds(), "finish", key)
            del self._node_of[key]

    def _note(self, at: float, what: str, pod: str, whom: str = "", by: str = "") -> None:
        job, node = self._job_of.get(pod, ""), self._node_of[pod]
        self.played.pod_events.append(PodEvent(at, what, pod, job, node, whom, by))

    def _note_cycle(self, cycle: Cycle) -> None:
        """Record which pods were bound and evicted, which wait and why, and what queues hold."""
        at, decisions, played = cycle.at - EPOCH, cycle.decisions, self.played
        for pod in cycle.writes.evicted:
            whom = decisions.beneficiaries.get(pod, "")
            by = decisions.evicted_by.get(pod, "")
            self._note(at, "evict", pod, self._job_of.get(whom) or self._of_group(whom), by)
            del self._node_of[pod]
        for pod in cycle.writes.bound:
            self._node_of[pod] = decisions.binds[pod]
            self._note(at, "bind", pod)
        for group, sentence in decisions.explanations.items():
            history = played.waits.setdefault(self._of_group(group), [])
            if not history or history[-1][1] != sentence:
                history.append((at, sentence))
        held = {queue["metadata"]["name"]: _cpus(queue) for queue in self._cluster.list(QUEUE)[0]}
        if not played.held or played.held[-1][1] != held:
            played.held.append((at, held))

    def _of_group(self, group: str) -> str:
        """Name the job of a pod group, which is called after it and its uid."""
        name = group.rpartition("/")[2]
        return next((job for job in self.played.story.jobs if name.startswith(f"{job}-")), name)

    def _usage(self, now: float) -> Mapping[str, Any]:
        """Measure nodes as a metrics server would: from time to time, the actual use of pods."""
        measured = self.played.measured
        if not measured or now - EPOCH - measured[-1][0] >= _SCRAPE_S:
            used: dict[str, float] = {}
            for pod in self._cluster.list("Pod")[0]:
                if (pod.get("status") or {}).get("phase") == "Running":
                    node = pod["spec"]["nodeName"]
                    uses = (pod["metadata"].get("annotations") or {}).get(USES, "0")
                    used[node] = used.get(node, 0.0) + float(uses)
            measured.append((now - EPOCH, _percent(self._cluster.list("Node")[0], used)))
        at, load = measured[-1]
        return {
            node: {"cpu": part, "memory": 0.0, "metricsTime": EPOCH + at}
            for node, part in load.items()
        }


def _percent(nodes: list[Manifest], used: Mapping[str, float]) -> dict[str, float]:
    """Return the part of each node's cpus in use; no node gives more than it has."""
    out = {}
    for node in nodes:
        name, offered = node["metadata"]["name"], node["status"]["allocatable"]["cpu"]
        whole = milli_value(offered) / 1000
        out[name] = round(min(100.0, 100.0 * used.get(name, 0.0) / whole), 1)
    return out


def _cpus(queue: Manifest) -> float:
    amounts = (queue.get("status") or {}).get("allocated") or {}
    return milli_value(amounts.get("cpu", "0")) / 1000
