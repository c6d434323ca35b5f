"""The webhooks: path, kind, operation and name of each."""

from collections.abc import Mapping
from typing import Final

import msgspec

from pumice.api.kinds import CRON_JOB, HYPER_NODE, JOB, JOB_FLOW, POD_GROUP, QUEUE
from pumice.webhooks.go_types import DecodeError
from pumice.webhooks.job import mutate_job, validate_job
from pumice.webhooks.pod import mutate_pod, validate_pod
from pumice.webhooks.queue import mutate_queue, validate_queue
from pumice.webhooks.review import Answer, Existing, Operation, Options, Request, Rule, unreadable
from pumice.webhooks.small_kinds import (
    mutate_podgroup,
    validate_cronjob,
    validate_hypernode,
    validate_jobflow,
    validate_podgroup,
)

_ALL: Final[tuple[Operation, ...]] = ("CREATE", "UPDATE", "DELETE")


class Service(msgspec.Struct, frozen=True):
    """One webhook."""

    path: str
    name: str
    """Name in the webhook configuration; users see it in refusals."""
    kind: str
    operations: tuple[Operation, ...]
    rule: Rule

    def answer(self, request: Request, existing: Existing, options: Options) -> Answer:
        """Apply the rule; an object that does not fit its type is refused."""
        try:
            return self.rule(request, existing, options)
        except DecodeError as error:
            return unreadable(error)

    @property
    def mutating(self) -> bool:
        """Whether it changes objects."""
        return self.path.endswith("/mutate")


_POD: Final = "Pod"
_NEW: Final[tuple[Operation, ...]] = _ALL[:1]
_WRITTEN: Final[tuple[Operation, ...]] = _ALL[:2]
# The names are those of Volcano's chart, which uses one name for flows and jobs.
SERVICES: Final[Mapping[str, Service]] = {
    service.path: service
    for service in (
        Service("/pods/mutate", "mutatepod.volcano.sh", _POD, _NEW, mutate_pod),
        Service("/queues/mutate", "mutatequeue.volcano.sh", QUEUE, _NEW, mutate_queue),
        Service("/podgroups/mutate", "mutatepodgroup.volcano.sh", POD_GROUP, _NEW, mutate_podgroup),
        Service("/jobs/mutate", "mutatejob.volcano.sh", JOB, _WRITTEN, mutate_job),
        Service("/jobs/validate", "validatejob.volcano.sh", JOB, _WRITTEN, validate_job),
        Service(
            "/jobflows/validate", "validatejob.volcano.sh", JOB_FLOW, _WRITTEN, validate_jobflow
        ),
        Service("/pods/validate", "validatepod.volcano.sh", _POD, _NEW, validate_pod),
        Service("/queues/validate", "validatequeue.volcano.sh", QUEUE, _ALL, validate_queue),
        Service(
            "/podgroups/validate", "validatepodgroup.volcano.sh", POD_GROUP, _NEW, validate_podgroup
        ),
        Service(
            "/hypernodes/validate", "validatehypernodes.volcano.sh", HYPER_NODE, _WRITTEN,
            validate_hypernode,
        ),
        Service(
            "/cronjobs/validate", "validatecronjob.volcano.sh", CRON_JOB, _WRITTEN, validate_cronjob
        ),
    )
}  # fmt: skip
CHART_PATHS: Final = (
    "/jobs/mutate", "/jobs/validate", "/podgroups/validate", "/queues/mutate", "/queues/validate",
    "/hypernodes/validate", "/cronjobs/validate",
)  # fmt: skip
"""The webhooks that Volcano's chart enables."""
SKIPPED_NAMESPACES: Final = ("volcano-system", "kube-system")
"""Namespaces that no webhook checks."""
