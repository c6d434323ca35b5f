"""An API server that never comes to an end: a command does."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.cluster.kube import client

NUMBERS = count()


class Endless(BaseHTTPRequestHandler):
    """Lists that announce more for ever; the path of the address says how."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        how = self.path.split("/")[1]
        if how == "drips":
            self._drip()
            return
        token = "same" if how == "repeats" else str(next(NUMBERS))
        name = {"metadata": {"name": f"a{token}", "namespace": "default"}}
        items: Any = {"grows": [name] * 500, "short": [name]}.get(how, [])
        if how == "odd":
            items, token = [{"metadata": {}}], ""
        body = json.dumps({"metadata": {"continue": token}, "items": items}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        try:
            while True:
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(0.1)
        except OSError:
            return

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), Endless)
    made.daemon_threads = True
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("repeats", "the list has no end: the server repeats a continue token"),
        ("empty", "the list has no end: the server sent 101 parts without objects"),
        ("short", "the list has no end: the server sent 1001 parts that were not full"),
        ("grows", "the list has no end: it was not complete after 2 s"),
        ("odd", "an object without metadata.name came back"),
    ],
)
@pytest.mark.parametrize("words", [("job", "list"), ("vcctl", "queue", "list"), ("explain",)])
def test_a_list_without_end_is_an_error(
    monkeypatch: pytest.MonkeyPatch, server: str, how: str, said: str, words: tuple[str, ...]
) -> None:
    if how == "grows":
        monkeypatch.setattr(client, "_LIST_S", 2.0)
    began = time.monotonic()
    result = CliRunner().invoke(main, [*words, "--master", f"{server}/{how}"])
    assert result.exit_code in (1, 255)
    assert said in result.output
    assert time.monotonic() - began < 60


def test_a_server_that_drips_ends_a_command_at_the_first_kind(
    monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    plain = client.KubeClient.__init__

    def hasty(self: Any, *args: Any, **kwargs: Any) -> None:
        plain(self, *args, **{**kwargs, "timeout_s": 1.0})

    monkeypatch.setattr(client.KubeClient, "__init__", hasty)
    began = time.monotonic()
    result = CliRunner().invoke(main, ["explain", "--master", f"{server}/drips"])
    assert result.exit_code == 1
    assert "no answer in time" in result.output
    assert time.monotonic() - began < 15
