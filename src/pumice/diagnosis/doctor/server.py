"""The API server: whether it answers, accepts the credentials, and which kind it is."""

from typing import Final, Protocol

from pumice.api.kinds import EMBEDDED_BUILD, Manifest
from pumice.cluster.base import Cluster
from pumice.errors import (
    NotFoundError,
    RejectedError,
    ServiceError,
    UnauthorizedError,
    UnavailableError,
)

_VERSION: Final = "/version"
_TIMEOUT_S: Final = 10.0
_MOST_BYTES: Final = 1 << 20


class ServedCluster(Cluster, Protocol):
    """A cluster behind an API server."""

    server: str
    """Address of the API server."""

    def read_path(self, target: str, *, timeout_s: float, cap: int) -> Manifest:
        """Return the answer of a path outside the kinds."""

    def read_text(self, target: str, *, timeout_s: float, cap: int) -> str:
        """Return the answer of a path that serves text."""

    def try_create(self, manifest: Manifest) -> Manifest:
        """Have an object admitted as if it were added, without adding it."""


def is_embedded(cluster: ServedCluster) -> bool:
    """Return whether a cluster is one of `pumice up`, which runs all processes.

    Raises:
        ServiceError: no API server answers, or it does not accept the credentials.
    """
    try:
        version = _version(cluster)
    except UnavailableError as error:
        problem = f"cannot reach the cluster at {cluster.server}: {error.problem}"
        raise ServiceError(cluster.server, problem) from error
    except UnauthorizedError as error:
        problem = f"the cluster at {cluster.server} refuses the credentials: {error.problem}"
        raise ServiceError(cluster.server, problem) from error
    except NotFoundError as error:
        problem = f"no API server answers at {cluster.server}: it has no {_VERSION}"
        raise ServiceError(cluster.server, problem) from error
    except RejectedError:  # it answers, but hides its version
        return False
    return str(version.get("gitVersion")).endswith(EMBEDDED_BUILD)


def _version(cluster: ServedCluster) -> Manifest:
    """Read the version; a second time if an expired token was refused, which renews it."""
    try:
        return cluster.read_path(_VERSION, timeout_s=_TIMEOUT_S, cap=_MOST_BYTES)
    except UnauthorizedError:
        return cluster.read_path(_VERSION, timeout_s=_TIMEOUT_S, cap=_MOST_BYTES)
