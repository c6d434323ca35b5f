"""The command `pumice` and the table of its subcommands.

A subcommand is imported when it is called, and what it needs once its arguments are read, so that
help and mistyped words are answered at once: neither this module nor the top of a command's file
may load NumPy, rich or YAML.
"""

import importlib
import logging
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import click

from pumice import __version__
from pumice.api.shown_text import shown, shown_lines
from pumice.cli.interrupts import INTERRUPTED, heed_interrupt, is_interrupted, raise_on_interrupt
from pumice.cli.printing import echo
from pumice.errors import ManifestError, PumiceError


@dataclass(frozen=True)
class LazyCommand:
    """Where a subcommand lives, and the line that `--help` prints for it."""

    target: str
    """Module, seen from this package, and name."""
    summary: str

    def load(self) -> click.Command:
        """Import the module and return the command."""
        module, _, name = self.target.partition(":")
        command = getattr(importlib.import_module(f"pumice.cli.{module}"), name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{self.target} is not a command")
        return command


COMMANDS = {
    "canary": LazyCommand("canary:canary", "Judge a new configuration on a recorded past."),
    "config": LazyCommand("config:config", "Check a scheduler configuration."),
    "demo": LazyCommand("demo.command:demo", "Play a short demo story."),
    "diff": LazyCommand("diff:diff", "Compare two configurations on a cluster."),
    "doctor": LazyCommand("doctor:doctor", "Check a cluster and suggest fixes."),
    "explain": LazyCommand("explain:explain", "Explain why a job waits, and what helps."),
    "fairshare": LazyCommand("fairshare:fairshare", "Show who used how much lately."),
    "history": LazyCommand("history:history", "Show what became of jobs, from a record."),
    "lint": LazyCommand("lint:lint", "Check files as a cluster's admission would."),
    "plugin": LazyCommand("config:plugin", "List and describe plugins."),
    "record": LazyCommand("record:record", "Record every change and decision of a cluster."),
    "replay": LazyCommand("replay:replay", "Decide a recorded past again, and compare."),
    "run": LazyCommand("run:run", "Run one scenario and print its decisions."),
    "sim": LazyCommand("sim:sim", "Run a workload on a virtual clock, with a report."),
    "schema": LazyCommand("schema:schema", "Print JSON schemas of files, for editors."),
    "serve": LazyCommand("serve:serve", "Run on a real cluster, as processes."),
    "snapshot": LazyCommand("snapshot:snapshot", "Save, show and compare clusters."),
    "sweep": LazyCommand("sweep:sweep", "Simulate a grid, in one table."),
    "test": LazyCommand("test:test", "Run scenario files and compare expectations."),
    "trace": LazyCommand("trace:trace", "Describe, convert and sample traces."),
    "tune": LazyCommand("tune:tune", "Search for a better configuration."),
    "ui": LazyCommand("ui:ui", "Serve the dashboard of a cluster, files or a demo."),
    "up": LazyCommand("up:up", "Start a local cluster that kubectl can use."),
    "whatif": LazyCommand("whatif:whatif", "Try a job or a change on a copy."),
    "job": LazyCommand("job:job", "Run, list, view, suspend, resume, delete jobs."),
    "jobflow": LazyCommand("jobflow:jobflow", "Flows of jobs that wait for each other."),
    "jobtemplate": LazyCommand("jobflow:jobtemplate", "Templates of job flows."),
    "pod": LazyCommand("pod:pod", "List the pods of jobs and queues."),
    "queue": LazyCommand("queue:queue", "List, make, open, close, delete queues."),
    "vcctl": LazyCommand("vcctl.command:vcctl", "The verbs in Volcano's syntax."),
}


class BadInputError(click.ClickException):
    """An error of Pumice shown as one message, without a traceback."""

    exit_code = 2


class AbortedError(click.ClickException):
    """Ctrl-C, shown as click shows it."""

    exit_code = INTERRUPTED

    def __init__(self) -> None:
        super().__init__("Aborted!")

    def show(self, file: Any = None) -> None:
        """Print the message on a line of its own, after the terminal's echo of Ctrl-C."""
        del file
        echo(err=True)
        echo(self.message, err=True)


class LazyGroup(click.Group):
    """A group that imports a subcommand only when it is called."""

    def __init__(self, *args: Any, lazy: dict[str, LazyCommand], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name all subcommands, loaded or not."""
        return sorted({*super().list_commands(ctx), *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the subcommand that is called."""
        if cmd_name in self.lazy:
            return self.lazy[cmd_name].load()
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the subcommand; for a mistyped one, name the nearest."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not near or "Did you mean" in error.message:
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the summaries from the table instead of importing every command."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.summary) for name, lazy in sorted(self.lazy.items())])

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Show errors as a message: --help prints here."""
        with _as_message():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Show errors as a message; PUMICE_DEBUG=1 keeps the traceback."""
        with _as_message():
            return super().invoke(ctx)


def _words(error: click.ClickException) -> str:
    """Return the message of click, with what else helps; help keeps its lines."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return shown_lines(error.message)
    return shown(error.message + _hint(error))


def _hint(error: click.ClickException) -> str:
    """Return what else helps: how vcctl takes a name, what a missing option is."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    takes_name = context and any("--name" in one.opts for one in context.command.params)
    if "unexpected extra argument" in error.message and takes_name:
        return "; a name is given as --name NAME"
    if isinstance(error, click.MissingParameter) and isinstance(error.param, click.Option):
        return error.param.help or ""
    return ""


@contextmanager
def _as_message() -> Iterator[None]:
    """Turn errors of Pumice, of files and Ctrl-C into what click prints as one message."""
    try:
        yield
    except (KeyboardInterrupt, RuntimeError) as error:
        _abort_if_interrupted(error)
        raise
    except PumiceError as error:
        if os.environ.get("PUMICE_DEBUG") == "1":
            raise
        if isinstance(error, ManifestError):
            _point_to_field(error)
        raise BadInputError("\n  ".join(map(shown, error.lines()))) from error
    except click.ClickException as error:
        if not isinstance(error, BadInputError):  # which has been through this
            error.message = _words(error)  # type: ignore[misc]  # no other way
        raise
    except (OSError, UnicodeError) as error:
        if isinstance(error, BrokenPipeError) and _reader_left():
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is buffered
            raise click.exceptions.Exit from error
        if os.environ.get("PUMICE_DEBUG") == "1":
            raise
        raise BadInputError(shown(_file_trouble(error))) from error


def _abort_if_interrupted(error: BaseException) -> None:
    if is_interrupted(error):
        heed_interrupt()
        raise AbortedError from error


def _point_to_field(error: ManifestError) -> None:
    from pumice.api.manifests import point_to_field

    point_to_field(error)


def _reader_left() -> bool:
    """Return whether nobody reads the output any more, as after ``| head -1``."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), select.POLLERR)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _file_trouble(error: OSError | UnicodeError) -> str:
    """Describe in one sentence what failed with a file or a disk."""
    if isinstance(error, UnicodeError):
        return f"expected UTF-8 text, got something else ({error})"
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}expected a usable file, got '{error.strerror or error}'"


@click.group(cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="pumice", message="%(prog)s %(version)s")
def main() -> None:
    """Batch scheduling for Kubernetes with Volcano's behaviour."""
    raise_on_interrupt()
    log = logging.getLogger("pumice")
    if not log.handlers:  # commands report their errors; those that serve add a log
        log.addHandler(logging.NullHandler())
