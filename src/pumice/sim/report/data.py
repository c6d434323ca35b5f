"""The data of a report's charts."""

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pumice.core.resources import MEMORY, PODS, Column
from pumice.sim.event_log import EventKind
from pumice.sim.job_run import JobRun
from pumice.sim.log_columns import Matrix
from pumice.sim.measure import Measures

N_BARS = 64
"""Jobs in the Gantt chart, at most."""
N_ROWS = 320
"""Rows of the heat map, at most; more nodes are averaged in groups."""
N_QUEUES = 12
N_COLOURS = 12
_STEPS = 200
"""Steps of the curve of waits, at most, for each configuration."""
_NO_NODE = 255
"""The cell of a node that does not have the resource at all."""


def chart_data(measured: Sequence[Measures]) -> dict[str, Any]:
    """Gather the data of all charts, for one or more configurations of one workload."""
    first = measured[0]
    chosen = choose_bars(first)
    charts = [gantt(each, chosen) for each in measured]
    if len(chosen) < len(first.outcome.runs):
        for chart in charts:
            chart["window"] = window(charts)
    return {
        "edges": _floats(first.bins.edges, 1),
        "resources": [
            {
                "name": first.resources[i],
                "unit": unit(first.resources[i], i),
                "total": round(float(first.total[i]) / scale(i), 3),
            }
            for i in first.shown
        ],
        "main": first.shown.index(first.main_resource),
        "waits": waits([each.waits() for each in measured], len(first.outcome.runs)),
        "queues": top_queues(measured),
        "configurations": [
            {**_configuration(each, measured), "gantt": chart}
            for each, chart in zip(measured, charts, strict=True)
        ],
    }


def scale(row: int) -> float:
    """Return the divisor of an amount of the tables for display: cores, GiB, devices."""
    if row == MEMORY:
        return float(2**30)
    return 1.0 if row == PODS else 1000.0


def unit(name: str, row: int) -> str:
    """Return the unit of an amount."""
    return {MEMORY: "GiB"}.get(row, "cores" if name == "cpu" else name.rpartition("/")[2])


def top_queues(measured: Sequence[Measures]) -> list[str]:
    """Name the queues worth a panel: those with the largest use or requests."""
    first = measured[0]
    i = first.main_resource
    weight = sum((each.allocated + each.waiting)[:, i].mean(axis=1) for each in measured)
    order = np.argsort(-np.asarray(weight), kind="stable")[:N_QUEUES]
    return sorted(first.queues.names[at] for at in order.tolist())


def _configuration(measures: Measures, measured: Sequence[Measures]) -> dict[str, Any]:
    names = measures.queues.names
    rows = [names.index(name) for name in top_queues(measured)]
    facts, shown = measures.queues, measures.shown
    return {
        "name": measures.name,
        "utilisation": [_floats(measures.utilisation[i], 4) for i in shown],
        "fairness": [
            None if math.isnan(x) else round(x, 4)
            for x in measures.fairness.means(measures.bins).tolist()
        ],
        "queues": [
            {
                "name": names[row],
                "allocated": [_floats(measures.allocated[row, i] / scale(i), 2) for i in shown],
                "due": [_floats(measures.due[row, i] / scale(i), 2) for i in shown],
                "guarantee": [round(float(facts.guarantee[i, row]) / scale(i), 3) for i in shown],
                "capability": [_finite(float(facts.capability[i, row]) / scale(i)) for i in shown],
                "waiting": _floats(measures.queue_lengths[row], 2),
            }
            for row in rows
        ],
        "lengths": _floats(measures.queue_lengths.sum(axis=0), 2),
        "heat": heat_map(measures),
    }


def waits(sorted_waits: Sequence[Column], n_jobs: int) -> dict[str, Any]:
    """Lay out the cumulative part of all jobs by wait time, as steps.

    Every step is where a job's wait ends, with the true part at that time; of very many waits
    some are left out.  A last time beyond all waits shows the end of the curve, the part that
    started.  ``parts`` is empty if no job started.
    """
    sorted_waits = [each.round(3) for each in sorted_waits]
    times = {0.0}
    for each in sorted_waits:
        some = np.linspace(0, len(each) - 1, min(len(each), _STEPS)).astype(int)
        times.update(each[some].tolist())
    times.add(round(1.2 * max(*times, 1.0), 3))
    seconds = np.array(sorted(times))
    parts = [
        (np.searchsorted(each, seconds, side="right") / n_jobs).round(4).tolist()
        if len(each)
        else [None] * len(seconds)
        for each in sorted_waits
    ]
    return {
        "seconds": seconds.tolist(),
        "parts": parts if any(map(len, sorted_waits)) else [],
    }


def heat_map(measures: Measures) -> dict[str, Any]:
    """Lay the use of nodes over time out as bytes, one a cell, row by row."""
    resource = measures.main_resource
    use = measures.node_use(resource)
    nodes = measures.outcome.snapshot.nodes
    has = nodes.allocatable[resource, : nodes.n] > 0
    group = max(1, math.ceil(nodes.n / N_ROWS))
    starts = list(range(0, nodes.n, group))
    cells = np.full((len(starts), use.shape[1]), _NO_NODE, dtype=np.uint8)
    for row, start in enumerate(starts):
        some = use[start : start + group][has[start : start + group]]
        if len(some):
            cells[row] = np.round(np.clip(some.mean(axis=0), 0, 1) * (_NO_NODE - 1))
    return {
        "resource": measures.resources[resource],
        "rows": [_group_name(nodes.names[s : s + group]) for s in starts],
        "columns": int(use.shape[1]),
        "cells": base64.b64encode(cells.tobytes()).decode("ascii"),
    }


def _group_name(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"


def choose_bars(measures: Measures) -> list[int]:
    """Choose jobs worth a bar: all if they are few, else those that arrived when most waited.

    Gangs take precedence over single pods: numbers of jobs, in the order of their arrival.
    """
    runs = measures.outcome.runs
    if len(runs) <= N_BARS:
        return [run.number for run in runs]
    waiting = measures.queue_lengths.sum(axis=0)
    crowd = waiting if waiting.max() > 0 else measures.utilisation[measures.main_resource]
    peak = float(measures.bins.edges[int(np.argmax(crowd))])
    gangs = [run for run in runs if run.kind.size > 1]
    some = gangs if len(gangs) >= N_BARS else runs
    arrivals = np.array([run.spec.arrival for run in some])
    middle = int(np.searchsorted(arrivals, peak))
    first = min(max(middle - N_BARS // 2, 0), len(some) - N_BARS)
    return [run.number for run in some[first : first + N_BARS]]


def gantt(measures: Measures, chosen: Sequence[int]) -> dict[str, Any]:
    """Return the bars of some jobs: when they arrived, ran and were evicted."""
    runs = [measures.outcome.runs[number] for number in chosen]
    evicted = _evictions(measures, runs)
    bars = [
        {
            "name": run.spec.name,
            "queue": run.spec.queue,
            "pods": run.kind.size,
            "arrival": round(run.spec.arrival, 3),
            "start": _finite(run.started),
            "spans": [[round(x, 3) for x in span] for span in spans],
            "evicted": evicted.get(run.number, []),
        }
        for run, spans in measures.run_periods(runs)
    ]
    return {"bars": bars, "window": None}


def window(charts: Sequence[dict[str, Any]]) -> list[float]:
    """Return a time from the first arrival of some bars to when most of them have run."""
    bars = [bar for chart in charts for bar in chart["bars"]]
    arrivals = [bar["arrival"] for bar in bars]
    ends = sorted(bar["spans"][-1][1] if bar["spans"] else bar["arrival"] for bar in bars)
    first, last = min(arrivals), max(arrivals)
    most = ends[int(0.8 * (len(ends) - 1))]
    return [first, max(most, last + 0.1 * (last - first), first + 1.0)]


def _evictions(measures: Measures, runs: Sequence[JobRun]) -> dict[int, list[float]]:
    rows = measures.rows(EventKind.EVICT)
    rows = rows[np.isin(measures.job[rows], [run.number for run in runs])]
    found: dict[int, dict[float, None]] = {}
    for job, time in zip(measures.job[rows].tolist(), measures.time[rows].tolist(), strict=True):
        found.setdefault(job, {})[round(time, 3)] = None
    return {job: list(times) for job, times in found.items()}


def _floats(column: Matrix, digits: int) -> list[float]:
    return [round(x, digits) for x in column.tolist()]


def _finite(value: float) -> float | None:
    return round(value, 3) if math.isfinite(value) else None
