"""Actions from pages: only if they were allowed, only from our pages, only with the right."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pumice.api.kinds import JOB, QUEUE
from pumice.clock import VirtualClock
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.dashboard.security import Person, Right
from pumice.dashboard.serving import ServingOptions, served_dashboard
from pumice.dashboard.sources import About, EmbeddedSource, StaticSource
from pumice.dashboard.view import EVERYTHING, Scope
from pumice.diagnosis.sources import load_world
from pumice.errors import InputError, NotFoundError
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.serve.options import read_options
from pumice.testing.builders import pod, pod_group
from tests.unit.dashboard.test_server import ask, session

CLUSTER = Path(__file__).resolve().parents[3] / "examples" / "first-cluster.yaml"
COMMAND = Right("create", "bus.volcano.sh", "commands", "default")


def job(name: str) -> Any:
    resources = {"requests": {"cpu": "1"}}
    container = {"name": "c", "image": "i", "resources": resources}
    template = {"spec": {"containers": [container], "terminationGracePeriodSeconds": 0}}
    task = {"name": "t", "replicas": 1, "template": template}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "minAvailable": 1,
            "queue": "default",
            "schedulerName": "volcano",
            "tasks": [task],
        },
    }


@pytest.fixture
def plane() -> Any:
    plane = EmbeddedControlPlane(cluster=EmbeddedCluster(VirtualClock()))
    add_node(plane.cluster, "n1", {"cpu": "8", "memory": "8Gi"})
    plane.cluster.create(job("train"))
    plane.cluster.create(pod_group("plain", phase=None))
    plane.cluster.create(pod("plain-0", group="plain", cpu=1))
    settle(plane)
    return plane


def settle(plane: Any) -> None:
    for _ in range(4):
        plane.step()


def phase(plane: Any, name: str = "train") -> str:
    return str(plane.cluster.get(JOB, "default", name)["status"]["state"]["phase"])


@dataclass
class Clerk:
    """Knows one person by the token "ann's", what she may see, and each right that she has."""

    rights: set[Right] = field(default_factory=set)
    sees: Scope = EVERYTHING

    def identify(self, token: str) -> Person | None:
        return Person("ann") if token == "ann's" else None  # noqa: S105

    def scope(self, _: Person) -> Scope:
        return self.sees

    def may(self, _: Person, right: Right) -> bool:
        return right in self.rights


def served(plane: Any, authority: Any = None, *, allow_actions: bool = True) -> Any:
    source = EmbeddedSource(plane, About(title="x", kind="embedded", decides=True))
    options = ServingOptions(allow_actions=allow_actions)
    return served_dashboard(source, options, authority=authority)


class Visitor:
    """Somebody whose page has what our pages send along."""

    def __init__(self, url: str, token: str = "") -> None:
        self.place = url.removeprefix("http://")
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.session = session(self.place, self.headers)
        self.csrf = {"X-Pumice-Csrf": self.session["csrf"]}

    def offered(self, path: str) -> Any:
        status, _, body = ask(self.place, f"/api/actions/{path}", headers=self.headers)
        return (status, json.loads(body))

    def act(self, asked: Any, headers: Any = None) -> Any:
        sent = {**self.headers, **(self.csrf if headers is None else headers)}
        status, _, body = ask(self.place, "/api/actions", "POST", sent, json.dumps(asked))
        return status, json.loads(body)


def test_a_dashboard_is_read_only_unless_it_is_reported_otherwise(plane: Any) -> None:
    with served(plane, allow_actions=False) as url:
        visitor = Visitor(url)
        assert visitor.session["actions"] is False
        for asked in (
            {"action": "delete", "job": "default/train"},
            {"action": "close", "queue": "q"},
        ):
            status, reported = visitor.act(asked)
            assert status == 403
            assert "--allow-actions" in reported["problem"]
        assert visitor.offered("jobs/default/train")[0] == 403
        assert visitor.offered("suspended")[0] == 403
    settle(plane)
    assert phase(plane) == "Running"
    assert plane.cluster.list("Command.bus.volcano.sh")[0] == []


def test_a_job_is_suspended_and_resumed(plane: Any) -> None:
    with served(plane) as url:
        visitor = Visitor(url)
        assert visitor.session["actions"] is True
        offer = visitor.offered("jobs/default/train")
        assert offer == (200, {"state": "Running", "actions": ["suspend", "terminate", "delete"]})
        assert visitor.act({"action": "suspend", "job": "default/train"})[0] == 200
        settle(plane)
        assert phase(plane) == "Aborted"
        assert visitor.offered("jobs/default/train")[1]["actions"] == ["resume", "delete"]
        assert visitor.offered("suspended")[1] == {"jobs": ["default/train"]}
        assert visitor.act({"action": "resume", "job": "default/train"})[0] == 200
        settle(plane)
        assert phase(plane) == "Running"
        assert visitor.offered("suspended")[1] == {"jobs": []}


def test_a_job_is_ended_and_deleted(plane: Any) -> None:
    with served(plane) as url:
        visitor = Visitor(url)
        visitor.act({"action": "terminate", "job": "default/train"})
        settle(plane)
        assert phase(plane) == "Terminated"
        assert visitor.offered("jobs/default/train")[1]["actions"] == ["delete"]
        visitor.act({"action": "delete", "job": "default/train"})
        settle(plane)
        with pytest.raises(NotFoundError):
            phase(plane)


def test_a_queue_is_closed_and_opened(plane: Any) -> None:
    def state() -> Any:
        settle(plane)
        return plane.cluster.get(QUEUE, "", "default")["status"]["state"]

    with served(plane) as url:
        visitor = Visitor(url)
        assert visitor.offered("queues/default")[1]["actions"] == ["close"]
        visitor.act({"action": "close", "queue": "default"})
        assert state() in ("Closing", "Closed")
        assert visitor.offered("queues/default")[1]["actions"] == ["open"]
        visitor.act({"action": "open", "queue": "default"})
        assert state() == "Open"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Pumice-Csrf": "0" * 43},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Host": "evil.example"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"},
    ],
    ids=str,
)
def test_what_no_page_of_ours_asks_for_is_not_done(plane: Any, headers: Any) -> None:
    with served(plane) as url:
        visitor = Visitor(url)
        is_forged = {*headers} & {"Origin", "Host", "Sec-Fetch-Site"}
        sent = {**visitor.csrf, **headers} if is_forged else headers
        assert visitor.act({"action": "delete", "job": "default/train"}, sent)[0] == 403
    settle(plane)
    assert phase(plane) == "Running"


def test_the_token_of_one_session_is_of_no_use_in_another(plane: Any) -> None:
    with served(plane, Clerk({COMMAND})) as url:
        place = url.removeprefix("http://")
        cookies = []
        for _ in range(2):
            _, headers, _ = ask(place, "/api/login", "POST", body='{"token": "ann\'s"}')
            cookies.append({"Cookie": headers["Set-Cookie"].partition(";")[0]})
        mine, other = (session(place, cookie)["csrf"] for cookie in cookies)
        body = json.dumps({"action": "suspend", "job": "default/train"})
        sent = {**cookies[0], "X-Pumice-Csrf": other}
        assert ask(place, "/api/actions", "POST", sent, body)[0] == 403
        sent = {**cookies[0], "X-Pumice-Csrf": mine}
        assert ask(place, "/api/actions", "POST", sent, body)[0] == 200


def test_without_a_login_nothing_is_done(plane: Any) -> None:
    with served(plane, Clerk({COMMAND})) as url:
        place = url.removeprefix("http://")
        for headers in ({}, {"Authorization": "Bearer forged"}, {"Cookie": "pumice_session=x"}):
            found = ask(place, "/api/actions/jobs/default/train", headers=headers)
            assert found[0] == 401
            csrf = session(place, {"Authorization": "Bearer ann's"})["csrf"]
            body = json.dumps({"action": "suspend", "job": "default/train"})
            sent = {**headers, "X-Pumice-Csrf": csrf}
            assert ask(place, "/api/actions", "POST", sent, body)[0] == 401
    settle(plane)
    assert phase(plane) == "Running"


def test_people_do_what_they_have_the_right_to_and_no_more(plane: Any) -> None:
    clerk = Clerk({COMMAND})
    with served(plane, clerk) as url:
        ann = Visitor(url, "ann's")
        assert ann.offered("jobs/default/train")[1]["actions"] == ["suspend", "terminate"]
        status, reported = ann.act({"action": "delete", "job": "default/train"})
        assert status == 403
        assert "delete jobs.batch.volcano.sh in namespace default" in reported["problem"]
        assert ann.offered("queues/default")[1]["actions"] == []  # a command there is not enough
        assert ann.act({"action": "close", "queue": "default"})[0] == 403
        clerk.rights.add(Right("update", "scheduling.volcano.sh", "queues", name="default"))
        assert ann.offered("queues/default")[1]["actions"] == ["close"]
        clerk.sees = Scope(frozenset({"other"}), cluster=False)
        assert ann.offered("jobs/default/train")[1] == {"state": "", "actions": []}
        assert ann.act({"action": "suspend", "job": "default/train"})[0] == 404
        assert ann.act({"action": "close", "queue": "default"})[0] == 404
        assert ann.offered("suspended")[1] == {"jobs": []}
    settle(plane)
    assert phase(plane) == "Running"


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"action": "explode", "job": "default/train"}, 422),
        ({"action": "close", "job": "default/train"}, 422),
        ({"action": "delete", "queue": "default"}, 422),
        ({"action": "suspend"}, 422),
        ({"action": "suspend", "job": "train"}, 422),
        ({"action": "suspend", "job": "default/train", "queue": "default"}, 422),
        ({"action": "suspend", "job": "default/train", "grace": 0}, 422),
        ({"action": ["suspend"], "job": "default/train"}, 422),
        ([], 422),
        ({"action": "suspend", "job": "default/nobody"}, 404),
        ({"action": "suspend", "job": "default/plain"}, 404),
        ({"action": "open", "queue": "nowhere"}, 404),
    ],
)
def test_what_cannot_be_done_is_answered_with_a_sentence(
    plane: Any, asked: Any, status: int
) -> None:
    with served(plane) as url:
        found, reported = Visitor(url).act(asked)
    assert found == status
    assert reported["problem"]


def test_files_cannot_be_acted_on() -> None:
    source = StaticSource(load_world([CLUSTER]), "first")
    with (
        pytest.raises(InputError, match="a cluster to act on"),
        served_dashboard(source, ServingOptions(allow_actions=True)),
    ):
        pass


def test_a_shadow_lets_nobody_act() -> None:
    with pytest.raises(InputError, match="a shadow writes nothing"):
        read_options("scheduler", ["--shadow", "--ui", "--ui-allow-actions"])
    scheduler = read_options("scheduler", ["--ui", "--ui-allow-actions"]).scheduler
    assert scheduler is not None
    assert scheduler.ui_allow_actions
