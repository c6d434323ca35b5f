"""`pumice serve scheduler --ui` on a real API server: who sees what, and who may do what."""

import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from deploy.rbac import FOR_UI, FOR_UI_ACTIONS, FOR_UI_LOGIN, rules
from tests.e2e_kube.controlplane.processes import free_ports
from tests.e2e_kube.install import HOME
from tests.e2e_kube.space import job
from tests.e2e_kube.waiting import until

RBAC = "rbac.authorization.k8s.io"
LOOK = [
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    {"apiGroups": ["scheduling.volcano.sh"], "resources": ["podgroups"], "verbs": ["list"]},
]
ACT = {"apiGroups": ["bus.volcano.sh"], "resources": ["commands"], "verbs": ["create"]}


def bound(kind: str, name: str, allowed: Any, account: str, home: str) -> list[Any]:
    """Return a role and its binding to a service account."""
    subject = {"kind": "ServiceAccount", "name": account, "namespace": home}
    role = {"apiGroup": RBAC, "kind": kind, "name": name}
    head = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": name}}
    return [
        {**head, "kind": kind, "rules": allowed},
        {**head, "kind": f"{kind}Binding", "roleRef": role, "subjects": [subject]},
    ]


@pytest.fixture(scope="module")
def ui_rights(kubectl: Any) -> Iterator[None]:
    """Grant the scheduler what the chart grants it for the dashboard."""
    allowed = rules((*FOR_UI, *FOR_UI_LOGIN, *FOR_UI_ACTIONS))
    granted = bound("ClusterRole", "scheduler-ui", allowed, "volcano-scheduler", HOME)
    kubectl.apply(*granted)
    yield
    for one in granted:
        kubectl("delete", one["kind"], "scheduler-ui")


class Person:
    """Somebody with a token of the cluster in front of a dashboard."""

    def __init__(self, port: int, authority: Any, token: str) -> None:
        self._port = port
        self._tls = ssl.create_default_context(cafile=authority)
        self._headers = {"Authorization": f"Bearer {token}"}

    def ask(self, path: str, body: Any = None) -> tuple[int, Any]:
        headers = dict(self._headers)
        if body is not None:
            headers["X-Pumice-Csrf"] = self.ask("/api/session")[1].get("csrf", "")
        connection = http.client.HTTPSConnection(
            "localhost", self._port, context=self._tls, timeout=30
        )
        with closing(connection):
            method = "GET" if body is None else "POST"
            connection.request(method, path, json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or "{}")

    def jobs(self) -> dict[str, str]:
        """Return the state of each job that they see; none before there is a first cycle."""
        status, found = self.ask("/api/jobs")
        return dict(zip(found["job"], found["state"], strict=True)) if status == 200 else {}


@pytest.fixture
def people(space: Any, scheduler: Any, plane: Any, ui_rights: None) -> Iterator[Any]:
    """Serve the dashboard; gives what makes people: ann may look and act here, bob nothing."""
    here = space.kubectl
    for name in ("ann", "bob"):
        here("create", "serviceaccount", name)
    here.create(*bound("Role", "ann", [*LOOK, ACT], "ann", space.namespace))
    (port,), pair = free_ports(1), plane.authority.server("ui")
    flags = {
        "ui": "true",
        "ui_address": f"127.0.0.1:{port}",
        "ui_tls_cert_file": pair.certificate,
        "ui_tls_private_key_file": pair.key,
        "ui_cluster_login": "true",
        "ui_allow_actions": "true",
    }

    def somebody(name: str) -> Person:
        token = here("create", "token", name).strip() if name else "forged"
        return Person(port, plane.authority.own.certificate, token)

    with scheduler(**flags):
        yield somebody


def test_people_see_what_the_cluster_lets_them_see(
    space: Any, people: Any, controllers: Any
) -> None:
    space.nodes(1, cpu=4)
    space.kubectl.create(job("runs", replicas=2), job("waits", replicas=9))
    runs, waits = (f"{space.namespace}/{name}" for name in ("runs", "waits"))
    ann, bob, stranger = people("ann"), people("bob"), people("")
    until("both jobs", ann.jobs, lambda seen: seen == {runs: "running", waits: "waiting"})
    who = ann.ask("/api/session")[1]
    assert who["person"] == f"system:serviceaccount:{space.namespace}:ann"
    assert (who["namespaces"], who["cluster"]) == ([space.namespace], False)
    why = until("an answer", lambda: ann.ask(f"/api/jobs/{waits}/why"), lambda a: a[0] != 202)
    assert why[0] == 200
    assert why[1]["causes"]
    assert ann.ask("/api/nodes")[0] == 403  # nodes are the cluster's
    assert ann.ask("/api/snapshot")[0] == 403
    pods = ann.ask(f"/api/jobs/{runs}")[1]["pods"]
    assert {each["node"] for each in pods} == {"node-0"}
    assert bob.jobs() == {}
    assert bob.ask(f"/api/jobs/{runs}")[0] == 404
    for path in ("/api/session", "/api/jobs", f"/api/actions/jobs/{runs}"):
        assert stranger.ask(path)[0] == 401


def test_people_do_what_the_cluster_lets_them_do(space: Any, people: Any, controllers: Any) -> None:
    space.nodes(1, cpu=4)
    space.kubectl.create(job("train", replicas=2))
    train = f"{space.namespace}/train"
    ann, bob = people("ann"), people("bob")
    until("the job", ann.jobs, lambda seen: seen == {train: "running"})
    space.wait_phase("train", "Running")
    assert ann.ask(f"/api/actions/jobs/{train}")[1]["actions"] == ["suspend", "terminate"]
    assert bob.ask(f"/api/actions/jobs/{train}")[1]["actions"] == []
    status, reported = ann.ask("/api/actions", {"action": "delete", "job": train})
    assert (status, "you lack 'delete jobs" in reported["problem"]) == (403, True)
    assert bob.ask("/api/actions", {"action": "suspend", "job": train})[0] == 404
    assert ann.ask("/api/actions", {"action": "close", "queue": "default"})[0] == 404
    assert ann.ask("/api/actions", {"action": "suspend", "job": train})[0] == 200
    space.wait_phase("train", "Aborted")
    until("no job", ann.jobs, lambda seen: seen == {})
    assert ann.ask(f"/api/actions/jobs/{train}")[1] == {"state": "Aborted", "actions": ["resume"]}
    assert ann.ask("/api/actions", {"action": "resume", "job": train})[0] == 200
    space.wait_phase("train", "Running")
    more = {"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": ["delete"]}
    space.kubectl.create(*bound("Role", "more", [more], "ann", space.namespace))
    until(
        "deleted",
        lambda: ann.ask("/api/actions", {"action": "delete", "job": train})[0],
        lambda status: status == 200,
    )
    until("nothing", lambda: space.kubectl.items("vcjob"), lambda left: left == [])
    assert space.queue("default")["status"]["state"] == "Open"
