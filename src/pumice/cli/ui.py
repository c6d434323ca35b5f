"""`pumice ui`: the dashboard of a running cluster, of files, or of a demo."""

import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click

from pumice.api.kinds import JOB
from pumice.api.objects import FOLLOWED
from pumice.cli.command_lines.plugin_option import PluginSources
from pumice.cli.connect import ConnectOptions, connection, trouble
from pumice.cli.terminal import echo
from pumice.cli.up import FIRST_JOB
from pumice.cli.world import read_world
from pumice.cluster.kube.cluster import KubeCluster
from pumice.dashboard.runs import RunLibrary
from pumice.dashboard.serving import ServingOptions, served_dashboard
from pumice.dashboard.sources import About, EmbeddedSource, FollowedSource, Source, StaticSource
from pumice.diagnosis.cluster_state import ClusterState
from pumice.errors import ClusterError, ServiceError


def ui(
    *,
    files: tuple[Path, ...],
    conf: Path | None,
    now: str | None,
    kubeconfig: str,
    master: str,
    demo: bool,
    folders: tuple[Path, ...],
    plugins: PluginSources,
    **given: Any,
) -> None:
    """Serve the dashboard until Ctrl-C."""
    serving = ServingOptions(**given)
    serving.check_early()
    if demo and plugins:
        raise click.UsageError("--plugin needs files or a cluster: the demo has its own policy")
    if demo:
        opened = _demo()
    elif files or (folders and not (kubeconfig or master)):
        opened = _files(files, conf, now, plugins)
    else:
        opened = _running(ConnectOptions(kubeconfig, master), plugins)
    with ExitStack() as stack:
        if demo:
            folders = (*folders, stack.enter_context(_demo_runs()))
        runs = RunLibrary(folders)
        source = stack.enter_context(opened)
        url = stack.enter_context(served_dashboard(source, serving, runs=runs))
        echo(f"dashboard at {url}")
        echo()
        echo("Ctrl-C stops it.")
        wait_for_stop()
    echo("stopped", err=True)


@contextmanager
def _files(
    files: tuple[Path, ...], conf: Path | None, now: str | None, plugins: PluginSources
) -> Iterator[Source]:
    if not files:  # simulations alone
        yield StaticSource(ClusterState(objects=(), now=0.0), "simulations")
        return
    world = read_world(files, conf, now, plugins=plugins)
    yield StaticSource(world, ", ".join(file.name for file in files), plugins)


@contextmanager
def _demo() -> Iterator[Source]:
    from pumice.cli.demo.living_cluster import LivingCluster  # noqa: PLC0415

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
    from pumice.cli.demo.simulations import demo_runs  # noqa: PLC0415

    return demo_runs()


@contextmanager
def _running(options: ConnectOptions, plugins: PluginSources) -> Iterator[Source]:
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
