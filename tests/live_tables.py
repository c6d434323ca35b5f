"""What a live scheduler knows of a cluster, to be compared with another one."""

from typing import Any

from pumice.serve.scheduler.live_scheduler import LiveScheduler


def tables(live: LiveScheduler) -> tuple[dict[Any, Any], ...]:
    """Return what is known of pods, nodes and jobs, by name."""
    snapshot = live.informer.snapshot
    tasks, nodes, jobs = snapshot.tasks, snapshot.nodes, snapshot.jobs
    return (
        {key: int(tasks.status[row]) for key, row in tasks.row_of.items()},
        {name: nodes.books[:, :, row].tolist() for name, row in nodes.row_of.items()},
        {key: int(jobs.phase[row]) for key, row in jobs.row_of.items()},
    )
