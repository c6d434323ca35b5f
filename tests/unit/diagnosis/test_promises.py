"""Promised places: kept, taken by another job, or waiting for pods that should have gone."""

from dataclasses import replace
from typing import Any

import pytest

from pumice.api.codes import Cause
from pumice.diagnosis.explain import explain_job
from pumice.diagnosis.forecast import forecast
from pumice.diagnosis.missing_pods import creation_errors, lacking_pods
from pumice.diagnosis.sources import load_world
from pumice.diagnosis.waiting_jobs import waiting_jobs
from pumice.errors import NotFoundError
from pumice.testing import node, pod, pod_group, queue
from tests.staged.truth import HERE, read, world_of


def staged(name: str) -> Any:
    return world_of(read(HERE / f"{name}.yaml"))


def test_the_list_says_who_takes_a_promised_place() -> None:
    lines = {each.job: each for each in waiting_jobs(staged("promise-taken-by-another-job"))}
    line = lines["default/train"]
    assert line.cause.code is Cause.JOB_AHEAD
    assert line.cause.text == (
        "its place on node n1 is promised, but default/bulk takes it; "
        "default/bulk goes first: priority: 200 before 100"
    )
    assert line.forecast is not None
    assert line.forecast["state"] == "never"


def test_a_promise_that_is_kept_stays_the_cause() -> None:
    found = explain_job(staged("waiting-for-evicted-now"), "urgent")
    assert found.causes[0].code is Cause.WAITING_FOR_EVICTED
    assert found.forecast is not None
    assert found.forecast["in_s"] == pytest.approx(30)


def test_a_forecast_does_not_count_on_a_pod_that_should_have_gone() -> None:
    found = forecast(staged("stuck-pod"), "default/train")
    assert (found.state, found.in_s) == ("unknown", None)
    assert found.text == (
        "unknown: it waits for default/old-0, which should have gone 10 min ago and may be stuck"
    )


def test_a_pod_that_goes_beside_one_that_is_stuck_is_counted_on() -> None:
    assert forecast(staged("stuck-pod-beside-one-that-goes"), "default/train").in_s == 20


@pytest.mark.parametrize("late", [0, 5, 10])
def test_a_kubelet_may_be_a_few_seconds_late(world: Any, late: int) -> None:
    there = [queue("default"), node("n1", cpu=4), pod_group("j"), pod("j-0", group="j", cpu=4)]
    old = pod("old", cpu=4, node="n1")
    old["metadata"]["deletionTimestamp"] = f"2026-01-15T09:59:{60 - late - 1:02}Z"
    found = forecast(world([*there, old], now=1_768_471_199.0), "default/j")
    assert found.in_s == 0


# Refused pods


def event(message: str, at: str, **about: Any) -> Any:
    named = {"kind": "Job", "name": "train", "namespace": "default", **about}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"train.{at}", "namespace": "default"},
        "involvedObject": named,
        "reason": "FailedCreate",
        "message": message,
        "lastTimestamp": at,
    }


def test_the_last_event_about_refused_pods_counts() -> None:
    first, last = "2026-01-15T09:00:00Z", "2026-01-15T09:10:00Z"
    events = [event("new", last), event("old", first), event("other", last, name="other")]
    assert creation_errors(events) == {"Job default/train": "new", "Job default/other": "other"}


def test_events_about_other_things_are_no_refusals() -> None:
    scheduled = {**event("0/3 nodes are available", "2026-01-15T09:00:00Z"), "reason": "Scheduled"}
    assert creation_errors([scheduled]) == {}


def test_events_are_read_where_an_admitted_job_lacks_pods() -> None:
    there = [
        pod_group("full", phase="Inqueue"),
        pod("full-0", group="full"),
        pod_group("short", min_member=2, phase="Inqueue", namespace="team"),
        pod("short-0", group="short", namespace="team"),
    ]
    assert lacking_pods(there) == {"team"}


class Serving:
    """A cluster that lists objects, and notes in which namespaces it is asked for events."""

    def __init__(self, objects: Any) -> None:
        self._objects = objects
        self.asked: list[str] = []

    def now(self) -> float:
        return 1_768_471_200.0

    def list(self, kind: str, namespace: str = "", labels: Any = None) -> Any:
        del labels
        if kind == "Event":
            self.asked.append(namespace)
        plain = kind.partition(".")[0]
        found = [one for one in self._objects if one["kind"] == plain]
        return [one for one in found if one["apiVersion"] != "v1" or "." not in kind], "1"

    def get(self, kind: str, namespace: str, name: str) -> Any:
        raise NotFoundError(kind, namespace, name)


def test_a_question_to_a_cluster_reads_the_events_of_those_namespaces() -> None:
    content = read(HERE / "pods-refused-service-account.yaml")
    cluster: Any = Serving(content["objects"])
    world = load_world([cluster])
    assert cluster.asked == ["default"]
    assert explain_job(world, "train").causes[0].code is Cause.NO_PODS


# Votes that are not known


def test_the_answer_is_open_while_an_extender_was_not_asked(world: Any, job: Any) -> None:
    there = world([queue("default"), node("n1", cpu=4), *job("j", cpu=1)])
    argued = (
        "  - name: extender\n    arguments: {extender.urlPrefix: 'http://127.0.0.1:9', "
        "extender.predicateVerb: predicate}\n"
    )
    found = explain_job(replace(there, conf=f"{there.conf}\n{argued}"), "j")
    assert (found.state, found.text) == (
        "starts",
        "it is open whether it starts: 1 pod finds a node, but the extender was not asked",
    )
    without = replace(there, conf=f"{there.conf}\n  - name: extender\n")
    assert explain_job(without, "j").text == "it starts now: 1 pod on 1 node"
