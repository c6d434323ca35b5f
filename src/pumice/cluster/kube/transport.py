"""HTTP to one API server with an identity: one attempt at a time, bounded answers.

Used by the client and the reflectors.  Repeats nothing; that is decided by those who know what a
request does.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from pumice.cluster.http.client import HttpClient, Request, Stream
from pumice.cluster.http.connection import Reply
from pumice.cluster.kube.connection import Connection
from pumice.errors import InputError, ServiceError, UnavailableError

_BIGGEST: Final = 1 << 30  # bytes of an answer: all pods of a large cluster on one page
_SILENCE_S: Final = 180.0  # of a watch; servers send a bookmark every minute


class Transport:
    """Requests to one API server; to be used on one event loop only."""

    def __init__(self, connection: Connection, timeout_s: float, cap: int = _BIGGEST) -> None:
        self._credentials = connection.credentials
        self._http = HttpClient(connection.server, tls=connection.tls, tls_name=connection.tls_name)
        self._timeout_s = timeout_s
        self._cap = cap

    async def read(self, target: str) -> Reply:
        """Read something once, whatever the status of the answer.

        Raises:
            UnavailableError: no answer; says whether the request may have arrived.
            RejectedError: an answer beyond all bounds.
        """
        request = Request("GET", target, await self._headers())
        return await self._send(request)

    async def write(
        self,
        method: str,
        target: str,
        body: bytes,
        content_type: str,
        guard: Callable[[], None] | None = None,
    ) -> Reply:
        """Write something once, whatever the status of the answer.

        ``guard`` is called at the very last moment, and may raise to hold the write back.

        Raises:
            UnavailableError: no answer; says whether the request may have arrived.
            RejectedError: an answer beyond all bounds.
        """
        headers = {**await self._headers(), "Content-Type": content_type}
        return await self._send(Request(method, target, headers, body), guard)

    @asynccontextmanager
    async def stream(self, target: str, longest_s: float) -> AsyncIterator[Stream]:
        """Open an answer that comes bit by bit.

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
        """Note that the server did not accept who we say we are."""
        self._credentials.refused()

    def close(self) -> None:
        """Give up all connections."""
        self._http.close()

    async def _send(self, request: Request, guard: Callable[[], None] | None = None) -> Reply:
        try:
            return await self._http.send(
                request, timeout_s=self._timeout_s, cap=self._cap, guard=guard
            )
        except UnavailableError as error:
            raise self._about(error, request) from error.__cause__

    async def _headers(self) -> dict[str, str]:
        credentials = self._credentials
        try:
            if credentials.fresh():
                words = credentials.header()
            else:
                words = await asyncio.to_thread(credentials.header)
        except (InputError, ServiceError) as error:
            raise UnavailableError(problem=str(error), sent=False) from error
        return {"Authorization": words} if words else {}

    def _about(self, error: UnavailableError, request: Request) -> UnavailableError:
        """Name the request in an error, as Go's client does."""
        url = f"{self._http.url}{request.target}".partition("?")[0]
        error.problem = f'{request.method.capitalize()} "{url}": {error.problem}'
        return error
