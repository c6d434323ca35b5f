"""The audit of locked versions: finds known vulnerabilities, and continues without a network."""

import json
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tools import audit
from tools.packages import ROOT
from tools.release import pins


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
    said = capsys.readouterr().out
    assert said.startswith("not checked: ")
    assert "were not audited" in said
    assert audit.main(["--strict"], "http://127.0.0.1:9") == 1


def copy(file: Path, modified: str, *entries: Mapping[str, object]) -> list[str]:
    with zipfile.ZipFile(file, "w") as archive:
        for number, entry in enumerate(entries):
            archive.writestr(f"{number}.json", json.dumps({"modified": modified, **entry}))
    return ["--database", str(file)]


def test_a_copy_of_the_database_answers_without_a_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, version, _ = next(iter(pins(ROOT / "requirements/runtime.txt")))
    affected = {"package": {"name": name.upper()}, "versions": [version]}
    known = {"id": "GHSA-2", "affected": [affected]}
    other = {"id": "GHSA-3", "affected": [{**affected, "versions": ["0.0.0"]}]}
    gone = {**known, "id": "GHSA-4", "withdrawn": "2026-01-01T00:00:00Z"}
    today = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    assert audit.main(copy(tmp_path / "a.zip", today, known, other, gone), "unused") == 1
    said = capsys.readouterr().out
    assert "GHSA-2" in said
    assert "GHSA-3" not in said
    assert "GHSA-4" not in said
    fresh = copy(tmp_path / "b.zip", today, other)
    assert (audit.main(fresh), audit.main([*fresh, "--strict"])) == (0, 0)
    old = copy(tmp_path / "c.zip", "2020-01-01T00:00:00Z", other)
    assert (audit.main(old), audit.main([*old, "--strict"])) == (0, 1)
    assert "as of 2020-01-01" in capsys.readouterr().out


def test_a_copy_that_cannot_be_read_is_no_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.zip").write_text("nothing")
    assert audit.main(["--database", str(tmp_path / "a.zip")]) == 0
    assert capsys.readouterr().out.startswith("not checked: ")
    assert audit.main(["--database", str(tmp_path / "b.zip"), "--strict"]) == 1
