"""Queues: what each holds, and what it is owed."""

from collections import Counter
from typing import Any

import numpy as np

from pumice.api.groups import Queue
from pumice.core.resources import Column
from pumice.core.tables import NOWHERE
from pumice.dashboard.documents.shared import Document, View


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
    }


def _finite(column: Any, row: int) -> float | None:
    if column is None or not np.isfinite(column[row]):
        return None
    return round(float(column[row]), 4)
