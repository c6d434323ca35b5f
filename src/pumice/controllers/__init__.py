"""Controllers: each brings one kind of object closer to its spec, level by level."""

from collections.abc import Collection

from pumice.controllers.base import Controller
from pumice.controllers.cronjob import CronJobController
from pumice.controllers.garbage import GarbageController
from pumice.controllers.hypernode import DISCOVERY_CONFIG, HyperNodeController
from pumice.controllers.job import JobController
from pumice.controllers.job.plugins import KeyMaker, new_key_pair
from pumice.controllers.jobflow import JobFlowController, JobTemplateController
from pumice.controllers.podgroup import PodGroupController
from pumice.controllers.queue import QueueController
from pumice.controllers.shard_conf import ShardConf
from pumice.controllers.sharding import SHARDING_CONFIG, ShardingController

__all__ = [
    "Controller",
    "CronJobController",
    "GarbageController",
    "HyperNodeController",
    "JobController",
    "JobFlowController",
    "JobTemplateController",
    "PodGroupController",
    "QueueController",
    "ShardingController",
    "all_controllers",
]


def all_controllers(
    *,
    scheduler_names: Collection[str] = ("volcano",),
    inherit_owner_annotations: bool = True,
    groups_bound: bool = True,
    max_requeue_num: int = 15,
    keys: KeyMaker = new_key_pair,
    discovery_config: tuple[str, str] = DISCOVERY_CONFIG,
    shards: ShardConf | None = None,
    sharding_config: tuple[str, str] = SHARDING_CONFIG,
    poll_s: float | None = None,
) -> tuple[Controller, ...]:
    """Make one of each controller.

    The arguments are the flags of Volcano's own; ``keys`` makes the key pairs of the plugin ssh.
    Unless ``groups_bound``, pods that have a node and no group stay without: a question about
    files must not make them victims which the next cycle does not know.
    ``discovery_config`` names the ConfigMap with the settings of discovery; with ``poll_s`` it
    is read that often.  ``sharding_config`` names the ConfigMap with the shards of nodes, in place
    of ``shards``; without any, nodes are not divided.
    """
    divided = (
        () if shards is None else (ShardingController(shards, sharding_config, poll_s=poll_s),)
    )
    return (
        *divided,
        QueueController(max_requeue_num=max_requeue_num),
        PodGroupController(
            scheduler_names=scheduler_names,
            inherit_owner_annotations=inherit_owner_annotations,
            groups_bound=groups_bound,
        ),
        GarbageController(),
        JobController(max_requeue_num=max_requeue_num, keys=keys),
        JobFlowController(),
        JobTemplateController(),
        CronJobController(),
        HyperNodeController(discovery_config, poll_s=poll_s),
    )
