"""`pumice queue order`: which job goes first, and which plugin decides that."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from pumice.cli.inputs import end_if_plugins_failed, read_world
from pumice.cli.options import (
    ClusterInput,
    PluginSources,
    output_option,
    plugin_option,
    world_options,
)
from pumice.cli.printing import print_data, print_rows
from pumice.cli.terminal import echo, print_heading, print_text


@click.command("order")
@world_options()
@plugin_option
@output_option
def order(
    *,
    source: ClusterInput,
    plugins: PluginSources,
    output: str,
) -> None:
    """Show the order in which queues and jobs are considered, and why."""
    from pumice.diagnosis.queue_order import queue_order

    world = read_world(source, plugins)
    found = queue_order(world).to_dict()
    if output == "table":
        _print(found, world.plain)
    else:
        print_data(found, output)
    end_if_plugins_failed(world)


def _print(found: Mapping[str, Any], say: Callable[[str], str]) -> None:
    if not found["queues"]:
        waits = "in line" if found["without_pods"] else "in any queue"
        echo(f"no job waits {waits}")
        _print_without_pods(found["without_pods"], say)
        return
    print_heading("Queues with waiting jobs, the first one first")
    plugins = list(found["queues"][0]["keys"])
    rows = [
        (str(n), line["name"], *(line["keys"][each] for each in plugins), line["after"])
        for n, line in enumerate(found["queues"], start=1)
    ]
    print_rows(("#", "queue", *plugins, "after the one before because of"), rows)
    for queue, lines in found["jobs"].items():
        print_heading(f"Jobs of queue {queue}")
        plugins = list(lines[0]["keys"]) if lines else []
        jobs = [
            (
                str(n),
                say(line["name"]),
                *(line["keys"][each] for each in plugins),
                line["after"],
                "" if line["turn"] is None else str(line["turn"]),
                say(line["outcome"]),
            )
            for n, line in enumerate(lines, start=1)
        ]
        columns = ("#", "job", *plugins, "after the one before because of", "turn", "outcome")
        print_rows(columns, jobs)
    _print_without_pods(found["without_pods"], say)
    print_heading("Deciding plugins in order; the first difference counts")
    for kind, plugin, rule in found["rules"]:
        print_text(f"{kind:<7} {plugin or '-':<12} {rule}", indent="  ")
    print_text(
        "turn: when allocate actually took the job; queues take turns, job by job", indent="  "
    )


def _print_without_pods(found: Mapping[str, str], say: Callable[[str], str]) -> None:
    if found:
        print_heading("Jobs that wait for their pods")
        print_rows(("job", "why"), [(say(job), say(why)) for job, why in found.items()])
