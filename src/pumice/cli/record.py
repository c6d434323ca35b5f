"""`pumice record`: a log of everything that scheduling depends on, beside any scheduler."""

from __future__ import annotations

import signal
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pumice.api.wording import counted
from pumice.cli.connect import ConnectOptions, connection, trouble
from pumice.cli.failures import print_failures
from pumice.cli.options import cluster_options
from pumice.cli.printing import echo
from pumice.errors import ClusterError, ServiceError

if TYPE_CHECKING:
    from pumice.cluster.kube.cluster import KubeCluster
    from pumice.records.recorder import Limits

_STEP_S: Final = 0.5
"""How often changes are taken from the cluster."""


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--size",
    metavar="AMOUNT",
    default="4Gi",
    show_default=True,
    help="Bytes that the record may take: the oldest is thinned to checkpoints, then dropped.",
)
@click.option(
    "--age",
    metavar="DURATION",
    default="720h",
    show_default=True,
    help="How long it is kept, the second half of it as checkpoints only.",
)
@cluster_options
def record(*, folder: Path, size: str, age: str, kubeconfig: str, master: str) -> None:
    """Record the running cluster in DIR until Ctrl-C.

    It needs read permissions only and runs beside any scheduler.  Commands that take -f accept DIR,
    with --at for a moment; environments, commands and arguments of containers are left out.
    """
    from pumice.records.recorder import Limits

    limits = Limits.of(size, age, "--")
    make = click.get_current_context().obj or _connect
    try:
        with make(ConnectOptions(kubeconfig, master)) as cluster:
            _record(cluster, folder, limits)
    except (ServiceError, ClusterError) as error:
        raise click.ClickException(trouble(error)) from error


def _connect(options: ConnectOptions) -> AbstractContextManager[KubeCluster]:
    from pumice.cluster.kube.cluster import KubeCluster
    from pumice.records.observed import RECORDED

    return KubeCluster(connection(options), kinds=RECORDED, by_server=True)


def _record(cluster: Any, folder: Path, limits: Limits) -> None:
    """Follow the cluster until stopped."""
    from pumice.cluster.stored_conf import scheduler_configuration
    from pumice.records.observed import Follower, unread, wait_synced
    from pumice.records.recorder import Recorder

    print_failures()
    stop = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    recorder = Recorder(folder, cluster.now, by="observer", limits=limits)
    try:
        wait_synced(cluster, stop.is_set)
        follower = Follower(
            cluster, recorder, conf=scheduler_configuration, hidden=lambda: unread(cluster)
        )
        follower.step()
        recorder.start()
        echo(f"recording {counted(recorder.count, 'object')} in {recorder.folder}; Ctrl-C stops it")
        while not stop.wait(_STEP_S):
            follower.step()
    finally:
        recorder.close()
        for number, handler in before.items():
            signal.signal(number, handler)
    echo("stopped", err=True)
