"""Verbs on objects: declared once, run as Volcano's `vcctl` or as commands of `pumice`."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from pumice.api.kinds import BUILT_IN, Manifest, command
from pumice.api.quantity import QuantityFormError, amount
from pumice.api.shown_text import shown
from pumice.api.wording import crash_text, value_of
from pumice.cli.connect import ConnectOptions, connect, is_out_of_reach, trouble
from pumice.cli.printing import echo_lines
from pumice.cluster.base import Cluster
from pumice.errors import (
    AlreadyExistsError,
    ClusterError,
    InputError,
    NotFoundError,
    PumiceError,
    RejectedError,
    ServiceError,
)

FAILED: Final = 255
"""Exit code of a verb that failed."""

Connect = Callable[[ConnectOptions], AbstractContextManager[Cluster]]
_USUAL: Final = "http://localhost:8080"
"""Where the original looks for a cluster when none is named."""
_PLURALS: Final = {kind.name: kind.resource for kind in BUILT_IN}


class VerbError(click.ClickException):
    """A verb that failed."""


@dataclass(frozen=True)
class Flag:
    """One option of a verb; ``kind`` is the type that help and messages name."""

    name: str
    short: str = ""
    usage: str = ""
    default: str | int | bool = ""
    kind: str = "string"

    @property
    def takes_value(self) -> bool:
        """Whether a value follows."""
        return self.kind != "bool"


@dataclass(frozen=True, kw_only=True)
class Call:
    """What one verb is called with; ``exact`` asks for the original bug for bug."""

    options: Mapping[str, Any]
    cluster: Cluster
    echo: Callable[[str], None]
    exact: bool = False
    output: str = ""
    headers: bool = True

    def text(self, name: str) -> str:
        """Return the value of a text option."""
        return str(self.options[name])

    def line(self, text: str) -> None:
        """Print one line."""
        self.echo(f"{shown(text)}\n")

    @property
    def scope(self) -> str:
        """The namespace to list in; empty for all."""
        return "" if self.options.get("all-namespaces") else self.text("namespace")

    def listed(self, kind: str, labels: Mapping[str, str] | None = None) -> list[Manifest]:
        """List a kind in the chosen scope, in the order of an API server."""
        found, _ = self.cluster.list(kind, self.scope if "namespace" in self.options else "")
        if labels:
            found = [item for item in found if _has_labels(item, labels)]
        return sorted(found, key=_key)


@dataclass(frozen=True)
class Verb:
    """One verb; ``outputs`` are our own forms of its result, ``ours`` our own flags."""

    name: str
    summary: str
    flags: tuple[Flag, ...]
    run: Callable[[Call], None]
    outputs: tuple[str, ...] = ()
    ours: tuple[Flag, ...] = ()


@dataclass(frozen=True)
class VerbGroup:
    """The verbs for one kind of object."""

    name: str
    summary: str
    help: str
    verbs: tuple[Verb, ...] = field(default=())


MASTER: Final = Flag("master", "s", "the address of apiserver")
KUBECONFIG: Final = Flag("kubeconfig", "k", "(optional) absolute path to the kubeconfig file")


RECORD: Final = Flag("filename", "f", "a record, in place of the running cluster")
AT: Final = Flag("at", "", "the moment of the record")
PAST: Final = (RECORD, AT)
"""Our own flags of verbs that only look."""


def _past(options: Mapping[str, Any], _: ConnectOptions) -> AbstractContextManager[Any]:
    """Return the cluster of a record at the moment that the options name."""
    from pumice.records.history import History
    from pumice.records.past import PastCluster

    history = History(Path(options[RECORD.name]))
    with value_of("--at"):
        moment = history.at(options[AT.name] or None)
    return nullcontext(PastCluster(moment))


def name_flag(of: str, short: str = "N") -> Flag:
    """Make the flag for the name of an object."""
    return Flag("name", short, f"the name of {of}")


def namespace_flag(of: str) -> Flag:
    """Make the flag for the namespace of an object."""
    return Flag("namespace", "n", f"the namespace of {of}", "default")


def verb(
    name: str,
    summary: str,
    run: Callable[[Call], None],
    *flags: Flag,
    outputs: tuple[str, ...] = (),
    ours: tuple[Flag, ...] = (),
) -> Verb:
    """Make a verb; the flags that name the cluster are added."""
    return Verb(name, summary, (MASTER, KUBECONFIG, *flags), run, outputs, ours)


def perform(group: VerbGroup, verb: Verb, connect: Connect, **call: Any) -> int:
    """Run a verb and return the exit code; a failure is printed where results are printed.

    Raises:
        ClickException: no cluster answers, and the original's behaviour is not requested.
        InputError: the kubeconfig cannot be used, and the original's behaviour is not requested.
    """
    options = call["options"]
    fallback = (os.environ.get("KUBERNETES_MASTER") or _USUAL) if call.get("exact") else ""
    named = ConnectOptions(options["kubeconfig"], options["master"], fallback)
    if RECORD in verb.ours and options.get(RECORD.name):
        connect = partial(_past, options)
    connected = False
    try:
        with connect(named) as cluster:
            connected = True
            verb.run(Call(cluster=cluster, **call))
    except (VerbError, PumiceError) as error:
        if isinstance(error, InputError) and not (connected or call.get("exact")):
            raise
        if is_out_of_reach(error) and not call.get("exact"):
            raise click.ClickException(trouble(error)) from error
        problem = message_of(error)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if os.environ.get("PUMICE_DEBUG") == "1":
            raise
        problem = f"an object of the cluster cannot be read: {crash_text(error)}"
    else:
        return 0
    tell = complaints(call["echo"], call.get("output", ""))
    tell(f"Failed to {verb.name} {group.name}: {shown(problem)}\n")
    return FAILED


def complaints(echo: Callable[[str], None], output: str) -> Callable[[str], None]:
    """Return what prints failures: where results go, but not between data for programs."""
    return partial(echo_lines, err=True) if output else echo


def message_of(error: Exception) -> str:
    """Return the message of an error in the words of an API server."""
    if isinstance(error, VerbError):
        return error.message
    if isinstance(error, ClusterError) and not error.verbatim:
        return _refusal(error)
    if isinstance(error, ServiceError | ClusterError):
        return error.problem or str(error)
    return str(error)


def _refusal(error: ClusterError) -> str:
    if isinstance(error, NotFoundError | AlreadyExistsError) and error.name:
        problem = "not found" if isinstance(error, NotFoundError) else "already exists"
        return f'{_PLURALS.get(error.kind, error.kind)} "{error.name}" {problem}'
    if isinstance(error, RejectedError) and error.kind:
        return f'{error.kind} "{error.name}" is invalid: {error.problem}'
    return error.problem or str(error)


def _has_labels(item: Manifest, wanted: Mapping[str, str]) -> bool:
    labels = item["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in wanted.items())


def _key(item: Manifest) -> str:
    metadata = item["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def canonical(written: Any) -> str:
    """Write an amount as Kubernetes does: `1000m` is `1`, `0.5Gi` is `512Mi`.

    Raises:
        VerbError: not a quantity.
    """
    try:
        return str(amount(str(written)))
    except QuantityFormError as error:
        raise VerbError(str(error)) from None


def parse_resources(text: str) -> dict[str, str]:
    """Read `cpu=1,memory=1Gi`.

    Raises:
        VerbError: not in that syntax, or not a quantity.
    """
    amounts = {}
    for statement in text.split(",") if text else ():
        name, *values = statement.split("=")
        if len(values) != 1:
            raise VerbError(f"invalid argument syntax {statement}, expected <resource>=<value>")
        amounts[name] = canonical(values[0])
    return amounts


def order(call: Call, about: Manifest, action: str, namespace: str) -> Manifest:
    """Post a Command; gives it back."""
    return call.cluster.create(command(about, action, namespace))


_SUMMARIES: Final[Mapping[str, str]] = {
    "job delete": "Delete a job and its pods.",
    "job list": "List jobs.",
    "job resume": "Resume a job that was suspended.",
    "job run": "Run a job, described by a file or by options.",
    "job suspend": "Suspend a job: its pods end, and it can be resumed.",
    "job view": "Show a job with its tasks and events.",
    "pod list": "List the pods of jobs.",
    "queue create": "Create a queue.",
    "queue delete": "Delete a queue.",
    "queue get": "Show a queue.",
    "queue list": "List all queues.",
    "queue operate": "Open or close a queue, or change its weight.",
}
_CLUSTER: Final = "The cluster.  [default: $KUBECONFIG, a running 'pumice up', ~/.kube/config]"
_OPTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "at": ("TIME", "The moment of the record: 03:10, -2h, RFC 3339.  [default: its end]"),
    "action": ("[open|close|update]", "What to do with the queue."),
    "all-namespaces": ("", "List those of all namespaces."),
    "file": ("FILE", "A YAML file with the objects."),
    "filename": ("FILE", "A YAML file with the job; other options are then not needed."),
    "format": ("[yaml|json]", "How to print it."),
    "image": ("IMAGE", "Image of its containers."),
    "job": ("NAME", "Only pods of this job."),
    "kubeconfig": ("FILE", _CLUSTER),
    "limits": ("AMOUNTS", "What each pod may use."),
    "master": ("URL", "Address of the cluster's API server."),
    "min": ("N", "How many pods must be able to start together."),
    "name": ("NAME", "Its name."),
    "namespace": ("NAME", "Its namespace."),
    "queue": ("NAME", "Only those of this queue."),
    "replicas": ("N", "How many pods it has."),
    "requests": ("AMOUNTS", "What each pod asks for."),
    "scheduler": ("NAME", "Only jobs of this scheduler."),
    "selector": ("TEXT", "Only jobs with this text in their name."),
    "state": ("[Open|Closed]", "Its state."),
    "weight": ("N", "Its weight among queues."),
}
_A_RECORD: Final = "A record, in place of the running cluster."
_OF_VERBS: Final[Mapping[str, str]] = {
    "queue list filename": _A_RECORD,
    "queue get filename": _A_RECORD,
    "job list filename": _A_RECORD,
    "pod list filename": _A_RECORD,
    "job run queue": "The queue to run in; 'default' if none is named.",
    "job run scheduler": "The scheduler that places its pods.",
    "job list namespace": "Only jobs of this namespace.",
    "pod list namespace": "Only pods of this namespace.",
    "queue operate weight": "Its new weight, for update.",
}


def summary_of(group: str, verb: str) -> str:
    """Describe a verb in one sentence."""
    kinds = {"jobflow": "job flow", "jobtemplate": "job template"}
    shown = {"get": "Show", "describe": "Print"}.get(verb, verb.capitalize())
    some = f"{kinds.get(group, group)}s" if verb == "list" else f"a {kinds.get(group, group)}"
    return _SUMMARIES.get(f"{group} {verb}") or f"{shown} {some}."


def option_help(group: str, verb: str, option: str) -> tuple[str, str]:
    """Return what stands for the value of an option, and its description."""
    value, text = _OPTIONS[option]
    return value, _OF_VERBS.get(f"{group} {verb} {option}", text)


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
