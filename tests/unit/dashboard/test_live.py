"""Clusters that live: one that is followed from outside, and that of a serving scheduler."""

import dataclasses
import gzip
import json
import time
from concurrent.futures import Future
from typing import Any

import msgspec
import pytest

from pumice.api.kinds import JOB
from pumice.api.objects import FOLLOWED
from pumice.apiserver.served_cluster import ServedCluster
from pumice.clock import VirtualClock
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.cluster.kube.cluster import KubeCluster
from pumice.cluster.kube.connection import from_master
from pumice.dashboard.answers import Answers, UnansweredError
from pumice.dashboard.pages import NOW, Pages
from pumice.dashboard.questions import Why
from pumice.dashboard.security import ClusterLogin, Person, Right
from pumice.dashboard.serving import LiveDashboard
from pumice.dashboard.sources import About, EmbeddedSource, FollowedSource
from pumice.dashboard.view import EVERYTHING, Scope, View, hide
from pumice.errors import InputError, UnavailableError
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.serve.http_server import HttpServer
from pumice.serve.options import SchedulerOptions
from pumice.testing.builders import pod, pod_group
from tests.unit.dashboard.test_server import ask

PATIENCE_S = 60.0


def eventually(found: Any) -> Any:
    """Wait until something is so; return it."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError("it never came to that")


def test_a_cluster_is_followed_from_outside_and_nothing_is_written_to_it() -> None:
    served = ServedCluster()
    served.add_nodes(2, {"cpu": "4", "memory": "8Gi"})
    served.start()
    try:
        kinds = (*FOLLOWED, JOB)
        with KubeCluster(from_master(served.url), kinds=kinds) as cluster:
            source = FollowedSource(cluster, "followed", period_s=0.1)
            source.start()
            try:
                eventually(lambda: source.feed.picture)
                pages = Pages(source, Answers())
                (tag, *_), first = pages.overview(EVERYTHING, NOW), pages.revision
                assert tag
                served.cluster.create(pod_group("waits", phase=None))
                served.cluster.create(pod("waits-0", group="waits", cpu=64))

                def seen() -> Any:
                    reported = json.loads(pages.jobs(EVERYTHING, NOW)[1])
                    return "default/waits" in reported["job"] and pages.revision != first

                eventually(seen)
                assert source.problem == ""
                assert not source.about.decides
                pages.answers.close()
            finally:
                source.stop()
        writers = {
            event["source"]["component"] for event in served.cluster.list("Event", "default")[0]
        }
        assert writers <= {"volcano", "vc-controller-manager", "pumice"}
    finally:
        served.stop()


def test_a_cluster_whose_clock_runs_fast_is_shown_by_that_clock() -> None:
    served = ServedCluster(speed=60.0)
    served.add_nodes(1, {"cpu": "4", "memory": "8Gi"})
    served.start()
    try:
        kinds = (*FOLLOWED, JOB)
        with KubeCluster(from_master(served.url), kinds=kinds, by_server=True) as cluster:
            source = FollowedSource(cluster, "followed", period_s=0.1)
            source.start()
            try:
                eventually(lambda: source.about.speed == pytest.approx(60.0, rel=0.5))
                assert source.material().now == pytest.approx(served.cluster.now(), abs=600.0)
            finally:
                source.stop()
    finally:
        served.stop()


@pytest.fixture
def plane() -> Any:
    plane = EmbeddedControlPlane(cluster=EmbeddedCluster(VirtualClock()))
    for name in ("n1", "n2"):
        add_node(plane.cluster, name, {"cpu": "4", "memory": "8Gi"})
    return plane


def test_the_dashboard_of_a_scheduler_shows_its_cycles(plane: Any, tmp_path: Any) -> None:
    conf = tmp_path / "scheduler.conf"
    conf.write_text('actions: "allocate"\ntiers: [{plugins: [{name: gang}]}]\n')
    options = SchedulerOptions(ui=True, ui_address="127.0.0.1:0", scheduler_conf=str(conf))
    dashboard = LiveDashboard(options, plane.cluster)
    dashboard.observer._every_s = 0.0
    plane.observers.append(dashboard.observer)
    plane.on_cycle.append(dashboard.finished)
    for number in range(2):
        plane.cluster.create(pod_group(f"g{number}", min_member=1, phase=None))
        plane.cluster.create(pod(f"p{number}", group=f"g{number}", cpu=3))
    try:
        with HttpServer([dashboard.site()]) as http:
            place = f"127.0.0.1:{http.ports[0]}"
            status, _, body = ask(place, "/api/overview")
            assert (status, b"only the leader" in body) == (503, True)  # no cycle yet: that is said
            plane.step()
            plane.step()
            status, _, body = ask(place, "/api/cycles")
            assert status == 200
            bound = [each for each in json.loads(body)["cycles"] if each["binds"]]
            assert sum(each["binds"] for each in bound) == 2
            reported = json.loads(ask(place, f"/api/cycles/{bound[0]['number']}")[2])
            assert {each["node"] for each in reported["bound"]} <= {"n1", "n2"}
            assert reported["moment"]
            then = json.loads(ask(place, f"/api/jobs?at={bound[0]['number']}")[2])
            now = json.loads(ask(place, "/api/jobs")[2])
            assert sum(then["bound"]) < sum(now["bound"]) == 2
            conf_text = json.loads(ask(place, "/api/configuration")[2])["text"]
            assert conf_text == conf.read_text()
    finally:
        dashboard.close()


@pytest.mark.parametrize("address", ["0.0.0.0:0", ":11252", "192.0.2.1:80"])
def test_a_scheduler_does_not_show_itself_to_other_machines_by_itself(
    plane: Any, address: str
) -> None:
    with pytest.raises(InputError, match="tls-cert"):
        LiveDashboard(SchedulerOptions(ui=True, ui_address=address), plane.cluster)


class Reviewer:
    """An API server that knows one token, and who may list what."""

    def __init__(self, allowed: set[tuple[str, str]]) -> None:
        self.allowed = allowed
        self.asked = 0
        self.broken = False

    def create(self, review: Any) -> Any:
        self.asked += 1
        if self.broken:
            raise UnavailableError("TokenReview", problem="no answer")
        spec = review["spec"]
        if review["kind"] == "TokenReview":
            known = spec["token"] == "ann's"  # noqa: S105
            user = {"username": "ann", "groups": ["dev"]}
            return {"status": {"authenticated": known, "user": user if known else {}}}
        assert (spec["user"], spec["groups"]) == ("ann", ["dev"])
        asked = spec["resourceAttributes"]
        assert asked["verb"] == "list"
        return {
            "status": {"allowed": (asked["resource"], asked.get("namespace", "")) in self.allowed}
        }


ANN = Person("ann", ("dev",))


def test_the_cluster_says_who_somebody_is() -> None:
    login = ClusterLogin(Reviewer(set()), list)  # type: ignore[arg-type]
    assert login.identify("ann's") == ANN
    assert login.identify("forged") is None


def test_somebody_sees_the_namespaces_that_they_may_list() -> None:
    some = {("podgroups", "a"), ("pods", "a"), ("podgroups", "b"), ("queues", ""), ("nodes", "")}
    reviewer, clock = Reviewer(some), [0.0]
    login = ClusterLogin(reviewer, lambda: ["a", "b"], lambda: clock[0])  # type: ignore[arg-type]
    assert login.scope(ANN) == Scope(frozenset({"a"}), cluster=True)
    asked = reviewer.asked
    login.scope(ANN)
    assert reviewer.asked == asked  # it counts for a minute
    clock[0] = 61.0
    reviewer.allowed = {("podgroups", ""), ("pods", "")}
    assert login.scope(ANN) == Scope(None, cluster=False)


def test_a_new_namespace_is_seen_at_once_and_one_without_jobs_stays() -> None:
    reviewer = Reviewer({("podgroups", "a"), ("pods", "a"), ("podgroups", "b"), ("pods", "b")})
    named: list[str] = []
    login = ClusterLogin(reviewer, lambda: named, lambda: 0.0)  # type: ignore[arg-type]
    assert login.scope(ANN) == Scope(frozenset(), cluster=False)
    named.append("a")
    assert login.scope(ANN) == Scope(frozenset({"a"}), cluster=False)
    named[:] = ["b"]
    assert login.scope(ANN) == Scope(frozenset({"a", "b"}), cluster=False)
    asked = reviewer.asked
    login.scope(ANN)
    assert reviewer.asked == asked


def test_a_right_is_asked_for_as_the_cluster_knows_it() -> None:
    asked = []

    class Allows:
        def create(self, review: Any) -> Any:
            asked.append(review["spec"])
            return {"status": {"allowed": len(asked) == 1}}

    login = ClusterLogin(Allows(), list)  # type: ignore[arg-type]
    right = Right("delete", "batch.volcano.sh", "jobs", "a", "train")
    assert login.may(ANN, right)
    assert not login.may(ANN, right)  # asked anew each time
    attributes = {
        "verb": "delete",
        "group": "batch.volcano.sh",
        "resource": "jobs",
        "namespace": "a",
        "name": "train",
    }
    assert asked[0] == {"user": "ann", "groups": ["dev"], "resourceAttributes": attributes}


def test_a_cluster_that_does_not_answer_lets_nobody_in() -> None:
    reviewer = Reviewer({("podgroups", ""), ("pods", "")})
    reviewer.broken = True
    login = ClusterLogin(reviewer, lambda: ["a"])  # type: ignore[arg-type]
    assert login.identify("ann's") is None
    assert login.scope(ANN) == Scope(frozenset(), cluster=False)
    assert not login.may(ANN, Right("create", "bus.volcano.sh", "commands", "a"))


def test_names_of_other_namespaces_are_taken_out_of_words() -> None:
    reported = {"text": "after b/secret-job, a/mine; 3 GiB/s", "list": ["b/other (x)"]}
    shown = hide(reported, Scope(frozenset({"a"})), ["a", "b"])
    assert shown == {
        "text": "after (another namespace), a/mine; 3 GiB/s",
        "list": ["(another namespace) (x)"],
    }
    assert hide(reported, EVERYTHING, ["a", "b"]) is reported


def test_who_may_not_list_nodes_and_queues_is_not_shown_them(plane: Any) -> None:
    source = EmbeddedSource(plane, About(title="x", kind="embedded", decides=True))
    plane.step()
    pages, scope = Pages(source, Answers()), Scope(frozenset(), cluster=False)
    for page in (pages.nodes, pages.queues):
        with pytest.raises(UnansweredError, match="may not see"):
            page(scope, NOW)
    reported = json.loads(pages.overview(scope, NOW)[1])
    assert (reported["resources"], reported["nodes"], reported["jobs"]) == ([], None, {})
    pages.answers.close()


def test_more_questions_than_can_wait_are_turned_away(plane: Any) -> None:
    source = EmbeddedSource(plane, About(title="x", kind="embedded", decides=True))
    plane.step()
    pages = Pages(source, Answers())
    try:
        questions = [Why(f"default/j{number}") for number in range(100)]
        with pytest.raises(UnansweredError, match="too many questions"):
            all(pages.ask(NOW, each) for each in questions)
    finally:
        pages.answers.close()


class Failing(Answers):
    """Answers of a process that always ends."""

    def __init__(self) -> None:
        super().__init__()
        self.fails = True

    def ask(self, about: Any, material: Any, question: Any, wanted_s: float = 60.0) -> Any:
        if not self.fails:
            return super().ask(about, material, question, wanted_s)
        future: Future[Any] = Future()
        future.set_exception(UnansweredError("the answering process ended; ask again", 503))
        return future


def unmarked(jobs: Any) -> Any:
    """Return the jobs of a picture without the scheduler's annotations."""
    marks = [msgspec.structs.replace(each.metadata, annotations={}) for each in jobs.objects]
    pairs = zip(jobs.objects, marks, strict=True)
    return dataclasses.replace(
        jobs, objects=[msgspec.structs.replace(each, metadata=meta) for each, meta in pairs]
    )


def test_causes_that_cannot_be_computed_are_reported_and_asked_for_again(plane: Any) -> None:
    source = EmbeddedSource(plane, About(title="x", kind="embedded", decides=True))
    plane.cluster.create(pod_group("g", phase=None))
    plane.cluster.create(pod("p", group="g", cpu=99))
    plane.step()
    answers = Failing()
    pages = Pages(source, answers)
    try:
        pages.overview(EVERYTHING, NOW)
        (job,) = json.loads(pages.overview(EVERYTHING, NOW)[1])["longest"]
        assert "needs 99 CPU" in job["text"]  # what the scheduler wrote
        picture: Any = source.feed.picture
        bare = dataclasses.replace(picture, waiting={}, jobs=unmarked(picture.jobs))
        (row,) = View(bare).job_rows
        told = View(bare, problem=pages._causes.problem).cause(row)
        assert told == ("", "the cause is not known: the answering process ended; ask again")
        answers.fails, pages._causes._due = False, 0.0
        pages.overview(EVERYTHING, NOW)
        eventually(lambda: not pages._causes.problem)
        (job,) = json.loads(pages.overview(EVERYTHING, NOW)[1])["longest"]
        assert job["code"] == "InsufficientResource"
    finally:
        answers.close()


def test_a_document_that_shows_the_same_is_not_sent_again_and_a_long_one_is_packed(
    plane: Any,
) -> None:
    for number in range(200):
        add_node(plane.cluster, f"node-{number}", {"cpu": "4", "memory": "8Gi"})
    source = EmbeddedSource(plane, About(title="x", kind="embedded", decides=True))
    source.feed._every_s = 0.0
    plane.step()
    pages = Pages(source, Answers())
    try:
        before, first = pages.nodes(EVERYTHING, NOW), pages.revision
        assert gzip.decompress(before.packed) == before.body
        assert len(before.packed) < len(before.body) / 5
        plane.cluster.create(pod_group("g", phase=None))
        plane.cluster.create(pod("p", group="g", cpu=99))
        plane.step()
        assert pages.revision != first  # a job waits, which no node shows
        assert pages.nodes(EVERYTHING, NOW).tag == before.tag
    finally:
        pages.answers.close()
