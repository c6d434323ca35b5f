"""Clients of other projects against `pumice up`: what they read, write and watch."""

import asyncio
import gc
import json
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.up_process import Program, program, running_cluster

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore:::(kubernetes|kubernetes_asyncio|kr8s|kopf|lightkube)"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
HELM = program("helm")
LAMPS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "lamps.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "lamps", "kind": "Lamp", "singular": "lamp"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"colour": {"type": "string"}},
                            },
                            "status": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            },
                        },
                    }
                },
            }
        ],
    },
}
LAMP = {
    "apiVersion": "example.com/v1",
    "kind": "Lamp",
    "metadata": {"name": "one", "namespace": "default"},
    "spec": {"colour": "red"},
}


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    file = tmp_path_factory.mktemp("home") / "kubeconfig"
    with running_cluster(file, "--no-ui", "--default-scheduler"):
        yield file


def until(ask: Callable[[], Any], what: str) -> Any:
    """Ask until there is an answer."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if answer := ask():
            return answer
        time.sleep(0.05)
    raise AssertionError(f"no {what} within 30 s")


def deployment(name: str, replicas: int) -> Any:
    labels = {"app": name}
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


@pytest.fixture
def official(kubeconfig: Path) -> Any:
    kubernetes = pytest.importorskip("kubernetes")
    kubernetes.config.load_kube_config(str(kubeconfig))
    return kubernetes


def test_the_official_client_reads_what_runs(official: Any) -> None:
    core, apps = official.client.CoreV1Api(), official.client.AppsV1Api()
    apps.create_namespaced_deployment("default", deployment("read", 3))
    found = until(
        lambda: apps.read_namespaced_deployment("read", "default").status.ready_replicas == 3,
        "ready replicas",
    )
    assert found
    pods = core.list_namespaced_pod("default", label_selector="app=read").items
    assert [pod.status.container_statuses[0].image_id for pod in pods] == ["busybox"] * 3
    assert len({pod.status.pod_ip for pod in pods}) == 3
    nodes = {node.metadata.name: node for node in core.list_node().items}
    node = nodes[pods[0].spec.node_name]
    assert node.status.node_info.operating_system == "linux"
    assert pods[0].status.host_ip == node.status.addresses[0].address
    assert node.metadata.labels["kubernetes.io/arch"] == "amd64"
    apps.patch_namespaced_deployment_scale("read", "default", {"spec": {"replicas": 1}})
    until(
        lambda: len(core.list_namespaced_pod("default", label_selector="app=read").items) == 1,
        "single pod",
    )
    apps.delete_namespaced_deployment("read", "default")


def test_the_official_client_watches_asks_and_runs_jobs(official: Any) -> None:
    client = official.client
    job = {
        "metadata": {"name": "sum"},
        "spec": {
            "completions": 2,
            "parallelism": 2,
            "template": {
                "metadata": {"annotations": {"pumice.dev/run-seconds": "1"}},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "c", "image": "busybox"}],
                },
            },
        },
    }
    batch = client.BatchV1Api()
    batch.create_namespaced_job("default", job)
    for event in official.watch.Watch().stream(
        batch.list_namespaced_job, "default", timeout_seconds=30
    ):
        if event["object"].status.succeeded == 2:
            break
    assert batch.read_namespaced_job("sum", "default").status.completion_time
    assert client.EventsV1Api().list_namespaced_event("default").items
    asked = client.V1SelfSubjectAccessReview(
        spec={"resourceAttributes": {"verb": "get", "resource": "pods"}}
    )
    rights = client.AuthorizationV1Api()
    assert rights.create_self_subject_access_review(asked).status.allowed
    batch.delete_namespaced_job("sum", "default", propagation_policy="Background")


def test_the_dynamic_client_serves_kinds_that_are_defined(official: Any) -> None:
    dynamic = official.dynamic.DynamicClient(official.client.ApiClient())
    definitions = dynamic.resources.get(kind="CustomResourceDefinition")
    definitions.create(body=LAMPS)
    lamps = until(
        lambda: dynamic.resources.search(api_version="example.com/v1", kind="Lamp"), "new kind"
    )[0]
    lamps.create(body=LAMP)
    assert lamps.get(name="one", namespace="default").spec.colour == "red"
    definitions.delete(name="lamps.example.com")
    until(lambda: not definitions.get().items, "end of the kind")


def test_kubernetes_asyncio_lists_and_watches(kubeconfig: Path) -> None:
    kubernetes = pytest.importorskip("kubernetes_asyncio")

    async def seen() -> tuple[set[str], list[str]]:
        await kubernetes.config.load_kube_config(str(kubeconfig))
        async with kubernetes.client.ApiClient() as api:
            core = kubernetes.client.CoreV1Api(api)
            body = {"metadata": {"name": "async"}, "data": {"a": "b"}}
            await core.create_namespaced_config_map("default", body)
            async with kubernetes.watch.Watch() as watch:
                stream = watch.stream(core.list_namespaced_config_map, "default", timeout_seconds=1)
                names = [event["object"].metadata.name async for event in stream]
            nodes = await core.list_node()
            return {node.status.node_info.architecture for node in nodes.items}, names

    systems, names = asyncio.run(seen())
    assert (systems, "async" in names) == ({"amd64"}, True)


def test_lightkube_applies_and_waits(kubeconfig: Path) -> None:
    lightkube = pytest.importorskip("lightkube")
    from lightkube.codecs import from_dict  # noqa: PLC0415
    from lightkube.resources.apps_v1 import Deployment  # noqa: PLC0415
    from lightkube.resources.core_v1 import Node, Pod  # noqa: PLC0415

    config = lightkube.KubeConfig.from_file(kubeconfig)
    client = lightkube.Client(config=config, field_manager="tests")
    assert {node.status.nodeInfo.osImage for node in client.list(Node)} == {"simulated"}
    client.apply(from_dict(deployment("light", 2)))
    client.wait(Deployment, "light", for_conditions=["Available"])
    pods = until(lambda: [*client.list(Pod, labels={"app": "light"})], "pods")
    assert len(pods) == 2
    client.delete(Deployment, "light")


KR8S = """
import json
import sys

import kr8s
from kr8s.objects import Deployment, Pod

api = kr8s.api()
spec = {"containers": [{"name": "c", "image": "busybox"}]}
pod = Pod({"metadata": {"name": "kr8s", "namespace": "default"}, "spec": spec}, api=api)
pod.create()
pod.wait("condition=Ready", timeout=20)
pod.delete()
made = Deployment(json.load(sys.stdin), api=api)
made.create()
made.scale(2)
assert made.replicas == 2
made.delete()
print("done")
"""


def test_kr8s_creates_pods_and_scales(kubeconfig: Path, tmp_path: Path) -> None:
    pytest.importorskip("kr8s")  # apart, since it leaves connections open
    python = Program(sys.executable, tmp_path, kubeconfig)
    assert python("-c", KR8S, given=json.dumps(deployment("kr8s", 1))) == "done\n"


@pytest.fixture(autouse=True)
def left_connections() -> Iterator[None]:
    """Drop the connections that clients leave open here, not in a test that comes later."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


OPERATOR = """
import kopf


@kopf.on.create("example.com", "v1", "lamps")
def created(spec, **_):
    return {"lit": spec["colour"]}


@kopf.on.delete("example.com", "v1", "lamps")
def deleted(**_):
    pass
"""


def test_an_operator_of_kopf_handles_objects_of_its_kind(
    kubeconfig: Path, official: Any, tmp_path: Path
) -> None:
    pytest.importorskip("kopf")
    (tmp_path / "operator.py").write_text(OPERATOR)
    python = Program(sys.executable, tmp_path, kubeconfig)
    client = official.client
    definitions, custom = client.ApiextensionsV1Api(), client.CustomObjectsApi()
    definitions.create_custom_resource_definition(LAMPS)
    place = ("example.com", "v1", "default", "lamps")
    custom.create_namespaced_custom_object(*place, LAMP)
    operator = python.start("-m", "kopf", "run", "-n", "default", str(tmp_path / "operator.py"))
    try:
        found = until(
            lambda: custom.get_namespaced_custom_object(*place, "one").get("status"), "status"
        )
        assert found == {"created": {"lit": "red"}}
        custom.delete_namespaced_custom_object(*place, "one")
        until(lambda: not custom.list_namespaced_custom_object(*place)["items"], "deletion")
    finally:
        operator.terminate()
        operator.communicate(timeout=30)
        definitions.delete_custom_resource_definition("lamps.example.com")


@pytest.mark.skipif(HELM is None, reason="helm is neither on the PATH nor built by make e2e")
def test_helm_installs_upgrades_and_uninstalls(kubeconfig: Path, tmp_path: Path) -> None:
    helm = Program(str(HELM), tmp_path, kubeconfig)
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: shop, version: 0.1.0}\n")
    (chart / "values.yaml").write_text("replicas: 1\n")
    (chart / "templates/all.yaml").write_text(
        textwrap.dedent(
            """\
            apiVersion: apps/v1
            kind: Deployment
            metadata: {name: "{{ .Release.Name }}"}
            spec:
              replicas: {{ .Values.replicas }}
              selector: {matchLabels: {app: shop}}
              template:
                metadata: {labels: {app: shop}}
                spec: {containers: [{name: c, image: busybox}]}
            ---
            apiVersion: v1
            kind: Service
            metadata: {name: "{{ .Release.Name }}"}
            spec: {selector: {app: shop}, ports: [{port: 80}]}
            """
        )
    )
    wait = ("--wait", "--timeout", "30s")
    assert "STATUS: deployed" in helm("install", "shop", str(chart), *wait)
    assert "REVISION: 2" in helm("upgrade", "shop", str(chart), "--set", "replicas=2", *wait)
    assert "Rollback was a success" in helm("rollback", "shop", "1", *wait)
    assert "uninstalled" in helm("uninstall", "shop", *wait)
