"""The cluster of a command: a kubeconfig, an address, or a running `pumice up`."""

import os
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from pumice.errors import ClusterError, InputError, ServiceError, UnavailableError

if TYPE_CHECKING:
    from pumice.cluster.kube.cluster import KubeCluster
    from pumice.cluster.kube.connection import Connection

_NOTHING = (
    "no cluster found: start one with 'pumice up', or name one with --kubeconfig, "
    "--master or KUBECONFIG"
)
_UNREACHED = re.compile(
    r"""(?:cannot\ reach\ the\ cluster\ at\ \S+:\ )?
    [A-Z][a-z]+\ "(?P<server>https?://[^/"]+)[^"]*":\ dial\ tcp
    (?:\ \S+:\ connect:|:\ lookup)\ (?P<why>.+)""",
    re.VERBOSE | re.DOTALL,
)
"""A failed connection as the original words it."""


@dataclass(frozen=True)
class ConnectOptions:
    """The options that name the cluster."""

    kubeconfig: str = ""
    master: str = ""
    fallback: str = ""
    """The address when no cluster is named anywhere; empty: none."""


def endpoint_file(env: Mapping[str, str] = os.environ) -> Path:
    """Return the kubeconfig that a running `pumice up` writes for the other commands."""
    state = env.get("XDG_STATE_HOME") or str(
        Path(env.get("HOME") or "~").expanduser() / ".local/state"
    )
    return Path(state) / "pumice" / "kubeconfig"


def connect(
    options: ConnectOptions, env: Mapping[str, str] = os.environ
) -> "AbstractContextManager[KubeCluster]":
    """Return the cluster, to be used as a context manager; nothing is sent yet.

    The first that is named counts: --kubeconfig, KUBECONFIG, the endpoint of a running `pumice up`,
    ~/.kube/config, the fallback.  --master replaces the address only.

    Raises:
        InputError: a kubeconfig that cannot be used.
        ServiceError: no cluster is named at all, or a credential program failed.
    """
    from pumice.cluster.kube.cluster import KubeCluster

    # ages are told by the clock that wrote the objects: that of `pumice up --speed` runs ahead
    return KubeCluster(connection(options, env), qps=0, attempts=1, by_server=True)


def connection(options: ConnectOptions, env: Mapping[str, str] = os.environ) -> "Connection":
    """Return how to reach the cluster of ``connect``.

    Raises:
        InputError: a kubeconfig that cannot be used.
        ServiceError: no cluster is named at all, or a credential program failed.
    """
    from pumice.cluster.kube.connection import from_files, from_master

    files = _kubeconfigs(options, env)
    address = options.master or options.fallback
    if not files and not address:
        raise ServiceError("", _NOTHING)
    found = from_files(files, options.master) if files else from_master(address)
    found.credentials.header()  # a failed login is reported as such, not as a failed request
    return found


def is_out_of_reach(error: Exception) -> TypeGuard[ServiceError | UnavailableError]:
    """Return whether no cluster answered, rather than one that refused."""
    if isinstance(error, UnavailableError):
        return not error.verbatim
    return isinstance(error, ServiceError)


def trouble(error: ServiceError | ClusterError) -> str:
    """Explain in one line why a cluster could not be queried."""
    if isinstance(error, ServiceError):
        text = error.problem if not error.url or error.url in error.problem else str(error)
    else:
        text = error.problem or str(error)
    found = _UNREACHED.fullmatch(text)
    return f"cannot reach the cluster at {found['server']}: {found['why']}" if found else text


def _kubeconfigs(options: ConnectOptions, env: Mapping[str, str]) -> list[Path]:
    from pumice.cluster.kube.kubeconfig import named_files

    try:
        named = named_files(options.kubeconfig, env)
    except InputError:
        if options.kubeconfig and options.fallback:  # in the words of the original
            file = options.kubeconfig
            raise ServiceError(file, f"stat {file}: no such file or directory") from None
        if options.kubeconfig or not (options.master or options.fallback):
            raise
        return []
    if named or options.master:  # it was named explicitly, so do not try another
        return named
    usual = Path(env.get("HOME") or "~").expanduser() / ".kube" / "config"
    return [file for file in (endpoint_file(env), usual) if file.is_file()][:1]
