"""Random small clusters and configurations, and tables described without row numbers."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from pumice.api.conf import parse_conf
from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.testing import node, pod, pod_group, priority_class, queue

GPU = "nvidia.com/gpu"
ZONE = "zone"
QUEUES = ("blue", "green", "red")
ACTIONS = ("enqueue", "allocate", "backfill", "preempt", "reclaim")
FURTHER = (
    "cdp",
    "nodegroup",
    "numa-aware",
    "pdb",
    "resource-strategy-fit",
    "resourcequota",
    "sla",
    "task-topology",
    "tdm",
    "usage",
)
CPU_STEPS = (0, 250, 500, 1000, 1500)
_TAINT = {"key": "dedicated", "value": "yes", "effect": "NoSchedule"}
_TOLERATION = {"key": "dedicated", "operator": "Exists"}


def _time(second: Any) -> str:
    return f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}Z"


@st.composite
def queues(draw: Any) -> Any:
    made = []
    for i, name in enumerate(draw(st.sets(st.sampled_from(QUEUES), min_size=1)) | {"default"}):
        limit = draw(st.sampled_from([None, {"cpu": 2}, {"cpu": 4, "memory": "4Gi"}, {GPU: 1}]))
        made.append(
            queue(
                name,
                weight=draw(st.integers(1, 4)),
                capability=limit,
                deserved=draw(st.sampled_from([None, {"cpu": 1, "memory": "2Gi"}, {"cpu": 3}])),
                reclaimable=draw(st.booleans()),
                created=_time(i),
            )
        )
    return sorted(made, key=lambda manifest: manifest["metadata"]["name"])


@st.composite
def nodes(draw: Any, name: Any) -> Any:
    return node(
        name,
        cpu=draw(st.sampled_from([1, 2, 4])),
        memory=f"{draw(st.sampled_from([2, 4, 8]))}Gi",
        pods=draw(st.sampled_from([2, 4, 110])),
        labels={ZONE: draw(st.sampled_from("ab"))},
        taints=[_TAINT] if draw(st.integers(0, 5)) == 5 else [],
        unschedulable=draw(st.integers(0, 9)) == 9,
        resources={GPU: 2} if draw(st.integers(0, 3)) == 3 else None,
    )


@st.composite
def wishes(draw: Any) -> Any:
    """Common fields of a job's pods besides cpu."""
    spec: dict[str, Any] = {}
    labels = {"app": draw(st.sampled_from("xy"))}
    rule: Any
    others = {"labelSelector": {"matchLabels": {"app": draw(st.sampled_from("xy"))}}}
    term = {**others, "topologyKey": draw(st.sampled_from([ZONE, "kubernetes.io/hostname"]))}
    kind = draw(st.sampled_from(["plain"] * 6 + ["zone", "tolerant", "apart", "near", "even"]))
    if kind == "zone":
        spec["nodeSelector"] = {ZONE: draw(st.sampled_from("ab"))}
    elif kind == "tolerant":
        spec["tolerations"] = [_TOLERATION]
    elif kind == "apart":
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        spec["affinity"] = {"podAntiAffinity": rule}
    elif kind == "near":
        rule = [{"weight": 10, "podAffinityTerm": term}]
        spec["affinity"] = {
            "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": rule}
        }
    elif kind == "even":
        rule = {**others, "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
        spec["topologySpreadConstraints"] = [rule]
    return {"labels": labels, "spec": spec}


class Room:
    """Free amounts of the nodes, so that running pods fit."""

    def __init__(self, manifests: Any) -> None:
        self.free = {}
        for manifest in manifests:
            offer = manifest["status"]["allocatable"]
            memory = int(offer["memory"].removesuffix("Gi"))
            self.free[manifest["metadata"]["name"]] = [
                int(offer["cpu"]) * 1000,
                memory,
                int(offer["pods"]),
                int(offer.get(GPU, 0)),
            ]

    def take(self, name: Any, need: Any) -> bool:
        """Take an amount if it is there."""
        free = self.free[name]
        if any(have < want for have, want in zip(free, need, strict=True)):
            return False
        self.free[name] = [have - want for have, want in zip(free, need, strict=True)]
        return True


@st.composite
def jobs(draw: Any, number: Any, queue_names: Any, room: Any) -> Any:
    name, namespace = f"j{number}", draw(st.sampled_from(["default", "team"]))
    size = draw(st.integers(1, 7))
    cpu, memory = draw(st.sampled_from(CPU_STEPS)), draw(st.sampled_from([0, 1, 2]))
    gpu = draw(st.integers(0, 4)) == 4
    shared = draw(wishes())
    level = draw(st.sampled_from(["low", "high"]))
    running = draw(st.integers(0, 2)) == 2
    roles = draw(st.sampled_from([None, ["main"] * size, (["ps"] + ["main"] * size)[:size]]))
    minima = {role: draw(st.integers(0, roles.count(role))) for role in dict.fromkeys(roles or ())}
    group = pod_group(
        name,
        namespace=namespace,
        min_member=draw(st.integers(1, size)),
        min_task_member=minima,
        queue=draw(st.sampled_from(queue_names)),
        phase="Running" if running else draw(st.sampled_from(["Pending", "Inqueue"])),
        priority_class=level,
        created=_time(number),
    )
    members = []
    for i in range(size):
        home = draw(st.sampled_from(sorted(room.free))) if running else None
        need = [cpu, memory, 1, int(gpu)]
        members.append(
            pod(
                f"{name}-main-{i}",
                namespace=namespace,
                group=name,
                cpu=f"{cpu}m" if cpu else None,
                memory=f"{memory}Gi" if memory else None,
                resources={GPU: 1} if gpu else None,
                node=home if home and room.take(home, need) else None,
                priority=1000 if level == "high" else 1,
                preemptable=draw(st.booleans()),
                created=_time(60 + number),
                role=roles[i] if roles else None,
                **shared,
            )
        )
    return [group, *members]


@st.composite
def clusters(draw: Any, max_nodes: Any = 4, max_jobs: Any = 4) -> Any:
    """A whole cluster as manifests; what runs fits where it runs."""
    made = draw(queues())
    names = [manifest["metadata"]["name"] for manifest in made]
    hosts = [draw(nodes(f"n{i}")) for i in range(draw(st.integers(1, max_nodes)))]
    room = Room(hosts)
    objects = [priority_class("low", value=1), priority_class("high", value=1000), *made, *hosts]
    for number in range(draw(st.integers(1, max_jobs))):
        objects += draw(jobs(number, names, room))
    return objects


def conf_of(actions: Any, *tiers: Any) -> Any:
    lines = [f'actions: "{", ".join(actions)}"', "tiers:"]
    for tier in tiers:
        lines += ["- plugins:", *(f"  - name: {name}" for name in tier)]
    return parse_conf("\n".join(lines))


@st.composite
def confs(draw: Any, actions: Any = ACTIONS, must: Any = (), *, wide: bool = False) -> Any:
    """A configuration of shipped plugins; allocate is always there, and what must be."""

    def chosen(names: Any) -> Any:
        return [name for name in names if name in must or draw(st.booleans())]

    kept = [name for name in actions if name == "allocate" or draw(st.booleans())]
    keeper = draw(st.sampled_from([["proportion"], ["capacity"], []]))
    first = chosen(["priority", "gang", "conformance"])
    second = [
        *chosen(["overcommit", "drf"]),
        "predicates",
        *([] if set(must) & {"proportion", "capacity"} else keeper),
        *[name for name in must if name in ("proportion", "capacity")],
        *chosen(["nodeorder", "binpack"]),
    ]
    further = draw(st.sets(st.sampled_from(FURTHER), max_size=3)) if wide else ()
    return conf_of(
        kept, *([first] if first else []), second, *([sorted(further)] if further else [])
    )


def described(snapshot: Any) -> Any:
    """Return the content of all tables by names only, so that row numbers do not matter."""
    shapes = [
        (_amounts(snapshot, shape.request[:, 0]), shape.namespace) for shape in snapshot.shapes
    ]
    classes = [(space, sorted(labels.items())) for space, labels in snapshot.label_classes]
    names = {
        "node": snapshot.nodes.names,
        "nominated": snapshot.nodes.names,
        "job": snapshot.jobs.keys,
        "shape": shapes,
        "label_class": classes,
        "role": snapshot.roles,
        "queue": snapshot.queues.names,
        "parent": snapshot.queues.names,
        "namespace": snapshot.namespaces.names,
        "taint_class": snapshot.taint_sets,
    }
    out = {}
    for kind in ("nodes", "tasks", "jobs", "queues", "namespaces"):
        table = getattr(snapshot, kind)
        for name, row in table.row_of.items():
            cells = {
                column: _cell(
                    snapshot,
                    getattr(table, column)[..., row],
                    names.get(column),
                    amounts="R" in lead,
                )
                for column, (lead, _, _) in table._columns.items()
            }
            if kind != "namespaces" or any(cells["sums"].values()):
                out[kind, name] = cells
        if kind in ("nodes", "jobs"):
            for name, row in table.row_of.items():
                out[kind, name]["tasks"] = sorted(snapshot.tasks.keys[t] for t in table.tasks[row])
    for key, row in snapshot.tasks.row_of.items():
        spec = snapshot.shapes[snapshot.tasks.shape[row]].spec
        out["tasks", key] |= {"pod": snapshot.tasks.pods[row], "containers": spec.containers}
    for key, row in snapshot.jobs.row_of.items():
        out["jobs", key]["group"] = snapshot.jobs.groups[row]
    return out


def _cell(snapshot: Any, cell: Any, names: Any, *, amounts: Any) -> Any:
    if names is not None:
        return None if cell == NOWHERE else names[int(cell)]
    if amounts:
        layers = cell.reshape(-1, len(snapshot.resources))
        return {i: _amounts(snapshot, layer) for i, layer in enumerate(layers)}
    return str(cell.tolist())


def _amounts(snapshot: Any, column: Any) -> Any:
    named = zip(snapshot.resources.names, column.tolist(), strict=True)
    return {name: amount for name, amount in named if amount and amount != np.inf}


def pending(snapshot: Any) -> Any:
    return np.flatnonzero(snapshot.tasks.status == Status.PENDING).tolist()
