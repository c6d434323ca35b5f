"""The writes and reads of the Cluster protocol as coroutines against a real API server.

Used by KubeCluster.  Limits its own rate, repeats what is safe to repeat, and sends no write while
the fence is closed.  Keeps no objects.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from pumice.api.kinds import Manifest
from pumice.api.times import rfc3339
from pumice.cluster.base import PatchType, Propagation
from pumice.cluster.kube.connection import Connection
from pumice.cluster.kube.event_correlator import CountUpdate, EventCorrelator, EventKey, event_key
from pumice.cluster.kube.paths import (
    PATCH_TYPES,
    ObjectKey,
    binding,
    delete_options,
    identity_of,
    kind_named,
    path_of,
    selector_of,
)
from pumice.cluster.kube.rate_limit import Timing, TokenBucket
from pumice.cluster.kube.retry import ATTEMPTS, ApiRequest, RetryingSender, in_doubt
from pumice.errors import ClusterError, ConflictError, GoneError, NotFoundError, UnavailableError

_PAGE: Final = 500
_LIST_S: Final = 300.0
"""Seconds for all parts of a list together; 100,000 pods take one."""
_EMPTY_PAGES: Final = 100
"""Parts without objects after which a list has no end."""
_SHORT_PAGES: Final = 1000
"""Parts with fewer objects than asked for, likewise; servers fill nearly all."""

_encode: Final = msgspec.json.Encoder().encode


class Page(msgspec.Struct):
    """One part of a list."""

    metadata: dict[str, Any] = {}
    items: list[dict[str, Any]] | None = None


_decode_object: Final = msgspec.json.Decoder(dict[str, Any]).decode
_decode_page: Final = msgspec.json.Decoder(Page).decode


class KubeClient(RetryingSender):
    """One API server; ``fence`` is checked immediately before each write is sent.

    Leases are neither fenced, nor limited, nor repeated: they decide who leads, in
    time.  ``known`` returns an object if it is known without a request, so that binds, evictions
    and events are about the very pod that was seen and not a later one of the same name.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        qps: float = 50.0,
        burst: int = 100,
        timeout_s: float = 30.0,
        attempts: int = ATTEMPTS,
        fence: Callable[[], bool] = lambda: True,
        known: Callable[[str, str, str], Manifest | None] = lambda *_: None,
        timing: Timing | None = None,
    ) -> None:
        timing = timing or Timing()
        bucket = TokenBucket(qps, burst, timing)
        super().__init__(
            connection,
            bucket=bucket,
            timeout_s=timeout_s,
            attempts=attempts,
            fence=fence,
            timing=timing,
        )
        self._known = known
        self._events = EventCorrelator(self.timing.wall)
        self._versions: dict[str, str] = {}
        """Versions of kinds that the server does not have in the first of theirs."""

    def path_of(self, kind: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of an object, or of all of a kind, in the version that is in use."""
        return path_of(kind, namespace, name, subresource, self._versions.get(kind, ""))

    def use_next_version(self, kind: str) -> bool:
        """Ask for a kind in its next version; False after the last, then in the first again."""
        known = kind_named(kind)
        versions = (known.version, *known.other_versions)
        place = versions.index(self._versions.get(kind, known.version)) + 1
        self._versions[kind] = versions[place % len(versions)]
        return place < len(versions)

    async def get(self, kind: str, namespace: str, name: str) -> Manifest:
        """Return one object."""
        key = (kind, namespace, name)
        found = await self._object(ApiRequest("GET", key, self.path_of(*key)))
        _check_name(found, key)
        return found

    async def read(
        self, kind: str, namespace: str, name: str, *, timeout_s: float = 2.0
    ) -> Manifest:
        """Return one object by a single attempt of limited time, for callers that cannot wait."""
        key = (kind, namespace, name)
        return _object(
            await self.send_once(ApiRequest("GET", key, self.path_of(*key)), timeout_s), key
        )

    async def read_path(self, target: str, *, timeout_s: float, cap: int) -> Manifest:
        """Return the answer of a path outside the kinds; one attempt of limited time and size."""
        key = ("", "", target.partition("?")[0])
        request = ApiRequest("GET", key, target, cap=cap)
        return _object(await self.send_once(request, timeout_s), key)

    async def read_text(self, target: str, *, timeout_s: float, cap: int) -> str:
        """Return the answer of a path that serves text, such as a pod's behind a proxy."""
        request = ApiRequest("GET", ("", "", target.partition("?")[0]), target, cap=cap)
        return (await self.send_once(request, timeout_s)).decode("utf-8", "replace")

    async def list(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> tuple[list[Manifest], str]:
        """Return all objects of a kind and the resourceVersion from which to watch."""
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
        """Return a list part by part; None if it starts over and earlier parts are void."""
        known, version = kind_named(kind), self._versions.get(kind)
        api_version = f"{known.group}/{version}" if version else known.api_version
        query = {"limit": str(_PAGE)}
        if labels:
            query["labelSelector"] = selector_of(labels)
        path = self.path_of(kind, namespace)
        guard = _EndlessList((kind, namespace, ""), asyncio.get_running_loop().time() + _LIST_S)
        while True:
            target = f"{path}?{urlencode(query)}" if query else path
            try:
                page = await self._page(ApiRequest("GET", (kind, namespace, ""), target))
            except GoneError:
                if "continue" not in query:
                    raise
                del query["continue"], query["limit"]  # too slow for pages: all at once
                yield None
                continue
            for item in page.items or ():
                _check_name(item, (kind, namespace, ""))
                item["apiVersion"], item["kind"] = api_version, known.kind
            yield page
            token = page.metadata.get("continue")
            if not token:
                return
            guard.check(page, str(token), asyncio.get_running_loop().time())
            query["continue"] = str(token)

    async def create(self, manifest: Manifest) -> Manifest:
        """Add an object; return it as stored."""
        return await self._object(_creation(manifest))

    async def try_create(self, manifest: Manifest) -> Manifest:
        """Have an object admitted as if it were added, without adding it."""
        request = _creation(manifest)
        return await self._object(
            msgspec.structs.replace(request, target=f"{request.target}?dryRun=All")
        )

    async def update(self, manifest: Manifest) -> Manifest:
        """Replace an object."""
        key = identity_of(manifest)
        return await self._object(ApiRequest("PUT", key, self.path_of(*key), _encode(manifest)))

    async def update_status(self, manifest: Manifest) -> Manifest:
        """Replace the status of an object."""
        key = identity_of(manifest)
        return await self._object(
            ApiRequest("PUT", key, self.path_of(*key, "status"), _encode(manifest))
        )

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
        target = self.path_of(kind, namespace, name, subresource)
        if patch_type == "apply":
            target += "?fieldManager=pumice&force=true"
        request = ApiRequest(
            "PATCH",
            (kind, namespace, name),
            target,
            _encode(patch),
            PATCH_TYPES[patch_type],
            repeatable=patch_type != "json",
        )
        return await self._object(request)

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
        """Delete an object."""
        body = _encode(delete_options(grace_s, propagation, uid))
        key = (kind, namespace, name)
        await self.send(ApiRequest("DELETE", key, self.path_of(*key), body))

    async def bind(
        self, namespace: str, pod: str, node: str, annotations: Mapping[str, str], *, uid: str = ""
    ) -> None:
        """Bind a pod to a node; one that already has this node counts as done."""
        uid = uid or self._uid(("Pod", namespace, pod))
        key = ("Pod", namespace, pod)
        body = _encode(binding(namespace, pod, node, annotations, uid))
        request = ApiRequest("POST", key, self.path_of(*key, "binding"), body, repeatable=False)
        backoff, doubt = None, False
        while True:
            try:
                await self.send(request)
            except NotFoundError:
                raise
            except ClusterError as error:
                lost = isinstance(error, UnavailableError) and error.sent
                doubt = doubt or lost
                known = in_doubt(error) if doubt else error
                if not lost and not isinstance(error, ConflictError):
                    raise known from None
                if await self._is_bound(request.key, uid, node, known):
                    return
                backoff = backoff or self.backoff()
                if not lost or backoff.failures >= self.attempts - 1:
                    raise known from None
                await backoff.wait()
            else:
                return

    async def evict(self, namespace: str, pod: str, reason: str, *, uid: str = "") -> None:
        """Write in conditions why a pod is ended, then delete it with its own grace."""
        moment = rfc3339(self.timing.wall())
        said = {"message": reason, "lastTransitionTime": moment}
        conditions = [
            {"type": "Ready", "status": "False", "reason": "Evict", **said},
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "PreemptionByScheduler",
                **said,
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
        key = event_key(about, event_type, reason, message, source)
        step = self._events.repeat(key)
        if isinstance(step, CountUpdate):
            try:
                await self.patch("Event", step.namespace, step.name, step.patch)
            except NotFoundError:  # servers keep events for an hour
                self._events.forget(key)
                step = False
        if not step:
            await self._create_event(about, key)

    async def _create_event(self, about: Manifest, key: EventKey) -> None:
        event = self._events.new(about, key)
        if event is None:
            return
        try:
            await self.send(_creation(event))  # nobody reads what is stored
        except ClusterError:
            self._events.forget(key)
            raise

    def _uid(self, key: ObjectKey) -> str:
        known = self._known(*key)
        return "" if known is None else str(known["metadata"].get("uid") or "")

    def _completed(self, about: Manifest) -> Manifest:
        """Complete a reference to an object with what is known about it."""
        metadata = about["metadata"]
        known = None if metadata.get("uid") else self._known(*identity_of(about))
        if known is None:
            return about
        fields = ("uid", "resourceVersion")
        more = {key: known["metadata"][key] for key in fields if key in known["metadata"]}
        return {**about, "metadata": {**metadata, **more}}

    async def _is_bound(self, key: ObjectKey, uid: str, node: str, error: ClusterError) -> bool:
        """Resolve a doubt about a bind by reading the pod; ``error`` is raised if that fails.

        Raises:
            NotFoundError: the pod is gone.
            ConflictError: it is on another node, or another pod.
        """
        try:
            pod = await self.get(*key)
        except NotFoundError:
            raise
        except ClusterError:
            raise error from None
        found = (pod.get("spec") or {}).get("nodeName") or ""
        same = not uid or pod["metadata"].get("uid") == uid
        if found == node and same:
            return True
        if isinstance(error, ConflictError):
            raise error
        if found or not same:
            problem = f"already on node {found}" if same else "another pod of the same name"
            raise ConflictError(*key, problem=problem) from error
        return False

    async def _object(self, request: ApiRequest) -> Manifest:
        return _object(await self.send(request), request.key)

    async def _page(self, request: ApiRequest) -> Page:
        content = await self.send(request)
        try:
            return _decode_page(content)
        except msgspec.MsgspecError as error:
            raise UnavailableError(*request.key, problem=f"no list came back: {error}") from error


class _EndlessList:
    """Notices a list that never ends: a server must not hold a command or a scheduler for ever."""

    def __init__(self, key: ObjectKey, until: float) -> None:
        self._key = key
        self._until = until
        self._tokens: set[str] = set()
        self._empty = self._short = 0

    def check(self, page: Page, token: str, now: float) -> None:
        """Look at a part that announces another.

        Raises:
            UnavailableError: there is no end to be expected.
        """
        problem = ""
        self._empty += not page.items
        self._short += len(page.items or ()) < _PAGE
        if token in self._tokens:
            problem = "the server repeats a continue token"
        elif self._empty > _EMPTY_PAGES:
            problem = f"the server sent {self._empty} parts without objects"
        elif self._short > _SHORT_PAGES:
            problem = f"the server sent {self._short} parts that were not full"
        elif now > self._until:
            problem = f"it was not complete after {_LIST_S:g} s"
        self._tokens.add(token)
        if problem:
            raise UnavailableError(*self._key, problem=f"the list has no end: {problem}")


def _creation(manifest: Manifest) -> ApiRequest:
    key = identity_of(manifest)
    target = path_of(key[0], key[1])
    return ApiRequest("POST", key, target, _encode(manifest), repeatable=False)


def _object(content: bytes, key: ObjectKey) -> Manifest:
    try:
        return _decode_object(content)
    except msgspec.MsgspecError as error:
        raise UnavailableError(*key, problem=f"no object came back: {error}") from error


def _check_name(item: Manifest, key: ObjectKey) -> None:
    metadata = item.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise UnavailableError(*key, problem="an object without metadata.name came back")
