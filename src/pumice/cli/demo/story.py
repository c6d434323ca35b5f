"""The story as data: read from the file in this package, turned into manifests."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import yaml

from pumice.api.annotations import HOSTNAME, RUN_SECONDS
from pumice.api.kinds import Manifest

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
