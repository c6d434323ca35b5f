"""`pumice snapshot`: a whole cluster in one file; save it, look at it, compare two."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pumice.api.output_files import write_file
from pumice.api.wording import counted, span
from pumice.cli.inputs import read_world
from pumice.cli.options import (
    SOURCE,
    ClusterInput,
    cluster_options,
    conf_option,
    now_option,
    output_option,
)
from pumice.cli.printing import echo, print_data, print_heading, print_rows, print_text

if TYPE_CHECKING:
    from pumice.diagnosis.snapshots import Difference, Summary

_CONF = conf_option()
_NOW = now_option("cluster")


_SHOWN = 30
_TITLES = {
    "binds": "The next cycle binds",
    "evictions": "The next cycle evicts",
    "phases": "Phases after the next cycle",
    "why": "Why jobs wait",
}


@click.group()
def snapshot() -> None:
    """Save, show and compare clusters."""


@snapshot.command("save")
@click.argument("sources", metavar="[FROM]...", nargs=-1, type=SOURCE)
@click.option(
    "-o",
    "--output",
    "target",
    metavar="FILE",
    required=True,
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="The file to write: JSON if its name ends in .json, else YAML.",
)
@_CONF
@_NOW
@cluster_options
def save(
    *,
    sources: tuple[Path, ...],
    target: Path,
    conf: Path | None,
    now: str | None,
    kubeconfig: str,
    master: str,
) -> None:
    """Put a cluster into one file: the running one, or FROM.

    FROM are manifests, 'kubectl get -o yaml' output, scenarios or a record.  Environment
    variables, commands and arguments of containers are left out.  The file is a scenario: 'pumice
    run' plays it, and 'pumice run --write' makes a test of it.
    """
    from pumice.diagnosis.snapshots import save_world, saved_objects

    world = read_world(ClusterInput(sources, conf, now, kubeconfig, master))
    number, as_json = len(list(saved_objects(world))), target.suffix == ".json"
    text = save_world(world, name=target.stem, as_json=as_json)
    write_file(target, text, private=True)
    left = [f"{n} {kind}" for kind, n in sorted(world.left_out.items())]
    note = f"; left out what scheduling does not read: {', '.join(left)}" if left else ""
    echo(f"wrote {counted(number, 'object')} to {target}{note}", err=True)


@snapshot.command("show")
@click.argument("sources", metavar="[FILE]...", nargs=-1, type=SOURCE)
@_CONF
@_NOW
@cluster_options
@output_option
def show(
    *,
    sources: tuple[Path, ...],
    conf: Path | None,
    now: str | None,
    kubeconfig: str,
    master: str,
    output: str,
) -> None:
    """Sum up a snapshot, a moment of a record or the running cluster.

    Prints nodes, what is free, queues, and jobs by phase.
    """
    from pumice.diagnosis.snapshots import summarise

    found = summarise(read_world(ClusterInput(sources, conf, now, kubeconfig, master)))
    if output == "table":
        _print_summary(found)
    else:
        print_data(found.to_dict(), output)


@snapshot.command("diff")
@click.argument("left", metavar="OLD", type=SOURCE)
@click.argument("right", metavar="[NEW]", type=SOURCE, required=False)
@click.option(
    "--at",
    "moments",
    metavar="TIME",
    multiple=True,
    help="The moment of a record: that of OLD, then that of NEW, or a second one of OLD.",
)
@_CONF
@cluster_options
@output_option
@click.pass_context
def diff(
    ctx: click.Context,
    *,
    left: Path,
    right: Path | None,
    moments: tuple[str, ...],
    conf: Path | None,
    kubeconfig: str,
    master: str,
    output: str,
) -> None:
    """Compare two snapshots, or two moments of a record.

    Compares objects, and what the next cycle decides on them.  Without NEW and a second --at the
    running cluster is compared.  Exits with 1 if they differ.
    """
    from pumice.diagnosis.snapshots import diff_worlds

    if len(moments) > 2:
        raise click.UsageError("--at is given at most twice: for OLD, and for NEW")
    first = moments[0] if moments else None
    second = moments[1] if len(moments) == 2 else None
    other = right or (left if second else None)
    new = read_world(ClusterInput((other,) if other else (), conf, second, kubeconfig, master))
    found = diff_worlds(read_world(ClusterInput((left,), conf, first)), new)
    if output == "table":
        _print_difference(found)
    else:
        print_data(found.to_dict(), output)
    ctx.exit(0 if found.is_empty else 1)


def _print_summary(found: Summary) -> None:
    print_text(f"taken at {found.now}; actions {', '.join(found.actions)} ({found.conf_source})")
    echo(", ".join(f"{n} {kind}" for kind, n in found.objects.items()))
    if found.left_out:
        left = ", ".join(f"{n} {kind}" for kind, n in sorted(found.left_out.items()))
        echo(f"left out: {left}")
    closed = f", cordoned: {', '.join(found.closed_nodes)}" if found.closed_nodes else ""
    print_heading(f"{counted(found.nodes, 'node')}{closed}")
    print_rows(
        ("resource", "total", "free", "in use", "most free on one node"),
        [
            (r.resource, r.total, r.free, f"{r.percent:g} %", r.largest_free)
            for r in found.resources
        ],
    )
    print_heading(counted(len(found.queues), "queue"))
    print_rows(
        ("queue", "parent", "state", "weight", "allocated", "pending", "jobs"),
        [
            (
                queue.name,
                queue.parent,
                queue.state,
                str(queue.weight),
                _pairs(queue.allocated),
                _pairs(queue.pending),
                _pairs(queue.jobs),
            )
            for queue in found.queues
        ],
    )
    print_heading("Jobs and pods by phase")
    echo(f"jobs: {_pairs(found.phases) or 'none'}")
    echo(f"pods: {_pairs(found.pods) or 'none'}")


def _pairs(numbers: dict[str, Any]) -> str:
    return ", ".join(f"{name} {n}" for name, n in numbers.items() if name != "pods" or n)


def _print_difference(found: Difference) -> None:
    if found.is_empty:
        echo("no differences")
        return
    if found.seconds:
        order = "later" if found.seconds > 0 else "earlier"
        echo(f"the second is {span(abs(found.seconds))} {order}")
    if found.conf:
        echo("the configurations differ")
    _print_names("+", "green", found.added)
    _print_names("-", "red", found.removed)
    for kind, objects in found.changed.items():
        for key, fields in list(objects.items())[:_SHOWN]:
            echo(f"~ {kind} {key}", fg="yellow")
            for path, (left, right) in fields.items():
                print_text(f"{path}: {_value(left)} → {_value(right)}", indent="    ")
        _rest(len(objects))
    for what, rows in found.decisions.items():
        print_heading(_TITLES[what])
        shown = [(key, a or "-", b or "-") for key, (a, b) in rows.items()]
        print_rows(
            ("pod" if what in ("binds", "evictions") else "job", "old", "new"), shown[:_SHOWN]
        )
        _rest(len(shown))


def _print_names(sign: str, colour: str, names: dict[str, list[str]]) -> None:
    for kind, keys in names.items():
        for key in keys[:_SHOWN]:
            echo(f"{sign} {kind} {key}", fg=colour)
        _rest(len(keys))


def _value(value: Any) -> str:
    if value is None:
        return "nothing"
    text = str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _rest(n: int) -> None:
    if n > _SHOWN:
        echo(f"… and {n - _SHOWN} more (-o json has all)")
