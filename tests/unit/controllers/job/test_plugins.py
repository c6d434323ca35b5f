"""Job plugins: flags, keys, and what the recorded cases do not reach."""

import base64
import json
import struct
from typing import Any

import numpy as np
import pytest

from pumice.controllers.job.plugins import JOB_PLUGINS
from pumice.controllers.job.plugins.base import flags
from pumice.controllers.job.plugins.rsa import key_pair
from tests.unit.controllers.job.stage import job, task


def seeded(seed: Any) -> Any:
    generator = np.random.default_rng(seed)

    def bits(number: Any) -> Any:
        size = -(-number // 8)
        return int.from_bytes(generator.bytes(size), "big") >> (8 * size - number)

    return bits


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


def _numbers(pem: Any) -> Any:
    """Read the integers of a PKCS #1 private key."""
    body = base64.b64decode("".join(pem.strip().splitlines()[1:-1]))

    def length(at: Any) -> Any:
        if body[at] < 0x80:
            return body[at], at + 1
        size = body[at] & 0x7F
        return int.from_bytes(body[at + 1 : at + 1 + size], "big"), at + 1 + size

    _, at = length(1)
    numbers = []
    while at < len(body):
        size, start = length(at + 1)
        numbers.append(int.from_bytes(body[start : start + size], "big"))
        at = start + size
    return numbers


def test_a_key_pair_decrypts_what_it_encrypted() -> None:
    private, public = key_pair(seeded(1), 512)
    _, modulus, exponent, secret, first, second, *_ = _numbers(private)
    assert modulus == first * second
    assert modulus.bit_length() == 512
    assert pow(pow(42, exponent, modulus), secret, modulus) == 42
    blob = base64.b64decode(public.split()[1])
    (size,) = struct.unpack(">I", blob[:4])
    assert blob[4 : 4 + size] == b"ssh-rsa"
    assert blob.endswith(modulus.to_bytes(64, "big"))


def test_keys_differ_by_their_random_bits() -> None:
    assert key_pair(seeded(1), 256) != key_pair(seeded(2), 256)


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
