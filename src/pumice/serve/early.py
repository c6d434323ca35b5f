"""What a process does before anything large is imported: its logs, and a connection that listens.

Without an election the API server prepares the first lists while the rest is loaded.
"""

from contextlib import ExitStack
from typing import Final

from pumice import logs
from pumice.api.objects import FOLLOWED
from pumice.cluster.kube.cluster import KubeCluster
from pumice.cluster.kube.connection import load_connection
from pumice.cluster.kube.rate_limit import Timing
from pumice.serve.options import CommonOptions, ProcessOptions

_LEASE_S: Final = 1.0
"""How long the first lists wait for the lease: what is listed before it is taken does not count."""


def set_up_logs(options: CommonOptions) -> None:
    """Set up logging as configured."""
    levels = (part.partition("=") for part in options.vmodule.split(",") if part.strip())
    logs.set_up(
        json_lines=options.logging_format == "json",
        level=options.v,
        vmodule={name.strip(): int(level) for name, _, level in levels},
        headers=not options.skip_headers,
    )


def connect(
    options: ProcessOptions, stack: ExitStack, timing: Timing | None = None
) -> KubeCluster | None:
    """Connect to the cluster and begin to watch it; disconnected with ``stack``.

    Webhooks have a connection of their own: for them alone there is no cluster.
    """
    leader = options.leader
    if leader is None:
        return None
    cluster = KubeCluster(
        load_connection(leader.kubeconfig or None, leader.master),
        kinds=followed_kinds(options),
        qps=leader.kube_api_qps,
        burst=leader.kube_api_burst,
        timing=timing,
        follow_after_s=_LEASE_S if leader.leader_elect else 0.0,
    )
    return stack.enter_context(cluster)


def followed_kinds(options: ProcessOptions) -> tuple[str, ...]:
    """List the kinds to watch."""
    kinds: list[str] = []
    if options.scheduler is not None:
        kinds += FOLLOWED
    if options.controllers is not None:
        from pumice.serve import controllers  # noqa: PLC0415

        kinds += controllers.followed_kinds(options.controllers)
    return tuple(dict.fromkeys(kinds))
