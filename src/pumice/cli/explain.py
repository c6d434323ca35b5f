"""`pumice explain`: why a job waits, on which nodes, which pods were spared, what would help."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import click

from pumice.api.wording import counted, ordinal
from pumice.cli.inputs import ask_cluster, end_if_plugins_failed, read_world
from pumice.cli.options import (
    ClusterInput,
    PluginSources,
    output_option,
    plugin_option,
    runtime_option,
    within_option,
    world_options,
)
from pumice.cli.printing import (
    echo,
    print_data,
    print_heading,
    print_rows,
    print_text,
    sentence,
    start_text,
)
from pumice.clock import Deadline

if TYPE_CHECKING:
    from pumice.diagnosis.explain import Explanation
    from pumice.diagnosis.waiting_jobs import WaitingJob
    from pumice.examine.findings import Position

Say = Callable[[str], str]
_CODE_WIDTH = 22


def _print_schema(context: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001
    if wanted and not context.resilient_parsing:
        from pumice.diagnosis.explanation import EXPLANATION

        print_data(EXPLANATION, "json")
        context.exit()


@click.command()
@click.argument("job", metavar="[JOB]", required=False)
@world_options()
@click.option(
    "--cycles",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of cycles to run before the job is examined.",
)
@click.option("--no-unblock", is_flag=True, help="Do not look for changes that would help.")
@click.option("--no-forecast", is_flag=True, help="Do not compute when the job starts.")
@within_option
@click.option(
    "--ask-extender",
    is_flag=True,
    help="Ask a configured extender about nodes; otherwise its vote is unknown.",
)
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON schema of the answer, and exit.",
)
@runtime_option
@plugin_option
@output_option
def explain(
    *,
    job: str | None,
    source: ClusterInput,
    cycles: int,
    no_unblock: bool,
    no_forecast: bool,
    within: float | None,
    ask_extender: bool,
    default_runtime: float | None,
    plugins: PluginSources,
    output: str,
) -> None:
    """Explain why JOB waits: a pod group, a Volcano job or a pod; without JOB, list waiting jobs.

    Nothing is changed, in the cluster or outside.
    """
    from pumice.diagnosis.explain import explain_in_steps
    from pumice.diagnosis.manifest_causes import missing_input
    from pumice.diagnosis.missing_pods import quota_notes
    from pumice.diagnosis.runner import unknown_votes
    from pumice.diagnosis.waiting_jobs import waiting_jobs

    deadline = Deadline.of(within)
    world = read_world(source, plugins, ask_extender=ask_extender)
    lacking = missing_input(world) if source.files else []  # a cluster shows what it has
    _print_notes([*lacking, *unknown_votes(world)])
    foresee, default_s = not no_forecast, default_runtime
    if job is None:
        _print_notes(quota_notes(world))
        jobs = waiting_jobs(world, foresee=foresee, default_s=default_s, deadline=deadline)
        _print_all(jobs, output, world.plain)
        end_if_plugins_failed(world)
        return
    with nullcontext() if source.files else _asking_what_it_is(job, source):
        steps = explain_in_steps(
            world,
            job,
            cycles=cycles,
            unblock=not no_unblock,
            foresee=foresee,
            default_s=default_s,
            deadline=deadline,
        )
        found = next(steps)
    _print_notes(quota_notes(world, [found.job]))
    if output == "table":
        _print_in_steps(found, steps, world.plain)
    else:
        *_, found = (found, *steps)
        print_data(found.to_dict(), output)
    end_if_plugins_failed(world)


@contextmanager
def _asking_what_it_is(name: str, source: ClusterInput) -> Iterator[None]:
    """Make an error about an unknown job say what else in the cluster has its name."""
    from pumice.diagnosis.cluster_state import UnknownJobError, maker_named

    try:
        yield
    except UnknownJobError as error:
        if not error.is_known:
            named = ask_cluster(source, lambda cluster: maker_named(cluster, name))
            error.hint = named or error.hint
        raise


def _print_notes(notes: list[str]) -> None:
    for note in notes:
        echo(f"note: {note}", err=True)


def _print_all(jobs: list[WaitingJob], output: str, say: Say) -> None:
    if output != "table":
        print_data([each.to_data() for each in jobs], output)
        return
    if not jobs:
        echo("no job waits")
        return
    rows = [
        (
            each.name,
            each.queue,
            f"{each.position.place} of {each.position.of}" if each.position else "",
            each.cause.code.value,
            say(each.cause.text),
            start_text(each.reservation, each.forecast),
        )
        for each in jobs
    ]
    headings = ("job", "queue", "place", "cause", "why", "starts")
    n = len(headings) - all(not (each.forecast or each.reservation) for each in jobs)
    print_rows(headings[:n], [row[:n] for row in rows])


def _pods(found: Explanation) -> str:
    """Count the pods by status, those that exist and those to be made."""
    more = " more" if found.pods else ""
    refused = f"; the API server refuses {found.refused:,}{more}" if found.refused else ""
    if found.expected and found.expected == sum(found.pods.values()):
        return f"{counted(found.expected, 'pod')}, not created yet{refused}"
    none = "no pods left" if found.state == "finished" else "no pods"
    pods = ", ".join(f"{n} {status.lower()}" for status, n in found.pods.items()) or none
    unmade = f"; {found.expected:,} of them not created yet" if found.expected else ""
    return f"{pods}{unmade}{refused}"


def _print_in_steps(found: Explanation, steps: Iterator[Explanation], say: Say) -> None:
    """Print an explanation, and what is added to it when it is found."""
    _print(found, say)
    for more in steps:
        if found.forecast is None and more.forecast:
            print_heading("Forecast")
            print_text(say(sentence(str(more.forecast["text"]))), indent="  ")
        if more.tried:
            _print_remedies(more, say)
        _print_notes(more.notes[len(found.notes) :])
        found = more
        sys.stdout.flush()


def _print(found: Explanation, say: Say) -> None:
    place = f"queue {found.queue or '(none)'}, phase {found.phase or '(none)'}"
    print_text(f"{found.name}  {place}, minMember {found.min_member}; {_pods(found)}")
    echo()
    head = f"{found.causes[0].code}: {found.text}" if found.causes else sentence(found.text)
    print_text(say(head), bold=True)
    if found.causes[1:]:
        print_heading("Further causes")
        for cause in found.causes[1:]:
            _print_line(cause.code.value, say(cause.text))
    _print_nodes(found, say)
    if found.not_evicted:
        print_heading("Why no pod was evicted for it")
        for spared in found.not_evicted:
            _print_line(spared.code.value, say(spared.text))
    _print_place(found, say)
    if found.victims:
        print_heading("Pods that leave for it")
        rows = [(v.pod, v.node, say(v.job), v.queue, str(v.priority)) for v in found.victims]
        print_rows(("pod", "node", "job", "queue", "priority"), rows)
    sys.stdout.flush()


def _print_line(code: str, text: str) -> None:
    indent = " " * (_CODE_WIDTH + 3)
    print_text(text, indent=indent, first=f"  {code:<{_CODE_WIDTH}} ")


def _print_nodes(found: Explanation, say: Say) -> None:
    if found.funnel:
        was_first = found.position is not None and found.position.turn == 1
        moment = "" if was_first else ", if it went first"
        print_heading(f"Nodes left after each constraint{moment}")
        causes = {each.text for each in found.causes}
        for row in found.funnel:
            first = f"  {row.constraint:<{_CODE_WIDTH}} {row.left:>5}  "
            text = "as above" if row.text in causes else say(row.text)
            print_text(text, indent=" " * len(first), first=first)


def _print_place(found: Explanation, say: Say) -> None:
    place = found.position
    if found.state != "waits":
        return
    if found.reservation is not None:
        print_heading("Reservation")
        print_text(say(sentence(str(found.reservation["text"]))), indent="  ")
    if place is not None:
        print_heading("Position")
        print_text(_where(place), indent="  ")
        for job, key in place.behind:
            print_text(say(f"after {job} ({key})"), indent="  ")


def _where(place: Position) -> str:
    own = (
        f"the {ordinal(place.place)} of {place.of} waiting jobs"
        if place.of > 1
        else "the only waiting job"
    )
    parts = [f"{own} in queue {place.queue}"]
    if place.queues > 1:
        parts.append(f"the queue is {ordinal(place.queue_place)} of {place.queues}")
    if place.turn and (place.of > 1 or place.queues > 1):
        parts.append(f"this cycle took the job {ordinal(place.turn)}")
    return sentence("; ".join(parts))


def _print_remedies(found: Explanation, say: Say) -> None:
    if found.remedies:
        print_heading("What would help (each tried on a copy)")
        for way in found.remedies:
            text = f"{sentence(way.text)[:-1]}: {way.result}"
            print_text(say(text), indent="    ", first="  • ")
    elif found.tried:
        print_heading("What would help")
        n = found.tried
        which = f"None of the {n} changes that were" if n > 1 else "The one change that was"
        tried = f"{which} tried {'gets' if n > 1 else 'does not get'} it started."
        print_text(tried, indent="  ")
