"""Jobs: what runs, what waits, and why."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from pumice.api.kinds import Manifest
from pumice.api.pods import Pod
from pumice.api.times import epoch_or_zero, lenient_epoch
from pumice.core.status import ALLOCATED_CLASS, PHASES, Status
from pumice.core.tables import NOWHERE
from pumice.dashboard.documents.shared import WAITING, Document, View
from pumice.dashboard.feed import CycleRecord

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
