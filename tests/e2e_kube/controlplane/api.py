"""Quick looks at the API server, as the administrator: where starting kubectl takes too long."""

import http.client
import json
import ssl
import time
from typing import Any

from tests.e2e_kube.controlplane.certificates import Pair

Manifest = dict[str, Any]


class Api:
    """One connection that is kept open; one thread at a time."""

    def __init__(self, port: int, authority: Pair, client: Pair) -> None:
        self._port = port
        self._tls = ssl.create_default_context(cafile=authority.certificate)
        self._tls.load_cert_chain(client.certificate, client.key)
        self._connection = self._connect()

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("127.0.0.1", self._port, timeout=30, context=self._tls)

    def request(self, method: str, path: str) -> tuple[int, str]:
        """Ask; once more on a new connection when the server has closed the old one."""
        try:
            return self._ask(method, path)
        except (OSError, http.client.HTTPException):
            self.close()
            return self._ask(method, path)

    def _ask(self, method: str, path: str) -> tuple[int, str]:
        self._connection.request(method, path)
        answer = self._connection.getresponse()
        return answer.status, answer.read().decode()

    def get(self, path: str) -> Manifest:
        """Return an object or a list of them."""
        status, text = self.request("GET", path)
        deadline = time.monotonic() + 20
        while status == 429 and time.monotonic() < deadline:  # a new kind is still being set up
            time.sleep(0.1)
            status, text = self.request("GET", path)
        assert status == 200, f"GET {path} answered {status}: {text[:500]}"
        return json.loads(text)

    def items(self, path: str) -> list[Manifest]:
        """Return the objects of a list."""
        return self.get(path)["items"]

    def delete(self, path: str) -> int:
        """Delete an object, or all of a list; return the status, whatever it is."""
        return self.request("DELETE", path)[0]

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        self._connection.close()
        self._connection = self._connect()
