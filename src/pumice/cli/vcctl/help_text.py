"""Help in the original's layout, made from the same declarations that are run."""

from collections.abc import Sequence
from typing import Final

from pumice.cli.vcctl.pflags import HELP
from pumice.cli.vcctl.verbs import Flag, Verb, VerbGroup

GLOBAL_FLAGS: Final = (
    Flag(
        "log-flush-frequency",
        usage="Maximum number of seconds between log flushes",
        default="5s",
        kind="duration",
    ),
    Flag("v", "v", "number for the log level verbosity", 0, "Level"),
    Flag(
        "vmodule",
        usage="comma-separated list of pattern=N settings for file-filtered logging "
        "(only works for the default text log format)",
        kind="moduleSpec",
    ),
)
_NAME_WIDTH: Final = 11


def root_help(commands: Sequence[tuple[str, str]]) -> str:
    """Write the help of the whole command."""
    own = _flags("Flags", (*GLOBAL_FLAGS, _help_flag("vcctl")))
    return _page("", "vcctl", commands, own)


def group_help(group: VerbGroup) -> str:
    """Write the help of a group of verbs."""
    commands = [(verb.name, verb.summary) for verb in group.verbs]
    tail = _flags("Flags", (_help_flag(group.name),)) + _flags("Global Flags", GLOBAL_FLAGS)
    return _page(group.summary, f"vcctl {group.name}", commands, tail)


def verb_help(path: str, verb: Verb, example: str = "") -> str:
    """Write the help of one verb."""
    examples = f"\nExamples:\n{example}\n" if example else ""
    return (
        f"{verb.summary}\n\nUsage:\n  {path} [flags]\n{examples}"
        + _flags("Flags", (*verb.flags, _help_flag(verb.name)))
        + _flags("Global Flags", GLOBAL_FLAGS)
    )


def _page(summary: str, path: str, commands: Sequence[tuple[str, str]], flags: str) -> str:
    opening = f"{summary}\n\n" if summary else ""
    width = max(_NAME_WIDTH, *(len(name) for name, _ in commands))
    lines = "".join(f"  {name:{width}} {text}\n" for name, text in sorted(commands))
    return (
        f"{opening}Usage:\n  {path} [command]\n\nAvailable Commands:\n{lines}{flags}\n"
        f'Use "{path} [command] --help" for more information about a command.\n'
    )


def _help_flag(name: str) -> Flag:
    return Flag(HELP.name, HELP.short, f"help for {name}", default=False, kind="bool")


def _flags(title: str, flags: Sequence[Flag]) -> str:
    heads = {}
    for flag in sorted(flags, key=lambda flag: flag.name):
        short = f"-{flag.short}, " if flag.short else "    "
        heads[flag] = f"  {short}--{flag.name}" + (f" {flag.kind}" if flag.takes_value else "")
    width = max(map(len, heads.values()))
    lines = [
        f"{head:{width}}   {flag.usage}{_default(flag)}".rstrip() + "\n"
        for flag, head in heads.items()
    ]
    return f"\n{title}:\n{''.join(lines)}"


def _default(flag: Flag) -> str:
    if not flag.default:
        return ""
    return f' (default "{flag.default}")' if flag.kind == "string" else f" (default {flag.default})"
