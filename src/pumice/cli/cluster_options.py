"""How commands are told which cluster they speak of, and how they print answers.

Shared by explain, whatif, snapshot and queue order; loads the deciding core only when it is used.
"""

import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pumice.cli.plugin_option import PluginSources

if TYPE_CHECKING:
    from pumice.cluster.base import Cluster
    from pumice.diagnosis import ClusterState

_F = TypeVar("_F", bound=Callable[..., Any])
_EXISTING = click.Path(exists=True, allow_dash=True, path_type=Path)


_FILES = click.option(
    "-f",
    "--filename",
    "files",
    metavar="FILE",
    multiple=True,
    type=_EXISTING,
    help="Output of 'kubectl get … -o yaml', manifests, a scenario or a snapshot; a file or a "
    "folder, may be given several times; - reads the input.  [default: the cluster is asked]",
)
_NOW = click.option(
    "--now",
    metavar="TIME",
    help="The time to decide at, RFC 3339.  [default: that of the cluster, or the latest that "
    "the files speak of]",
)
_KUBECONFIG = click.option(
    "-k",
    "--kubeconfig",
    metavar="FILE",
    default="",
    help="Which cluster to ask.  [default: $KUBECONFIG, a running 'pumice up', ~/.kube/config]",
)
_MASTER = click.option("-s", "--master", metavar="URL", default="", help="Its address.")


def conf_option(
    name: str = "--conf", text: str = "The scheduler configuration."
) -> Callable[[_F], _F]:
    """Make the option that names the configuration a cluster has."""
    return click.option(
        name,
        "conf",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help=f"{text}  [default: that of the cluster or the files, else the built-in one]",
    )


def cluster_options(command: _F) -> _F:
    """Add the options that name a running cluster."""
    return _KUBECONFIG(_MASTER(command))


def world_options(command: _F) -> _F:
    """Add the options that name the sources of a cluster."""
    return _FILES(cluster_options(conf_option()(_NOW(command))))


def source_options(command: _F) -> _F:
    """Add the options that name the sources of a cluster, but for its configuration."""
    return _FILES(cluster_options(_NOW(command)))


output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="How to print the answer.",
)


def read_world(
    files: tuple[Path, ...],
    conf: Path | None = None,
    now: str | None = None,
    *,
    kubeconfig: str = "",
    master: str = "",
    plugins: PluginSources = (),
    ask_extender: bool = False,
) -> "ClusterState":
    """Read the cluster that a command speaks of: files, else the one that runs.

    What its configuration says in vain, and what a cluster did not show, is told.
    """
    from pumice.api.times import epoch  # noqa: PLC0415
    from pumice.cli.config import conf_problems  # noqa: PLC0415  (loads all plugins)
    from pumice.diagnosis import load_world  # noqa: PLC0415
    from pumice.errors import ConfError  # noqa: PLC0415
    from pumice.framework.plugin_loading import load_plugins  # noqa: PLC0415

    at = epoch(now) if now else None
    if files:
        texts = [sys.stdin.read() + "\n" if str(file) == "-" else file for file in files]
        world = load_world(texts, conf, at)
    else:
        world = _ask_cluster(kubeconfig, master, lambda cluster: load_world([cluster], conf, at))
        click.echo(f"note: scheduler configuration: {world.conf_source}", err=True)
    world = replace(world, plugins=load_plugins(plugins), asks_extender=ask_extender)
    problems = conf_problems(world.scheduler_conf, plugins)
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        raise ConfError(errors, file=world.conf_source)
    for problem in problems:
        click.echo(f"warning: {world.conf_source}: {problem}", err=True)
    for note in world.notes:
        click.echo(f"note: {note}", err=True)
    return world


def end_if_plugins_failed(world: "ClusterState") -> None:
    """Report plugins that failed while the answer was worked out, and exit with 1."""
    for line in world.failures:
        click.echo(f"error: {line}", err=True)
    if world.failures:
        click.get_current_context().exit(1)


def _ask_cluster(
    kubeconfig: str, master: str, read: "Callable[[Cluster], ClusterState]"
) -> "ClusterState":
    """Read a running cluster; without one, or if it does not answer, end with one line."""
    from pumice.cli.connect import ConnectOptions, connect, trouble  # noqa: PLC0415
    from pumice.errors import ClusterError, ServiceError  # noqa: PLC0415

    make = click.get_current_context().obj or connect
    try:
        with make(ConnectOptions(kubeconfig, master)) as cluster:
            return read(cluster)
    except (ServiceError, ClusterError) as error:
        raise click.ClickException(f"{trouble(error)}; or give files") from error


def print_data(data: Any, output: str) -> None:
    """Print plain data for programs."""
    if output == "json":
        import json  # noqa: PLC0415

        click.echo(json.dumps(data, indent=1, ensure_ascii=False))
        return
    import json  # noqa: PLC0415

    import yaml  # noqa: PLC0415

    plain = json.loads(json.dumps(data))  # tuples become lists
    click.echo(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100), nl=False)


def print_text(text: str, *, indent: str = "", first: str | None = None, **style: Any) -> None:
    """Print a paragraph, wrapped to the terminal if there is one."""
    lines = [text]
    if sys.stdout.isatty():
        room = max(get_terminal_size().columns - len(indent), 40)
        lines = textwrap.wrap(text, room, break_on_hyphens=False, break_long_words=False) or [""]
    for number, line in enumerate(lines):
        head = (indent if first is None else first) if number == 0 else indent
        click.echo(head + (click.style(line, **style) if style else line))


def print_heading(text: str) -> None:
    """Print the title of a part."""
    click.echo(f"\n{click.style(text, bold=True)}")


def sentence(text: str) -> str:
    """Give a text a capital letter, unless it starts with a name, and a full stop."""
    first = text.partition(" ")[0]
    head = text[:1] if "/" in first else text[:1].upper()
    end = "" if text.endswith("?") else "."
    return f"{head}{text[1:].rstrip('.')}{end}" if text else ""
