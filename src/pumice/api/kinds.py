"""The kinds of object Pumice knows, and what an API server knows about each.

The one list: the embedded cluster, the clients and the webhooks read it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

from pumice.api.annotations import GROUP_NAME
from pumice.errors import RejectedError

Manifest = dict[str, Any]
"""An object as it is written in YAML or JSON."""

CLAIM: Final = "PersistentVolumeClaim"
CONFIG_MAP: Final = "ConfigMap"
COMMAND: Final = "Command.bus.volcano.sh"
CRON_JOB: Final = "CronJob.batch.volcano.sh"
HYPER_NODE: Final = "HyperNode.topology.volcano.sh"
JOB: Final = "Job.batch.volcano.sh"
JOB_FLOW: Final = "JobFlow.flow.volcano.sh"
JOB_TEMPLATE: Final = "JobTemplate.flow.volcano.sh"
KUBE_POD_GROUP: Final = "PodGroup.scheduling.k8s.io"
LIMIT_RANGE: Final = "LimitRange"
LEASE: Final = "Lease.coordination.k8s.io"
NODE_SHARD: Final = "NodeShard.shard.volcano.sh"
NETWORK_POLICY: Final = "NetworkPolicy.networking.k8s.io"
POD: Final = "Pod"
POD_GROUP: Final = "PodGroup.scheduling.volcano.sh"
PRIORITY_CLASS: Final = "PriorityClass.scheduling.k8s.io"
QUEUE: Final = "Queue.scheduling.volcano.sh"
VOLUME: Final = "PersistentVolume"
RESOURCE_CLAIM: Final = "ResourceClaim.resource.k8s.io"
RESOURCE_CLAIM_TEMPLATE: Final = "ResourceClaimTemplate.resource.k8s.io"
RESOURCE_QUOTA: Final = "ResourceQuota"
STORAGE_CLASS: Final = "StorageClass.storage.k8s.io"
"""Names of kinds, as ``kind_of`` returns them, that more than one module uses."""

ENDED_PHASES: Final = frozenset({"Succeeded", "Failed"})
"""The phases of a pod that has ended."""
SCHEDULER_NAME: Final = "volcano"
"""The scheduler name of pods that we place."""
SYSTEM_PRIORITIES: Final = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}
"""Priority classes that every cluster has, with their values."""
GRACE_PERIOD_S: Final = 30
"""Grace period of a pod that states none."""

SYSTEM_NAMESPACE: Final = "volcano-system"
"""Where Volcano is installed, and Pumice in its place."""
EMBEDDED_BUILD: Final = "+pumice"
"""Suffix of the Kubernetes version that the embedded cluster reports."""
SCHEDULER_LEASE: Final = "volcano"
CONTROLLERS_LEASE: Final = "vc-controller-manager"
DEFAULT_QUEUE: Final = "default"
ROOT_QUEUE: Final = "root"
"""The queue of jobs and pod groups that name none."""


def kind_of(manifest: Mapping[str, Any]) -> str:
    """Name the kind of an object with its API group: ``Pod``, ``Job.batch.volcano.sh``.

    An object without a version has no group; its readers refuse it.
    """
    group, slash, _ = str(manifest.get("apiVersion") or "").partition("/")
    return f"{manifest['kind']}.{group}" if slash else str(manifest["kind"])


def is_bare(manifest: Mapping[str, Any]) -> bool:
    """Return whether an object is a pod of ours with neither a node nor a PodGroup."""
    spec = manifest.get("spec") or {}
    if manifest["kind"] != "Pod" or spec.get("nodeName"):
        return False
    marks = manifest["metadata"].get("annotations") or {}
    return spec.get("schedulerName") == SCHEDULER_NAME and not marks.get(GROUP_NAME)


def queue_of(manifest: Mapping[str, Any]) -> str:
    """Name the queue of a job or pod group."""
    return str((manifest.get("spec") or {}).get("queue") or DEFAULT_QUEUE)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object; ``name`` is what ``kind_of`` returns."""

    group: str
    version: str
    kind: str
    plural: str
    short_names: tuple[str, ...] = ()
    namespaced: bool = True
    has_status: bool = False
    """Whether status is a subresource of its own."""
    has_scale: bool = False
    """Whether clients may read and write the number of replicas by itself."""
    categories: tuple[str, ...] = ()
    other_versions: tuple[str, ...] = ()
    """Further versions in which the same objects are served."""
    singular_name: str = ""
    """Name of one where it is not the kind in small letters."""
    columns: tuple[tuple[str, str, str, int], ...] = ()
    """Name, type, path and priority of the columns of a custom kind."""
    stored_as: str = ""
    """The kind of whose objects this is another form."""
    name: str = field(init=False, repr=False)
    """Kind with group: ``Pod``, ``Job.batch.volcano.sh``."""
    api_version: str = field(init=False, repr=False)
    """Group and version as manifests write them."""

    def __post_init__(self) -> None:
        name = f"{self.kind}.{self.group}" if self.group else self.kind
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        object.__setattr__(self, "name", self.stored_as or name)
        object.__setattr__(self, "api_version", api_version)

    @property
    def resource(self) -> str:
        """Plural with group, as messages name it: ``pods``, ``jobs.batch.volcano.sh``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def singular(self) -> str:
        """Name of one, as typed on a command line."""
        return self.singular_name or self.kind.lower()


def _in_namespace(
    api_version: str,
    kind: str,
    plural: str,
    short: str = "",
    *,
    status: bool = False,
    scale: bool = False,
) -> Kind:
    group, _, version = api_version.rpartition("/")
    return Kind(
        group, version, kind, plural, tuple(short.split()), has_status=status, has_scale=scale
    )


def _cluster_wide(
    api_version: str, kind: str, plural: str, short: str = "", *, status: bool = False
) -> Kind:
    group, _, version = api_version.rpartition("/")
    return Kind(
        group, version, kind, plural, tuple(short.split()), namespaced=False, has_status=status
    )


CUSTOM_KIND: Final = "CustomResourceDefinition.apiextensions.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_BATCH: Final = "batch.volcano.sh/v1alpha1"
_DEVICES: Final = "resource.k8s.io/v1"
_RIGHTS: Final = "rbac.authorization.k8s.io/v1"
_FLOW: Final = "flow.volcano.sh/v1alpha1"
_SCHEDULING: Final = "scheduling.volcano.sh/v1beta1"
KUBE_GROUP_VERSIONS: Final = ("v1beta1", "v1alpha3", "v1alpha2")
"""Versions of Kubernetes' own PodGroup and Workload: 1.37 has the first two, 1.36 the last."""

BUILT_IN: Final[tuple[Kind, ...]] = (
    _cluster_wide("v1", "Namespace", "namespaces", "ns", status=True),
    _cluster_wide("v1", "Node", "nodes", "no", status=True),
    _cluster_wide("v1", "PersistentVolume", "persistentvolumes", "pv", status=True),
    _in_namespace("v1", "ConfigMap", "configmaps", "cm"),
    _in_namespace("v1", "Endpoints", "endpoints", "ep"),
    _in_namespace("v1", "Event", "events", "ev"),
    _in_namespace("v1", "LimitRange", "limitranges", "limits"),
    _in_namespace("v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", status=True),
    _in_namespace("v1", "Pod", "pods", "po", status=True),
    _in_namespace("v1", "ResourceQuota", "resourcequotas", "quota", status=True),
    _in_namespace("v1", "Secret", "secrets"),
    _in_namespace("v1", "Service", "services", "svc", status=True),
    _in_namespace("v1", "ServiceAccount", "serviceaccounts", "sa"),
    _cluster_wide(
        f"{_ADMISSION}/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"
    ),
    _cluster_wide(
        f"{_ADMISSION}/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"
    ),
    _cluster_wide(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "crd crds",
        status=True,
    ),
    _in_namespace("apps/v1", "ControllerRevision", "controllerrevisions"),
    _in_namespace("apps/v1", "DaemonSet", "daemonsets", "ds", status=True),
    _in_namespace("apps/v1", "Deployment", "deployments", "deploy", status=True, scale=True),
    _in_namespace("apps/v1", "ReplicaSet", "replicasets", "rs", status=True, scale=True),
    _in_namespace("apps/v1", "StatefulSet", "statefulsets", "sts", status=True, scale=True),
    _in_namespace(
        "autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", status=True
    ),
    _in_namespace("batch/v1", "CronJob", "cronjobs", "cj", status=True),
    _in_namespace("batch/v1", "Job", "jobs", status=True),
    _in_namespace("coordination.k8s.io/v1", "Lease", "leases"),
    _in_namespace("discovery.k8s.io/v1", "EndpointSlice", "endpointslices"),
    _in_namespace("networking.k8s.io/v1", "Ingress", "ingresses", "ing", status=True),
    _cluster_wide("networking.k8s.io/v1", "IngressClass", "ingressclasses"),
    _in_namespace("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", "netpol"),
    _in_namespace("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", status=True),
    _cluster_wide(_RIGHTS, "ClusterRole", "clusterroles"),
    _cluster_wide(_RIGHTS, "ClusterRoleBinding", "clusterrolebindings"),
    _in_namespace(_RIGHTS, "Role", "roles"),
    _in_namespace(_RIGHTS, "RoleBinding", "rolebindings"),
    _cluster_wide(_DEVICES, "DeviceClass", "deviceclasses"),
    _cluster_wide(_DEVICES, "ResourceSlice", "resourceslices"),
    _in_namespace(_DEVICES, "ResourceClaim", "resourceclaims", status=True),
    _in_namespace(_DEVICES, "ResourceClaimTemplate", "resourceclaimtemplates"),
    _cluster_wide("storage.k8s.io/v1", "CSIDriver", "csidrivers"),
    _cluster_wide("storage.k8s.io/v1", "CSINode", "csinodes"),
    _in_namespace("storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities"),
    _cluster_wide("storage.k8s.io/v1", "StorageClass", "storageclasses", "sc"),
    _in_namespace(_BATCH, "CronJob", "cronjobs", "cronvcjob cronvj", status=True),
    _in_namespace(_BATCH, "Job", "jobs", "vcjob vj", status=True),
    _in_namespace("bus.volcano.sh/v1alpha1", "Command", "commands"),
    _in_namespace(_FLOW, "JobFlow", "jobflows", "jf", status=True),
    _in_namespace(_FLOW, "JobTemplate", "jobtemplates", "jt", status=True),
    _cluster_wide("nodeinfo.volcano.sh/v1alpha1", "Numatopology", "numatopologies", "numatopo"),
    _in_namespace(_SCHEDULING, "PodGroup", "podgroups", "pg podgroup-v1beta1"),
    _cluster_wide(_SCHEDULING, "Queue", "queues", "q queue-v1beta1", status=True),
    _cluster_wide("shard.volcano.sh/v1alpha1", "NodeShard", "nodeshards", "nsh", status=True),
    _cluster_wide("topology.volcano.sh/v1alpha1", "HyperNode", "hypernodes", "hn", status=True),
    # after Volcano's: `kubectl get podgroups` shows those of the first group that has them
    _cluster_wide("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", "pc"),
    replace(
        _in_namespace("scheduling.k8s.io/v1beta1", "PodGroup", "podgroups", status=True),
        other_versions=KUBE_GROUP_VERSIONS[1:],
    ),
    replace(
        _in_namespace("scheduling.k8s.io/v1beta1", "Workload", "workloads"),
        other_versions=KUBE_GROUP_VERSIONS[1:],
    ),
)
"""Kinds that are served from the start."""
ONLY_REAL: Final[tuple[Kind, ...]] = (
    _cluster_wide("authentication.k8s.io/v1", "TokenReview", "tokenreviews"),
    _cluster_wide("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews"),
)
"""Kinds that a real API server has and the embedded cluster does not."""


OTHER_FORMS: Final[tuple[Kind, ...]] = (
    Kind("events.k8s.io", "v1", "Event", "events", ("ev",), stored_as="Event"),
)
"""Kinds whose objects are stored as those of another kind."""
BUILT_IN_NAMES: Final = frozenset(kind.name for kind in BUILT_IN)
"""Kinds that no client can define."""


class Kinds:
    """The kinds of one store; it learns unknown ones from their first object."""

    def __init__(self) -> None:
        self._by_name = {kind.name: kind for kind in BUILT_IN}
        self._by_plural = {(kind.group, kind.plural): kind for kind in (*BUILT_IN, *OTHER_FORMS)}

    def __iter__(self) -> Iterator[Kind]:
        """Yield each kind in each version that is served."""
        for kind in [*self._by_plural.values()]:
            yield kind
            yield from (_in_version(kind, version) for version in kind.other_versions)

    def copy(self) -> "Kinds":
        """Return the same kinds for another store, which learns by itself."""
        other = Kinds()
        other._by_name, other._by_plural = self._by_name.copy(), self._by_plural.copy()
        return other

    def get(self, name: str) -> Kind | None:
        """Return a kind by ``Kind`` or ``Kind.group``."""
        return self._by_name.get(name)

    def by_plural(self, group: str, plural: str) -> Kind | None:
        """Return a kind by the last part of its address."""
        return self._by_plural.get((group, plural))

    def at(self, group: str, version: str, plural: str) -> Kind | None:
        """Return a kind as it is served at an address, None if it is not."""
        kind = self._by_plural.get((group, plural))
        if kind is None or version == kind.version:
            return kind
        return _in_version(kind, version) if version in kind.other_versions else None

    def define(self, kind: Kind) -> bool:
        """Add a kind or replace a definition of it; return False for one that is built in."""
        if kind.name in BUILT_IN_NAMES:
            return False
        self.forget(kind.name)
        self._by_name[kind.name] = self._by_plural[kind.group, kind.plural] = kind
        return True

    def forget(self, name: str) -> None:
        """Serve a kind no more, unless it is built in."""
        known = self._by_name.get(name)
        if known is not None and name not in BUILT_IN_NAMES:
            del self._by_name[name]
            self._by_plural.pop((known.group, known.plural), None)

    def of(self, manifest: Manifest) -> Kind:
        """Return the kind of an object, and learn it if it is new.

        Raises:
            RejectedError: no apiVersion or no kind.
        """
        version, kind = manifest.get("apiVersion"), manifest.get("kind")
        if not (version and isinstance(version, str) and kind and isinstance(kind, str)):
            raise RejectedError(
                str(kind or "object"), problem="expected apiVersion and kind, got neither or one"
            )
        group, slash, _ = version.partition("/")
        return self._by_name.get(f"{kind}.{group}" if slash else kind) or self.learn(
            version, kind, namespaced=bool((manifest.get("metadata") or {}).get("namespace"))
        )

    def learn(self, api_version: str, kind: str, *, namespaced: bool = True) -> Kind:
        """Add a kind that was not built in; its plural is guessed."""
        group, _, version = api_version.rpartition("/")
        new = Kind(group, version, kind, guess_plural(kind), namespaced=namespaced)
        self._by_name[new.name] = new
        self._by_plural[new.group, new.plural] = new
        return new


@cache
def _in_version(kind: Kind, version: str) -> Kind:
    """Return a kind as it is served in another of its versions."""
    return replace(kind, version=version, other_versions=(), stored_as=kind.name)


def guess_plural(kind: str) -> str:
    """Return the plural Kubernetes would most probably use."""
    word = kind.lower()
    if word.endswith(("s", "x", "ch", "sh")):
        return f"{word}es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}s"


QUEUE_COMMANDS = "default"
"""The namespace of commands about queues, which have none of their own."""


def command(about: Manifest, action: str, namespace: str) -> Manifest:
    """Return the Command for an object; the controller that carries it out deletes it."""
    name = about["metadata"]["name"]
    target = {
        "apiVersion": about["apiVersion"],
        "kind": about["kind"],
        "name": name,
        "uid": about["metadata"].get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {
            "generateName": f"{name}-{action.lower()}-",
            "namespace": namespace,
            "ownerReferences": [dict(target)],
        },
        "action": action,
        "target": target,
    }
