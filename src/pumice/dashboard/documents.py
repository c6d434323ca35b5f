"""The documents of the pages: plain data for JSON, each made of a view of one picture."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from pumice.api.annotations import HOSTNAME, NOT_READY_TAINTS, ZONE
from pumice.api.groups import Queue
from pumice.api.kinds import Manifest
from pumice.api.nodes import Node
from pumice.api.pods import Pod
from pumice.api.times import epoch_or_zero, lenient_epoch
from pumice.core.labels import UNSCHEDULABLE_TAINT
from pumice.core.resources import PODS, Column, Resources, fits, need_of
from pumice.core.status import ALLOCATED_CLASS, PHASES, Status
from pumice.core.tables import NOWHERE
from pumice.dashboard.ahead import ahead
from pumice.dashboard.feed import CycleRecord, Sample
from pumice.dashboard.view import WAITING, Document, View, plain, seconds
from pumice.errors import InputError
from pumice.framework.plugin_declarations import AccountShare

_EVENTS: Final = 100
_PODS: Final = 12_000
"""Pods of a job that are listed; a page shows how many more there are."""
_WORDS: Final = {
    Status.PENDING: "waiting",
    Status.PIPELINED: "promised",
    Status.RELEASING: "leaving",
    Status.SUCCEEDED: "finished",
    Status.FAILED: "failed",
    Status.UNKNOWN: "unknown",
}


def jobs(view: View) -> Document:
    """Write all jobs in columns, for a table that may have very many rows."""
    columns, rows = view.picture.jobs, view.job_rows
    at = np.array(rows, dtype=np.intp)
    counts = columns.counts[:, at] if rows else columns.counts[:, :0]
    promised = _promised(view)
    pairs = [(row, view.states[row] == WAITING) for row in rows]
    causes = [view.cause(row) if waits else ("", "") for row, waits in pairs]
    starts = [view.start(row) if waits else (None, "") for row, waits in pairs]
    return {
        "job": [view.titles[row] for row in rows],
        "queue": [view.queue_name(row) for row in rows],
        "state": [view.states[row] for row in rows],
        "phase": [PHASES[code] for code in columns.phase[at].tolist()] if rows else [],
        "priority": columns.priority[at].tolist() if rows else [],
        "created": columns.created[at].tolist() if rows else [],
        "min": columns.min_member[at].tolist() if rows else [],
        "pods": (counts.sum(axis=0) - counts[Status.GONE]).tolist(),
        "bound": (view.held[at] if rows else at).tolist(),
        "done": counts[Status.SUCCEEDED].tolist(),
        "failed": counts[Status.FAILED].tolist(),
        "leaving": counts[Status.RELEASING].tolist(),
        "promised": [promised.get(row, 0) for row in rows],
        "code": [code for code, _ in causes],
        "why": [text for _, text in causes],
        "start": [at for at, _ in starts],
        "startText": [text for _, text in starts],
        "reserved": [view.reservation(row) is not None for row in rows],
        "ahead": ahead(view),
    }


def _promised(view: View) -> dict[int, int]:
    """Count by job the pods that the last cycle promised a node."""
    if not view.picture.promised:
        return {}
    found: dict[int, int] = {}
    for key, job in zip(view.picture.pods.keys, view.picture.pods.job.tolist(), strict=True):
        if key in view.picture.promised:
            found[job] = found.get(job, 0) + 1
    return found


def job(
    view: View, row: int, cycles: Sequence[CycleRecord], events: Iterable[Manifest]
) -> Document:
    """Write one job with its pods and what happened to it."""
    columns, picture = view.picture.jobs, view.picture
    group = columns.objects[row]
    pods = np.flatnonzero(picture.pods.job == row)
    pods = pods[picture.pods.status[pods] != Status.GONE]
    order = sorted(pods.tolist(), key=lambda each: _natural(picture.pods.keys[each]))
    code, text = view.cause(row) if view.states[row] == WAITING else ("", "")
    names = {key: key for key in (view.titles[row], *(picture.pods.keys[each] for each in order))}
    return {
        "job": view.titles[row],
        "group": columns.keys[row],
        "queue": view.queue_name(row),
        "state": view.states[row],
        "phase": PHASES[int(columns.phase[row])],
        "priority": int(columns.priority[row]),
        "priorityClass": group.spec.priority_class_name,
        "created": float(columns.created[row]),
        "min": int(columns.min_member[row]),
        "code": code,
        "why": text,
        "resources": view.resources,
        "allocated": view.amounts(columns.allocated[:, row]),
        "pending": view.amounts(columns.pending[:, row] + view.unmade_amounts[:, row]),
        "total": len(order),
        "pods": [_pod(view, each) for each in order[:_PODS]],
        "conditions": [
            {"type": one.type, "reason": one.reason, "message": one.message, "status": one.status}
            for one in group.status.conditions
        ],
        "events": _events(events, {**names, columns.keys[row]: view.titles[row]}),
        "decisions": _decisions(cycles, {picture.pods.keys[each] for each in order}),
    }


def _natural(key: str) -> tuple[str, int]:
    stem, _, number = key.rpartition("-")
    return (stem, int(number)) if number.isascii() and number.isdigit() else (key, -1)


def _pod(view: View, row: int) -> Document:
    pods = view.picture.pods
    pod, node = pods.objects[row], int(pods.node[row])
    key = pods.keys[row]
    status = pod_word(view, row)
    return {
        "pod": key.partition("/")[2],
        "state": status,
        "node": view.picture.nodes.names[node] if node != NOWHERE else "",
        "promised": view.picture.promised.get(key, ""),
        "asks": view.amounts(pods.requests[int(pods.shape[row])]),
        "created": epoch_or_zero(pod.metadata.creation_timestamp) if isinstance(pod, Pod) else 0,
        "gates": len(pod.spec.scheduling_gates) if isinstance(pod, Pod) else 0,
    }


def pod_word(view: View, row: int) -> str:
    """Return the state of a pod in one word."""
    pods = view.picture.pods
    status = Status(int(pods.status[row]))
    if status is Status.PENDING and pods.keys[row] in view.picture.promised:
        return "promised"
    if status in ALLOCATED_CLASS:
        return "running" if status is Status.RUNNING else "starting"
    return _WORDS.get(status, "unknown")


def _events(events: Iterable[Manifest], names: Mapping[str, str]) -> list[Document]:
    """List the events about a job, its pod group and its pods, the latest first.

    ``names`` are the objects, with their display names.  Equal events about several pods are one.
    """
    found: dict[tuple[str, ...], Document] = {}
    for event in events:
        about = event.get("involvedObject") or {}
        key = f"{about.get('namespace')}/{about.get('name')}"
        if key not in names:
            continue
        kind, name = str(about.get("kind", "")), names[key].partition("/")[2]
        message = str(event.get("message", ""))
        words = (kind, str(event.get("type", "")), str(event.get("reason", "")))
        row = found.setdefault(
            (*words, message.replace(str(about.get("name")), "")),
            {
                "at": 0.0,
                **dict(zip(("kind", "type", "reason"), words, strict=True)),
                "name": name,
                "names": set(),
                "message": message,
                "count": 0,
            },
        )
        last = event.get("lastTimestamp") or event.get("eventTime") or ""
        at = lenient_epoch(str(last)) if last else 0.0
        if at >= row["at"]:
            row |= {"at": at, "name": name, "message": message}
        row["names"].add(name)
        row["count"] += int(event.get("count") or 1)
    rows = sorted(found.values(), key=lambda each: -float(each["at"]))[:_EVENTS]
    return [{**each, "names": len(each["names"])} for each in rows]


def _decisions(cycles: Sequence[CycleRecord], pods: set[str]) -> list[dict[str, Any]]:
    """List the cycles that decided something about some pods."""
    found = []
    for cycle in cycles:
        decided = cycle.decisions
        bound = sorted(pods & decided.binds.keys())
        lost = [pod for pod in decided.evictions if pod in pods]
        if bound or lost:
            found.append(
                {"cycle": cycle.number, "at": cycle.at, "bound": len(bound), "evicted": len(lost)}
            )
    return found[::-1]


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


_LONGEST: Final = 5
_HOUR_S: Final = 3600.0
_MINUTE_S: Final = 60.0
_LATEST: Final = 8
_POD_STATES: Final = {
    "running": sorted(ALLOCATED_CLASS),
    "waiting": [Status.PENDING, Status.PIPELINED],
    "leaving": [Status.RELEASING],
    "finished": [Status.SUCCEEDED],
    "failed": [Status.FAILED],
}


def overview(
    view: View, cycles: Sequence[CycleRecord], samples: Sequence[Sample], *, decides: bool
) -> Document:
    """Sum a cluster up."""
    picture = view.picture
    used, total = picture.nodes.used.sum(axis=1), picture.nodes.allocatable.sum(axis=1)
    amounts = zip(view.resources, view.amounts(used), view.amounts(total), strict=True)
    return {
        "resources": [
            {**resource, "used": have, "total": whole}
            for resource, have, whole in (amounts if view.scope.cluster else ())
        ],
        "jobs": dict(Counter(view.states[row] for row in view.job_rows)),
        "pods": _pods(view),
        "nodes": _nodes(view) if view.scope.cluster else None,
        "longest": [_waiting_job(view, row) for row in view.waiting_rows[:_LONGEST]],
        "causes": _causes(view),
        "history": _history(view, samples),
        "cycles": _cycles(cycles, picture.now),
        "evictions": evictions(view, cycles, picture.now) if decides else None,
    }


def _pods(view: View) -> dict[str, int]:
    pods, sees = view.picture.pods, view.scope.sees
    visible = np.array([bool(key) and sees(key) for key in pods.keys], dtype=bool)
    status = pods.status[visible] if len(visible) else pods.status
    found = {name: int(np.isin(status, codes).sum()) for name, codes in _POD_STATES.items()}
    found["waiting"] += int(view.unmade[view.job_rows].sum())
    return found


def _nodes(view: View) -> Document:
    reasons = [closed_reasons(node) for node in view.picture.nodes.objects]
    closed = Counter(reason for found in reasons for reason in found[:1])
    return {"total": len(reasons), "closed": dict(closed)}


def _waiting_job(view: View, row: int) -> Document:
    code, text = view.cause(row)
    return {
        "job": view.titles[row],
        "queue": view.queue_name(row),
        "created": float(view.picture.jobs.created[row]),
        "code": code,
        "text": text,
    }


def _causes(view: View) -> list[Document]:
    """Count waiting jobs by their decisive cause, the most frequent first."""
    counted = Counter(view.cause(row)[0] for row in view.job_rows if view.states[row] == WAITING)
    return [{"code": code, "jobs": jobs} for code, jobs in counted.most_common()]


def _history(view: View, samples: Sequence[Sample]) -> Document:
    """Lay out the part of each resource in use over the last hour; None is a gap."""
    recent = [each for each in samples if each.at >= view.picture.now - _HOUR_S]
    times = [round(each.at, 1) for each in recent]
    steps = np.median(np.diff(times)) if len(times) > 1 else 0.0
    parts: list[list[float | None]] = []
    for row in view.shown:
        line: list[float | None] = []
        for each in recent:
            known = row < len(each.total) and each.total[row] > 0
            line.append(round(float(each.used[row] / each.total[row]), 4) if known else None)
        parts.append(line)
    gaps = [
        after for before, after in pairwise(times) if after - before > max(60.0, 10 * float(steps))
    ]
    return {"times": times, "parts": parts, "gaps": gaps, "waiting": [s.waiting for s in recent]}


def _cycles(cycles: Sequence[CycleRecord], now: float) -> Document:
    recent = [each for each in cycles if each.at > now - _MINUTE_S] or list(cycles[-1:])
    took = np.array([each.took_s for each in recent])
    if not len(took):
        return {"perMinute": None, "mean": None, "longest": None}
    return {
        "perMinute": _per_minute(cycles, now),
        "mean": round(float(took.mean()), 6),
        "longest": round(float(took.max()), 6),
    }


def _per_minute(cycles: Sequence[CycleRecord], now: float) -> float | None:
    """Return how many cycles a minute has: over the last minute, or as far as cycles are known.

    Only so many cycles are remembered, so that fast ones may cover less than a minute.
    None: one cycle has no rate.
    """
    until = max(now, cycles[-1].at)
    since = max(until - _MINUTE_S, cycles[0].at)
    if until <= since:
        return None
    counted = sum(each.at > since for each in cycles)
    return round(counted * _MINUTE_S / (until - since), 1)


def evictions(view: View, cycles: Sequence[CycleRecord], now: float) -> Document:
    """Count the evictions of the last hour and list the latest ones."""
    found = [
        entry
        for cycle in cycles
        if cycle.at > now - _HOUR_S and not cycle.dropped
        for entry in evicted_in(cycle)
        if view.scope.sees(entry["pod"])
    ]
    return {"hour": len(found), "latest": found[-_LATEST:][::-1]}


def evicted_in(cycle: CycleRecord) -> list[dict[str, Any]]:
    """List the evictions of a cycle: the pod, by which action, and for whom."""
    decisions = cycle.decisions
    return [
        {
            "at": cycle.at,
            "cycle": cycle.number,
            "pod": pod,
            "job": cycle.jobs.get(pod, ""),
            "action": decisions.evicted_by.get(pod, ""),
            "for": cycle.jobs.get(whom, whom),
        }
        for pod in decisions.evictions
        for whom in (decisions.beneficiaries.get(pod, ""),)
    ]


_LISTED: Final = 500
"""Binds of one cycle that are listed; a page shows how many more there are."""


def cycles(view: View, records: Sequence[CycleRecord], moments: Collection[int]) -> Document:
    """Write the last cycles, the latest first, each in a line."""
    return {
        "actions": list(view.picture.actions),
        "cycles": [_line(each, moments) for each in reversed(records)],
    }


def _line(record: CycleRecord, moments: Collection[int]) -> Document:
    decided = record.decisions
    return {
        "number": record.number,
        "at": record.at,
        "took": seconds(record.took_s),
        "actions": [[name, seconds(took)] for name, took in record.actions],
        "binds": len(decided.binds),
        "evictions": len(decided.evictions),
        "promised": len(decided.pipelined),
        "moment": record.number in moments,
        "trouble": bool(record.failed or decided.failures or record.dropped),
    }


def cycle(view: View, record: CycleRecord, moments: Collection[int]) -> Document:
    """Write one cycle with all its decisions."""
    decided, sees = record.decisions, view.scope.sees
    binds = {pod: node for pod, node in decided.binds.items() if sees(pod)}
    return {
        **_line(record, moments),
        "plugins": [
            [name, seconds(took)] for name, took in sorted(record.plugins, key=lambda p: -p[1])
        ],
        "started": _started(binds, record.jobs),
        "bound": [{"pod": pod, "node": node} for pod, node in list(binds.items())[:_LISTED]],
        "moreBound": max(0, len(binds) - _LISTED),
        "evicted": [each for each in evicted_in(record) if sees(each["pod"])],
        "left": [
            {"job": record.jobs.get(key, key), "text": text}
            for key, text in decided.explanations.items()
            if sees(key)
        ],
        "dropped": record.dropped,
        "failed": list(record.failed),
        "failures": list(decided.failures),
    }


def _started(binds: dict[str, str], jobs: Mapping[str, str]) -> list[dict[str, Any]]:
    """Count by job the pods that got a node."""
    counted = Counter(jobs.get(pod, "") for pod in binds)
    return [{"job": job, "pods": pods} for job, pods in counted.most_common()]


def queues(view: View) -> Document:
    """Write all queues, each under its parent, in the order of their names."""
    columns = view.picture.queues
    rows = [row for row, one in enumerate(columns.objects) if isinstance(one, Queue)]
    jobs: dict[int, Counter[str]] = {}
    for row in view.job_rows:
        queue = int(view.picture.jobs.queue[row])
        jobs.setdefault(queue, Counter())[view.states[row]] += 1
    children: dict[int, list[int]] = {}
    for row in sorted(rows, key=lambda each: columns.names[each]):
        parent = int(columns.parent[row])
        home = parent if parent in rows and parent != row else NOWHERE
        children.setdefault(home, []).append(row)
    ordered: list[tuple[int, int]] = []
    _walk(children, NOWHERE, 0, ordered, set())
    ordered += [(row, 0) for row in rows if row not in {each for each, _ in ordered}]
    total = view.picture.nodes.allocatable.sum(axis=1)
    for row, _ in reversed(ordered):  # children come after their parents
        home = int(columns.parent[row])
        if home in rows and home != row and row in jobs:
            jobs[home] = jobs.get(home, Counter()) + jobs[row]
    asked = columns.request + _unmade(view)
    return {
        "resources": view.resources,
        "total": view.amounts(total),
        "divides": columns.deserved is not None,
        "remembers": bool(columns.fair),
        "queues": [
            {
                **_queue(view, row, depth, jobs.get(row, Counter())),
                "request": view.amounts(asked[:, row]),
                "leaf": row not in children,
            }
            for row, depth in ordered
        ],
    }


def _unmade(view: View) -> Column:
    """Add up by queue what pods will ask for that are not made yet (R, Q), as ``request`` is."""
    found = np.zeros_like(view.picture.queues.request)
    for row in np.flatnonzero(view.unmade).tolist():
        queue = int(view.picture.jobs.queue[row])
        if queue != NOWHERE:
            found[:, queue] += view.unmade_amounts[:, row]
    return view.picture.queues.tree.sum_up(found)


def _walk(
    children: dict[int, list[int]],
    parent: int,
    depth: int,
    out: list[tuple[int, int]],
    seen: set[int],
) -> None:
    """List queues under their parents; a cycle is cut."""
    for row in children.get(parent, ()):
        if row not in seen:
            seen.add(row)
            out.append((row, depth))
            _walk(children, row, depth + 1, out, seen)


def _queue(view: View, row: int, depth: int, jobs: Counter[str]) -> Document:
    columns = view.picture.queues
    queue: Queue = columns.objects[row]
    parent = int(columns.parent[row])
    deserved = None if columns.deserved is None else columns.deserved[:, row]
    return {
        "name": columns.names[row],
        "parent": columns.names[parent] if parent != NOWHERE else "",
        "depth": depth,
        "state": queue.status.state or "Open",
        "weight": int(columns.weight[row]),
        "reclaimable": queue.spec.reclaimable is not False,
        "allocated": view.amounts(columns.allocated[:, row]),
        "guarantee": view.amounts(columns.guarantee[:, row]),
        "capability": view.amounts(columns.capability[:, row]),
        "deserved": None if deserved is None else view.amounts(deserved),
        "share": _finite(columns.share, row) if deserved is not None and deserved.any() else None,
        "jobs": dict(jobs),
        **_fair(columns.fair.get(columns.names[row])),
    }


def _fair(account: AccountShare | None) -> Document:
    """Write what a queue used lately and its factor, where a plugin remembers it."""
    if account is None:
        return {"used": None, "factor": None}
    return {"used": round(account.share, 4), "factor": round(account.factor, 4)}


def _finite(column: Any, row: int) -> float | None:
    if column is None or not np.isfinite(column[row]):
        return None
    return round(float(column[row]), 4)
