"""overcommit: admit a little more than the cluster holds, so that waiting jobs are ready."""

from dataclasses import dataclass, replace
from functools import cached_property

from pumice.api.codes import Cause
from pumice.api.decisions import CLUSTER, Short, short_of
from pumice.core.resources import Column
from pumice.core.snapshot import Snapshot
from pumice.core.views import Job
from pumice.framework.arguments import arg
from pumice.framework.plugin import PERMIT, Plugin, Refusal, Vote
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession
from pumice.framework.queue_limits.limits import ClusterLimit, Reservations
from pumice.framework.refusals import over_quota, within_quota


@dataclass(kw_only=True)
class Overcommit(Plugin, name="overcommit"):
    """Admit jobs while their reservations fit into ``factor`` times the cluster, less its use."""

    simulator = SimulatorAssumptions()
    factor: float = arg(
        "overcommit-factor",
        default=1.2,
        minimum=1,
        doc="size of the assumed cluster, in multiples of the real one",
    )

    def on_open(self, ssn: PluginSession) -> None:
        """Compute what is idle in the enlarged cluster and what is reserved of it."""
        self._names = ssn.snapshot.resources.names
        self._snapshot, self._total = ssn.snapshot, ssn.total
        ssn.journal.defer(lambda: (self._limit, self._idle, self._reserved))

    @cached_property
    def _limit(self) -> ClusterLimit:
        return self.admission_limit(self._snapshot, self._total)

    @cached_property
    def _idle(self) -> Column:
        return self._limit.idle()

    @cached_property
    def _reservations(self) -> Reservations:
        return Reservations.at_opening(self._snapshot)

    @cached_property
    def _reserved(self) -> Column:
        return self._reservations.total()

    def admission_limit(self, snapshot: Snapshot, total: Column) -> ClusterLimit:
        """Return the enlarged cluster."""
        return ClusterLimit(snapshot, total * self.factor)

    def job_enqueueable(self, job: Job) -> Vote:
        """Permit a job whose needs fit beside all reservations, in the resources it names."""
        request = job.min_resources
        if request is None:
            return PERMIT
        verdict = within_quota(
            self._names,
            self._reserved,
            request,
            self._idle,
            queue=job.queue,
            at=CLUSTER,
            code=Cause.NOT_ADMITTED,
        )
        return verdict if isinstance(verdict, bool) else self._with_sums(verdict)

    def _with_sums(self, refusal: Refusal) -> Refusal:
        """Add what is in use to a refusal, against the whole enlarged cluster."""
        enlarged = self._limit.total
        in_use = enlarged - self._idle
        short = [
            Short(each.resource, float(in_use[row]) + each.used, each.request, float(limit))
            for each in short_of(refusal.numbers)
            for row in (self._names.index(each.resource),)
            for limit in (enlarged[row],)
        ]
        finding = over_quota(
            short, queue=refusal.numbers["queue"], at=CLUSTER, code=Cause.NOT_ADMITTED
        )
        numbers = {each.resource: each.used for each in short_of(refusal.numbers)}
        return replace(
            finding, numbers={**finding.numbers, "factor": self.factor, "reserved": numbers}
        )

    def on_enqueued(self, job: Job) -> None:
        """Reserve what the job needs, whichever plugin admitted it."""
        if job.min_resources is not None:
            self._reserved = self._reserved + self._reservations.of_job(job.row)
