"""`pumice up --data`: acknowledged writes survive a kill."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.cli.main import main

MAPS = "/api/v1/namespaces/default/configmaps"


class Up:
    """A running `pumice up`."""

    def __init__(self, folder: Path) -> None:
        config = folder / "kubeconfig"
        config.unlink(missing_ok=True)
        script = "from pumice.cli.main import main; main()"
        words = ["up", "--data", str(folder / "data"), "--kubeconfig", str(config), "--nodes", "2"]
        self.process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", script, *words], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split()[-1]

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)  # noqa: S310
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            return json.load(answer)

    def names(self, path: str) -> set[str]:
        return {item["metadata"]["name"] for item in self.ask("GET", path)["items"]}

    def kill(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.process.pid, number)
        self.process.wait(30)
        if self.process.stdout is not None:
            self.process.stdout.close()


def stored(up: Up, done: list[str]) -> None:
    """Write config maps one after another until the cluster is gone."""
    for number in range(10_000):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{number}"}}
        try:
            up.ask("POST", MAPS, body)
        except (OSError, urllib.error.URLError, ValueError):
            return
        done.append(f"m{number}")


def test_what_a_client_was_reported_is_stored_survives_kill_9(tmp_path: Path) -> None:
    up, done = Up(tmp_path), list[str]()
    writer = threading.Thread(target=stored, args=(up, done))
    writer.start()
    deadline = time.monotonic() + 60
    while len(done) < 30 and time.monotonic() < deadline:
        time.sleep(0.01)
    up.kill()
    writer.join()
    assert len(done) >= 30
    again = Up(tmp_path)
    try:
        assert again.names(MAPS) >= set(done)
        assert again.names("/api/v1/nodes") == {"node-1", "node-2"}
        queues = "/apis/scheduling.volcano.sh/v1beta1/queues"
        assert again.names(queues) >= {"root", "default"}
    finally:
        again.kill(signal.SIGTERM)
    assert again.process.returncode == 0


REFUSED: dict[str, Any] = {
    "kubeconfig": (["--kubeconfig", "file/config"], "expected a folder that can be written to"),
    "manifests": (["--nodes-file", "nodes.yaml"], "nodes.yaml"),
    "object": (["--nodes-file", "twice.yaml"], "Invalid value"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_first_start_that_fails_leaves_no_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("nodes.yaml").write_text("kind: Node\napiVersion: v1\nmetadata: {name: [5]}\n")
    Path("twice.yaml").write_text(
        "kind: Node\napiVersion: v1\nmetadata: {name: n1}\n---\n"
        "kind: ConfigMap\napiVersion: v1\nmetadata: {name: N_2}\n"
    )
    words, message = REFUSED[name]
    given = ["up", "--no-ui", "--data", "data", "--kubeconfig", "config", *words]
    done = CliRunner().invoke(main, given)
    assert done.exit_code == 2, done.output
    assert message in done.output
    left = [file.name for file in Path("data").iterdir()] if Path("data").exists() else []
    assert left in ([], ["lock"])
    if name == "object":  # which got furthest
        up = Up(tmp_path)
        assert up.names("/api/v1/nodes") == {"node-1", "node-2"}
        up.kill(signal.SIGTERM)


def test_a_directory_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("mine")
    (tmp_path / "lock").write_text("mine too")
    config = str(tmp_path / "config")
    done = CliRunner().invoke(
        main, ["up", "--no-ui", "--data", str(tmp_path), "--kubeconfig", config]
    )
    assert done.exit_code == 2
    assert "expected an empty directory, or one that 'pumice up --data' made" in done.output
    assert (tmp_path / "log").read_text() == "mine"
    assert (tmp_path / "lock").read_text() == "mine too"
    assert len(list(tmp_path.iterdir())) == 2
