"""Certificates that change on disk, or run out, are replaced without a restart; on real servers."""

import shutil
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from pumice.clock import wall_time
from pumice.cluster.kube.client import KubeClient
from pumice.cluster.kube.connection import load_connection
from pumice.cluster.kube.credentials import ExecCredentials, ExecPlugin
from pumice.errors import ServiceError, UnavailableError
from tests.e2e_kube.controlplane.certificates import Authority, Pair
from tests.present import present
from tests.unit.cluster.kube.fakes import FakeTime

TestServer.__test__ = False
V1 = "client.authentication.k8s.io/v1"


@pytest.fixture(autouse=True)
def _look_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pumice.cluster.http.tls._LOOK_S", 0.0)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "pki")


class WhoAsks:
    """An API server that requires a certificate and answers with its subject."""

    def __init__(self) -> None:
        self.connections: set[Any] = set()
        self.url = ""
        self.refuses: set[str] = set()

    async def answer(self, request: Any) -> Any:
        transport = request.transport
        self.connections.add(transport.get_extra_info("peername"))
        subject = transport.get_extra_info("peercert")["subject"]
        name = dict(pair for part in subject for pair in part)["commonName"]
        if name in self.refuses:
            return web.json_response({"kind": "Status", "code": 401}, status=401)
        return web.json_response({"metadata": {"name": name}})


@asynccontextmanager
async def serving(pair: Pair, clients: Path) -> AsyncIterator[WhoAsks]:
    who = WhoAsks()
    app = web.Application()
    app.router.add_get("/{tail:.*}", who.answer)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate, pair.key)
    tls.load_verify_locations(clients)
    tls.verify_mode = ssl.CERT_REQUIRED
    server = TestServer(app, scheme="https")
    await server.start_server(ssl=tls)
    who.url = str(server.make_url("")).rstrip("/")
    try:
        yield who
    finally:
        await server.close()


def kubeconfig(folder: Path, url: str, user: dict[str, Any]) -> str:
    """Write a kubeconfig that names its files relative to itself."""
    content = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": url, "certificate-authority": "ca.crt"}}],
        "users": [{"name": "u", "user": user}],
    }
    file = folder / "config"
    file.write_text(yaml.safe_dump(content))
    return str(file)


FILES = {"client-certificate": "me.crt", "client-key": "me.key"}


def place(folder: Path, pair: Pair) -> None:
    """Replace the certificate and its key in one step each, as tools that rotate them do."""
    for source, name in ((pair.certificate, "me.crt"), (pair.key, "me.key")):
        aside = folder / f"{name}.new"
        shutil.copy(source, aside)
        aside.replace(folder / name)


@asynccontextmanager
async def client_of(file: str) -> AsyncIterator[KubeClient]:
    client = KubeClient(load_connection(file, env={}), timing=FakeTime().timing, attempts=1)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def jane(
    folder: Path, authority: Authority, *, api: Authority | None = None, user: Any = None
) -> AsyncIterator[tuple[WhoAsks, KubeClient]]:
    """Yield a server and a client with the certificate of Jane, by files or as ``user`` states."""
    async with serving((api or authority).server("api"), authority.own.certificate) as who:
        shutil.copy(authority.own.certificate, folder / "ca.crt")
        place(folder, authority.client("one", "jane"))
        async with client_of(kubeconfig(folder, who.url, user or FILES)) as client:
            yield who, client


async def name_seen(client: KubeClient) -> str:
    return str((await client.get("Pod", "lab", "p"))["metadata"]["name"])


async def test_a_client_certificate_that_was_replaced_is_shown_on_new_connections(
    tmp_path: Path, authority: Authority
) -> None:
    async with jane(tmp_path, authority) as (who, client):
        assert [await name_seen(client) for _ in range(2)] == ["jane", "jane"]
        assert len(who.connections) == 1
        place(tmp_path, authority.client("two", "jane-renewed"))
        assert [await name_seen(client) for _ in range(2)] == ["jane-renewed"] * 2
        assert len(who.connections) == 2


async def test_a_certificate_whose_key_has_not_come_yet_leaves_the_one_before(
    tmp_path: Path, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    renewed = authority.client("two", "joan")
    async with jane(tmp_path, authority) as (_, client):
        assert await name_seen(client) == "jane"
        shutil.copy(renewed.certificate, tmp_path / "me.crt")
        assert [await name_seen(client) for _ in range(3)] == ["jane"] * 3
        warned = [one for one in caplog.records if "keeping the last ones" in one.message]
        assert len(warned) == 1
        assert "users[u].user.client-certificate" in warned[0].message
        shutil.copy(renewed.key, tmp_path / "me.key")
        assert await name_seen(client) == "joan"


async def test_an_authority_that_was_replaced_is_the_one_that_is_trusted(
    tmp_path: Path, authority: Authority
) -> None:
    other = Authority(tmp_path / "other")

    async with jane(tmp_path, authority, api=other) as (_, client):
        with pytest.raises(UnavailableError, match="certificate verify failed"):
            await name_seen(client)
        shutil.copy(other.own.certificate, tmp_path / "ca.crt")
        assert await name_seen(client) == "jane"


async def test_a_refusal_makes_the_files_be_looked_at_before_the_next_attempt(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pumice.cluster.http.tls._LOOK_S", 3600.0)

    async with jane(tmp_path, authority) as (who, client):
        assert await name_seen(client) == "jane"
        place(tmp_path, authority.client("two", "joan"))
        assert await name_seen(client) == "jane"  # not checked yet
        who.refuses.add("jane")
        assert await name_seen(client) == "joan"


def test_the_authority_of_a_pod_is_followed_too(tmp_path: Path, authority: Authority) -> None:
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_bytes(authority.own.certificate.read_bytes())
    env = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    connection = load_connection(env=env, service_account=tmp_path)
    before = present(connection.tls)
    assert connection.tls is before
    other = Authority(tmp_path / "other")
    (tmp_path / "ca.crt").write_bytes(other.own.certificate.read_bytes())
    after = present(connection.tls)
    assert after is not before
    assert after.get_ca_certs() != before.get_ca_certs()


def login(folder: Path) -> dict[str, Any]:
    """Describe a program that prints the certificate in a folder."""
    text = (
        "import json, pathlib, sys\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "pair = {'clientCertificateData': (folder / 'me.crt').read_text(),\n"
        "        'clientKeyData': (folder / 'me.key').read_text()}\n"
        f"print(json.dumps({{'apiVersion': '{V1}', 'kind': 'ExecCredential', 'status': pair}}))\n"
    )
    (folder / "login.py").write_text(text)
    arguments = [str(folder / "login.py"), str(folder)]
    return {"apiVersion": V1, "command": sys.executable, "args": arguments}


def test_a_program_is_asked_again_once_its_certificate_runs_out(
    tmp_path: Path, authority: Authority
) -> None:
    """It names no time of expiry; the certificates hold for 30 days."""
    place(tmp_path, authority.client("one", "jane"))
    time, taken = FakeTime(), list[bytes]()
    time.now = wall_time()
    plugin = ExecPlugin.from_kubeconfig(login(tmp_path), tmp_path, "f", {})
    found = ExecCredentials(plugin, taken.append, wall=lambda: time.now)
    assert found.header() == found.header() == ""
    assert len(taken) == 1
    time.now += 29 * 86400
    assert found.fresh()
    time.now += 2 * 86400
    assert not found.fresh()
    place(tmp_path, authority.client("two", "joan"))
    found.header()
    assert len(taken) == 2
    assert taken[0] != taken[1]


async def test_a_program_that_logs_in_anew_changes_who_is_seen_on_the_next_request(
    tmp_path: Path, authority: Authority
) -> None:
    user = {"exec": {**login(tmp_path), "interactiveMode": "Never"}}
    async with jane(tmp_path, authority, user=user) as (who, client):
        assert [await name_seen(client) for _ in range(2)] == ["jane", "jane"]
        place(tmp_path, authority.client("two", "joan"))
        assert await name_seen(client) == "jane"  # it still holds
        who.refuses.add("jane")
        assert await name_seen(client) == "joan"
        assert len(who.connections) == 2


def test_a_program_with_a_certificate_that_is_none_is_reported(tmp_path: Path) -> None:
    for name in ("me.crt", "me.key"):
        (tmp_path / name).write_text("junk")
    plugin = ExecPlugin.from_kubeconfig(login(tmp_path), tmp_path, "f", {})

    def refuse(_: bytes) -> None:
        raise ssl.SSLError("no start line")

    with pytest.raises(ServiceError, match="cannot log in: expected a certificate and its key"):
        ExecCredentials(plugin, refuse).header()
