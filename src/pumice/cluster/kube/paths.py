"""Names in the Kubernetes REST API: paths of objects, kinds of patch, messages of refusal.

Used by every client of an API server.  Sends nothing.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

from pumice.api.kinds import BUILT_IN, ONLY_REAL, Kind, Manifest, kind_of
from pumice.cluster.base import Propagation
from pumice.errors import (
    AlreadyExistsError,
    ClusterError,
    ConflictError,
    GoneError,
    NamespaceTerminatingError,
    NotFoundError,
    QuotaExceededError,
    RejectedError,
    UnauthorizedError,
    UnavailableError,
)

ObjectKey = tuple[str, str, str]
"""Kind, namespace and name of an object."""

_KINDS: Final = {kind.name: kind for kind in (*BUILT_IN, *ONLY_REAL)}
_PLAIN: Final = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*")
"""Names that are the same in a path, as nearly all are."""
_STEPS: Final = frozenset({".", ".."})
"""No object has such a name, and a proxy before the server would follow them."""
_OVER_QUOTA: Final = re.compile(r" is forbidden: (?:exceeded|failed) quota: ")
"""How an API server refuses an object for a resource quota; no other field says so."""
_REASONS: Final[Mapping[str, type[ClusterError]]] = {
    "AlreadyExists": AlreadyExistsError,
    "Conflict": ConflictError,
    "Expired": GoneError,
    "Gone": GoneError,
    "NotFound": NotFoundError,
    "ServerTimeout": UnavailableError,
    "Timeout": UnavailableError,
    "TooManyRequests": UnavailableError,
    "Unauthorized": UnauthorizedError,
}
_CODES: Final[Mapping[int, type[ClusterError]]] = {
    401: UnauthorizedError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    429: UnavailableError,
}

PATCH_TYPES: Final[Mapping[str, str]] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
"""Content types of patches."""


def kind_named(name: str) -> Kind:
    """Return a kind by ``Kind`` or ``Kind.group``.

    Raises:
        RejectedError: it is unknown.
    """
    found = _KINDS.get(name)
    if found is None:
        raise RejectedError(name, problem="expected a known kind")
    return found


def path_of(
    kind: str, namespace: str = "", name: str = "", subresource: str = "", version: str = ""
) -> str:
    """Return the path of an object, or of all objects of a kind, in a version or the usual one.

    Raises:
        RejectedError: the kind is unknown, or a name would lead to another path.
    """
    if name in _STEPS or namespace in _STEPS:
        raise RejectedError(kind, namespace, name, problem="expected a name, got a step of a path")
    one = f"/{name if _PLAIN.fullmatch(name) else quote(name, safe='')}" if name else ""
    part = f"/{subresource}" if subresource else ""
    return f"{_path_of_all(kind, namespace, version)}{one}{part}"


@lru_cache(maxsize=1024)
def _path_of_all(kind: str, namespace: str, version: str) -> str:
    known = kind_named(kind)
    version = version or known.version
    root = f"/apis/{known.group}/{version}" if known.group else f"/api/{version}"
    inside = f"/namespaces/{quote(namespace, safe='')}" if namespace and known.namespaced else ""
    return f"{root}{inside}/{known.plural}"


def identity_of(manifest: Manifest) -> ObjectKey:
    """Return kind, namespace and name of an object; a new one may have no name yet."""
    metadata = manifest["metadata"]
    return kind_of(manifest), metadata.get("namespace") or "", metadata.get("name") or ""


def selector_of(labels: Mapping[str, str]) -> str:
    """Write labels as the selector of a request."""
    return ",".join(f"{key}={value}" for key, value in labels.items())


def binding(
    namespace: str, pod: str, node: str, annotations: Mapping[str, str], uid: str = ""
) -> Manifest:
    """Return the body that binds a pod; with ``uid`` only that very pod is bound."""
    metadata = {"name": pod, "namespace": namespace, "annotations": dict(annotations)}
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {**metadata, "uid": uid} if uid else metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


def delete_options(grace_s: int | None, propagation: Propagation, uid: str) -> Manifest:
    """Return the body of a deletion."""
    options: Manifest = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": propagation,
    }
    if grace_s is not None:
        options["gracePeriodSeconds"] = grace_s
    if uid:
        options["preconditions"] = {"uid": uid}
    return options


def _causes(status: Manifest) -> list[Any]:
    """List the reasons that a Status object names besides its own."""
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return [one.get("reason") for one in causes or () if isinstance(one, dict)]


def refusal(status: Any, key: ObjectKey, code: int = 0) -> ClusterError:
    """Make the error for a Status object; its message is the server's, word for word.

    ``code`` is that of the answer, for servers and proxies that send no Status.
    """
    body = status if isinstance(status, dict) else {}
    code = code or body.get("code") or 0
    make = _REASONS.get(str(body.get("reason"))) or _CODES.get(code)
    if "NamespaceTerminating" in _causes(body):
        make = NamespaceTerminatingError
    elif code == 403 and _OVER_QUOTA.search(str(body.get("message"))):
        make = QuotaExceededError
    if make is None:
        make = UnavailableError if code >= 500 else RejectedError
    problem = str(body.get("message") or f"the server answered with {code} and no message")
    error = make(*key, problem=problem)
    error.verbatim = True
    return error
