"""Many new pods at once: gathered in their order, written column by column.

Used by the rows of tasks while a cluster is loaded.  Leaves the tables as pods written one by one
do; what nodes and jobs count of them is left to the sweep at the end.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import force_setattr

from pumice.api.pods import Pod
from pumice.cache.pod_cells import PodCells, write_cells
from pumice.core.snapshot import Snapshot
from pumice.core.tables import NOWHERE

_BATCH = 8192
"""How many pods are written together: until then their cells are objects, which take room."""


class NewTask(NamedTuple):
    """A pod that has a row, but no cells yet."""

    key: str
    pod: Pod
    cells: PodCells
    job: int
    status: int
    node: str
    """The node that it counts on; empty: none."""


class NewTasks:
    """Pods that wait to be written."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._gathered: list[NewTask] = []

    @property
    def is_full(self) -> bool:
        """Whether it is time to write them."""
        return len(self._gathered) >= _BATCH

    def add(self, task: NewTask) -> int:
        """Take a pod and return the row that it will have."""
        tasks = self._snapshot.tasks
        row = tasks.row_of[task.key] = tasks.n + len(self._gathered)
        self._gathered.append(task)
        return row

    def write(self) -> Iterator[tuple[int, str]]:
        """Write all of them; yield the rows whose node is not known yet, and its name."""
        if not self._gathered:
            return
        keys, pods, cells, jobs, statuses, names = zip(*self._gathered, strict=True)
        self._gathered = []
        tasks, row_of = self._snapshot.tasks, self._snapshot.nodes.row_of
        rows = tasks.add_rows(len(keys))
        several = slice(rows.start, rows.stop)
        nodes = [row_of.get(name, NOWHERE) for name in names]
        tasks.keys[several], tasks.pods[several] = keys, pods
        tasks.uids[several] = [pod.metadata.uid or key for key, pod in zip(keys, pods, strict=True)]
        write_cells(tasks, several, zip(*cells, strict=True))
        tasks.job[several], tasks.status[several], tasks.node[several] = jobs, statuses, nodes
        tasks.in_view[several] = np.array(nodes) != NOWHERE
        self._list_in_jobs(rows, jobs)
        yield from self._list_on_nodes(rows, pods, names, nodes)

    def _list_in_jobs(self, rows: Sequence[int], jobs: Sequence[int]) -> None:
        listed = self._snapshot.jobs.tasks
        for row, job in zip(rows, jobs, strict=True):
            if job != NOWHERE:
                listed[job].append(row)

    def _list_on_nodes(
        self, rows: Sequence[int], pods: Sequence[Pod], names: Sequence[str], nodes: Sequence[int]
    ) -> Iterator[tuple[int, str]]:
        table = self._snapshot.nodes
        for row, pod, name, node in zip(rows, pods, names, nodes, strict=True):
            if node != NOWHERE:
                table.tasks[node].append(row)
                force_setattr(pod.spec, "node_name", table.names[node])
            elif name:
                yield row, name
