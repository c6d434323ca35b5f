"""`pumice whatif`: would a job start, when, at whose cost, and what would a change do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pumice.api.kinds import Manifest
from pumice.api.schema.build import misspelt_fields
from pumice.api.text_files import shown_name
from pumice.api.wording import EMPTY_FILE, first_of, value_of
from pumice.cli.inputs import end_if_plugins_failed, read_world, warn_of_conf
from pumice.cli.options import (
    ClusterInput,
    PluginSources,
    conf_option,
    output_option,
    plugin_option,
    world_options,
)
from pumice.cli.printing import echo, print_data, print_heading, print_text, sentence
from pumice.cli.signoff import Signing, print_breaches, print_signoff, print_table, signing_options
from pumice.errors import InputError

if TYPE_CHECKING:
    from pumice.diagnosis.changes import Change
    from pumice.diagnosis.cluster_state import ClusterState
    from pumice.diagnosis.played import Terms
    from pumice.diagnosis.whatif import Answer, JobAnswer, Question


_SHOWN = 20
"""Rows of a table before the rest is only counted."""


@click.command()
@world_options(conf_option("--current-conf", "The current configuration."))
@click.option(
    "--job",
    metavar="FILE|NAME",
    default="",
    help="The job to ask about: a manifest that is not applied yet, or a name.",
)
@click.option(
    "--new-conf",
    "--conf",
    "new_conf",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Try this configuration in place of the current one.",
)
@click.option(
    "--set",
    "settings",
    metavar="KIND/NAME.FIELD=VALUE",
    multiple=True,
    help="Set a field, as in queue/NAME.capability.cpu=20.",
)
@click.option(
    "--add-nodes",
    metavar="N[=NODE]",
    multiple=True,
    help="Add N nodes like NODE, or like the largest.",
)
@click.option(
    "--remove-node", "removed", metavar="NAME", multiple=True, help="Remove a node and its pods."
)
@click.option(
    "--drain",
    "drained",
    metavar="NAME",
    multiple=True,
    help="Cordon a node and remove its pods.",
)
@click.option(
    "--changes",
    "lists",
    metavar="FILE",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="What if all changes of a list were made, JSON or YAML, as explain -o json gives them; "
    "- reads the input.",
)
@signing_options
@plugin_option
@output_option
@click.pass_context
def whatif(
    ctx: click.Context,
    *,
    source: ClusterInput,
    job: str,
    new_conf: Path | None,
    settings: tuple[str, ...],
    add_nodes: tuple[str, ...],
    removed: tuple[str, ...],
    drained: tuple[str, ...],
    lists: tuple[Path, ...],
    signing: Signing,
    plugins: PluginSources,
    output: str,
) -> None:
    """Try a job or a change on a copy of the cluster and show what would be different.

    The time at which pods end is read from the annotation pumice.dev/run-seconds of pods or pod
    groups.
    """
    from pumice.diagnosis.settings import (
        drain_node,
        made_in_turn,
        nodes_from_text,
        remove_known_node,
        setting_from_text,
    )

    bounds = signing.conditions
    world = read_world(source, plugins)
    makers: list[Callable[[ClusterState], Change]] = [
        *(partial(_listed, path=path) for path in lists),
        *([] if new_conf is None else [partial(_conf, path=new_conf, plugins=plugins)]),
        *(_named("--set", partial(setting_from_text, text=text)) for text in settings),
        *(_named("--add-nodes", partial(nodes_from_text, text=text)) for text in add_nodes),
        *(_named("--remove-node", partial(remove_known_node, name=name)) for name in removed),
        *(_named("--drain", partial(drain_node, name=name)) for name in drained),
    ]
    if not job and not makers:
        raise click.UsageError(
            "nothing to try; give --job, --set, --add-nodes, --remove-node, --drain, --changes "
            "or --new-conf"
        )
    changes = made_in_turn(world, makers)
    # a job alone is asked about for itself; with conditions it is a change like any other
    signs = bool(makers or bounds)
    answer = _answer(world, _question(job, changes, signing.terms(), world.now, signs=signs))
    _report(answer, signing, output)
    end_if_plugins_failed(world)
    if signing.breaches(answer.signoff):
        ctx.exit(1)


def _report(answer: Answer, signing: Signing, output: str) -> None:
    breaches = signing.breaches(answer.signoff)
    if output == "table":
        _print(answer)
        print_breaches(breaches)
    else:
        asked = {"breaches": breaches} if signing.conditions else {}
        print_data(answer.to_dict() | asked, output)


def _named(option: str, make: Callable[[ClusterState], Change]) -> Callable[[ClusterState], Change]:
    """Name the option in the errors of a change."""
    return value_of(option)(make)


def _answer(world: ClusterState, question: Question) -> Answer:
    """Answer a question; a job that is not known may have been meant as a file."""
    from pumice.diagnosis.cluster_state import UnknownJobError
    from pumice.diagnosis.whatif import what_if

    try:
        return what_if(world, question)
    except UnknownJobError as error:
        missing = "no such file" if not Path(question.job).exists() else "not a file"
        raise InputError(
            wanted="a file or a job of this cluster",
            found=question.job,
            hint=f"{missing} and no such job; {error.hint}",
            field="--job",
        ) from None


def _listed(world: ClusterState, path: Path) -> Change:
    """Read a list of changes."""
    from pumice.api.manifests import load_documents
    from pumice.diagnosis.changes import Change

    del world
    documents = load_documents(path)
    if not documents:
        raise InputError(wanted="a list of changes", found=EMPTY_FILE, file=shown_name(path))
    found: list[Any] = []
    for document in documents:
        content = document.content
        if isinstance(content, dict) and "changes" in content:
            content = content["changes"]  # a remedy with its text and result
        found += content if isinstance(content, list) else [content]
    return Change.from_data(found, source=shown_name(path))


def _conf(world: ClusterState, path: Path, plugins: PluginSources) -> Change:
    from pumice.api.conf import read_conf
    from pumice.api.named_files import read_conf_file
    from pumice.diagnosis.settings import use_conf

    del world
    text, source = read_conf_file(path)
    warn_of_conf(read_conf(text), source, plugins)
    return use_conf(text, source)


def _new_job(file: Path, now: float) -> list[Manifest]:
    """Read a job that is not applied yet, and warn about its misspelt fields."""
    from pumice.api.manifests import load_documents
    from pumice.diagnosis.sources import Documents, load_job
    from pumice.webhooks.files import is_checked

    documents = load_documents(file)
    warnings = [  # before the job is read, which fills in defaults
        f"warning: {document.source}: {field.sentence}"
        for document in documents
        if is_checked(document.content)
        for field in misspelt_fields(document.content)
    ]
    job = load_job(Documents(file, documents), now)
    for warning in warnings:
        echo(warning, err=True)
    return job


def _question(
    job: str, changes: list[Change], terms: Terms, now: float, *, signs: bool
) -> Question:
    from pumice.diagnosis.whatif import Question

    is_file = bool(job) and Path(job).is_file()
    return Question(
        job="" if is_file else job,
        new_job=_new_job(Path(job), now) if is_file else (),
        changes=changes,
        signs_off=signs,
        **vars(terms),
    )


def _print(answer: Answer) -> None:
    for note in answer.notes:
        print_text(f"note: {note}")
    if answer.notes:
        echo()
    if answer.changes:
        print_text(f"If you {', '.join(answer.changes)}:", bold=True)
    if answer.storm is not None:
        _print_storm(answer.storm)
    if answer.job is not None:
        _print_job(answer.job)
    if answer.signoff is not None:
        print_signoff(answer.signoff)
    if answer.changes:
        _print_differences(answer)
    _print_waiting(answer)


def _print_storm(storm: dict[str, Any]) -> None:
    echo()
    print_text(sentence(f"does not settle: {storm['text']}"), bold=True)
    for line in storm["why"]:
        print_text(sentence(line), indent="  ")


def _print_differences(answer: Answer) -> None:
    if not (answer.jobs or answer.pods):
        echo()
        echo("nothing else changes" if answer.job else "nothing changes")
        return
    when = (
        "once nothing changes any more" if answer.settled else "at one moment: it does not settle"
    )
    if answer.jobs:
        print_heading(f"Jobs, {when}")
        print_table(("job", "before", "after"), [(e.job, e.before, e.after) for e in answer.jobs])
    if answer.pods:
        print_heading("Pods" if answer.settled else f"Pods, {when}")
        print_table(("pod", "before", "after"), [(pod, *both) for pod, both in answer.pods.items()])
    if answer.queues:
        print_heading("In use by queue" if answer.settled else f"In use by queue, {when}")
        rows = [
            (f"{queue} {resource}", a, b)
            for queue, amounts in answer.queues.items()
            for resource, (a, b) in amounts.items()
        ]
        print_table(("queue", "before", "after"), rows)


def _print_waiting(answer: Answer) -> None:
    """Print why jobs wait, except the one in question if its sentence has the reason."""
    has_reason = answer.job is not None and answer.job.state in ("later", "never", "unknown")
    asked = answer.job.job if answer.job is not None and has_reason else ""
    rows = [(job, why) for job, why in answer.waiting.items() if job != asked]
    if rows:
        print_heading("Jobs that still wait" if answer.changes else "Other jobs that wait")
        print_table(("job", "why"), rows)


def _print_job(job: JobAnswer) -> None:
    echo()
    print_text(sentence(job.sentence), bold=True)
    if job.at:
        print_text(f"That is at {job.at}.", indent="  ")
    if job.after:
        print_text(f"All jobs that end by then: {first_of(job.after, 5)}", indent="  ")
    if job.victims:
        print_text(f"Evicted on the way: {first_of(job.victims, 5)}", indent="  ")
    for pod, node in list(job.places.items())[:_SHOWN]:
        echo(f"  {pod} on {node}")
    if len(job.places) > _SHOWN:
        echo(f"  … and {len(job.places) - _SHOWN} more")
