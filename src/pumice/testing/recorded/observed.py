"""The content of a recorded controller case: objects reduced to the fields that matter."""

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

from pumice.api.kinds import (
    COMMAND,
    CRON_JOB,
    JOB,
    JOB_FLOW,
    JOB_TEMPLATE,
    NETWORK_POLICY,
    POD_GROUP,
    QUEUE,
    Manifest,
)

_COUNTS: Final = (
    "minAvailable", "pending", "running", "succeeded", "failed", "terminating", "unknown",
    "version", "retryCount",
)  # fmt: skip
_JOB_SPEC: Final = ("minAvailable", "queue", "schedulerName", "maxRetry", "priorityClassName")
_TASK: Final = ("name", "replicas", "minAvailable", "maxRetry")
_POD_SPEC: Final = (
    "schedulerName", "restartPolicy", "nodeName", "priorityClassName", "hostname", "subdomain",
)  # fmt: skip
_CONTAINER: Final = ("name", "image", "command")
_SORTED: Final = ("env", "ports", "volumeMounts")
_CRON_SPEC: Final = (
    "schedule", "timeZone", "concurrencyPolicy", "suspend", "successfulJobsHistoryLimit",
    "failedJobsHistoryLimit",
)  # fmt: skip
_PROTECTION: Final = "kubernetes.io/pvc-protection"


def picked(source: Mapping[str, Any], names: tuple[str, ...]) -> Manifest:
    """Pick fields that are not empty."""
    return {name: source[name] for name in names if source.get(name) not in (None, "", [], {})}


def full(source: Mapping[str, Any]) -> Manifest:
    """Leave out empty fields."""
    return {name: one for name, one in source.items() if one not in (None, "", [], {})}


def by_name(items: list[Manifest]) -> list[Manifest]:
    """Sort by name; several plugins append in no particular order."""
    return sorted(items, key=lambda one: str(one.get("name")))


def _metadata(manifest: Manifest) -> Manifest:
    """Reduce the metadata that all kinds share."""
    metadata = manifest["metadata"]
    seen = picked(metadata, ("labels", "annotations"))
    owners = [
        {name: one for name, one in owner.items() if name != "uid"}
        for owner in metadata.get("ownerReferences") or []
    ]
    finalizers = [one for one in metadata.get("finalizers") or [] if one != _PROTECTION]
    if owners:
        seen["ownerReferences"] = owners
    if finalizers:
        seen["finalizers"] = finalizers
    if metadata.get("deletionTimestamp"):
        seen["deleting"] = True
    return seen


def _job(job: Manifest) -> Manifest:
    spec = picked(job["spec"], _JOB_SPEC)
    spec["tasks"] = [picked(task, _TASK) for task in job["spec"].get("tasks") or []]
    if job["spec"].get("volumes"):
        spec["volumes"] = job["spec"]["volumes"]
    given = job.get("status") or {}
    status: Manifest = {name: given.get(name, 0) for name in _COUNTS}
    status["phase"] = (given.get("state") or {}).get("phase", "")
    status["conditions"] = [one["status"] for one in given.get("conditions") or []]
    status["taskStatusCount"] = flat_counts(given.get("taskStatusCount") or {})
    status["controlledResources"] = given.get("controlledResources") or {}
    return {**_metadata(job), "spec": spec, "status": status}


def flat_counts(tasks: Mapping[str, Any]) -> Manifest:
    """Write the counts of tasks without the level in between."""
    return {task: dict(counts.get("phase") or {}) for task, counts in tasks.items()}


def _container(container: Manifest) -> Manifest:
    seen = picked(container, _CONTAINER)
    for name in _SORTED:
        if container.get(name):
            seen[name] = by_name(container[name])
    if "ports" in seen:  # as an API server fills it in
        seen["ports"] = [{"protocol": "TCP", **port} for port in seen["ports"]]
    return seen


def _pod(pod: Manifest) -> Manifest:
    spec = picked(pod["spec"], _POD_SPEC)
    for name in ("containers", "initContainers"):
        if pod["spec"].get(name):
            spec[name] = [_container(one) for one in pod["spec"][name]]
    volumes = [one for one in pod["spec"].get("volumes") or [] if "projected" not in one]
    if volumes:
        spec["volumes"] = by_name(volumes)
    phase = (pod.get("status") or {}).get("phase")
    return {**_metadata(pod), "spec": spec, "phase": phase}


def _podgroup(group: Manifest) -> Manifest:
    status = picked(group.get("status") or {}, ("phase",))
    return {**_metadata(group), "spec": full(group.get("spec") or {}), "status": status}


def _queue(queue: Manifest) -> Manifest:
    status = picked(queue.get("status") or {}, ("state",))
    return {**_metadata(queue), "spec": full(queue.get("spec") or {}), "status": status}


def _service(service: Manifest) -> Manifest:
    names = ("ports", "selector", "clusterIP", "type", "publishNotReadyAddresses")
    # No addresses are given out in memory; the recording hides those of the real server.
    return {**_metadata(service), "spec": {"clusterIP": "<ip>", **picked(service["spec"], names)}}


def _config_map(config: Manifest) -> Manifest:
    return {**_metadata(config), "data": config.get("data") or {}}


def _secret(secret: Manifest) -> Manifest:
    """Hide the values of a secret, except the ssh client's configuration."""
    data = {
        name: base64.b64decode(text).decode() if name == "config" else "<opaque>"
        for name, text in (secret.get("data") or {}).items()
    }
    return {**_metadata(secret), "type": secret.get("type"), "data": data}


def _network_policy(policy: Manifest) -> Manifest:
    return {**_metadata(policy), "spec": full(policy["spec"])}


def _claim(claim: Manifest) -> Manifest:
    spec = picked(claim["spec"], ("accessModes", "resources", "storageClassName"))
    return {**_metadata(claim), "spec": spec}


def _command(command: Manifest) -> Manifest:
    target = picked(command.get("target") or {}, ("kind", "name"))
    return {**_metadata(command), "action": command.get("action"), "target": target}


def _jobflow(flow: Manifest) -> Manifest:
    given = flow.get("status") or {}
    lists = ("pendingJobs", "runningJobs", "failedJobs", "completedJobs", "terminatedJobs",
             "unKnowJobs")  # fmt: skip
    status: Manifest = {name: sorted(given[name]) for name in lists if given.get(name)}
    phase = (given.get("state") or {}).get("phase")
    if phase:
        status["phase"] = phase
    if given.get("jobStatusList"):
        status["jobs"] = {one["name"]: _flow_job(one) for one in given["jobStatusList"]}
    if given.get("conditions"):
        status["conditions"] = {
            name: {
                "phase": one.get("phase"),
                "taskStatusCount": flat_counts(one.get("taskStatusCount") or {}),
            }
            for name, one in given["conditions"].items()
        }
    return {**_metadata(flow), "status": status}


def _flow_job(job: Manifest) -> Manifest:
    history = [one.get("state") for one in job.get("runningHistories") or []]
    seen = {"state": job.get("state"), "restartCount": job.get("restartCount", 0)}
    return {**seen, "history": history}


def _jobtemplate(template: Manifest) -> Manifest:
    jobs = (template.get("status") or {}).get("jobDependsOnList") or []
    return {**_metadata(template), "status": {"jobDependsOnList": sorted(jobs)}}


def _cronjob(cron: Manifest) -> Manifest:
    given = cron.get("status") or {}
    spec = {name: cron["spec"][name] for name in _CRON_SPEC if cron["spec"].get(name) is not None}
    status = {
        "active": sorted(one["name"] for one in given.get("active") or []),
        "hasLastScheduleTime": bool(given.get("lastScheduleTime")),
        "hasLastSuccessfulTime": bool(given.get("lastSuccessfulTime")),
    }
    return {**_metadata(cron), "spec": spec, "status": status}


KINDS: Final[dict[str, tuple[str, Callable[[Manifest], Manifest]]]] = {
    "jobs": (JOB, _job),
    "podgroups": (POD_GROUP, _podgroup),
    "pods": ("Pod", _pod),
    "services": ("Service", _service),
    "configmaps": ("ConfigMap", _config_map),
    "secrets": ("Secret", _secret),
    "networkpolicies": (NETWORK_POLICY, _network_policy),
    "persistentvolumeclaims": ("PersistentVolumeClaim", _claim),
    "commands": (COMMAND, _command),
    "jobflows": (JOB_FLOW, _jobflow),
    "jobtemplates": (JOB_TEMPLATE, _jobtemplate),
    "cronjobs": (CRON_JOB, _cronjob),
    "queues": (QUEUE, _queue),
}
"""The kinds of a case, the kind of the cluster, and what is compared."""
