"""What the least part of a job needs, in the words of a resource quota; for ``minResources``."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from pumice.api.kinds import Manifest
from pumice.api.quantity import format_quantity, milli_value, value
from pumice.controllers.base import View
from pumice.controllers.job.names import PRIORITY_CLASS
from pumice.controllers.job.state import replicas_of

_PLAIN: Final = ("cpu", "memory", "ephemeral-storage")


def _number(resource: str, quantity: Any) -> int:
    """Read an amount in the unit that ``format_quantity`` prints: cpu in thousandths."""
    return milli_value(quantity) if resource == "cpu" else value(quantity)


def _amounts(spec: Manifest, side: str) -> Counter[str]:
    """Add up one side of the containers; a larger init container counts instead."""
    total: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for container in spec.get("containers") or []:
        for name, quantity in ((container.get("resources") or {}).get(side) or {}).items():
            total[name] += _number(name, quantity)
    for container in spec.get("initContainers") or []:
        listed = (container.get("resources") or {}).get(side) or {}
        numbers = {name: _number(name, quantity) for name, quantity in listed.items()}
        if container.get("restartPolicy") == "Always":  # a sidecar stays beside the others
            total.update(numbers)
        else:
            peak |= Counter(numbers)
    overhead = spec.get("overhead") or {} if total or peak else {}
    most = total | peak
    most.update({name: _number(name, quantity) for name, quantity in overhead.items()})
    return most


def pod_usage(spec: Manifest) -> Counter[str]:
    """Count what a pod takes from a resource quota, by quota name."""
    usage: Counter[str] = Counter({"pods": 1, "count/pods": 1})
    for name, number in _amounts(spec, "requests").items():
        usage[name] = number
        usage[f"requests.{name}"] = number
    for name, number in _amounts(spec, "limits").items():
        if name in _PLAIN:
            usage[f"limits.{name}"] = number
    return usage


def printed(usage: Mapping[str, int]) -> dict[str, str]:
    """Write amounts as a resource list."""
    return {name: format_quantity(name, number) for name, number in sorted(usage.items())}


def min_resources(job: Manifest, view: View) -> dict[str, str]:
    """Say what the first ``minAvailable`` pods of a job need, important tasks first."""
    tasks = _by_priority(job["spec"].get("tasks") or [], view)
    minimum = int(job["spec"].get("minAvailable") or 0)
    wanted = sum(int(task.get("minAvailable", replicas_of(task))) for task in tasks)
    counted: Counter[int] = Counter()
    if minimum < wanted:
        _fill(counted, tasks, minimum, replicas_of)
    else:
        left = _fill(counted, tasks, minimum, lambda task: int(task.get("minAvailable") or 0))
        _fill(counted, tasks, left, lambda task: replicas_of(task) - counted[_place(tasks, task)])
    usage: Counter[str] = Counter()
    for place, number in counted.items():
        if number > 0:
            for name, amount in pod_usage(_pod_spec(tasks[place])).items():
                usage[name] += amount * number
    return printed(usage)


def _pod_spec(task: Manifest) -> Manifest:
    """Give the pod spec of a task."""
    return (task.get("template") or {}).get("spec") or {}


def _place(tasks: list[Manifest], task: Manifest) -> int:
    """Find a task by identity; two tasks may look the same."""
    return next(place for place, one in enumerate(tasks) if one is task)


def _fill(
    counted: Counter[int], tasks: list[Manifest], left: int, room: Callable[[Manifest], int]
) -> int:
    """Count pods task by task until none is left to count; gives what remains."""
    for place, task in enumerate(tasks):
        number = min(left, max(0, room(task)))
        counted[place] += number
        left -= number
    return left


def _by_priority(tasks: Iterable[Manifest], view: View) -> list[Manifest]:
    """Order tasks by the value of their priority class, highest first."""

    def key(task: Manifest) -> int:
        name = _pod_spec(task).get("priorityClassName")
        found = view.get(PRIORITY_CLASS, "", str(name)) if name else None
        return -int((found or {}).get("value") or 0)

    return sorted(tasks, key=key)
