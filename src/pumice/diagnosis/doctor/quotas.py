"""Resource quotas that refuse pods of jobs."""

from collections.abc import Iterator
from typing import Final

from pumice.api.kinds import JOB, RESOURCE_QUOTA
from pumice.api.wording import counted, first_of
from pumice.cluster.base import Cluster
from pumice.diagnosis.doctor.finding import Checked, ok, unknown, warning
from pumice.diagnosis.sources import load_world
from pumice.errors import ClusterError, InputError

_CHECK: Final = "quotas"
_NAMED: Final = 3


def quotas(cluster: Cluster) -> Iterator[Checked]:
    """Check that the pods of jobs have room in the quotas of their namespaces."""
    try:
        known = cluster.list(RESOURCE_QUOTA)[0]
        world = load_world([cluster]) if known else None
    except (ClusterError, InputError) as error:
        yield unknown(_CHECK, error.problem if isinstance(error, ClusterError) else str(error))
        return
    if world is not None and JOB in world.hidden:
        yield unknown(_CHECK, world.hidden[JOB])
        return
    if world is None or not world.refusals:
        yield ok(_CHECK, f"{counted(len(known), 'resource quota')}, none refuses pods of a job")
        return
    refused = []
    for group, found in world.refusals.items():
        names = sorted({why.quota for each in found.pods for why in each.why})
        refused.append(
            f"{counted(len(found.pods), 'pod')} of {world.title(group)} (by {', '.join(names)})"
        )
    first = world.title(next(iter(world.refusals)))
    text = f"resource quotas refuse pods: {first_of(refused, _NAMED)}"
    yield warning(_CHECK, text, f"pumice explain {first} has the amounts and what helps")
