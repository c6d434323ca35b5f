"""Pods that run longer than they may."""

from typing import Any

import numpy as np

from pumice.api.run_times import run_time
from pumice.core.tables import NOWHERE
from pumice.framework.plugin_session import PluginSession


def overdue_pods(ssn: PluginSession, running: list[int]) -> list[int]:
    """Return those of the running pods (rows) that have outlived their bound.

    An estimate is no bound: who states only that is not evicted.
    """
    tasks, jobs, queues = ssn.snapshot.tasks, ssn.snapshot.jobs, ssn.snapshot.queues
    bounds: dict[int, float | None] = {}
    late = []
    for row in running:
        job = int(tasks.job[row])
        if job not in bounds:
            pod: Any = tasks.pods[row]
            queue = int(jobs.queue[job])
            objects: list[Any] = [pod, jobs.groups[job]]
            objects += [] if queue == NOWHERE else [queues.objects[queue]]
            places = [each.metadata.annotations for each in objects if each is not None]
            bounds[job] = run_time(places, pod.spec.active_deadline_seconds).bound
        bound, begun = bounds[job], tasks.started[row]
        if bound is not None and not np.isnan(begun) and begun + bound <= ssn.now:
            late.append(row)
    return late
