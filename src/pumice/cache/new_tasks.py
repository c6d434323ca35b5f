"""Many new pods at once: gathered in their order, written column by column.

Used by the rows of tasks while a cluster is loaded.  Leaves the tables as pods written one by one
do; what nodes and jobs count of them is left to the sweep at the end.  Most pods follow one of
their job that they are like: of these only the first is read.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import force_setattr

from pumice.api.pods import Pod
from pumice.cache.identity import key_of
from pumice.cache.pod_cells import (
    ON_NODE,
    SHAPE_PARTS,
    PodCells,
    claiming,
    own_cells,
    status_of,
    write_cells,
    write_own_cells,
)
from pumice.core.snapshot import Snapshot
from pumice.core.tables import NOWHERE

_BATCH = 8192
"""How many pods are written together: until then their parts are not shared, which takes room."""
_of_meta = attrgetter("annotations", "labels", "namespace")
_of_spec = attrgetter(
    *SHAPE_PARTS,
    "resource_claims",
    "scheduling_gates",
    "scheduler_name",
    "priority",
)
"""Parts that are equal in pods alike, beside the volumes that matter."""

Parts = Sequence[tuple[str, Any]]
"""Parts of a specification that pods alike share, by name."""


class _Run(NamedTuple):
    """Pods in a row that are alike, by the first of them."""

    first: Pod
    cells: PodCells
    job: int
    of_meta: tuple[Any, ...]
    of_spec: tuple[Any, ...]
    parts: Parts


class NewTasks:
    """Pods that have rows, but no cells yet."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._keys: list[str] = []
        self._pods: list[Pod] = []
        self._runs: list[_Run] = []
        self._starts: list[int] = []
        """Where among the pods each run begins."""

    @property
    def is_full(self) -> bool:
        """Whether it is time to write them."""
        return len(self._keys) >= _BATCH

    def add(self, key: str, pod: Pod, cells: PodCells, job: int, parts: Parts) -> int:
        """Take a pod that was read, and return the row that it will have."""
        self._starts.append(len(self._pods))
        self._runs.append(_Run(pod, cells, job, _of_meta(pod.metadata), _of_spec(pod.spec), parts))
        return self._take(key, pod)

    def add_alike(self, pod: Pod) -> bool:
        """Take a new pod if it is like the last one; return whether it is.

        Pods alike differ only in name, uid, node, times and status.
        """
        if not self._runs:
            return False
        like, spec = self._runs[-1], pod.spec
        volumes = like.first.spec.volumes
        if (
            _of_meta(pod.metadata) != like.of_meta
            or _of_spec(spec) != like.of_spec
            or bool(spec.node_name) != bool(like.first.spec.node_name)
            or pod.status.nominated_node_name
            or (spec.volumes != volumes and claiming(spec.volumes) != claiming(volumes))
        ):
            return False
        key = key_of(pod)
        if key in self._snapshot.tasks.row_of:
            return False
        self._take(key, pod)
        return True

    def _take(self, key: str, pod: Pod) -> int:
        tasks = self._snapshot.tasks
        row = tasks.row_of[key] = tasks.n + len(self._pods)
        self._keys.append(key)
        self._pods.append(pod)
        return row

    def write(self) -> Iterator[tuple[int, str]]:
        """Write all of them; yield the rows whose node is not known yet, and its name."""
        keys, pods, runs, starts = self._keys, self._pods, self._runs, self._starts
        self._keys, self._pods, self._runs, self._starts = [], [], [], []
        if not keys:
            return
        tasks = self._snapshot.tasks
        rows = tasks.add_rows(len(keys))
        several = slice(rows.start, rows.stop)
        tasks.keys[several], tasks.pods[several] = keys, pods
        tasks.uids[several] = [pod.metadata.uid or key for key, pod in zip(keys, pods, strict=True)]
        bounds = [*starts, len(keys)]
        sizes = np.diff(bounds)
        columns = zip(*(run.cells for run in runs), strict=True)
        write_cells(tasks, several, (np.repeat(each, sizes) for each in columns))
        write_own_cells(tasks, several, zip(*map(own_cells, pods), strict=True))
        tasks.job[several] = np.repeat([run.job for run in runs], sizes)
        for run, (start, end) in zip(runs, pairwise(bounds), strict=True):
            if run.job != NOWHERE:
                self._snapshot.jobs.tasks[run.job] += rows[start:end]
            _share(run, pods[start + 1 : end])
        statuses = [*map(status_of, pods)]
        tasks.status[several] = statuses
        names = [
            pod.spec.node_name if status in ON_NODE else ""
            for pod, status in zip(pods, statuses, strict=True)
        ]
        nodes = [self._snapshot.nodes.row_of.get(name, NOWHERE) for name in names]
        tasks.node[several], tasks.in_view[several] = nodes, np.array(nodes) != NOWHERE
        yield from self._list_on_nodes(rows, pods, names, nodes)

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


def _share(run: _Run, pods: Iterable[Pod]) -> None:
    """Make equal parts of pods alike one object."""
    like, parts = run.first, run.parts
    shared = like.metadata
    for pod in pods:
        meta = pod.metadata
        for name, part in parts:
            force_setattr(pod.spec, name, part)
        force_setattr(meta, "annotations", shared.annotations)
        force_setattr(meta, "labels", shared.labels)
        force_setattr(meta, "namespace", shared.namespace)
        if meta.creation_timestamp == shared.creation_timestamp:
            force_setattr(meta, "creation_timestamp", shared.creation_timestamp)
        if pod.status == like.status:
            force_setattr(pod, "status", like.status)
