"""The custom resources: Volcano's groups, versions, names and fields, in schemas of our own.

``python -m deploy.build`` writes them to ``deploy/crds``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from deploy import jobs, scheduling
from deploy.schema import Schema, fields, text, texts

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Resource:
    """One custom resource definition."""

    group: str
    version: str
    kind: str
    plural: str
    says: str
    parts: Mapping[str, Schema]
    short: tuple[str, ...] = ()
    scope: str = "Namespaced"
    status: bool = True
    """Whether status is a subresource of its own."""
    columns: tuple[Manifest, ...] = ()
    required: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        """The definition's name."""
        return f"{self.plural}.{self.group}"

    def manifest(self) -> Manifest:
        """Give the definition."""
        head = {
            "apiVersion": text("Version of the API."),
            "kind": text("Kind of the object."),
            "metadata": {"type": "object"},
        }
        version: Manifest = {
            "name": self.version,
            "served": True,
            "storage": True,
            "schema": {
                "openAPIV3Schema": fields(self.says, {**head, **self.parts}, *self.required)
            },
        }
        if self.status:
            version["subresources"] = {"status": {}}
        if self.columns:
            version["additionalPrinterColumns"] = [*self.columns]
        names: Manifest = {
            "kind": self.kind,
            "listKind": f"{self.kind}List",
            "plural": self.plural,
            "singular": self.kind.lower(),
        }
        if self.short:
            names["shortNames"] = [*self.short]
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": self.name,
                "annotations": {"helm.sh/resource-policy": "keep"},
            },
            "spec": {
                "group": self.group,
                "names": names,
                "scope": self.scope,
                "versions": [version],
            },
        }


def _column(title: str, path: str, kind: str = "string", **more: Any) -> Manifest:
    return {"name": title, "jsonPath": path, "type": kind, **more}


_AGE: Final = _column("AGE", ".metadata.creationTimestamp", "date")
_QUEUE: Final = _column("QUEUE", ".spec.queue", priority=1)


_BATCH: Final = ("batch.volcano.sh", "v1alpha1")
_FLOW: Final = ("flow.volcano.sh", "v1alpha1")
_SCHEDULING: Final = ("scheduling.volcano.sh", "v1beta1")

RESOURCES: Final[tuple[Resource, ...]] = (
    Resource(
        *_BATCH,
        "CronJob",
        "cronjobs",
        "Starts Volcano jobs by the clock.",
        {"spec": jobs.cron_spec(), "status": jobs.cron_status()},
        short=("cronvcjob", "cronvj"),
    ),
    Resource(
        *_BATCH,
        "Job",
        "jobs",
        "A batch job: tasks whose pods are scheduled together.",
        {"spec": jobs.job_spec("What to run."), "status": jobs.job_status()},
        short=("vcjob", "vj"),
        columns=(
            _column("STATUS", ".status.state.phase"),
            _column("minAvailable", ".status.minAvailable", "integer"),
            _column("RUNNINGS", ".status.running", "integer"),
            _AGE,
            _QUEUE,
        ),
    ),
    Resource(
        "bus.volcano.sh",
        "v1alpha1",
        "Command",
        "commands",
        "An order to a job or a queue; it is deleted when it is heeded.",
        scheduling.command_parts(),
        status=False,
    ),
    Resource(
        "config.volcano.sh",
        "v1alpha1",
        "ColocationConfiguration",
        "colocationconfigurations",
        "Service on shared nodes; kept for Volcano's node agent, Pumice does not read it.",
        scheduling.colocation_parts(),
        required=("spec",),
    ),
    Resource(
        *_FLOW,
        "JobFlow",
        "jobflows",
        "Jobs that are started one after another.",
        {"spec": jobs.flow_spec(), "status": jobs.flow_status()},
        short=("jf",),
        columns=(
            _column("Status", ".status.state.phase"),
            _column("Age", ".metadata.creationTimestamp", "date"),
        ),
    ),
    Resource(
        *_FLOW,
        "JobTemplate",
        "jobtemplates",
        "What the jobs of a flow are made from.",
        {
            "spec": jobs.job_spec("The jobs' specification."),
            "status": fields("Who uses it.", {"jobDependsOnList": texts("Jobs made from it.")}),
        },
        short=("jt",),
    ),
    Resource(
        "nodeinfo.volcano.sh",
        "v1alpha1",
        "Numatopology",
        "numatopologies",
        "The NUMA nodes of a node; its name is the node's.",
        {"spec": scheduling.numatopology_spec()},
        short=("numatopo",),
        scope="Cluster",
        status=False,
    ),
    Resource(
        *_SCHEDULING,
        "PodGroup",
        "podgroups",
        "A gang: pods that are scheduled together.",
        {"spec": scheduling.podgroup_spec(), "status": scheduling.podgroup_status()},
        short=("pg", "podgroup-v1beta1"),
        status=False,
        columns=(
            _column("STATUS", ".status.phase"),
            _column("minMember", ".spec.minMember", "integer"),
            _column("RUNNINGS", ".status.running", "integer"),
            _AGE,
            _QUEUE,
        ),
    ),
    Resource(
        *_SCHEDULING,
        "Queue",
        "queues",
        "Where gangs wait and what they share.",
        {"spec": scheduling.queue_spec(), "status": scheduling.queue_status()},
        short=("q", "queue-v1beta1"),
        scope="Cluster",
        columns=(_column("PARENT", ".spec.parent"),),
    ),
    Resource(
        "shard.volcano.sh",
        "v1alpha1",
        "NodeShard",
        "nodeshards",
        "Nodes of one of several schedulers; kept for Volcano, Pumice does not read it.",
        scheduling.shard_parts(),
        short=("nsh",),
        scope="Cluster",
        columns=(_AGE,),
        required=("spec",),
    ),
    Resource(
        "topology.volcano.sh",
        "v1alpha1",
        "HyperNode",
        "hypernodes",
        "A part of the network: nodes, or smaller parts, that lie close to each other.",
        {"spec": scheduling.hypernode_spec(), "status": scheduling.hypernode_status()},
        short=("hn",),
        scope="Cluster",
        columns=(
            _column("Tier", ".spec.tier"),
            _column("TierName", ".spec.tierName"),
            _column("NodeCount", ".status.nodeCount", "integer"),
            _column("Age", ".metadata.creationTimestamp", "date"),
        ),
    ),
)
"""Every definition, in the order of their names."""
