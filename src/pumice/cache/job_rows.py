"""Rows of jobs, queues and namespaces, and the links between them."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from msgspec.structs import replace

from pumice.api.decisions import SCHEDULED
from pumice.api.groups import PodGroup, PodGroupSpec, Queue
from pumice.api.meta import is_touch, key_of
from pumice.api.times import epoch_or_zero
from pumice.cache.requests import learn
from pumice.core.resources import is_coarse, sum_by
from pumice.core.snapshot import Snapshot
from pumice.core.status import PENDING, PHASE_CODE
from pumice.core.tables import NOWHERE

_UNKNOWN = PHASE_CODE["Unknown"]
_SCHEDULED = (SCHEDULED.type, SCHEDULED.status, SCHEDULED.reason, SCHEDULED.message)
_OF_PODS = ("sums", "counts", "n_tasks", "n_pending_best_effort", "namespace")
"""Columns of a job that its pods fill, not its group."""


class JobRows:
    """Keeps jobs and queues in step with pod groups, queues and priority classes."""

    def __init__(self, snapshot: Snapshot, default_queue: str) -> None:
        self.snapshot = snapshot
        self._default_queue = default_queue
        self.stale = False
        """Whether links between groups, queues and priority classes must all be made again."""
        self._unlinked: set[int] = set()
        """Groups that are new or changed since the last link."""
        self.gathers = False
        """Whether new pod groups are gathered, to be written together."""
        self._new: dict[int, PodGroup] = {}
        self._aside: set[int] = set()
        """Jobs that are left out of sessions for now."""

    def row(self, key: str) -> int:
        """Return the row of a job, a new one if it is unknown."""
        jobs = self.snapshot.jobs
        row = jobs.row_of.get(key)
        if row is None:
            row = jobs.new_row()
            jobs.row_of[key] = row
            jobs.keys[row] = key
            jobs.tasks[row] = []
            jobs.namespace[row] = self._namespace(key.partition("/")[0])
        return row

    def _namespace(self, name: str) -> int:
        spaces = self.snapshot.namespaces
        row = spaces.row_of.get(name)
        if row is None:
            row = spaces.new_row()
            spaces.row_of[name] = row
            spaces.names[row] = name
        return row

    def read_group(self, group: PodGroup) -> None:
        """Do the steps of a pod group that can fail, before any row is touched."""
        learn(self.snapshot, group.spec.min_resources, asked=True)

    def write_group(self, group: PodGroup) -> None:
        """Add a pod group or replace it, once it was read; one without a queue gets the default."""
        jobs = self.snapshot.jobs
        if not group.spec.queue:
            group = replace(group, spec=replace(group.spec, queue=self._default_queue))
        row, spec = self.row(key_of(group)), group.spec
        known = jobs.groups[row]
        jobs.groups[row] = group
        self.snapshot.touched_jobs.add(row)
        if self.gathers and known is None:
            self._new[row] = group
            self._unlinked.add(row)
            return
        self.write_gathered()
        self._write_status(row, _status_cells(group))
        if isinstance(known, PodGroup) and (known.spec is spec or known.spec == spec):
            return
        status = self.snapshot.tasks.status
        self.snapshot.other_changes += any(status[task] != PENDING for task in jobs.tasks[row])
        self._write_spec(row, _spec_cells(spec))
        jobs.min_resources[:, row] = self.snapshot.resources.vector(spec.min_resources or {})
        self._unlinked.add(row)

    def write_gathered(self) -> None:
        """Write the new pod groups that were gathered, column by column."""
        if not self._new:
            return
        new, self._new = self._new, {}
        rows, groups = list(new), new.values()
        self._write_status(rows, zip(*map(_status_cells, groups), strict=True))
        self._write_spec(rows, zip(*(_spec_cells(each.spec) for each in groups), strict=True))
        amounts = self.snapshot.resources.vectors(each.spec.min_resources or {} for each in groups)
        self.snapshot.jobs.min_resources[:, rows] = amounts

    def _write_status(self, rows: int | list[int], cells: Iterable[Any]) -> None:
        """Write the status and the age of a pod group, or those of many, cell by cell."""
        jobs = self.snapshot.jobs
        (
            jobs.stated_phase[rows],
            jobs.stated_counts[0, rows],
            jobs.stated_counts[1, rows],
            jobs.stated_counts[2, rows],
            jobs.stated_scheduled[rows],
            jobs.has_other_conditions[rows],
            jobs.created[rows],
        ) = cells
        jobs.phase[rows] = jobs.stated_phase[rows]

    def _write_spec(self, rows: int | list[int], cells: Iterable[Any]) -> None:
        """Write what a pod group asks for, or many, cell by cell."""
        jobs = self.snapshot.jobs
        jobs.min_member[rows], jobs.has_topology[rows], jobs.has_min_resources[rows] = cells

    def delete_group(self, key: str) -> None:
        """Forget a pod group; its pods, if any, keep the row."""
        jobs = self.snapshot.jobs
        row = jobs.row_of.get(key)
        if row is None:
            return
        self.write_gathered()
        self.snapshot.touched_jobs.add(row)
        status = self.snapshot.tasks.status
        self.snapshot.other_changes += any(status[task] != PENDING for task in jobs.tasks[row])
        self._leave_queue(row)
        jobs.reset_row(row, keep=_OF_PODS)
        jobs.groups[row] = None
        self._unlinked.discard(row)
        self._aside.discard(row)
        if self.is_empty(row):
            self.forget(row)

    def is_empty(self, row: int) -> bool:
        """Return whether a job has neither group nor pods."""
        return self.snapshot.jobs.groups[row] is None and not self.snapshot.jobs.tasks[row]

    def forget(self, row: int) -> None:
        """Free the row of a job."""
        jobs = self.snapshot.jobs
        del jobs.row_of[jobs.keys[row]]
        jobs.clear_row(row)

    def set_aside(self, key: str, *, aside: bool) -> None:
        """Leave a job out of sessions, or call it back; its pods count for its queue all along."""
        jobs = self.snapshot.jobs
        row = jobs.row_of[key]
        self.snapshot.touched_jobs.add(row)
        if aside:
            self._aside.add(row)
        else:
            self._aside.discard(row)
        jobs.listed[row] = not aside and jobs.queue[row] != NOWHERE

    def upsert_queue(self, queue: Queue) -> None:
        """Add a queue or replace it."""
        spec = queue.spec
        learn(self.snapshot, spec.capability, spec.deserved, spec.guarantee.resource)
        queues, resources = self.snapshot.queues, self.snapshot.resources
        name = queue.metadata.name
        row = queues.row_of.get(name)
        if row is None:
            row = queues.new_row()
            queues.row_of[name] = row
            queues.names[row] = name
        known = queues.objects[row]
        if isinstance(known, Queue) and _states_same(known, queue):
            queues.objects[row] = queue
            return
        self.snapshot.other_changes += 1
        self.stale |= not isinstance(known, Queue) or known.spec.parent != spec.parent
        queues.objects[row] = queue
        queues.listed[row] = True
        queues.weight[row] = spec.weight or 0
        queues.priority[row] = spec.priority or 0
        queues.created[row] = epoch_or_zero(queue.metadata.creation_timestamp)
        queues.reclaimable[row] = spec.reclaimable is not False
        queues.open[row] = queue.status.state == "Open"
        queues.capability[:, row] = resources.vector(spec.capability, missing=np.inf)
        queues.capability_given[:, row] = resources.mask(spec.capability)
        queues.deserved[:, row] = resources.vector(spec.deserved)
        queues.deserved_given[:, row] = resources.mask(spec.deserved)
        queues.guarantee[:, row] = resources.vector(spec.guarantee.resource)
        queues.guarantee_given[:, row] = resources.mask(spec.guarantee.resource)

    def delete_queue(self, name: str) -> None:
        """Forget a queue; its jobs leave the session."""
        row = self.snapshot.queues.row_of.pop(name, None)
        self.snapshot.other_changes += 1
        if row is not None:
            self.snapshot.queues.clear_row(row)
        self.stale = True

    def link(self) -> None:
        """Join groups to queues and priority classes: new ones, or all if either kind changed."""
        if not self.stale and self._unlinked:
            self._link_groups(self._unlinked)
        if self.stale:
            self._link_all()
        self.stale = False
        self._unlinked.clear()

    def _link_all(self) -> None:
        """Make every link, and add the sums of queues up again."""
        jobs, queues = self.snapshot.jobs, self.snapshot.queues
        self.snapshot.touched_jobs.add(NOWHERE)
        jobs.queue[:] = NOWHERE
        rows, priorities, of_rows = [], [], []
        for row, priority, queue in self._links(range(jobs.n)):
            rows.append(row)
            priorities.append(priority)
            of_rows.append(queue)
        jobs.priority[rows], jobs.queue[rows] = priorities, of_rows
        jobs.listed[rows] = jobs.queue[rows] != NOWHERE
        jobs.listed[[*self._aside]] = False
        linked = np.flatnonzero(jobs.queue != NOWHERE)
        for layer, sums in enumerate(jobs.sums):
            queues.sums[layer] = sum_by(sums[:, linked], jobs.queue[linked], queues.capacity)
        for row, named in enumerate(queues.objects[: queues.n]):
            if isinstance(named, Queue):
                queues.parent[row] = queues.row_of.get(named.spec.parent, NOWHERE)

    def _links(self, rows: Iterable[int]) -> Iterator[tuple[int, int, int]]:
        """Yield the rows that have a pod group, its priority and the row of its queue."""
        groups, queues = self.snapshot.jobs.groups, self.snapshot.queues.row_of
        priorities = Priorities(self.snapshot)
        for row in rows:
            group = groups[row]
            if isinstance(group, PodGroup):
                priority = priorities.of_group(group.spec.priority_class_name)
                yield row, priority, queues.get(group.spec.queue, NOWHERE)

    def _link_groups(self, rows: Iterable[int]) -> None:
        """Join some groups to their queue and priority class; sums move along."""
        jobs, queues = self.snapshot.jobs, self.snapshot.queues
        for row, priority, queue in self._links(rows):
            jobs.priority[row] = priority
            if queue != jobs.queue[row]:
                self._leave_queue(row)
                jobs.queue[row] = queue
                if queue != NOWHERE:
                    queues.sums[:, :, queue] += jobs.sums[:, :, row]
            jobs.listed[row] = queue != NOWHERE and row not in self._aside

    def _leave_queue(self, row: int) -> None:
        """Subtract the amounts of a job from its queue."""
        jobs, queue = self.snapshot.jobs, int(self.snapshot.jobs.queue[row])
        if queue != NOWHERE:
            self.snapshot.queues.sums[:, :, queue] -= jobs.sums[:, :, row]
            self.stale |= is_coarse(jobs.sums[:, :, row].max(axis=0))
            jobs.queue[row] = NOWHERE


def _status_cells(group: PodGroup) -> tuple[int, int, int, int, bool, bool, float]:
    status, conditions = group.status, group.status.conditions
    return (
        PHASE_CODE.get(status.phase, _UNKNOWN),
        status.running,
        status.succeeded,
        status.failed,
        any(c.type == "Scheduled" and c.status == "True" for c in conditions),
        any((c.type, c.status, c.reason, c.message) != _SCHEDULED for c in conditions),
        epoch_or_zero(group.metadata.creation_timestamp),
    )


def _states_same(known: Queue, queue: Queue) -> bool:
    """Return whether only what a queue holds, by its own status, has changed."""
    same_state = known.status.state == queue.status.state
    return same_state and is_touch(known, replace(queue, status=known.status))


def _spec_cells(spec: PodGroupSpec) -> tuple[int, bool, bool]:
    return (
        spec.min_member or 0,
        spec.network_topology is not None or bool(spec.sub_group_policy),
        spec.min_resources is not None,
    )


class Priorities:
    """The priority classes of a cluster at one moment."""

    def __init__(self, snapshot: Snapshot) -> None:
        classes = snapshot.kind("PriorityClass").values()
        self._values: dict[str, int] = {each.metadata.name: each.value for each in classes}
        # Kubernetes: of several defaults the lowest counts
        self._default: int = min((c.value for c in classes if c.global_default), default=0)

    def of_group(self, name: str) -> int:
        """Return the priority of a pod group; one that names no known class has the default."""
        return self._values.get(name, self._default)

    def of_pod(self, name: str) -> int:
        """Return the priority of a new pod; an unknown class gives none."""
        return self._values.get(name, 0) if name else self._default
