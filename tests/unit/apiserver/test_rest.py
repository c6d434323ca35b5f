"""The REST API without a wire: verbs, errors, lists, dry runs, discovery."""

import base64
import json
from typing import Any

import pytest

from pumice.apiserver.rest import Request, RestApi
from pumice.clock import VirtualClock
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.testing import pod

PODS = "/api/v1/namespaces/default/pods"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MERGE = "application/merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


class Client:
    """Asks an API as a client would."""

    def __init__(self) -> None:
        self.cluster = EmbeddedCluster(VirtualClock())
        self.writes = 0
        self.api = RestApi(self.cluster, self._wrote)

    def _wrote(self) -> None:
        self.writes += 1

    def ask(
        self,
        method: Any,
        path: Any,
        body: Any = None,
        accept: str = "application/json",
        kind: str = "application/json",
    ) -> Any:
        path, _, query = path.partition("?")
        pairs = dict(pair.split("=", 1) for pair in query.split("&") if pair)
        data = b"" if body is None else json.dumps(body).encode()
        answer = self.api.answer(Request(method, path, pairs, accept, kind, data))
        return answer.code, answer.content

    def get(self, path: Any, **options: Any) -> Any:
        return self.ask("GET", path, **options)

    def names(self, path: Any) -> Any:
        return [item["metadata"]["name"] for item in self.get(path)[1]["items"]]


@pytest.fixture
def client() -> Any:
    return Client()


def test_what_is_not_there_is_reported_in_the_words_of_kubernetes(client: Any) -> None:
    code, status = client.get("/apis/batch.volcano.sh/v1alpha1/namespaces/x/jobs/train")
    assert code == 404
    assert status["reason"] == "NotFound"
    assert status["message"] == 'jobs.batch.volcano.sh "train" not found'
    assert status["details"] == {"name": "train", "group": "batch.volcano.sh", "kind": "jobs"}


def test_a_taken_name_is_a_conflict(client: Any) -> None:
    client.ask("POST", PODS, pod("a"))
    code, status = client.ask("POST", PODS, pod("a"))
    assert (code, status["reason"]) == (409, "AlreadyExists")
    assert status["message"] == 'pods "a" already exists'


def test_a_namespace_must_be_there(client: Any) -> None:
    code, status = client.ask("POST", "/api/v1/namespaces/none/pods", pod("a", namespace="none"))
    assert (code, status["message"]) == (404, 'namespaces "none" not found')


def test_a_stale_write_or_one_to_another_object_is_a_conflict(client: Any) -> None:
    _, made = client.ask("POST", PODS, pod("a"))
    made["metadata"]["labels"] = {"x": "1"}
    assert client.ask("PUT", f"{PODS}/a", made)[0] == 200
    code, status = client.ask("PUT", f"{PODS}/a", made | {"spec": {}})
    assert (code, status["reason"]) == (409, "Conflict")
    assert status["message"].startswith('Operation cannot be fulfilled on pods "a":')
    for wanted in ({"uid": "other"}, {"resourceVersion": "1"}):
        assert client.ask("DELETE", f"{PODS}/a", {"preconditions": wanted})[0] == 409


def test_a_strategic_patch_keeps_its_directives(client: Any) -> None:
    finalized = pod("a")
    finalized["metadata"]["finalizers"] = ["x/a", "x/b"]
    client.ask("POST", PODS, finalized)
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/a"]}}
    kind = "application/strategic-merge-patch+json"
    code, made = client.ask("PATCH", f"{PODS}/a", patch, kind=kind)
    assert (code, made["metadata"]["finalizers"]) == (200, ["x/b"])


def test_a_patch_that_takes_all_memory_is_refused(client: Any) -> None:
    client.ask("POST", PODS, pod("a", labels={"a": "b"}))
    patch = [{"op": "copy", "from": "/metadata", "path": f"/metadata/{i}"} for i in range(40)]
    for path in (f"{PODS}/a", f"{PODS}/a/status", f"{PODS}/a?dryRun=All"):
        code, made = client.ask("PATCH", path, patch, kind="application/json-patch+json")
        assert (code, made["reason"]) == (413, "RequestEntityTooLarge")


def test_an_unknown_kind_of_patch_is_refused(client: Any) -> None:
    client.ask("POST", PODS, pod("a"))
    assert client.ask("PATCH", f"{PODS}/a", {}, kind="text/plain")[0] == 415


def test_a_body_that_is_another_object_is_refused(client: Any) -> None:
    assert client.ask("POST", QUEUES, pod("a"))[0] == 400
    client.ask("POST", PODS, pod("a"))
    assert client.ask("PUT", f"{PODS}/a", pod("b"))[0] == 400
    code, status = client.ask("POST", PODS, pod("b", namespace="kube-system"))
    assert (code, status["reason"]) == (400, "BadRequest")


def test_a_body_that_cannot_be_read_is_a_bad_request(client: Any) -> None:
    for kind, data in {"application/json": b"{", "application/yaml": b"{a: [", "x": b"[]"}.items():
        answer = client.api.answer(Request("POST", PODS, {}, "", kind, data))
        assert answer.code == 400
    proto = Request("POST", PODS, {}, "", "application/vnd.kubernetes.protobuf", b"k8s\0")
    assert client.api.answer(proto).code == 415


def test_a_refused_object_is_invalid(client: Any) -> None:
    code, status = client.ask("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {}})
    assert (code, status["reason"]) == (422, "Invalid")


def test_a_dry_run_answers_and_changes_nothing(client: Any) -> None:
    client.ask("POST", PODS, pod("a"))
    before = client.cluster.version
    assert client.ask("POST", f"{PODS}?dryRun=All", pod("b"))[0] == 201
    assert client.ask("POST", f"{PODS}?dryRun=All", pod("a"))[0] == 409
    patch = {"metadata": {"labels": {"x": "1"}}}
    code, made = client.ask("PATCH", f"{PODS}/a?dryRun=All", patch, kind=MERGE)
    assert (code, made["metadata"]["labels"]) == (200, {"x": "1"})
    assert client.ask("DELETE", f"{PODS}/a?dryRun=All")[0] == 200
    assert client.ask("DELETE", f"{PODS}?dryRun=All")[0] == 200
    assert client.cluster.version == before


def test_deleting_tells_whether_it_is_done(client: Any) -> None:
    client.ask("POST", PODS, pod("a"))
    add_node(client.cluster, "n", {"cpu": "1"})
    target = {"target": {"name": "n"}}
    assert client.ask("POST", f"{PODS}/a/binding", target)[0] == 201
    code, left = client.ask("DELETE", f"{PODS}/a")
    assert (code, left["kind"], left["metadata"]["deletionGracePeriodSeconds"]) == (200, "Pod", 30)
    code, status = client.ask("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0})
    assert (code, status["status"]) == (200, "Success")
    assert client.ask("DELETE", f"{PODS}/a")[0] == 404


def test_a_collection_is_deleted_by_selector(client: Any) -> None:
    for name in ("a", "b", "c"):
        client.ask("POST", PODS, pod(name, labels={"app": "x" if name < "c" else "y"}))
    assert client.ask("DELETE", f"{PODS}?labelSelector=app=x")[0] == 200
    assert client.names(PODS) == ["c"]


def test_a_pod_is_bound_once_and_evicted(client: Any) -> None:
    client.ask("POST", PODS, pod("a"))
    assert client.ask("POST", f"{PODS}/a/binding", {"target": {}})[0] == 400
    assert client.ask("POST", f"{PODS}/a/binding", {"target": {"name": "n"}})[0] == 201
    assert client.ask("POST", f"{PODS}/a/binding", {"target": {"name": "n"}})[0] == 409
    assert client.ask("POST", f"{PODS}/a/eviction", {"kind": "Eviction"})[0] == 201
    assert client.get(f"{PODS}/a")[1]["metadata"]["deletionTimestamp"]


def test_an_eviction_asks_disruption_budgets(client: Any) -> None:
    add_node(client.cluster, "n", {"cpu": "4"})
    client.ask("POST", PODS, pod("a", cpu=1, labels={"app": "x"}))
    client.cluster.bind("default", "a", "n", {})
    client.cluster.merge_status("Pod", "default", "a", {"phase": "Running"})
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    made = client.cluster.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b"},
            "spec": spec,
        }
    )
    for path in (f"{PODS}/a/eviction", f"{PODS}/a/eviction?dryRun=All"):
        code, reported = client.ask("POST", path, {"metadata": {"name": "a"}})
        assert (code, reported["reason"]) == (429, "TooManyRequests")
    client.cluster.update_status({**made, "status": {"disruptionsAllowed": 1}})
    assert client.ask("POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}})[0] == 201
    assert client.get(f"{PODS}/a")[1]["metadata"]["deletionTimestamp"]


def test_replicas_are_read_and_written_as_a_scale(client: Any) -> None:
    client.ask("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": {"replicas": 2}})
    code, scale = client.get(f"{DEPLOYMENTS}/d/scale")
    assert (code, scale["kind"], scale["spec"]) == (200, "Scale", {"replicas": 2})
    client.ask("PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 5}}, kind=MERGE)
    assert client.get(f"{DEPLOYMENTS}/d")[1]["spec"]["replicas"] == 5
    client.ask("PUT", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 1}})
    assert client.get(f"{DEPLOYMENTS}/d")[1]["spec"]["replicas"] == 1
    assert client.ask("PUT", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": "x"}})[0] == 400


def test_what_no_simulated_pod_has_is_said_to_be_missing(client: Any) -> None:
    client.ask("POST", PODS, pod("a"))
    code, status = client.get(f"{PODS}/a/log")
    assert (code, status["reason"]) == (501, "NotImplemented")
    assert client.get(f"{PODS}/a/nothing")[0] == 404
    assert client.ask("POST", f"{PODS}/a/nothing", {})[0] == 404
    assert client.ask("POST", f"{PODS}/a", {})[0] == 405
    assert client.ask("PUT", PODS, pod("a"))[0] == 405
    assert client.ask("DELETE", f"{PODS}/a/status")[0] == 405


def test_a_long_list_comes_in_pages(client: Any) -> None:
    names = [f"p{number}" for number in range(5)]
    for name in names:
        client.ask("POST", PODS, pod(name))
    found, token = [], ""
    while True:
        _, page = client.get(f"{PODS}?limit=2&continue={token}")
        found += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue", "")
        if not token:
            break
        assert page["metadata"]["remainingItemCount"] == 5 - len(found)
    assert found == names
    assert client.get(f"{PODS}?continue=%%")[0] == 400
    for forged in ({"a": 1, "b": 2, "c": 3}, ["", "a", "latest"], ["", "a", 5], ["", "a"], "abc"):
        token = base64.urlsafe_b64encode(json.dumps(forged).encode()).decode()
        assert client.get(f"{PODS}?continue={token}")[0] == 400
    assert client.get(f"{PODS}?limit=x")[0] == 400


def test_a_watch_from_a_list_in_pages_tells_what_changed_while_it_was_read(client: Any) -> None:
    for name in ("a", "b", "c"):
        client.ask("POST", PODS, pod(name))
    _, first = client.get(f"{PODS}?limit=1")
    client.ask("PATCH", f"{PODS}/a", {"metadata": {"labels": {"seen": "late"}}})
    version = first["metadata"]["resourceVersion"]
    _, second = client.get(f"{PODS}?limit=1&continue={first['metadata']['continue']}")
    _, third = client.get(f"{PODS}?continue={second['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in third["items"]] == ["c"]
    assert {second["metadata"]["resourceVersion"], third["metadata"]["resourceVersion"]} == {
        version
    }


def test_a_list_is_given_as_a_table_or_as_metadata(client: Any) -> None:
    client.ask("POST", PODS, pod("a"))
    _, table = client.get(PODS, accept=TABLE)
    assert table["kind"] == "Table"
    assert [c["name"] for c in table["columnDefinitions"]][:3] == ["Name", "Ready", "Status"]
    assert table["rows"][0]["cells"][:3] == ["a", "0/1", "Pending"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    _, whole = client.get(f"{PODS}?includeObject=Object", accept=TABLE)
    assert whole["rows"][0]["object"]["kind"] == "Pod"
    _, partial = client.get(PODS, accept="application/json;as=PartialObjectMetadataList;v=v1")
    assert "spec" not in partial["items"][0]


def test_discovery_names_groups_kinds_and_subresources(client: Any) -> None:
    assert client.get("/api")[1]["versions"] == ["v1"]
    groups = [group["name"] for group in client.get("/apis")[1]["groups"]]
    assert groups.index("batch") < groups.index("batch.volcano.sh")
    assert client.get("/apis/apps")[1]["preferredVersion"]["groupVersion"] == "apps/v1"
    names = [each["name"] for each in client.get("/api/v1")[1]["resources"]]
    assert {"pods", "pods/status", "pods/binding", "pods/eviction", "nodes"} <= {*names}
    scheduling = client.get("/apis/scheduling.volcano.sh/v1beta1")[1]["resources"]
    assert {"podgroups", "queues"} <= {each["name"] for each in scheduling}


def test_discovery_is_given_at_once_to_those_who_know_it(client: Any) -> None:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    _, core = client.get("/api", accept=accept)
    _, named = client.get("/apis", accept=accept)
    assert [item["versions"][0]["version"] for item in core["items"]] == ["v1"]
    assert "batch.volcano.sh" in [item["metadata"]["name"] for item in named["items"]]


def test_every_kind_leaves_validation_to_the_server(client: Any) -> None:
    """kubectl does so if the patch of the kind takes the parameter fieldValidation."""
    for root in client.get("/openapi/v3")[1]["paths"]:
        _, document = client.get(f"/openapi/v3/{root}")
        patches = [path["patch"] for path in document["paths"].values() if "patch" in path]
        assert patches
        for patch in patches:
            assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/apis/none",
        "/apis/none/v1",
        "/apis/none/v1/things",
        "/api/v1/x/y/z/a",
        "/api/v2/pods",
        "/api/v1/pods/a",
        "/openapi/v1",
        "/openapi/v3/none",
        "/apis/apps/v1/none",
    ],
)
def test_an_unknown_address_is_not_found(client: Any, path: str) -> None:
    code, status = client.get(path)
    assert (code, status["reason"]) == (404, "NotFound")


def test_the_server_says_how_it_is(client: Any) -> None:
    assert client.get("/readyz") == (200, "ok")
    assert client.get("/version")[1]["major"] == "1"
    assert "/api" in client.get("/")[1]["paths"]
    assert client.ask("POST", "/version", {})[0] == 405


def test_a_dry_run_knows_the_version_that_is_stored(client: Any) -> None:
    _, made = client.ask("POST", PODS, pod("a"))
    client.ask("POST", PODS, pod("b"))
    made["metadata"]["labels"] = {"x": "1"}
    code, shown = client.ask("PUT", f"{PODS}/a?dryRun=All", made)
    assert (code, shown["metadata"]["labels"]) == (200, {"x": "1"})
    assert shown["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"], "labels": {}}}
    assert client.ask("PATCH", f"{PODS}/a?dryRun=All", patch, kind=MERGE)[0] == 200
    patch["metadata"]["resourceVersion"] = "1"
    assert client.ask("PATCH", f"{PODS}/a?dryRun=All", patch, kind=MERGE)[0] == 409
    assert "labels" not in client.get(f"{PODS}/a")[1]["metadata"]
    new = client.ask("POST", f"{PODS}?dryRun=All", pod("c"))[1]["metadata"]
    assert (new["uid"] != "", "resourceVersion" in new) == (True, False)


@pytest.mark.parametrize(
    ("place", "answer"),
    {
        "authorization.k8s.io/v1/selfsubjectaccessreviews": ("allowed", True),
        "authorization.k8s.io/v1/subjectaccessreviews": ("allowed", True),
        "authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews": ("allowed", True),
        "authorization.k8s.io/v1/selfsubjectrulesreviews": ("incomplete", False),
        "authentication.k8s.io/v1/tokenreviews": ("authenticated", True),
    }.items(),
)
def test_the_only_user_may_do_everything(client: Any, place: str, answer: Any) -> None:
    code, made = client.ask("POST", f"/apis/{place}", {"spec": {"namespace": "default"}})
    assert (code, made["status"][answer[0]]) == (201, answer[1])
    assert made["spec"] == {"namespace": "default"}
    assert client.get(f"/apis/{place}")[0] == 405


def test_events_are_served_in_their_newer_form_too(client: Any) -> None:
    about = client.ask("POST", PODS, pod("a"))[1]
    client.cluster.record(about, "Normal", "Started", "it runs", "kubelet")
    events = "/apis/events.k8s.io/v1/namespaces/default/events"
    (found,) = client.get(events)[1]["items"]
    assert (found["apiVersion"], found["note"]) == ("events.k8s.io/v1", "it runs")
    assert found["regarding"]["name"] == "a"
    assert found["reportingController"] == "kubelet"
    assert found["eventTime"].endswith(".000000Z")
    made = {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "a", "namespace": "default"},
        "note": "seen",
        "reason": "Seen",
        "type": "Normal",
        "action": "Look",
        "reportingController": "me",
    }
    assert client.ask("POST", events, made)[0] == 201
    _, old = client.get("/api/v1/namespaces/default/events/e")
    assert (old["apiVersion"], old["message"]) == ("v1", "seen")
    assert old["involvedObject"]["name"] == "a"
    code, again = client.ask("PATCH", f"{events}/e", {"note": "seen twice"}, kind=MERGE)
    assert (code, again["note"]) == (200, "seen twice")


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("word", ["exec", "attach", "portforward", "log"])
def test_what_needs_containers_says_why_it_is_not_served(
    client: Any, method: str, word: str
) -> None:
    client.ask("POST", PODS, pod("a"))
    code, status = client.ask(method, f"{PODS}/a/{word}")
    assert (code, status["reason"]) == (501, "NotImplemented")
    assert "run nothing" in status["message"]


def test_everything_is_described_in_the_older_form_too(client: Any) -> None:
    _, found = client.get("/openapi/v2")
    assert found["swagger"] == "2.0"
    names = [one["x-kubernetes-group-version-kind"] for one in found["definitions"].values()]
    assert [{"group": "", "version": "v1", "kind": "Pod"}] in names


@pytest.mark.parametrize(
    ("word", "watches"),
    [("true", True), ("True", True), ("1", True), ("", True), ("False", False), ("0", False)],
)
def test_a_watch_is_asked_for_in_many_spellings(client: Any, word: str, watches: bool) -> None:
    answer = client.api.answer(Request("GET", PODS, {"watch": word}))
    assert (answer.watch is not None) == watches
