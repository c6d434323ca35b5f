"""The cluster of a command, read from files or from the running one."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import click

from pumice.api.text_files import shown_name
from pumice.cli.command_lines.plugin_option import PluginSources
from pumice.cli.conf_problems import warn_of_conf
from pumice.cli.connect import ConnectOptions, connect, trouble
from pumice.cli.option_errors import time_of
from pumice.cli.terminal import echo
from pumice.cluster.base import Cluster
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.sources import load_world
from pumice.errors import ClusterError, InputError, ServiceError, Words
from pumice.framework.registry import load_plugins
from pumice.garbage_collection import reading
from pumice.scenarios.suspicious_objects import mistakes

_T = TypeVar("_T")


def read_world(
    files: tuple[Path, ...],
    conf: Path | None = None,
    now: str | None = None,
    *,
    kubeconfig: str = "",
    master: str = "",
    plugins: PluginSources = (),
    ask_extender: bool = False,
) -> ClusterState:
    """Read the cluster of a command: files, else the running one.

    Settings without effect, and what a cluster did not show, are printed.
    """
    at = time_of(now)
    if files:
        with reading():
            world = load_world(files, conf, at)
            if not world.objects:
                names = ", ".join(map(shown_name, files))
                raise InputError(wanted="the objects of a cluster", found=Words("none"), file=names)
    else:
        world = ask_cluster(kubeconfig, master, lambda cluster: load_world([cluster], conf, at))
        echo(f"note: scheduler configuration: {world.conf_source}", err=True)
    world = replace(world, plugins=load_plugins(plugins), asks_extender=ask_extender)
    warn_of_conf(world.scheduler_conf, world.conf_source, plugins)
    if files:
        # of two that were read the later one counts, but others are made for jobs and claims
        are_unique = not (world.jobs or world.of_kind("ResourceClaimTemplate"))
        for _, mistake in mistakes(world.objects, are_unique=are_unique):
            echo(f"warning: {mistake}", err=True)
    for note in world.notes:
        echo(f"note: {note}", err=True)
    return world


def end_if_plugins_failed(world: ClusterState) -> None:
    """Report plugins that failed while the answer was computed, and exit with 1."""
    for line in world.failures:
        echo(f"error: {line}", err=True)
    if world.failures:
        click.get_current_context().exit(1)


def ask_cluster(kubeconfig: str, master: str, read: Callable[[Cluster], _T]) -> _T:
    """Read a running cluster; without one, or if it does not answer, end with one line."""
    make = click.get_current_context().obj or connect
    try:
        with make(ConnectOptions(kubeconfig, master)) as cluster:
            return read(cluster)
    except (ServiceError, ClusterError) as error:
        raise click.ClickException(
            f"{trouble(error)}; to work without a cluster, name files"
        ) from error
