"""A cluster behind the Kubernetes REST API, real or `pumice up`.

Used by the commands.  Watches end with the answer: whoever needs a long one asks again.
"""

import json
import os
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlencode

from pumice.cluster.base import Event, Manifest, PatchType, Propagation, kind_of
from pumice.cluster.embedded.kinds import BUILT_IN, Kind
from pumice.cluster.http import Answer, HttpClient
from pumice.errors import (
    AlreadyExistsError,
    ClusterError,
    ConflictError,
    GoneError,
    HttpError,
    NotFoundError,
    RejectedError,
)

_KINDS: Final = {kind.name: kind for kind in BUILT_IN}
_PATCHES: Final[Mapping[str, str]] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_REASONS: Final[Mapping[str, type[ClusterError]]] = {
    "AlreadyExists": AlreadyExistsError,
    "Conflict": ConflictError,
    "Expired": GoneError,
    "Gone": GoneError,
    "NotFound": NotFoundError,
}
_BIGGEST: Final = 1 << 30  # bytes of an answer: all pods of a large cluster
_PAGE: Final = 500


class KubeHttpCluster:
    """The Cluster protocol over HTTP; ``timeout_s`` bounds each call."""

    def __init__(
        self,
        server: str,
        *,
        token: str = "",
        tls: ssl.SSLContext | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        self._client = HttpClient(server, tls=tls)
        self._headers = {"Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._timeout_s = timeout_s

    def close(self) -> None:
        """Give the connection up; the next call opens a new one."""
        self._client.close()

    def now(self) -> float:
        """Give the machine's time in seconds since 1970."""
        return datetime.now(UTC).timestamp()

    def get(self, kind: str, namespace: str, name: str) -> Manifest:
        """Give one object."""
        return self._ask("GET", _path(kind, namespace, name)).json_object()

    def list(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> tuple[list[Manifest], str]:
        """Give all objects of a kind and the resourceVersion from which to watch."""
        query = {"limit": str(_PAGE)}
        if labels:
            query["labelSelector"] = ",".join(f"{key}={value}" for key, value in labels.items())
        found: list[Manifest] = []
        known = _kind(kind)
        while True:
            page = self._ask("GET", _path(kind, namespace), query=query).json_object()
            found += [
                {"apiVersion": known.api_version, "kind": known.kind, **item}
                for item in page.get("items") or ()
            ]
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                return found, str(metadata.get("resourceVersion", ""))
            query["continue"] = metadata["continue"]

    def watch(self, kind: str, namespace: str = "", since: str = "") -> Iterator[Event]:
        """Give what happened after a resourceVersion, as far as the server tells at once."""
        query = {"watch": "true", "timeoutSeconds": "1", "allowWatchBookmarks": "true"}
        if since:
            query["resourceVersion"] = since
        answer = self._ask("GET", _path(kind, namespace), query=query)
        for line in answer.content.splitlines():
            step = json.loads(line)
            if step["type"] == "ERROR":
                raise _refusal(step["object"], kind)
            yield Event(step["type"], step["object"])

    def create(self, manifest: Manifest) -> Manifest:
        """Add an object; gives it back as stored."""
        kind, namespace, _ = _identity(manifest)
        return self._ask("POST", _path(kind, namespace), manifest).json_object()

    def update(self, manifest: Manifest) -> Manifest:
        """Replace an object."""
        return self._ask("PUT", _path(*_identity(manifest)), manifest).json_object()

    def update_status(self, manifest: Manifest) -> Manifest:
        """Replace the status of an object."""
        path = f"{_path(*_identity(manifest))}/status"
        return self._ask("PUT", path, manifest).json_object()

    def patch(
        self,
        kind: str,
        namespace: str,
        name: str,
        patch: Any,
        *,
        patch_type: PatchType = "merge",
        subresource: str = "",
    ) -> Manifest:
        """Change parts of an object."""
        path = _path(kind, namespace, name) + (f"/{subresource}" if subresource else "")
        query = {"fieldManager": "pumice", "force": "true"} if patch_type == "apply" else None
        answer = self._ask("PATCH", path, patch, query=query, content_type=_PATCHES[patch_type])
        return answer.json_object()

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        *,
        grace_s: int | None = None,
        propagation: Propagation = "Background",
        uid: str = "",
    ) -> None:
        """Ask for an object to go."""
        options: Manifest = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
        }
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        if uid:
            options["preconditions"] = {"uid": uid}
        self._ask("DELETE", _path(kind, namespace, name), options)

    def bind(self, namespace: str, pod: str, node: str, annotations: Mapping[str, str]) -> None:
        """Give a pod its node."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod, "namespace": namespace, "annotations": dict(annotations)},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        self._ask("POST", f"{_path('Pod', namespace, pod)}/binding", binding)

    def evict(self, namespace: str, pod: str, reason: str) -> None:
        """Tell in a condition why a pod is ended, then end it."""
        condition = {
            "type": "Ready",
            "status": "False",
            "reason": "Evict",
            "message": reason,
        }
        self.patch(
            "Pod",
            namespace,
            pod,
            {"status": {"conditions": [condition]}},
            patch_type="strategic",
            subresource="status",
        )
        self.delete("Pod", namespace, pod)

    def record(
        self, about: Manifest, event_type: str, reason: str, message: str, source: str
    ) -> None:
        """Write an event about an object."""
        metadata = about["metadata"]
        moment = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        namespace = metadata.get("namespace") or "default"
        self.create(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {
                    "name": f"{metadata['name']}.{int(self.now() * 1e9):x}",
                    "namespace": namespace,
                },
                "involvedObject": {
                    "apiVersion": about["apiVersion"],
                    "kind": about["kind"],
                    "name": metadata["name"],
                    "namespace": metadata.get("namespace", ""),
                    "uid": metadata.get("uid", ""),
                },
                "type": event_type,
                "reason": reason,
                "message": message,
                "source": {"component": source},
                "reportingComponent": source,
                "reportingInstance": source,
                "firstTimestamp": moment,
                "lastTimestamp": moment,
                "count": 1,
            }
        )

    def _ask(
        self,
        method: str,
        path: str,
        content: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        body = None if content is None else json.dumps(content).encode()
        headers = self._headers if body is None else {**self._headers, "Content-Type": content_type}
        target = f"{path}?{urlencode(query)}" if query else path
        deadline = self._client.clock() + self._timeout_s
        try:
            answer = self._client.request(
                method, target, body, headers, deadline=deadline, cap=_BIGGEST
            )
        except HttpError as error:
            raise HttpError(error.url, self._unreachable(method, path, error)) from error
        if answer.status >= 400:
            raise _refusal(_status(answer), path)
        return answer

    def _unreachable(self, method: str, path: str, error: HttpError) -> str:
        """Tell a failed call in the words of Go's client, which scripts know."""
        cause = error.__cause__
        problem = error.problem
        if isinstance(cause, ConnectionRefusedError):
            host = self._client.base.partition("://")[2]
            problem = f"dial tcp {host}: connect: {(os.strerror(cause.errno or 0)).lower()}"
        return f'{method.capitalize()} "{self._client.base}{path}": {problem}'


def _kind(name: str) -> Kind:
    found = _KINDS.get(name)
    if found is None:
        raise RejectedError(name, problem="wanted a kind that is known here")
    return found


def _identity(manifest: Manifest) -> tuple[str, str, str]:
    metadata = manifest["metadata"]
    return kind_of(manifest), metadata.get("namespace", ""), metadata.get("name", "")


def _path(kind: str, namespace: str = "", name: str = "") -> str:
    known = _kind(kind)
    root = f"/apis/{known.api_version}" if known.group else f"/api/{known.version}"
    inside = f"/namespaces/{quote(namespace)}" if namespace and known.namespaced else ""
    return f"{root}{inside}/{known.plural}" + (f"/{quote(name, safe='')}" if name else "")


def _status(answer: Answer) -> Manifest:
    try:
        return answer.json_object()
    except HttpError:
        text = answer.content[:200].decode("utf-8", "replace").strip()
        return {"message": text or f"the server answered with {answer.status}"}


def _refusal(status: Manifest, asked: str) -> ClusterError:
    """Make the error for a Status object; its message is the server's, word for word."""
    make = _REASONS.get(str(status.get("reason")), RejectedError)
    return make(problem=str(status.get("message") or f"{asked}: refused without a message"))
