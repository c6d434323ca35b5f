"""The custom resources: Volcano's groups, versions, names and fields.

The fields are those that ``pumice.api.schema`` declares, pod templates with all that Kubernetes
defines for a pod, so that a misspelt field is detected anywhere.
``python -m deploy.build`` writes the definitions to ``deploy/crds``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from deploy.schema import openapi
from pumice.api.kinds import BUILT_IN, Kind, Manifest
from pumice.api.schema.build import declared_schema


@dataclass(frozen=True, slots=True)
class Resource:
    """One custom resource definition, and the columns that kubectl shows."""

    kind: Kind
    columns: tuple[Manifest, ...] = ()

    @property
    def file_name(self) -> str:
        """The name of its file."""
        return f"{self.kind.group}_{self.kind.plural}.yaml"

    def manifest(self) -> Manifest:
        """Return the definition."""
        kind = self.kind
        version: Manifest = {
            "name": kind.version,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": openapi(declared_schema(kind.name))},
        }
        if kind.has_status:
            version["subresources"] = {"status": {}}
        if self.columns:
            version["additionalPrinterColumns"] = [*self.columns]
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": f"{kind.plural}.{kind.group}",
                "annotations": {"helm.sh/resource-policy": "keep"},
            },
            "spec": {
                "group": kind.group,
                "names": self._names(),
                "scope": "Namespaced" if kind.namespaced else "Cluster",
                "versions": [version],
            },
        }

    def _names(self) -> Manifest:
        names: Manifest = {
            "kind": self.kind.kind,
            "listKind": f"{self.kind.kind}List",
            "plural": self.kind.plural,
            "singular": self.kind.singular,
        }
        return {**names, "shortNames": [*self.kind.short_names]} if self.kind.short_names else names


def _column(title: str, path: str, kind: str = "string", **more: Any) -> Manifest:
    return {"name": title, "jsonPath": path, "type": kind, **more}


_CREATED: Final = ".metadata.creationTimestamp"
_AGE: Final = _column("AGE", _CREATED, "date")
_QUEUE: Final = _column("QUEUE", ".spec.queue", priority=1)
_COLUMNS: Final[Mapping[str, tuple[Manifest, ...]]] = {
    "Job.batch.volcano.sh": (
        _column("STATUS", ".status.state.phase"),
        _column("minAvailable", ".status.minAvailable", "integer"),
        _column("RUNNINGS", ".status.running", "integer"),
        _AGE,
        _QUEUE,
    ),
    "JobFlow.flow.volcano.sh": (
        _column("Status", ".status.state.phase"),
        _column("Age", _CREATED, "date"),
    ),
    "PodGroup.scheduling.volcano.sh": (
        _column("STATUS", ".status.phase"),
        _column("minMember", ".spec.minMember", "integer"),
        _column("RUNNINGS", ".status.running", "integer"),
        _AGE,
        _QUEUE,
    ),
    "Queue.scheduling.volcano.sh": (_column("PARENT", ".spec.parent"),),
    "NodeShard.shard.volcano.sh": (_AGE,),
    "HyperNode.topology.volcano.sh": (
        _column("Tier", ".spec.tier"),
        _column("TierName", ".spec.tierName"),
        _column("NodeCount", ".status.nodeCount", "integer"),
        _column("Age", _CREATED, "date"),
    ),
}
_UNREAD: Final = (
    Kind(
        "config.volcano.sh",
        "v1alpha1",
        "ColocationConfiguration",
        "colocationconfigurations",
        has_status=True,
    ),
)
"""Kinds of Volcano that Pumice does not read."""
_OURS: Final = [kind for kind in BUILT_IN if kind.group.endswith(".volcano.sh")]

RESOURCES: Final = tuple(
    Resource(kind, _COLUMNS.get(kind.name, ()))
    for kind in sorted((*_OURS, *_UNREAD), key=lambda one: (one.group, one.plural))
)
"""Every definition, in the order of their names."""
