"""`pumice up`: what it needs, what it leaves while it runs, how it ends."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from pumice.cli.main import main
from tests.present import present

NODES = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: big}
  status: {allocatable: {cpu: "64", memory: 256Gi, pods: "110"}}
"""


def test_it_serves_until_it_is_reported_to_stop(tmp_path: Path) -> None:
    file, nodes = tmp_path / "state" / "kubeconfig", tmp_path / "nodes.yaml"
    nodes.write_text(NODES)
    command = [sys.executable, "-c", "from pumice.cli.main import main; main()", "up"]
    up = subprocess.Popen(  # noqa: S603  # a fixed program
        [*command, "--nodes-file", str(nodes), "--kubeconfig", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        url = present(up.stdout).readline().split()[-1]
        assert yaml.safe_load(file.read_text())["clusters"][0]["cluster"]["server"] == url
        with urllib.request.urlopen(f"{url}/api/v1/nodes", timeout=20) as answer:  # noqa: S310
            items = json.load(answer)["items"]
        assert [item["metadata"]["name"] for item in items] == ["big"]
    finally:
        up.send_signal(signal.SIGTERM)
        _, said = up.communicate(timeout=30)
    assert (up.returncode, said) == (0, "stopped\n")
    assert not file.exists()


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return lambda *arguments: CliRunner().invoke(main, ["up", *map(str, arguments)])


def test_an_object_that_cannot_be_read_is_reported_with_its_line(
    invoke: Any, tmp_path: Path
) -> None:
    file = tmp_path / "nodes.yaml"
    head = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
    file.write_text(f'{head}status: {{allocatable: {{cpu: "four"}}}}\n')
    result = invoke("--nodes-file", file)
    assert result.exit_code == 2
    assert f"{file}:4: Node n1: status.allocatable.cpu: expected a quantity" in result.stderr


def test_a_second_cluster_leaves_the_kubeconfig_of_the_first_alone(
    invoke: Any, tmp_path: Path
) -> None:
    file = tmp_path / "state" / "pumice" / "kubeconfig"
    file.parent.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as first:
        url = f"http://127.0.0.1:{first.getsockname()[1]}"
        file.write_text(f"clusters: [{{name: pumice, cluster: {{server: '{url}'}}}}]")
        done = invoke("--nodes", 1)
    assert done.exit_code == 1
    assert done.stderr == (
        f"Error: a cluster already runs at {url}; name another file with --kubeconfig\n"
    )
    assert url in file.read_text()


def test_a_port_that_is_taken_is_said(invoke: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = invoke("--port", taken.getsockname()[1])
    assert result.exit_code == 2
    assert "expected a free port" in result.output


def test_a_port_of_the_dashboard_that_is_taken_is_said_before_a_cluster_runs(invoke: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = invoke("--ui", "--ui-port", port)
    assert result.exit_code == 2
    assert f"--ui-port: expected a port that is free on 127.0.0.1, got {port}" in result.stderr
    assert result.stdout == ""


def test_a_bad_amount_of_a_node_is_said(invoke: Any) -> None:
    result = invoke("--node-cpu", "many")
    assert result.exit_code == 2
    assert "--node-cpu: expected a quantity such as" in result.output
    assert "got 'many'" in result.output


@pytest.mark.parametrize("text", ["", "# nothing\n", '{"kind": "List", "apiVersion": "v1"}'])
def test_a_file_without_manifests_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text(text)
    result = CliRunner().invoke(main, ["up", "--nodes-file", str(file)])
    assert result.exit_code == 2
    assert result.stderr == f"Error: {file}: expected manifests to start with, got none\n"


def test_a_file_without_manifests_is_said(invoke: Any, tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text("a: b\n")
    result = invoke("--nodes-file", file)
    assert result.exit_code == 2
    assert "apiVersion, kind and metadata" in result.output


def test_a_configuration_that_cannot_be_meant_is_refused(invoke: Any, tmp_path: Path) -> None:
    file = tmp_path / "conf.yaml"
    file.write_text('actions: "enqueue, nothing"\n')
    result = invoke("--conf", file)
    assert result.exit_code == 2
    assert "nothing" in result.output
