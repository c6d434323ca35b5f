"""`pumice serve`: the scheduler, the controllers and the webhooks as processes.

Flags are Volcano's own and read as Go does, so click only finds the command; what is needed to
serve is loaded when something is served.
"""

import shutil
from contextlib import ExitStack
from typing import Any, Final

import click

from pumice import __version__
from pumice.api.duration import duration_text
from pumice.cli.printing import echo, echo_lines
from pumice.serve.options import FLAGS, Flag, ProcessOptions, read_options

_SUMMARIES: Final = {
    "scheduler": "Decide where pods run (vc-scheduler).",
    "controllers": "Run jobs, queues and flows (vc-controller-manager).",
    "webhooks": "Check and complete objects (vc-webhook-manager).",
    "all": "All three in one process.",
}


class ServeCommand(click.Command):
    """A command whose arguments click does not parse."""

    def __init__(self, process: str) -> None:
        super().__init__(process, help=_SUMMARIES[process], add_help_option=False)
        self.process = process

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Leave all arguments as they are."""
        ctx.args = args
        return args

    def invoke(self, ctx: click.Context) -> Any:
        """Read the flags and serve."""
        options = read_options(self.process, ctx.args)
        if options.wants_help:
            echo_lines(f"{help_text(self.process)}\n")
            return
        if options.common.version:
            echo(f"pumice {__version__}")
            return
        ctx.exit(_serve(options))


def _serve(options: ProcessOptions) -> int:
    """Serve until stopped; the cluster is listed while the larger part is imported."""
    from pumice.serve.early import connect, set_up_logs

    set_up_logs(options.common)
    with ExitStack() as stack:
        cluster = connect(options, stack)
        from pumice.serve.start import run

        wants_ui = options.scheduler is not None and options.scheduler.ui
        return run(options, cluster, _attach() if wants_ui else None)


def _attach() -> Any:
    from pumice.dashboard.serving import LiveDashboard

    return LiveDashboard


def help_text(process: str) -> str:
    """Return what ``--help`` prints: what a process does, and its flags."""
    width = min(shutil.get_terminal_size().columns, 100)
    formatter = click.HelpFormatter(width=width)
    formatter.write_usage(f"pumice serve {process}", "[--flag=value]...")
    formatter.write_paragraph()
    formatter.write_text(_SUMMARIES[process])
    used = [flag for flag in FLAGS[process] if not flag.ignored]
    with formatter.section("Flags"):
        formatter.write_dl([(shown(flag), _help(flag)) for flag in used])
    ignored = ", ".join(shown(flag) for flag in FLAGS[process] if flag.ignored)
    with formatter.section("Accepted without effect"):
        formatter.write_text(ignored)
    return formatter.getvalue().rstrip()


def shown(flag: Flag) -> str:
    """Write a flag as it is typed."""
    return f"-{flag.name}" if len(flag.name) == 1 else f"--{flag.name}"


def _help(flag: Flag) -> str:
    default = written_default(flag)
    return f"{flag.help} [{default}]" if default else flag.help


def written_default(flag: Flag) -> str:
    """Write a default as it would be typed; nothing if it is empty."""
    value = flag.default
    if flag.kind == "bool":
        return str(value).lower()
    if flag.kind == "duration":
        return duration_text(round(value * 10**9)).replace("m0s", "m").replace("h0m", "h")
    if flag.kind == "gates":
        return ", ".join(f"{name}={str(on).lower()}" for name, on in value.items())
    if flag.kind in ("array", "slice"):
        return ",".join(value)
    if flag.kind == "float":
        return f"{value:g}"
    return str(value)


@click.group(help="Serve a real cluster: scheduler, controllers, webhooks, or all in one.")
def serve() -> None:
    """Serve a real cluster."""


for _process in _SUMMARIES:
    serve.add_command(ServeCommand(_process))
