"""Alibaba's openb traces: nodes and pods of a cluster with shared GPUs, one CSV file each.

A pod's part of a GPU is counted in thousandths of ``nvidia.com/gpu``, summed up by node; which card
of a node it shares is ignored.
"""

from collections.abc import Iterator
from pathlib import Path

from pumice.api.annotations import HOSTNAME
from pumice.api.objects import (
    Affinity,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeStatus,
    ObjectMeta,
    ResourceList,
)
from pumice.errors import InputError
from pumice.sim.options import check_nodes, within_limits
from pumice.sim.readers.table_files import number, rows_of
from pumice.sim.workload import JobSpec, NodeHint, PodSpecs, TaskSpec, Workload, in_order

POD_COLUMNS = frozenset({"cpu_milli", "memory_mib", "num_gpu", "creation_time", "deletion_time"})
NODE_COLUMNS = frozenset({"sn", "cpu_milli", "memory_mib", "gpu"})
GPU = "nvidia.com/gpu"
MODEL = "gpu-model"
"""The node label that pods of a certain GPU model ask for."""


def read_nodes(path: Path) -> list[Node]:
    """Read a list of nodes."""
    nodes: list[Node] = []
    for line, row in rows_of(path):
        check_nodes(len(nodes) + 1, str(path))
        amounts: ResourceList = {
            "cpu": f"{int(number(row, 'cpu_milli', str(path), line))}m",
            "memory": f"{int(number(row, 'memory_mib', str(path), line))}Mi",
            "pods": "110",
        }
        gpus = int(number(row, "gpu", str(path), line))
        if gpus:
            amounts[GPU] = str(gpus)
        model = row.get("model", "")
        labels = {HOSTNAME: row["sn"], **({MODEL: model} if model else {})}
        status = NodeStatus(allocatable=amounts, capacity=amounts)
        nodes.append(Node(metadata=ObjectMeta(name=row["sn"], labels=labels), status=status))
    return nodes


def read_pods(path: Path) -> Workload:
    """Read a list of pods; each is a job of its own, in the queue of its quality of service."""
    return Workload(
        name=path.name,
        format="openb",
        jobs=in_order(within_limits(_jobs(path), str(path))),
        node_hint=NodeHint({"cpu": "96", "memory": "384Gi", "pods": "110", GPU: "8"}),
        notes=("parts of a GPU are summed up by node; cards are not distinguished",),
    )


def _jobs(path: Path) -> Iterator[JobSpec]:
    pod_specs, file = PodSpecs(), str(path)
    for line, row in rows_of(path):
        created, deleted = (
            number(row, column, file, line) for column in ("creation_time", "deletion_time")
        )
        since = number(row, "scheduled_time", file, line) if row.get("scheduled_time") else created
        if deleted < since:
            raise InputError(
                wanted="a deletion after the start",
                found=row["deletion_time"],
                field="deletion_time",
                file=f"{file}:{line}",
            )
        requests = {
            "cpu": f"{int(number(row, 'cpu_milli', file, line))}m",
            "memory": f"{int(number(row, 'memory_mib', file, line))}Mi",
        }
        gpus = int(number(row, "num_gpu", file, line))
        if gpus:
            part = int(number(row, "gpu_milli", file, line)) if row.get("gpu_milli") else 1000
            requests[GPU] = f"{gpus * part}m"
        models = tuple(model for model in row.get("gpu_spec", "").split("|") if model)
        more = {"affinity": _on_models(models)} if models else {}
        task = TaskSpec(pod_specs.spec(requests, **more), 1, deleted - since)
        queue = row.get("qos", "").lower() or "default"
        yield JobSpec(
            name=row.get("name") or f"pod-{line}",
            arrival=created,
            tasks=(task,),
            min_member=1,
            queue=queue,
        )


def _on_models(models: tuple[str, ...]) -> Affinity:
    asked = NodeSelectorRequirement(key=MODEL, operator="In", values=models)
    terms = (NodeSelectorTerm(match_expressions=(asked,)),)
    return Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=terms)))
