"""`pumice doctor`: what it prints and its exit code, against servers that are no use."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner, Result

from pumice.cli.main import main
from pumice.diagnosis.doctor import warning


class _Handler(BaseHTTPRequestHandler):
    statuses: ClassVar[dict[str, int]] = {}

    def do_GET(self) -> None:
        status = self.statuses.get(self.path, self.statuses["*"])
        body = json.dumps({"gitVersion": "v1.34.0"} if status == 200 else {"message": "no"})
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    do_POST = do_GET  # noqa: N815  (the name that the server calls)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def doctor() -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"

        def run(statuses: dict[str, int], master: str = address) -> Result:
            _Handler.statuses = statuses
            return CliRunner().invoke(main, ["doctor", "--master", master], env={"KUBECONFIG": ""})

        yield run
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (401, "refuses the credentials"),
        (404, "no API server answers at"),
        (500, "cannot reach the cluster at"),
    ],
)
def test_a_server_that_is_no_use_is_one_line(doctor: Any, status: int, text: str) -> None:
    result = doctor({"*": status})
    assert result.exit_code == 1
    assert result.stdout == ""
    assert text in result.stderr
    assert result.stderr.count("\n") == 1


def test_no_server_at_all_is_one_line(doctor: Any) -> None:
    result = doctor({}, master="http://127.0.0.1:1")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: cannot reach the cluster at http://127.0.0.1:1: ")
    assert "connection refused" in result.stderr


def test_a_cluster_that_shows_nothing_is_not_well(doctor: Any) -> None:
    result = doctor({"/version": 200, "*": 403})
    assert result.exit_code == 1
    assert "12 unknown\n" in result.stdout
    assert "ok " not in result.stdout


def test_a_step_for_several_findings_is_printed_once(
    doctor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [warning(check, "it ends", "run it again") for check in ("one", "two", "two")]
    monkeypatch.setattr("pumice.diagnosis.doctor.examine_cluster", lambda _: found)
    result = doctor({})
    assert result.exit_code == 0
    assert result.stdout.count("run it again") == 1
    assert "  one, two: run it again\n" in result.stdout


def test_files_are_for_other_commands() -> None:
    ran = CliRunner().invoke(main, ["doctor", "-f", "a.yaml"])
    assert ran.exit_code == 2
    assert "doctor asks a running cluster" in ran.stderr
    assert "'pumice explain -f a.yaml', and check manifests with 'pumice lint a.yaml'" in ran.stderr
