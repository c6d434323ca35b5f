"""A JSON service, with a token or a user if it needs one; used by the sources."""

import json
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlencode

from pumice.api.shown_text import without_secrets
from pumice.api.text_files import read_secret
from pumice.api.usage_conf import UsageConf, is_token
from pumice.cluster.http.blocking import MAX_ANSWER, Answer, BlockingClient
from pumice.errors import HttpError

_SHOWN: Final = 200


class JsonService(Protocol):
    """A service that answers with JSON objects."""

    @property
    def address(self) -> str:
        """Its address, for messages."""

    def deadline(self) -> float:
        """Return the moment by which a reading that begins now must be done."""

    def get(
        self, path: str, query: Mapping[str, str] | None = None, *, deadline: float
    ) -> dict[str, Any]:
        """Ask for one JSON object.

        Raises:
            HttpError: no answer in time, or an unusable one.
        """


ServiceWithin = Callable[[float], JsonService]
"""Makes a service whose readings take at most the given seconds."""


class Endpoint:
    """Address and credentials.  A token file is read for each call: tokens are replaced."""

    def __init__(
        self,
        address: str,
        *,
        token: str = "",
        token_file: str | Path | None = None,
        basic: str = "",
        tls: ssl.SSLContext | None = None,
        timeout_s: float = UsageConf().timeout_s,
        max_answer: int = MAX_ANSWER,
    ) -> None:
        self.address = without_secrets(address)
        self._http = BlockingClient(address, tls=tls)
        self._token = token
        self._token_file = token_file
        self._basic = basic
        self._timeout_s = timeout_s
        self._max_answer = max_answer

    def deadline(self) -> float:
        """Return the moment by which a reading that begins now must be done."""
        return time.monotonic() + self._timeout_s

    def get(
        self, path: str, query: Mapping[str, str] | None = None, *, deadline: float
    ) -> dict[str, Any]:
        """Ask for one JSON object.

        Raises:
            HttpError: there is no usable token, no answer in time, or an unusable one.
        """
        return self._ask("GET", f"{path}?{urlencode(query)}" if query else path, None, deadline)

    def post(self, path: str, question: Mapping[str, Any], *, deadline: float) -> dict[str, Any]:
        """Ask for one JSON object by another; sending it twice has no further effect.

        Raises:
            HttpError: there is no usable token, no answer in time, or an unusable one.
        """
        return self._ask("POST", path, json.dumps(question).encode(), deadline)

    def _ask(self, method: str, target: str, body: bytes | None, deadline: float) -> dict[str, Any]:
        headers = self._authorization()
        if body is not None:
            headers["Content-Type"] = "application/json"
        answer = self._http.request(
            method, target, body, headers, deadline=deadline, cap=self._max_answer
        )
        if answer.status != 200:
            problem = f"answered with status {answer.status}{_reason(answer)}"
            raise HttpError(answer.url, problem, answer.status)
        return answer.json_object()

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        self._http.close()

    def _authorization(self) -> dict[str, str]:
        if self._basic:
            return {"Authorization": f"Basic {self._basic}"}
        if self._token_file is not None:
            token, where = (
                self._read_token(Path(self._token_file)),
                f"token file {self._token_file}",
            )
        else:
            token, where = self._token, "token"
            if not token:
                return {}
        if not is_token(token):  # it is never shown
            raise HttpError(self.address, f"{where}: expected one token, in ASCII")
        return {"Authorization": f"Bearer {token}"}

    def _read_token(self, file: Path) -> str:
        try:
            return read_secret(file).decode("ascii", "replace").strip()
        except OSError as error:
            raise HttpError(self.address, f"token file {file}: {error.strerror}") from error


def _reason(answer: Answer) -> str:
    """Return a service's own explanation of a refusal; each has its own key for that."""
    try:
        body = answer.json_object()
    except HttpError:
        return ""
    error = body.get("error")
    elastic = error.get("reason") if isinstance(error, dict) else None
    for text in (error, elastic, body.get("message")):
        if isinstance(text, str):
            return f", {text!r:.{_SHOWN}}"
    return ""
