"""A cluster behind the Kubernetes REST API, real or `pumice up`.

Used by the commands.  Watches end with the answer: whoever needs a long one asks again.
"""

import json
import os
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from pumice.api.kinds import Manifest
from pumice.cluster.base import Event, PatchType, Propagation
from pumice.cluster.http import Answer, HttpClient
from pumice.cluster.kube.paths import (
    PATCH_TYPES,
    binding,
    delete_options,
    identity_of,
    kind_named,
    path_of,
    refusal,
    selector_of,
)
from pumice.errors import HttpError

_BIGGEST: Final = 1 << 30  # bytes of an answer: all pods of a large cluster
_PAGE: Final = 500


class KubeHttpCluster:
    """The Cluster protocol over HTTP; ``timeout_s`` bounds each call."""

    def __init__(
        self,
        server: str,
        *,
        token: str = "",
        authorization: str = "",
        tls: ssl.SSLContext | None = None,
        tls_name: str = "",
        timeout_s: float = 30.0,
    ) -> None:
        self._client = HttpClient(server, tls=tls, tls_name=tls_name)
        self._headers = {"Accept": "application/json"}
        if token or authorization:
            self._headers["Authorization"] = authorization or f"Bearer {token}"
        self._timeout_s = timeout_s

    def close(self) -> None:
        """Give the connection up; the next call opens a new one."""
        self._client.close()

    def now(self) -> float:
        """Give the machine's time in seconds since 1970."""
        return datetime.now(UTC).timestamp()

    def get(self, kind: str, namespace: str, name: str) -> Manifest:
        """Give one object."""
        return self._ask("GET", path_of(kind, namespace, name)).json_object()

    def list(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> tuple[list[Manifest], str]:
        """Give all objects of a kind and the resourceVersion from which to watch."""
        query = {"limit": str(_PAGE)}
        if labels:
            query["labelSelector"] = selector_of(labels)
        found: list[Manifest] = []
        known = kind_named(kind)
        while True:
            page = self._ask("GET", path_of(kind, namespace), query=query).json_object()
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
        answer = self._ask("GET", path_of(kind, namespace), query=query)
        for line in answer.content.splitlines():
            step = json.loads(line)
            if step["type"] == "ERROR":
                raise refusal(step["object"], (kind, namespace, ""))
            yield Event(step["type"], step["object"])

    def create(self, manifest: Manifest) -> Manifest:
        """Add an object; gives it back as stored."""
        kind, namespace, _ = identity_of(manifest)
        return self._ask("POST", path_of(kind, namespace), manifest).json_object()

    def update(self, manifest: Manifest) -> Manifest:
        """Replace an object."""
        return self._ask("PUT", path_of(*identity_of(manifest)), manifest).json_object()

    def update_status(self, manifest: Manifest) -> Manifest:
        """Replace the status of an object."""
        path = path_of(*identity_of(manifest), "status")
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
        path = path_of(kind, namespace, name, subresource)
        query = {"fieldManager": "pumice", "force": "true"} if patch_type == "apply" else None
        answer = self._ask("PATCH", path, patch, query=query, content_type=PATCH_TYPES[patch_type])
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
        options = delete_options(grace_s, propagation, uid)
        self._ask("DELETE", path_of(kind, namespace, name), options)

    def bind(
        self,
        namespace: str,
        pod: str,
        node: str,
        annotations: Mapping[str, str],
        *,
        uid: str = "",
    ) -> None:
        """Give a pod its node; with ``uid`` only if it is that very pod."""
        path = path_of("Pod", namespace, pod, "binding")
        self._ask("POST", path, binding(namespace, pod, node, annotations, uid))

    def evict(self, namespace: str, pod: str, reason: str, *, uid: str = "") -> None:
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
        self.delete("Pod", namespace, pod, uid=uid)

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
            raise refusal(_status(answer), ("", "", ""), answer.status)
        return answer

    def _unreachable(self, method: str, path: str, error: HttpError) -> str:
        """Tell a failed call in the words of Go's client, which scripts know."""
        cause = error.__cause__
        problem = error.problem
        if isinstance(cause, ConnectionRefusedError):
            host = self._client.base.partition("://")[2]
            problem = f"dial tcp {host}: connect: {(os.strerror(cause.errno or 0)).lower()}"
        return f'{method.capitalize()} "{self._client.base}{path}": {problem}'


def _status(answer: Answer) -> Manifest:
    try:
        return answer.json_object()
    except HttpError:
        text = answer.content[:200].decode("utf-8", "replace").strip()
        return {"message": text or f"the server answered with {answer.status}"}
