"""Fields that a kind does not have: refused, warned about or ignored, as the client asks."""

import json
from http.client import HTTPConnection
from typing import Any

import pytest

from pumice.apiserver.rest import Request, RestApi
from pumice.apiserver.server import ApiServer
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.webhooks.embedded import EmbeddedAdmission

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
NODES = "/api/v1/nodes"
MERGE = "application/merge-patch+json"
NOT_A_JOB = 'Job in version "v1alpha1" cannot be handled as a Job'
WHERE = "spec.tasks[0].template.spec.continers"


def job(**spec: Any) -> Any:
    containers = [{"name": "c", "image": "busybox"}]
    task = {"name": "w", "template": {"spec": {"containers": containers, **spec}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"tasks": [task]},
    }


def queue() -> Any:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "default"},
        "spec": {"weight": 1},
    }


@pytest.fixture
def api() -> RestApi:
    cluster = EmbeddedCluster(VirtualClock())
    cluster.admission = EmbeddedAdmission(cluster)
    cluster.create(queue())
    return RestApi(cluster)


def ask(
    api: Any, method: str, path: str, body: Any, level: str = "", kind: str = "application/json"
) -> Any:
    query = {"fieldValidation": level} if level else {}
    return api.answer(
        Request(method, path, query, content_type=kind, body=json.dumps(body).encode())
    )


def test_strictly_an_unknown_field_of_a_pod_is_refused(api: Any) -> None:
    answer = ask(api, "POST", JOBS, job(continers=[]), "Strict")
    assert (answer.code, answer.content["reason"], answer.content["message"]) == (
        400,
        "BadRequest",
        f'{NOT_A_JOB}: strict decoding error: unknown field "{WHERE}"',
    )
    assert api.cluster.list("Job.batch.volcano.sh")[0] == []


def test_all_unknown_fields_are_named(api: Any) -> None:
    wrong = job(continers=[])
    wrong["metadata"]["labelz"] = {}
    wrong["specs"] = {}
    message = ask(api, "POST", JOBS, wrong, "Strict").content["message"]
    names = ("metadata.labelz", WHERE, "specs")
    assert message.endswith(", ".join(f'unknown field "{name}"' for name in names))


@pytest.mark.parametrize(("level", "warnings"), [("", True), ("Warn", True), ("Ignore", False)])
def test_otherwise_it_is_dropped_with_or_without_a_warning(
    api: Any, level: str, warnings: Any
) -> None:
    answer = ask(api, "POST", JOBS, job(continers=[]), level)
    assert answer.code == 201
    assert list(answer.warnings) == ([f'unknown field "{WHERE}"'] if warnings else [])
    stored = api.cluster.list("Job.batch.volcano.sh")[0][0]
    assert "continers" not in stored["spec"]["tasks"][0]["template"]["spec"]


def test_a_patch_is_judged_by_what_it_makes_of_the_object(api: Any) -> None:
    assert ask(api, "POST", JOBS, job(), "Strict").code == 201
    wrong = {"spec": {"minAvailabel": 1}}
    answer = ask(api, "PATCH", f"{JOBS}/j", wrong, "Strict", MERGE)
    assert (answer.code, WHERE in str(answer.content)) == (400, False)
    assert 'unknown field "spec.minAvailabel"' in answer.content["message"]
    taken_off = {"spec": {"minAvailabel": None}, "metadata": {"labels": {"a": "b"}}}
    assert ask(api, "PATCH", f"{JOBS}/j", taken_off, "Strict", MERGE).code == 200


def test_kinds_that_are_declared_in_part_are_not_judged(api: Any) -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "spec": {"configSource": {}},
    }
    assert ask(api, "POST", NODES, node, "Strict").code == 201


def test_an_unknown_level_is_refused(api: Any) -> None:
    answer = ask(api, "POST", JOBS, job(), "Loud")
    assert (answer.code, answer.content["reason"]) == (422, "Invalid")
    assert 'Unsupported value: "Loud"' in answer.content["message"]


def test_warnings_travel_in_headers(api: Any) -> None:
    server = ApiServer(api)
    server.start()
    connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        body = json.dumps(job(continérs=[])).encode()
        connection.request("POST", JOBS, body, {"Content-Type": "application/json"})
        reported = connection.getresponse().headers.get_all("Warning")
    finally:
        connection.close()
        server.stop()
    assert reported == [r'299 - "unknown field \"spec.tasks[0].template.spec.contin\xe9rs\""']
