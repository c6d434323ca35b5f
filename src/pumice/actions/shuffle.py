"""shuffle: evict tasks that policies want to move, without placing anything in their stead.

The plugins' ``victims`` hook alone decides which tasks go; the action keeps no state of its own.
"""

import numpy as np

from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.framework.session import Session


def shuffle(ssn: Session) -> None:
    """Ask the plugins about all running tasks and evict what they name, each task once."""
    running = _running(ssn)
    candidates = set(running)
    stmt = ssn.statement()
    for victim in ssn.policy.victims(running):
        if victim in candidates:
            stmt.evict(victim, "shuffle")
    stmt.commit()


def _running(ssn: Session) -> list[int]:
    """List running tasks by the names of their jobs, then by their own; Volcano: in no order."""
    tasks, jobs = ssn.snapshot.tasks, ssn.snapshot.jobs
    rows = np.flatnonzero((tasks.status == Status.RUNNING) & (tasks.job != NOWHERE))
    rows = rows[jobs.listed[tasks.job[rows]]]
    names = [
        (jobs.keys[job], tasks.keys[row])
        for row, job in zip(rows.tolist(), tasks.job[rows].tolist(), strict=True)
    ]
    return [row for _, row in sorted(zip(names, rows.tolist(), strict=True))]
