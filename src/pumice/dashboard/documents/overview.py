"""The first page: is it healthy, and which jobs suffer."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from pumice.core.status import ALLOCATED_CLASS, Status
from pumice.dashboard.documents.nodes import closed_reasons
from pumice.dashboard.documents.shared import WAITING, Document, View
from pumice.dashboard.feed import CycleRecord, Sample

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
