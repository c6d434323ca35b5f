"""Which cluster a command talks to."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from pumice.cli.connect import ConnectOptions, connect, endpoint_file, trouble
from pumice.cli.main import main
from pumice.errors import InputError, PumiceError, ServiceError, UnavailableError

CA = Path(__file__).parents[2] / "data" / "tls" / "cert.pem"
TOKEN = {"token": "t"}
KEY = CA.with_name("key.pem")


def kubeconfig(server: str = "http://127.0.0.1:9", cluster: Any = None, **user: Any) -> Any:
    return yaml.safe_dump(
        {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": server, **(cluster or {})}}],
            "users": [{"name": "u", "user": user}],
        }
    )


def base(cluster: Any) -> Any:
    return cluster._client.transport._http.url


def authorization(cluster: Any) -> Any:
    return cluster._client.transport._credentials.header()


def test_the_file_on_the_command_line_comes_before_the_environment(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(kubeconfig("http://a", **TOKEN))
    (tmp_path / "b").write_text(kubeconfig("http://b"))
    env = {"KUBECONFIG": str(tmp_path / "b"), "HOME": str(tmp_path)}
    found = connect(ConnectOptions(str(tmp_path / "a")), env)
    assert base(found) == "http://a"
    assert authorization(found) == "Bearer t"
    assert base(connect(ConnectOptions(), env)) == "http://b"


def test_an_address_replaces_only_the_address(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(kubeconfig(**TOKEN))
    found = connect(ConnectOptions(str(tmp_path / "a"), "127.0.0.1:7"), {})
    assert base(found) == "http://127.0.0.1:7"
    assert authorization(found) == "Bearer t"


def test_without_a_name_the_running_cluster_is_meant(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    file = endpoint_file(env)
    with pytest.raises(PumiceError, match="pumice up"):
        connect(ConnectOptions(), env)
    file.parent.mkdir(parents=True)
    file.write_text(kubeconfig("http://up"))
    assert base(connect(ConnectOptions(), env)) == "http://up"
    assert endpoint_file({"XDG_STATE_HOME": "/x"}) == Path("/x/pumice/kubeconfig")


def test_the_fallback_counts_only_where_nothing_is_named(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    options = ConnectOptions(fallback="http://localhost:8080")
    assert base(connect(options, env)) == "http://localhost:8080"
    named = ConnectOptions(master="http://m", fallback="http://localhost:8080")
    assert base(connect(named, env)) == "http://m"
    (tmp_path / "a").write_text(kubeconfig("http://a"))
    assert base(connect(options, {**env, "KUBECONFIG": str(tmp_path / "a")})) == "http://a"


def test_a_named_file_that_is_missing_never_leads_to_another_cluster(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "absent")}
    endpoint_file(env).parent.mkdir(parents=True)
    endpoint_file(env).write_text(kubeconfig("http://up"))
    with pytest.raises(InputError) as caught:
        connect(ConnectOptions(), env)
    absent = tmp_path / "absent"
    wanted = "expected a kubeconfig, got no such file"
    assert str(caught.value).startswith(f"{absent}: KUBECONFIG: {wanted} (pass --kubeconfig")
    with pytest.raises(InputError) as caught:
        connect(ConnectOptions(str(absent)), {"KUBECONFIG": str(tmp_path / "b")})
    assert str(caught.value).startswith(f"{absent}: --kubeconfig: {wanted} (name")
    several = {**env, "KUBECONFIG": f"{absent}:{absent}2"}
    with pytest.raises(InputError, match="KUBECONFIG: expected a kubeconfig, got none of these"):
        connect(ConnectOptions(), several)


def test_an_address_needs_none_of_the_files_of_the_environment(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "absent")}
    assert base(connect(ConnectOptions(master="http://m"), env)) == "http://m"
    original = ConnectOptions(fallback="http://localhost:8080")
    assert base(connect(original, env)) == "http://localhost:8080"
    with pytest.raises(ServiceError, match=r"stat .*absent: no such file or directory"):
        connect(ConnectOptions(str(tmp_path / "absent"), fallback="http://f"), env)


def test_a_command_ends_as_for_other_files_that_cannot_be_used(tmp_path: Path) -> None:
    for folder_or_absent in (tmp_path, tmp_path / "absent"):
        for command in (["job", "list"], ["explain"], ["doctor"], ["queue", "list"]):
            env = {"KUBECONFIG": str(folder_or_absent)}
            ran = CliRunner().invoke(main, command, env=env)
            assert (ran.exit_code, ran.stdout) == (2, "")
            assert ran.stderr.startswith(f"Error: {folder_or_absent}: ")
            assert "expected a kubeconfig, got " in ran.stderr


def test_certificates_come_from_data_or_files(tmp_path: Path) -> None:
    data = {"certificate-authority-data": base64.b64encode(CA.read_bytes()).decode()}
    user = {"client-certificate": str(CA), "client-key": str(KEY)}
    (tmp_path / "a").write_text(kubeconfig("https://a", data, **user))
    found: Any = connect(ConnectOptions(str(tmp_path / "a")), {})
    tls = found._client.transport._http._rules()
    assert len(tls.get_ca_certs()) == 1
    assert tls.check_hostname


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "current-context: x",
        kubeconfig(exec={"command": "login"}),
        kubeconfig("https://a", {"certificate-authority-data": "bm90IGEgY2VydA=="}),
        kubeconfig(tokenFile="absent"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_refused(tmp_path: Path, text: Any) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(InputError):
        connect(ConnectOptions(str(tmp_path / "a")), {})


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (
            'Get "http://127.0.0.1:1/api/v1/nodes": dial tcp 127.0.0.1:1: connect: refused',
            "cannot reach the cluster at http://127.0.0.1:1: refused",
        ),
        (
            'Get "https://nowhere/api?x=1": dial tcp: lookup nowhere: name not known',
            "cannot reach the cluster at https://nowhere: nowhere: name not known",
        ),
        ("something happened", "something happened"),
    ],
)
def test_a_cluster_out_of_reach_is_reported_in_plain_words(problem: str, said: str) -> None:
    assert trouble(UnavailableError(problem=problem)) == said
    reached = f"cannot reach the cluster at http://127.0.0.1:1: {problem}"
    assert trouble(ServiceError("", reached)).endswith(said)
