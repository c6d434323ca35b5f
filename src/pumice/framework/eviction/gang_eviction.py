"""The request behind a gang eviction."""

import msgspec

from pumice.core.views import Job
from pumice.framework.topology.domains import Domain


class GangEviction(msgspec.Struct, frozen=True):
    """The request for victims: a whole job, in a domain, from its own queue or from others."""

    job: Job
    domain: Domain
    reclaims: bool
    """Whether other queues lose pods; else jobs of lower priority in the same queue."""
