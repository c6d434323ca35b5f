"""The blocking HTTP client: requests with a deadline to one service.

Used by sources of node usage and by extenders.  Answers are not trusted: a length that does
not hold, garbage, a flood or silence all end in an HttpError, never in a hang.
"""

import json
import ssl
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pumice.cluster.http.client import HttpClient, Request
from pumice.cluster.http.loop_thread import LoopThread
from pumice.errors import ClusterError, HttpError

MAX_ANSWER: Final = 10 << 20
"""Maximum bytes of an answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a service; ``url`` is the address of the request, without its query."""

    url: str
    status: int
    content: bytes

    def json_object(self) -> dict[str, Any]:
        """Read the content as one JSON object.

        Raises:
            HttpError: it is something else.
        """
        try:
            found = json.loads(self.content)
        except (ValueError, RecursionError) as error:
            raise HttpError(self.url, "answered with something that is not JSON") from error
        if not isinstance(found, dict):
            raise HttpError(self.url, f"expected a JSON object, got {type(found).__name__}")
        return found


class BlockingClient:
    """One service; keeps its connection between calls, on an event loop of its own."""

    def __init__(self, url: str, *, tls: ssl.SSLContext | None = None) -> None:
        self._client = HttpClient(url, tls=tls)
        self._thread = LoopThread("http-client")
        weakref.finalize(self, _shut, self._client, self._thread)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        deadline: float,
        cap: int = MAX_ANSWER,
    ) -> Answer:
        """Call once and return the whole answer, whatever its status.

        ``deadline`` is a time of ``time.monotonic``.  A call on a kept connection that
        the service has closed is sent again.

        Raises:
            HttpError: no answer in time, one beyond the cap, or none that is HTTP.
        """
        if self._thread.loop is None:
            self._thread.start()
        request = Request(method, path, headers or {}, body, repeatable=True)
        url = f"{self._client.url}{path}".partition("?")[0]  # a query may be long
        timeout_s = deadline - time.monotonic()
        try:
            reply = self._thread.run(self._client.send(request, timeout_s=timeout_s, cap=cap))
        except ClusterError as error:
            raise HttpError(url, error.problem) from error
        return Answer(url, reply.status, reply.content)

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        _shut(self._client, self._thread)


def _shut(client: HttpClient, thread: LoopThread) -> None:
    if thread.loop is not None:
        thread.loop.call_soon_threadsafe(client.close)
        thread.stop()
