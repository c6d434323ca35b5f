"""shuffle: evict what policies want moved, without placing anything in its stead.

Which tasks go is up to the plugins' ``victims`` hook alone; the action keeps no state of its own.
"""

from pumice.core.status import Status
from pumice.framework.session import Session


def shuffle(ssn: Session) -> None:
    """Ask the plugins about all running tasks and evict what they name, each task once."""
    tasks, jobs = ssn.snapshot.tasks, ssn.snapshot.jobs
    running = [
        row for job in ssn.jobs() for row in jobs.tasks[job] if tasks.status[row] == Status.RUNNING
    ]
    candidates = set(running)
    stmt = ssn.statement()
    for victim in ssn.victims(running):
        if victim in candidates:
            stmt.evict(victim, "shuffle")
    stmt.commit()
