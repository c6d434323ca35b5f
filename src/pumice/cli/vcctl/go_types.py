"""Manifests as the original's Go types see them.

The types say which key stands where in JSON, what is written although it is empty, and how a
value of the wrong type is refused.  Keys that are not listed here are kept at the end.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from pumice.cli.vcctl.quantities import canonical
from pumice.cli.vcctl.verbs import VerbError

# One line for each struct: fields in order.  A struct is written even if empty, a `*` only when
# there is something; `!` marks fields that are written in any case, times are null when unset.
_STRUCTS: Final = {
    "v1alpha1.Job": "kind string, apiVersion string, metadata v1.ObjectMeta, "
    "spec v1alpha1.JobSpec, status v1alpha1.JobStatus",
    "v1alpha1.JobFlow": "kind string, apiVersion string, metadata v1.ObjectMeta, "
    "spec v1alpha1.JobFlowSpec, status v1alpha1.JobFlowStatus",
    "v1alpha1.JobTemplate": "kind string, apiVersion string, metadata v1.ObjectMeta, "
    "spec v1alpha1.JobSpec, status v1alpha1.JobTemplateStatus",
    "v1.ObjectMeta": "name string, generateName string, namespace string, selfLink string, "
    "uid string, resourceVersion string, generation int64, creationTimestamp any, "
    "deletionTimestamp any, deletionGracePeriodSeconds *int64, labels map[string]string, "
    "annotations map[string]string, ownerReferences any, finalizers []string, managedFields any",
    "v1alpha1.JobSpec": "schedulerName string, minAvailable int32, volumes []v1alpha1.VolumeSpec, "
    "tasks []v1alpha1.TaskSpec, policies []v1alpha1.LifecyclePolicy, "
    "plugins map[string][]string, runningEstimate any, queue string, maxRetry int32, "
    "ttlSecondsAfterFinished *int32, priorityClassName string, minSuccess *int32, "
    "networkTopology any",
    "v1alpha1.VolumeSpec": "mountPath! string, volumeClaimName string, volumeClaim any",
    "v1alpha1.LifecyclePolicy": "action string, event string, events []string, exitCode *int32, "
    "timeout any",
    "v1alpha1.TaskSpec": "name string, replicas int32, minAvailable *int32, "
    "template v1.PodTemplateSpec, policies []v1alpha1.LifecyclePolicy, topologyPolicy string, "
    "maxRetry int32, dependsOn *v1alpha1.DependsOn, partitionPolicy any",
    "v1alpha1.DependsOn": "name []string, iteration string",
    "v1.PodTemplateSpec": "metadata v1.ObjectMeta, spec v1.PodSpec",
    "v1.PodSpec": "volumes any, initContainers []v1.Container, containers! []v1.Container, "
    "ephemeralContainers any, restartPolicy string, terminationGracePeriodSeconds *int64, "
    "activeDeadlineSeconds *int64, dnsPolicy string, nodeSelector map[string]string, "
    "serviceAccountName string, serviceAccount string, automountServiceAccountToken *bool, "
    "nodeName string, hostNetwork bool, hostPID bool, hostIPC bool, shareProcessNamespace *bool, "
    "securityContext any, imagePullSecrets any, hostname string, subdomain string, affinity any, "
    "schedulerName string, tolerations any, hostAliases any, priorityClassName string, "
    "priority *int32, dnsConfig any, readinessGates any, runtimeClassName *string, "
    "enableServiceLinks *bool, preemptionPolicy *string, overhead any, "
    "topologySpreadConstraints any, setHostnameAsFQDN *bool, os any, hostUsers *bool, "
    "schedulingGates any, resourceClaims any, resources any",
    "v1.Container": "name! string, image string, command []string, args []string, "
    "workingDir string, ports []v1.ContainerPort, envFrom any, env []v1.EnvVar, "
    "resources v1.ResourceRequirements, resizePolicy any, restartPolicy *string, "
    "volumeMounts any, volumeDevices any, livenessProbe any, readinessProbe any, "
    "startupProbe any, lifecycle any, terminationMessagePath string, "
    "terminationMessagePolicy string, imagePullPolicy string, securityContext any, stdin bool, "
    "stdinOnce bool, tty bool",
    "v1.ContainerPort": "name string, hostPort int32, containerPort! int32, protocol string, "
    "hostIP string",
    "v1.EnvVar": "name! string, value string, valueFrom any",
    "v1.ResourceRequirements": "limits map[string]quantity, requests map[string]quantity, "
    "claims any",
    "v1alpha1.JobStatus": "state v1alpha1.JobState",
    "v1alpha1.JobState": "phase string, reason string, message string, lastTransitionTime time",
    "v1alpha1.JobTemplateStatus": "jobDependsOnList []string",
    "v1alpha1.JobFlowSpec": "flows []v1alpha1.Flow, jobRetainPolicy string",
    "v1alpha1.Flow": "name! string, dependsOn *v1alpha1.FlowDependsOn, patch *v1alpha1.Patch",
    "v1alpha1.FlowDependsOn": "targets []string, probe any",
    "v1alpha1.Patch": "jobSpec v1alpha1.JobSpec",
    "v1alpha1.JobFlowStatus": "pendingJobs []string, runningJobs []string, failedJobs []string, "
    "completedJobs []string, terminatedJobs []string, unKnowJobs []string, "
    "jobStatusList []v1alpha1.FlowJobStatus, conditions map[string]v1alpha1.Condition, "
    "state v1alpha1.State",
    "v1alpha1.FlowJobStatus": "name string, state string, startTimestamp time, endTimestamp time, "
    "restartCount int32, runningHistories []v1alpha1.JobRunningHistory",
    "v1alpha1.JobRunningHistory": "startTimestamp time, endTimestamp time, state string",
    "v1alpha1.Condition": "phase string, createTime time, runningDuration any, "
    "taskStatusCount any",
    "v1alpha1.State": "phase string",
}  # fmt: skip
_GO_NAMES: Final = {"FlowDependsOn": "DependsOn", "FlowJobStatus": "JobStatus"}
_EMPTY: Final[Mapping[str, Any]] = {"string": "", "int32": 0, "int64": 0, "bool": False}


@dataclass(frozen=True)
class _Field:
    type: str
    always: bool


@dataclass(frozen=True)
class _Place:
    """Where a value stands: the struct around it, and the keys that lead to it."""

    struct: str = ""
    path: tuple[str, ...] = ()

    def refuse(self, found: str, go_type: str) -> VerbError:
        """Make the error for a value of the wrong type."""
        inside = f"Go struct field {self.struct}.{'.'.join(self.path)}" if self.path else "Go value"
        for ours, name in _GO_NAMES.items():
            go_type = go_type.replace(ours, name)
        return VerbError(f"json: cannot unmarshal {found} into {inside} of type {go_type}")


def shape(manifest: Any, go_type: str) -> dict[str, Any]:
    """Give a manifest the shape in which the original holds and writes it.

    Raises:
        VerbError: a value of the wrong type.
    """
    return dict(_shape({} if manifest is None else manifest, go_type, _Place()))


def _shape(value: Any, go_type: str, place: _Place) -> Any:
    if go_type.startswith("*"):
        return None if value is None else _shape(value, go_type[1:], place)
    if go_type in _READERS:
        return _READERS[go_type](value, place)
    if value is None:
        return {} if go_type not in _STRUCTS else _struct({}, go_type, place)
    if go_type.startswith("[]"):
        if not isinstance(value, list):
            raise place.refuse(_json_name(value), go_type)
        return [_shape(item, go_type[2:], place) for item in value]
    if not isinstance(value, dict):
        raise place.refuse(_json_name(value), go_type)
    if go_type.startswith("map[string]"):
        inner = go_type.removeprefix("map[string]")
        return {str(key): _shape(item, inner, place) for key, item in sorted(value.items())}
    return _struct(value, go_type, place)


def _struct(value: Mapping[str, Any], go_type: str, place: _Place) -> dict[str, Any]:
    fields = _fields(go_type)
    name = go_type.partition(".")[2]
    below = _GO_NAMES.get(name, name)
    read = {
        key: _shape(value[key], fields[key].type, _Place(below, (*place.path, key)))
        for key in sorted(value)  # the order in which faults are found
        if key in fields and value[key] is not None
    }
    shaped = {}
    for key, field in fields.items():
        content = read.get(key)
        if content is None and field.type in (*_STRUCTS, "time"):
            content = None if field.type == "time" else _struct({}, field.type, place)
            shaped[key] = content
        elif field.always or not _is_empty(content, field.type):
            shaped[key] = content if content is not None else _EMPTY.get(field.type)
    return shaped | {key: value[key] for key in value if key not in fields}


def _is_empty(content: Any, go_type: str) -> bool:
    if go_type.startswith("*") or go_type in _STRUCTS:
        return content is None
    return content in (None, "", 0, False) or content in ([], {})


@cache
def _fields(go_type: str) -> dict[str, _Field]:
    fields = {}
    for declared in _STRUCTS[go_type].split(", "):
        name, _, kind = declared.partition(" ")
        fields[name.removesuffix("!")] = _Field(kind, name.endswith("!"))
    return fields


def _text(value: Any, place: _Place) -> str:
    if isinstance(value, dict | list):
        raise place.refuse(_json_name(value), "string")
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _flag(value: Any, place: _Place) -> bool:
    if value is not None and not isinstance(value, bool):
        raise place.refuse(_json_name(value), "bool")
    return bool(value)


def _whole(bits: int) -> Callable[[Any, _Place], int]:
    def read(value: Any, place: _Place) -> int:
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise place.refuse(_json_name(value), f"int{bits}")
        if isinstance(value, float) or not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            raise place.refuse(f"number {value}", f"int{bits}")
        return value

    return read


def _json_name(value: Any) -> str:
    if isinstance(value, dict | list):
        return "object" if isinstance(value, dict) else "array"
    if isinstance(value, bool | str):
        return "bool" if isinstance(value, bool) else "string"
    return "number"


_READERS: Final[Mapping[str, Callable[[Any, _Place], Any]]] = {
    "string": _text,
    "bool": _flag,
    "int32": _whole(32),
    "int64": _whole(64),
    "quantity": lambda value, _: canonical(value),
    "any": lambda value, _: value,
    "time": lambda value, _: value,
}
