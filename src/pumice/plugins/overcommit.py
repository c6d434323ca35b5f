"""overcommit: admit a little more than the cluster holds, so that waiting jobs are at hand."""

from dataclasses import dataclass

from pumice.core.views import Job
from pumice.framework.admission import Reservations
from pumice.framework.arguments import arg
from pumice.framework.plugin import PERMIT, Plugin, Vote
from pumice.framework.plugin_session import PluginSession
from pumice.framework.refusals import within_quota


@dataclass(kw_only=True)
class Overcommit(Plugin, name="overcommit"):
    """Admit jobs while what they reserve fits the cluster, taken ``factor`` times, less its use."""

    factor: float = arg(
        "overcommit-factor", default=1.2, minimum=1, doc="how many times the cluster is counted"
    )

    def on_open(self, ssn: PluginSession) -> None:
        """Work out what is idle in the enlarged cluster and what is reserved of it."""
        self._names = ssn.snapshot.resources.names
        self._reservations = Reservations(ssn.snapshot)
        self._idle = ssn.total * self.factor - ssn.snapshot.nodes.used.sum(axis=1)
        self._reserved = self._reservations.total()

    def job_enqueueable(self, job: Job) -> Vote:
        """Permit a job whose needs fit beside all reservations, in what it asks for."""
        request = job.min_resources
        if request is None:
            return PERMIT
        return within_quota(
            self._names, self._reserved, request, self._idle, queue=job.queue, at="cluster"
        )

    def on_enqueued(self, job: Job) -> None:
        """Reserve what the job needs, whoever let it in."""
        if job.min_resources is not None:
            self._reserved = self._reserved + self._reservations.of_job(job.row)
