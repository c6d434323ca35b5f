"""What each job plugin adds to pods, and which objects it keeps for a job."""

import base64
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from pumice.controllers.job.plugins import JOB_PLUGINS, flags, new_key_pair, plugins_of
from pumice.controllers.job.state import MOST_HOSTS
from tests.unit.controllers.job.stage import job, task


def stored(*tasks: Any) -> Any:
    manifest = job(*tasks)
    manifest["metadata"] |= {"namespace": "ns", "uid": "u"}
    return manifest


def pod(name: str = "w", index: int = 0, *, init: bool = False, **container: Any) -> Any:
    marks = {"volcano.sh/task-spec": name, "volcano.sh/task-index": str(index)}
    spec: Any = {"containers": [{"name": "main", **container}]}
    if init:
        spec["initContainers"] = [{"name": "first"}]
    return {"metadata": {"name": f"j-{name}-{index}", "annotations": marks}, "spec": spec}


def plugin(name: str, *arguments: str) -> Any:
    return JOB_PLUGINS[name](arguments, lambda: ("private", "public"))


def added(name: str, to: Any, manifest: Any, *arguments: str) -> Any:
    plugin(name, *arguments).on_pod_create(to, manifest)
    return to["spec"]


def values(container: Any) -> dict[str, Any]:
    return {one["name"]: one.get("value") for one in container.get("env", [])}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("-7", -7),
        ("+7", 7),
        ("9" * 19, int("9" * 19)),
        ("9" * 20, 1),
        ("٣", 1),
        ("x", 1),
        ("", 1),
    ],
)
def test_numbers_are_read_or_end_the_reading(text: str, number: int) -> None:
    assert flags([f"--n={text}"], {"n": 1}) == {"n": number}


@pytest.mark.parametrize(
    ("text", "read"),
    [("T", True), ("1", True), ("F", False), ("0", False), ("False", False), ("yes", None)],
)
@pytest.mark.parametrize("default", [True, False])
def test_switches_are_read_or_end_the_reading(text: str, read: Any, default: bool) -> None:
    assert flags([f"-s={text}"], {"s": default}) == {"s": default if read is None else read}


def test_plugins_are_made_in_their_own_order_and_an_unknown_one_is_named() -> None:
    manifest = stored()
    manifest["spec"]["plugins"] = {"zzz": [], "svc": ["--disable-network-policy"], "env": None}
    made, unknown = plugins_of(manifest, lambda: ("", ""))
    assert [one.name for one in made] == ["env", "svc"]
    assert made[1].flags["disable-network-policy"] is True
    assert unknown == "zzz"
    assert plugins_of(stored(), lambda: ("", "")) == ([], "")


def test_svc_keeps_a_host_name_that_was_given() -> None:
    one = pod()
    one["spec"] |= {"hostname": "h", "subdomain": "s"}
    spec = added("svc", one, stored())
    assert (spec["hostname"], spec["subdomain"]) == ("h", "s")


@pytest.mark.parametrize(
    ("port", "written"), [(1, 1), (65535, 65535), (65536, 22), (0, 22), (-1, 22)]
)
def test_ssh_lists_every_host_with_a_port_that_can_be(port: int, written: int) -> None:
    (secret,) = plugin("ssh", f"--ssh-port={port}").objects(stored(task("w", 2)))
    built = secret.build()
    texts = {name: base64.b64decode(text).decode() for name, text in built["data"].items()}
    hosts = "".join(
        f"Host j-w-{index}\n  HostName j-w-{index}.j\n  Port {written}\n" for index in range(2)
    )
    assert texts == {
        "id_rsa": "private",
        "id_rsa.pub": "public",
        "authorized_keys": "public",
        "config": f"StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n{hosts}",
    }
    assert built["type"] == "Opaque"


def test_pytorch_leaves_a_port_that_is_open() -> None:
    ports = [{"name": "mine", "containerPort": 23456}, {"containerPort": 1}]
    one = pod("master", ports=list(ports))
    (container,) = added("pytorch", one, stored(task("master", 1)))["containers"]
    assert container["ports"] == ports


@pytest.mark.parametrize(
    ("name", "enabled", "waits"),
    [
        ("worker", True, True),
        ("master", True, False),
        ("other", True, False),
        ("worker", False, False),
    ],
)
def test_pytorch_workers_may_wait_for_their_master(name: str, enabled: bool, waits: bool) -> None:
    manifest = stored(task("master", 1), task("worker", 3))
    arguments = ("--wait-master-enabled", "--wait-master-timeout=7") if enabled else ()
    one = pod(name)
    for _ in range(2):  # one that waits already gets no second one
        added("pytorch", one, manifest, *arguments)
    found = one["spec"].get("initContainers", [])
    assert [each["name"] for each in found] == (["wait-for-master"] if waits else [])
    if waits:
        assert found[0]["image"] == "busybox:1.36.1"
        assert "nc -z j-master-0.j 23456" in found[0]["command"][2]
        assert "TIMEOUT=7\n" in found[0]["command"][2]


@pytest.mark.parametrize(
    ("tasks", "is_configured"),
    [
        ([("worker", 1)], False),
        ([("worker", 2)], True),
        ([("worker", 1), ("ps", 1)], True),
    ],
)
def test_tensorflow_configures_more_than_one_pod(tasks: Any, is_configured: bool) -> None:
    manifest = stored(*(task(name, replicas) for name, replicas in tasks))
    (container,) = added("tensorflow", pod("worker"), manifest)["containers"]
    assert ("TF_CONFIG" in values(container)) == is_configured


def test_tensorflow_lists_no_more_hosts_than_fit() -> None:
    manifest = stored(task("worker", MOST_HOSTS + 1))
    (container,) = added("tensorflow", pod("worker"), manifest)["containers"]
    text = values(container)["TF_CONFIG"]
    assert f'"j-worker-{MOST_HOSTS - 1}.j:2222"]' in text


@pytest.mark.parametrize(("name", "opens"), [("master", False), ("other", True)])
def test_mpi_without_workers_leaves_the_master_alone(name: str, opens: bool) -> None:
    (container,) = added("mpi", pod(name), stored(task("master", 1)))["containers"]
    assert ("ports" in container) == opens
    assert values(container) == {}


@pytest.mark.parametrize(
    ("name", "container", "starts"),
    [
        ("head", "head", "--head"),
        ("head", "worker", None),
        ("worker", "worker", "--address"),
        ("worker", "head", None),
        ("other", "head", None),
        ("other", "worker", None),
    ],
)
def test_ray_starts_the_container_of_a_role_only(
    name: str, container: str, starts: str | None
) -> None:
    manifest = stored(task("head", 1), task("worker", 1), task("other", 1))
    one = pod(name)
    one["spec"]["containers"][0]["name"] = container
    (found,) = added("ray", one, manifest)["containers"]
    assert (starts is None) == ("command" not in found)
    assert starts is None or starts in found["command"][2]
    assert ("ports" in found) == (starts == "--head")


def test_hccl_ranks_workers_without_a_master_from_nought_and_keeps_a_rank() -> None:
    one = pod("worker", 3)
    for manifest in (stored(task("worker", 4)), stored(task("master", 9), task("worker", 4))):
        added("hcclrank", one, manifest)
        assert one["metadata"]["annotations"]["hccl/rankIndex"] == "3"


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


def test_pytorch_without_a_master_does_nothing() -> None:
    (container,) = added("pytorch", pod("worker"), stored(task("worker", 2)))["containers"]
    assert values(container) == {}


def test_ssh_uses_keys_that_were_brought_along() -> None:
    brought = plugin("ssh", "--ssh-private-key=mine", "--ssh-public-key=yours")
    data = brought.objects(stored(task("w", 1)))[0].build()["data"]
    texts = {name: base64.b64decode(text).decode() for name, text in data.items()}
    assert (texts["id_rsa"], texts["authorized_keys"]) == ("mine", "yours")


@pytest.mark.parametrize(
    ("name", "index", "variable", "rank"),
    [
        ("master", 0, None, "0"),
        ("master", 1, None, "1"),
        ("worker", 0, None, "2"),
        ("worker", 3, None, "5"),
        ("other", 0, None, None),
        ("other", 0, "8", "8"),
        ("worker", 0, "", "2"),
    ],
)
def test_hccl_ranks_masters_before_workers(
    name: str, index: int, variable: str | None, rank: str | None
) -> None:
    env = [{"name": "A", "value": "b"}]
    env += [] if variable is None else [{"name": "RANK", "value": variable}]
    one = pod(name, index, env=env)
    added("hcclrank", one, stored(task("master", 2), task("worker", 4)))
    assert one["metadata"]["annotations"].get("hccl/rankIndex") == rank
