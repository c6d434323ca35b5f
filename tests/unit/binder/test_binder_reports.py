"""What the binder reports about writes: of pods, groups and volumes, and how long they took."""

from typing import Any

import pytest

from pumice.api.decisions import Decisions, PodGroupState
from pumice.binder import Binder
from pumice.errors import ConflictError, RejectedError, UnavailableError
from tests.unit.binder.test_binder import GROUP, Held, made_cluster


@pytest.fixture
def cluster() -> Any:
    return made_cluster()


@pytest.mark.parametrize("error", [None, RejectedError("Pod", problem="no")])
def test_only_a_pod_that_is_evicted_is_reported_so(cluster: Any, error: Any) -> None:
    class Answering(Held):
        def answer(self, write: Any) -> Any:
            return error if write.verb == "evict" else None

    writer = Answering()
    binder = Binder(cluster, writer=writer)
    binder.apply(Decisions(evictions=["default/q"]))
    uid = cluster.get("Pod", "default", "q")["metadata"]["uid"]
    assert binder.is_underway("evict", "default/q", uid)
    writer.go()
    binder.drain()
    assert not binder.is_underway("evict", "default/q", uid)
    assert writer.verbs() == ["evict"] + ["record"] * (0 if error else 2)
    about = [write.arguments["message"] for _, write in writer.writes[1:]]
    assert about == ([] if error else ["Pod is evicted, because of preempt", "preempt"])


@pytest.mark.parametrize(
    ("error", "events", "conditions"),
    [
        (UnavailableError(problem="no answer"), 1, 0),
        (UnavailableError(sent=False), 0, 0),
        (ConflictError("Pod"), 1, 0),
        (RejectedError("Pod", problem="no"), 0, 1),
    ],
)
@pytest.mark.parametrize("with_conditions", [True, False])
def test_how_a_failed_bind_is_reported(
    cluster: Any, error: Any, events: int, conditions: int, with_conditions: bool
) -> None:
    class Answering(Held):
        def answer(self, write: Any) -> Any:
            return error if write.verb == "bind" else None

    writer = Answering()
    binder = Binder(cluster, writer=writer, write_conditions=with_conditions)
    binder.apply(Decisions(binds={"default/p": "n"}))
    writer.go()
    binder.drain()
    told = events if with_conditions else events + conditions
    assert writer.verbs() == ["bind"] + ["record"] * told
    binder.apply(Decisions())
    assert writer.verbs().count("patch") == (conditions if with_conditions else 0)


def test_a_cause_is_written_when_it_changes_and_removed_when_it_ends(cluster: Any) -> None:
    binder = Binder(cluster)

    def written() -> list[Any]:
        annotations = cluster.get(GROUP, "default", "g")["metadata"].get("annotations") or {}
        return [value for name, value in annotations.items() if "waiting" in name]

    binder.write_cause("default/g", "Code", "text")
    assert sorted(written()) == ["Code", "text"]
    version = cluster.get(GROUP, "default", "g")["metadata"]["resourceVersion"]
    binder.write_cause("default/g", "Code", "text")
    assert cluster.get(GROUP, "default", "g")["metadata"]["resourceVersion"] == version
    binder.write_cause("default/g", "Code", "other")
    assert sorted(written()) == ["Code", "other"]
    binder.write_cause("default/g", "", "")
    assert written() == []
    binder.write_cause("default/gone", "Code", "text")
    reported = [(e["reason"], e["message"], e.get("count", 1)) for e in cluster.list("Event")[0]]
    assert reported == [("Code", "text", 2), ("Code", "other", 1)]


def test_answers_are_timed_from_the_moment_they_are_handed_in(cluster: Any) -> None:
    writer, times = Held(), [100.0]
    binder = Binder(cluster, writer=writer, clock=lambda: times[0])
    binder.apply(Decisions(binds={"default/p": "n"}))
    times[0] = 102.5
    writer.go()
    (result,) = binder.drain().results
    assert (result.took_s, result.node) == (2.5, "n")


def test_a_pod_whose_volumes_are_not_bound_is_told_so(cluster: Any) -> None:
    binder = Binder(cluster)
    binder.report_unbound_volumes("default/p", "n", "why")
    binder.report_unbound_volumes("default/gone", "n", "why")
    binder.apply(Decisions())
    (condition,) = cluster.get("Pod", "default", "p")["status"]["conditions"]
    assert condition["reason"] == "SchedulerError"
    assert condition["message"] == "failed to bind volumes for node n: why"


def test_a_group_that_is_as_decided_is_not_written(cluster: Any) -> None:
    writer = Held()
    group = cluster.get(GROUP, "default", "g")
    state = PodGroupState(phase=group["status"]["phase"])
    binder = Binder(cluster, writer=writer)
    binder.apply(Decisions(pod_groups={"default/g": state}))
    assert writer.verbs() == []
    assert binder.written_groups == {}
