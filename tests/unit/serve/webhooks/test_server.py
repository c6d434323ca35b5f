"""The webhook server: HTTPS in front of the rules, next to a cluster served in memory."""

import asyncio
import base64
import http.client
import io
import json
import ssl
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from pumice.apiserver.rest import RestApi
from pumice.apiserver.server import ApiServer
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import InputError, NotFoundError
from pumice.serve import http_server
from pumice.serve import webhooks as server
from pumice.serve.options import WebhookOptions
from pumice.serve.webhooks import (
    MAX_BODY,
    ClusterView,
    Reviewer,
    enabled_services,
    register,
    serve_webhooks,
    watch_certificate,
    watch_groups,
    webhook_app,
)
from pumice.webhooks.admission_review import answer_review
from pumice.webhooks.registry import SERVICES
from pumice.webhooks.review import Options
from tests.present import present

TLS = Path(__file__).parents[3] / "data" / "tls"
JOB: dict[str, Any] = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "j", "namespace": "default"},
    "spec": {"queue": "default", "tasks": [
        {"name": "w", "replicas": 1,
         "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
    ]},
}  # fmt: skip
QUEUES = "scheduling.volcano.sh/v1beta1"
JSON = {"Content-Type": "application/json"}


def review(
    manifest: Any,
    operation: str = "CREATE",
    resource: str = "jobs",
    group: str = "batch.volcano.sh/v1alpha1",
) -> Any:
    name, _, version = group.partition("/")
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "one",
            "operation": operation,
            "resource": {"group": name, "version": version, "resource": resource},
            "object": manifest,
        },
    }


@pytest.fixture
def cluster() -> Any:
    made = EmbeddedCluster()
    for name in ("root", "default"):
        made.create({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
                     "metadata": {"name": name}, "spec": {"weight": 1}})  # fmt: skip
        made.merge_status("Queue.scheduling.volcano.sh", "", name, {"state": "Open"})
    return made


def ask(cluster: Any, path: Any, body: Any, headers: Any = JSON, settings: Any = None) -> Any:
    """Send one request to the application; return status and text."""

    async def run() -> Any:
        options = settings or WebhookOptions()
        reviewer = Reviewer(ClusterView(cluster), options, watch_groups(""))
        async with TestClient(TestServer(webhook_app(reviewer, SERVICES.values()))) as client:
            answer = await client.post(path, data=body, headers=headers)
            return answer.status, await answer.text()

    return asyncio.run(run())


def response(cluster: Any, path: Any, manifest: Any, **settings: Any) -> Any:
    status, text = ask(cluster, path, json.dumps(review(manifest)), **settings)
    assert status == 200
    return json.loads(text)["response"]


def test_a_new_job_is_completed_by_a_patch(cluster: Any) -> None:
    answer = response(cluster, "/jobs/mutate", JOB)
    assert (answer["uid"], answer["allowed"], answer["patchType"]) == ("one", True, "JSONPatch")
    patch = json.loads(base64.b64decode(answer["patch"]))
    assert [change["path"] for change in patch] == [
        "/spec/schedulerName", "/spec/maxRetry", "/spec/tasks", "/spec/minAvailable",
    ]  # fmt: skip


def test_a_bad_job_is_denied_with_a_message(cluster: Any) -> None:
    bad = {**JOB, "spec": {**JOB["spec"], "queue": "nowhere"}}
    answer = response(cluster, "/jobs/validate", bad)
    assert answer["allowed"] is False
    assert answer["status"]["message"] == (
        'unable to find job queue: queue.scheduling.volcano.sh "nowhere" not found;'
    )


def queue(name: str, parent: str = "root") -> Any:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
            "metadata": {"name": name}, "spec": {"weight": 1, "parent": parent}}  # fmt: skip


def test_a_parent_that_was_made_a_moment_ago_is_asked_for(cluster: Any) -> None:
    """The copy that is followed lags behind; what is not in it may be there all the same."""
    unseen = {"team": queue("team")}

    def read(kind: str, namespace: str, name: str) -> Any:
        if name not in unseen:
            raise NotFoundError(kind, namespace, name)
        return unseen[name]

    def answer(parent: str) -> Any:
        request = review(queue("child", parent), resource="queues", group=QUEUES)
        text = answer_review(
            json.dumps(request).encode(),
            SERVICES["/queues/validate"],
            ClusterView(cluster, read),
            Options(),
        )
        return json.loads(text)["response"]

    assert answer("team")["allowed"]
    assert 'queue.scheduling.volcano.sh "gone" not found' in answer("gone")["status"]["message"]


def test_a_queue_that_was_made_a_moment_ago_can_be_deleted(cluster: Any) -> None:
    body = review(None, "DELETE", "queues", QUEUES)
    body["request"] |= {"name": "new", "oldObject": queue("new")}
    answer = json.loads(ask(cluster, "/queues/validate", json.dumps(body))[1])["response"]
    assert answer["allowed"], answer
    cluster.create(queue("below", "new"))
    answer = json.loads(ask(cluster, "/queues/validate", json.dumps(body))[1])["response"]
    assert "it has 1 child queues: below" in answer["status"]["message"]


def test_the_options_decide(cluster: Any) -> None:
    answer = response(
        cluster, "/jobs/mutate", JOB, settings=WebhookOptions(scheduler_name=("mine", "other"))
    )
    assert {"op": "add", "path": "/spec/schedulerName", "value": "mine"} in json.loads(
        base64.b64decode(answer["patch"])
    )


def test_another_resource_is_refused(cluster: Any) -> None:
    body = json.dumps(review(JOB, resource="pods", group="/v1"))
    message = json.loads(ask(cluster, "/jobs/validate", body)[1])["response"]["status"]["message"]
    assert message == "expect resource to be batch.volcano.sh/v1alpha1, Resource=jobs"


@pytest.mark.parametrize("body", ["", "{", "[]", "null", '{"request": 1}', "[" * 100_000])
def test_what_is_no_review_is_denied_with_a_message(cluster: Any, body: Any) -> None:
    status, text = ask(cluster, "/jobs/validate", body)
    answer = json.loads(text)["response"]
    assert (status, answer["allowed"]) == (200, False)
    assert answer["status"]["message"]


def test_another_content_type_gets_an_empty_answer_as_from_volcano(cluster: Any) -> None:
    body = json.dumps(review(JOB))
    assert ask(cluster, "/jobs/validate", body, {"Content-Type": "text/plain"}) == (200, "")


def test_a_body_that_says_it_is_too_large_is_not_read(cluster: Any) -> None:
    assert ask(cluster, "/jobs/validate", io.BytesIO(b"x" * (MAX_BODY + 1))) == (
        413, "request body too large\n",
    )  # fmt: skip


def test_a_body_that_turns_out_too_large_is_cut_off_while_it_is_read(cluster: Any) -> None:
    sent = 0

    async def chunks() -> AsyncIterator[Any]:
        nonlocal sent
        for _ in range(1000):
            sent += 1
            yield b"x" * 65536

    async def run() -> Any:
        reviewer = Reviewer(ClusterView(cluster), WebhookOptions(), watch_groups(""))
        async with TestClient(TestServer(webhook_app(reviewer, SERVICES.values()))) as client:
            answer = await client.post("/jobs/validate", data=chunks(), headers=JSON)
            return answer.status

    assert asyncio.run(run()) == 413
    assert sent < 500  # the socket takes some of it before the answer is read


def test_a_body_that_takes_too_long_is_given_up(cluster: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(http_server, "BODY_TIMEOUT_S", 0.05)

    async def chunks() -> AsyncIterator[Any]:
        yield b"{"
        await asyncio.sleep(1)
        yield b"}"

    async def run() -> Any:
        reviewer = Reviewer(ClusterView(cluster), WebhookOptions(), watch_groups(""))
        async with TestClient(TestServer(webhook_app(reviewer, SERVICES.values()))) as client:
            answer = await client.post("/jobs/validate", data=chunks(), headers=JSON)
            return answer.status

    assert asyncio.run(run()) == 408


def test_paths_that_do_not_exist_cannot_be_enabled() -> None:
    assert [one.path for one in enabled_services(" /jobs/mutate, ,/pods/validate ")] == [
        "/jobs/mutate", "/pods/validate",
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"enabled-admission.*'/jobs/eat'"):
        enabled_services("/jobs/eat")
    with pytest.raises(InputError, match=r"did you mean '/jobs/validate'\?"):
        enabled_services("/jobs/mutate,/job/validate")


def test_groups_are_read_again_and_a_bad_file_leaves_the_last_good_one(tmp_path: Path) -> None:
    file = tmp_path / "conf.yaml"
    file.write_text("resourceGroups: [{resourceGroup: a, labels: {x: y}}]")
    watched = watch_groups(str(file))
    assert [one.name for one in present(watched.current)] == ["a"]
    for text, names in (("resourceGroups: [{resourceGroup: bb}]", ["bb"]), ("a: [", ["bb"])):
        file.write_text(text)
        watched.refresh()
        assert [one.name for one in present(watched.current)] == names
    file.unlink()
    watched.refresh()
    assert [one.name for one in present(watched.current)] == ["bb"]


def test_without_a_certificate_nothing_is_served(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="tls-cert-file"):
        watch_certificate("", "")
    (tmp_path / "bad.pem").write_text("no certificate")
    with pytest.raises(InputError, match="certificate and its key"):
        watch_certificate(str(tmp_path / "bad.pem"), str(TLS / "key.pem"))
    with pytest.raises(InputError, match="webhook-url"):
        serve_webhooks(WebhookOptions(), threading.Event())


KIND = "ValidatingWebhookConfiguration.admissionregistration.k8s.io"
NAME = "volcano-admission-service-jobs-validate"


def test_the_certificate_is_written_into_the_configuration_of_the_installation(
    cluster: Any,
) -> None:
    service = SERVICES["/jobs/validate"]
    reported: dict[str, Any] = {"ca_bundle": b"CA", "service_name": "", "url": ""}
    assert not register(cluster, service, **reported)  # not there yet
    hook = {"name": service.name, "clientConfig": {"service": {"name": "s"}}}
    cluster.create({"apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": "ValidatingWebhookConfiguration",
                    "metadata": {"name": NAME}, "webhooks": [hook]})  # fmt: skip
    assert register(cluster, service, **reported)
    written = cluster.get(KIND, "", NAME)
    assert written["webhooks"] == [
        {**hook, "clientConfig": {"service": {"name": "s"}, "caBundle": "Q0E="}}
    ]
    assert register(cluster, service, **reported)
    again = cluster.get(KIND, "", NAME)["metadata"]["resourceVersion"]
    assert again == written["metadata"]["resourceVersion"]


def test_with_an_address_of_its_own_a_configuration_is_made(cluster: Any) -> None:
    reported: dict[str, Any] = {
        "ca_bundle": b"CA",
        "service_name": "",
        "url": "https://127.0.0.1:1/",
    }
    assert register(cluster, SERVICES["/jobs/validate"], **reported)
    hook = cluster.get(KIND, "", NAME)["webhooks"][0]
    assert hook["clientConfig"]["url"] == "https://127.0.0.1:1/jobs/validate"
    assert hook["rules"][0]["operations"] == ["CREATE", "UPDATE"]
    assert hook["namespaceSelector"]["matchExpressions"][0]["values"] == [
        "volcano-system", "kube-system",
    ]  # fmt: skip


def free_port() -> Any:
    import socket  # noqa: PLC0415

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_served_over_https_against_a_cluster(cluster: Any) -> None:
    """The whole process: follow queues, register, answer, stop."""
    api = ApiServer(RestApi(cluster, lambda: None), port=0)
    api.start()
    port, stop = free_port(), threading.Event()
    options = WebhookOptions(
        master=api.url,
        listen_address="127.0.0.1",
        port=port,
        webhook_url=f"https://127.0.0.1:{port}",
        ca_cert_file=str(TLS / "cert.pem"),
        tls_cert_file=str(TLS / "cert.pem"),
        tls_private_key_file=str(TLS / "key.pem"),
        graceful_shutdown_time_s=0.2,
    )
    thread = threading.Thread(target=serve_webhooks, args=(options, stop))
    thread.start()
    try:
        tls = ssl.create_default_context(cafile=str(TLS / "cert.pem"))
        answer = until_answered(port, tls, "/jobs/validate", json.dumps(review(JOB)))
        assert json.loads(answer)["response"]["allowed"] is True
        healthy = http.client.HTTPSConnection("127.0.0.1", port, context=tls, timeout=10)
        healthy.request("GET", "/healthz")
        assert healthy.getresponse().read() == b"ok"
        healthy.close()
    finally:
        stop.set()
        thread.join(20)
        api.stop()
    assert not thread.is_alive()
    assert cluster.get(KIND, "", NAME)["webhooks"][0]["clientConfig"]["caBundle"]


def until_answered(port: Any, tls: Any, path: Any, body: Any) -> Any:
    """Ask until the server listens."""
    pause = threading.Event()
    for _ in range(200):
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=tls, timeout=10)
        try:
            connection.request("POST", path, body, JSON)
            return connection.getresponse().read()
        except OSError:
            pause.wait(0.1)
        finally:
            connection.close()
    raise AssertionError("nobody listens")


def test_reviews_of_one_kind_leave_threads_for_others(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many jobs hang in their review, a queue is answered."""
    go_on = threading.Event()
    answered = answer_review

    def slow(body: bytes, service: Any, *rest: Any) -> bytes:
        if service.kind == "Job.batch.volcano.sh":
            go_on.wait(20.0)
        return answered(body, service, *rest)

    monkeypatch.setattr(server, "answer_review", slow)
    jobs, queue = json.dumps(review(JOB)), review({"metadata": {"name": "q"}}, resource="queues")
    queue["request"]["resource"]["group"] = "scheduling.volcano.sh"
    queue["request"]["resource"]["version"] = "v1beta1"

    async def run() -> Any:
        reviewer = Reviewer(ClusterView(cluster), WebhookOptions(), watch_groups(""))
        async with TestClient(TestServer(webhook_app(reviewer, SERVICES.values()))) as client:
            hanging = [
                asyncio.create_task(client.post("/jobs/validate", data=jobs, headers=JSON))
                for _ in range(20)
            ]
            await asyncio.sleep(0.1)
            async with asyncio.timeout(10.0):
                found = await client.post("/queues/mutate", json=queue, headers=JSON)
                text = await found.text()
            go_on.set()
            await asyncio.gather(*hanging)
            return json.loads(text)["response"]["allowed"]

    assert asyncio.run(run()) is True
