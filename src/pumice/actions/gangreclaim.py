"""gangreclaim: make room for a whole job at the cost of other queues."""

from pumice.framework.eviction.gangs import GangEvictor
from pumice.framework.session import Session


def gangreclaim(ssn: Session) -> None:
    """Evict bundles of tasks of other queues until a starving job can be placed as a whole."""
    GangEvictor(ssn, "gangreclaim", ssn.action_arguments, reclaims=True).run()
