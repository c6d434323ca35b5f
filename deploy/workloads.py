"""The objects that run Pumice on a cluster: namespace, deployments, services, roles, webhooks.

Names, labels, ports and mount points are Volcano's, so that tools for Volcano work with these.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from deploy.rbac import (
    ADMISSION,
    CONTROLLERS,
    SCHEDULER,
    SHADOW,
    Component,
    Grant,
    admission_init,
    rules,
)
from deploy.webhooks import DEFAULT, SERVICE, WEBHOOKS
from pumice import __version__

Manifest = dict[str, Any]

NAMESPACE: Final = "volcano-system"
RELEASE: Final = "volcano"
SECRET: Final = "volcano-admission-secret"  # noqa: S105  # the name of one
JOB_NAMESPACES: Final = ("default",)
"""Namespaces of jobs with the plugins ssh and mpi, which need a Secret."""
JOB_ROLE: Final = "volcano-job-secrets"
IMAGE: Final = f"pumice:{__version__}"
USER: Final = 1000
CONFIG: Final = Path(__file__).resolve().parent / "helm" / "pumice" / "config"
CERTIFICATES: Final = "/admission.local.config/certificates"
HEALTH_PORT: Final = 11251


_LOOK: Final = ("get", "list", "watch")
_WRITE: Final = (*_LOOK, "create", "update", "patch", "delete")
_SHARED: Final = Grant("scheduling.volcano.sh", ("podgroups", "queues"), _LOOK)
USERS: Final = {
    "editor": (
        Grant("batch.volcano.sh", ("cronjobs", "jobs"), _WRITE),
        Grant("flow.volcano.sh", ("jobflows", "jobtemplates"), _WRITE),
        Grant("bus.volcano.sh", ("commands",), ("get", "list", "create")),
        _SHARED,
    ),
    "viewer": (
        Grant("batch.volcano.sh", ("cronjobs", "jobs"), _LOOK),
        Grant("flow.volcano.sh", ("jobflows", "jobtemplates"), _LOOK),
        _SHARED,
    ),
}
"""Roles for users: to write jobs, or to read them."""


@dataclass(frozen=True, slots=True)
class Part:
    """One of the three processes."""

    component: Component
    app: str
    """The label its pods carry."""
    args: tuple[str, ...]
    cpu: str
    memory: str
    most_memory: str
    port: int
    """The target of the service."""
    service: str
    service_port: int

    @property
    def name(self) -> str:
        """The deployment's name."""
        return f"{RELEASE}-{self.component.name}"


_ELECTION: Final = ("--leader-elect=true", f"--leader-elect-resource-namespace={NAMESPACE}")
_WATCHED: Final = ("--enable-healthz=true", "--enable-metrics=true")

_ENVIRONMENT: Final = (
    {"name": "KUBE_POD_NAMESPACE", "value": NAMESPACE},
    {"name": "HELM_RELEASE_NAME", "value": RELEASE},
)
"""The variables that name the controllers' ConfigMap."""

PARTS: Final[tuple[Part, ...]] = (
    Part(
        SCHEDULER,
        "volcano-scheduler",
        (
            "scheduler",
            "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf",
            "--disable-default-scheduler-config=true",
            *_WATCHED,
            *_ELECTION,
            "--kube-api-qps=2000",
            "--kube-api-burst=2000",
            "--schedule-period=1s",
            "-v=3",
        ),
        cpu="500m",
        memory="512Mi",
        most_memory="4Gi",
        port=8080,
        service="volcano-scheduler-service",
        service_port=8080,
    ),
    Part(
        CONTROLLERS,
        "volcano-controller",
        (
            "controllers",
            *_WATCHED,
            *_ELECTION,
            "--kube-api-qps=50",
            "--kube-api-burst=100",
            "--worker-threads=3",
            "--worker-threads-for-gc=5",
            "--worker-threads-for-podgroup=5",
            "-v=4",
        ),
        cpu="200m",
        memory="256Mi",
        most_memory="2Gi",
        port=8081,
        service="volcano-controllers-service",
        service_port=8081,
    ),
    Part(
        ADMISSION,
        "volcano-admission",
        (
            "webhooks",
            f"--enabled-admission={','.join(DEFAULT)}",
            f"--tls-cert-file={CERTIFICATES}/tls.crt",
            f"--tls-private-key-file={CERTIFICATES}/tls.key",
            "--admission-conf=/admission.local.config/configmap/volcano-admission.conf",
            f"--webhook-namespace={NAMESPACE}",
            f"--webhook-service-name={SERVICE}",
            "--enable-healthz=true",
            "--port=8443",
            "-v=4",
        ),
        cpu="100m",
        memory="128Mi",
        most_memory="512Mi",
        port=8443,
        service=SERVICE,
        service_port=443,
    ),
)

SHADOW_PART: Final = Part(
    SHADOW,
    "pumice-shadow",
    (
        "scheduler",
        "--shadow",
        "--shadow-report=/tmp/shadow.json",
        "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf",
        *_WATCHED,
        "-v=1",
    ),
    cpu="500m",
    memory="512Mi",
    most_memory="4Gi",
    port=8080,
    service="pumice-shadow-service",
    service_port=8080,
)
"""A scheduler beside the running one that only compares; not part of an installation."""


def _object(api: str, kind: str, name: str, namespace: str = "", **parts: Any) -> Manifest:
    metadata: Manifest = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    metadata |= parts.pop("metadata", {})
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **parts}


def _bound(
    component: Component, kind: str, namespace: str, grants: Iterable[Grant], name: str = ""
) -> list[Manifest]:
    """Return a role and its binding to the component's account."""
    api = "rbac.authorization.k8s.io/v1"
    account_name = f"{RELEASE}-{component.name}"
    account = {"kind": "ServiceAccount", "name": account_name, "namespace": NAMESPACE}
    name = name or account_name
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    binding = f"{name}-role"
    return [
        _object(api, kind, name, namespace, rules=rules(grants)),
        _object(api, f"{kind}Binding", binding, namespace, roleRef=reference, subjects=[account]),
    ]


def permissions(component: Component) -> list[Manifest]:
    """Return the account of a component and its bindings."""
    account = _object("v1", "ServiceAccount", f"{RELEASE}-{component.name}", NAMESPACE)
    found = [{**account, "automountServiceAccountToken": False}]
    if component.everywhere:
        found += _bound(component, "ClusterRole", "", component.everywhere)
    if component.at_home:
        found += _bound(component, "Role", NAMESPACE, component.at_home)
    for namespace in JOB_NAMESPACES if component.in_job_namespaces else ():
        secrets = component.in_job_namespaces
        found += _bound(component, "Role", namespace, secrets, JOB_ROLE)
    return found


def container(name: str, resources: Manifest, mounts: Sequence[Manifest], **more: Any) -> Manifest:
    """Return a container without further privileges."""
    return {
        "name": name,
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        **more,
        "resources": resources,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": USER,
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, *mounts],  # noqa: S108
    }


def pod(account: str, one: Manifest, volumes: Sequence[Manifest], **more: Any) -> Manifest:
    """Return the specification of a pod around one container."""
    return {
        "serviceAccountName": account,
        "automountServiceAccountToken": True,
        "priorityClassName": "system-cluster-critical",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **more,
        "containers": [one],
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}}, *volumes],
    }


def _mounted(part: Part) -> tuple[list[Manifest], list[Manifest]]:
    """Return mounts and volumes of a process's files."""
    if part.component in (SCHEDULER, SHADOW):
        config = {"name": f"{RELEASE}-scheduler-configmap"}
        return (
            [{"name": "scheduler-config", "mountPath": "/volcano.scheduler", "readOnly": True}],
            [{"name": "scheduler-config", "configMap": config}],
        )
    if part.component is ADMISSION:
        config = {"name": f"{RELEASE}-admission-configmap"}
        where = "/admission.local.config/configmap"
        return (
            [
                {"name": "admission-certs", "mountPath": CERTIFICATES, "readOnly": True},
                {"name": "admission-config", "mountPath": where, "readOnly": True},
            ],
            [
                {"name": "admission-certs", "secret": {"secretName": SECRET, "defaultMode": 0o440}},
                {"name": "admission-config", "configMap": config},
            ],
        )
    return [], []


def _probe(path: str, **timing: int) -> Manifest:
    return {"httpGet": {"path": path, "port": "healthz"}, **timing}


def deployment(part: Part) -> Manifest:
    """Return the deployment of a process."""
    mounts, volumes = _mounted(part)
    served = "webhooks" if part.component is ADMISSION else "metrics"
    one = container(
        part.name if part.component is not ADMISSION else "admission",
        {
            "requests": {"cpu": part.cpu, "memory": part.memory},
            "limits": {"memory": part.most_memory},
        },
        mounts,
        args=["serve", *part.args],
        **({"env": _ENVIRONMENT} if part.component is CONTROLLERS else {}),
        ports=[
            {"name": served, "containerPort": part.port},
            {"name": "healthz", "containerPort": HEALTH_PORT},
        ],
        startupProbe=_probe("/healthz", periodSeconds=2, failureThreshold=60),
        livenessProbe=_probe("/healthz", periodSeconds=10, timeoutSeconds=5, failureThreshold=3),
        readinessProbe=_probe("/readyz", periodSeconds=5, timeoutSeconds=5),
    )
    labels = {"app": part.app}
    apart = {
        "podAffinityTerm": {
            "labelSelector": {"matchLabels": labels},
            "topologyKey": "kubernetes.io/hostname",
        },
        "weight": 100,
    }
    affinity = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [apart]}}
    template = {
        "metadata": {"labels": labels},
        "spec": pod(part.name, one, volumes, affinity=affinity),
    }
    return _object(
        "apps/v1",
        "Deployment",
        part.name,
        NAMESPACE,
        metadata={"labels": labels},
        spec={"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    )


def service(part: Part) -> Manifest:
    """Return the service in front of a process."""
    port: Manifest = {"port": part.service_port, "protocol": "TCP", "targetPort": part.port}
    metadata: Manifest = {"labels": {"app": part.app}}
    if part.component is not ADMISSION:
        port["name"] = "metrics"
        metadata["annotations"] = {
            "prometheus.io/path": "/metrics",
            "prometheus.io/port": str(part.port),
            "prometheus.io/scrape": "true",
        }
    return _object(
        "v1",
        "Service",
        part.service,
        NAMESPACE,
        metadata=metadata,
        spec={"ports": [port], "selector": {"app": part.app}, "type": "ClusterIP"},
    )


def config_map(name: str) -> Manifest:
    """Return the configuration file of a component: scheduler, controller or admission."""
    file = f"volcano-{name}.conf"
    text = (CONFIG / file).read_text(encoding="utf-8")
    return _object(
        "v1",
        "ConfigMap",
        f"{RELEASE}-{name}-configmap",
        NAMESPACE,
        data={file: text},
    )


ENABLED: Final = tuple(one for one in WEBHOOKS if one.path in DEFAULT)


def certificate_component() -> Component:
    """Return the component that makes the webhooks' certificate."""
    return admission_init(SECRET, (one.configuration for one in ENABLED))


def certificate_job() -> list[Manifest]:
    """Return the job that makes the webhooks' certificate, and its rights."""
    component = certificate_component()
    name = f"{RELEASE}-{component.name}"
    args = [f"--namespace={NAMESPACE}", f"--service={SERVICE}", f"--secret={SECRET}"]
    args += [
        f"--{'mutating' if one.mutates else 'validating'}={one.configuration}" for one in ENABLED
    ]
    main = container(
        "main",
        {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        [],
        command=["pumice-certificates"],
        args=args,
    )
    spec = {
        "backoffLimit": 10,
        "ttlSecondsAfterFinished": 3600,
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": pod(name, main, [], restartPolicy="OnFailure"),
        },
    }
    labels = {"labels": {"app": name}}
    job = _object("batch/v1", "Job", name, NAMESPACE, metadata=labels, spec=spec)
    return [*permissions(component), job]


def user_roles() -> list[Manifest]:
    """Return roles to bind users to, for writing jobs and for reading them."""
    api = "rbac.authorization.k8s.io/v1"
    return [
        _object(api, "ClusterRole", f"vcjob-{who}-role", rules=rules(may))
        for who, may in USERS.items()
    ]


def namespace() -> Manifest:
    """Return the namespace; its label admits only pods with restricted rights."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return _object("v1", "Namespace", NAMESPACE, metadata={"labels": labels})


def shadow() -> list[Manifest]:
    """Return the objects of a shadow beside an installed Volcano, in its namespace."""
    return [*permissions(SHADOW), service(SHADOW_PART), deployment(SHADOW_PART)]


def everything() -> list[Manifest]:
    """Return all objects except the custom resource definitions, in the order to apply them."""
    names = ("scheduler", "controller", "admission")
    found = [namespace(), *(config_map(name) for name in names)]
    for part in PARTS:
        found += permissions(part.component)
    found += user_roles()
    for part in PARTS:
        found += [service(part), deployment(part)]
    found += certificate_job()
    found += [one.manifest(NAMESPACE) for one in ENABLED]
    return found
