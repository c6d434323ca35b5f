"""What the schemas of the custom resources ask beyond the types: bounds, enums, defaults, keys.

Written as JSON schema says it, by struct and field; read by schema.building.
"""

from collections.abc import Mapping
from typing import Any, Final

_SUBDOMAIN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_LABEL: Final = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_EVENTS: Final = [
    "*", "PodPending", "PodRunning", "PodFailed", "PodEvicted", "Unknown", "TaskCompleted",
    "OutOfSync", "CommandIssued", "JobUpdated", "TaskFailed",
]  # fmt: skip
_JOB_PHASES: Final = [
    "Pending", "Aborting", "Aborted", "Running", "Restarting", "Completing", "Completed",
    "Terminating", "Terminated", "Failed",
]  # fmt: skip
_NOT_NEGATIVE: Final[Mapping[str, Any]] = {"minimum": 0}
_LONG_NAME: Final[Mapping[str, Any]] = {"maxLength": 253}
_PORT: Final[Mapping[str, Any]] = {"minimum": 0, "maximum": 65535}
_TOPOLOGY: Final[Mapping[str, Mapping[str, Any]]] = {
    "highestTierAllowed": _NOT_NEGATIVE,
    "highestTierName": _LONG_NAME,
    "mode": {"default": "hard", "enum": ["hard", "soft"]},
}
_QUEUE_NAME: Final[Mapping[str, Any]] = {
    "default": "default",
    "maxLength": 253,
    "pattern": _SUBDOMAIN,
}


def _counts(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, _NOT_NEGATIVE)


def _keyed(*names: str) -> dict[str, Any]:
    return {"keys": list(names)}


RULES: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "batch.JobSpec": {
        "maxRetry": {"default": 3, "minimum": 0},
        "minAvailable": _NOT_NEGATIVE,
        "minSuccess": {"minimum": 1},
        "priorityClassName": {"maxLength": 253, "pattern": _SUBDOMAIN},
        "queue": _QUEUE_NAME,
        "schedulerName": {"maxLength": 63},
        "tasks": {"minItems": 1},
        "ttlSecondsAfterFinished": _NOT_NEGATIVE,
    },
    "batch.TaskSpec": {
        "maxRetry": _NOT_NEGATIVE,
        "minAvailable": _NOT_NEGATIVE,
        "name": {"maxLength": 63, "pattern": _LABEL},
        "replicas": _NOT_NEGATIVE,
        "topologyPolicy": {"enum": ["none", "best-effort", "restricted", "single-numa-node"]},
    },
    "batch.LifecyclePolicy": {
        "event": {"enum": _EVENTS},
        "events": {"items": {"enum": _EVENTS}},
    },
    "batch.VolumeSpec": {
        "mountPath": {"minLength": 1, "pattern": "^[^:]+$"},
        "volumeClaimName": _LONG_NAME,
    },
    "batch.PartitionPolicySpec": {
        "minPartitions": {"default": 0, "minimum": 0},
        "partitionSize": {"minimum": 1},
        "totalPartitions": {"minimum": 1},
    },
    "batch.NetworkTopologySpec": _TOPOLOGY,
    "batch.JobState": {"phase": {"enum": _JOB_PHASES}},
    "batch.JobStatus": _counts(
        "failed", "minAvailable", "pending", "retryCount", "running", "succeeded", "terminating",
        "unknown", "version",
    ),
    "batch.CronJobSpec": {
        "concurrencyPolicy": {"default": "Allow", "enum": ["Allow", "Forbid", "Replace"]},
        "failedJobsHistoryLimit": {"default": 1, "minimum": 0},
        "startingDeadlineSeconds": _NOT_NEGATIVE,
        "successfulJobsHistoryLimit": {"default": 3, "minimum": 0},
        "suspend": {"default": False},
    },
    "flow.HttpGet": {"port": _PORT, "taskName": _LONG_NAME},
    "flow.TcpSocket": {"port": _PORT, "taskName": _LONG_NAME},
    "flow.TaskStatus": {"phase": {"maxLength": 63}, "taskName": _LONG_NAME},
    "flow.Flow": {"name": {"minLength": 1}},
    "flow.JobFlowSpec": {"jobRetainPolicy": {"enum": ["retain", "delete"]}},
    "flow.JobStatus": _counts("restartCount"),
    "flow.State": {
        "phase": {"enum": ["Succeed", "Terminating", "Failed", "Running", "Pending"]},
    },
    "scheduling.QueueSpec": {
        "dequeueStrategy": {"default": "traverse", "enum": ["fifo", "traverse"]},
        "parent": {"maxLength": 253, "pattern": _SUBDOMAIN},
        "priority": _NOT_NEGATIVE,
        "type": _LONG_NAME,
        "weight": {"default": 1, "minimum": 1, "maximum": 65535},
    },
    "scheduling.QueueStatus": {
        **_counts("completed", "inqueue", "pending", "running", "unknown"),
        "state": {"enum": ["Open", "Closed", "Closing", "Unknown"]},
    },
    "scheduling.PodGroupSpec": {
        "minMember": _NOT_NEGATIVE,
        "priorityClassName": _LONG_NAME,
        "queue": _QUEUE_NAME,
    },
    "scheduling.SubGroupPolicySpec": {
        "minSubGroups": {"default": 0, "minimum": 0},
        "name": _LONG_NAME,
        "subGroupSize": {"default": 1, "minimum": 1},
    },
    "scheduling.NetworkTopologySpec": _TOPOLOGY,
    "scheduling.PodGroupStatus": {
        **_counts("failed", "running", "succeeded"),
        "phase": {"enum": ["Pending", "Running", "Unknown", "Inqueue", "Completed"]},
    },
    "topology.HyperNodeSpec": {
        "members": {"minItems": 1},
        "tier": _NOT_NEGATIVE,
        "tierName": _LONG_NAME,
    },
    "topology.MemberSpec": {"type": {"enum": ["Node", "HyperNode"]}},
    "topology.ExactMatch": {"name": {"maxLength": 253, "minLength": 1, "pattern": _SUBDOMAIN}},
    "topology.RegexMatch": {"pattern": {"minLength": 1}},
    "topology.HyperNodeStatus": _counts("nodeCount"),
    "meta.Condition": {
        "message": {"maxLength": 32768},
        "observedGeneration": _NOT_NEGATIVE,
        "reason": {
            "maxLength": 1024,
            "minLength": 1,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "status": {"enum": ["True", "False", "Unknown"]},
        "type": {
            "maxLength": 316,
            "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        },
    },
    "v1.Container": {
        "env": _keyed("name"),
        "ports": _keyed("containerPort", "protocol"),
        "volumeDevices": _keyed("devicePath"),
        "volumeMounts": _keyed("mountPath"),
    },
    "v1.ContainerRestartRuleOnExitCodes": {"values": {"unique": True}},
    "v1.ContainerPort": {"protocol": {"default": "TCP"}},
    "v1.ResourceRequirements": {"claims": _keyed("name")},
    "v1.ConfigMapKeySelector": {"name": {"default": ""}},
    "v1.SecretKeySelector": {"name": {"default": ""}},
    "v1.ConfigMapEnvSource": {"name": {"default": ""}},
    "v1.SecretEnvSource": {"name": {"default": ""}},
    "v1.LocalObjectReference": {"name": {"default": ""}},
    "v1.ConfigMapVolumeSource": {"name": {"default": ""}},
    "v1.ConfigMapProjection": {"name": {"default": ""}},
    "v1.SecretProjection": {"name": {"default": ""}},
    "v1.FileKeySelector": {"optional": {"default": False}},
    "v1.GRPCAction": {"service": {"default": ""}},
    "v1.AzureDiskVolumeSource": {"fsType": {"default": "ext4"}, "readOnly": {"default": False}},
    "v1.ISCSIVolumeSource": {"iscsiInterface": {"default": "default"}},
    "v1.RBDVolumeSource": {
        "keyring": {"default": "/etc/ceph/keyring"},
        "pool": {"default": "rbd"},
        "user": {"default": "admin"},
    },
    "v1.ScaleIOVolumeSource": {
        "fsType": {"default": "xfs"},
        "storageMode": {"default": "ThinProvisioned"},
    },
    "v1.PodSpec": {
        "containers": _keyed("name"),
        "ephemeralContainers": _keyed("name"),
        "hostAliases": _keyed("ip"),
        "imagePullSecrets": _keyed("name"),
        "initContainers": _keyed("name"),
        "resourceClaims": _keyed("name"),
        "schedulingGates": _keyed("name"),
        "topologySpreadConstraints": _keyed("topologyKey", "whenUnsatisfiable"),
        "volumes": _keyed("name"),
    },
}  # fmt: skip
"""``items``: rules for items of a list; ``keys``: what tells them apart; ``unique``: all of it."""

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "topology.HyperNodeSpec": ("tier",),
    "topology.MemberSpec": ("type",),
    "v1.ContainerRestartRule": ("action",),
    "v1.ContainerRestartRuleOnExitCodes": ("operator",),
    "v1.PodCertificateProjection": ("keyType", "signerName"),
    "v1.ProjectedVolumeSource": (),
}
"""Where what must be given is not what Go always writes."""
SELECTOR_RULES: Final = (
    "Either ExactMatch or RegexMatch or LabelMatch must be specified",
    "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified",
)
"""The messages of the rules on a HyperNode member's selector."""
