"""The writes and reads of the Cluster protocol as coroutines against a real API server.

Used by KubeCluster.  Limits its own rate, repeats what is safe to repeat, and sends no write while
the fence is closed.  Keeps no objects.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from pumice.cluster.base import Manifest, PatchType, Propagation
from pumice.cluster.kube.addresses import (
    PATCH_TYPES,
    binding,
    delete_options,
    identity_of,
    kind_named,
    path_of,
    refusal,
    selector_of,
)
from pumice.cluster.kube.connection import Connection
from pumice.cluster.kube.event_book import Count, EventBook, Story, story_of
from pumice.cluster.kube.pace import Backoff, Pace, TokenBucket
from pumice.cluster.kube.transport import Transport
from pumice.cluster.kube.wire import Reply
from pumice.errors import (
    ClusterError,
    ConflictError,
    FencedError,
    GoneError,
    NotFoundError,
    UnavailableError,
)

Place = tuple[str, str, str]
"""Kind, namespace and name."""

_LEASE: Final = "Lease.coordination.k8s.io"
_PAGE: Final = 500
_ATTEMPTS: Final = 6
_FIRST_S: Final = 0.1
_LONGEST_S: Final = 10.0
_LONGEST_ASKED_S: Final = 60.0

_encode: Final = msgspec.json.Encoder().encode


class Page(msgspec.Struct):
    """One part of a list."""

    metadata: dict[str, Any] = {}
    items: list[dict[str, Any]] | None = None


_decode_object: Final = msgspec.json.Decoder(dict[str, Any]).decode
_decode_page: Final = msgspec.json.Decoder(Page).decode


@dataclass(frozen=True, slots=True)
class _Call:
    """One request; ``repeatable`` if sending it twice does no more than sending it once."""

    method: str
    place: Place
    target: str
    body: bytes = b""
    content_type: str = "application/json"
    repeatable: bool = True

    @property
    def is_write(self) -> bool:
        return self.method != "GET"

    @property
    def is_free(self) -> bool:
        """Whether it is neither fenced, nor limited, nor repeated."""
        return self.place[0] == _LEASE


class KubeClient:
    """One API server; ``fence`` is asked immediately before each write goes out.

    Leases are neither fenced, nor limited, nor asked for twice: by them it is decided who leads, in
    time.  ``known`` gives an object as far as it is known without asking, so that binds, evictions
    and events mean the very pod that was looked at and not a later one of the same name.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        qps: float = 50.0,
        burst: int = 100,
        timeout_s: float = 30.0,
        fence: Callable[[], bool] = lambda: True,
        known: Callable[[str, str, str], Manifest | None] = lambda *_: None,
        pace: Pace | None = None,
    ) -> None:
        self.fence = fence
        self.pace = pace or Pace()
        self.bucket = TokenBucket(qps, burst, self.pace)
        self.transport = Transport(connection, timeout_s)
        self._known = known
        self._events = EventBook(self.pace.wall)

    async def close(self) -> None:
        """Give up all connections."""
        await self.transport.close()

    async def get(self, kind: str, namespace: str, name: str) -> Manifest:
        """Give one object."""
        return await self._object(
            _Call("GET", (kind, namespace, name), path_of(kind, namespace, name))
        )

    async def list(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> tuple[list[Manifest], str]:
        """Give all objects of a kind and the resourceVersion from which to watch."""
        found: list[Manifest] = []
        version = ""
        async for page in self.pages(kind, namespace, labels):
            if page is None:
                found.clear()
                continue
            found += page.items or ()
            version = str(page.metadata.get("resourceVersion") or "")
        return found, version

    async def pages(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> AsyncIterator[Page | None]:
        """Give a list part by part; None if it starts over and what came before is void."""
        known = kind_named(kind)
        query = {"limit": str(_PAGE)}
        if labels:
            query["labelSelector"] = selector_of(labels)
        path = path_of(kind, namespace)
        while True:
            target = f"{path}?{urlencode(query)}" if query else path
            try:
                page = await self._page(_Call("GET", (kind, namespace, ""), target))
            except GoneError:
                if "continue" not in query:
                    raise
                del query["continue"], query["limit"]  # too slow for pages: all at once
                yield None
                continue
            for item in page.items or ():
                item["apiVersion"], item["kind"] = known.api_version, known.kind
            yield page
            if not page.metadata.get("continue"):
                return
            query["continue"] = page.metadata["continue"]

    async def create(self, manifest: Manifest) -> Manifest:
        """Add an object; gives it back as stored."""
        place = identity_of(manifest)
        target = path_of(place[0], place[1])
        return await self._object(_Call("POST", place, target, _encode(manifest), repeatable=False))

    async def update(self, manifest: Manifest) -> Manifest:
        """Replace an object."""
        place = identity_of(manifest)
        return await self._object(_Call("PUT", place, path_of(*place), _encode(manifest)))

    async def update_status(self, manifest: Manifest) -> Manifest:
        """Replace the status of an object."""
        place = identity_of(manifest)
        return await self._object(_Call("PUT", place, path_of(*place, "status"), _encode(manifest)))

    async def patch(
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
        target = path_of(kind, namespace, name, subresource)
        if patch_type == "apply":
            target += "?fieldManager=pumice&force=true"
        call = _Call(
            "PATCH",
            (kind, namespace, name),
            target,
            _encode(patch),
            PATCH_TYPES[patch_type],
            repeatable=patch_type != "json",
        )
        return await self._object(call)

    async def delete(
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
        body = _encode(delete_options(grace_s, propagation, uid))
        place = (kind, namespace, name)
        await self._ask(_Call("DELETE", place, path_of(*place), body))

    async def bind(
        self,
        namespace: str,
        pod: str,
        node: str,
        annotations: Mapping[str, str],
        *,
        uid: str = "",
    ) -> None:
        """Give a pod its node; one that has this node already counts as done."""
        place = ("Pod", namespace, pod)
        uid = uid or self._uid(place)
        body = binding(namespace, pod, node, annotations, uid)
        call = _Call("POST", place, path_of(*place, "binding"), _encode(body), repeatable=False)
        backoff = Backoff(_FIRST_S, _LONGEST_S, self.pace)
        while True:
            try:
                await self._ask(call)
            except (ConflictError, UnavailableError) as error:
                if await self._is_bound(call.place, uid, node, error):
                    return
                if backoff.failures >= _ATTEMPTS - 1:
                    raise
                await backoff.wait()
            else:
                return

    async def evict(self, namespace: str, pod: str, reason: str, *, uid: str = "") -> None:
        """Tell in conditions why a pod is ended, then delete it with its own grace."""
        moment = datetime.fromtimestamp(int(self.pace.wall()), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        told = {"message": reason, "lastTransitionTime": moment}
        conditions = [
            {"type": "Ready", "status": "False", "reason": "Evict", **told},
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "PreemptionByScheduler",
                **told,
            },
        ]
        uid = uid or self._uid(("Pod", namespace, pod))
        patch: Manifest = {"status": {"conditions": conditions}}
        if uid:
            patch["metadata"] = {"uid": uid}
        await self.patch("Pod", namespace, pod, patch, patch_type="strategic", subresource="status")
        await self.delete("Pod", namespace, pod, uid=uid)

    async def record(
        self, about: Manifest, event_type: str, reason: str, message: str, source: str
    ) -> None:
        """Write an event about an object; the same one again is counted, and seldom sent."""
        about = self._completed(about)
        story = story_of(about, event_type, reason, message, source)
        step = self._events.again(story)
        if isinstance(step, Count):
            try:
                await self.patch("Event", step.namespace, step.name, step.patch)
            except NotFoundError:  # servers keep events for an hour
                self._events.forget(story)
                step = False
        if not step:
            await self._tell(about, story)

    async def _tell(self, about: Manifest, story: Story) -> None:
        event = self._events.new(about, story)
        if event is None:
            return
        try:
            await self.create(event)
        except ClusterError:
            self._events.forget(story)
            raise

    def _uid(self, place: Place) -> str:
        known = self._known(*place)
        return "" if known is None else str(known["metadata"].get("uid") or "")

    def _completed(self, about: Manifest) -> Manifest:
        """Add to a mention of an object what is known of it."""
        metadata = about["metadata"]
        known = None if metadata.get("uid") else self._known(*identity_of(about))
        if known is None:
            return about
        fields = ("uid", "resourceVersion")
        more = {key: known["metadata"][key] for key in fields if key in known["metadata"]}
        return {**about, "metadata": {**metadata, **more}}

    async def _is_bound(self, place: Place, uid: str, node: str, error: ClusterError) -> bool:
        """Settle a doubt about a bind by looking at the pod.

        Raises:
            ClusterError: the bind has failed, and there is no use in trying again.
        """
        if isinstance(error, UnavailableError) and not error.sent:
            raise error
        pod = await self.get(*place)
        found = (pod.get("spec") or {}).get("nodeName") or ""
        same = not uid or pod["metadata"].get("uid") == uid
        if found == node and same:
            return True
        if isinstance(error, ConflictError):
            raise error
        if found or not same:
            problem = f"already on node {found}" if same else "another pod of the same name"
            raise ConflictError(*place, problem=problem) from error
        return False

    async def _object(self, call: _Call) -> Manifest:
        content = await self._ask(call)
        try:
            return _decode_object(content)
        except msgspec.MsgspecError as error:
            raise UnavailableError(*call.place, problem=f"no object came back: {error}") from error

    async def _page(self, call: _Call) -> Page:
        content = await self._ask(call)
        try:
            return _decode_page(content)
        except msgspec.MsgspecError as error:
            raise UnavailableError(*call.place, problem=f"no list came back: {error}") from error

    async def _ask(self, call: _Call) -> bytes:
        """Send a request until there is an answer, as long as sending it again does no harm."""
        backoff = Backoff(_FIRST_S, _LONGEST_S, self.pace)
        doubt = refused = False
        while True:
            try:
                reply = await self._send(call)
            except UnavailableError as lost:
                error: ClusterError = lost
                again, doubt, wait_s = call.repeatable or not lost.sent, doubt or lost.sent, 0.0
            else:
                if reply.status < 300:
                    return reply.content
                if reply.status == 401 and not refused:
                    refused = True
                    self.transport.refused()
                    continue
                if reply.status == 404 and doubt and call.method == "DELETE":
                    return b""  # our own doing
                error = refusal(_status(reply.content), call.place, reply.status)
                again, wait_s = self._may_repeat(call, reply), reply.retry_after_s
                doubt = doubt or reply.status >= 500
            if not again or call.is_free or backoff.failures >= _ATTEMPTS - 1:
                raise _about(error, call.place)
            await backoff.wait(min(wait_s, _LONGEST_ASKED_S))

    async def _send(self, call: _Call) -> Reply:
        """Send a request once, when it is its turn and if the fence is open."""
        transport = self.transport
        if not call.is_write:
            if not call.is_free:
                await self.bucket.take()
            return await transport.read(call.target)
        if call.is_free:
            return await transport.write(call.method, call.target, call.body, call.content_type)

        def guard() -> None:
            if not self.fence():
                raise FencedError(*call.place)

        guard()  # what is held back needs no turn; but the fence may close while it waits
        await self.bucket.take()
        return await transport.write(call.method, call.target, call.body, call.content_type, guard)

    @staticmethod
    def _may_repeat(call: _Call, reply: Reply) -> bool:
        """Say whether a refusal is worth another try; with 429 a server has done nothing yet."""
        return reply.status == 429 or (reply.status >= 500 and call.repeatable)


def _about(error: ClusterError, place: Place) -> ClusterError:
    """Name the object in an error that knows none."""
    if not error.kind:
        error.kind, error.namespace, error.name = place
    return error


def _status(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content)
    except msgspec.MsgspecError:
        text = content[:200].decode("utf-8", "replace").strip()
        return {"message": text}
