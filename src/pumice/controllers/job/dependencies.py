"""dependsOn: a task whose pods wait for the pods of other tasks."""

from pumice.api.kinds import Manifest
from pumice.controllers.job.names import pod_name
from pumice.controllers.job.state import JobState, container_statuses, pod_phase, replicas_of


def may_start(state: JobState, task: Manifest) -> bool:
    """Tell whether the tasks that a task depends on have come far enough."""
    depends = task.get("dependsOn")
    if not depends:
        return True
    names = [str(name) for name in depends.get("name") or []]
    if len(names) > 1 and depends.get("iteration") == "any":
        return any(_ready(state, name) for name in names)
    return all(_ready(state, name) for name in names)


def _ready(state: JobState, name: str) -> bool:
    """Tell whether enough pods of a task run and are ready, or have succeeded."""
    task = state.task(name)
    if task is None or task.get("minAvailable") is None:
        return True
    pods = state.pods.get(name, {})
    names = (pod_name(state.name, name, index) for index in range(replicas_of(task)))
    ready = sum(_pod_ready(pods[one]) for one in names if one in pods)
    return ready >= int(task["minAvailable"])


def _pod_ready(pod: Manifest) -> bool:
    """Tell whether others may count on a pod."""
    phase = pod_phase(pod)
    if phase == "Running":
        return all(status.get("ready") for status in container_statuses(pod))
    return phase == "Succeeded"
