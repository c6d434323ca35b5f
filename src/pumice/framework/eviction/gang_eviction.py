"""Who asks for the victims of a gang eviction."""

from dataclasses import dataclass

from pumice.core.views import Job
from pumice.framework.topology.domains import Domain


@dataclass(frozen=True, slots=True)
class GangEviction:
    """Who asks for victims: a whole job, in a domain, of its own queue or of others."""

    job: Job
    domain: Domain
    reclaims: bool
    """Whether other queues pay; else jobs of lower priority in the same queue."""
