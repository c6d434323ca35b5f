"""Secrets are planted wherever pods keep them; nothing that is written for people shows one."""

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from pumice.api.conf import DEFAULT_CONF
from pumice.cli.main import main
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.cluster.kube.connection import load_connection
from pumice.errors import PumiceError
from pumice.serve.cache_dump import write_dump
from pumice.testing import node, pod, pod_group, queue

PLANTED = "s3cr3t-planted"


def planted_pod(name: str = "p") -> dict[str, Any]:
    made = pod(name, group="g", cpu=1)
    made["metadata"].setdefault("annotations", {}).update(
        {"kubectl.kubernetes.io/last-applied-configuration": PLANTED}
    )
    probe = {"httpGet": {"port": 80, "httpHeaders": [{"name": "Authorization", "value": PLANTED}]}}
    container = made["spec"]["containers"][0]
    container |= {
        "env": [{"name": "PASSWORD", "value": PLANTED}],
        "command": ["run", PLANTED],
        "args": [f"--token={PLANTED}"],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "startupProbe": probe,
        "lifecycle": {"preStop": {"exec": {"command": [PLANTED]}}},
    }
    made["spec"]["initContainers"] = [json.loads(json.dumps(container)) | {"name": "i"}]
    made["status"]["containerStatuses"] = [
        {"name": "c", "state": {"terminated": {"exitCode": 1, "message": PLANTED}}}
    ]
    return made


def manifests() -> list[dict[str, Any]]:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "default"},
        "stringData": {"password": PLANTED},
    }
    conf = yaml.safe_load(DEFAULT_CONF)
    conf["metrics"] = {"type": "prometheus", "address": "https://p.example", "token": PLANTED}
    configured = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "default"},
        "data": {"volcano-scheduler.conf": yaml.safe_dump(conf)},
    }
    group = pod_group("g", min_member=1)
    return [queue("default"), node("n1", cpu=4), group, planted_pod(), secret, configured]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "cluster.yaml"
    made.write_text(yaml.safe_dump_all(manifests()))
    return made


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_a_snapshot_holds_no_secret_and_decides_the_same(
    file: Path, tmp_path: Path, suffix: str
) -> None:
    saved = tmp_path / f"saved.{suffix}"
    result = CliRunner().invoke(main, ["snapshot", "save", str(file), "-o", str(saved)])
    assert result.exit_code == 0, result.output
    assert PLANTED not in saved.read_text()
    decided = [
        CliRunner().invoke(main, ["run", str(one), "-o", "json"]).stdout for one in (file, saved)
    ]
    assert "default/p" in json.loads(decided[0])["binds"]
    assert json.loads(decided[0])["binds"] == json.loads(decided[1])["binds"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "FILE", "-o", "json"),
        ("explain", "-f", "FILE", "-o", "json"),
        ("snapshot", "show", "FILE", "-o", "json"),
        ("queue", "order", "-f", "FILE", "-o", "json"),
        ("whatif", "-f", "FILE", "--add-nodes", "1", "-o", "json"),
    ],
)
def test_no_answer_shows_a_secret(file: Path, arguments: tuple[str, ...]) -> None:
    words = [str(file) if word == "FILE" else word for word in arguments]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert PLANTED not in result.output


def test_a_dump_holds_no_secret(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(VirtualClock())
    for one in manifests():
        cluster.create(one)
    path = write_dump(cluster, ("Pod", "Node"), str(tmp_path), "cache")
    assert '"p"' in path.read_text()
    assert PLANTED not in path.read_text()


@pytest.mark.parametrize("part", ["token", "password", "client-key-data", "exec"])
def test_no_complaint_about_a_kubeconfig_shows_its_secrets(tmp_path: Path, part: str) -> None:
    user: dict[str, Any] = {"token": PLANTED, "username": 5}
    if part == "password":
        user = {"username": "u", "password": {"a": PLANTED}}
    if part == "client-key-data":
        user = {"client-certificate-data": "LS0t", "client-key-data": f"?{PLANTED}"}
    if part == "exec":
        user = {"exec": {"command": "/nonexistent", "env": [{"name": "A", "value": PLANTED}]}}
    content = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "u"}}],
        "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": user}],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(content))
    reported = io.StringIO()
    handler = logging.StreamHandler(reported)
    logging.getLogger().addHandler(handler)
    try:
        text = repr(load_connection(str(file), env={}))
    except PumiceError as error:
        text = str(error)
    finally:
        logging.getLogger().removeHandler(handler)
    assert PLANTED not in text
    assert PLANTED not in reported.getvalue()
