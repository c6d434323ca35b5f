"""What a kubeconfig or a configuration names is read in bounds, and secrets are not printed."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from pumice.api.text_files import MOST_SECRET_BYTES, read_secret
from pumice.cli.main import main
from pumice.cluster.extender_client import HttpExtenderClient
from pumice.cluster.kube import credentials
from pumice.cluster.kube.connection import load_connection
from pumice.cluster.usage.endpoint import Endpoint
from pumice.errors import InputError, PumiceError

PASSWORD = "s3cr3t-planted"  # noqa: S105


def kubeconfig(folder: Path, server: str = "https://127.0.0.1:1", **parts: Any) -> str:
    user = {key: value for key, value in parts.items() if key != "authority"}
    cluster = {"server": server}
    if "authority" in parts:
        cluster["certificate-authority"] = parts["authority"]
    content = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "u"}}],
        "clusters": [{"name": "a", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(content))
    return str(file)


ADDRESSES = (
    f"http://user:{PASSWORD}@127.0.0.1:1",
    f"https://user:{PASSWORD}@127.0.0.1:1/path",
    f"https://{PASSWORD}@127.0.0.1:1",
    f"https://user:{PASSWORD}@127.0.0.1:99999",
    f"https://user:{PASSWORD}/@host name",
    f"user:{PASSWORD}@127.0.0.1:1",
    f"ftp://user:{PASSWORD}@127.0.0.1",
    f"http://[::1?token={PASSWORD}",
    f"http://127.0.0.1:1?token={PASSWORD}",
    f"http://user:{PASSWORD}@no-such-host.invalid",
)


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("where", ["file", "option"])
def test_no_message_shows_the_password_of_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, where: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    named = (
        ["--kubeconfig", kubeconfig(tmp_path, address)]
        if where == "file"
        else ["--master", address]
    )
    for words in (["job", "list"], ["explain"], ["vcctl", "job", "list"], ["doctor"]):
        result = CliRunner().invoke(main, [*words, *named])
        assert result.exit_code != 0
        assert result.exception is None or isinstance(result.exception, SystemExit)
        assert PASSWORD not in result.output


def test_the_user_of_an_address_logs_in_as_with_kubectl(tmp_path: Path) -> None:
    found = load_connection(kubeconfig(tmp_path, "https://u%40x:p@127.0.0.1:6443/"), env={})
    assert found.server == "https://127.0.0.1:6443"
    assert found.credentials.header() == "Basic dUB4OnA="
    own = load_connection(kubeconfig(tmp_path, "https://u:p@127.0.0.1", token="t"), env={})  # noqa: S106
    assert own.credentials.header() == "Bearer t"


@pytest.mark.parametrize("address", ADDRESSES[:3])
def test_no_message_shows_the_password_of_a_service(address: str) -> None:
    calls: tuple[Callable[[], object], ...] = (
        lambda: Endpoint(address).get("/a", deadline=time.monotonic() + 2),
        lambda: HttpExtenderClient(address, 2.0).post("filter", {}),
    )
    for call in calls:
        with pytest.raises(PumiceError) as caught:
            call()
        assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("field", ["tokenFile", "client-key", "client-certificate", "authority"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "huge"])
def test_what_is_no_small_file_is_refused_at_once(tmp_path: Path, field: str, kind: str) -> None:
    file = tmp_path / "secret"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    elif kind == "huge":
        with file.open("wb") as made:
            made.truncate(MOST_SECRET_BYTES + 1)
    name = "/dev/zero" if kind == "device" else str(file)
    began = time.monotonic()
    with pytest.raises(PumiceError):
        load_connection(kubeconfig(tmp_path, **{field: name}), env={})
    assert time.monotonic() - began < 10


def test_a_small_file_is_read_through_links(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert read_secret(tmp_path / "b") == b"x"


def program(code: str) -> dict[str, Any]:
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-c", code],
    }


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os\nwhile True: os.write(1, b'x' * 65536)", "it printed more than 4 MiB"),
        ("import time; time.sleep(60)", "it did not end in time"),
        ("import os\nwhile True: os.write(2, b'x' * 65536)", "it printed more than 4 MiB"),
        ("import os, time\nif os.fork() == 0: time.sleep(60)", "it did not end in time"),
        ("print('[' * 100000)", "it printed no JSON"),
        ("import sys; sys.exit('no')", "it ended with 1: no"),
    ],
)
def test_a_credential_program_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str
) -> None:
    monkeypatch.setattr(credentials, "_LOGIN_S", 2.0)
    connection = load_connection(kubeconfig(tmp_path, exec=program(code)), env={})
    began = time.monotonic()
    with pytest.raises(PumiceError, match=said):
        connection.credentials.header()
    assert time.monotonic() - began < 20


EXEC = {
    "command": "true",
    "apiVersion": "client.authentication.k8s.io/v1",
    "provideClusterInfo": True,
}


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({"certificate-authority-data": "ü"}, {}),
        ({"certificate-authority": "a\0b"}, {}),
        ({}, {"client-certificate": "a\0b", "client-key": "a"}),
        ({"extensions": 5}, {"exec": EXEC}),
        ({"extensions": ["x"]}, {"exec": EXEC}),
        ({"insecure-skip-tls-verify": "false"}, {}),
    ],
)
def test_odd_values_of_a_kubeconfig_are_named(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any]
) -> None:
    file = Path(kubeconfig(tmp_path, **user))
    content = yaml.safe_load(file.read_text())
    content["clusters"][0]["cluster"] |= cluster
    file.write_text(yaml.safe_dump(content))
    field = next(iter({**cluster, **{key: 1 for key in user if key != "exec"}}))
    with pytest.raises(InputError, match=rf"{field}: expected"):
        load_connection(str(file))


@pytest.mark.parametrize("words", [("job", "list"), ("doctor",), ("explain",)])
def test_an_address_of_very_many_characters_is_cut(tmp_path: Path, words: tuple[str, ...]) -> None:
    file = tmp_path / "long"
    server = f"http://{'a' * 100_000}"
    file.write_text(
        f"clusters: [{{name: a, cluster: {{server: '{server}'}}}}]\n"
        "contexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n"
    )
    result = CliRunner().invoke(main, [*words, "-k", str(file)])
    assert result.exit_code != 0
    assert len(result.output) < 9000
