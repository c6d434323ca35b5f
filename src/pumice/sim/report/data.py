"""What the charts of a report draw, as plain data."""

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pumice.core.resources import MEMORY, PODS
from pumice.sim.log import What
from pumice.sim.measure import Matrix, Measures, stays
from pumice.sim.runs import Run

N_BARS = 160
"""Jobs in the Gantt chart, at most."""
N_ROWS = 320
"""Rows of the heat map, at most; more nodes are averaged in groups."""
N_QUEUES = 12
_POINTS = 200
_NO_NODE = 255
"""The cell of a node that does not have the resource at all."""


def chart_data(measured: Sequence[Measures]) -> dict[str, Any]:
    """Gather what all charts need, for one or more configurations of one workload."""
    first = measured[0]
    return {
        "edges": _floats(first.spans.edges, 1),
        "resources": [
            {"name": first.resources[i], "unit": unit(first.resources[i], i), "scale": scale(i)}
            for i in first.shown
        ],
        "main": first.shown.index(first.main_resource),
        "totals": [float(first.total[i]) for i in first.shown],
        "queues": top_queues(measured),
        "configurations": [_configuration(each, measured) for each in measured],
    }


def scale(row: int) -> float:
    """Say by what an amount of the tables is divided to be read: cores, GiB, devices."""
    if row == MEMORY:
        return float(2**30)
    return 1.0 if row == PODS else 1000.0


def unit(name: str, row: int) -> str:
    """Name what an amount is counted in."""
    return {MEMORY: "GiB"}.get(row, "cores" if name == "cpu" else name.rpartition("/")[2])


def top_queues(measured: Sequence[Measures]) -> list[str]:
    """Name the queues worth a panel: those that use or want most."""
    first = measured[0]
    i = first.main_resource
    weight = sum((each.allocated + each.waiting)[:, i].mean(axis=1) for each in measured)
    order = np.argsort(-np.asarray(weight), kind="stable")[:N_QUEUES]
    return sorted(first.queues.names[at] for at in order.tolist())


def _configuration(measures: Measures, measured: Sequence[Measures]) -> dict[str, Any]:
    names = measures.queues.names
    rows = [names.index(name) for name in top_queues(measured)]
    facts, shown = measures.queues, measures.shown
    waits = measures.waits()
    points = np.linspace(0, 100, _POINTS + 1)
    return {
        "name": measures.name,
        "utilisation": [_floats(measures.utilisation[i], 4) for i in shown],
        "fairness": [None if math.isnan(x) else round(x, 4) for x in measures.fairness.tolist()],
        "waits": _floats(np.percentile(waits, points), 2) if len(waits) else [],
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
        "gantt": gantt(measures),
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


def gantt(measures: Measures) -> dict[str, Any]:
    """Choose the gangs worth a bar: those with most work, evicted ones before all others."""
    runs = measures.outcome.runs

    def worth(run: Run) -> tuple[bool, bool, float, int]:
        gang = run.kind.size > 1
        return (not run.evictions, not gang, -run.kind.size * run.spec.run_seconds, run.number)

    chosen = sorted(sorted(runs, key=worth)[:N_BARS])
    evicted = _evictions(measures, chosen)
    bars = [
        {
            "name": run.spec.name,
            "queue": run.spec.queue,
            "pods": run.kind.size,
            "arrival": round(run.spec.arrival, 3),
            "spans": [[round(x, 3) for x in span] for span in spans],
            "evicted": evicted.get(run.number, []),
        }
        for run, spans in stays(measures, chosen)
    ]
    return {"bars": bars, "jobs": len(runs), "gangs": sum(run.kind.size > 1 for run in runs)}


def _evictions(measures: Measures, runs: Sequence[Run]) -> dict[int, list[float]]:
    rows = measures.rows(What.EVICT)
    rows = rows[np.isin(measures.job[rows], [run.number for run in runs])]
    found: dict[int, dict[float, None]] = {}
    for job, time in zip(measures.job[rows].tolist(), measures.time[rows].tolist(), strict=True):
        found.setdefault(job, {})[round(time, 3)] = None
    return {job: list(times) for job, times in found.items()}


def _floats(column: Matrix, digits: int) -> list[float]:
    return [round(x, digits) for x in column.tolist()]


def _finite(value: float) -> float | None:
    return round(value, 3) if math.isfinite(value) else None
