"""The plan ahead of now: starts that jobs are promised, and the ends of running jobs."""

from typing import Any, Final

import numpy as np

from pumice.api.run_times import run_time
from pumice.api.times import epoch
from pumice.core.status import ALLOCATED_CLASS
from pumice.core.tables import NOWHERE
from pumice.dashboard.view import RUNNING, Document, View

_MOST: Final = 20
"""Promised starts, and ends, that are shown: the nearest."""
_HOLDS: Final = sorted(ALLOCATED_CLASS)


def ahead(view: View) -> list[Document]:
    """Write running jobs by their ends, then promised ones by their starts; none if none is.

    ``until`` is None where nobody states how long a job runs.
    """
    reserved = [(found, row) for row in view.job_rows if (found := view.reservation(row))]
    if not reserved:
        return []
    starts = sorted((max(each.seconds, view.picture.now), row) for each, row in reserved)[:_MOST]
    ends = sorted(_ends(view).items(), key=lambda item: item[1])[:_MOST]
    lines = [_line(view, row, None, end) for row, end in ends]
    for start, row in starts:
        longest = _longest(view, row, NOWHERE)
        end = None if longest is None else start + longest
        lines.append(_line(view, row, start, end))
    return lines


def _line(view: View, row: int, start: float | None, end: float | None) -> Document:
    found = view.reservation(row)
    line = {"job": view.titles[row], "queue": view.queue_name(row), "from": start, "until": end}
    return {**line, "nodes": list(found.nodes) if found else []}


def _ends(view: View) -> dict[int, float]:
    """Return when running jobs will have ended, those of which that is known."""
    pods, states, found = view.picture.pods, view.states, {}
    first: dict[int, int] = {}
    for pod in np.flatnonzero(np.isin(pods.status, _HOLDS)).tolist():
        first.setdefault(int(pods.job[pod]), pod)
    for row in view.job_rows:
        if states[row] == RUNNING and row in first:
            held: Any = pods.objects[first[row]]
            longest, begun = _longest(view, row, first[row]), held.status.start_time
            if longest is not None and begun:
                found[row] = max(epoch(begun) + longest, view.picture.now)
    return found


def _longest(view: View, row: int, pod: int) -> float | None:
    picture = view.picture
    queue = int(picture.jobs.queue[row])
    one: Any = picture.pods.objects[pod] if pod != NOWHERE else None
    objects = [one, picture.jobs.objects[row]]
    objects += [] if queue == NOWHERE else [picture.queues.objects[queue]]
    places = [each.metadata.annotations for each in objects if each is not None]
    deadline = None if one is None else one.spec.active_deadline_seconds
    return run_time(places, deadline).longest
