"""Controllers: each brings one kind of object closer to what it says, level by level."""

from collections.abc import Collection

from pumice.controllers.base import Controller
from pumice.controllers.cronjob import CronJobController
from pumice.controllers.garbage import GarbageController
from pumice.controllers.jobflow import JobFlowController
from pumice.controllers.jobtemplate import JobTemplateController
from pumice.controllers.podgroup import PodGroupController
from pumice.controllers.queue import QueueController

__all__ = [
    "Controller",
    "CronJobController",
    "GarbageController",
    "JobFlowController",
    "JobTemplateController",
    "PodGroupController",
    "QueueController",
    "all_controllers",
]


def all_controllers(
    *,
    scheduler_names: Collection[str] = ("volcano",),
    inherit_owner_annotations: bool = True,
    max_requeue: int = 15,
) -> tuple[Controller, ...]:
    """Make one of each controller; the arguments are the flags of Volcano's own."""
    return (
        QueueController(max_requeue=max_requeue),
        PodGroupController(
            scheduler_names=scheduler_names, inherit_owner_annotations=inherit_owner_annotations
        ),
        GarbageController(),
        JobFlowController(),
        JobTemplateController(),
        CronJobController(),
    )
