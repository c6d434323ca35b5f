"""Changes of how many pods a job needs to start: each lowers a number, or is not offered."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any, Final

from pumice.api.kinds import Manifest
from pumice.api.quantity import format_quantity, parse_quantity
from pumice.controllers.job.state import replicas_of
from pumice.diagnosis.changes import Change
from pumice.diagnosis.remedy.target import Target, requests_of
from pumice.examine.findings import Finding

Sized = tuple[Callable[[int], Change | None], int]
_NANO: Final = 10**9
_MEBI: Final = 2**20


def smaller_gang(target: Target, _: Finding) -> Iterator[Change | Sized | None]:
    """Lower the least number: size n subtracts n."""
    least = target.least
    if least > 1:
        yield (lambda n: _gang_of(target, least - n)), least - 1


def gang_of_those_there(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Need no more pods than exist."""
    there = int(cause.numbers.get("pods", 0))
    if there:
        yield _gang_of(target, there)


def smaller_reservation(target: Target, _: Finding) -> Iterator[Change | None]:
    """Reserve no more for a pod group than the pods ask for that it needs to start."""
    stated = target.spec.get("minResources") or {}
    if target.job is not None or len(target.pods) < target.least:
        return
    asked = [requests_of(pod["spec"]) for pod in target.pods]
    lowered = {}
    for name, amount in stated.items():
        most = sorted((one.get(_plain(name), Fraction(0)) for one in asked), reverse=True)
        needed = sum(most[: target.least], Fraction(0))
        if Fraction(parse_quantity(amount), _NANO) > needed:
            units = math.ceil(needed * 1000 if _plain(name) == "cpu" else needed)
            lowered[name] = format_quantity(name, units)
    if lowered:
        moves = ", ".join(f"{name} from {stated[name]} to {x}" for name, x in lowered.items())
        text = f"lower minResources to what its pods need: {moves}"
        yield target.with_group(text, {"minResources": {**stated, **lowered}})


def _plain(name: str) -> str:
    """Return a resource as pods name it."""
    return name.removeprefix("requests.").removeprefix("limits.")


def valid_gang(target: Target, _: Finding) -> Iterator[Change | None]:
    """Need no more pods of a task, and of all together, than there are replicas."""
    if target.job is None:
        return
    words: list[str] = []
    tasks = [_no_more_than_replicas(task, words) for task in target.tasks]
    old, total = target.least, sum(map(replicas_of, target.tasks))
    least = min(old, total)
    if least < old:
        what = "that of the job" if words else "lower minAvailable"
        words.append(f"{what} from {old} to {least}")
    if words and least > 0:
        yield target.resubmitted(
            " and ".join(words),
            lambda job: {**job, "spec": {**job["spec"], "minAvailable": least, "tasks": tasks}},
        )


def _no_more_than_replicas(task: Manifest, words: list[str]) -> Manifest:
    """Return a task that needs no more pods than it has; what is lowered goes to the words."""
    least, replicas = int(task.get("minAvailable") or 0), replicas_of(task)
    if least <= replicas:
        return task
    words.append(f"lower minAvailable of task {task.get('name')} from {least} to {replicas}")
    return {**task, "minAvailable": replicas}


def _gang_of(target: Target, least: int) -> Change | None:
    """Lower the least number of pods; None if that number is not lower.

    Least numbers of tasks and roles stay: they bind only while the job needs as many pods as they
    add up to.
    """
    old = target.least
    if not 0 < least < old:
        return None
    if target.job is not None:
        text = f"lower minAvailable from {old} to {least}"
        return target.with_group(text, {"minMember": least})
    text = f"lower minMember from {old} to {least}"
    stated = target.spec.get("minResources")
    if not stated:
        return target.with_group(text, {"minMember": least})
    part = Fraction(least, old)
    amounts = {name: _part_of(name, amount, part) for name, amount in stated.items()}
    listed = ", ".join(f"{name} {amount}" for name, amount in amounts.items())
    return target.with_group(
        f"{text} and minResources in proportion, to {listed}",
        {"minMember": least, "minResources": amounts},
    )


def _part_of(name: str, amount: Any, part: Fraction) -> str:
    """Return a part of a quantity, rounded up to what reads well: whole milli-cores, or MiB."""
    whole = Fraction(parse_quantity(amount), _NANO) * part
    if _plain(name) == "cpu":
        return format_quantity(name, math.ceil(whole * 1000))
    step = _MEBI if parse_quantity(amount) % (_MEBI * _NANO) == 0 else 1
    return format_quantity(name, math.ceil(whole / step) * step)


def fewer_of_role(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Lower the least number of a role to the pods it has or finds a node for."""
    role = str(cause.numbers.get("role", ""))
    there = int(cause.numbers.get("found", cause.numbers.get("pods", 0)))
    needed = int(cause.numbers.get("needed", 0))
    if there >= needed:
        return
    old = target.least
    least = max(1, old - (needed - there))
    if target.job is None:
        minima = dict(target.spec.get("minTaskMember") or {})
        if role in minima:
            fields = {"minTaskMember": {**minima, role: there}, "minMember": least}
            text = f"lower minTaskMember of role {role} from {needed} to {there}"
            yield target.with_group(text + _job_too("minMember", old, least), fields)
        return
    tasks = [
        {**task, "minAvailable": there} if task.get("name") == role else task
        for task in target.tasks
    ]
    text = f"lower minAvailable of task {role} from {needed} to {there}"
    yield target.resubmitted(
        text + _job_too("that of the job", old, least),
        lambda job: {**job, "spec": {**job["spec"], "tasks": tasks, "minAvailable": least}},
    )


def _job_too(what: str, old: int, least: int) -> str:
    return f" and {what} from {old} to {least}" if least < old else ""


def fewer_parts(target: Target, _: Finding) -> Iterator[Change | Sized | None]:
    """Need fewer sub-groups of a pod group, or partitions of a task: size n subtracts n."""
    if target.job is None:
        for at, policy in enumerate(target.spec.get("subGroupPolicy") or ()):
            least = int(policy.get("minSubGroups") or 0)
            if least > 1:
                yield partial(_fewer_sub_groups, target, at, least), least - 1
        return
    for at, task in enumerate(target.tasks):
        least = int((task.get("partitionPolicy") or {}).get("minPartitions") or 0)
        if least > 1:
            yield partial(_fewer_partitions, target, at, least), least - 1


def _fewer_sub_groups(target: Target, at: int, least: int, n: int) -> Change | None:
    policies = [dict(each) for each in target.spec["subGroupPolicy"]]
    policies[at]["minSubGroups"] = least - n
    name = policies[at].get("name") or at
    text = f"lower minSubGroups of sub-group policy {name} from {least} to {least - n}"
    return target.with_group(text, {"subGroupPolicy": policies})


def _fewer_partitions(target: Target, at: int, least: int, n: int) -> Change | None:
    tasks = [dict(each) for each in target.tasks]
    task = tasks[at]
    policy = {**task["partitionPolicy"], "minPartitions": least - n}
    task["partitionPolicy"] = policy
    text = f"lower minPartitions of task {task.get('name')} from {least} to {least - n}"
    old, pods = int(task.get("minAvailable") or 0), (least - n) * int(policy["partitionSize"])
    if old > pods:  # admission wants it to be as many pods as the partitions have
        task["minAvailable"] = pods
        text += f" and its minAvailable from {old} to {pods}"
    return target.resubmitted(text, lambda job: {**job, "spec": {**job["spec"], "tasks": tasks}})
