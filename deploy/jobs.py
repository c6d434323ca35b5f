"""Schemas of what runs: the specification of a Volcano job and the kinds that carry one.

Pod templates are held loosely: what is named here is checked, everything else passes through to
the pod, whatever the version of Kubernetes knows.
"""

from typing import Final

from deploy.schema import (
    DNS_LABEL,
    Schema,
    by_name,
    count,
    fields,
    flag,
    index,
    label_selector,
    loose,
    moment,
    name,
    number,
    one_of,
    quantity,
    several,
    text,
    texts,
)

EVENTS: Final = (
    "*",
    "PodPending",
    "PodRunning",
    "PodFailed",
    "PodEvicted",
    "Unknown",
    "TaskCompleted",
    "OutOfSync",
    "CommandIssued",
    "JobUpdated",
    "TaskFailed",
)
PHASES: Final = (
    "Pending",
    "Aborting",
    "Aborted",
    "Running",
    "Restarting",
    "Completing",
    "Completed",
    "Terminating",
    "Terminated",
    "Failed",
)


def network_topology(says: str = "How close the pods must or should lie.") -> Schema:
    """Give the wish for nearness on the network."""
    parts = {
        "highestTierAllowed": index("The highest tier the pods may span.", minimum=0),
        "highestTierName": text("The same by the name of the tier.", maxLength=253),
        "mode": one_of("hard: must; soft: should.", "hard", "soft", default="hard"),
    }
    return fields(says, parts)


def _metadata(says: str) -> Schema:
    parts = {
        "annotations": by_name("", text()),
        "finalizers": texts(),
        "labels": by_name("", text()),
        "name": text(),
        "namespace": text(),
    }
    return loose(says, parts)


def _resources() -> Schema:
    quantities = by_name("", quantity())
    return loose("", {"limits": quantities, "requests": quantities})


def _container() -> Schema:
    variable = loose("", {"name": text(), "value": text()}, "name")
    parts = {
        "args": texts(),
        "command": texts(),
        "env": several("", variable),
        "image": text(),
        "name": text(),
        "resources": _resources(),
    }
    return loose("", parts, "name")


def pod_template() -> Schema:
    """Give a pod template."""
    spec = {
        "containers": several("", _container()),
        "initContainers": several("", _container()),
        "nodeSelector": by_name("", text()),
        "priorityClassName": text(),
        "restartPolicy": text(),
        "schedulerName": text(),
    }
    parts = {
        "metadata": _metadata("Labels and annotations of the pods."),
        "spec": loose("The pods' specification; all fields of Kubernetes' PodSpec.", spec),
    }
    return loose("What each pod is made from.", parts)


def _policy() -> Schema:
    parts = {
        "action": text("What to do: RestartJob, AbortJob, CompleteJob and others."),
        "event": one_of("What happened.", *EVENTS),
        "events": several("Any of these happened.", one_of("", *EVENTS)),
        "exitCode": number("A container ended with this code."),
        "timeout": text("How long to wait before acting, such as 10m."),
    }
    return fields("", parts)


def _task() -> Schema:
    depends_on = {
        "iteration": text("any or all of the tasks named."),
        "name": texts("Tasks that must be ready first."),
    }
    partition = {
        "minPartitions": count("Partitions that must be placed.", default=0),
        "networkTopology": network_topology("How close the pods of one partition lie."),
        "partitionSize": number("Pods of one partition.", minimum=1),
        "totalPartitions": number("How many partitions there are.", minimum=1),
    }
    parts = {
        "dependsOn": fields("Which tasks this one waits for.", depends_on),
        "maxRetry": count("How often to try again."),
        "minAvailable": count("Pods of this task that must be able to start."),
        "name": text("The task's name.", maxLength=63, pattern=DNS_LABEL),
        "partitionPolicy": fields(
            "How the task's pods are divided.", partition, "partitionSize", "totalPartitions"
        ),
        "policies": several("What to do when something happens to the task.", _policy()),
        "replicas": count("How many pods."),
        "template": pod_template(),
        "topologyPolicy": one_of(
            "How CPUs lie on NUMA nodes.", "none", "best-effort", "restricted", "single-numa-node"
        ),
    }
    return fields("", parts)


def _claim() -> Schema:
    parts = {
        "accessModes": texts(),
        "resources": _resources(),
        "selector": label_selector(""),
        "storageClassName": text(),
        "volumeMode": text(),
        "volumeName": text(),
    }
    return loose("The claim to make.", parts)


def _volume() -> Schema:
    parts = {
        "mountPath": text("Where containers see it.", minLength=1, pattern="^[^:]+$"),
        "volumeClaim": _claim(),
        "volumeClaimName": text("A claim that is there already.", maxLength=253),
    }
    return fields("", parts, "mountPath")


def job_spec(says: str, *, defaults: bool = True) -> Schema:
    """Give the specification of a job; a patch has no defaults, it says only what it changes."""
    retries: Schema = {"default": 3} if defaults else {}
    queue: Schema = {"default": "default"} if defaults else {}
    parts = {
        "maxRetry": count("How often to restart.", **retries),
        "minAvailable": count("Pods that must be able to start together."),
        "minSuccess": number("Pods whose success makes the job complete.", minimum=1),
        "networkTopology": network_topology(),
        "plugins": by_name("Job plugins and their arguments.", texts()),
        "policies": several("What to do when something happens.", _policy()),
        "priorityClassName": name("The job's PriorityClass."),
        "queue": name("The queue it waits in.", **queue),
        "runningEstimate": text("How long the user thinks it runs, such as 1h."),
        "schedulerName": text("Which scheduler places its pods.", maxLength=63),
        "tasks": several("The pods, by their part in the job.", _task(), minItems=1),
        "ttlSecondsAfterFinished": count("Seconds to keep the job after its end."),
        "volumes": several("Volumes for all pods.", _volume()),
    }
    return fields(says, parts)


def task_counts(says: str) -> Schema:
    """Give numbers of pods by task and phase."""
    return by_name(says, fields("", {"phase": by_name("", number())}))


def job_status() -> Schema:
    """Give the status of a job."""
    state = {
        "lastTransitionTime": moment(),
        "message": text(),
        "phase": one_of("", *PHASES),
        "reason": text(),
    }
    condition = {"lastTransitionTime": moment(), "status": text()}
    parts = {
        "conditions": several("Phases and when they began.", fields("", condition, "status")),
        "controlledResources": by_name("What was made for the job.", text()),
        "minAvailable": count("The job's minAvailable."),
        "retryCount": count("How often it was restarted."),
        "runningDuration": text("How long it ran."),
        "state": fields("Where the job stands.", state),
        "taskStatusCount": task_counts("Numbers of pods by task and phase."),
        "version": count("Rises with each restart."),
    }
    phases = ("failed", "pending", "running", "succeeded", "terminating", "unknown")
    parts |= {phase: count(f"How many pods: {phase}.") for phase in phases}
    return fields("What became of the job.", parts)


def cron_spec() -> Schema:
    """Give the specification of a job that is started by the clock."""
    template = {
        "metadata": _metadata("Labels and annotations of the jobs."),
        "spec": job_spec("The jobs' specification."),
    }
    parts = {
        "concurrencyPolicy": one_of(
            "What to do if the one before still runs.",
            "Allow",
            "Forbid",
            "Replace",
            default="Allow",
        ),
        "failedJobsHistoryLimit": count("How many failed jobs to keep.", default=1),
        "jobTemplate": fields("What each job is made from.", template),
        "schedule": text("When, in the format of cron."),
        "startingDeadlineSeconds": number(
            "Seconds after which a missed start is given up.", wide=True, minimum=0
        ),
        "successfulJobsHistoryLimit": count("How many completed jobs to keep.", default=3),
        "suspend": flag("Start no more jobs.", default=False),
        "timeZone": text("The time zone of the schedule, such as Europe/Paris."),
    }
    return fields("What to start and when.", parts, "jobTemplate", "schedule")


def cron_status() -> Schema:
    """Give the status of a job that is started by the clock."""
    keys = ("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid")
    reference = fields("", {key: text() for key in keys}, **{"x-kubernetes-map-type": "atomic"})
    parts = {
        "active": several("Jobs that run.", reference, **{"x-kubernetes-list-type": "atomic"}),
        "lastScheduleTime": moment("When a job was last started."),
        "lastSuccessfulTime": moment("When a job last completed."),
    }
    return fields("What was started.", parts)


def flow_spec() -> Schema:
    """Give the specification of a flow of jobs."""
    port = index("", minimum=0, maximum=65535)
    task = text(maxLength=253)
    header = fields("", {"name": text(), "value": text()}, "name", "value")
    probes = {
        "httpGetList": several(
            "Addresses that must answer.",
            fields("", {"httpHeader": header, "path": text(), "port": port, "taskName": task}),
        ),
        "taskStatusList": several(
            "Phases tasks must have reached.",
            fields("", {"phase": text(maxLength=63), "taskName": task}),
        ),
        "tcpSocketList": several(
            "Ports that must be open.", fields("", {"port": port, "taskName": task}, "port")
        ),
    }
    depends_on = {
        "probe": fields("What must hold besides.", probes),
        "targets": texts("Steps that must be done first."),
    }
    patch = {"jobSpec": job_spec("What differs from the template.", defaults=False)}
    flow = {
        "dependsOn": fields("What a step waits for.", depends_on),
        "name": text("The JobTemplate to run.", minLength=1),
        "patch": fields("Changes to the template.", patch),
    }
    parts = {
        "flows": several("The steps.", fields("", flow, "name")),
        "jobRetainPolicy": one_of("Whether jobs outlive the flow.", "retain", "delete"),
    }
    return fields("Jobs and their order.", parts)


def flow_status() -> Schema:
    """Give the status of a flow of jobs."""
    lists = (
        "pendingJobs",
        "runningJobs",
        "failedJobs",
        "completedJobs",
        "terminatedJobs",
        "unKnowJobs",
    )
    times = {"endTimestamp": moment(), "startTimestamp": moment(), "state": text()}
    job = {
        **times,
        "name": text(),
        "restartCount": count(),
        "runningHistories": several("", fields("", times)),
    }
    condition = {
        "createTime": moment(),
        "phase": text(),
        "runningDuration": text(),
        "taskStatusCount": task_counts(""),
    }
    phase = one_of("", "Succeed", "Terminating", "Failed", "Running", "Pending")
    parts = {
        "conditions": by_name("What became of each job.", fields("", condition)),
        "jobStatusList": several("The jobs so far.", fields("", job)),
        "state": fields("Where the flow stands.", {"phase": phase}),
    }
    parts |= {one: texts() for one in lists}
    return fields("How far the flow is.", parts)


__all__ = [
    "cron_spec",
    "cron_status",
    "flow_spec",
    "flow_status",
    "job_spec",
    "job_status",
    "network_topology",
]
