"""gangpreempt: make room for a whole job at the cost of less important jobs of its queue."""

from pumice.framework.eviction.gangs import GangEvictor
from pumice.framework.session import Session


def gangpreempt(ssn: Session) -> None:
    """Evict bundles of tasks of lower priority until a starving job can be placed as a whole."""
    GangEvictor(ssn, "gangpreempt", ssn.action_arguments, reclaims=False).run()
