"""Questions have no effect outside: calls to an extender, and notes about its votes."""

import json
from typing import Any

import pytest

from pumice.diagnosis import runner
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.explain import explain_job
from pumice.diagnosis.waiting_jobs import waiting_jobs
from pumice.testing import node, pod, pod_group, queue

VERBS = (
    "onSessionOpen",
    "onSessionClose",
    "predicate",
    "prioritize",
    "jobEnqueueable",
    "jobEnqueued",
    "jobReady",
    "allocateFunc",
    "deallocateFunc",
)
CONF = (
    'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n'
    "  - name: extender\n    arguments:\n      extender.urlPrefix: http://extender.test\n"
    + "".join(f"      extender.{verb}Verb: {verb}\n" for verb in VERBS)
)


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Calls to an extender that refuses every node for the pod dear."""
    heard: list[tuple[str, str]] = []

    class Client:
        def post(self, verb: str, payload: Any, *, answer: bool = True) -> Any:
            text = json.dumps(payload, sort_keys=True, default=str)
            heard.append((verb, text))
            refused = verb == "predicate" and "dear" in text
            return {"status": "no licence"} if refused else {}

        def close(self) -> None:
            pass

    monkeypatch.setattr(runner, "connect_extender", lambda *_: Client())
    return heard


def there(*, asks: bool, pod_name: str = "dear") -> ClusterState:
    objects = [
        *(node(name, cpu=4) for name in ("n0", "n1")),
        queue("default"),
        pod_group("g", min_member=1),
        pod(pod_name, group="g", cpu=1),
    ]
    return ClusterState(objects=tuple(objects), now=0.0, conf=CONF, asks_extender=asks)


def test_an_extender_is_reported_nothing_and_its_vote_is_said_to_be_unknown(heard: Any) -> None:
    found = explain_job(there(asks=False), "g")
    waiting_jobs(there(asks=False))
    assert heard == []
    assert found.state == "starts"
    assert found.notes[-1] == runner.UNKNOWN_VOTE


def test_an_extender_that_may_be_asked_is_asked_about_nodes_alone(heard: Any) -> None:
    found = explain_job(there(asks=True), "g")
    assert {verb for verb, _ in heard} == {"predicate"}
    assert (found.state, found.causes[0].code) == ("waits", "ExtenderRefused")
    assert "no licence" in found.causes[0].text
    assert found.notes[-1] == runner.SOME_VOTES


def test_an_extender_is_also_asked_which_node_is_best(heard: Any) -> None:
    assert explain_job(there(asks=True, pod_name="cheap"), "g").state == "starts"
    assert {verb for verb, _ in heard} == {"predicate", "prioritize"}


def test_each_distinct_question_is_asked_once(heard: Any) -> None:
    """The remedies run the cycle again and again."""
    explain_job(there(asks=True), "g")
    assert len(heard) == len(set(heard))
    assert len(heard) >= 2


def test_a_world_without_an_extender_has_no_unknown_vote(world: Any, job: Any) -> None:
    found = explain_job(world([queue("default"), node("n1", cpu=4), *job("j", cpu=1)]), "j")
    assert not any("extender" in note for note in found.notes)
