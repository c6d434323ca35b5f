"""All books and sums added up anew from the tasks, in one sweep over columns.

A cluster that is loaded whole is counted once at the end instead of pod by pod.
"""

import numpy as np

from pumice.core.resources import sum_by
from pumice.core.snapshot import Snapshot
from pumice.core.status import N_STATUS, Status
from pumice.core.tables import ALLOCATED, BOOKED, IDLE, NOWHERE, PENDING, RELEASING, USED, VIEW


def recount(snapshot: Snapshot) -> None:
    """Set every count and sum of nodes, jobs and namespaces to what the tasks say."""
    if snapshot.shapes:
        _nodes(snapshot)
        _jobs(snapshot)
        _namespaces(snapshot)


def _nodes(snapshot: Snapshot) -> None:
    nodes, tasks = snapshot.nodes, snapshot.tasks
    rows = np.flatnonzero(tasks.node != NOWHERE)
    at, shapes = tasks.node[rows], tasks.shape[rows]
    requests = np.concatenate([shape.request for shape in snapshot.shapes], axis=1)
    nonzero = np.concatenate([shape.nonzero for shape in snapshot.shapes], axis=1)
    used = sum_by(requests[:, shapes], at, nodes.capacity)
    leaving = tasks.status[rows] == Status.RELEASING
    nodes.books[IDLE] = nodes.allocatable - used
    nodes.books[USED] = nodes.books[VIEW] = used
    nodes.books[RELEASING] = sum_by(requests[:, shapes[leaving]], at[leaving], nodes.capacity)
    nodes.view_pods[:] = np.bincount(at, minlength=nodes.capacity)
    nodes.view_nonzero[:] = sum_by(nonzero[:, shapes], at, nodes.capacity)


def _jobs(snapshot: Snapshot) -> None:
    jobs, tasks = snapshot.jobs, snapshot.tasks
    rows = np.flatnonzero(tasks.job != NOWHERE)
    owner, status = tasks.job[rows], tasks.status[rows]
    cells = status.astype(np.intp) * jobs.capacity + owner
    counts = np.bincount(cells, minlength=N_STATUS * jobs.capacity)
    jobs.counts[:] = counts.reshape(N_STATUS, jobs.capacity)
    jobs.n_tasks[:] = jobs.counts.sum(axis=0)
    requests = np.concatenate([shape.request for shape in snapshot.shapes], axis=1)
    requests = requests[:, tasks.shape[rows]]
    held = (status == Status.BOUND) | (status == Status.RUNNING)
    waiting = status == Status.PENDING
    jobs.sums[ALLOCATED] = sum_by(requests[:, held], owner[held], jobs.capacity)
    jobs.sums[BOOKED] = jobs.sums[ALLOCATED]
    jobs.sums[PENDING] = sum_by(requests[:, waiting], owner[waiting], jobs.capacity)
    idle = owner[waiting & tasks.best_effort[rows]]
    jobs.n_pending_best_effort[:] = np.bincount(idle, minlength=jobs.capacity)


def _namespaces(snapshot: Snapshot) -> None:
    jobs, spaces = snapshot.jobs, snapshot.namespaces
    known = jobs.namespace != NOWHERE
    for layer in range(len(spaces.sums)):
        spaces.sums[layer] = sum_by(
            jobs.sums[layer][:, known], jobs.namespace[known], spaces.capacity
        )
