"""A service that is asked for JSON, with a bearer token if it wants one; used by the sources."""

import re
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from pumice.cluster.http.blocking import MAX_ANSWER, Answer, BlockingClient
from pumice.errors import HttpError

TIMEOUT: Final = 30.0
"""Seconds for all calls of one reading together."""

TOKEN: Final = re.compile(r"[!-~]{1,16384}")
"""What can stand in a header."""

_TOKEN_BYTES: Final = 1 << 15
_SHOWN: Final = 200


class Endpoint:
    """Where and how to ask.  A token file is read anew for each call: tokens are replaced."""

    def __init__(
        self,
        address: str,
        *,
        token: str = "",
        token_file: str | Path | None = None,
        tls: ssl.SSLContext | None = None,
        timeout_s: float = TIMEOUT,
        max_answer: int = MAX_ANSWER,
    ) -> None:
        self.address = address
        self._http = BlockingClient(address, tls=tls)
        self._token = token
        self._token_file = token_file
        self._timeout_s = timeout_s
        self._max_answer = max_answer

    def deadline(self) -> float:
        """Give the moment by which a reading that begins now must be done."""
        return time.monotonic() + self._timeout_s

    def get(
        self, path: str, query: Mapping[str, str] | None = None, *, deadline: float
    ) -> dict[str, Any]:
        """Ask for one JSON object.

        Raises:
            HttpError: there is no usable token, no answer in time, or not one that can be used.
        """
        headers = self._authorization()
        target = f"{path}?{urlencode(query)}" if query else path
        answer = self._http.request(
            "GET", target, headers=headers, deadline=deadline, cap=self._max_answer
        )
        if answer.status != 200:
            raise HttpError(answer.url, f"answered with status {answer.status}{_reason(answer)}")
        return answer.json_object()

    def close(self) -> None:
        """Give the connection up; the next call opens a new one."""
        self._http.close()

    def _authorization(self) -> dict[str, str]:
        if self._token_file is not None:
            token, where = (
                self._read_token(Path(self._token_file)),
                f"token file {self._token_file}",
            )
        else:
            token, where = self._token, "token"
            if not token:
                return {}
        if not TOKEN.fullmatch(token):  # it is never shown
            raise HttpError(self.address, f"{where}: wanted one token, in ASCII")
        return {"Authorization": f"Bearer {token}"}

    def _read_token(self, file: Path) -> str:
        try:
            with file.open("rb") as stream:
                return stream.read(_TOKEN_BYTES).decode("ascii", "replace").strip()
        except OSError as error:
            raise HttpError(self.address, f"token file {file}: {error.strerror}") from error


def _reason(answer: Answer) -> str:
    """Give what a service says about its refusal: Prometheus in one key, Kubernetes in another."""
    try:
        said = answer.json_object()
    except HttpError:
        return ""
    for key in ("error", "message"):
        if isinstance(said.get(key), str):
            return f", {said[key]!r:.{_SHOWN}}"
    return ""
