"""Why a job waits: from its objects alone, and with the session, the decisive cause first."""

from collections.abc import Container, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from pumice.api.codes import Cause
from pumice.api.kinds import (
    ENDED_PHASES,
    RESOURCE_QUOTA,
    SCHEDULER_NAME,
    SYSTEM_PRIORITIES,
    Manifest,
    queue_of,
)
from pumice.api.wording import counted, first_of, nearest, part_of_its, verb
from pumice.controllers.base import phase_of
from pumice.controllers.expected import NOT_BEGUN, is_expected, missing_class
from pumice.controllers.job.objects import expand, may_start
from pumice.diagnosis.cluster_state import ClusterState, group_of, key_of
from pumice.diagnosis.control_plane import owner_of
from pumice.diagnosis.missing_pods import (
    creation_error,
    gang_needs,
    quota_findings,
    refused_count,
    refusing_quota,
)
from pumice.examine.causes import Examiner, session_causes
from pumice.examine.findings import Finding, ObjectRef
from pumice.webhooks.admission_chain import Chain
from pumice.webhooks.files import Files

_NAMED: Final = 3


_SUSPENDED: Final = ("Aborting", "Aborted")
_OVER: Final = ("Completed", "Failed", "Terminated")
_ENDING: Final = ("Completing", "Terminating")
BARRING: Final = (Cause.SUSPENDED, Cause.PRIORITY_CLASS_MISSING, Cause.INVALID)
"""Causes for which a job waits even though its pods, once created, would find nodes."""
REFUSAL: Final = "message"
"""Number of a cause with the words of an API server that refused pods."""


def manifest_findings(world: ClusterState, group: str) -> list[Finding]:
    """List the findings in the objects of a job (by its pod group)."""
    job = world.job_of(group)
    found = [
        *_invalid(world, job),
        *_suspended(job),
        *_no_queue(world, group),
        *_other_scheduler(world, group),
        *_no_priority_class(world, group),
    ]
    missing = _refused_pods(world, group) if not found else ()
    return [*found, *missing, *_strays(world, group), *_depends_on(world, group, job)]


def ended_phase(world: ClusterState, group: str) -> str:
    """Return the phase of a Volcano job that is over; empty for all others."""
    job = world.job_of(group)
    phase = "" if job is None else phase_of(job)
    is_over = phase in _OVER or (phase in _ENDING and not world.pods_by_group.get(group))
    return phase if is_over else ""


def is_barred(world: ClusterState, group: str) -> bool:
    """Return whether the objects of a job alone keep it from starting."""
    return any(map(is_barring, manifest_findings(world, group)))


def is_barring(finding: Finding) -> bool:
    """Return whether a job waits for a cause even though its pods would find nodes."""
    return finding.code in BARRING or REFUSAL in finding.numbers


def _refused_pods(world: ClusterState, group: str) -> Iterator[Finding]:
    """Yield why an API server refused pods that the gang lacks, as an event states it."""
    error = creation_error(world, group)
    pods = [pod for pod in world.pods_by_group.get(group, ()) if not is_expected(pod)]
    made = sum(not _is_over(pod) for pod in pods)
    least = _least(world, group)
    quota = refusing_quota(error)
    if not error or made >= least or (quota and refused_count(world, group)):
        return
    code, about = Cause.TOO_FEW_PODS if made else Cause.NO_PODS, ObjectRef.of_key("PodGroup", group)
    if world.job_of(group) is not None:
        about = ObjectRef.of_key("Job", world.title(group))
    if quota:
        code, about = (
            Cause.QUOTA_EXCEEDED,
            ObjectRef(RESOURCE_QUOTA, quota, group.partition("/")[0]),
        )
    numbers = {"pods": made, "minMember": least, REFUSAL: error}
    yield Finding(code, f"the API server refuses its pods: {error}", about, numbers)


def _strays(world: ClusterState, group: str) -> Iterator[Finding]:
    """Yield pods that name a pod group which does not exist, if this one has too few."""
    pods = strays(world, group)
    if not pods:
        return
    names = [str(pod["metadata"]["name"]) for pod in pods]
    missing = group_of(pods[0]).rpartition("/")[2]
    there, least = len(world.pods_by_group.get(group, ())), _least(world, group)
    has = f"it has {counted(there, 'pod')} and needs {least} to start"
    text = (
        f"{has if there else 'its pod group has no pods'}; {counted(len(pods), 'pod')} "
        f"({first_of(names, 3)}) {verb(len(pods), 'names', 'name')} pod group {missing}, "
        "which does not exist"
    )
    about = ObjectRef.of_key("PodGroup", group)
    numbers = {"pods": there, "strays": [key_of(pod) for pod in pods], "group": missing}
    code = Cause.TOO_FEW_PODS if there else Cause.NO_PODS
    yield Finding(code, text, about, numbers | ({"minMember": least} if there else {}))


def strays(world: ClusterState, group: str) -> list[Manifest]:
    """List the pods that name a missing pod group and probably mean one that lacks pods."""
    space, _, name = group.partition("/")
    if not _lacks_members(world, group) or world.job_of(group):
        return []
    missing = {
        key.rpartition("/")[2]: pods
        for key, pods in world.pods_by_group.items()
        if key.partition("/")[0] == space and key not in world.groups
    }
    short = [
        key.rpartition("/")[2]
        for key in world.groups
        if key.partition("/")[0] == space and _lacks_members(world, key)
    ]
    meant = [each for each in missing if nearest(each, short) == name]
    if not meant and len(missing) == len(short) == 1:
        meant = list(missing)
    return list(missing[meant[0]]) if meant else []


def _lacks_members(world: ClusterState, group: str) -> bool:
    """Return whether a pod group exists and has fewer pods than it needs."""
    there = len(world.pods_by_group.get(group, ()))
    return group in world.groups and there < max(_least(world, group), 1)


def _least(world: ClusterState, group: str) -> int:
    return int((world.groups.get(group, {}).get("spec") or {}).get("minMember") or 1)


def _invalid(world: ClusterState, job: Manifest | None) -> Iterator[Finding]:
    """Yield why the admission rules refuse a job that has not begun yet."""
    if job is None or phase_of(job) not in NOT_BEGUN:
        return
    spec = job.get("spec") or {}
    # whether its queue exists and is open is a cause of its own
    queues = Files((), [str(spec.get("queue") or ""), *world.of_kind("Queue")])
    fresh = {key: value for key, value in job.items() if key != "status"}
    verdict = Chain(queues).judge("CREATE", fresh)
    if not verdict.allowed:
        about = ObjectRef.of_key("Job", key_of(job))
        yield Finding(
            Cause.INVALID, f"admission refuses the job: {verdict.message.rstrip('; ')}", about
        )


def _suspended(job: Manifest | None) -> Iterator[Finding]:
    if job is not None and phase_of(job) in _SUSPENDED:
        about = ObjectRef.of_key("Job", key_of(job))
        text = f"the job is {phase_of(job).lower()}: it must be resumed (pumice job resume)"
        yield Finding(Cause.SUSPENDED, text, about, {"phase": phase_of(job)})


def _no_queue(world: ClusterState, group: str) -> Iterator[Finding]:
    manifest = world.groups.get(group)
    name = queue_of(manifest) if manifest is not None else ""
    known = world.of_kind("Queue")
    if manifest is None or name in known:
        return
    near = nearest(name, known)
    hint = f"; did you mean {near}?" if near else ""
    yield Finding(
        Cause.QUEUE_MISSING, f"queue {name} does not exist{hint}", ObjectRef("Queue", name)
    )


def _other_scheduler(world: ClusterState, group: str) -> Iterator[Finding]:
    """Yield pods that another scheduler is to place, if the gang needs them."""
    pods = [pod for pod in world.pods_by_group.get(group, ()) if not _is_over(pod)]
    foreign = [pod for pod in pods if not _is_ours(pod)]
    least = _least(world, group)
    if not foreign or len(pods) - len(foreign) >= least:
        return
    names = sorted(
        {str(pod["spec"].get("schedulerName") or "default-scheduler") for pod in foreign}
    )
    yield Finding(
        Cause.OTHER_SCHEDULER,
        f"{part_of_its(len(foreign), len(pods), 'pod')} "
        f"{verb(len(foreign), 'names', 'name')} the scheduler {', '.join(names)}, "
        f"not {SCHEDULER_NAME}",
        ObjectRef.of_key("Pod", key_of(foreign[0])),
        {"pods": len(foreign), "schedulers": names},
    )


def _is_ours(pod: Manifest) -> bool:
    spec = pod.get("spec") or {}
    return bool(spec.get("nodeName")) or spec.get("schedulerName") == SCHEDULER_NAME


def _is_over(pod: Manifest) -> bool:
    return (pod.get("status") or {}).get("phase") in ENDED_PHASES


def _no_priority_class(world: ClusterState, group: str) -> Iterator[Finding]:
    """Yield the classes that do not exist, of pods that the gang needs and cannot get."""
    pods, known = world.pods_by_group.get(group, []), world.of_kind("PriorityClass")
    needed = gang_needs(world, group, [pod for pod in pods if missing_class(pod, known)])
    asking = needed if pods else [world.groups.get(group, {})]
    for name in filter(None, dict.fromkeys(missing_class(one, known) for one in asking)):
        near = nearest(name, known)
        hint = f"; did you mean {near}?" if near else ""
        text = f"priority class {name} does not exist, so its pods cannot be made{hint}"
        yield Finding(Cause.PRIORITY_CLASS_MISSING, text, ObjectRef("PriorityClass", name))


def _depends_on(world: ClusterState, group: str, job: Manifest | None) -> Iterator[Finding]:
    """Yield tasks whose pods wait for another task, if the gang needs them."""
    tasks = (job or {}).get("spec", {}).get("tasks") or ()
    if job is None or not any(task.get("dependsOn") for task in tasks):
        return
    state = expand(job, world.view).state
    waiting = [task for task in state.tasks if not may_start(state, task)]
    there = sum(not _is_over(pod) for pod in world.pods_by_group.get(group, ()))
    least = _least(world, group)
    if not waiting or there >= least:
        return
    waits_for: dict[str, Any] = {
        str(task["name"]): [str(name) for name in task["dependsOn"].get("name") or []]
        for task in waiting
    }
    words = "; ".join(f"{task} waits for {first_of(names, 3)}" for task, names in waits_for.items())
    yield Finding(
        Cause.DEPENDS_ON,
        f"pods of {counted(len(waits_for), 'task')} are not created yet: {words}",
        ObjectRef.of_key("Job", key_of(job)),
        {"tasks": waits_for, "pods": there, "needed": least},
    )


def causes_of(world: ClusterState, examiner: Examiner) -> list[Finding]:
    """List the reasons why a job waits, from its objects and from the session."""
    job = examiner.outcome.job
    pods = world.pods_by_group.get(job, ())
    unmade = bool(pods) and all(map(is_expected, pods))
    # in a later cycle they may have been made
    lacking = sum(examiner.outcome.counts.values()) < len(pods)
    return session_causes(
        examiner,
        manifest_findings(world, job),
        refused=quota_findings(world, job) if lacking else [],
        unmade=unmade,
    )


# What a dump lacks although its objects refer to it


class _Missing:
    """Names of one kind that are used, but not there, and the objects that use them."""

    def __init__(self, kind: str, there: Container[str], what: str = "") -> None:
        self._kind, self._there, self._what = kind, there, what
        self._users: dict[str, list[str]] = {}

    def note(self, name: str, user: Manifest) -> None:
        """Note that an object uses a name."""
        if name not in self._there:
            self._users.setdefault(name, []).append(f"{user['kind']} {key_of(user)}")

    def sentences(self) -> Iterator[str]:
        """Describe each name that is missing."""
        for name, users in sorted(self._users.items()):
            then = f"; {self._what}" if self._what else ""
            yield (
                f"{self._kind} {name} is missing, but {counted(len(users), 'object')} "
                f"{'names' if len(users) == 1 else 'name'} it: {first_of(users, _NAMED)}{then}"
            )


def missing_input(world: ClusterState) -> list[str]:
    """Describe what is missing from a world, a sentence each; one look at each object."""
    classes = _Missing("PriorityClass", world.of_kind("PriorityClass"))
    queues = _Missing("Queue", world.of_kind("Queue"))
    jobs = _Missing("Job", world.jobs, "its pods are assumed to be created again")
    nodes = _Missing("Node", world.of_kind("Node"))
    unphased: list[str] = []
    lacking: list[str] = []
    for key, group in world.groups.items():
        if _lacks_pods(world, key, group):
            lacking.append(world.title(key))
        _note_class(group, classes)
        queues.note(queue_of(group), group)
        _note_job(group, jobs)
    for pod in world.pods:
        spec, status = pod.get("spec") or {}, pod.get("status") or {}
        if spec.get("priorityClassName"):
            _note_class(pod, classes)
        _note_job(pod, jobs)
        phase, node = status.get("phase"), spec.get("nodeName")
        if not phase:
            unphased.append(key_of(pod))
        if node and phase not in ENDED_PHASES:
            nodes.note(str(node), pod)
    for job in world.jobs.values():
        _note_class(job, classes)
    found = [each.sentences() for each in (classes, queues, jobs, nodes)]
    odd = (*_phases(unphased), *_quotas(lacking))
    return [*_configuration(world), *chain.from_iterable(found), *odd]


def _configuration(world: ClusterState) -> Iterator[str]:
    if world.conf_source == ClusterState.conf_source:
        yield f"no configuration was given: {world.conf_source} is used"


def _note_class(one: Manifest, classes: _Missing) -> None:
    name = (one.get("spec") or {}).get("priorityClassName")
    if name and name not in SYSTEM_PRIORITIES:
        classes.note(str(name), one)


def _note_job(one: Manifest, jobs: _Missing) -> None:
    if one["metadata"].get("ownerReferences") and (owner := owner_of(one)):
        jobs.note(owner, one)


def _phases(pods: Sequence[str]) -> Iterator[str]:
    if pods:
        have = "has" if len(pods) == 1 else "have"
        yield f"{counted(len(pods), 'pod')} {have} no phase: {first_of(pods, _NAMED)}"


def _lacks_pods(world: ClusterState, key: str, group: Manifest) -> bool:
    """Return whether a job that a cluster has admitted has too few pods, for an unknown reason."""
    if (group.get("status") or {}).get("phase") != "Inqueue" or not owner_of(group):
        return False
    made = sum(not is_expected(pod) for pod in world.pods_by_group.get(key, ()))
    least = int((group.get("spec") or {}).get("minMember") or 1)
    return made < least and not world.has_quotas(key.partition("/")[0])


def _quotas(jobs: Sequence[str]) -> Iterator[str]:
    if jobs:
        are = "is admitted and lacks" if len(jobs) == 1 else "are admitted and lack"
        yield (
            f"{counted(len(jobs), 'job')} {are} pods: {first_of(jobs, _NAMED)}; controllers have "
            "still to make them, or a ResourceQuota that is not known here refuses them"
        )
