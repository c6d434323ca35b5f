"""Calls to an extender over HTTP, bounded in time and size.

Handed to the extender plugin by the scheduler.  Every failure is an ExtenderError.
"""

import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pumice.api.json_text import encode_parts
from pumice.cluster.http.blocking import MAX_ANSWER, Answer, BlockingClient
from pumice.errors import ExtenderError, HttpError

_HEADERS: Final = {"Content-Type": "application/json"}
_LONGEST_S: Final = 600.0
"""Limit of a call whose configured limit is 0, which is none in Go: a service that never answers
would end all scheduling."""


class HttpExtenderClient:
    """One extender; keeps its connection between calls.  A limit of 0 is ten minutes."""

    def __init__(self, url_prefix: str, timeout_s: float, *, max_answer: int = MAX_ANSWER) -> None:
        self._http = BlockingClient(url_prefix)
        self._timeout_s = timeout_s
        self._max_answer = max_answer

    def post(self, verb: str, payload: Any, *, answer: bool = True) -> Mapping[str, Any]:
        """Send a payload as JSON and read the answer, an empty mapping if none is expected.

        Raises:
            ExtenderError: no answer in time, or an unusable one.
        """
        try:
            return self._post(f"/{verb}", encode_parts(payload), answer=answer)
        except HttpError as error:
            raise ExtenderError(error.url, error.problem) from error

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        self._http.close()

    def _post(self, path: str, body: bytes, *, answer: bool) -> Mapping[str, Any]:
        limit_s = self._timeout_s if self._timeout_s > 0 else _LONGEST_S
        deadline = time.monotonic() + limit_s
        found = self._http.request(
            "POST", path, body, _HEADERS, deadline=deadline, cap=self._max_answer
        )
        if found.status != 200:
            raise HttpError(found.url, f"answered with status {found.status}")
        return _read(found) if answer else {}


def _read(answer: Answer) -> Mapping[str, Any]:
    """Read JSON as strictly as Go does; a null counts as absent."""
    try:
        found = msgspec.json.decode(answer.content)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise HttpError(answer.url, "answered with something that is not JSON") from error
    if not isinstance(found, dict | None):
        raise HttpError(answer.url, f"expected a JSON object, got {type(found).__name__}")
    return found or {}
