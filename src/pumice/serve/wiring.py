"""From options to a running process: connection, parts, election, endpoints.

Imported when a process is really started; until then the command line needs none of it.
"""

import socket
import threading
import uuid
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pumice import logs
from pumice.api.conf import SchedulerConf
from pumice.cluster.kube.cluster import KubeCluster
from pumice.cluster.kube.connection import Connection, load_connection
from pumice.cluster.lease import LeaseElector
from pumice.metrics import Group, Metrics
from pumice.serve.dump import write_dump
from pumice.serve.endpoints import health_app, metrics_app, tls_context
from pumice.serve.flags import split_address
from pumice.serve.http_server import HttpServer, Site
from pumice.serve.options import (
    CommonOptions,
    ControllerOptions,
    LeaderOptions,
    SchedulerOptions,
    WebhookOptions,
)
from pumice.serve.parse_options import Told
from pumice.serve.process import Part, Process
from pumice.serve.scheduler.conf_reload import ConfFile

_log = logs.get("serve")


def set_up_logs(options: CommonOptions) -> None:
    """Log as the options say."""
    pairs = (part.partition("=") for part in options.vmodule.split(",") if part.strip())
    logs.set_up(
        json_lines=options.logging_format == "json",
        level=options.v,
        vmodule={name.strip(): int(level) for name, _, level in pairs},
        headers=not options.skip_headers,
    )


def serve(told: Told) -> int:
    """Run what is wanted until told to stop; gives the exit code."""
    set_up_logs(told.common)
    for warning in told.parsed.warnings:
        _log.warning(warning)
    metrics = Metrics(groups=_groups(told))
    with ExitStack() as stack:
        cluster = _cluster(told, stack)
        process = Process([], metrics)
        if cluster is not None and told.leader is not None:
            process.elector = _elector(told, told.leader, cluster, stack)
        process.parts = _parts(told, cluster, process, metrics)
        if told.scheduler is not None and told.scheduler.cache_dumper and cluster is not None:
            process.dump = _dump(cluster, told.scheduler.cache_dump_dir)
        stack.enter_context(HttpServer(_sites(told, cluster, process)))
        process.handle_signals()
        return process.run()


def _groups(told: Told) -> list[Group]:
    """Name the figures that there will be."""
    groups: list[Group] = []
    if told.scheduler is not None:
        groups.append("scheduler")
    if told.controllers is not None:
        groups.append("controllers")
    return groups


def _kinds(told: Told) -> tuple[str, ...]:
    """List what is to be followed."""
    kinds: list[str] = []
    if told.scheduler is not None:
        from pumice.serve.scheduler import KINDS  # noqa: PLC0415  # the scheduler is only loaded if it runs

        kinds += KINDS
    if told.controllers is not None:
        from pumice.serve.controllers import chosen_controllers, controller_kinds  # noqa: PLC0415

        kinds += controller_kinds(chosen_controllers(told.controllers))
    return tuple(dict.fromkeys(kinds))


def _connection(options: CommonOptions) -> Connection:
    return load_connection(options.kubeconfig or None, options.master)


def _cluster(told: Told, stack: ExitStack) -> KubeCluster | None:
    """Follow the cluster, unless nothing but webhooks runs, which ask for themselves."""
    options = told.leader
    if options is None:
        return None
    return stack.enter_context(
        KubeCluster(
            _connection(options),
            kinds=_kinds(told),
            qps=options.kube_api_qps,
            burst=options.kube_api_burst,
        )
    )


def _elector(
    told: Told, options: LeaderOptions, cluster: KubeCluster, stack: ExitStack
) -> LeaseElector | None:
    """Take part in the election, on a connection that neither fence nor rate limit holds up."""
    if not options.leader_elect:
        return None
    patience_s = options.leader_elect_renew_deadline_s / 2
    own = stack.enter_context(KubeCluster(_connection(told.common), timeout_s=patience_s))
    elector = LeaseElector(
        own,
        namespace=options.leader_elect_resource_namespace,
        name=options.leader_elect_resource_name,
        identity=f"{socket.gethostname()}_{uuid.uuid4()}",
        lease_s=options.leader_elect_lease_duration_s,
        renew_s=options.leader_elect_renew_deadline_s,
        retry_s=options.leader_elect_retry_period_s,
    )
    cluster.fence = elector.is_leader
    return elector


def _parts(
    told: Told, cluster: KubeCluster | None, process: Process, metrics: Metrics
) -> list[Part]:
    parts: list[Part] = []
    if told.scheduler is not None and cluster is not None:
        parts.append(_scheduler(cluster, told.scheduler, process, metrics))
    if told.controllers is not None and cluster is not None:
        parts.append(_controllers(cluster, told.controllers, process))
    if told.webhooks is not None:
        parts.append(_webhooks(told.webhooks))
    return parts


def _scheduler(
    cluster: KubeCluster, options: SchedulerOptions, process: Process, metrics: Metrics
) -> Part:
    from pumice.scheduler import Scheduler  # noqa: PLC0415
    from pumice.serve.scheduler import LiveOptions, run_scheduler  # noqa: PLC0415

    def checked(conf: SchedulerConf) -> SchedulerConf:
        for problem in Scheduler(conf, seed=options.seed).ignored:
            _log.warning("in the configuration", problem=problem)
        return conf

    strict = options.disable_default_scheduler_config
    file = ConfFile(options.scheduler_conf, checked, metrics=metrics, strict=strict)
    elector = process.elector
    live = LiveOptions(
        conf=file.latest,
        names=options.scheduler_name,
        period_s=options.schedule_period_s,
        default_queue=options.default_queue,
        node_selector=options.node_selector,
        is_leader=elector.is_leader if elector is not None else lambda: True,
        on_turn=process.pulse.beat,
        sync_timeout_s=options.resource_sync_timeout_s,
        seed=options.seed,
    )
    return Part("scheduler", lambda stop: run_scheduler(cluster, live, metrics, stop))


def _controllers(cluster: KubeCluster, options: ControllerOptions, process: Process) -> Part:
    from pumice.serve.controllers import run_controllers  # noqa: PLC0415

    def run(stop: threading.Event) -> None:
        run_controllers(cluster, options, process.metrics, stop, on_look=process.looks.beat)

    return Part("controllers", run, needs_lead=True)


def _webhooks(options: WebhookOptions) -> Part:
    from pumice.serve.webhooks.server import serve_webhooks  # noqa: PLC0415

    return Part("webhooks", lambda stop: serve_webhooks(options, stop))


def _dump(cluster: KubeCluster, folder: str) -> Callable[[], Path]:
    """Give what writes down all that the scheduler knows just now."""
    from pumice.serve.scheduler import KINDS  # noqa: PLC0415

    def dump() -> Path:
        missing = cluster.wait_synced(0)  # to be listed they would have to be waited for
        kinds = [kind for kind in KINDS if kind not in missing]
        return write_dump(cluster, kinds, folder, "pumice-cache")

    return dump


def _sites(told: Told, cluster: KubeCluster | None, process: Process) -> list[Site]:
    """Serve health and metrics where the options say, on one port if it is the same."""

    def missing() -> list[str]:
        absent = [] if cluster is None else cluster.wait_synced(0)
        process.metrics.ready(is_ready=not absent)
        if told.webhooks is not None and not _answers(told.webhooks):
            absent = [*absent, "webhooks"]
        return absent

    def details() -> list[str]:
        return [] if cluster is None else _watches(cluster, _kinds(told))

    def figures() -> str:
        if cluster is not None:
            troubles = cluster.troubles()
            for kind in _kinds(told):
                process.metrics.watching(kind, is_well=kind not in troubles)
        return process.metrics.text()

    common, leader = told.common, told.leader
    wanted: dict[tuple[str, int], dict[str, Any]] = {}
    if common.enable_healthz:
        tls = tls_context(common.ca_cert_file, common.tls_cert_file, common.tls_private_key_file)
        place = split_address(common.healthz_address, "healthz-address")
        wanted[place] = {"app": health_app(missing, process.unwell, details), "tls": tls}
    if leader is not None and leader.enable_metrics:
        place = split_address(leader.listen_address, "listen-address")
        site = wanted.setdefault(place, {"app": health_app(missing, process.unwell, details)})
        metrics_app(figures, site["app"])
    return [Site(host=host, port=port, **what) for (host, port), what in wanted.items()]


def _watches(cluster: KubeCluster, kinds: Iterable[str]) -> list[str]:
    """Tell of each kind whether it is followed, and if not, why."""
    told = {kind: f"[-]{kind}: {trouble}" for kind, trouble in cluster.troubles().items()}
    told |= {kind: f"[ ]{kind}: the server does not have it" for kind in cluster.absent()}
    return [told.get(kind, f"[+]{kind} ok") for kind in kinds]


def _answers(options: WebhookOptions) -> bool:
    """Say whether the webhooks can be reached."""
    try:
        with socket.create_connection((options.listen_address or "127.0.0.1", options.port), 1.0):
            return True
    except OSError:
        return False
