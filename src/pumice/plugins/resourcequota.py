"""resourcequota: admit a job only if its namespace's quotas leave room for it.

Quotas and the minimum of a job are compared by their literal keys and as exact quantities: a
quota on ``requests.cpu`` does not limit ``cpu``.
"""

from collections import Counter
from dataclasses import dataclass

from pumice.api.codes import Cause
from pumice.api.decisions import RESOURCE_QUOTA, Short
from pumice.api.groups import ResourceQuota
from pumice.api.meta import ResourceList
from pumice.api.quantity import parse_quantity
from pumice.core.views import Job
from pumice.framework.plugin import PERMIT, Plugin, Vote
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession
from pumice.framework.refusals import over_quota


@dataclass(kw_only=True)
class ResourceQuotas(Plugin, name="resourcequota"):
    """Vote against jobs that, with those admitted before in this cycle, would overrun a quota."""

    simulator = SimulatorAssumptions()

    def on_open(self, ssn: PluginSession) -> None:
        """Sort quotas by namespace."""
        self._quotas: dict[str, list[ResourceQuota]] = {}
        for quota in ssn.snapshot.kind("ResourceQuota").values():
            self._quotas.setdefault(quota.metadata.namespace, []).append(quota)
        self._admitted: dict[str, Counter[str]] = {}

    def job_enqueueable(self, job: Job) -> Vote:
        """Permit a job that every quota of its namespace has room for."""
        namespace = job.key.partition("/")[0]
        needs = _amounts(job.group.spec.min_resources)
        admitted = self._admitted.get(namespace, Counter())
        for quota in self._quotas.get(namespace, ()):
            hard, used = _amounts(quota.status.hard), _amounts(quota.status.used)
            short = [
                Short.of_nano(name, used[name] + admitted[name], needs[name], hard[name])
                for name in sorted(needs.keys() & hard.keys())
                if used[name] + admitted[name] + needs[name] > hard[name]
            ]
            if short:
                at = f"{RESOURCE_QUOTA}{quota.metadata.name}"
                return over_quota(short, queue=job.queue, at=at, code=Cause.NOT_ADMITTED)
        return PERMIT

    def on_enqueued(self, job: Job) -> None:
        """Count what the job needs, whichever plugin admitted it."""
        namespace = job.key.partition("/")[0]
        admitted = self._admitted.setdefault(namespace, Counter())
        admitted.update(_amounts(job.group.spec.min_resources))

    def changes_at(self, ssn: PluginSession) -> float | None:
        """Return at once if a job was admitted: from then on only the quota's status counts."""
        return ssn.now if self._admitted else None


def _amounts(quantities: ResourceList | None) -> Counter[str]:
    """Read a resource list exactly, in nano units; a missing name counts as zero."""
    return Counter({name: parse_quantity(text) for name, text in (quantities or {}).items()})
