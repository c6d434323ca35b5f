"""The JobFlow controller: creates each job once its targets completed, and keeps the status."""

from collections.abc import Iterable
from typing import Any, Final

from pumice.api.kinds import JOB, JOB_FLOW, JOB_TEMPLATE, Manifest
from pumice.cluster.base import clone
from pumice.controllers.base import Create, Delete, Effect, Key, Plan, Record, UpdateStatus, View
from pumice.controllers.jobflow.status import flow_status
from pumice.controllers.jobtemplate import BY_TEMPLATE
from pumice.controllers.ownership import SOURCE, controlled_by, controller_of, key_of, phase_of

BY_FLOW: Final = "volcano.sh/createdByJobFlow"
"""Label and annotation of a job: ``NAMESPACE.NAME`` of its flow."""


class JobFlowController:
    """Brings the jobs of a flow into being, one dependency after the other."""

    name = "jobflow"
    watches: tuple[str, ...] = (JOB_FLOW, JOB, JOB_TEMPLATE)

    def concerns(self, kind: str, manifest: Manifest, view: View) -> Iterable[Key]:
        """Look at the flow, at that of a job, at those that wait for a template.

        A job that went is no reason: its flow makes it anew at the next occasion only.
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
        phase = _phase(flow)
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
        said = f"create a job named {name}!"
        effects.append(Record(flow, "Normal", "Created", said, SOURCE))
    return effects, True


def _is_due(flow: Manifest, step: dict[str, Any], view: View) -> bool:
    """Check that every target of a step completed."""
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


def _phase(flow: Manifest) -> str:
    return str(((flow.get("status") or {}).get("state") or {}).get("phase") or "")
