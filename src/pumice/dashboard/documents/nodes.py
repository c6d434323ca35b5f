"""Nodes: where there is room."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from pumice.api.annotations import HOSTNAME, NOT_READY_TAINTS, ZONE
from pumice.api.nodes import Node
from pumice.core.labels import UNSCHEDULABLE_TAINT
from pumice.core.resources import PODS, Resources, fits, need_of
from pumice.core.status import Status
from pumice.dashboard.documents.jobs import pod_word
from pumice.dashboard.documents.shared import Document, View, plain
from pumice.errors import InputError

_CLOSING: Final = ("NoSchedule", "NoExecute")
_MOST_VALUES: Final = 64
"""A label with more values than this cannot group nodes."""


def closed_reasons(node: Any) -> list[str]:
    """Return why a node takes no pods without a toleration; nothing if it does."""
    if not isinstance(node, Node):
        return []
    found = ["cordoned"] if node.spec.unschedulable else []
    ready = [each for each in node.status.conditions if each.type == "Ready"]
    taints = [each for each in node.spec.taints if each.effect in _CLOSING]
    if any(each.status != "True" for each in ready) or any(
        each.key in NOT_READY_TAINTS for each in taints
    ):
        found.insert(0, "not ready")
    keys = (each for each in taints if each.key not in (*NOT_READY_TAINTS, UNSCHEDULABLE_TAINT.key))
    return found + [f"taint {each.key}" for each in keys]


def nodes(view: View) -> Document:
    """Write all nodes in columns, for a map that may have very many cells."""
    columns = view.picture.nodes
    promised = _promised_amounts(view)
    closed = [closed_reasons(node) for node in columns.objects]
    rows = view.shown
    return {
        "resources": view.resources,
        "names": columns.names,
        "allocatable": [_plain_row(view, row, columns.allocatable[row]) for row in rows],
        "allocated": [_plain_row(view, row, columns.used[row]) for row in rows],
        "requested": [_plain_row(view, row, columns.used[row] + promised[row]) for row in rows],
        "measured": _measured(view),
        "closed": {str(i): found for i, found in enumerate(closed) if found},
        "groups": _groups(view),
        "queues": _queues_of_nodes(view),
    }


def _plain_row(view: View, row: int, amounts: Any) -> list[float | None]:
    name = view.picture.resources[row]
    return [plain(name, float(each)) for each in amounts.tolist()]


def _promised_amounts(view: View) -> Any:
    """Add up the room that the last cycle promised waiting pods on each node (R, N)."""
    picture = view.picture
    found = np.zeros_like(picture.nodes.used)
    if picture.promised:
        place = {name: row for row, name in enumerate(picture.nodes.names)}
        for row, key in enumerate(picture.pods.keys):
            node = place.get(picture.promised.get(key, ""))
            if node is not None:
                request = picture.pods.requests[int(picture.pods.shape[row])]
                found[: len(request), node] += request
    return found


def _measured(view: View) -> list[list[float | None]] | None:
    """Write the measured use of nodes in percent, by resource; None without measurements."""
    usage = view.picture.usage
    if not usage:
        return None
    names = view.picture.resources
    return [
        [usage.get(node, {}).get(names[row]) for node in view.picture.nodes.names]
        for row in view.shown
    ]


def _groups(view: View) -> list[Document]:
    """List the ways to group nodes: by label and by HyperNode, with the group of each node."""
    columns = view.picture.nodes
    labels: dict[str, set[str]] = {}
    for node in columns.objects:
        for key, value in node.metadata.labels.items():
            labels.setdefault(key, set()).add(value)
    most = min(_MOST_VALUES, max(1, len(columns.names) // 2))
    found = [
        {
            "by": key,
            "kind": "label",
            "of": [node.metadata.labels.get(key, "") for node in columns.objects],
        }
        for key, values in sorted(labels.items(), key=lambda label: (label[0] != ZONE, label[0]))
        if key != HOSTNAME and len(values) <= most
    ]
    return [*_hyper_nodes(view), *found]


def _hyper_nodes(view: View) -> list[Document]:
    tree = view.picture.nodes.tree
    if tree is None:
        return []
    by_tier: dict[int, list[str]] = {}
    n = len(view.picture.nodes.names)
    for row in range(n):
        home = tree.home(row)
        for domain in [] if home is None else home.lineage():
            if domain is not tree.top:
                by_tier.setdefault(domain.tier, [""] * n)[row] = domain.name
    return [
        {"by": f"HyperNode, tier {tier}", "kind": "hypernode", "of": of}
        for tier, of in sorted(by_tier.items())
    ]


def _queues_of_nodes(view: View) -> list[str]:
    """Return for each node the queue whose pods hold most of it; empty: none does."""
    picture = view.picture
    pods = picture.pods
    held = np.flatnonzero((pods.node >= 0) & (pods.job >= 0) & (pods.status != Status.GONE))
    if not len(held):
        return [""] * len(picture.nodes.names)
    whole = np.where(
        picture.nodes.allocatable.max(axis=1) > 0, picture.nodes.allocatable.max(axis=1), np.inf
    )
    weights = np.array([float(np.max(each / whole[: len(each)])) for each in pods.requests])
    queue = picture.jobs.queue[pods.job[held]]
    known = queue >= 0
    n_queues = max(1, len(picture.queues.names))
    cell = pods.node[held][known] * n_queues + queue[known]
    size = len(picture.nodes.names) * n_queues
    sums = np.bincount(cell, weights=weights[pods.shape[held][known]], minlength=size)
    table = sums.reshape(len(picture.nodes.names), n_queues)
    best = table.argmax(axis=1).tolist()
    return [
        picture.queues.names[at] or "" if table[row, at] > 0 else "" for row, at in enumerate(best)
    ]


def node(view: View, row: int) -> Document:
    """Write one node with its pods."""
    columns, pods = view.picture.nodes, view.picture.pods
    one: Node = columns.objects[row]
    held = np.flatnonzero((pods.node == row) & (pods.status != Status.GONE)).tolist()
    seen = [each for each in held if view.scope.sees(pods.keys[each])]
    return {
        "name": columns.names[row],
        "resources": view.resources,
        "allocatable": view.amounts(columns.allocatable[:, row]),
        "allocated": view.amounts(columns.used[:, row]),
        "leaving": view.amounts(columns.releasing[:, row]),
        "measured": view.picture.usage.get(columns.names[row]),
        "closed": closed_reasons(one),
        "labels": dict(sorted(one.metadata.labels.items())),
        "taints": [f"{t.key}={t.value}:{t.effect}".replace("=:", ":") for t in one.spec.taints],
        "hidden": len(held) - len(seen),
        "pods": [
            {
                "pod": pods.keys[each],
                "job": view.title_of_pod(each),
                "queue": _queue_of_pod(view, each),
                "state": pod_word(view, each),
                "asks": view.amounts(pods.requests[int(pods.shape[each])]),
            }
            for each in seen
        ],
    }


def _queue_of_pod(view: View, row: int) -> str:
    job = int(view.picture.pods.job[row])
    return view.queue_name(job) if job >= 0 and view.picture.jobs.objects[job] is not None else ""


def fit(view: View, shape: Mapping[str, str]) -> Document:
    """Compute the largest gang of equal pods that would find room now.

    Closed nodes do not count, and queues are ignored: this is about room alone.

    Raises:
        InputError: a resource that no node has, or an amount that cannot be read.
    """
    picture = view.picture
    resources = Resources()
    resources.learn(picture.resources)
    need = np.zeros(len(picture.resources))
    for name, amount in shape.items():
        row = resources.row(name)
        if row is None or row not in view.shown:
            known = ", ".join(each["name"] for each in view.resources)
            raise InputError(wanted=f"a resource that nodes have ({known})", found=name)
        need[row] = resources.amount(name, amount)
    need[PODS] = 1.0
    idle = picture.nodes.allocatable - picture.nodes.used
    takes = np.array([not closed_reasons(each) for each in picture.nodes.objects], dtype=bool)
    asked = need > 0
    each = np.floor((idle[asked] + 1e-6) / need[asked][:, None]).min(axis=0)
    has_room = fits(need_of(need[:, None]), idle) & takes
    each = np.where(has_room, np.maximum(each, 0), 0).astype(int)
    free = view.amounts(np.where(takes, np.maximum(idle, 0.0), 0.0).sum(axis=1))
    whole = np.where(takes, np.maximum(idle, 0.0), 0.0).sum(axis=1)
    unbroken = int(np.floor((whole[asked] + 1e-6) / need[asked]).min()) if asked.any() else 0
    return {
        "pods": int(each.sum()),
        "nodes": int((each > 0).sum()),
        "of": int(takes.sum()),
        "unbroken": unbroken,
        "each": each.tolist(),
        "free": free,
        "resources": view.resources,
    }
