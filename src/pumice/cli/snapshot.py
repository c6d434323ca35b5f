"""`pumice snapshot`: a whole cluster in one file; save it, look at it, compare two."""

from pathlib import Path
from typing import Any

import click

from pumice.api.output_files import write_file
from pumice.api.wording import counted, span
from pumice.cli.printing import print_data
from pumice.cli.tables import print_rows
from pumice.cli.terminal import echo, print_heading, print_text
from pumice.cli.world import read_world
from pumice.diagnosis.snapshots import (
    Difference,
    Summary,
    diff_worlds,
    save_world,
    saved_objects,
    summarise,
)

_SHOWN = 30


def save(
    *,
    sources: tuple[Path, ...],
    target: Path,
    conf: Path | None,
    now: str | None,
    kubeconfig: str,
    master: str,
) -> None:
    """Write a cluster to one file."""
    world = read_world(sources, conf, now, kubeconfig=kubeconfig, master=master)
    number, as_json = len(list(saved_objects(world))), target.suffix == ".json"
    text = save_world(world, name=target.stem, as_json=as_json)
    write_file(target, text, private=True)
    left = [f"{n} {kind}" for kind, n in sorted(world.left_out.items())]
    note = f"; left out what scheduling does not read: {', '.join(left)}" if left else ""
    echo(f"wrote {counted(number, 'object')} to {target}{note}", err=True)


def show(
    *, sources: tuple[Path, ...], conf: Path | None, kubeconfig: str, master: str, output: str
) -> None:
    """Print the summary of a cluster."""
    found = summarise(read_world(sources, conf, kubeconfig=kubeconfig, master=master))
    if output == "table":
        _print_summary(found)
    else:
        print_data(found.to_dict(), output)


def diff(
    ctx: click.Context,
    *,
    left: Path,
    right: Path | None,
    conf: Path | None,
    kubeconfig: str,
    master: str,
    output: str,
) -> None:
    """Print how two clusters differ; exit with 1 if they do."""
    new = read_world((right,) if right else (), conf, kubeconfig=kubeconfig, master=master)
    found = diff_worlds(read_world((left,), conf), new)
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


_TITLES = {
    "binds": "The next cycle binds",
    "evictions": "The next cycle evicts",
    "phases": "Phases after the next cycle",
    "why": "Why jobs wait",
}


def _value(value: Any) -> str:
    if value is None:
        return "nothing"
    text = str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _rest(n: int) -> None:
    if n > _SHOWN:
        echo(f"… and {n - _SHOWN} more (-o json has all)")
