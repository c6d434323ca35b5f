"""Kinds that clients define: their objects are served, completed, checked and deleted with them."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from pumice.apiserver.rest import Request
from pumice.apiserver.served_cluster import ServedCluster

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LAMPS = "/apis/example.com/v1/namespaces/default/lamps"
MERGE = "application/merge-patch+json"
SPEC = {
    "type": "object",
    "required": ["colour"],
    "properties": {
        "colour": {"type": "string", "enum": ["red", "green"]},
        "power": {"type": "integer", "minimum": 1, "default": 40},
        "ratio": {"type": "number"},
        "label": {"type": "string", "pattern": "^[a-z]+$"},
        "replicas": {"type": "integer"},
        "port": {"x-kubernetes-int-or-string": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


def version(name: str = "v1", **more: Any) -> Any:
    schema = {
        "type": "object",
        "properties": {
            "spec": SPEC,
            "status": {"type": "object", "properties": {"on": {"type": "boolean"}}},
        },
    }
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    return {
        "name": name,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale},
        "additionalPrinterColumns": [
            {"name": "Colour", "type": "string", "jsonPath": ".spec.colour"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        **more,
    }


def definition(*versions: Any, **names: Any) -> Any:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "lamps.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "lamps", "kind": "Lamp", "shortNames": ["lp"], **names},
            "versions": [*versions] or [version()],
        },
    }


def lamp(name: str = "a", **spec: Any) -> Any:
    made = {"colour": "red", **spec}
    return {
        "apiVersion": "example.com/v1",
        "kind": "Lamp",
        "metadata": {"name": name},
        "spec": made,
    }


class Client:
    """Asks the API of a served cluster."""

    def __init__(self, served: ServedCluster) -> None:
        self.served = served

    def __call__(
        self, method: str, path: str, body: Any = None, *, kind: str = "", accept: str = ""
    ) -> tuple[int, Any]:
        path, _, query = path.partition("?")
        pairs = dict(pair.split("=", 1) for pair in query.split("&") if pair)
        data = b"" if body is None else json.dumps(body).encode()
        types = accept or "application/json", kind or "application/json"
        answer = self.served.api.answer(Request(method, path, pairs, *types, data))
        return answer.code, answer.content


@pytest.fixture
def ask() -> Iterator[Client]:
    served = ServedCluster()
    yield Client(served)
    served.stop()


@pytest.fixture
def lamps(ask: Client) -> Client:
    assert ask("POST", CRDS, definition())[0] == 201
    return ask


def test_a_new_kind_is_served_at_once(ask: Client) -> None:
    assert ask("GET", LAMPS)[0] == 404
    code, made = ask("POST", CRDS, definition())
    states = {one["type"]: one["status"] for one in made["status"]["conditions"]}
    assert (code, states) == (201, {"NamesAccepted": "True", "Established": "True"})
    assert made["status"]["acceptedNames"]["singular"] == "lamp"
    assert ask("POST", LAMPS, lamp())[0] == 201
    code, listed = ask("GET", LAMPS)
    assert (code, listed["kind"], len(listed["items"])) == (200, "LampList", 1)


def test_a_new_kind_is_discovered(lamps: Client) -> None:
    _, found = lamps("GET", "/apis/example.com/v1")
    listed = {one["name"]: one for one in found["resources"]}
    assert [*listed] == ["lamps", "lamps/status", "lamps/scale"]
    assert listed["lamps"]["shortNames"] == ["lp"]
    groups = [group["name"] for group in lamps("GET", "/apis")[1]["groups"]]
    assert "example.com" in groups
    assert "apis/example.com/v1" in lamps("GET", "/openapi/v3")[1]["paths"]


def test_objects_are_completed_and_pruned(lamps: Client) -> None:
    sent = lamp(unknown=1, free={"any": {"thing": 1}}, ratio=1, port="http", tags={"a": "b"})
    code, made = lamps("POST", LAMPS, sent)
    assert code == 201
    assert made["spec"] == {
        "colour": "red",
        "power": 40,
        "ratio": 1,
        "port": "http",
        "free": {"any": {"thing": 1}},
        "tags": {"a": "b"},
    }


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"colour": "blue"}, 'spec.colour: Unsupported value: "blue"'),
        ({"power": 0}, "spec.power: Invalid value: 0"),
        ({"power": "much"}, "spec.power: Invalid value"),
        ({"ratio": "half"}, "spec.ratio: Invalid value"),
        ({"label": "A"}, "spec.label in body should match"),
        ({"tags": {"a": 1}}, "spec.tags.a: Invalid value"),
    ],
)
def test_an_object_that_does_not_fit_is_refused(lamps: Client, spec: Any, message: str) -> None:
    code, status = lamps("POST", LAMPS, lamp(**spec))
    assert (code, status["reason"]) == (422, "Invalid")
    assert status["message"].startswith('Lamp.example.com "a" is invalid: ')
    assert message in status["message"]
    (cause,) = status["details"]["causes"]  # kubectl shows these and no message
    assert status["message"].endswith(f"{cause['field']}: {cause['message']}")


def test_a_required_field_must_be_there(lamps: Client) -> None:
    code, status = lamps("POST", LAMPS, lamp() | {"spec": {}})
    assert (code, "spec.colour: Required value" in status["message"]) == (422, True)


def test_status_is_apart(lamps: Client) -> None:
    lamps("POST", LAMPS, lamp() | {"status": {"on": True}})
    assert "status" not in lamps("GET", f"{LAMPS}/a")[1]
    code, made = lamps("PATCH", f"{LAMPS}/a/status", {"status": {"on": True}}, kind=MERGE)
    assert (code, made["status"], made["metadata"]["generation"]) == (200, {"on": True}, 1)
    code, made = lamps("PATCH", f"{LAMPS}/a", {"spec": {"power": 60}}, kind=MERGE)
    assert (made["status"], made["metadata"]["generation"]) == ({"on": True}, 2)
    bad = {"status": {"on": "yes"}}
    assert lamps("PATCH", f"{LAMPS}/a/status", bad, kind=MERGE)[0] == 422


def test_a_scale_reads_and_writes_where_the_definition_says(lamps: Client) -> None:
    lamps("POST", LAMPS, lamp(replicas=2))
    assert lamps("GET", f"{LAMPS}/a/scale")[1]["spec"] == {"replicas": 2}
    code, made = lamps("PATCH", f"{LAMPS}/a/scale", {"spec": {"replicas": 5}}, kind=MERGE)
    assert (code, made["spec"]) == (200, {"replicas": 5})
    assert lamps("GET", f"{LAMPS}/a")[1]["spec"]["replicas"] == 5


def test_a_table_has_the_columns_of_the_definition(lamps: Client) -> None:
    lamps("POST", LAMPS, lamp())
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    _, found = lamps("GET", LAMPS, accept=table)
    assert [column["name"] for column in found["columnDefinitions"]] == ["Name", "Colour", "Age"]
    assert found["rows"][0]["cells"][:2] == ["a", "red"]


def test_all_versions_are_served(ask: Client) -> None:
    old = version("v1beta1", storage=False)
    assert ask("POST", CRDS, definition(old, version()))[0] == 201
    group = ask("GET", "/apis/example.com")[1]
    assert [one["version"] for one in group["versions"]] == ["v1", "v1beta1"]
    beta = LAMPS.replace("v1", "v1beta1")
    code, made = ask("POST", beta, lamp() | {"apiVersion": "example.com/v1beta1"})
    assert (code, made["apiVersion"]) == (201, "example.com/v1beta1")
    assert ask("GET", f"{LAMPS}/a")[1]["apiVersion"] == "example.com/v1"
    listed = ask("GET", beta)[1]
    assert (listed["apiVersion"], listed["items"][0]["apiVersion"]) == ("example.com/v1beta1",) * 2
    code, made = ask("PATCH", f"{beta}/a", {"spec": {"power": 60}}, kind=MERGE)
    assert (code, made["apiVersion"], made["spec"]["power"]) == (200, "example.com/v1beta1", 60)


def test_a_changed_definition_counts_at_once(lamps: Client) -> None:
    lamps("POST", LAMPS, lamp())
    found = deepcopy(lamps("GET", f"{CRDS}/lamps.example.com")[1])
    schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["colour"]["enum"].append("blue")
    assert lamps("PUT", f"{CRDS}/lamps.example.com", found)[0] == 200
    assert lamps("POST", LAMPS, lamp("b", colour="blue"))[0] == 201


def test_objects_go_with_their_definition(lamps: Client) -> None:
    lamps("POST", LAMPS, lamp())
    assert lamps("DELETE", f"{CRDS}/lamps.example.com")[0] == 200
    lamps.served.plane.step()
    assert lamps("GET", f"{CRDS}/lamps.example.com")[0] == 404
    assert lamps("GET", LAMPS)[0] == 404
    assert lamps("POST", CRDS, definition())[0] == 201
    assert lamps("GET", LAMPS)[1]["items"] == []


def test_an_object_with_a_finalizer_keeps_its_definition(lamps: Client) -> None:
    made = lamp()
    made["metadata"]["finalizers"] = ["example.com/hold"]
    lamps("POST", LAMPS, made)
    lamps("DELETE", f"{CRDS}/lamps.example.com")
    lamps.served.plane.step()
    assert lamps("GET", f"{LAMPS}/a")[1]["metadata"]["deletionTimestamp"]
    lamps("PATCH", f"{LAMPS}/a", {"metadata": {"finalizers": None}}, kind=MERGE)
    lamps.served.plane.step()
    assert lamps("GET", f"{CRDS}/lamps.example.com")[0] == 404


def test_a_kind_that_is_built_in_stays_as_it_is(ask: Client) -> None:
    theirs = definition(version("v1beta1"), plural="queues", kind="Queue")
    theirs["metadata"]["name"] = "queues.scheduling.volcano.sh"
    theirs["spec"] |= {"group": "scheduling.volcano.sh", "scope": "Cluster"}
    assert ask("POST", CRDS, theirs)[0] == 201
    names = [q["metadata"]["name"] for q in ask("GET", QUEUES)[1]["items"]]
    assert "default" in names
    ask("DELETE", f"{CRDS}/queues.scheduling.volcano.sh")
    ask.served.plane.step()
    assert len(ask("GET", QUEUES)[1]["items"]) == len(names)


QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"


@pytest.mark.parametrize(
    "change",
    [
        {"group": ""},
        {"scope": "Everywhere"},
        {"names": {"plural": "lights", "kind": "Lamp"}},
        {"names": {"plural": "lamps"}},
        {"versions": []},
        {"versions": [version(storage=False)]},
        {"versions": [version(schema={})]},
        {"versions": [version(schema={"openAPIV3Schema": {"type": "lamp"}})]},
        {"versions": [version(schema={"openAPIV3Schema": {"properties": [1]}})]},
        {"versions": [version(schema={"openAPIV3Schema": {"pattern": "("}})]},
        {"versions": [version(schema={"openAPIV3Schema": {"minimum": "x"}})]},
    ],
)
def test_a_definition_that_cannot_be_used_is_refused(ask: Client, change: Any) -> None:
    made = definition()
    made["spec"] |= change
    assert ask("POST", CRDS, made)[0] == 422
    assert ask("GET", LAMPS)[0] == 404


def test_a_dry_run_of_a_custom_object_leaves_nothing_behind(lamps: Client) -> None:
    code, made = lamps("POST", f"{LAMPS}?dryRun=All", lamp())
    assert (code, made["spec"]["power"]) == (201, 40)
    assert lamps("GET", f"{LAMPS}/a")[0] == 404
    assert lamps("POST", f"{LAMPS}?dryRun=All", lamp(power=0))[0] == 422
