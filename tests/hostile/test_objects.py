"""Objects written to do harm: the embedded cluster refuses them, or lives with them."""

import json
import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pumice.api.kinds import BUILT_IN
from pumice.api.objects import TYPES
from pumice.api.schema.grammar import notation_of
from pumice.apiserver import rest
from pumice.apiserver.rest import Request
from pumice.apiserver.served_cluster import ServedCluster
from pumice.apiserver.server import _response
from tests.hostile.objects import REFUSED, objects

PATHS = {
    "ConfigMap": "/api/v1/namespaces/default/configmaps",
    "Job": "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs",
    "LimitRange": "/api/v1/namespaces/default/limitranges",
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "PersistentVolumeClaim": "/api/v1/namespaces/default/persistentvolumeclaims",
    "Pod": "/api/v1/namespaces/default/pods",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "PodGroup": "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "Queue": "/apis/scheduling.volcano.sh/v1beta1/queues",
    "ResourceQuota": "/api/v1/namespaces/default/resourcequotas",
    "Service": "/api/v1/namespaces/default/services",
}
GOOD = {"ConfigMap": {"data": {"a": "b"}}, "Namespace": {}, "Queue": {"spec": {"weight": 1}}}


class Client:
    """Talks to a cluster that is served, without a socket."""

    def __init__(self) -> None:
        self.served = ServedCluster()
        self.served.add_nodes(1, {"cpu": "4", "memory": "8Gi"})
        self.plane = self.served.plane

    def send(self, method: str, path: str, body: bytes = b"", kind: str = "") -> tuple[int, Any]:
        answer = self.served.api.answer(Request(method, path, body=body, content_type=kind or JSON))
        return answer.code, json.loads(_response(answer).body)  # type: ignore[arg-type]

    def close(self) -> None:
        self.served.stop()


JSON = "application/json"
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def client() -> Any:
    made = Client()
    yield made
    made.close()


@pytest.mark.parametrize("case", REFUSED)
def test_what_an_api_server_refuses_is_refused(client: Client, case: str) -> None:
    kind, text = REFUSED[case]
    code, said = client.send("POST", PATHS[kind], text.encode())
    assert code in (400, 422), said
    assert said["kind"] == "Status"
    webhook = said["message"].startswith("admission webhook")  # whose refusals have no reason
    assert said.get("reason") in ((None,) if webhook else ("BadRequest", "Invalid"))
    assert client.send("GET", PATHS[kind])[0] == 200
    client.plane.step()


@pytest.mark.parametrize("kind", GOOD)
def test_what_is_right_is_taken(client: Client, kind: str) -> None:
    version = "scheduling.volcano.sh/v1beta1" if kind == "Queue" else "v1"
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": "good"}, **GOOD[kind]}  # type: ignore[dict-item]
    code, said = client.send("POST", PATHS[kind], json.dumps(body).encode())
    assert code == 201, said


def test_a_status_of_wrong_types_is_refused(client: Client) -> None:
    for patch in ({"status": {"conditions": 5}}, {"status": {"allocatable": {"cpu": [1]}}}):
        path = f"{PATHS['Node']}/node-1/status"
        code, said = client.send("PATCH", path, json.dumps(patch).encode(), MERGE)
        assert code == 400, said
    client.plane.step()


_CLAIM = "ResourceClaim resourceclaims default"
_SLICE = {"driver": "d", "pool": {"name": "p"}}


def asking(request: Any) -> Any:
    """Return what a claim with one request asks for."""
    return {"devices": {"requests": [request]}}


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        *(("Job jobs default", spec) for spec in ("x", 5, [1], {"template": {"spec": "x"}})),
        ("NetworkPolicy networkpolicies default", "x"),
        ("DeviceClass deviceclasses", {"selectors": [{"cel": {"expression": 5}}]}),
        ("ResourceSlice resourceslices", {**_SLICE, "devices": {"a": 1}}),
        ("ResourceSlice resourceslices", {**_SLICE, "pool": "x"}),
        ("ResourceSlice resourceslices", {"driver": "d"}),
        ("ResourceClaimTemplate resourceclaimtemplates default", {"spec": {"devices": [1]}}),
        (_CLAIM, "x"),
        (_CLAIM, asking({"name": 5})),
        (_CLAIM, asking({"name": "a"})),
        (_CLAIM, asking({"name": "A b", "exactly": {"deviceClassName": "gpu"}})),
        (_CLAIM, asking({"name": "a", "exactly": {"count": 1}})),
        (_CLAIM, asking({"name": "a", "exactly": {"deviceClassName": "gpu", "count": "many"}})),
        (_CLAIM, asking({"name": "a", "exactly": {"deviceClassName": "gpu", "count": -3}})),
        (_CLAIM, {"devices": {"constraints": [{"matchAttribute": 3}]}}),
    ],
)
def test_an_object_of_wrong_types_is_refused(client: Client, kind: str, spec: Any) -> None:
    name, plural, *namespace = kind.split()
    group = {"Job": "batch", "NetworkPolicy": "networking.k8s.io"}.get(name, "resource.k8s.io")
    where = "".join(f"namespaces/{each}/" for each in namespace)
    body = {"apiVersion": f"{group}/v1", "kind": name, "metadata": {"name": "bad"}, "spec": spec}
    path = f"/apis/{group}/v1/{where}{plural}"
    code, said = client.send("POST", path, json.dumps(body).encode())
    assert code in (400, 422), said
    client.plane.step()


def test_the_types_of_all_kinds_that_are_read_are_declared() -> None:
    read = [kind for kind in BUILT_IN if kind.name in TYPES]
    assert len(read) == len(TYPES)
    assert not [kind.name for kind in read if "AnyObject" in notation_of(kind.group, kind.kind)]


def test_an_object_of_very_many_parts_is_refused_at_once(client: Client) -> None:
    started = time.process_time()
    body = b'{"metadata": {"name": "a"}, "spec": {"containers": [%s{}]}}' % (b"{}," * 800_000)
    assert client.send("POST", PATHS["Pod"], body)[0] == 413
    assert time.process_time() - started < 2


def test_an_answer_lists_no_more_faults_than_anybody_reads(client: Client) -> None:
    pod = {"containers": [{"name": "c", "image": "i"}], "tolerations": [{"key": "!"}] * 2000}
    body = json.dumps({"metadata": {"name": "a"}, "spec": pod}).encode()
    code, said = client.send("POST", PATHS["Pod"], body)
    assert (code, len(said["details"]["causes"])) == (422, 100)
    assert len(said["message"]) < 4000
    long = json.dumps({"metadata": {"name": "a" * 1_000_000}}).encode()
    code, said = client.send("POST", PATHS["ConfigMap"], long)
    assert code == 422
    assert len(json.dumps(said)) < 300_000


def test_a_request_takes_bounded_processor_time(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "_REQUEST_S", 0.02)
    tasks = [{"name": f"t{i}", "replicas": 1, "template": {}} for i in range(3000)]
    body = json.dumps({"metadata": {"name": "a"}, "spec": {"tasks": tasks}}).encode()
    code, said = client.send("POST", PATHS["Job"], body)
    assert (code, said["message"][:24]) == (413, "the object is too large:")


def test_a_warning_is_one_header(client: Client) -> None:
    pod = {"containers": [{"name": "c", "image": "i"}], 'a\r\n"Set-Cookie: x\u2028': 1}
    body = json.dumps({"metadata": {"name": "warned"}, "spec": pod}).encode()
    answer = client.served.api.answer(Request("POST", PATHS["Pod"], body=body))
    [header] = _response(answer).headers.getall("Warning")
    assert header == r'''299 - "unknown field \"spec.a\r\n\"Set-Cookie: x\u2028\""'''


def test_labels_that_are_null_are_none(client: Client) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": None}}
    code, said = client.send("POST", PATHS["Namespace"], json.dumps(namespace).encode())
    assert code == 201, said
    assert said["metadata"]["labels"] == {"kubernetes.io/metadata.name": "n"}


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"5"])
def test_an_apply_of_no_object_is_refused(client: Client, body: bytes) -> None:
    path, kind = f"{PATHS['ConfigMap']}/good", "application/apply-patch+yaml"
    code, said = client.send("PATCH", path, body, kind)
    assert code == 400
    assert "expected an object" in said["message"]


@settings(max_examples=60)
@given(st.data())
def test_no_object_ends_the_cluster(data: st.DataObject) -> None:
    client = Client()
    try:
        for number in range(data.draw(st.integers(1, 6))):
            kind, manifest = data.draw(objects(PATHS))
            manifest["metadata"].setdefault("name", f"o{number}")
            body = json.dumps(manifest).encode()
            code, said = client.send("POST", PATHS[kind], body)
            assert code in (201, 400, 403, 404, 409, 422), (kind, manifest, said)
            assert client.send("GET", PATHS[kind])[0] == 200
            patched, said = client.send("PATCH", f"{PATHS[kind]}/o{number}", body, MERGE)
            assert patched in (200, 400, 404, 409, 422), (kind, manifest, said)
        client.plane.step()
        client.plane.step()
    finally:
        client.close()


BODIES = st.one_of(
    st.binary(max_size=60),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["apiVersion", "kind", "metadata", "spec", "status", "items", "x"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=8,
    ).map(lambda value: json.dumps(value).encode()),
)


@settings(max_examples=150)
@given(
    st.sampled_from(["POST", "PUT", "PATCH", "DELETE"]),
    st.sampled_from(sorted(PATHS)),
    st.sampled_from(["", "/good", "/node-1", "/default", "/good/status", "/good/scale"]),
    st.sampled_from([JSON, MERGE, "application/json-patch+json", "application/apply-patch+yaml",
                     "application/strategic-merge-patch+json", "application/yaml"]),
    BODIES,
)  # fmt: skip
@example("POST", "Pod", "/good/binding", JSON, b'{"target": 5}')
@example("DELETE", "Pod", "/good", JSON, b"[1]")
def test_no_request_is_an_internal_error(
    method: str, kind: str, rest: str, content: str, body: bytes
) -> None:
    client = Client()
    try:
        code, said = client.send(method, f"{PATHS[kind]}{rest}", body, content)
        assert code != 500, said
    finally:
        client.close()
