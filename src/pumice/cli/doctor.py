"""`pumice doctor`: check an installation and print what to do."""

from collections import Counter
from dataclasses import asdict

import click

from pumice.cli.connect import ConnectOptions, connect, trouble
from pumice.cli.printing import print_data
from pumice.cli.tables import print_rows
from pumice.cli.terminal import echo
from pumice.diagnosis.doctor import Checked, examine_cluster
from pumice.errors import ServiceError


def doctor(*, kubeconfig: str, master: str, output: str) -> None:
    """Check a cluster and print the findings; exit with 1 if something is wrong or all unknown."""
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


def _print(found: list[Checked]) -> None:
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
