"""Causes for which a job waits before any session considers it: from the objects alone."""

from collections.abc import Iterator
from typing import Any, Final

from pumice.api.codes import Cause
from pumice.api.kinds import ENDED_PHASES, SCHEDULER_NAME, SYSTEM_PRIORITIES, Manifest, queue_of
from pumice.api.wording import counted, first_of, nearest, part_of_its, verb
from pumice.controllers.expected import NOT_BEGUN, is_expected
from pumice.controllers.job.expand import expand, may_start
from pumice.controllers.ownership import phase_of
from pumice.diagnosis.cluster_state import ClusterState, key_of
from pumice.examine.findings import Finding, ObjectRef
from pumice.webhooks.admission_chain import Chain
from pumice.webhooks.files import Files

_SUSPENDED: Final = ("Aborting", "Aborted")
_OVER: Final = ("Completed", "Failed", "Terminated")
BARRING: Final = (Cause.SUSPENDED, Cause.PRIORITY_CLASS_MISSING, Cause.INVALID)
"""Causes for which a job waits even though its pods, once created, would find nodes."""


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
    return found + list(_depends_on(world, group, job))


def ended_phase(world: ClusterState, group: str) -> str:
    """Return the phase of a Volcano job that is over; empty for all others."""
    job = world.job_of(group)
    phase = "" if job is None else phase_of(job)
    return phase if phase in _OVER else ""


def is_barred(world: ClusterState, group: str) -> bool:
    """Return whether the objects of a job alone keep it from starting."""
    return any(each.code in BARRING for each in manifest_findings(world, group))


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
    least = int((world.groups.get(group, {}).get("spec") or {}).get("minMember") or 1)
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
    """Yield a class that does not exist, as long as pods have still to be created."""
    pods = world.pods_by_group.get(group, ())
    if pods and not any(is_expected(pod) for pod in pods):
        return
    spec = world.groups.get(group, {}).get("spec") or {}
    names = [spec.get("priorityClassName"), *(p["spec"].get("priorityClassName") for p in pods)]
    known = world.of_kind("PriorityClass")
    for name in dict.fromkeys(str(each) for each in names if each):
        if name not in known and name not in SYSTEM_PRIORITIES:
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
    least = int((world.groups.get(group, {}).get("spec") or {}).get("minMember") or 1)
    if not waiting or there >= least:
        return
    waits_for: dict[str, Any] = {
        str(task["name"]): [str(name) for name in task["dependsOn"].get("name") or []]
        for task in waiting
    }
    words = "; ".join(f"{task} waits for {first_of(names, 3)}" for task, names in waits_for.items())
    yield Finding(
        Cause.DEPENDS_ON,
        f"pods of {counted(len(waits_for), 'task')} are not made yet: {words}",
        ObjectRef.of_key("Job", key_of(job)),
        {"tasks": waits_for, "pods": there, "needed": least},
    )
