"""One request to an API server until there is an answer: rate limit, retries, certainty.

Base of the client.  Sends no write while the fence is closed, and never calls a write failed that
may have been done.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import msgspec

from pumice.api.kinds import LEASE
from pumice.cluster.http.client import HttpClient, Request, Stream
from pumice.cluster.http.connection import Reply
from pumice.cluster.kube.connection import Connection
from pumice.cluster.kube.paths import ObjectKey, refusal
from pumice.cluster.kube.rate_limit import Backoff, ServerTime, Timing, TokenBucket
from pumice.errors import (
    ClusterError,
    FencedError,
    InputError,
    RejectedError,
    ServiceError,
    UnavailableError,
    bounded,
)

BIGGEST: Final = 1 << 30  # bytes of an answer: all pods of a large cluster on one page
_SILENCE_S: Final = 180.0  # of a watch; servers send a bookmark every minute


class Transport:
    """Requests to one API server; to be used on one event loop only."""

    def __init__(self, connection: Connection, timeout_s: float, cap: int = BIGGEST) -> None:
        self._credentials = connection.credentials
        self._rules = connection.rules
        self._http = HttpClient(connection.server, tls=self._rules, tls_name=connection.tls_name)
        self._timeout_s = timeout_s
        self._cap = cap
        self._words = ""
        self._known_headers: dict[str, Mapping[str, str]] = {}
        """Headers with the last credentials, by the type of what is sent."""

    async def send(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        content_type: str = "",
        *,
        cap: int = BIGGEST,
        guard: Callable[[], None] | None = None,
    ) -> Reply:
        """Send a request once and return the answer, whatever its status.

        ``guard`` is called at the very last moment, and may raise to hold the request back.

        Raises:
            UnavailableError: no answer; ``sent`` shows whether the request may have arrived.
            RejectedError: an answer of more than ``cap`` bytes.
        """
        request = Request(method, target, await self._headers(content_type), body)
        cap = min(cap, self._cap)
        try:
            return await self._http.send(request, timeout_s=self._timeout_s, cap=cap, guard=guard)
        except UnavailableError as error:
            raise self._about(error, request) from error.__cause__

    @asynccontextmanager
    async def stream(self, target: str, longest_s: float) -> AsyncIterator[Stream]:
        """Open an answer that arrives in pieces.

        Raises:
            UnavailableError: no answer, or its end was lost while it was read.
        """
        request = Request("GET", target, await self._headers())
        silence_s = min(longest_s, _SILENCE_S)
        try:
            async with self._http.stream(
                request, longest_s=longest_s, silence_s=silence_s
            ) as answer:
                yield answer
        except UnavailableError as error:
            raise self._about(error, request) from error.__cause__

    def refused(self) -> None:
        """Record that the server did not accept our credentials."""
        self._credentials.refused()
        if self._rules is not None:
            self._rules.look_again()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    async def _headers(self, content_type: str = "") -> Mapping[str, str]:
        if self._credentials.fresh():
            return self._headers_with(self._words_now(), content_type)
        return self._headers_with(await asyncio.to_thread(self._words_now), content_type)

    def _words_now(self) -> str:
        try:
            return self._credentials.header()
        except (InputError, ServiceError) as error:
            raise UnavailableError(problem=str(error), sent=False) from error

    def _headers_with(self, words: str, content_type: str) -> Mapping[str, str]:
        """Return the headers of a request; equal ones are the same object."""
        if words != self._words:
            self._words, self._known_headers = words, {}
        found = self._known_headers.get(content_type)
        if found is None:
            given = {"Authorization": words, "Content-Type": content_type}
            found = {name: value for name, value in given.items() if value}
            self._known_headers[content_type] = found
        return found

    def _about(self, error: UnavailableError, request: Request) -> UnavailableError:
        """Name the request in an error, as Go's client does."""
        url = f"{self._http.url}{request.target}".partition("?")[0]
        error.problem = bounded(
            f'{request.method.capitalize()} "{bounded(url, _SHOWN)}": {error.problem}'
        )
        return error


_SHOWN: Final = 500
"""Characters of an address in an error."""
ATTEMPTS: Final = 6
"""Default number of times that a request is sent at most."""

_FIRST_S: Final = 0.1
_LONGEST_S: Final = 10.0
_LONGEST_ASKED_S: Final = 60.0


class ApiRequest(msgspec.Struct, frozen=True):
    """One request; ``repeatable`` if sending it twice does no more than sending it once."""

    method: str
    key: ObjectKey
    target: str
    body: bytes = b""
    content_type: str = "application/json"
    repeatable: bool = True
    cap: int = BIGGEST
    """Maximum bytes of an answer to a read."""

    @property
    def is_write(self) -> bool:
        """Whether it changes something."""
        return self.method != "GET"

    @property
    def is_lease(self) -> bool:
        """Whether it is neither fenced, nor limited, nor repeated."""
        return self.key[0] == LEASE


class RetryingSender:
    """Sends requests to one API server; ``fence`` is checked immediately before each write."""

    def __init__(
        self,
        connection: Connection,
        *,
        bucket: TokenBucket,
        timeout_s: float,
        attempts: int,
        fence: Callable[[], bool],
        timing: Timing,
    ) -> None:
        self.attempts = attempts
        self.fence = fence
        self.timing = timing
        self.server_time = ServerTime(timing)
        self.bucket = bucket
        self.transport = Transport(connection, timeout_s)

    async def close(self) -> None:
        """Close all connections."""
        self.transport.close()

    async def send(self, request: ApiRequest) -> bytes:
        """Send a request until there is an answer, as long as sending it again does no harm.

        Raises:
            UnavailableError: no answer, or a refusal after an attempt that may have been done;
                ``sent`` is False only if no attempt can have been.
            ClusterError: the server's refusal.
        """
        backoff: Backoff | None = None
        doubt = refused = False
        while True:
            wait_s = 0.0
            try:
                reply = await self._send(request)
            except ClusterError as lost:
                error: ClusterError = lost
                again = isinstance(lost, UnavailableError) and (request.repeatable or not lost.sent)
                doubt = doubt or _may_have_arrived(lost)
            else:
                if reply.status < 300:
                    return reply.content
                if reply.status == 401 and not refused:
                    refused = True
                    self.transport.refused()
                    continue
                if reply.status == 404 and doubt and request.method == "DELETE":
                    return b""  # our own doing
                error = refusal(_status(reply.content), request.key, reply.status)
                again, wait_s = _may_repeat(request, reply), reply.retry_after_s
                doubt = doubt or reply.status >= 500
            backoff = backoff or self.backoff()
            if not again or request.is_lease or backoff.failures >= self.attempts - 1:
                raise _final_error(error, request, doubt=doubt)
            await backoff.wait(min(wait_s, _LONGEST_ASKED_S))

    async def send_once(self, request: ApiRequest, timeout_s: float) -> bytes:
        """Send a read once, and wait no longer than the given time, rate limit included.

        Raises:
            UnavailableError: no answer, or none in time.
            ClusterError: the server's refusal.
        """
        try:
            async with asyncio.timeout(timeout_s):
                reply = await self._send(request)
        except TimeoutError:
            problem = f"no answer within {timeout_s:g} s"
            raise UnavailableError(*request.key, problem=problem) from None
        except ClusterError as error:
            raise _with_object(error, request.key) from None
        if reply.status == 401:
            self.transport.refused()
        if reply.status >= 300:
            raise refusal(_status(reply.content), request.key, reply.status)
        return reply.content

    def backoff(self) -> Backoff:
        """Return the pauses between the attempts of one request."""
        return Backoff(_FIRST_S, _LONGEST_S, self.timing)

    async def _send(self, request: ApiRequest) -> Reply:
        """Send a request once, when it is its turn and if the fence is open."""
        if not request.is_write:
            if not request.is_lease:
                await self.bucket.acquire()
            reply = await self.transport.send("GET", request.target, cap=request.cap)
            self.server_time.notice(reply.date)
            return reply

        guard = None if request.is_lease else partial(self._check_fence, request.key)
        if guard is not None:
            guard()  # a held-back write needs no turn; but the fence may close while it waits
            if not self.bucket.use_reserved():
                await self.bucket.acquire()
        return await self.transport.send(
            request.method, request.target, request.body, request.content_type, guard=guard
        )

    def _check_fence(self, key: ObjectKey) -> None:
        if not self.fence():
            raise FencedError(*key)


def in_doubt(error: ClusterError) -> UnavailableError:
    """Return an error for a write of which an attempt may have succeeded."""
    if isinstance(error, UnavailableError):
        error.sent = True
        return error
    problem = f"{error.problem}; an earlier attempt may have succeeded"
    return UnavailableError(error.kind, error.namespace, error.name, problem)


def _may_have_arrived(error: ClusterError) -> bool:
    """Return whether a server may have carried the request out: only a fence excludes it."""
    return error.sent if isinstance(error, UnavailableError) else isinstance(error, RejectedError)


def _may_repeat(request: ApiRequest, reply: Reply) -> bool:
    """Return whether a refusal is worth a retry; with 429 a server has done nothing yet."""
    return reply.status == 429 or (reply.status >= 500 and request.repeatable)


def _final_error(error: ClusterError, request: ApiRequest, *, doubt: bool) -> ClusterError:
    """Return the final error; a refusal does not settle an earlier attempt that was lost.

    What an answer states about the object itself (gone, changed) holds in any case.
    """
    error = _with_object(error, request.key)
    vague = isinstance(error, UnavailableError | FencedError | RejectedError)
    return in_doubt(error) if doubt and vague and request.is_write else error


def _with_object(error: ClusterError, key: ObjectKey) -> ClusterError:
    """Name the object in an error that names none."""
    if not error.kind:
        error.kind, error.namespace, error.name = key
    return error


def _status(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content)
    except msgspec.MsgspecError:
        text = content[:200].decode("utf-8", "replace").strip()
        return {"message": text}
