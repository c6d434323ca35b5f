"""`pumice up`: an embedded cluster on the real clock that kubectl can use."""

from __future__ import annotations

import signal
import socket
import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from pumice.api.kinds import Manifest
from pumice.api.output_files import make_folder, write_file
from pumice.api.quantity import parse_quantity
from pumice.api.text_files import read_text
from pumice.api.wording import value_of
from pumice.cli.connect import endpoint_file
from pumice.cli.failures import print_failures
from pumice.cli.inputs import warn_of_conf
from pumice.cli.printing import echo, echo_over
from pumice.errors import InputError, Words

if TYPE_CHECKING:
    from pumice.apiserver.served_cluster import ServedCluster
    from pumice.cluster.embedded.data_directory import DataDirectory

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_MOST_NODES = 10_000


FIRST_JOB = "pumice job run --name first --replicas 2 --min 2 --requests cpu=1000m,memory=1Gi"
_LOOK_S = 0.5
"""How often the status line is rewritten."""


@click.command()
@click.option(
    "--nodes",
    "count",
    metavar="N",
    type=click.IntRange(0, _MOST_NODES),
    help="How many equal nodes to start with.  [default: 3, none with --nodes-file]",
)
@click.option("--node-cpu", metavar="AMOUNT", default="8", show_default=True, help="CPU of each.")
@click.option("--node-memory", metavar="AMOUNT", default="32Gi", show_default=True, help="Memory.")
@click.option("--nodes-file", metavar="FILE", type=_FILE, help="Manifests to start with.")
@click.option("--conf", metavar="FILE", type=_FILE, help="The scheduler configuration.")
@click.option(
    "--default-scheduler",
    is_flag=True,
    help="Schedule pods that name no scheduler, too, such as those of kubectl run.",
)
@click.option("--port", metavar="P", type=click.IntRange(0, 65535), default=0, help="Port to use.")
@click.option("--ui/--no-ui", "with_ui", default=True, help="Serve the dashboard.  [default: on]")
@click.option("--ui-port", metavar="P", type=click.IntRange(0, 65535), default=0, help="Its port.")
@click.option("--allow-actions", is_flag=True, help="Let its pages change jobs and queues.")
@click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the kubeconfig.  [default: where 'pumice job' and other commands look]",
)
@click.option(
    "--data",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep all objects in this directory, and resume from them.  [default: in memory only]",
)
@click.option(
    "--record",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Record every change and decision in this directory, for answers about the past.",
)
@click.option(
    "--speed",
    metavar="X",
    type=click.FloatRange(0.001, 1000),
    default=1.0,
    show_default=True,
    help="How many times faster than real time its clock runs.",
)
def up(
    *,
    count: int | None,
    node_cpu: str,
    node_memory: str,
    nodes_file: Path | None,
    conf: Path | None,
    default_scheduler: bool,
    port: int,
    with_ui: bool,
    ui_port: int,
    allow_actions: bool,
    kubeconfig: Path | None,
    data: Path | None,
    record: Path | None,
    speed: float,
) -> None:
    """Start a cluster in this process and serve it until Ctrl-C.

    No containers run: pods start, last as long as their annotation pumice.dev/run-seconds states,
    and end.  Scheduler and controllers are the real ones.
    """
    from pumice.api.conf import DEFAULT_CONF

    resources = {"cpu": node_cpu, "memory": node_memory}
    for name, amount in resources.items():
        with value_of(f"--node-{name}"):
            parse_quantity(amount)
    if count is None:
        count = 0 if nodes_file else 3
    file = kubeconfig or endpoint_file()
    if kubeconfig is None:
        _refuse_second_cluster(file)
    manifests = _read_manifests(nodes_file) if nodes_file else []
    text = DEFAULT_CONF if conf is None else _read_conf(conf)
    if with_ui:
        _check_ui_port(ui_port)
    disk = _open_data(data) if data is not None else None
    more = {"speed": speed, "is_default_scheduler": default_scheduler, "record": record}
    cluster = _started(text, disk, port=port, **more)
    try:
        if disk is None or disk.is_new:
            cluster.add_nodes(count, resources)
        cluster.load(manifests)
        _write_kubeconfig(file, cluster.url)
        shown: AbstractContextManager[str] = nullcontext("")
        if with_ui:
            shown = _dashboard(cluster, ui_port, speed, record, allow_actions=allow_actions)
        with shown as page:
            _serve(cluster, file, page, new_conf=conf is not None)
    finally:
        cluster.stop()
        _take_away(file, cluster.url)
    echo("stopped", err=True)


def _started(text: str, disk: DataDirectory | None, *, port: int, **given: Any) -> ServedCluster:
    """Make the cluster at its port."""
    from pumice.apiserver.served_cluster import ServedCluster

    try:
        return ServedCluster(text, port=port, data=disk, **given)
    except OSError as error:
        if disk is not None:
            disk.close()
        raise InputError(
            wanted=f"a free port instead of {port}", found=error.strerror or str(error)
        ) from None


def _check_ui_port(port: int) -> None:
    from pumice.dashboard.serving import ServingOptions

    ServingOptions(port=port).check_early("--ui-port")


def _dashboard(
    cluster: ServedCluster, port: int, speed: float, record: Path | None, *, allow_actions: bool
) -> AbstractContextManager[str]:
    """Serve pages about the cluster; they read it directly."""
    from pumice.dashboard.material import Material
    from pumice.dashboard.serving import ServingOptions, served_dashboard
    from pumice.dashboard.sources import About, EmbeddedSource

    past = Material(now=0.0, record=record) if record is not None else None
    about = About(
        title="pumice up", kind="embedded", decides=True, speed=speed, hint=FIRST_JOB, past=past
    )
    options = ServingOptions(port=port, allow_actions=allow_actions)
    return served_dashboard(EmbeddedSource(cluster.plane, about), options)


def _open_data(folder: Path) -> DataDirectory:
    """Read what an earlier cluster left in a directory."""
    from pumice.cluster.embedded.data_directory import DataDirectory

    disk = DataDirectory(folder)
    if disk.note:
        echo(f"note: {disk.note}", err=True)
    return disk


def _read_manifests(file: Path) -> list[Manifest]:
    """Read the objects a cluster starts with."""
    from pumice.api.manifests import load_documents, unpacked

    found: list[Manifest] = []
    for document in load_documents(file):
        for item in unpacked(document.content, document.source):
            if not isinstance(item, dict) or not {"kind", "apiVersion", "metadata"} <= item.keys():
                raise InputError(
                    wanted="manifests with apiVersion, kind and metadata",
                    found=item,
                    file=document.source,
                )
            _check_object(item, document.source)
            found.append(item)
    if not found:
        raise InputError(wanted="manifests to start with", found=Words("none"), file=str(file))
    return found


def _check_object(item: Manifest, source: str) -> None:
    """Refuse an object that cannot be read here, where its file and line are known."""
    from pumice.api.objects import KINDS, from_manifest, in_namespace

    version, kind = item["apiVersion"], item["kind"]
    if isinstance(version, str) and isinstance(kind, str) and (version, kind) in KINDS:
        from_manifest(in_namespace(item), source=source)


def _read_conf(file: Path) -> str:
    """Read the configuration; warn about settings without effect, refuse errors."""
    from pumice.api.conf import read_conf
    from pumice.api.named_files import read_conf_file

    text, source = read_conf_file(file)
    warn_of_conf(read_conf(text), source)
    return text


def _refuse_second_cluster(file: Path) -> None:
    """Leave the kubeconfig of a cluster that still runs to that cluster."""
    from pumice.api.yaml_text import parse_yaml

    try:
        (config,) = parse_yaml(read_text(file), str(file))
        url = str(config["clusters"][0]["cluster"]["server"])
        place = urlsplit(url)
        socket.create_connection((place.hostname or "", place.port or 0), timeout=1).close()
    except (OSError, ValueError, LookupError, TypeError):
        return  # none, or left behind by one that did not end well
    raise click.ClickException(
        f"a cluster already runs at {url}; name another file with --kubeconfig"
    )


def _write_kubeconfig(file: Path, url: str) -> None:
    """Write the kubeconfig for clients."""
    import yaml

    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "pumice", "cluster": {"server": url}}],
        "users": [{"name": "pumice", "user": {}}],
        "contexts": [{"name": "pumice", "context": {"cluster": "pumice", "user": "pumice"}}],
        "current-context": "pumice",
    }
    text = yaml.safe_dump(content, sort_keys=False)
    make_folder(file.parent)
    write_file(file, text, private=True)


def _take_away(file: Path, url: str) -> None:
    """Remove the kubeconfig if it is still this cluster's."""
    try:
        if url in read_text(file):
            file.unlink()
    except (InputError, OSError):  # another process was faster
        return


def _serve(cluster: ServedCluster, file: Path, page: str, *, new_conf: bool) -> None:
    """Run until Ctrl-C or SIGTERM, with a line of status on a terminal."""
    stop = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        print_failures()
        cluster.start(new_conf=new_conf)
        _print_how(cluster.url, file, page)
        _wait(cluster, stop)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print_how(url: str, file: Path, page: str) -> None:
    option = "" if file == endpoint_file() else f" --kubeconfig {file}"
    echo(f"cluster at {url}")
    if page:
        echo(f"dashboard at {page}")
    echo(f"kubeconfig {file}")
    echo()
    echo(f"  kubectl --kubeconfig {file} get nodes")
    echo(f"  kubectl --kubeconfig {file} get vcjob,podgroups,pods")
    echo(f"  pumice job list{option}")
    echo(f"  pumice explain{option}")
    echo()
    echo("Ctrl-C stops it.")


def _wait(cluster: ServedCluster, stop: threading.Event) -> None:
    """Wait for a stop signal; show the state on a terminal."""
    live = sys.stdout.isatty()
    while not stop.wait(_LOOK_S):
        if live:
            echo_over(cluster.summary())
    if live:
        echo()
