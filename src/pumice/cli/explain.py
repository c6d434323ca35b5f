"""`pumice explain`: why a job waits, gate by gate, and what would get it started."""

from collections.abc import Callable
from pathlib import Path

import click

from pumice.cli.cluster_options import (
    end_if_plugins_failed,
    output_option,
    print_data,
    print_heading,
    print_text,
    read_world,
    sentence,
    world_options,
)
from pumice.cli.plugin_option import PluginSources, plugin_option
from pumice.cli.tables import print_rows
from pumice.diagnosis import Explanation, explain_job, explain_waiting

_MARKS = {"passed": ("✓", "green"), "failed": ("✗", "red"), "not reached": ("·", "bright_black")}


@click.command()
@click.argument("job", metavar="[JOB]", required=False)
@world_options
@click.option(
    "--cycles",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many cycles to run before the job is looked at.",
)
@click.option("--no-unblock", is_flag=True, help="Do not look for changes that would help.")
@plugin_option
@output_option
def explain(
    *,
    job: str | None,
    files: tuple[Path, ...],
    conf: Path | None,
    now: str | None,
    kubeconfig: str,
    master: str,
    cycles: int,
    no_unblock: bool,
    plugins: PluginSources,
    output: str,
) -> None:
    """Say why JOB waits: a pod group, a Volcano job or a pod; without JOB, all that wait."""
    world = read_world(files, conf, now, kubeconfig=kubeconfig, master=master, plugins=plugins)
    if job is None:
        _print_all(explain_waiting(world), output, world.plain)
        end_if_plugins_failed(world)
        return
    found = explain_job(world, job, cycles=cycles, unblock=not no_unblock)
    if output == "table":
        _print(found, world.plain)
    else:
        print_data(found.to_dict(), output)
    end_if_plugins_failed(world)


def _print_all(reasons: dict[str, str], output: str, say: Callable[[str], str]) -> None:
    if output != "table":
        print_data(reasons, output)
    elif reasons:
        rows = [(say(job), say(why)) for job, why in reasons.items()]
        print_rows(("job", "why it waits"), rows)
    else:
        click.echo("no job waits")


def _print(found: Explanation, say: Callable[[str], str]) -> None:
    pods = ", ".join(f"{n} {status.lower()}" for status, n in found.pods.items()) or "no pods"
    if found.expected:
        pods = f"{found.expected} pods, not made yet"
    place = f"queue {found.queue or '(none)'}, phase {found.phase or '(none)'}"
    print_text(f"{found.name}  {place}, minMember {found.min_member}; {pods}")
    click.echo()
    print_text(sentence(say(found.sentence)), bold=True)
    click.echo()
    for gate in found.gates:
        mark, colour = _MARKS[gate.mark]
        first = f"  {click.style(mark, fg=colour)} {gate.name:<9} "
        print_text(say(gate.text) or gate.mark, indent=" " * 14, first=first)
    if found.victims:
        print_heading("Pods that leave for it")
        rows = [(v.pod, v.node, say(v.job), v.queue, str(v.priority)) for v in found.victims]
        print_rows(("pod", "node", "job", "queue", "priority"), rows)
    if found.state != "waits":
        return
    _print_unblock(found, say)


def _print_unblock(found: Explanation, say: Callable[[str], str]) -> None:
    if found.unblock:
        print_heading("What would unblock it (each tried on a copy)")
        for way in found.unblock:
            text = f"{sentence(way.change)[:-1]}: {way.result}"
            print_text(say(text), indent="    ", first="  • ")
    elif found.tried:
        print_heading("What would unblock it")
        print_text(
            f"None of the {found.tried} changes that were tried gets it started.", indent="  "
        )
