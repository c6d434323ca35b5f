"""Connections: the cluster, the identity, and the messages when they are unclear."""

import base64
import json
import logging
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from pumice.cluster.kube.client import KubeClient
from pumice.cluster.kube.connection import Connection, load_connection
from pumice.cluster.kube.credentials import ExecCredentials, ExecPlugin, TokenFile
from pumice.errors import InputError, ServiceError, UnavailableError
from tests.present import present
from tests.unit.cluster.kube.fakes import FakeTime, pod

TLS = Path(__file__).parents[3] / "data" / "tls"
CERT, KEY = TLS / "cert.pem", TLS / "key.pem"
V1 = "client.authentication.k8s.io/v1"
TOKEN = {"token": "t"}


def packed(file: Any) -> Any:
    return base64.b64encode(file.read_bytes()).decode()


def config(
    server: Any = "https://127.0.0.1:6443",
    cluster: Any = None,
    context: Any = None,
    name: Any = "c",
    **user: Any,
) -> Any:
    return {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": "k", "user": "u", **(context or {})}}],
        "clusters": [{"name": "k", "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": "u", "user": user}],
    }


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def write(content: Any, name: str = "config") -> Any:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else yaml.safe_dump(content)
        file.write_text(text, encoding="utf-8")
        return str(file)

    return write


@pytest.fixture
def account(tmp_path: Path) -> Any:
    """Return the folder in which a pod finds its identity."""
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "token").write_text("from-pod\n")
    (folder / "ca.crt").write_bytes(CERT.read_bytes())
    (folder / "namespace").write_text("system")
    return folder


POD_ENV = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_the_file_named_comes_first_then_the_environment_the_pod_and_the_home(
    written: Any, account: Any, tmp_path: Path
) -> None:
    named, listed = written(config("http://named")), written(config("http://listed"), "listed")
    written(config("http://home"), ".kube/config")
    env = {"KUBECONFIG": listed, "HOME": str(tmp_path), **POD_ENV}

    def server(kubeconfig: Any = None) -> Any:
        return load_connection(kubeconfig, env=env, service_account=account).server

    assert server(named) == "http://named"
    assert server() == "http://listed"
    del env["KUBECONFIG"]
    assert server() == "https://10.0.0.1:443"
    del env["KUBERNETES_SERVICE_HOST"]
    assert server() == "http://home"
    (tmp_path / ".kube/config").unlink()
    with pytest.raises(ServiceError, match="no cluster found"):
        server()


def test_a_pod_uses_its_own_account(account: Any) -> None:
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1"}
    found = load_connection(env=env, service_account=account)
    assert found.server == "https://[fd00::1]:443"
    assert found.namespace == "system"
    assert found.credentials.header() == "Bearer from-pod"
    assert len(present(found.tls).get_ca_certs()) == 1
    (account / "ca.crt").unlink()
    with pytest.raises(InputError, match=r"ca\.crt"):
        load_connection(env=env, service_account=account)


@pytest.mark.parametrize("master", ["10.0.0.9:8080", "http://10.0.0.9:8080/"])
def test_a_pod_never_sends_its_token_over_plain_http(
    account: Any, caplog: pytest.LogCaptureFixture, master: str
) -> None:
    found = load_connection(None, master, env=POD_ENV, service_account=account)
    assert found.server == "http://10.0.0.9:8080"
    assert found.credentials.header() == ""
    assert found.namespace == "system"
    assert "the token of this pod is not sent" in caplog.text


def test_a_pod_sends_its_token_to_an_address_its_authority_vouches_for(account: Any) -> None:
    found = load_connection(None, "https://10.0.0.9", env=POD_ENV, service_account=account)
    assert found.credentials.header() == "Bearer from-pod"
    assert present(found.tls).verify_mode == ssl.CERT_REQUIRED


def test_a_secret_over_plain_http_is_warned_of(
    written: Any, caplog: pytest.LogCaptureFixture
) -> None:
    load_connection(written(config("http://a:1")), env={})
    load_connection(written(config(**TOKEN)), env={})
    assert caplog.text == ""
    found = load_connection(written(config("http://a:1", **TOKEN)), env={})
    assert "http://a:1: a secret is sent over plain HTTP" in caplog.text
    assert found.credentials.header() == "Bearer t"


def test_an_address_replaces_only_the_address(written: Any) -> None:
    found = load_connection(written(config(**TOKEN)), "http://other:1/", env={})
    assert found.server == "http://other:1"
    assert found.credentials.header() == "Bearer t"
    alone = load_connection(None, "other:1", env={})
    assert (alone.server, alone.credentials.header()) == ("http://other:1", "")
    secure = load_connection(None, "https://other", env={})
    assert present(secure.tls).verify_mode == ssl.CERT_REQUIRED


def test_a_named_file_that_is_missing_never_leads_to_another_cluster(
    tmp_path: Path, account: Any
) -> None:
    env = {"KUBECONFIG": str(tmp_path / "absent"), **POD_ENV}
    with pytest.raises(InputError, match=r"KUBECONFIG.*expected a kubeconfig, got no such file"):
        load_connection(env=env, service_account=account)
    with pytest.raises(InputError, match=r"nowhere.*expected a kubeconfig, got no such file"):
        load_connection("nowhere", env=env, service_account=account)


def test_listed_files_are_read_as_one_and_the_first_word_counts(
    written: Any, tmp_path: Path
) -> None:
    users = {"users": [{"name": "u", "user": {"tokenFile": "near"}}]}
    first = written(users, "one/config")
    (tmp_path / "one" / "near").write_text("near-token")
    second = written(config(context={"namespace": "lab"}, **TOKEN), "two/config")
    env = {"KUBECONFIG": f"{first}:{tmp_path / 'absent'}:{second}"}
    found = load_connection(env=env)
    assert found.credentials.header() == "Bearer near-token"
    assert found.namespace == "lab"


def test_of_parts_and_keys_of_the_same_name_one_counts(written: Any) -> None:
    content = config(**TOKEN)
    content["users"].append({"name": "u", "user": {"token": "second"}})
    text = yaml.safe_dump(content) + "preferences: {}\npreferences: {}\n"
    found = load_connection(written(text), env={})
    assert found.credentials.header() == "Bearer t"


@pytest.mark.parametrize(
    ("host", "port", "server"),
    [
        ("10.0.0.1", "443", "https://10.0.0.1:443"),
        ("10.0.0.1", "", "https://10.0.0.1:443"),
        ("fd00::1", "6443", "https://[fd00::1]:6443"),
    ],
)
def test_the_address_of_a_pod_is_that_of_its_environment(
    account: Any, host: str, port: str, server: str
) -> None:
    env = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    assert load_connection(env=env, service_account=account).server == server
    (account / "namespace").unlink()
    assert load_connection(env=env, service_account=account).namespace == "default"


def test_a_pod_without_a_token_or_an_address_is_no_way_to_a_cluster(account: Any) -> None:
    with pytest.raises(ServiceError, match="no cluster found"):
        load_connection(env={"HOME": "/absent"}, service_account=account)
    (account / "token").unlink()
    with pytest.raises(ServiceError, match="no cluster found"):
        load_connection(env={**POD_ENV, "HOME": "/absent"}, service_account=account)


def test_another_context_can_be_chosen(written: Any) -> None:
    content = config()
    content["contexts"].append({"name": "d", "context": {"cluster": "k", "namespace": "other"}})
    file = written(content)
    assert load_connection(file, context="d", env={}).namespace == "other"
    with pytest.raises(
        InputError, match=r"context: expected a context, got 'x' \(there are: c, d\)"
    ):
        load_connection(file, context="x", env={})


def test_certificates_come_from_data_or_files_beside_the_kubeconfig(
    written: Any, tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_bytes(CERT.read_bytes())
    cluster = {"certificate-authority": "ca.pem", "tls-server-name": "localhost"}
    user = {"client-certificate-data": packed(CERT), "client-key-data": packed(KEY)}
    found = load_connection(written(config(cluster=cluster, **user)), env={})
    assert len(present(found.tls).get_ca_certs()) == 1
    assert present(found.tls).check_hostname
    assert found.tls_name == "localhost"


def test_unverified_certificates_are_warned_of_loudly(
    written: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        found = load_connection(written(config(cluster={"insecure-skip-tls-verify": True})), env={})
    assert present(found.tls).verify_mode == ssl.CERT_NONE
    assert "NOT verified" in caplog.text


def test_a_name_and_a_password_are_sent_as_such(written: Any) -> None:
    found = load_connection(written(config(username="me", password="p")), env={})  # noqa: S106
    assert found.credentials.header() == f"Basic {base64.b64encode(b'me:p').decode()}"


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ("[", "config:2: expected readable YAML"),
        ("", "config: expected a kubeconfig"),
        ({"clusters": {}}, "current-context"),
        ({"clusters": "k"}, "clusters: expected a list"),
        ({"users": [{"user": {}}]}, "users[0].name"),
        ({"contexts": [{"name": "c", "context": []}]}, "contexts[0].context"),
        ({**config(), "current-context": "x"}, "current-context: expected a context, got 'x'"),
        ({**config(), "clusters": []}, "contexts[c].context.cluster"),
        ({**config(), "users": []}, "contexts[c].context.user"),
        (config(""), "clusters[k].cluster.server"),
        (config(7), "clusters[k].cluster.server"),
        (config(cluster={"proxy-url": "http://p"}), "clusters[k].cluster.proxy-url"),
        (config(cluster={"certificate-authority-data": "?"}), "certificate-authority-data"),
        (config(cluster={"certificate-authority-data": "bm8="}), "certificate-authority"),
        (config(cluster={"certificate-authority": "absent"}), "certificate-authority"),
        (
            config(cluster={"insecure-skip-tls-verify": True, "certificate-authority": str(CERT)}),
            "insecure-skip-tls-verify",
        ),
        (config(**{"client-certificate": str(CERT)}), "users[u].user.client-key"),
        (config(**{"client-certificate": str(KEY), "client-key": str(KEY)}), "client-certificate"),
        (config(tokenFile="absent"), "users[u].user.tokenFile"),
        (config(**{"auth-provider": {"name": "x"}}), "users[u].user.auth-provider"),
        (config(**{"as": "admin"}), "users[u].user.as"),
        (config(exec=[]), "users[u].user.exec"),
        (config(exec={"apiVersion": V1}), "exec.command"),
        (config(exec={"command": "x", "apiVersion": "v1"}), "exec.apiVersion"),
        (
            config(exec={"command": "x", "apiVersion": V1, "interactiveMode": "Always"}),
            "exec.interactiveMode",
        ),
    ],
)
def test_what_is_wrong_is_reported_with_its_file_and_field(
    written: Any, content: Any, where: str
) -> None:
    file = written(content)
    with pytest.raises(InputError) as caught:
        load_connection(file, env={})
    assert where in str(caught.value)
    assert file in str(caught.value)


def test_secrets_are_not_shown(written: Any) -> None:
    found = load_connection(written(config(token="hidden")), env={})  # noqa: S106
    assert "hidden" not in repr(found)


def test_a_token_file_is_read_again_after_a_while_and_when_refused(tmp_path: Path) -> None:
    file, time = tmp_path / "token", FakeTime()
    file.write_text("one")
    tokens = TokenFile(file, time.timing.clock)
    assert tokens.header() == "Bearer one"
    file.write_text("two")
    assert tokens.header() == "Bearer one"
    time.now += 61
    assert not tokens.fresh()
    assert tokens.header() == "Bearer two"
    file.write_text("three")
    tokens.refused()
    assert tokens.header() == "Bearer three"
    file.unlink()
    time.now += 61
    assert tokens.header() == "Bearer three"


PROGRAM = """
import json, os, pathlib, sys
count = pathlib.Path(sys.argv[1])
n = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(n))
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
pathlib.Path(sys.argv[1] + ".info").write_text(json.dumps([info, os.environ["WHO"]]))
status = {"token": f"token-{n}", "expirationTimestamp": "2023-11-14T22:20:00Z"}
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


def program(tmp_path: Path, text: Any = PROGRAM, **more: Any) -> Any:
    file = tmp_path / "login.py"
    file.write_text(text)
    return {
        "apiVersion": V1,
        "command": sys.executable,
        "args": [str(file), str(tmp_path / "count")],
        "env": [{"name": "WHO", "value": "me"}],
        **more,
    }


def login(tmp_path: Path, time: Any = None, text: Any = PROGRAM, take: Any = None) -> Any:
    described = ExecPlugin.from_kubeconfig(program(tmp_path, text), tmp_path, "f", {})
    wall: dict[str, Any] = {} if time is None else {"wall": lambda: time.now}
    return ExecCredentials(described, take or (lambda _: None), **wall)


def test_a_program_logs_in_once_until_its_credential_expires(tmp_path: Path) -> None:
    time = FakeTime()  # 22:13:20
    found = login(tmp_path, time)
    assert not found.fresh()
    assert found.header() == found.header() == "Bearer token-1"
    time.now += 380
    assert found.header() == "Bearer token-1"
    time.now += 15
    assert found.header() == "Bearer token-2"
    found.refused()
    assert found.header() == "Bearer token-3"


def test_a_program_is_reported_about_the_cluster_if_it_wants_to_know(
    written: Any, tmp_path: Path
) -> None:
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    cluster = {"certificate-authority": str(CERT), "extensions": [extension]}
    content = config(cluster=cluster, exec=program(tmp_path, provideClusterInfo=True))
    load_connection(written(content), env={}).credentials.header()
    reported, who = json.loads((tmp_path / "count.info").read_text())
    assert who == "me"
    assert reported["spec"] == {
        "interactive": False,
        "cluster": {
            "server": "https://127.0.0.1:6443",
            "certificate-authority-data": packed(CERT),
            "config": {"audience": "x"},
        },
    }


def test_a_program_may_give_a_certificate_instead_of_a_token(tmp_path: Path) -> None:
    taken: list[Any] = []
    status = {"clientCertificateData": CERT.read_text(), "clientKeyData": KEY.read_text()}
    said = {"apiVersion": V1, "kind": "ExecCredential", "status": status}
    found = login(tmp_path, text=f"print({json.dumps(json.dumps(said))})", take=taken.append)
    assert found.header() == ""
    assert found.fresh()
    assert CERT.read_bytes().strip() in taken[0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import sys; sys.exit('who are you?')", "ended with 1: who are you?"),
        ("print('hello')", "printed no JSON"),
        ("print('{}')", "expected an ExecCredential"),
        (
            f"print('{json.dumps({'apiVersion': V1, 'kind': 'ExecCredential', 'status': {}})}')",
            "expected a token or a certificate",
        ),
    ],
)
def test_a_program_that_fails_is_reported_with_its_own_words(
    tmp_path: Path, text: Any, problem: str
) -> None:
    with pytest.raises(ServiceError) as caught:
        login(tmp_path, text=text).header()
    assert problem in str(caught.value)


def test_a_program_that_is_not_there_is_reported_with_the_hint_of_the_kubeconfig() -> None:
    described = ExecPlugin("/nowhere/login", hint="install it")
    with pytest.raises(ServiceError, match="install it"):
        ExecCredentials(described, lambda _: None).header()


async def test_a_login_that_fails_is_a_cluster_out_of_reach() -> None:
    credentials = ExecCredentials(ExecPlugin("/nowhere/login"), lambda _: None)
    connection = Connection("http://127.0.0.1:1", credentials=credentials)
    client = KubeClient(connection, timing=FakeTime().timing)
    with pytest.raises(UnavailableError, match="cannot log in"):
        await client.get("Pod", "lab", "p")
    await client.close()


@pytest.mark.parametrize(("name", "works"), [("localhost", True), ("elsewhere", False)])
async def test_the_server_must_carry_the_name_that_is_wanted(
    written: Any, name: str, works: bool
) -> None:
    app = web.Application()
    app.router.add_get("/{tail:.*}", _answer)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(CERT, KEY)
    server = TestServer(app, scheme="https")
    await server.start_server(ssl=serving)
    cluster = {"certificate-authority": str(CERT), "tls-server-name": name}
    file = written(config(str(server.make_url("")), cluster))
    client = KubeClient(load_connection(file, env={}), timing=FakeTime().timing)
    try:
        if works:
            assert await client.get("Pod", "lab", "p") == pod()
        else:
            with pytest.raises(UnavailableError, match="elsewhere"):
                await client.get("Pod", "lab", "p")
    finally:
        await client.close()
        await server.close()


async def _answer(_: Any) -> Any:
    return web.json_response(pod())


@pytest.mark.parametrize(
    ("command", "found"),
    [("login", "login"), ("./login", "/folder/login"), ("/bin/login", "/bin/login")],
)
def test_a_program_with_a_path_is_found_from_the_kubeconfig(command: str, found: str) -> None:
    content = {
        "command": command,
        "apiVersion": V1,
        "args": ["a", 1],
        "env": [{"name": "N", "value": 2}],
        "installHint": "get it",
    }
    made = ExecPlugin.from_kubeconfig(content, Path("/folder"), "file", {"server": "s"})
    assert made == ExecPlugin(found, ("a", "1"), {"N": "2"}, V1, "get it", None)
    asked = {**content, "provideClusterInfo": True}
    assert ExecPlugin.from_kubeconfig(asked, Path("/folder"), "f", {"a": 1}).cluster == {"a": 1}
