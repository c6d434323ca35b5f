"""Job plugins: flags, keys, and what the recorded cases do not reach."""

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from pumice.controllers.job.plugins import JOB_PLUGINS, flags, new_key_pair
from tests.unit.controllers.job.stage import job, task


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        (["--port=5", "--master", "boss", "--wait"], {"port": 5, "master": "boss", "wait": True}),
        (["-wait=false", "-port", "7"], {"port": 7, "wait": False}),
        (["--port=5", "--nonsense", "--wait"], {"port": 5}),
        (["--port=many", "--wait"], {}),
        (["word", "--wait"], {}),
        (["--master"], {}),
    ],
)
def test_flags_are_read_as_go_reads_them(arguments: Any, read: Any) -> None:
    defaults = {"port": 1, "master": "m", "wait": False}
    assert flags(arguments, defaults) == defaults | read


def test_a_private_key_fits_its_public_key_and_ssh_reads_both() -> None:
    private, public = new_key_pair()
    assert private.startswith("-----BEGIN RSA PRIVATE KEY-----\n")
    key = serialization.load_pem_private_key(private.encode(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    assert key.key_size == 2048
    name, body = public.split()
    assert (name, public[-1]) == ("ssh-rsa", "\n")
    assert base64.b64decode(body).startswith(b"\0\0\0\7ssh-rsa")
    loaded = serialization.load_ssh_public_key(public.encode())
    assert isinstance(loaded, rsa.RSAPublicKey)
    assert loaded.public_numbers() == key.public_key().public_numbers()


def test_each_key_pair_is_new() -> None:
    assert new_key_pair() != new_key_pair()


def _stored(manifest: Any) -> Any:
    manifest["metadata"] |= {"namespace": "ns", "uid": "u"}
    return manifest


def _pod(name: Any, index: Any = 0, **annotations: Any) -> Any:
    marks = {"volcano.sh/task-spec": name, "volcano.sh/task-index": str(index), **annotations}
    metadata = {"name": f"j-{name}-{index}", "annotations": marks}
    return {"metadata": metadata, "spec": {"containers": [{"name": "main"}]}}


def _added(plugin: Any, pod: Any, manifest: Any, *arguments: Any) -> Any:
    JOB_PLUGINS[plugin](arguments, lambda: ("private", "public")).on_pod_create(pod, manifest)
    return {one["name"]: one.get("value") for one in pod["spec"]["containers"][0].get("env", [])}


def test_tensorflow_leaves_a_single_pod_alone() -> None:
    assert _added("tensorflow", _pod("worker"), _stored(job(task("worker", 1)))) == {}


def test_tensorflow_names_the_place_in_the_cluster() -> None:
    manifest = _stored(job(task("ps", 1), task("worker", 2)))
    config = json.loads(_added("tensorflow", _pod("worker", 1), manifest)["TF_CONFIG"])
    assert config["task"] == {"type": "worker", "index": 1}
    assert config["cluster"]["ps"] == ["j-ps-0.j:2222"]


def test_pytorch_without_a_master_does_nothing() -> None:
    assert _added("pytorch", _pod("worker"), _stored(job(task("worker", 2)))) == {}


def _command(pod: Any) -> Any:
    return pod["spec"]["containers"][0].get("command")


def test_ray_starts_head_and_workers() -> None:
    manifest = _stored(job(task("head", 1), task("worker", 2)))
    head, worker = _pod("head"), _pod("worker", 1)
    for pod in (head, worker):
        pod["spec"]["containers"][0]["name"] = pod["metadata"]["annotations"][
            "volcano.sh/task-spec"
        ]
        _added("ray", pod, manifest, "--port=7777")
    assert _command(head)[2].startswith("ray start --head --block")
    assert "--port=7777 --dashboard-port=8265 --ray-client-server-port=10001" in _command(head)[2]
    ports = {one["name"]: one["containerPort"] for one in head["spec"]["containers"][0]["ports"]}
    assert ports == {"gcs": 7777, "dashboard": 8265, "client-server": 10001}
    assert _command(worker) == ["sh", "-c", "ray start --block --address=j-head-0.j:7777"]


def test_ray_leaves_other_containers_and_jobs_without_a_head_alone() -> None:
    with_head, without = job(task("head", 1), task("worker", 1)), job(task("worker", 1))
    for manifest, container in ((with_head, "sidecar"), (without, "worker")):
        pod = _pod("worker")
        pod["spec"]["containers"][0]["name"] = container
        _added("ray", pod, _stored(manifest))
        assert _command(pod) is None


def test_the_rank_variable_outranks_the_index() -> None:
    pod = _pod("worker", 1)
    pod["spec"]["containers"][0]["env"] = [{"name": "RANK", "value": "9"}]
    _added("hcclrank", pod, _stored(job(task("master", 1), task("worker", 2))))
    assert pod["metadata"]["annotations"]["hccl/rankIndex"] == "9"


def test_ssh_uses_keys_that_were_brought_along() -> None:
    manifest = _stored(job(task("w", 1)))
    arguments = ["--ssh-private-key=mine", "--ssh-public-key=yours", "--ssh-port=99999"]
    plugin = JOB_PLUGINS["ssh"](arguments, lambda: ("private", "public"))
    data = plugin.objects(manifest)[0].build()["data"]
    texts = {name: base64.b64decode(text).decode() for name, text in data.items()}
    assert texts["id_rsa"] == "mine"
    assert texts["authorized_keys"] == "yours"
    assert "Port 22\n" in texts["config"]
