"""The same verbs as commands of `pumice`: click's help and completion, outputs of ours."""

from typing import Any

import click

from pumice.cli.connect import connect
from pumice.cli.vcctl.verbs import Flag, Verb, VerbGroup, perform

_TYPES = {"int": click.IntRange(0, (1 << 31) - 1), "int32": click.IntRange(0, (1 << 31) - 1)}
"""Numbers of a job's pods and weights of queues: of 32 bits in the API, and never negative."""


def click_group(group: VerbGroup) -> click.Group:
    """Make the command group of a kind of object."""
    made = click.Group(group.name, help=group.help)
    for verb in group.verbs:
        made.add_command(_command(group, verb))
    return made


def _command(group: VerbGroup, verb: Verb) -> click.Command:
    @click.pass_context
    def run(ctx: click.Context, /, **given: Any) -> None:
        output = given.pop("output", None) or ""
        headers = not given.pop("no_headers", False)
        ctx.exit(
            perform(
                group,
                verb,
                ctx.obj or connect,
                options={name.replace("_", "-"): value for name, value in given.items()},
                echo=lambda text: click.echo(text, nl=False),
                output=output,
                headers=headers,
            )
        )

    summary = f"{verb.summary[0].upper()}{verb.summary[1:]}."
    params: list[click.Parameter] = [_option(flag) for flag in (*verb.flags, *verb.ours)]
    return click.Command(verb.name, callback=run, params=[*params, *_ours(verb)], help=summary)


def _option(flag: Flag) -> click.Option:
    names = [f"--{flag.name}", *([f"-{flag.short}"] if flag.short else [])]
    if flag.kind == "bool":
        return click.Option(names, is_flag=True, help=flag.usage)
    return click.Option(
        names,
        default=flag.default,
        type=_TYPES.get(flag.kind, click.STRING),
        help=flag.usage,
        show_default=bool(flag.default),
    )


def _ours(verb: Verb) -> list[click.Parameter]:
    if not verb.outputs:
        return []
    options = [
        click.Option(["-o", "--output"], type=click.Choice(verb.outputs), help="how to print")
    ]
    if "wide" in verb.outputs:
        options.append(click.Option(["--no-headers"], is_flag=True, help="print no title line"))
    return list(options)
