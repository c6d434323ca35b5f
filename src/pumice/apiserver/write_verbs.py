"""The writing verbs of the API on a store, and what they become in a dry run."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, cast

from pumice.api.cloning import clone
from pumice.api.kinds import (
    BUILT_IN_NAMES,
    CUSTOM_KIND,
    LIMIT_RANGE,
    PRIORITY_CLASS,
    Kind,
    Manifest,
)
from pumice.apiserver.columns import dig
from pumice.apiserver.failures import RequestError, typed
from pumice.apiserver.versions import is_stored, shown, stored
from pumice.cluster.base import PatchType, Propagation
from pumice.cluster.embedded.custom_kinds import served_versions
from pumice.cluster.embedded.object_tables import ObjectTables
from pumice.cluster.embedded.patches import apply_patch
from pumice.cluster.embedded.quotas import PodQuotas
from pumice.cluster.embedded.status_upkeep import BUDGETS, refusal
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import ConflictError, NotFoundError, RejectedError

PATCHES: Final[Mapping[str, PatchType]] = MappingProxyType(
    {
        "application/json-patch+json": "json",
        "application/merge-patch+json": "merge",
        "application/strategic-merge-patch+json": "strategic",
        "application/apply-patch+yaml": "apply",
        "application/apply-patch+json": "apply",
    }
)
_SCALE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "specReplicasPath": "spec.replicas",
        "statusReplicasPath": "status.replicas",
        "labelSelectorPath": "spec.selector",
    }
)
_UNREAL: Final = frozenset({"log", "exec", "attach", "portforward", "proxy", "ephemeralcontainers"})


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """The target of an address: a kind, and within it a namespace, an object, a subresource."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def dry_run_copy(cluster: EmbeddedCluster, path: ResourcePath) -> EmbeddedCluster:
    """Make a copy of the cluster in which a write to one object has the same result."""
    manifests = [*cluster.list("Namespace")[0]]
    for kind in (CUSTOM_KIND, *((PRIORITY_CLASS, LIMIT_RANGE) if path.kind.name == "Pod" else ())):
        manifests += cluster.list(kind)[0] if kind != path.kind.name else ()
    if path.kind.name != "Namespace" and path.name:
        found = cluster.peek(path.kind.name, path.namespace, path.name)
        manifests += [found] if found is not None else []
    tables = ObjectTables(history=0)
    tables.kinds = cluster.kinds.copy()
    tables.resume(manifests, cluster.version)
    copy = EmbeddedCluster(
        cluster.clock, admission=cluster.admission, record_events=False, tables=tables
    )
    if isinstance(cluster.quotas, PodQuotas):
        copy.quotas = cluster.quotas.without_counting()
    return copy


def as_before(manifest: Manifest, before: Manifest | None) -> Manifest:
    """Return the outcome of a dry run: nothing was stored, so the version is the one of before."""
    metadata = {**manifest["metadata"]}
    metadata.pop("resourceVersion", None)
    if before is not None:
        metadata["resourceVersion"] = before["metadata"]["resourceVersion"]
    return {**manifest, "metadata": metadata}


def no_subresource(path: ResourcePath) -> Exception:
    """Make the error for a subresource that is not served."""
    if path.kind.name == "Pod" and path.subresource in _UNREAL:
        return RequestError(
            501,
            f"'{path.subresource}' of a pod is not served: pods of an embedded cluster run nothing",
        )
    problem = f"the server has no '{path.subresource}' of {path.kind.plural}"
    return RequestError(404, problem)


def create(cluster: EmbeddedCluster, path: ResourcePath, manifest: Manifest) -> Manifest:
    """Add an object to a namespace that must be there."""
    _settle_head(path, manifest)
    manifest = stored(manifest, path.kind, cluster.kinds)
    if path.kind.namespaced:
        namespace = manifest["metadata"].get("namespace") or "default"
        if cluster.peek("Namespace", "", namespace) is None:
            raise NotFoundError("Namespace", "", namespace)
    return cluster.create(manifest)


def update(cluster: EmbeddedCluster, path: ResourcePath, manifest: Manifest) -> Manifest:
    """Replace an object, its status or its scale."""
    if path.subresource == "scale":
        return rescale(cluster, path, manifest)
    _settle_head(path, manifest)
    manifest = stored(manifest, path.kind, cluster.kinds)
    if path.subresource == "status":
        return cluster.update_status(manifest)
    if path.subresource:
        raise no_subresource(path)
    return cluster.update(manifest)


def patch(
    cluster: EmbeddedCluster, path: ResourcePath, changes: Any, patch_type: PatchType
) -> tuple[Manifest, bool]:
    """Change parts of an object; return also whether it is new, which is possible for an apply."""
    kind, namespace, name = path.kind.name, path.namespace, path.name
    if path.subresource == "scale":
        scaled = apply_patch(scale_of(cluster, path), changes, patch_type)
        return rescale(cluster, path, scaled), False
    if path.subresource not in ("", "status"):
        raise no_subresource(path)
    with cluster.lock:
        is_new = patch_type == "apply" and cluster.peek(kind, namespace, name) is None
        if is_new and not path.subresource:
            return create(cluster, path, changes), True
        if not is_stored(path.kind, cluster.kinds):
            old = shown(cluster.get(kind, namespace, name), path.kind)
            return update(cluster, path, apply_patch(old, changes, patch_type)), False
        made = cluster.patch(
            kind, namespace, name, changes, patch_type=patch_type, subresource=path.subresource
        )
        return made, False


def patched(
    cluster: EmbeddedCluster, path: ResourcePath, changes: Any, patch_type: PatchType
) -> Any:
    """Return the object after a patch; None for a subresource or a missing object."""
    found = cluster.peek(path.kind.name, path.namespace, path.name)
    if path.subresource or (found is None and patch_type != "apply"):
        return None
    return changes if found is None else apply_patch(clone(found), changes, patch_type)


def delete(
    cluster: EmbeddedCluster, path: ResourcePath, options: Mapping[str, Any]
) -> Manifest | None:
    """Delete an object; return it if something keeps it for now."""
    kind, namespace, name = path.kind.name, path.namespace, path.name
    wanted = options.get("preconditions") or {}
    propagation = options.get("propagationPolicy") or "Background"
    if propagation not in ("Background", "Foreground", "Orphan"):
        problem = f"propagationPolicy: expected Background, Foreground or Orphan, got {propagation}"
        raise RejectedError(kind, namespace, name, problem)
    if options.get("orphanDependents"):
        propagation = "Orphan"
    grace = options.get("gracePeriodSeconds")
    with cluster.lock:
        uid = cluster.get(kind, namespace, name)["metadata"]["uid"]
        version = wanted.get("resourceVersion")
        found = cluster.get(kind, namespace, name)["metadata"]["resourceVersion"]
        if version and version != found:
            problem = f"expected resourceVersion {version}, got {found}"
            raise ConflictError(kind, namespace, name, problem)
        cluster.delete(
            kind,
            namespace,
            name,
            grace_s=None if grace is None else int(grace),
            propagation=cast("Propagation", propagation),
            uid=wanted.get("uid") or "",
        )
        left = cluster.peek(kind, namespace, name)
        return left if left is not None and left["metadata"]["uid"] == uid else None


def bind(cluster: EmbeddedCluster, path: ResourcePath, binding: Manifest) -> None:
    """Bind a pod to its node."""
    read = typed(binding, "v1.Binding")
    node = read["target"].get("name")
    if not node:
        raise RequestError(400, "expected a binding with the name of a node as target, got none")
    metadata = read["metadata"]
    annotations, uid = metadata.get("annotations") or {}, metadata.get("uid") or ""
    cluster.bind(path.namespace, path.name, node, annotations, uid=uid)


def check_budgets(cluster: EmbeddedCluster, path: ResourcePath) -> None:
    """Refuse an eviction for which disruption budgets leave no room."""
    pod = cluster.get("Pod", path.namespace, path.name)
    problem = refusal(pod, cluster.list(BUDGETS, path.namespace)[0])
    if problem:
        raise RequestError(429 if problem.startswith("Cannot") else 500, problem)


def scale_of(cluster: EmbeddedCluster, path: ResourcePath) -> Manifest:
    """Return the scale of an object."""
    if not path.kind.has_scale:
        raise no_subresource(path)
    manifest = cluster.get(path.kind.name, path.namespace, path.name)
    metadata = manifest["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    places = _scale_places(cluster, path.kind)
    selected = dig(manifest, places["labelSelectorPath"]) or {}
    if isinstance(selected, dict):
        labels = selected.get("matchLabels") or {}
        selected = ",".join(f"{key}={value}" for key, value in labels.items())
    wanted = dig(manifest, places["specReplicasPath"])
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": 1 if wanted is None else wanted},
        "status": {
            "replicas": dig(manifest, places["statusReplicasPath"]) or 0,
            "selector": selected,
        },
    }


def rescale(cluster: EmbeddedCluster, path: ResourcePath, scale: Manifest) -> Manifest:
    """Write the scale of an object."""
    scale_of(cluster, path)
    replicas = typed(scale, "autoscaling.Scale")["spec"].get("replicas", 0)
    if replicas < 0:
        raise RequestError(400, f"expected a number of replicas, got {replicas!r}")
    changes: Any = replicas
    for part in reversed(_scale_places(cluster, path.kind)["specReplicasPath"].split(".")):
        changes = {part: changes}
    cluster.patch(path.kind.name, path.namespace, path.name, changes)
    return scale_of(cluster, path)


def _scale_places(cluster: EmbeddedCluster, kind: Kind) -> dict[str, str]:
    """Return where objects of a kind have what its scale shows."""
    definition = cluster.peek(CUSTOM_KIND, "", kind.resource)
    if definition is None or kind.name in BUILT_IN_NAMES:
        return dict(_SCALE)
    stated = (served_versions(definition)[0].get("subresources") or {}).get("scale") or {}
    return {name: str(stated.get(name) or "").lstrip(".") for name in _SCALE}


def _settle_head(path: ResourcePath, manifest: Manifest) -> None:
    """Complete an object by its address, and refuse one that contradicts it."""
    kind = path.kind
    manifest.setdefault("apiVersion", kind.api_version)
    manifest.setdefault("kind", kind.kind)
    if (manifest["apiVersion"], manifest["kind"]) != (kind.api_version, kind.kind):
        found = f"{manifest['kind']} of {manifest['apiVersion']}"
        raise RequestError(400, f"expected a {kind.kind} of {kind.api_version}, got a {found}")
    metadata = manifest.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        raise RequestError(400, "expected metadata as a mapping")
    typed(metadata, "meta.ObjectMeta")
    wanted = {"name": path.name, "namespace": path.namespace}
    for key, value in wanted.items():
        if value and metadata.setdefault(key, value) != value:
            problem = f"the {key} of the object ({metadata[key]}) is not the one asked for"
            raise RequestError(400, f"{problem} ({value})")
