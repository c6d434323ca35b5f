"""JobFlow: runs the jobs of templates in the order of their dependencies."""

from collections.abc import Iterable
from typing import Any, Final

from pumice.api.cloning import clone
from pumice.api.duration import parse_duration
from pumice.api.kinds import JOB, JOB_FLOW, JOB_TEMPLATE, Manifest
from pumice.api.times import epoch, rfc3339
from pumice.controllers.base import (
    SOURCE,
    Create,
    Delete,
    Effect,
    Key,
    Patch,
    Plan,
    Record,
    UpdateStatus,
    View,
    controlled_by,
    controller_of,
    key_of,
    phase_of,
)

BY_TEMPLATE: Final = "volcano.sh/createdByJobTemplate"
"""Label and annotation of a job: ``NAMESPACE.NAME`` of its template."""


class JobTemplateController:
    """Writes ``status.jobDependsOnList``; a deleted job stays listed until the next is created."""

    name = "jobtemplate"
    watches: tuple[str, ...] = (JOB_TEMPLATE, JOB)

    def concerns(self, kind: str, manifest: Manifest, view: View) -> Iterable[Key]:
        """Look at a new template, and at the template of a job it does not list yet."""
        if kind == JOB_TEMPLATE:
            return (key_of(manifest),)
        made_from = (manifest["metadata"].get("labels") or {}).get(BY_TEMPLATE) or ""
        namespace, dot, name = made_from.partition(".")
        template = view.get(JOB_TEMPLATE, namespace, name) if dot else None
        job = key_of(manifest)
        if template is None or view.get(JOB, job.namespace, job.name) is None:
            return ()
        return () if job.name in _listed(template) else (key_of(template),)

    def reconcile(self, key: Key, view: View) -> Plan:
        """List the existing jobs, unless there are none."""
        template = view.get(JOB_TEMPLATE, key.namespace, key.name)
        if template is None:
            return Plan()
        label = {BY_TEMPLATE: f"{key.namespace}.{key.name}"}
        names = sorted(job["metadata"]["name"] for job in view.list(JOB, key.namespace, label))
        if not names or names == sorted(_listed(template)):
            return Plan()
        return Plan([Patch(key, {"status": {"jobDependsOnList": names}}, subresource="status")])


def _listed(template: Manifest) -> list[str]:
    return (template.get("status") or {}).get("jobDependsOnList") or []


_LISTS: Final = {
    "Pending": "pendingJobs",
    "Running": "runningJobs",
    "Failed": "failedJobs",
    "Completed": "completedJobs",
    "Terminated": "terminatedJobs",
}
_UNLISTED: Final = frozenset({"Completing", "Terminating"})
"""Phases on the way to another, kept in no list."""


def flow_status(before: Manifest, jobs: Iterable[Manifest], n_steps: int, now: float) -> Manifest:
    """Sum up the jobs of a flow; lists that are empty are left out."""
    ordered = sorted(jobs, key=lambda job: str(job["metadata"]["name"]))
    lists = _by_phase(ordered)
    status: Manifest = {name: names for name, names in lists.items() if names}
    if entries := _entries(before.get("jobStatusList") or [], ordered, now):
        status["jobStatusList"] = entries
    if conditions := {job["metadata"]["name"]: _condition(job) for job in ordered}:
        status["conditions"] = conditions
    phase = (before.get("state") or {}).get("phase") or "Pending"
    status["state"] = {"phase": _advance(phase, lists, n_steps)}
    return status


def _by_phase(jobs: list[Manifest]) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {name: [] for name in (*_LISTS.values(), "unKnowJobs")}
    for job in jobs:
        phase = phase_of(job)
        if phase not in _UNLISTED:
            lists[_LISTS.get(phase, "unKnowJobs")].append(job["metadata"]["name"])
    return lists


def _advance(phase: str, lists: dict[str, list[str]], n_steps: int) -> str:
    """Move on from a phase as far as the jobs allow."""
    has_failed = lists["failedJobs"] or lists["terminatedJobs"]
    if phase == "Pending":
        has_begun = lists["runningJobs"] or lists["completedJobs"]
        if not has_begun and not has_failed:
            return "Pending"
        phase = "Running"
    if phase == "Running":
        if len(lists["completedJobs"]) == n_steps:
            return "Succeed"
        return "Failed" if has_failed else "Running"
    return phase


def _condition(job: Manifest) -> Manifest:
    status = job.get("status") or {}
    condition = {
        "phase": phase_of(job),
        "createTime": job["metadata"].get("creationTimestamp"),
        "runningDuration": status.get("runningDuration"),
        "taskStatusCount": status.get("taskStatusCount"),
    }
    return {name: value for name, value in condition.items() if value}


def _entries(before: list[Manifest], jobs: list[Manifest], now: float) -> list[Manifest]:
    """Renew the entries of existing jobs, keep those of deleted ones, add new ones."""
    known = {entry["name"]: entry for entry in before}
    for job in jobs:
        name = job["metadata"]["name"]
        known[name] = _entry(job, known.get(name, {}).get("runningHistories") or [], now)
    return list(known.values())


def _entry(job: Manifest, history: list[Manifest], now: float) -> Manifest:
    status = job.get("status") or {}
    made = job["metadata"].get("creationTimestamp")
    ended = None
    if made and status.get("runningDuration"):
        ended = rfc3339(epoch(made) + parse_duration(status["runningDuration"]))
    entry: dict[str, Any] = {
        "name": job["metadata"]["name"],
        "state": phase_of(job),
        "startTimestamp": made,
        "endTimestamp": ended,
        "runningHistories": _history(job, history, now),
    }
    kept = {name: value for name, value in entry.items() if value}
    return kept | {"restartCount": status.get("retryCount") or 0}


def _history(job: Manifest, before: list[Manifest], now: float) -> list[Manifest]:
    """Add the phases a job went through since; its conditions include unseen ones."""
    phase = phase_of(job)
    if not phase:
        return before
    passed = [
        (str(one["status"]), one.get("lastTransitionTime") or rfc3339(now))
        for one in (job["status"].get("conditions") or ())
    ]
    if not passed or passed[-1][0] != phase:
        passed.append((phase, rfc3339(now)))
    history = [dict(entry) for entry in before]
    if history:
        phases = [name for name, _ in passed]
        last = history[-1]["state"]
        passed = passed[phases.index(last) + 1 :] if last in phases else passed[-1:]
    for name, since in passed:
        if history:
            history[-1]["endTimestamp"] = since
        history.append({"state": name, "startTimestamp": since})
    return history


BY_FLOW: Final = "volcano.sh/createdByJobFlow"
"""Label and annotation of a job: ``NAMESPACE.NAME`` of its flow."""


class JobFlowController:
    """Creates the jobs of a flow, one dependency after the other."""

    name = "jobflow"
    watches: tuple[str, ...] = (JOB_FLOW, JOB, JOB_TEMPLATE)

    def concerns(self, kind: str, manifest: Manifest, view: View) -> Iterable[Key]:
        """Look at the flow, at that of a job, at those that wait for a template.

        A deleted job is no reason: its flow creates it again only at the next occasion.
        """
        key = key_of(manifest)
        if kind == JOB_FLOW:
            return (key,)
        if kind == JOB_TEMPLATE:
            flows = view.list(JOB_FLOW, key.namespace)
            return tuple(key_of(flow) for flow in flows if _waits_for(flow, key.name))
        owner = controller_of(manifest)
        if (
            owner is None
            or owner["kind"] != "JobFlow"
            or view.get(JOB, key.namespace, key.name) is None
        ):
            return ()
        return (Key(JOB_FLOW, key.namespace, owner["name"]),)

    def reconcile(self, key: Key, view: View) -> Plan:
        """Create what is due and write the status, or clean up after success."""
        flow = view.get(JOB_FLOW, key.namespace, key.name)
        if flow is None or flow["metadata"].get("deletionTimestamp"):
            return Plan()
        jobs = view.list(JOB, key.namespace, {BY_FLOW: f"{key.namespace}.{key.name}"})
        phase = phase_of(flow)
        if phase in {"Failed", "Terminating"}:
            return Plan()
        if phase == "Succeed":
            return _after_success(flow, jobs, view.now)
        effects, has_all_templates = _deploy(flow, view)
        if not has_all_templates:  # Volcano: without a template the status stays as it is
            return Plan(effects)
        return Plan([*effects, *_write_status(flow, jobs, view.now)])


def _after_success(flow: Manifest, jobs: list[Manifest], now: float) -> Plan:
    """Delete the jobs if the flow says so; else follow them while none is missing."""
    if flow["spec"].get("jobRetainPolicy") == "delete":
        return Plan([Delete(key_of(job), uid=str(job["metadata"]["uid"])) for job in jobs])
    there = {job["metadata"]["name"] for job in jobs}
    if any(_job_name(flow, step["name"]) not in there for step in _steps(flow)):
        return Plan()
    return Plan(_write_status(flow, jobs, now))


def _write_status(flow: Manifest, jobs: list[Manifest], now: float) -> list[Effect]:
    status = flow_status(flow.get("status") or {}, jobs, len(_steps(flow)), now)
    if status == flow.get("status"):
        return []
    return [UpdateStatus({**flow, "status": status})]


def _deploy(flow: Manifest, view: View) -> tuple[list[Effect], bool]:
    """Create the jobs whose targets completed, in order, up to a missing template."""
    namespace = flow["metadata"]["namespace"]
    effects: list[Effect] = []
    for step in _steps(flow):
        name = _job_name(flow, step["name"])
        if view.get(JOB, namespace, name) is not None or not _is_due(flow, step, view):
            continue
        template = view.get(JOB_TEMPLATE, namespace, step["name"])
        if template is None:
            return effects, False
        effects.append(Create(_job(flow, template, name)))
        message = f"create a job named {name}!"
        effects.append(Record(flow, "Normal", "Created", message, SOURCE))
    return effects, True


def _is_due(flow: Manifest, step: dict[str, Any], view: View) -> bool:
    targets = (step.get("dependsOn") or {}).get("targets") or ()
    jobs = (
        view.get(JOB, flow["metadata"]["namespace"], _job_name(flow, target)) for target in targets
    )
    return all(job is not None and phase_of(job) == "Completed" for job in jobs)


def _job(flow: Manifest, template: Manifest, name: str) -> Manifest:
    """Make a job of a template for a flow."""
    namespace = flow["metadata"]["namespace"]
    marks = {
        BY_TEMPLATE: f"{namespace}.{template['metadata']['name']}",
        BY_FLOW: f"{namespace}.{flow['metadata']['name']}",
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": dict(marks),
            "annotations": dict(marks),
            "ownerReferences": [controlled_by(flow)],
        },
        "spec": clone(template["spec"]),
    }


def _waits_for(flow: Manifest, template: str) -> bool:
    """Check whether a flow names a template and has not seen a job of it."""
    seen = {one["name"] for one in (flow.get("status") or {}).get("jobStatusList") or ()}
    return any(
        step["name"] == template and _job_name(flow, template) not in seen for step in _steps(flow)
    )


def _steps(flow: Manifest) -> list[dict[str, Any]]:
    return (flow.get("spec") or {}).get("flows") or []


def _job_name(flow: Manifest, template: str) -> str:
    return f"{flow['metadata']['name']}-{template}"
