"""What the least part of a job needs, in the words of a resource quota; for ``minResources``."""

from collections.abc import Iterable

from pumice.api.kinds import PRIORITY_CLASS, Manifest
from pumice.controllers.base import View
from pumice.controllers.job.state import replicas_of
from pumice.controllers.quota_usage import pods_usage


def min_resources(job: Manifest, view: View) -> dict[str, str]:
    """Sum up what the first ``minAvailable`` pods of a job need, important tasks first."""
    tasks = _by_priority(job["spec"].get("tasks") or [], view)
    minimum = int(job["spec"].get("minAvailable") or 0)
    replicas = [replicas_of(task) for task in tasks]
    if minimum >= sum(int(task.get("minAvailable", replicas_of(task))) for task in tasks):
        needed = _first(minimum, [int(task.get("minAvailable") or 0) for task in tasks])
        more = [most - number for most, number in zip(replicas, needed, strict=True)]
        further = _first(minimum - sum(needed), more)
        counted = [a + b for a, b in zip(needed, further, strict=True)]
    else:
        counted = _first(minimum, replicas)
    return pods_usage(zip(map(_pod_spec, tasks), counted, strict=True))


def _pod_spec(task: Manifest) -> Manifest:
    """Return the pod spec of a task."""
    return (task.get("template") or {}).get("spec") or {}


def _first(left: int, numbers: Iterable[int]) -> list[int]:
    """Take from numbers, one after the other, until so many are taken."""
    taken: list[int] = []
    for number in numbers:
        taken.append(min(left, max(0, number)))
        left -= taken[-1]
    return taken


def _by_priority(tasks: Iterable[Manifest], view: View) -> list[Manifest]:
    """Order tasks by the value of their priority class, highest first."""

    def key(task: Manifest) -> int:
        name = _pod_spec(task).get("priorityClassName")
        found = view.get(PRIORITY_CLASS, "", str(name)) if name else None
        return -int((found or {}).get("value") or 0)

    return sorted(tasks, key=key)
