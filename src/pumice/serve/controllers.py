"""Wiring: the controllers on a real cluster, until stopped."""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pumice import logs
from pumice.cluster.base import LiveCluster
from pumice.controllers import all_controllers
from pumice.controllers.base import Controller
from pumice.controllers.controller_metrics import ControllerMetrics
from pumice.controllers.hypernode import DISCOVERY_CONFIG
from pumice.controllers.shard_conf import ShardConf, shards_of_flags
from pumice.controllers.threaded_loop import ThreadedLoop
from pumice.controllers.view import LOOKED_UP
from pumice.metrics import Metrics
from pumice.serve.cache_gate import CacheGate
from pumice.serve.options import ControllerOptions

NAMES: Final[Mapping[str, str]] = {
    "cronjob": "cronjob-controller",
    "garbage": "gc-controller",
    "hypernode": "hyperNode-controller",
    "job": "job-controller",
    "jobflow": "jobflow-controller",
    "jobtemplate": "jobtemplate-controller",
    "podgroup": "pg-controller",
    "queue": "queue-controller",
    "sharding": "sharding-controller",
}
"""Controllers by their names in the flag ``--controllers``."""
_FLUSH_S: Final = 5.0
_WAIT_S: Final = 1.0
_POLL_S: Final = 5.0
"""How often the ConfigMap of HyperNode discovery is read."""
_HYPER_NODES: Final = 5
"""HyperNodes, and NodeShards, that are written in parallel."""
_GATES: Final = {"job": "VolcanoJobSupport", "cronjob": "CronVolcanoJobSupport"}

_log = logs.get("controllers")


def is_enabled(name: str, wanted: Sequence[str]) -> bool:
    """Return whether a controller runs; the first entry that names it decides, else the star."""
    for entry in wanted:
        if entry.removeprefix("+") == name:
            return True
        if entry == f"-{name}":
            return False
    return "*" in wanted or not wanted


def unknown_controllers(wanted: Sequence[str]) -> list[str]:
    """List the entries that name a missing controller; excluding one is allowed."""
    asked = {entry.removeprefix("+") for entry in wanted if not entry.startswith("-")}
    return sorted(asked - {*NAMES.values(), "*"})


def chosen_controllers(options: ControllerOptions) -> tuple[Controller, ...]:
    """Make the enabled controllers."""
    made = all_controllers(
        scheduler_names=options.scheduler_name,
        inherit_owner_annotations=options.inherit_owner_annotations,
        max_requeue_num=options.max_requeue_num,
        discovery_config=discovery_config(),
        shards=ShardConf(
            shards_of_flags(options.scheduler_configs),
            options.shard_sync_period_s,
            options.enable_node_event_trigger,
        ),
        sharding_config=(options.sharding_configmap_namespace, options.sharding_configmap),
        poll_s=_POLL_S,
    )
    return tuple(
        controller
        for controller in made
        if is_enabled(NAMES[controller.name], options.controllers)
        and (controller.name not in _GATES or options.gate(_GATES[controller.name]))
    )


def discovery_config() -> tuple[str, str]:
    """Return namespace and name of the ConfigMap of HyperNode discovery.

    The variables are those of Volcano's chart.
    """
    namespace, name = DISCOVERY_CONFIG
    release = os.environ.get("HELM_RELEASE_NAME")
    return (
        os.environ.get("KUBE_POD_NAMESPACE") or namespace,
        f"{release}-controller-configmap" if release else name,
    )


def followed_kinds(options: ControllerOptions) -> tuple[str, ...]:
    """List the kinds that a cluster must watch for the enabled controllers."""
    watched = (kind for controller in chosen_controllers(options) for kind in controller.watches)
    return tuple(kind for kind in dict.fromkeys(watched) if kind not in LOOKED_UP)


def run_controllers(
    cluster: LiveCluster,
    options: ControllerOptions,
    metrics: Metrics,
    stop: threading.Event,
    *,
    on_look: Callable[[], None] = lambda: None,
    steady: Callable[[], float] | None = None,
) -> None:
    """Run the controllers that are enabled until stopped and everything is done.

    ``on_look`` is called before each reconciliation, and every second when idle, so
    that a watchdog can detect a hanging loop.
    """
    for name in unknown_controllers(options.controllers):
        _log.warning("unknown controller", controller=name)
    gate = CacheGate(cluster, metrics, _log, steady or time.monotonic)
    while not gate.is_open(_WAIT_S):
        on_look()
        if stop.is_set():
            return
    metrics.ready(is_ready=True)
    controllers = chosen_controllers(options)
    loop = ThreadedLoop(
        cluster,
        controllers,
        workers=_workers(options),
        wake=cluster.new_wake(),
        metrics=metrics,
        on_look=on_look,
        steady=steady,
        is_current=gate.is_open,
    )
    loop.on_change.append(ControllerMetrics(metrics, loop.view).notice)
    names = ",".join(controller.name for controller in controllers)
    _log.info("controllers started", controllers=names)
    loop.run(stop)
    cluster.flush(_FLUSH_S)  # events may still be in flight
    _log.info("controllers stopped")


def _workers(options: ControllerOptions) -> dict[str, int]:
    return {
        "job": options.worker_threads,
        "jobflow": options.worker_threads,
        "jobtemplate": options.worker_threads,
        "cronjob": options.worker_threads_for_cronjob,
        "podgroup": options.worker_threads_for_podgroup,
        "garbage": options.worker_threads_for_gc,
        "queue": options.worker_threads_for_queue,
        "hypernode": _HYPER_NODES,
        "sharding": _HYPER_NODES,
    }
