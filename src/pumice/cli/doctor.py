"""`pumice doctor`: check an installation and print what to do."""

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from pumice.cli.connect import ConnectOptions, connect, trouble
from pumice.cli.options import cluster_options, output_option
from pumice.cli.printing import echo, print_data, print_rows
from pumice.errors import ServiceError

if TYPE_CHECKING:
    from pumice.diagnosis.doctor import Checked


def _no_files(_ctx: click.Context, _param: click.Parameter, files: tuple[str, ...]) -> None:
    """Name the commands that check files, since other commands take -f."""
    if files:
        raise click.UsageError(
            "doctor asks a running cluster: no file has its permissions, leases and webhooks; "
            f"ask about files with 'pumice explain -f {files[0]}', "
            f"and check manifests with 'pumice lint {files[0]}'"
        )


@click.command()
@click.option(
    "-f", "--filename", multiple=True, hidden=True, expose_value=False, callback=_no_files
)
@cluster_options
@output_option
def doctor(*, kubeconfig: str, master: str, output: str) -> None:
    """Check whether a cluster has what Pumice needs, and show what to do if it does not.

    It asks a running cluster; lint and explain -f check files. Nothing is changed. Exits with 1 if
    something is wrong, or if nothing could be checked.
    """
    from pumice.diagnosis.doctor import examine_cluster

    try:
        with connect(ConnectOptions(kubeconfig, master)) as cluster:
            found = examine_cluster(cluster)
    except ServiceError as error:
        raise click.ClickException(trouble(error)) from error
    if output == "table":
        _print(found)
    else:
        print_data([asdict(each) for each in found], output)
    states = {each.state for each in found}
    if "wrong" in states or states == {"unknown"}:
        raise SystemExit(1)


def _print(found: "list[Checked]") -> None:
    print_rows(("state", "check", "found"), [(each.state, each.check, each.text) for each in found])
    steps: dict[str, dict[str, None]] = {}
    for each in found:
        if each.next_step:
            steps.setdefault(each.next_step, {})[each.check] = None
    if steps:
        echo()
        echo("What to do")
        for step, checks in steps.items():
            echo(f"  {', '.join(checks)}: {step}")
    counts = Counter(each.state for each in found)
    parts = [f"{counts[state]} {state}" for state in ("wrong", "warning", "unknown", "ok")]
    echo()
    echo(f"{', '.join(part for part in parts if not part.startswith('0 '))}")
