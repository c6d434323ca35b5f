"""Controllers: each brings one kind of object closer to what it says, level by level."""

import secrets
from collections.abc import Callable, Collection

from pumice.controllers.base import Controller
from pumice.controllers.cronjob import CronJobController
from pumice.controllers.garbage import GarbageController
from pumice.controllers.job import JobController
from pumice.controllers.jobflow import JobFlowController
from pumice.controllers.jobtemplate import JobTemplateController
from pumice.controllers.podgroup import PodGroupController
from pumice.controllers.queue import QueueController

__all__ = [
    "Controller",
    "CronJobController",
    "GarbageController",
    "JobController",
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
    max_requeue_num: int = 15,
    bits: Callable[[int], int] = secrets.randbits,
) -> tuple[Controller, ...]:
    """Make one of each controller.

    The arguments are the flags of Volcano's own; ``bits`` gives random bits for keys and names.
    """
    return (
        QueueController(max_requeue_num=max_requeue_num),
        PodGroupController(
            scheduler_names=scheduler_names, inherit_owner_annotations=inherit_owner_annotations
        ),
        GarbageController(),
        JobController(max_requeue_num=max_requeue_num, bits=bits),
        JobFlowController(),
        JobTemplateController(),
        CronJobController(),
    )
