"""`pumice vcctl`: the syntax, messages and exit codes of the original, on our verbs."""

import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import click

from pumice import __version__
from pumice.api.shown_text import shown
from pumice.cli.connect import connect
from pumice.cli.job import JOB
from pumice.cli.jobflow import JOBFLOW, JOBTEMPLATE
from pumice.cli.pod import POD
from pumice.cli.printing import echo_lines
from pumice.cli.queue import QUEUE
from pumice.cli.vcctl.verbs import Call, Connect, Flag, Verb, VerbGroup, perform

_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
_FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")
_INTEGER: Final = re.compile(
    r"[+-]?(?:0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO](?:_?[0-7])+"
    r"|0(?:_?[0-7])*|[1-9](?:_?[0-9])*)"
)
_DURATION: Final = re.compile(r"[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_BITS: Final = {"int": 64, "int32": 32, "Level": 32}

HELP: Final = Flag("help", "h", kind="bool", default=False)


class FlagError(Exception):
    """Words that cannot be read as options; ``suggestions`` follow on lines of their own."""

    def __init__(self, message: str, suggestions: str = "") -> None:
        super().__init__(message)
        self.message, self.suggestions = message, suggestions


@dataclass
class Parsed:
    """The options by name, and the other words."""

    options: dict[str, Any]
    arguments: list[str] = field(default_factory=list)

    @property
    def wants_help(self) -> bool:
        """Whether help was requested."""
        return bool(self.options["help"])


def parse(flags: Sequence[Flag], words: Sequence[str]) -> Parsed:
    """Read words as options and arguments.

    Raises:
        FlagError: an option that does not exist, lacks its value or has one it cannot have.
    """
    known = (*flags, HELP)
    parsed = Parsed({flag.name: flag.default for flag in known})
    names = {flag.name: flag for flag in known}
    shorts = {flag.short: flag for flag in known if flag.short}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            parsed.arguments += rest
            break
        if word.startswith("--"):
            _read_long(word, rest, names, parsed.options)
        elif word.startswith("-") and word != "-":
            _read_short(word, rest, shorts, parsed.options)
        else:
            parsed.arguments.append(word)
    return parsed


def first_argument(words: Sequence[str]) -> int | None:
    """Find the first word that is neither an option nor, as far as can be seen, its value."""
    skipping = False
    for at, word in enumerate(words):
        if skipping:
            skipping = False
        elif word == "--":
            return None
        elif word.startswith("-") and word != "-":
            long = word.startswith("--")
            skipping = word not in ("--help", "-h") and ("=" not in word if long else len(word) < 3)
        else:
            return at
    return None


def _read_long(
    word: str, rest: list[str], known: Mapping[str, Flag], options: dict[str, Any]
) -> None:
    name, equals, text = word[2:].partition("=")
    if not name or name.startswith("-"):
        raise FlagError(f"bad flag syntax: {word}")
    flag = known.get(name.replace("_", "-"))
    if flag is None:
        raise FlagError(f"unknown flag: --{name}")
    if not equals and flag.takes_value:
        if not rest:
            raise FlagError(f"flag needs an argument: --{name}")
        text = rest.pop(0)
    elif not equals:
        text = "true"
    options[flag.name] = _value(flag, text)


def _read_short(
    word: str, rest: list[str], known: Mapping[str, Flag], options: dict[str, Any]
) -> None:
    letters = word[1:]
    while letters:
        flag = known.get(letters[0])
        if flag is None:
            raise FlagError(f"unknown shorthand flag: {letters[0]!r} in -{letters}")
        whole, letters = letters, letters[1:]
        if letters.startswith("=") and len(letters) > 1:
            text, letters = letters[1:], ""
        elif not flag.takes_value:
            text = "true"
        elif letters:
            text, letters = letters, ""
        elif rest:
            text = rest.pop(0)
        else:
            raise FlagError(f"flag needs an argument: {whole[0]!r} in -{whole}")
        options[flag.name] = _value(flag, text)


def _value(flag: Flag, text: str) -> Any:
    """Read the value of an option by its kind."""
    read = _READERS.get(flag.kind)
    if read is None:
        return text
    try:
        return read(text, flag.kind)
    except ValueError as error:
        shown = f"-{flag.short}, --{flag.name}" if flag.short else f"--{flag.name}"
        raise FlagError(f'invalid argument "{text}" for "{shown}" flag: {error}') from None


def _integer(text: str, kind: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    sign, digits = ("-", text[1:]) if text[0] == "-" else ("", text.lstrip("+"))
    if re.fullmatch(r"0[0-7_]+", digits):
        digits = f"0o{digits[1:].lstrip('_')}"
    number = int(sign + digits, 0)
    bound = 1 << (_BITS[kind] - 1)
    if not -bound <= number < bound:
        raise ValueError(f'strconv.ParseInt: parsing "{text}": value out of range')
    return number


def _boolean(text: str, _kind: str) -> bool:
    if text not in (*_TRUE, *_FALSE):
        raise ValueError(f'strconv.ParseBool: parsing "{text}": invalid syntax')
    return text in _TRUE


def _duration(text: str, _kind: str) -> str:
    if not _DURATION.fullmatch(text):
        raise ValueError(f'time: invalid duration "{text}"')
    return text


_READERS: Final[Mapping[str, Callable[[str, str], Any]]] = {
    "int": _integer,
    "int32": _integer,
    "Level": _integer,
    "bool": _boolean,
    "duration": _duration,
}


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


Echo = Callable[[str], None]
GROUPS: Final = {group.name: group for group in (JOB, QUEUE, JOBTEMPLATE, JOBFLOW, POD)}
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


def _print_version(call: Call) -> None:
    machine = platform.machine().lower()
    call.echo(
        "API Version: v1alpha1\n"
        f"Version: pumice {__version__}\n"
        "Git SHA: Not provided.\n"
        "Built At: Not provided.\n"
        f"Go Version: none, Python {platform.python_version()}\n"
        f"Go OS/Arch: {platform.system().lower()}/{_MACHINES.get(machine, machine)}\n"
    )


VERSION: Final = Verb("version", "Print the version information", (), _print_version)
_COMMANDS: Final = (
    *((group.name, group.summary) for group in GROUPS.values()),
    (VERSION.name, VERSION.summary),
)


@click.command(
    context_settings={
        "allow_interspersed_args": False,
        "help_option_names": [],
        "ignore_unknown_options": True,
    },
    add_help_option=False,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def vcctl(ctx: click.Context, *, words: tuple[str, ...]) -> None:
    """Do what the command line of Volcano does, in its syntax."""
    ctx.exit(run_vcctl(words, ctx.obj or connect, echo_lines, partial(echo_lines, err=True)))


def run_vcctl(words: Sequence[str], connect: Connect, out: Echo, err: Echo) -> int:
    """Run one command line without its first word and return the exit code."""
    try:
        return _run(list(words), connect, out, err)
    except FlagError as error:
        err(f"Error: {shown(error.message)}{error.suggestions}\n")
        return 1


def _run(words: list[str], connect: Connect, out: Echo, err: Echo) -> int:
    at = first_argument(words)
    if at is None:
        parse(GLOBAL_FLAGS, words)
        out(_root_help())
        return 0
    name = words.pop(at)
    if name == "help":
        return _help(words, out, err)
    if name == VERSION.name:
        if _parse(VERSION, words).wants_help:
            out(verb_help("vcctl version", VERSION, "vcctl version"))
        else:
            VERSION.run(Call(options={}, cluster=None, echo=out))  # type: ignore[arg-type]
        return 0
    if name not in GROUPS:
        raise FlagError(f'unknown command "{name}" for "vcctl"', _suggestions(name))
    return _run_group(GROUPS[name], words, connect, out)


def _run_group(group: VerbGroup, words: list[str], connect: Connect, out: Echo) -> int:
    at = first_argument(words)
    verbs = {verb.name: verb for verb in group.verbs}
    if at is None or words[at] not in verbs:
        parse(GLOBAL_FLAGS, words)
        out(group_help(group))
        return 0
    verb = verbs[words.pop(at)]
    parsed = _parse(verb, words)
    if parsed.wants_help:
        out(verb_help(f"vcctl {group.name} {verb.name}", verb))
        return 0
    return perform(group, verb, connect, options=parsed.options, echo=out, exact=True)


def _help(words: Sequence[str], out: Echo, err: Echo) -> int:
    """Print the help of the command named by the words."""
    names = [word for word in words if not word.startswith("-")]
    group = GROUPS.get(names[0]) if names else None
    verbs = {verb.name: verb for verb in group.verbs} if group else {}
    if not names:
        out(_root_help())
    elif names[0] == VERSION.name:
        out(verb_help("vcctl version", VERSION, "vcctl version"))
    elif group is None:
        topics = " ".join(f"`{shown(name)}`" for name in names)
        err(f"Unknown help topic [{topics}]\n{_root_help()}")
    elif len(names) > 1 and names[1] in verbs:
        out(verb_help(f"vcctl {group.name} {names[1]}", verbs[names[1]]))
    else:
        out(group_help(group))
    return 0


def _parse(verb: Verb, words: Sequence[str]) -> Parsed:
    return parse((*verb.flags, *GLOBAL_FLAGS), words)


def _root_help() -> str:
    return root_help([*_COMMANDS, ("help", "Help about any command")])


def _suggestions(typed: str) -> str:
    near = [
        name
        for name, _ in _COMMANDS
        if name.startswith(typed.lower()) or _distance(name, typed.lower()) <= 2
    ]
    return "\n\nDid you mean this?\n" + "".join(f"\t{name}\n" for name in near) if near else ""


def _distance(one: str, other: str) -> int:
    """Count the letters to add, drop or change."""
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        before, row[0] = row[0], i
        for j, opposite in enumerate(other, start=1):
            changed = before + (letter != opposite)
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, changed)
    return row[-1]
