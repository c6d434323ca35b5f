"""`pumice fairshare`: what namespaces, users and queues used, and the factor it gives them."""

from typing import TYPE_CHECKING

import click

from pumice.cli.inputs import end_if_plugins_failed, read_world
from pumice.cli.options import (
    ClusterInput,
    PluginSources,
    output_option,
    plugin_option,
    world_options,
)
from pumice.cli.printing import print_data, print_rows
from pumice.errors import InputError, Words

if TYPE_CHECKING:
    from pumice.framework.plugin_declarations import AccountShare


@click.command()
@world_options()
@plugin_option
@output_option
def fairshare(*, source: ClusterInput, plugins: PluginSources, output: str) -> None:
    """Show the usage that jobs and queues are ordered by.

    An account is a namespace, a user or a queue. Usage is the mean amount that its jobs held;
    recent time counts more. Factor 1 means that it used nothing, 0.5 exactly its part by weight.
    """
    from pumice.diagnosis.fair_shares import fair_shares

    world = read_world(source, plugins)
    found = fair_shares(world)
    if not found.accounts:
        raise InputError(
            wanted="a configuration with the plugin fairshare, and a queue",
            found=Words("none"),
            hint="add fairshare to a tier, or name another configuration with --conf",
        )
    if output == "table":
        rows = [_row(each) for each in found.accounts]
        print_rows(("account", "name", "weight", "usage", "share", "factor"), rows)
    else:
        print_data(found.to_dict(), output)
    end_if_plugins_failed(world)


def _row(account: "AccountShare") -> tuple[str, ...]:
    from pumice.api.quantity import amount_text

    amounts = [
        f"{name}={amount_text(name, amount)}"
        for name, amount in account.usage.items()
        if amount >= 1 and name != "pods"
    ]
    return (
        account.kind,
        account.name,
        f"{account.weight:g}",
        ",".join(amounts) or "-",
        f"{account.share:.1%}",
        f"{account.factor:.3f}",
    )
