"""Pods that a job lacks: those that a resource quota or an API server refuses to create.

A job whose gang needs such pods waits for them.  One that can start without them gets a note.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pumice.api.annotations import TASK_SPEC
from pumice.api.codes import Cause
from pumice.api.decisions import Decisions, Short
from pumice.api.kinds import RESOURCE_QUOTA, Manifest
from pumice.api.pod_resources import is_native, is_pod_count
from pumice.api.quantity import Amount
from pumice.api.wording import counted, part_of_its
from pumice.cluster.embedded.quotas import in_scope
from pumice.controllers.expected import is_expected, missing_class
from pumice.controllers.quota_headroom import QuotaLeft, RefusedPod
from pumice.diagnosis.cluster_state import ClusterState, group_of, key_of
from pumice.examine.findings import Finding, ObjectRef
from pumice.examine.limits import compared_numbers
from pumice.framework.refusals import Why
from pumice.framework.waiting import compared_amounts

_FAILED: Final = "FailedCreate"
_REFUSED: Final = re.compile(
    r"creating pods?:|failed to create pod|pods? .*is forbidden", re.IGNORECASE
)
_ADMITTED: Final = ("Inqueue", "Running", "Unknown")
_QUOTA: Final = re.compile(r"(?:exceeded|failed) quota: ([^,\s]+)")
_NAMED: Final = 3
_NANO: Final = 10**9


# Pods that an API server refused: only the events of their owner show why


def creation_errors(events: Iterable[Manifest]) -> dict[str, str]:
    """Return the last message about pods that could not be created, by kind and key of the owner.

    Events of other kinds are left out.
    """
    found: dict[str, tuple[str, str]] = {}
    for event in events:
        about = event.get("involvedObject") or event.get("regarding") or {}
        text = " ".join(str(event.get("message") or event.get("note") or "").split())
        is_refusal = event.get("reason") == _FAILED or _REFUSED.search(text)
        if not text or not about.get("name") or not is_refusal:
            continue
        space = about.get("namespace") or event["metadata"].get("namespace") or "default"
        owner, at = f"{about.get('kind')} {space}/{about['name']}", _last(event)
        if owner not in found or at >= found[owner][0]:
            found[owner] = at, text
    return {owner: text for owner, (_, text) in found.items()}


def _last(event: Mapping[str, Any]) -> str:
    series, meta = event.get("series") or {}, event["metadata"]
    times = (event.get("lastTimestamp"), series.get("lastObservedTime"), event.get("eventTime"))
    return str(next(filter(None, times), None) or meta.get("creationTimestamp") or "")


def lacking_pods(objects: Iterable[Manifest]) -> set[str]:
    """Name the namespaces with pod groups that are admitted and have fewer pods than they need."""
    groups, pods = list[Manifest](), Counter[str]()
    for one in objects:
        if one["kind"] == "PodGroup":
            groups.append(one)
        elif one["kind"] == "Pod":
            pods[group_of(one)] += 1
    return {
        str(one["metadata"].get("namespace"))
        for one in groups
        if (one.get("status") or {}).get("phase") in _ADMITTED
        and pods[key_of(one)] < int((one.get("spec") or {}).get("minMember") or 1)
    }


def creation_error(world: ClusterState, group: str) -> str:
    """Return why an API server refused pods of a job (by its pod group); empty if it did not."""
    if not world.creation_errors:
        return ""
    space = group.partition("/")[0]
    owners = [f"PodGroup {group}", f"Job {world.title(group)}"]
    manifest = world.groups.get(group) or {"metadata": {}}
    references = manifest["metadata"].get("ownerReferences") or ()
    owners += [f"{one.get('kind')} {space}/{one.get('name')}" for one in references]
    return next((text for owner in owners if (text := world.creation_errors.get(owner))), "")


def refusing_quota(text: str) -> str:
    """Return the resource quota that a message names; empty if none refused."""
    found = _QUOTA.search(text)
    return found[1] if found else ""


# Pods that a resource quota would refuse


def refused_count(world: ClusterState, group: str) -> int:
    """Count the pods of a job (by its pod group) that quotas would refuse."""
    found = world.refusals.get(group)
    return 0 if found is None else len(found.pods)


def refused_pods(world: ClusterState, group: str) -> list[Manifest]:
    """List the pods of a job (by its pod group) that quotas refuse, or whose class is missing."""
    pods, classes = world.pods_by_group.get(group, ()), world.of_kind("PriorityClass")
    found = world.refusals.get(group)
    by_quotas = set() if found is None else {id(each.pod) for each in found.pods}
    return [pod for pod in pods if id(pod) in by_quotas or missing_class(pod, classes)]


def needed_pods(world: ClusterState, group: str) -> list[RefusedPod]:
    """List the pods that quotas refuse and without which the gang of a job is too small."""
    found = world.refusals.get(group)
    if found is None:
        return []
    needed = set(map(id, gang_needs(world, group, [each.pod for each in found.pods])))
    return [each for each in found.pods if id(each.pod) in needed]


def gang_needs(world: ClusterState, group: str, refused: list[Manifest]) -> list[Manifest]:
    """List the refused pods of a job without which its gang is too small to start."""
    spec = world.groups.get(group, {}).get("spec") or {}
    unmade = set(map(id, refused))
    made = [
        pod
        for pod in world.pods_by_group.get(group, ())
        if id(pod) not in unmade and (pod.get("status") or {}).get("phase") != "Failed"
    ]
    least = int(spec.get("minMember") or 1)
    needed = _of_short_roles(refused, made, spec.get("minTaskMember") or {}, least)
    taken = set(map(id, needed))
    rest = [pod for pod in refused if id(pod) not in taken]
    return needed + rest[: max(0, least - len(made) - len(needed))]


def _of_short_roles(
    refused: Iterable[Manifest], made: Iterable[Manifest], minima: Mapping[str, Any], least: int
) -> list[Manifest]:
    """List the refused pods of roles with too few pods; roles of too small a gang do not bind."""
    if sum(map(int, minima.values())) > least:
        return []
    lacking = {role: int(each) for role, each in minima.items()}
    for pod in made:
        role = _role(pod)
        lacking[role] = lacking.get(role, 0) - 1
    found = []
    for pod in refused:
        role = _role(pod)
        if lacking.get(role, 0) > 0:
            lacking[role] -= 1
            found.append(pod)
    return found


def _role(pod: Manifest) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(TASK_SPEC) or "")


def lacks_pods(decisions: Decisions, group: str) -> bool:
    """Return whether a job waits in a cycle only because pods of it are missing, if it does."""
    record = decisions.records.get(group)
    return record is None or record.reason == Why.NOT_VALID.value


# Causes


def quota_findings(world: ClusterState, group: str) -> list[Finding]:
    """List the quotas that have no room for the refused pods that the gang of a job needs."""
    needed = needed_pods(world, group)
    if not needed:
        return []
    found = (_finding(world, group, left, needed) for left in world.refusals[group].quotas)
    return [each for each in found if each is not None]


def _finding(
    world: ClusterState, group: str, left: QuotaLeft, needed: list[RefusedPod]
) -> Finding | None:
    """Return what keeps a quota from admitting pods; None if it has room for them."""
    name, namespace = left.quota["metadata"]["name"], group.partition("/")[0]
    mine = [each for each in needed if in_scope(left.quota, each.pod)]
    about = ObjectRef(RESOURCE_QUOTA, name, namespace)
    pods = len(world.pods_by_group[group])
    part = part_of_its(len(mine), pods, "pod")
    numbers: dict[str, Any] = {"pods": refused_count(world, group), "needed": len(mine)}
    unstated = [why.unstated for each in mine for why in each.why if why.quota == name]
    if any(unstated):
        numbers["unstated"] = stated = next(filter(None, unstated))
        text = (
            f"resource quota {name} refuses {part}, which must state {stated} (no limit range "
            f"of namespace {namespace} gives a default)"
        )
        return Finding(Cause.QUOTA_EXCEEDED, text, about, numbers)
    shorts = _shorts(left, mine)
    if not shorts:
        return None
    numbers |= {**compared_numbers(shorts), **_less(world, group, left, mine)}
    compared = "; ".join(map(compared_amounts, shorts))
    some = f"any of {part}" if len(mine) == pods > 1 else part
    text = f"resource quota {name} has no room for {some}, which the gang needs: {compared}"
    return Finding(Cause.QUOTA_EXCEEDED, text, about, numbers)


def _shorts(left: QuotaLeft, pods: list[RefusedPod]) -> list[Short]:
    """Compare what pods would use together with what a quota has; return what is too little."""
    found = []
    for entry, hard in sorted(left.hard.items()):
        request = sum(each.usage[entry].nano for each in pods if entry in each.usage)
        if request and left.used[entry].nano + request > hard.nano:
            found.append(Short.of_nano(entry, left.used[entry].nano, request, hard.nano))
    return found


def _less(
    world: ClusterState, group: str, left: QuotaLeft, needed: list[RefusedPod]
) -> dict[str, dict[str, float]]:
    """Return what the largest pod asks for, and by how much too much for all to have room."""
    refused = {id(each.pod) for each in world.refusals[group].pods}
    admitted = [
        pod
        for pod in world.pods_by_group[group]
        if is_expected(pod) and id(pod) not in refused and in_scope(left.quota, pod)
    ]
    held = [world.quota_usage(pod) for pod in admitted]
    asked, lacks = {}, {}
    for short in _shorts(left, needed):
        entry = short.resource
        if entry.startswith("limits.") or is_pod_count(entry):
            continue  # scaled requests change neither
        resource = entry.removeprefix("requests.")
        all_of_it = [
            one[entry].nano for one in (*held, *(each.usage for each in needed)) if entry in one
        ]
        mine = sum(one[entry].nano for one in held if entry in one)
        room = (left.hard[entry].nano - left.used[entry].nano + mine) / len(all_of_it)
        if not is_native(resource):
            room -= room % _NANO  # devices are not shared out
        asked[resource] = max(all_of_it) / _NANO
        lacks[resource] = (max(all_of_it) - room) / _NANO
    return {"requests": asked, "lacks": lacks} if asked else {}


# What helps


def raised_limits(
    world: ClusterState, group: str, size: int
) -> list[tuple[Manifest, dict[str, str]]]:
    """Return the quotas to raise, each with new limits, so that the gang gets its pods.

    From size 2 on refused pods of jobs whose turn is before have room, too: they would take that
    of the gang.  Each further size has room for one more of its own pods.
    """
    needed = needed_pods(world, group)
    if not needed or any(why.unstated for each in needed for why in each.why):
        return []
    taken = set(map(id, needed))
    rest = [each for each in world.refusals[group].pods if id(each) not in taken]
    pods = [*needed, *rest[: max(0, size - 2)], *(_ahead(world, group) if size > 1 else ())]
    found = []
    for left in world.refusals[group].quotas:
        mine = [each.usage for each in pods if in_scope(left.quota, each.pod)]
        raised = {}
        for entry, hard in left.hard.items():
            wanted = left.used[entry].nano + sum(one[entry].nano for one in mine if entry in one)
            if wanted > hard.nano:
                raised[entry] = str(Amount(wanted, hard.form))
        if raised:
            found.append((left.quota, raised))
    return found


def _ahead(world: ClusterState, group: str) -> list[RefusedPod]:
    """List the refused pods of jobs in the same namespace that get their pods earlier."""
    home, groups = group.partition("/")[0], [*world.refusals]
    before = groups[: groups.index(group)]
    return [
        pod
        for each in before
        if each.partition("/")[0] == home
        for pod in world.refusals[each].pods
    ]


# Notes


def quota_notes(world: ClusterState, jobs: Iterable[str] | None = None) -> list[str]:
    """Describe which pods of jobs (pod groups; unless stated, all) quotas would refuse.

    Jobs that wait for these pods are left out: that is their cause.
    """
    found = []
    for job in world.refusals if jobs is None else jobs:
        refused = world.refusals.get(job)
        if refused is None or needed_pods(world, job):
            continue
        missing = sum(map(is_expected, world.pods_by_group[job]))
        first, part = refused.pods[0], part_of_its(len(refused.pods), missing, "missing pod")
        runs = "it runs" if _runs(world, job) else "it can start"
        found.append(
            f"{world.title(job)}: the cluster would refuse {part}, without which {runs}: "
            f"{first.why[0].problem}"
        )
    more = len(found) - _NAMED
    rest = [f"quotas refuse pods of {counted(more, 'more job')}"] if more > 0 else []
    return found[:_NAMED] + rest


def _runs(world: ClusterState, group: str) -> bool:
    """Return whether a job has begun without the pods that it lacks."""
    pods = world.pods_by_group[group]
    return any((pod.get("status") or {}).get("phase") == "Running" for pod in pods)
