"""Many new pods at once: gathered in their order, written column by column.

Used by the rows of tasks while a cluster is loaded.  Leaves the tables as pods written one by one
do; what nodes and jobs count of them is left to the sweep at the end.  Most pods follow one of
their job that they are like: of these only the first is read.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from pumice.api.meta import KubeObject
from pumice.api.pods import Pod
from pumice.cache.pod_cells import (
    ON_NODE,
    PodCells,
    claiming,
    index_of,
    own_cells,
    write_cells,
    write_own_cells,
)
from pumice.core.snapshot import Snapshot
from pumice.core.status import N_STATUS
from pumice.core.tables import NOWHERE

_BATCH = 2048
"""From how many pods on they are written, at the next that differs from the one before it."""
_COUNTS_ON_NODE = np.isin(np.arange(N_STATUS), [*ON_NODE])
"""Whether a task counts on a node, by its status."""


class _Run(msgspec.Struct, eq=False):
    """Pods in a row that are alike, by the first of them."""

    start: int
    """Where among the pods it begins."""
    first: Pod
    cells: PodCells
    job: int
    prefix: str
    """What the keys of the pods begin with."""


class _Columns(msgspec.Struct):
    """Pods that have rows, but no cells yet: what is known of each, in their order."""

    keys: list[str] = msgspec.field(default_factory=list)
    pods: list[Pod] = msgspec.field(default_factory=list)
    uids: list[str] = msgspec.field(default_factory=list)
    index: list[int] = msgspec.field(default_factory=list)
    different: list[int] = msgspec.field(default_factory=list)
    """Places of pods that differ from the first of their run in times or status."""
    runs: list[_Run] = msgspec.field(default_factory=list)

    def add(self, key: str, pod: Pod) -> None:
        """Add a pod."""
        meta = pod.metadata
        self.keys.append(key)
        self.pods.append(pod)
        self.uids.append(meta.uid or key)
        self.index.append(index_of(meta.name))


class NewTasks:
    """Gathers new pods and writes them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._new = _Columns()
        self._last: _Run | None = None
        self._like: Any = None
        """The specification of the last run, with node and volumes of the pod compared last."""

    @property
    def is_full(self) -> bool:
        """Whether it is time to write them."""
        return len(self._new.pods) >= _BATCH

    def add(self, key: str, pod: Pod, cells: PodCells, job: int) -> int:
        """Take a pod that was read, and return the row that it will have."""
        new, tasks = self._new, self._snapshot.tasks
        row = tasks.row_of[key] = tasks.n + len(new.pods)
        prefix = key.removesuffix(pod.metadata.name)
        self._last = _Run(len(new.pods), pod, cells, job, prefix)
        self._like = copy(pod.spec)
        new.runs.append(self._last)
        new.add(key, pod)
        return row

    def add_alike(self, things: Sequence[KubeObject], start: int = 0) -> int:
        """Take new pods from a place on while each is like the last one; return where that ends.

        However many they are, they are one run; ``is_full`` is asked after it.
        """
        run, new, row_of = self._last, self._new, self._snapshot.tasks.row_of
        if run is None:
            return start
        row = self._snapshot.tasks.n + len(new.pods)
        for place in range(start, len(things)):
            pod = things[place]
            if not isinstance(pod, Pod) or not self._is_alike(run, pod):
                return place
            key = run.prefix + pod.metadata.name
            if row_of.setdefault(key, row) != row:
                return place
            if self._share(pod, run.first):
                new.different.append(len(new.pods))
            new.add(key, pod)
            row += 1
        return len(things)

    def _share(self, pod: Pod, first: Pod) -> bool:
        """Make equal parts of pods alike one object; return whether times or status differ."""
        meta, shared = pod.metadata, first.metadata
        if pod.spec.containers is not self._like.containers:  # else they were shared before
            force_setattr(pod, "spec", self._like.__copy__())
        if meta.annotations is not shared.annotations or meta.labels is not shared.labels:
            force_setattr(meta, "annotations", shared.annotations)
            force_setattr(meta, "labels", shared.labels)
            force_setattr(meta, "namespace", shared.namespace)
        differs = meta.deletion_timestamp != shared.deletion_timestamp
        if meta.creation_timestamp is not shared.creation_timestamp:
            if meta.creation_timestamp == shared.creation_timestamp:
                force_setattr(meta, "creation_timestamp", shared.creation_timestamp)
            else:
                differs = True
        if pod.status is not first.status:
            if pod.status == first.status:
                force_setattr(pod, "status", first.status)
            else:
                differs = True
        return differs

    def _is_alike(self, run: _Run, pod: Pod) -> bool:
        """Return whether a pod is like those of a run, which is the last.

        Pods alike differ only in name, uid, node, times and status, and in volumes that do not
        matter.
        """
        meta, spec, shared, like = pod.metadata, pod.spec, run.first.metadata, self._like
        if (
            (meta.annotations is not shared.annotations and meta.annotations != shared.annotations)
            or (meta.labels is not shared.labels and meta.labels != shared.labels)
            or meta.namespace != shared.namespace
            or (not spec.node_name) != (not like.node_name)
            or pod.status.nominated_node_name
        ):
            return False
        if spec.volumes != like.volumes:
            if claiming(spec.volumes) != claiming(like.volumes):
                return False
            force_setattr(like, "volumes", spec.volumes)
        force_setattr(like, "node_name", spec.node_name)
        return bool(spec == like)

    def write(self) -> Iterator[tuple[int, str]]:
        """Write all of them; yield the rows whose node is not known yet, and its name."""
        if not self._new.pods:
            return
        new, self._new = self._new, _Columns()
        self._last = self._like = None
        tasks = self._snapshot.tasks
        rows = tasks.add_rows(len(new.pods))
        several = slice(rows.start, rows.stop)
        tasks.keys[several], tasks.pods[several] = new.keys, new.pods
        tasks.uids[several], tasks.index[several] = new.uids, new.index
        numbers = [*rows]  # one object for each row, whoever lists it
        self._write_runs(new, numbers)
        row_of = self._snapshot.nodes.row_of
        nodes = [row_of.get(pod.spec.node_name, NOWHERE) for pod in new.pods]
        on_node = _COUNTS_ON_NODE[tasks.status[several]]
        tasks.node[several] = np.where(on_node, nodes, NOWHERE)
        tasks.in_view[several] = tasks.node[several] != NOWHERE
        self._list_on_nodes(new, numbers, tasks.node[several].tolist())
        for place in np.flatnonzero(on_node & ~tasks.in_view[several]).tolist():
            if name := new.pods[place].spec.node_name:
                yield rows[place], name

    def _write_runs(self, new: _Columns, rows: list[int]) -> None:
        """Write the cells that the pods of a run have in common, and those that differ."""
        tasks, jobs, runs = self._snapshot.tasks, self._snapshot.jobs, new.runs
        several = slice(rows[0], rows[-1] + 1)
        bounds = [*(run.start for run in runs), len(new.pods)]
        sizes = np.diff(bounds)
        columns = zip(*(run.cells for run in runs), strict=True)
        write_cells(tasks, several, (np.repeat(each, sizes) for each in columns))
        tasks.job[several] = np.repeat([run.job for run in runs], sizes)
        columns = zip(*(own_cells(run.first) for run in runs), strict=True)
        write_own_cells(tasks, several, (np.repeat(each, sizes) for each in columns))
        if new.different:
            columns = zip(*(own_cells(new.pods[place]) for place in new.different), strict=True)
            write_own_cells(tasks, several.start + np.array(new.different), columns)
        for run, (start, end) in zip(runs, pairwise(bounds), strict=True):
            if run.job != NOWHERE:
                jobs.tasks[run.job] += rows[start:end]

    def _list_on_nodes(self, new: _Columns, rows: list[int], nodes: Sequence[int]) -> None:
        tasks, names = self._snapshot.nodes.tasks, self._snapshot.nodes.names
        for row, pod, node in zip(rows, new.pods, nodes, strict=True):
            if node != NOWHERE:
                tasks[node].append(row)
                if pod.spec.node_name is not names[node]:
                    force_setattr(pod.spec, "node_name", names[node])
