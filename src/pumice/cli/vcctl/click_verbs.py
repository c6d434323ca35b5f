"""The same verbs as commands of `pumice`: click's help and completion, outputs of ours."""

from typing import Any

import click

from pumice.cli.connect import connect
from pumice.cli.terminal import echo_lines
from pumice.cli.vcctl.plain_help import option_help, summary_of
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
                echo=echo_lines,
                output=output,
                headers=headers,
            )
        )

    words = summary_of(group.name, verb.name)
    params: list[click.Parameter] = [
        _option(flag, *option_help(group.name, verb.name, flag.name))
        for flag in (*verb.flags, *verb.ours)
    ]
    return click.Command(verb.name, callback=run, params=[*params, *_ours(verb)], help=words)


def _option(flag: Flag, value: str, words: str) -> click.Option:
    names = [f"--{flag.name}", *([f"-{flag.short}"] if flag.short else [])]
    if flag.kind == "bool":
        return click.Option(names, is_flag=True, help=words)
    return click.Option(
        names,
        default=flag.default,
        type=_TYPES.get(flag.kind, click.STRING),
        metavar=value,
        help=words,
        show_default=bool(flag.default),
    )


def _ours(verb: Verb) -> list[click.Parameter]:
    if not verb.outputs:
        return []
    options = [
        click.Option(["-o", "--output"], type=click.Choice(verb.outputs), help="How to print it.")
    ]
    if "wide" in verb.outputs:
        options.append(
            click.Option(["--no-headers"], is_flag=True, help="Print no line of titles.")
        )
    return list(options)
