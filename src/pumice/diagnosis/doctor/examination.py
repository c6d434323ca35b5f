"""All checks of a cluster, in a useful order."""

from collections.abc import Callable, Iterator
from typing import Final

from pumice.diagnosis.doctor.finding import Checked, ok, unknown
from pumice.diagnosis.doctor.installation import custom_resources, leaders, webhooks
from pumice.diagnosis.doctor.policy import configuration, nodes, queues, scheduler_names
from pumice.diagnosis.doctor.processes import processes
from pumice.diagnosis.doctor.quotas import quotas
from pumice.diagnosis.doctor.rights import rights
from pumice.diagnosis.doctor.server import ServedCluster, is_embedded

Check = Callable[[ServedCluster], Iterator[Checked]]
INSTALLATION: Final[tuple[Check, ...]] = (
    custom_resources,
    leaders,
    processes,
    rights,
    webhooks,
)
POLICY: Final[tuple[Check, ...]] = (configuration, queues, quotas, scheduler_names, nodes)


def examine_cluster(cluster: ServedCluster) -> list[Checked]:
    """Run every check; an object that one cannot read ends that check and no other.

    Raises:
        ServiceError: no API server answers, or it does not accept the credentials.
    """
    found: list[Checked] = []
    checks = INSTALLATION + POLICY
    if is_embedded(cluster):
        found.append(ok("processes", "'pumice up' runs them all, and serves every kind"))
        checks = POLICY
    for check in checks:
        try:
            found += check(cluster)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            name = check.__name__.replace("_", " ")
            found.append(unknown(name, f"an object has an unexpected form: {error!r}"))
    return found
