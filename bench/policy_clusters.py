"""Additions of single policies to the clusters to time: configurations, objects and pod fields.

Used by ``bench.clusters``.
"""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from pumice.plugin import Column, Nodes, Plugin, Queue, Task

Manifest = dict[str, Any]

_PLACING = """actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
_EVICTING = """actions: "enqueue, allocate, {action}"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: predicates
  - name: {queues}
  - name: nodeorder
"""
_EXTENDER = """  - name: extender
    arguments:
      extender.urlPrefix: http://localhost:1
      extender.predicateVerb: predicate
      extender.prioritizeVerb: prioritize
"""
_USAGE = """  - name: usage
metrics:
  type: prometheus
  address: http://localhost:1
  interval: 30s
"""
CONFIGURATIONS = {
    **dict.fromkeys(("elastic", "soft-spread", "distinct", "hard-affinity"), _PLACING),
    "racks": _PLACING + "  - name: network-topology-aware\n",
    "usage": _PLACING + _USAGE,
    **{f"user-{hook}": _PLACING + f"  - name: {hook}\n" for hook in ("rank", "place", "overused")},
    "preempt": _EVICTING.format(action="preempt", queues="proportion"),
    "reclaim": _EVICTING.format(action="reclaim", queues="capacity"),
    "reclaim-queues": _EVICTING.format(action="reclaim", queues="capacity"),
    "gangpreempt": _EVICTING.format(action="gangpreempt", queues="proportion"),
    "gangreclaim": _EVICTING.format(action="gangreclaim", queues="capacity"),
    "topology-preempt": _EVICTING.format(action="preempt", queues="proportion")
    + """configurations:
- name: preempt
  arguments:
    enableTopologyAwarePreemption: true
""",
    "ports": _PLACING,
    "volumes": _PLACING,
    "numa": _PLACING + "  - name: numa-aware\n",
    "numa-idle": _PLACING + "  - name: numa-aware\n",
    "extender": _PLACING + _EXTENDER,
    "extender-shapes": _PLACING + _EXTENDER + "      extender.oneAnswerPerShape: true\n",
}
RECLAIMING = ("reclaim", "gangreclaim", "reclaim-queues")
"""Kinds for which other queues must lose pods."""
EVICTING = ("preempt", "gangpreempt", "topology-preempt", *RECLAIMING)
"""Kinds whose nodes are full."""
_APPS = 20
_NUMA_KINDS = ("numa", "numa-idle")
_NUMA_POLICY = "volcano.sh/numa-topology-policy"
_CPUS = 64
_STORAGE_CLASS = "local"


def objects(kind: str, nodes: int, pods: int) -> Iterator[Manifest]:
    """Make the objects of a policy besides nodes, queues and pods."""
    if kind in _NUMA_KINDS:
        yield from (_numa_topology(f"node-{i:05d}") for i in range(nodes))
    elif kind == "volumes":
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": _STORAGE_CLASS},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        yield from (_local_volume(i, f"node-{i % nodes:05d}") for i in range(pods * 2))


def _numa_topology(name: str) -> Manifest:
    """Lay out two sockets with two NUMA nodes each, two threads a core."""
    cores = _CPUS // 2
    detail = {
        str(cpu): {
            "numa": cpu % cores * 4 // cores,
            "socket": cpu % cores * 2 // cores,
            "core": cpu % cores,
        }
        for cpu in range(_CPUS)
    }
    return {
        "apiVersion": "nodeinfo.volcano.sh/v1alpha1",
        "kind": "Numatopology",
        "metadata": {"name": name},
        "spec": {
            "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "single-numa-node"},
            "numares": {"cpu": {"allocatable": f"2-{_CPUS - 1}", "capacity": _CPUS}},
            "resReserved": {"cpu": "2"},
            "cpuDetail": detail,
        },
    }


def _local_volume(i: int, node: str) -> Manifest:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    terms = [{"matchExpressions": [here]}]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"volume-{i:05d}"},
        "spec": {
            "capacity": {"storage": f"{10 + i % 3}Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": _STORAGE_CLASS,
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            "local": {"path": f"/disks/{i}"},
        },
        "status": {"phase": "Available"},
    }


def constrain(kind: str, pod: Manifest) -> Iterator[Manifest]:
    """Set the fields of a pending pod that its policy reads; make the objects it names."""
    meta, spec = pod["metadata"], pod["spec"]
    container = spec["containers"][0]
    if kind == "ports":
        container["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    elif kind == "distinct":
        number = sum(map(int, re.findall(r"\d+", meta["name"])))
        container["resources"]["requests"]["cpu"] = f"{1000 + number}m"
    elif kind == "soft-spread":
        mates = {"matchLabels": {"job": meta["labels"]["job"]}}
        spread = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": mates}
        keys = "zone", "kubernetes.io/hostname"
        spec["topologySpreadConstraints"] = [{**spread, "topologyKey": key} for key in keys]
    elif kind == "hard-affinity":
        app = {"app": f"a{int(meta['labels']['job'][3:]) % _APPS}"}
        meta["labels"] |= app
        wishes = {"podAffinity": "zone", "podAntiAffinity": "kubernetes.io/hostname"}
        spec["affinity"] = {
            what: {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": {"matchLabels": app}, "topologyKey": key}
                ]
            }
            for what, key in wishes.items()
        }
    elif kind == "numa":
        container["resources"]["limits"] = dict(container["resources"]["requests"])
        meta["annotations"][_NUMA_POLICY] = "single-numa-node"
    elif kind == "volumes":
        claim = {"name": "disk", "persistentVolumeClaim": {"claimName": meta["name"]}}
        spec["volumes"] = [claim]
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": _STORAGE_CLASS,
                "resources": {"requests": {"storage": "10Gi"}},
            },
            "status": {"phase": "Pending"},
        }


class Rank(Plugin, name="rank"):
    """Prefers low rows, by comparing candidates; declares nothing."""

    def rank_nodes(self, task: Task, nodes: Nodes) -> Column:
        """Score the candidates against each other."""
        del task
        return -np.argsort(np.argsort(nodes.index)) / max(1, len(nodes))


class Place(Plugin, name="place"):
    """Follows placements; declares nothing."""

    def on_place(self, task: Task, node: int) -> None:
        """Do nothing."""


class Overused(Plugin, name="overused"):
    """Asks each queue; declares nothing."""

    def overused(self, queue: Queue) -> bool:
        """Return that none is, reading what it holds."""
        return bool(queue.allocated[0] < 0)


PLUGINS = {each.name: each for each in (Rank, Place, Overused)}
"""Plugins of users."""


class StillExtender:
    """An extender that takes no time: every third node is refused, low names are better."""

    def post(self, verb: str, payload: Any, *, answer: bool = True) -> Manifest:  # noqa: ARG002
        """Answer a call."""
        if verb == "predicate":
            number = int(payload["node"]["Name"].rpartition("-")[2])
            return {"status": "odd", "code": 3} if number % 3 == 2 else {}
        names = [node["Name"] for node in payload["nodes"]]
        return {"nodeScore": {name: float(int(name[-3:]) % 7) for name in names}}
