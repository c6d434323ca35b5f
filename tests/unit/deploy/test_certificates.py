"""The certificate of the webhooks: made once, trusted by name, renewed before it ends."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from deploy import certificates

HOST = "hooks.system.svc"
ARGS = ["--namespace=system", "--service=hooks", "--secret=cert"]
SECRETS = "/api/v1/namespaces/system/secrets"
HOOKS = "/apis/admissionregistration.k8s.io/v1"
MUTATING = f"{HOOKS}/mutatingwebhookconfigurations/one"


class Api(ThreadingHTTPServer):
    """Objects by path; writes are noted."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects: dict[Any, Any] = {}
        self.writes: list[Any] = []
        self.denied: set[Any] = set()


class Handler(BaseHTTPRequestHandler):
    def answer(self, code: Any, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle_any(self) -> Any:
        length = int(self.headers.get("Content-Length") or 0)
        content: Any = json.loads(self.rfile.read(length)) if length else None
        api = self.server
        assert isinstance(api, Api)
        assert self.headers["Authorization"] == "Bearer secret-token"
        if self.command in api.denied:
            return self.answer(403, {"message": "no"})
        if self.command == "GET":
            found = api.objects.get(self.path)
            return self.answer(200, found) if found else self.answer(404, {"message": "none"})
        api.writes.append((self.command, self.path))
        if self.command == "POST":
            api.objects[f"{self.path}/{content['metadata']['name']}"] = content
        elif self.command == "PUT":
            api.objects[self.path] = content
        else:
            for step in content:
                at = int(step["path"].split("/")[2])
                webhook = api.objects[self.path]["webhooks"][at]
                webhook["clientConfig"]["caBundle"] = step["value"]
        return self.answer(200, {})

    do_GET = do_POST = do_PUT = do_PATCH = handle_any  # noqa: N815

    def log_message(self, *arguments: Any) -> None:
        """Log nothing."""


@pytest.fixture
def api() -> Iterator[Any]:
    with Api() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def run(api: Any, tmp_path: Path) -> Any:
    (tmp_path / "token").write_text("secret-token\n")

    def run(*more: Any) -> None:
        server = certificates.Server(f"http://127.0.0.1:{api.server_port}", tmp_path)
        certificates.main([*ARGS, *more], server)

    return run


@pytest.fixture(scope="module")
def made() -> Any:
    return certificates.make(certificates.hosts("hooks", "system"), 3650)


def stored(files: Any) -> Any:
    return {name: base64.b64encode(content).decode() for name, content in files.items()}


def test_a_new_certificate_is_good_for_its_service_only(made: Any) -> None:
    assert certificates.good(made, HOST)
    assert not certificates.good(made, "hooks.other.svc")


def test_a_client_that_trusts_the_authority_trusts_the_server(made: Any, tmp_path: Path) -> None:
    for name, content in made.items():
        (tmp_path / name).write_bytes(content)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    client = ssl.create_default_context(cadata=made["ca.crt"].decode())
    sides = [ssl.MemoryBIO() for _ in range(2)]
    here = client.wrap_bio(sides[0], sides[1], server_hostname=HOST)
    there = server.wrap_bio(sides[1], sides[0], server_side=True)
    done = set()
    for _ in range(5):
        for end in (here, there):
            try:
                end.do_handshake()
                done.add(end)
            except ssl.SSLWantReadError:
                continue
    assert done == {here, there}


@pytest.mark.parametrize("lacking", certificates.FILES)
def test_a_certificate_that_is_not_whole_is_not_good(made: Any, lacking: Any) -> None:
    assert not certificates.good({**made, lacking: b""}, HOST)


def test_a_key_of_another_certificate_is_not_good(made: Any) -> None:
    other = certificates.make(certificates.hosts("hooks", "system"), 3650)
    assert not certificates.good({**made, "tls.key": other["tls.key"]}, HOST)


def test_a_certificate_of_another_authority_is_not_good(made: Any) -> None:
    other = certificates.make(certificates.hosts("hooks", "system"), 3650)
    assert not certificates.good({**made, "ca.crt": other["ca.crt"]}, HOST)


def test_a_certificate_for_every_service_of_the_namespace_is_good() -> None:
    assert certificates.good(certificates.make(["*.system.svc"], 3650), HOST)


def test_a_certificate_that_ends_within_a_month_is_not_good() -> None:
    assert not certificates.good(certificates.make([HOST], 20), HOST)


def test_the_secret_is_made_and_the_webhooks_trust_it(api: Any, run: Any) -> None:
    api.objects[MUTATING] = {"webhooks": [{"clientConfig": {}}, {"clientConfig": {}}]}
    run("--mutating=one")
    data = api.objects[f"{SECRETS}/cert"]["data"]
    assert sorted(data) == ["ca.crt", "tls.crt", "tls.key"]
    bundles = {one["clientConfig"]["caBundle"] for one in api.objects[MUTATING]["webhooks"]}
    assert bundles == {data["ca.crt"]}


def test_running_it_again_changes_nothing(api: Any, run: Any) -> None:
    api.objects[MUTATING] = {"webhooks": [{"clientConfig": {}}]}
    run("--mutating=one")
    before = [*api.writes]
    run("--mutating=one")
    assert api.writes == before


def test_a_bad_certificate_is_replaced_and_other_keys_of_the_secret_kept(
    api: Any, run: Any
) -> None:
    head = {"kind": "Secret", "metadata": {"name": "cert"}}
    api.objects[f"{SECRETS}/cert"] = {**head, "data": {"tls.crt": "AAAA", "more": "eA=="}}
    run()
    data = api.objects[f"{SECRETS}/cert"]["data"]
    assert data["more"] == "eA=="
    assert certificates.good({k: base64.b64decode(v) for k, v in data.items()}, HOST)
    assert api.writes == [("PUT", f"{SECRETS}/cert")]


def test_a_good_certificate_of_others_is_kept(api: Any, run: Any, made: Any) -> None:
    api.objects[f"{SECRETS}/cert"] = {"data": stored(made)}
    run()
    assert api.writes == []


def test_a_configuration_that_is_not_there_is_passed_over(
    api: Any, run: Any, made: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    api.objects[f"{SECRETS}/cert"] = {"data": stored(made)}
    run("--validating=none")
    assert "there is no validatingwebhookconfigurations/none" in capsys.readouterr().out


def test_a_refusal_ends_it_with_what_the_server_said(api: Any, run: Any) -> None:
    api.denied.add("POST")
    with pytest.raises(SystemExit, match="the API server said 403"):
        run()
