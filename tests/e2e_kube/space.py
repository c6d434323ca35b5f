"""A part of the cluster for one test: a namespace, nodes and queues, gone afterwards."""

import json
import re
from typing import Any, Final

from pumice.testing.builders import node, queue
from tests.e2e_kube.controlplane.api import Api
from tests.e2e_kube.kubectl import Kubectl
from tests.e2e_kube.waiting import until

Manifest = dict[str, Any]
_VOLCANO: Final = "/apis/scheduling.volcano.sh/v1beta1"
_QUEUES: Final = f"{_VOLCANO}/queues"
_IN_NAMESPACE: Final = (
    ("/apis/batch.volcano.sh/v1alpha1", "jobs"),  # first: its controller makes the others
    ("/apis/bus.volcano.sh/v1alpha1", "commands"),
    ("/apis/scheduling.k8s.io/v1alpha2", "podgroups"),
    (_VOLCANO, "podgroups"),
    ("/api/v1", "pods"),
)
_EVERYWHERE: Final = (
    "/api/v1/nodes",
    "/apis/topology.volcano.sh/v1alpha1/hypernodes",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    _QUEUES,
)
_STAY: Final = re.compile(r"default|root|system-.*")


class Space:
    """What a test does to the cluster, in its own namespace."""

    def __init__(self, kubectl: Kubectl, api: Api, namespace: str) -> None:
        self.kubectl = kubectl.inside(namespace)
        self.namespace = namespace
        self._api = api

    def open_default_queue(self) -> None:
        """Do what the controllers do first of all; a test may run without them."""
        if not any(each["metadata"]["name"] == "default" for each in self._api.items(_QUEUES)):
            self.kubectl.create(queue("default"))
        opened = json.dumps({"status": {"state": "Open"}})
        self.kubectl("patch", "queue/default", "--subresource=status", "--type=merge", "-p", opened)

    def nodes(self, count: int, *, prefix: str = "node", **resources: Any) -> list[str]:
        """Make equal nodes that are ready."""
        names = [f"{prefix}-{number}" for number in range(count)]
        self.kubectl.create(*(ready(node(name, **resources)) for name in names))
        return names

    def path(self, group: str, kind: str) -> str:
        """Return the path of a list in the namespace."""
        return f"{group}/namespaces/{self.namespace}/{kind}"

    def pods(self, job: str = "") -> list[Manifest]:
        """Return the pods, of one job or all, that are not terminating."""
        chosen = f"?labelSelector=volcano.sh/job-name%3D{job}" if job else ""
        return [
            pod
            for pod in self._api.items(self.path("/api/v1", "pods") + chosen)
            if not pod["metadata"].get("deletionTimestamp")
        ]

    def groups(self) -> list[Manifest]:
        """Return the pod groups."""
        return self._api.items(self.path(_VOLCANO, "podgroups"))

    def queue(self, name: str) -> Manifest:
        """Return a queue."""
        return self._api.get(f"{_QUEUES}/{name}")

    def placed(self, job: str = "") -> dict[str, str]:
        """Return the node of every pod that has one."""
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in self.pods(job)
            if pod["spec"].get("nodeName")
        }

    def running(self, job: str = "") -> int:
        """Count the pods that run."""
        return sum(pod["status"].get("phase") == "Running" for pod in self.pods(job))

    def wait_running(self, job: str, count: int) -> None:
        """Wait until that many pods of a job run, no more and no fewer."""
        until(
            f"{count} pods of {job} running",
            lambda: self.running(job),
            lambda seen: seen == count,
        )

    def wait_phase(self, job: str, phase: str) -> None:
        """Wait until a job is in a phase."""
        self.kubectl.wait(f"vcjob/{job}", ".status.state.phase", phase)

    def events(self, reason: str) -> list[Manifest]:
        """Return the events of one reason."""
        return self.kubectl.items("events", f"--field-selector=reason={reason}")

    def clear(self) -> None:
        """Remove everything; what controllers make or admission keeps at first, with patience."""
        until("an empty namespace", self._clear_namespace, lambda left: not left)
        until("an empty cluster", self._clear_cluster, lambda left: not left)

    def _clear_namespace(self) -> list[str]:
        for group, kind in _IN_NAMESPACE:
            self._api.delete(f"{self.path(group, kind)}?gracePeriodSeconds=0")
        return [
            f"{kind} {each['metadata']['name']}"
            for group, kind in _IN_NAMESPACE
            for each in self._api.items(self.path(group, kind))
        ]

    def _clear_cluster(self) -> list[str]:
        left = [
            f"{kind}/{each['metadata']['name']}"
            for kind in _EVERYWHERE
            for each in self._api.items(kind)
            if not _STAY.fullmatch(each["metadata"]["name"])
        ]
        for path in left:
            self._api.delete(path)
        return left


def ready(manifest: Manifest) -> Manifest:
    """Return a node with the condition Ready: there is no kubelet to set it."""
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    manifest["status"]["conditions"] = [condition]
    manifest["metadata"].pop("uid", None)
    return manifest


def fresh(manifest: Any) -> Any:
    """Leave out what the API server fills in, and the namespace: it is that of the space."""
    filled = ("uid", "namespace")
    metadata = {key: one for key, one in manifest["metadata"].items() if key not in filled}
    kept = {key: value for key, value in manifest.items() if key != "status"}
    return {**kept, "metadata": metadata}


def job(
    name: str,
    *,
    replicas: int = 1,
    min_available: int | None = None,
    cpu: str | int = 1,
    queue: str | None = None,
    run_seconds: int | None = None,
    annotations: dict[str, str] | None = None,
    priority_class: str | None = None,
    **spec: Any,
) -> Manifest:
    """Build a Job with one task; entries of `spec` are laid over the built one."""
    notes = dict(annotations or {})
    if run_seconds is not None:
        notes["pumice.dev/run-seconds"] = str(run_seconds)
    requests = {"cpu": str(cpu), "memory": "64Mi"}
    container = {"name": "main", "image": "busybox:1", "resources": {"requests": requests}}
    template = {
        "metadata": {"annotations": notes},
        "spec": {
            "restartPolicy": "Never",
            "containers": [container],
            **({"priorityClassName": priority_class} if priority_class else {}),
        },
    }
    task = {"name": "worker", "replicas": replicas, "template": template}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": replicas if min_available is None else min_available,
            "tasks": [task],
            **({"queue": queue} if queue else {}),
            **({"priorityClassName": priority_class} if priority_class else {}),
            **spec,
        },
    }


def command(name: str, action: str, kind: str, target: Manifest) -> Manifest:
    """Build a Command of the bus for a job or a queue."""
    about = {
        "apiVersion": target["apiVersion"],
        "kind": kind,
        "name": target["metadata"]["name"],
        "uid": target["metadata"]["uid"],
        "controller": True,
    }
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": name},
        "action": action,
        "target": about,
    }
