"""`pumice serve`: from options to a running process, to be read from top to bottom.

Imported when a process actually starts; modules of one part are imported with that part.
"""

import socket
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from pumice import logs
from pumice.api.conf import SchedulerConf
from pumice.api.objects import FOLLOWED
from pumice.api.wording import value_of
from pumice.cluster.base import LiveCluster
from pumice.cluster.kube.cluster import KubeCluster
from pumice.cluster.kube.connection import load_connection
from pumice.cluster.kube.rate_limit import Timing
from pumice.cluster.lease import LeaseElector
from pumice.cluster.services import SERVICES
from pumice.metrics import Group, Metrics
from pumice.scheduler import Observer
from pumice.serve.cache_dump import write_dump
from pumice.serve.early import followed_kinds
from pumice.serve.options import (
    QUEUE_GATES,
    ControllerOptions,
    LeaderOptions,
    ProcessOptions,
    SchedulerOptions,
    WebhookOptions,
)
from pumice.serve.ports import FirstConnection, Listening, ports_of
from pumice.serve.process import Part, Process
from pumice.serve.scheduler.live_scheduler import Cycle

if TYPE_CHECKING:  # loaded with their parts
    from pumice.scheduler import Scheduler
    from pumice.serve.recording import Recording
    from pumice.serve.scheduler.conf_reload import ConfFile

_SWITCH_S: Final = 0.0005
"""After how long a thread that computes yields: every step of a write waits for it."""
_log = logs.get("serve")


@dataclass(frozen=True)
class Machine:
    """The environment of a process: time, chance, and a unique name."""

    timing: Timing = field(default_factory=Timing)
    identity: str = field(default_factory=lambda: f"{socket.gethostname()}_{uuid.uuid4()}")


class Attachment(Protocol):
    """A site beside a scheduler that observes its sessions."""

    observer: Observer

    def finished(self, cycle: Cycle) -> None:
        """Process the results of a cycle."""

    def server(self) -> AbstractContextManager[object]:
        """Return a server of the site."""

    def close(self) -> None:
        """End."""


Attach = Callable[[SchedulerOptions, LiveCluster], Attachment]


def run(options: ProcessOptions, cluster: KubeCluster | None, attach: Attach | None = None) -> int:
    """Run what the options name on a cluster until stopped; return the exit code.

    ``attach`` makes the dashboard, if the options ask for one.
    """
    for warning in options.warnings:
        _log.warning(warning)
    sys.setswitchinterval(_SWITCH_S)
    with ExitStack() as stack:
        process = assemble(options, cluster, stack, Machine(), attach)
        for server in process.servers:
            stack.enter_context(server())

        def serve(listening: Listening) -> AbstractContextManager[object]:
            from pumice.serve import endpoints  # noqa: PLC0415

            kinds = followed_kinds(options)
            return endpoints.server(listening, options, process, cluster, kinds)

        stack.enter_context(FirstConnection(ports_of(options), serve))
        process.handle_signals()
        return process.run()


def assemble(
    options: ProcessOptions,
    cluster: KubeCluster | None,
    stack: ExitStack,
    machine: Machine,
    attach: Attach | None = None,
) -> Process:
    """Make a process of the parts that the options name; they are yet to be started."""
    process = Process(Metrics(groups=_metric_groups(options)))
    attached = None
    if options.leader is not None and cluster is not None:
        process.elector = _join_election(options.leader, cluster, stack, machine)
        if options.scheduler is not None and options.scheduler.shadow:
            cluster.fence = lambda: False  # every write is refused at the edge
        if options.scheduler is not None and options.scheduler.ui and attach is not None:
            attached = attach(options.scheduler, cluster)
            stack.callback(attached.close)
            process.servers.append(attached.server)
        process.parts += _leading_parts(options, cluster, process, machine, attached, stack=stack)
    if options.webhooks is not None:
        process.parts.append(_webhooks(options.webhooks))
    return process


def _metric_groups(options: ProcessOptions) -> list[Group]:
    groups: list[Group] = ["scheduler"] if options.scheduler is not None else []
    return [*groups, "controllers"] if options.controllers is not None else groups


def _join_election(
    options: LeaderOptions, cluster: KubeCluster, stack: ExitStack, machine: Machine
) -> LeaseElector | None:
    """Join the election, on a connection without fence and rate limit.

    What was known before the lease was taken may lack the last writes of the leader before.
    """
    if not options.leader_elect:
        return None
    connection = load_connection(options.kubeconfig or None, options.master)
    timeout_s = options.leader_elect_renew_deadline_s / 2
    elector = LeaseElector(
        stack.enter_context(KubeCluster(connection, timeout_s=timeout_s, timing=machine.timing)),
        namespace=options.leader_elect_resource_namespace,
        name=options.leader_elect_resource_name,
        identity=machine.identity,
        lease_s=options.leader_elect_lease_duration_s,
        renew_s=options.leader_elect_renew_deadline_s,
        retry_s=options.leader_elect_retry_period_s,
        clock=machine.timing.clock,
        on_won=cluster.start_over,
    )
    cluster.fence = elector.is_leader
    return elector


def _leading_parts(
    options: ProcessOptions,
    cluster: KubeCluster,
    process: Process,
    machine: Machine,
    attached: Attachment | None,
    *,
    stack: ExitStack,
) -> Iterator[Part]:
    """Make the parts of which only one may be active in a cluster."""
    if options.scheduler is not None:
        yield _scheduler(cluster, options, process, machine, attached, stack=stack)
        if options.scheduler.cache_dumper:
            process.dump = partial(dump_cache, cluster, options.scheduler.cache_dump_dir)
    if options.controllers is not None:
        yield _controllers(cluster, options.controllers, process, machine)


def _scheduler(
    cluster: KubeCluster,
    given: ProcessOptions,
    process: Process,
    machine: Machine,
    attached: Attachment | None,
    *,
    stack: ExitStack,
) -> Part:
    from pumice.cluster.usage.api_server import ApiServer  # noqa: PLC0415
    from pumice.scheduler import Scheduler  # noqa: PLC0415
    from pumice.serve.scheduler.conf_reload import ConfFile  # noqa: PLC0415
    from pumice.serve.scheduler.loop import SchedulerLoop  # noqa: PLC0415
    from pumice.serve.scheduler.shards import with_shard  # noqa: PLC0415

    options = given.scheduler
    assert options is not None  # noqa: S101  # else there is none to make

    def scheduler_with(conf: SchedulerConf) -> Scheduler:
        conf = replace(conf, queue_gates=options.gate(QUEUE_GATES))
        conf = with_shard(conf, options.scheduler_sharding_mode, options.scheduler_sharding_name)
        scheduler = Scheduler(conf, seed=options.seed, services=SERVICES)
        scheduler.log_warnings()
        if conf.queue_gates and not conf.names_plugin("capacity"):
            _log.warning(
                f"{QUEUE_GATES} is on, but only the plugin capacity reserves room for pods"
            )
        return scheduler

    conf_file = ConfFile(
        options.scheduler_conf,
        scheduler_with,
        metrics=process.metrics,
        strict=options.disable_default_scheduler_config,
    )
    recording = _recording(cluster, given, conf_file, machine, stack)
    loop = SchedulerLoop(
        cluster if recording is None else recording.observed(cluster),
        options,
        conf_file.latest,
        process.metrics,
        is_leader=process.is_leader,
        on_turn=process.scheduler_watchdog.beat,
        clock=machine.timing.clock,
        api_server=partial(ApiServer, cluster),
        on_cycle=_each(one.finished for one in (attached, recording) if one is not None),
        observer=None if attached is None else attached.observer,
    )
    process.readiness.append(loop.problem)
    return Part("scheduler", loop.run)


def _each(calls: Iterable[Callable[[Cycle], None]]) -> Callable[[Cycle], None]:
    """Make one call of several."""
    known = [*calls]

    def call(cycle: Cycle) -> None:
        for each in known:
            each(cycle)

    return call


def _recording(
    cluster: KubeCluster,
    given: ProcessOptions,
    conf_file: "ConfFile[Scheduler]",
    machine: Machine,
    stack: ExitStack,
) -> "Recording | None":
    """Begin the record that the options ask for, if any; it ends with the process.

    Kinds that the scheduler does not read have a connection of their own, so that it never waits
    for one that it may not read.
    """
    options, leader = given.scheduler, given.leader
    if options is None or leader is None or not options.record:
        return None
    from pumice.api.quantity import value  # noqa: PLC0415
    from pumice.records.entries import Settings  # noqa: PLC0415
    from pumice.records.observed import BESIDE, unread  # noqa: PLC0415
    from pumice.records.recorder import Limits  # noqa: PLC0415
    from pumice.serve.recording import Recording  # noqa: PLC0415

    with value_of("--record-size"):
        limits = Limits(value(options.record_size), options.record_age_s)
    place = options.scheduler_conf or "the built-in configuration"
    connection = load_connection(leader.kubeconfig or None, leader.master)
    beside = stack.enter_context(KubeCluster(connection, kinds=BESIDE, timing=machine.timing))
    recording = Recording(
        Path(options.record),
        cluster.now,
        conf=lambda: (conf_file.text, place),
        limits=limits,
        steady=machine.timing.clock,
        beside=beside,
        hidden=lambda: unread(beside),
    )
    stack.callback(recording.close)
    settings = Settings(
        seed=options.seed,
        names=options.scheduler_name,
        agents=options.agent_scheduler_name,
        assume=not options.shadow,
        default_queue=options.default_queue,
        node_selector=options.node_selector,
        queue_gates=options.gate(QUEUE_GATES),
        started_at=cluster.now(),
    )
    recording.start(settings)
    return recording


def _controllers(
    cluster: KubeCluster, options: ControllerOptions, process: Process, machine: Machine
) -> Part:
    from pumice.serve.controllers import run_controllers  # noqa: PLC0415

    def work(stop: threading.Event) -> None:
        beat = process.controllers_watchdog.beat
        steady = machine.timing.clock
        run_controllers(cluster, options, process.metrics, stop, on_look=beat, steady=steady)

    return Part("controllers", work, needs_lead=True)


def _webhooks(options: WebhookOptions) -> Part:
    from pumice.serve.webhooks import serve_webhooks  # noqa: PLC0415

    return Part("webhooks", partial(serve_webhooks, options))


def dump_cache(cluster: KubeCluster, folder: str) -> Path:
    """Write the scheduler's cache to a new file in a folder."""
    missing = cluster.wait_synced(0)  # listing them would need waiting
    kinds = [kind for kind in FOLLOWED if kind not in missing]
    return write_dump(cluster, kinds, folder, "pumice-cache")
