"""One job as a reconcile finds it, and the names, labels and annotations of what belongs to it."""

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from pumice.api.annotations import TASK_SPEC
from pumice.api.kinds import ENDED_PHASES, POD_GROUP, Manifest, queue_of
from pumice.controllers.base import View, phase_of

TASK_INDEX: Final = "volcano.sh/task-index"
JOB_NAMESPACE: Final = "volcano.sh/job-namespace"
JOB_VERSION: Final = "volcano.sh/job-version"
RETRY_COUNT: Final = "volcano.sh/job-retry-count"
TEMPLATE_UID: Final = "volcano.sh/template-uid"
PARTITION_ID: Final = "volcano.sh/partition-id"
FORWARDING: Final = "volcano.sh/job-forwarding"
OUT_OF_SYNC: Final = "volcano.sh/controller-out-of-sync"
"""Marks a pod that the controller itself is about to remove, so that it is no eviction."""


DEFAULT_TASK: Final = "default"
_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_DIGITS: Final = 11
"""More than an index can have."""
MOST_HOSTS: Final = 50_000
"""Maximum hosts of a task that plugins list; more names fit into no ConfigMap and no pod."""


def pod_name(job: str, task: str, index: int) -> str:
    """Name the pod of a task."""
    return f"{job}-{task}-{index}"


def pod_index(job: str, task: str, name: str) -> int | None:
    """Read the index off the name of a pod of a task; None if it is not such a name."""
    start = pod_name(job, task, 0)[:-1]
    digits = name.removeprefix(start)
    plain = digits.isascii() and digits.isdigit() and len(digits) < _DIGITS
    if digits == name or not plain or digits != str(int(digits)):
        return None
    return int(digits)


def podgroup_name(job: Manifest) -> str:
    """Name the PodGroup of a job; one that no cluster has seen has no uid to add."""
    metadata = job["metadata"]
    return f"{metadata['name']}-{metadata['uid']}" if metadata.get("uid") else metadata["name"]


def stable_suffix(*parts: object) -> str:
    """Make 12 characters that look random and are the same for the same parts.

    A reconcile that is repeated must find what it made before, so nothing is random.
    """
    number = int.from_bytes(hashlib.sha256("\0".join(map(str, parts)).encode()).digest(), "big")
    letters = []
    for _ in range(12):
        number, digit = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[digit])
    return "".join(letters)


def host_name(job: Manifest, task: Manifest, index: int) -> tuple[str, str]:
    """Return the host name and the subdomain that a pod of a task answers to."""
    spec = (task.get("template") or {}).get("spec") or {}
    name = str(job["metadata"]["name"])
    host = str(spec.get("hostname") or pod_name(name, str(task.get("name") or ""), index))
    return host, str(spec.get("subdomain") or name)


def hosts(job: Manifest, task: Manifest) -> list[tuple[str, str]]:
    """List the hosts of a task; a fixed host name in the template makes it a single one."""
    fixed = ((task.get("template") or {}).get("spec") or {}).get("hostname")
    number = min(int(task.get("replicas") or 0), 1 if fixed else MOST_HOSTS)
    return [host_name(job, task, index) for index in range(number)]


"""Phases of pods that will not change any more."""


class JobState(msgspec.Struct, frozen=True):
    """The data that the rules of a job read."""

    job: Manifest
    view: View
    podgroup: Manifest | None
    pods: dict[str, dict[str, Manifest]] = msgspec.field(default_factory=dict)
    """Task to pod name to pod; the task is the one named by the pod itself."""
    by_name: dict[str, Manifest] = msgspec.field(default_factory=dict)
    """The tasks; each is looked up for all that depend on it."""

    def __post_init__(self) -> None:
        """Note the tasks; the first of a name counts."""
        for task in reversed((self.job.get("spec") or {}).get("tasks") or []):
            self.by_name[str(task.get("name"))] = task

    @classmethod
    def read(cls, job: Manifest, view: View) -> "JobState":
        """Gather a job from a view."""
        pods: dict[str, dict[str, Manifest]] = {}
        for pod in view.owned_by("Pod", job):
            task = annotation(pod, TASK_SPEC)
            if task:
                pods.setdefault(task, {})[str(pod["metadata"]["name"])] = pod
        namespace = str(job["metadata"]["namespace"])
        group = view.get(POD_GROUP, namespace, podgroup_name(job))
        if group is None:  # jobs of old releases have a PodGroup of their own name
            group = view.get(POD_GROUP, namespace, str(job["metadata"]["name"]))
        return cls(job, view, group, pods)

    @property
    def name(self) -> str:
        """The name of the job."""
        return str(self.job["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """The namespace of the job."""
        return str(self.job["metadata"]["namespace"])

    @property
    def uid(self) -> str:
        """The identity of the job."""
        return str(self.job["metadata"].get("uid") or "")

    @property
    def spec(self) -> Manifest:
        """The spec of the job."""
        return self.job["spec"]

    @property
    def queue(self) -> str:
        """The queue of the job."""
        return queue_of(self.job)

    @property
    def tasks(self) -> list[Manifest]:
        """The tasks of the job, in the order of its spec."""
        return self.spec.get("tasks") or []

    @property
    def status(self) -> Manifest:
        """The last written status of the job."""
        return self.job.get("status") or {}

    @property
    def phase(self) -> str:
        """The phase of the job, empty before the first reconciliation."""
        return phase_of(self.job)

    @property
    def version(self) -> int:
        """How often the whole job was killed."""
        return int(self.status.get("version") or 0)

    @property
    def retries(self) -> int:
        """How often the job, or a part of it, was restarted."""
        return int(self.status.get("retryCount") or 0)

    @property
    def min_available(self) -> int:
        """How many pods must run at least."""
        return int(self.spec.get("minAvailable") or 0)

    @property
    def replicas(self) -> int:
        """How many pods the tasks ask for together."""
        return sum(replicas_of(task) for task in self.tasks)

    @property
    def task_minimum(self) -> int:
        """The sum of what the tasks need at least; all replicas where a task states none."""
        return sum(int(task.get("minAvailable", replicas_of(task))) for task in self.tasks)

    @property
    def admitted(self) -> bool:
        """Whether the scheduler has admitted the PodGroup, so that pods may exist."""
        phase = ((self.podgroup or {}).get("status") or {}).get("phase")
        return phase not in (None, "", "Pending")

    def task(self, name: str) -> Manifest | None:
        """Return a task by its name."""
        return self.by_name.get(name)

    def all_pods(self) -> Iterator[Manifest]:
        """Yield the pods of all tasks, in the order of their names."""
        for task in sorted(self.pods):
            for name in sorted(self.pods[task]):
                yield self.pods[task][name]

    @property
    def is_still(self) -> bool:
        """Whether no pod of the job changes by itself: each has ended, or waits for a node."""
        return all(pod_phase(pod) in ENDED_PHASES or _waits(pod) for pod in self.all_pods())

    def left_over(self, pod: Manifest) -> bool:
        """Return whether a kill pass should have removed a pod and was interrupted.

        A pass that restarts the job spares no pod of the version before, except at the last retry;
        others spare ended pods.
        """
        if deleting(pod) or out_of_sync(pod):
            return not deleting(pod)
        if not self.version:  # there was no pass before
            return False
        retries_left = self.retries < int(self.spec.get("maxRetry") or 0)
        if pod_phase(pod) in ENDED_PHASES and not (self.phase == "Restarting" and retries_left):
            return False
        behind = self.version - version_of(pod)
        return behind == 1 if pod_phase(pod) in ENDED_PHASES else behind > 0


def replicas_of(task: Manifest) -> int:
    """Count the pods a task asks for."""
    return int(task.get("replicas") or 0)


def annotation(manifest: Manifest, key: str) -> str:
    """Read an annotation, empty when it is missing."""
    return str((manifest["metadata"].get("annotations") or {}).get(key, ""))


def version_of(pod: Manifest) -> int:
    """Return the version of its job under which a pod was created."""
    text = annotation(pod, JOB_VERSION)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def _waits(pod: Manifest) -> bool:
    """Return whether a pod has no node yet."""
    return pod_phase(pod) == "Pending" and not pod["spec"].get("nodeName")


def pod_phase(pod: Manifest) -> str:
    """Return the phase of a pod."""
    return str((pod.get("status") or {}).get("phase") or "Unknown")


def deleting(manifest: Manifest) -> bool:
    """Return whether an object is being deleted."""
    return bool(manifest["metadata"].get("deletionTimestamp"))


def out_of_sync(pod: Manifest) -> bool:
    """Return whether the controller itself marked a pod for removal."""
    return annotation(pod, OUT_OF_SYNC) == "true"


def restarts_of(pod: Manifest) -> int:
    """Count the restarts of all containers of a pod."""
    fields = ("initContainerStatuses", "containerStatuses")
    listed = [one for name in fields for one in container_statuses(pod, name)]
    return sum(int(one.get("restartCount") or 0) for one in listed)


def container_statuses(pod: Manifest, field_name: str = "containerStatuses") -> list[Any]:
    """Return the kubelet's status of the containers of a pod."""
    return (pod.get("status") or {}).get(field_name) or []
