"""Rows of jobs, queues and namespaces, and the links between them."""

from collections.abc import Iterable

import numpy as np
from msgspec.structs import replace

from pumice.api.decisions import SCHEDULED
from pumice.api.groups import PodGroup, Queue
from pumice.api.times import epoch_or_zero
from pumice.cache.identity import key_of
from pumice.cache.requests import learn
from pumice.core.resources import is_coarse
from pumice.core.snapshot import Snapshot
from pumice.core.status import PHASE_CODE
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
        self._write_status(row, group)
        jobs.created[row] = epoch_or_zero(group.metadata.creation_timestamp)
        if isinstance(known, PodGroup) and known.spec is spec:
            return
        jobs.min_member[row] = spec.min_member or 0
        jobs.has_topology[row] = spec.network_topology is not None or bool(spec.sub_group_policy)
        jobs.has_min_resources[row] = spec.min_resources is not None
        jobs.min_resources[:, row] = self.snapshot.resources.vector(spec.min_resources or {})
        self._unlinked.add(row)

    def _write_status(self, row: int, group: PodGroup) -> None:
        jobs, status = self.snapshot.jobs, group.status
        jobs.phase[row] = jobs.stated_phase[row] = PHASE_CODE.get(status.phase, _UNKNOWN)
        jobs.stated_counts[:, row] = status.running, status.succeeded, status.failed
        jobs.stated_scheduled[row] = any(
            c.type == "Scheduled" and c.status == "True" for c in status.conditions
        )
        jobs.has_other_conditions[row] = any(
            (c.type, c.status, c.reason, c.message) != _SCHEDULED for c in status.conditions
        )

    def delete_group(self, key: str) -> None:
        """Forget a pod group; its pods, if any, keep the row."""
        jobs = self.snapshot.jobs
        row = jobs.row_of.get(key)
        if row is None:
            return
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
        jobs.queue[:] = NOWHERE
        queues.sums[:] = 0
        self._link_groups(range(jobs.n))
        for row, queue in enumerate(queues.objects[: queues.n]):
            if isinstance(queue, Queue):
                queues.parent[row] = queues.row_of.get(queue.spec.parent, NOWHERE)

    def _link_groups(self, rows: Iterable[int]) -> None:
        """Join some groups to their queue and priority class; sums move along."""
        snapshot = self.snapshot
        jobs, queues = snapshot.jobs, snapshot.queues
        classes = {c.metadata.name: c for c in snapshot.kind("PriorityClass").values()}
        default = min((c.value for c in classes.values() if c.global_default), default=0)
        for row in rows:
            group = jobs.groups[row]
            if not isinstance(group, PodGroup):
                continue
            named = classes.get(group.spec.priority_class_name)
            jobs.priority[row] = default if named is None else named.value
            queue = queues.row_of.get(group.spec.queue, NOWHERE)
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
