"""The input of a command: files or the running cluster, and a configuration that was checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pumice.api.text_files import shown_name
from pumice.cli.connect import ConnectOptions, connect, trouble
from pumice.cli.options import ClusterInput, PluginSources, moment_of
from pumice.cli.printing import echo, print_findings
from pumice.errors import (
    ClusterError,
    ConfError,
    InputError,
    RejectedError,
    ScenarioError,
    ServiceError,
    Words,
)
from pumice.garbage_collection import reading

if TYPE_CHECKING:
    from pumice.api.conf import Problem, SchedulerConf
    from pumice.api.manifests import Pack
    from pumice.cluster.base import Cluster
    from pumice.diagnosis.cluster_state import ClusterState
    from pumice.framework.plugin import Plugin
    from pumice.scenarios.scenario import Scenario

_T = TypeVar("_T")


# A cluster


def read_world(
    source: ClusterInput,
    plugins: PluginSources = (),
    *,
    ask_extender: bool = False,
    warns: bool = True,
) -> ClusterState:
    """Read the cluster of a command: files, else the running one.

    Settings without effect, if it ``warns`` of them, and what a cluster did not
    show, are printed.
    """
    from pumice.diagnosis.sources import load_world
    from pumice.framework.registry import load_plugins
    from pumice.scenarios.suspicious_objects import mistakes

    files, conf, at = source.files, source.conf, moment_of(source.now, source.files)
    if files:
        with reading():
            world = load_world(files, conf, at)
            if not world.objects:
                raise _no_objects(files)
    else:
        world = ask_cluster(source, lambda cluster: load_world([cluster], conf, at))
        echo(f"note: scheduler configuration: {world.conf_source}", err=True)
    world = replace(world, plugins=load_plugins(plugins), asks_extender=ask_extender)
    if warns:
        warn_of_conf(world.scheduler_conf, world.conf_source, plugins)
    if files:
        # of two that were read the later one counts, but others are made for jobs and claims
        are_unique = not (world.jobs or world.of_kind("ResourceClaimTemplate"))
        found = mistakes(world.objects, are_unique=are_unique)
        print_findings((f"warning: {mistake}" for _, mistake in found), err=True)
    print_findings((f"note: {note}" for note in world.notes), err=True)
    return world


def _no_objects(files: Sequence[Path]) -> InputError:
    names = ", ".join(map(shown_name, files))
    return InputError(wanted="the objects of a cluster", found=Words("none"), file=names)


def end_if_plugins_failed(world: ClusterState) -> None:
    """Report plugins that failed while the answer was computed, and exit with 1."""
    for line in world.failures:
        echo(f"error: {line}", err=True)
    if world.failures:
        click.get_current_context().exit(1)


def ask_cluster(source: ClusterInput, read: Callable[[Cluster], _T]) -> _T:
    """Read a running cluster; without one, or if it does not answer, end with one line."""
    make = click.get_current_context().obj or connect
    try:
        with make(ConnectOptions(source.kubeconfig, source.master)) as cluster:
            return read(cluster)
    except (ServiceError, ClusterError) as error:
        hint = (
            "the whole cluster is read; why a job waits is also in the annotations of its pod group"
            if isinstance(error, RejectedError) and "forbidden" in error.problem
            else "to work without a cluster, name files with -f"
        )
        raise click.ClickException(f"{trouble(error)}; {hint}") from error


# A configuration


def conf_problems(conf: SchedulerConf, plugins: PluginSources = ()) -> list[Problem]:
    """List every error, setting without effect and oddity of a configuration, by line."""
    from pumice.actions import ACTIONS
    from pumice.framework.conf_check import check_conf

    return check_conf(conf, all_plugins(plugins), ACTIONS)


def warn_of_conf(conf: SchedulerConf, source: str, plugins: PluginSources = ()) -> None:
    """Warn on stderr about settings without effect, refuse a configuration with errors.

    Raises:
        ConfError: It cannot be used.
    """
    from pumice.framework.conf_check import errors_of

    problems = conf_problems(conf, plugins)
    if errors := errors_of(problems):
        raise ConfError(errors, file=source)
    print_warnings(problems, source)


def print_warnings(problems: Iterable[Problem], source: str) -> None:
    """Print on stderr the problems that are only warnings."""
    warnings = [problem for problem in problems if problem.severity != "error"]
    vain = ("", "; it has no effect")
    lines = (f"warning: {source}: {one}{vain[one.severity == 'ignored']}" for one in warnings)
    print_findings(lines, err=True)


def all_plugins(plugins: PluginSources) -> Mapping[str, type[Plugin]]:
    """Return all plugins by name: built-in, installed and those named on the command line."""
    from pumice.framework.registry import known_plugins, load_plugins
    from pumice.plugins import builtin_plugins

    return known_plugins(builtin_plugins(), load_plugins(plugins))


# A scenario


def read_scenario(
    files: Sequence[Path], conf: Path | None = None, now: str | None = None
) -> Scenario:
    """Make one scenario of files; for plain manifests, print which configuration applies.

    Raises:
        InputError: a file cannot be read or used.
    """
    with reading():
        return _read(files, conf, moment_of(now, files))


def _read(files: Sequence[Path], conf: Path | None, at: float | None) -> Scenario:
    from pumice.api.manifests import load_roots
    from pumice.api.named_files import read_conf_file
    from pumice.scenarios.scenario import are_manifests, located_scenario

    if len(files) > 1 or files[0].is_dir():
        return _of_manifests(files, None, conf, at)
    roots = load_roots(files[0])
    values = [root.content for root in roots]
    if are_manifests(values):
        return _of_manifests(files, [root.pack() for root in roots], conf, at)
    scenario = located_scenario(_only(values), Path(shown_name(files[0])))
    if conf is not None:
        text, source = read_conf_file(conf)
        scenario = replace(scenario, conf=text, conf_source=source)
    return scenario if at is None else replace(scenario, now=at)


def with_expectations(scenario: Scenario, file: Path) -> Scenario:
    """Return a scenario with the expectations of a file, which `pumice run -o yaml` can print.

    Raises:
        ScenarioError: the file holds something else.
    """
    from pumice.api.manifests import load_values
    from pumice.scenarios.expectations import expectations_from

    cycles, expect = expectations_from(file, {"expect": _only(load_values(file))})
    if not any(expect):
        raise ScenarioError(wanted="expectations", field="expect", file=str(file))
    return replace(scenario, cycles=cycles or len(expect), expect=expect)


def hold_manifests(source: Path) -> bool:
    """Return whether a file holds manifests rather than a scenario."""
    from pumice.api.manifests import load_values
    from pumice.scenarios.scenario import are_manifests

    return source.is_dir() or are_manifests(load_values(source))


def _of_manifests(
    files: Sequence[Path], packs: Sequence[Pack] | None, conf: Path | None, now: float | None
) -> Scenario:
    """Make a scenario of manifests; ``packs`` are those of the one file if it was read already."""
    from pumice.diagnosis.sources import Documents, load_world
    from pumice.scenarios.scenario import Scenario

    sources = files if packs is None else [Documents(files[0], packs=packs)]
    world = load_world(sources, conf, now)
    if not (world.objects or world.left_out):
        raise _no_objects(files)
    echo(f"note: scheduler configuration: {world.conf_source}", err=True)
    if world.left_out:
        left = ", ".join(f"{number} {kind}" for kind, number in sorted(world.left_out.items()))
        echo(f"note: not used by scheduling: {left}", err=True)
    name = shown_name(files[0])
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return Scenario(
        path=Path(f"{name}{more}"),
        name=Path(name).stem,
        objects=list(world.objects),
        conf=world.conf,
        conf_source=world.conf_source,
        now=world.now,
        seed=world.seed,
        hidden=dict(world.hidden),
        node_usage={node: dict(facts) for node, facts in world.node_usage.items()},
    )


def _only(documents: Sequence[Any]) -> Any:
    """Return the one document, None of an empty file, or all of several."""
    return list(documents) if len(documents) > 1 else next(iter(documents), None)
