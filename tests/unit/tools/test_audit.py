"""The audit of locked versions: finds known vulnerabilities, and continues without a network."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tools import audit
from tools.release import ROOT, pins


@contextmanager
def database(known: dict[str, str]) -> Iterator[str]:
    """Serve answers that know of one vulnerability for each name."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            names = [query["package"]["name"] for query in asked["queries"]]
            results = [{"vulns": [{"id": known[name]}]} if name in known else {} for name in names]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"results": results}).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_locks_are_read_whole() -> None:
    found = {
        name: (version, sums) for name, version, sums in pins(ROOT / "requirements/runtime.txt")
    }
    assert {"aiohttp", "click", "numpy", "pyyaml", "rich"} <= set(found)
    assert all(version[0].isdigit() and sums for version, sums in found.values())


def test_a_known_vulnerability_fails_with_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    with database({"aiohttp": "GHSA-1"}) as url:
        assert audit.main([], url) == 1
    assert "GHSA-1" in capsys.readouterr().out


def test_what_is_accepted_with_a_reason_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "ACCEPTED", {"GHSA-1": "not reached"})
    with database({"aiohttp": "GHSA-1"}) as url:
        assert audit.main([], url) == 0


def test_without_a_network_the_check_goes_on_and_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert audit.main([], "http://127.0.0.1:9") == 0
    assert "were not audited" in capsys.readouterr().out
    assert audit.main(["--strict"], "http://127.0.0.1:9") == 1
