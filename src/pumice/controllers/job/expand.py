"""The objects of a job: its PodGroup, its pods, its claims and those of its plugins.

The one place that computes them.  The job controller creates what is missing;
`explain`, `whatif`, the simulator and `lint` read them for jobs that no controller has seen.
"""

from collections.abc import Iterator, Sequence

import msgspec

from pumice.api.kinds import QUEUE, Manifest
from pumice.controllers.base import View
from pumice.controllers.job.names import FORWARDING, pod_index, pod_name
from pumice.controllers.job.plugins import JOB_PLUGINS, JobPlugin, plugins_of
from pumice.controllers.job.podgroup import new_podgroup
from pumice.controllers.job.pods import new_pod
from pumice.controllers.job.state import JobState, container_statuses, pod_phase, replicas_of
from pumice.controllers.job.volumes import named_volumes, new_claims
from pumice.errors import ManifestError


def may_start(state: JobState, task: Manifest) -> bool:
    """Return whether the tasks that a task depends on have come far enough."""
    depends = task.get("dependsOn")
    if not depends:
        return True
    names = [str(name) for name in depends.get("name") or []]
    if len(names) > 1 and depends.get("iteration") == "any":
        return any(_ready(state, name) for name in names)
    return all(_ready(state, name) for name in names)


def _ready(state: JobState, name: str) -> bool:
    """Return whether enough pods of a task run and are ready, or have succeeded."""
    task = state.task(name)
    if task is None or task.get("minAvailable") is None:
        return True
    ready = sum(_pod_ready(pod) for pod in wanted_pods(state, task).values())
    return ready >= int(task["minAvailable"])


def wanted_pods(state: JobState, task: Manifest) -> dict[str, Manifest]:
    """Return the pods of a task by name that its replicas ask for.

    Counts existing pods, not requested ones, whose number may be anything.
    """
    task_name, replicas = str(task.get("name") or ""), replicas_of(task)
    return {
        name: pod
        for name, pod in state.pods.get(task_name, {}).items()
        if (index := pod_index(state.name, task_name, name)) is not None and index < replicas
    }


def _pod_ready(pod: Manifest) -> bool:
    phase = pod_phase(pod)
    if phase == "Running":
        return all(status.get("ready") for status in container_statuses(pod))
    return phase == "Succeeded"


class Expansion(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that the job controller makes for one job, as the job and the cluster are now."""

    state: JobState
    plugins: Sequence[JobPlugin]
    is_forwarded: bool
    """Whether its queue belongs to several clusters, so that its pods are marked."""

    @property
    def tasks(self) -> list[Manifest]:
        """The tasks of the job."""
        return self.state.tasks

    def podgroup(self) -> Manifest:
        """Write the PodGroup."""
        return new_podgroup(self.state)

    def pod(self, task: Manifest, index: int) -> Manifest:
        """Write one pod of a task."""
        return new_pod(self.state, task, index, self.plugins, is_forwarded=self.is_forwarded)

    def new_pods(self, task: Manifest) -> Iterator[Manifest]:
        """Write the pods of a task that are missing, unless it waits for another task.

        A name that the pod of an earlier job holds is not free yet.
        """
        if not may_start(self.state, task):
            return
        for index in range(replicas_of(task)):
            name = pod_name(self.state.name, str(task.get("name") or ""), index)
            if self.state.view.get("Pod", self.state.namespace, name) is None:
                yield self.pod(task, index)

    def new_claims(self) -> list[Manifest]:
        """Write the claims that the job describes and that are missing."""
        return new_claims(self.state, named_volumes(self.state))


def expand(job: Manifest, view: View, *, source: str = "") -> Expansion:
    """Compute the objects of a job; ``job`` is as a cluster stores it, defaults filled in.

    Raises:
        ManifestError: the controller cannot use it; ``source`` is the file to name.
    """
    state = JobState.read(job, view)
    subject = f"Job {state.namespace}/{state.name}"
    if not state.tasks:
        wanted, field = "at least one task", "spec.tasks"
        raise ManifestError(wanted=wanted, found=[], field=field, subject=subject, file=source)
    plugins, unknown = plugins_of(job, _no_keys)
    if unknown:
        wanted, field = f"one of {', '.join(sorted(JOB_PLUGINS))}", "spec.plugins"
        raise ManifestError(wanted=wanted, found=unknown, field=field, subject=subject, file=source)
    if is_forwarded(state):
        state = JobState.read(_marked(job), view)
    return Expansion(state=state, plugins=plugins, is_forwarded=is_forwarded(state))


def is_forwarded(state: JobState) -> bool:
    """Return whether the queue of a job belongs to several clusters."""
    queue = state.view.get(QUEUE, "", state.queue) or {}
    return bool((queue.get("spec") or {}).get("extendClusters"))


def _marked(job: Manifest) -> Manifest:
    """Return a job with the mark that the controller writes on forwarded ones first of all."""
    metadata = job["metadata"]
    annotations = {**(metadata.get("annotations") or {}), FORWARDING: "true"}
    return {**job, "metadata": {**metadata, "annotations": annotations}}


def _no_keys() -> tuple[str, str]:
    """Return a placeholder for a key pair; keys change no pod."""
    return "", ""
