"""`pumice ui`: the dashboard of a running cluster, of files, or of a demo."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pumice.api.kinds import JOB
from pumice.cli.connect import ConnectOptions, connection, trouble
from pumice.cli.inputs import read_world
from pumice.cli.options import (
    FILE,
    ClusterInput,
    PluginSources,
    plugin_option,
    together,
    world_options,
)
from pumice.cli.printing import echo
from pumice.errors import ClusterError, ServiceError

if TYPE_CHECKING:
    from pumice.dashboard.sources import Source

_SERVING = together(
    click.option(
        "--listen",
        metavar="ADDRESS",
        default="127.0.0.1",
        show_default=True,
        help="Address to serve at.",
    ),
    click.option(
        "--port",
        metavar="P",
        type=click.IntRange(0, 65535),
        default=0,
        help="Its port.  [default: a free one]",
    ),
    click.option(
        "--host",
        "hosts",
        metavar="NAME",
        multiple=True,
        help="A host name under which it is reached.",
    ),
    click.option("--tls-cert", metavar="FILE", type=FILE, help="Certificate to serve with."),
    click.option("--tls-key", metavar="FILE", type=FILE, help="Its key."),
    click.option(
        "--token-file",
        metavar="FILE",
        type=FILE,
        help="Anyone with the token in this file may look.",
    ),
    click.option(
        "--cluster-login",
        is_flag=True,
        help="Users log in with cluster tokens and see the namespaces they may read.",
    ),
    click.option(
        "--allow-actions",
        is_flag=True,
        help="Let pages suspend, resume and end jobs, and open and close queues.",
    ),
)
"""Their names are those of ``ServingOptions``."""


@click.command()
@world_options()
@click.option("--demo", is_flag=True, help="Show a demo cluster with changing work.")
@click.option(
    "--sim",
    "folders",
    metavar="DIR",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder that 'pumice sim --dir' wrote, or one with such folders; repeatable.",
)
@plugin_option
@_SERVING
def ui(
    *,
    source: ClusterInput,
    demo: bool,
    folders: tuple[Path, ...],
    plugins: PluginSources,
    **given: Any,
) -> None:
    """Serve the dashboard until Ctrl-C.

    It shows the running cluster, or the given files.  Nothing is written to it, unless
    --allow-actions lets users act.
    """
    from pumice.dashboard.runs import RunLibrary
    from pumice.dashboard.serving import ServingOptions, served_dashboard

    serving = ServingOptions(**given)
    serving.check_early()
    if demo and plugins:
        raise click.UsageError("--plugin needs files or a cluster: the demo has its own policy")
    if demo:
        opened = _demo()
    elif source.files or (folders and not (source.kubeconfig or source.master)):
        opened = _files(source, plugins)
    else:
        opened = _running(ConnectOptions(source.kubeconfig, source.master), plugins)
    with ExitStack() as stack:
        if demo:
            folders = (*folders, stack.enter_context(_demo_runs()))
        runs = RunLibrary(folders)
        shown = stack.enter_context(opened)
        url = stack.enter_context(served_dashboard(shown, serving, runs=runs))
        echo(f"dashboard at {url}")
        echo()
        echo("Ctrl-C stops it.")
        wait_for_stop()
    echo("stopped", err=True)


@contextmanager
def _files(source: ClusterInput, plugins: PluginSources) -> Iterator[Source]:
    from pumice.dashboard.material import Material
    from pumice.dashboard.sources import StaticSource
    from pumice.diagnosis.cluster_state import ClusterState
    from pumice.records.segments import is_record

    if not source.files:  # simulations alone
        yield StaticSource(ClusterState(objects=(), now=0.0), "simulations")
        return
    world = read_world(source, plugins)
    past = None
    if len(source.files) == 1 and is_record(source.files[0]):
        conf = world.conf if source.conf is not None else ""
        past = Material(now=world.now, record=source.files[0], conf=conf, plugins=plugins)
    yield StaticSource(world, ", ".join(file.name for file in source.files), plugins, past)


@contextmanager
def _demo() -> Iterator[Source]:
    from pumice.cli.demo.living_cluster import LivingCluster
    from pumice.cli.up import FIRST_JOB
    from pumice.dashboard.sources import About, EmbeddedSource

    echo("playing the last twenty minutes of the demo …")
    living = LivingCluster()
    about = About(title="demo", kind="embedded", decides=True, hint=FIRST_JOB)
    source = EmbeddedSource(living.served.plane, about)
    living.play_history()
    living.clock.run()
    living.served.start()
    echo(f"cluster at {living.served.url} (kubectl -s, pumice … --master)")
    try:
        yield source
    finally:
        living.served.stop()


def _demo_runs() -> AbstractContextManager[Path]:
    from pumice.cli.demo.living_cluster import demo_runs

    return demo_runs()


@contextmanager
def _running(options: ConnectOptions, plugins: PluginSources) -> Iterator[Source]:
    from pumice.api.objects import FOLLOWED
    from pumice.cluster.kube.cluster import KubeCluster
    from pumice.dashboard.sources import FollowedSource

    try:
        found = connection(options)
        with KubeCluster(found, kinds=(*FOLLOWED, JOB), by_server=True) as cluster:
            title = options.kubeconfig or options.master or "cluster"
            source = FollowedSource(cluster, title, plugins=plugins)
            source.start()
            try:
                yield source
            finally:
                source.stop()
    except (ServiceError, ClusterError) as error:
        hint = "name files with -f, or see --demo"
        raise click.ClickException(f"{trouble(error)}; {hint}") from error


def wait_for_stop() -> None:
    """Wait for Ctrl-C or SIGTERM."""
    stop = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        while not stop.wait(0.5):
            pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
