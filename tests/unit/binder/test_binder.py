"""The binder: decisions become writes; one that fails leaves the others alone."""

from typing import Any
from uuid import UUID

import pytest

from pumice.api.annotations import QUEUE_GATE
from pumice.api.decisions import Condition, Decisions, JobRecord, PodGroupState, WaitingPod
from pumice.binder import Binder
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import ConflictError, FencedError, RejectedError, UnavailableError
from pumice.testing import pod, pod_group, queue

GROUP = "PodGroup.scheduling.volcano.sh"
QUEUE = "Queue.scheduling.volcano.sh"


def made_cluster() -> Any:
    cluster = EmbeddedCluster(VirtualClock(0.0))
    for name in ("p", "q"):
        cluster.create(pod(name, group="g"))
    cluster.create(pod_group("g"))
    cluster.create(queue("default"))
    return cluster


@pytest.fixture
def cluster() -> Any:
    return made_cluster()


class Held:
    """Keeps writes until asked to answer them; does none of them."""

    def __init__(self) -> None:
        self.writes: list[Any] = []
        self.waiting: list[Any] = []

    def submit(self, write: Any, *, lane: Any, done: Any = None) -> None:
        self.writes.append((lane, write))
        self.waiting.append((write, done))

    def flush(self, timeout_s: float) -> bool:
        return not self.waiting

    def go(self) -> None:
        waiting, self.waiting = self.waiting, []
        for write, done in waiting:
            done(self.answer(write))

    def answer(self, write: Any) -> Any:
        return None

    def verbs(self) -> Any:
        return [write.verb for _, write in self.writes]


def waits(message: str, **more: Any) -> Decisions:
    """Return decisions that leave a pod without a node."""
    return Decisions(waiting_pods={"default/p": WaitingPod("Unschedulable", message)}, **more)


def reasons(cluster: Any) -> Any:
    return {(e["involvedObject"]["name"], e["reason"]) for e in cluster.list("Event")[0]}


def test_pods_are_bound_with_their_annotations_and_reported(cluster: Any) -> None:
    decided = Decisions(binds={"default/p": "n"}, annotations={"default/p": {"k": "v"}})
    applied = Binder(cluster).apply(decided)
    bound = cluster.get("Pod", "default", "p")
    assert applied.bound == ["default/p"]
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["annotations"]["k"] == "v"
    assert reasons(cluster) == {("p", "Scheduled")}


def test_a_bind_that_fails_is_reported_and_the_next_goes_on(cluster: Any) -> None:
    cluster.bind("default", "p", "elsewhere", {})
    decided = Decisions(binds={"default/p": "n", "default/gone": "n", "default/q": "n"})
    applied = Binder(cluster).apply(decided)
    assert list(applied.failed) == ["default/p", "default/gone"]
    assert applied.bound == ["default/q"]
    assert ("p", "FailedScheduling") in reasons(cluster)


def test_pods_are_bound_before_victims_are_evicted(cluster: Any) -> None:
    cluster.bind("default", "q", "n", {})
    _, since = cluster.list("Pod")
    decided = Decisions(binds={"default/p": "n"}, evictions=["default/q", "default/gone"])
    applied = Binder(cluster).apply(decided)
    assert applied.evicted == ["default/q"]
    assert not applied.errors
    reported = [e.object["metadata"]["name"] for e in cluster.watch("Pod", since=since)]
    assert reported[0] == "p"
    assert reported[-1] == "q"
    assert cluster.get("Pod", "default", "q")["metadata"]["deletionTimestamp"]


def test_a_group_gets_phase_counts_and_hyper_node(cluster: Any) -> None:
    state = PodGroupState(phase="Running", hyper_node="h", running=2, succeeded=1, failed=3)
    Binder(cluster).apply(Decisions(pod_groups={"default/g": state, "default/gone": state}))
    group = cluster.get(GROUP, "default", "g")
    assert group["status"] == {
        "phase": "Running",
        "conditions": [],
        "running": 2,
        "succeeded": 1,
        "failed": 3,
    }
    assert group["metadata"]["annotations"] == {"volcano.sh/job-allocated-hypernode": "h"}


def test_a_condition_that_says_the_same_keeps_its_time(cluster: Any) -> None:
    binder = Binder(cluster)
    waits = Condition("Unschedulable", "True", "NotEnoughResources", "m")
    ready = Condition("Scheduled", "True", "r")
    binder.apply(Decisions(pod_groups={"default/g": PodGroupState("Inqueue", [waits])}))
    cluster.clock.advance(60)
    binder.apply(Decisions(pod_groups={"default/g": PodGroupState("Running", [waits, ready])}))
    conditions = cluster.get(GROUP, "default", "g")["status"]["conditions"]
    assert {c["type"]: c["lastTransitionTime"] for c in conditions} == {
        "Unschedulable": "1970-01-01T00:00:00Z",
        "Scheduled": "1970-01-01T00:01:00Z",
    }
    cycles = {str(UUID(c["transitionID"])) for c in conditions}
    assert cycles == {c["transitionID"] for c in conditions}
    assert len(cycles) == 2


def test_a_queue_shows_what_is_allocated_and_nothing_more(cluster: Any) -> None:
    binder = Binder(cluster)
    binder.apply(Decisions(queues={"default": {"cpu": "2", "memory": "1Gi"}}))
    binder.apply(Decisions(queues={"default": {"cpu": "1"}}))
    assert cluster.get(QUEUE, "", "default")["status"]["allocated"] == {"cpu": "1"}
    before = cluster.version
    binder.apply(Decisions(queues={"default": {"cpu": "1"}}))
    assert cluster.version == before


def test_waiting_pods_are_reported_why_once(cluster: Any) -> None:
    binder = Binder(cluster)
    small = WaitingPod("Unschedulable", "too small")
    decided = Decisions(waiting_pods={"default/p": small, "default/gone": small})
    binder.apply(decided)
    (condition,) = cluster.get("Pod", "default", "p")["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"] == "too small"
    assert ("p", "FailedScheduling") in reasons(cluster)
    before = cluster.version
    binder.apply(decided)
    assert cluster.version == before
    cluster.clock.advance(60)
    binder.apply(waits("still"))
    (condition,) = cluster.get("Pod", "default", "p")["status"]["conditions"]
    assert condition["message"] == "still"
    assert condition["lastTransitionTime"] == "1970-01-01T00:00:00Z"


def test_a_pod_that_was_bound_meanwhile_does_not_wait(cluster: Any) -> None:
    cluster.bind("default", "p", "n", {})
    Binder(cluster).apply(waits("too small"))
    (condition,) = cluster.get("Pod", "default", "p")["status"]["conditions"]
    assert condition["status"] == "True"


def test_a_bind_is_for_the_very_pod_that_was_seen(cluster: Any) -> None:
    writer = Held()
    binder = Binder(cluster, writer=writer)
    binder.apply(Decisions(binds={"default/p": "n"}))
    cluster.delete("Pod", "default", "p")
    cluster.create(pod("p", group="g"))
    (write,) = (write for _, write in writer.writes)
    with pytest.raises(ConflictError):
        cluster.bind(**write.arguments)
    assert "nodeName" not in cluster.get("Pod", "default", "p")["spec"]


def test_a_status_on_its_way_is_not_written_again(cluster: Any) -> None:
    writer = Held()
    binder = Binder(cluster, writer=writer)
    decided = Decisions(
        pod_groups={"default/g": PodGroupState("Inqueue")}, queues={"default": {"cpu": "1"}}
    )
    for _ in range(2):
        binder.apply(decided)
    assert writer.verbs() == ["patch", "patch"]
    assert binder.written_groups == {}
    writer.go()  # done, but the cluster does not show it yet
    binder.apply(decided)
    assert writer.verbs() == ["patch", "patch"]


def of_a_start(label: str, **state: Any) -> Decisions:
    states = {"default/new": PodGroupState(**state)}
    return Decisions(pod_groups=states, task_statuses={"default/new": {label: 1}})


def test_the_status_of_a_job_that_starts_is_written_once(cluster: Any) -> None:
    cluster.create(pod_group("new", phase=None))
    writer, clock = Held(), cluster.clock
    binder = Binder(cluster, writer=writer, clock=clock.now, hold_s=0.5)
    for label, state in (("Binding", "Inqueue"), ("Bound", "Running")):
        binder.apply(of_a_start(label, phase=state))
        assert binder.written_groups["default/new"][0].phase == state  # decided from here on
        clock.advance(0.2)
    assert writer.verbs() == []
    binder.apply(of_a_start("Running", phase="Running", running=1))
    assert writer.verbs() == ["patch"]
    clock.advance(10)
    binder.apply(Decisions())
    assert writer.verbs() == ["patch"]


def test_a_held_status_is_written_though_pods_take_long_to_run(cluster: Any) -> None:
    cluster.create(pod_group("new", phase=None))
    binder = Binder(cluster, clock=cluster.clock.now, hold_s=0.5)
    binder.apply(of_a_start("Binding", phase="Inqueue"))
    cluster.clock.advance(0.3)
    binder.apply(of_a_start("Bound", phase="Running"))
    assert "phase" not in cluster.get(GROUP, "default", "new")["status"]
    cluster.clock.advance(0.3)
    binder.apply(Decisions())
    assert cluster.get(GROUP, "default", "new")["status"]["phase"] == "Running"


def test_a_held_status_counts_no_longer_if_the_job_does_not_start(cluster: Any) -> None:
    cluster.create(pod_group("new", phase="Inqueue"))
    binder = Binder(cluster, writer=Held(), clock=cluster.clock.now, hold_s=0.5)
    binder.apply(of_a_start("Binding", phase="Running"))
    binder.apply(of_a_start("Pending", phase="Inqueue"))
    assert binder.written_groups["default/new"][0].phase == "Inqueue"


@pytest.mark.parametrize("made_anew", [True, False])
def test_a_held_status_is_not_written_to_another_group_or_by_a_new_lead(
    cluster: Any, made_anew: bool
) -> None:
    cluster.create(pod_group("new", phase=None))
    writer = Held()
    binder = Binder(cluster, writer=writer, clock=cluster.clock.now, hold_s=0.5)
    binder.apply(of_a_start("Binding", phase="Inqueue"))
    if made_anew:
        cluster.delete(GROUP, "default", "new")
        cluster.create(pod_group("new", phase=None))
    else:
        binder.forget_held()
    cluster.clock.advance(1)
    binder.apply(Decisions())
    assert writer.verbs() == []


def gated(cluster: Any, name: str, *gates: str) -> None:
    spec = {"schedulingGates": [{"name": gate} for gate in gates]}
    cluster.create(pod(name, group="g", annotations={QUEUE_GATE: "true"}, spec=spec))


def test_an_opened_gate_is_removed_and_no_other(cluster: Any) -> None:
    gated(cluster, "shy", "example.com/licence", QUEUE_GATE)
    results = Binder(cluster).apply(Decisions(opened_gates=["default/shy", "default/gone"]))
    assert [(each.what, each.key, each.error) for each in results.results] == [
        ("gate", "default/shy", None)
    ]
    left = cluster.get("Pod", "default", "shy")["spec"]["schedulingGates"]
    assert left == [{"name": "example.com/licence"}]


def test_a_gate_is_removed_from_the_very_pod_that_was_seen(cluster: Any) -> None:
    gated(cluster, "shy", QUEUE_GATE)
    writer = Held()
    Binder(cluster, writer=writer).apply(Decisions(opened_gates=["default/shy"]))
    uid = cluster.get("Pod", "default", "shy")["metadata"]["uid"]
    assert writer.writes[0][1].arguments["patch"]["metadata"] == {"uid": uid}


def test_a_status_that_failed_is_written_again(cluster: Any) -> None:
    class Down(Held):
        def answer(self, write: Any) -> Any:
            return UnavailableError(problem="no answer")

    writer = Down()
    binder = Binder(cluster, writer=writer)
    decided = Decisions(pod_groups={"default/g": PodGroupState("Inqueue")})
    for _ in range(2):
        binder.apply(decided)
        writer.go()
        assert len(binder.drain().errors) == 1
    assert writer.verbs() == ["patch", "patch"]


def test_a_pod_that_changed_meanwhile_is_reported_next_time(cluster: Any) -> None:
    class Stale(Held):
        def answer(self, write: Any) -> Any:
            return ConflictError() if write.verb == "patch" else None

    writer = Stale()
    binder = Binder(cluster, writer=writer)
    binder.apply(waits("m"))
    cluster.patch("Pod", "default", "p", {"metadata": {"labels": {"a": "b"}}})
    (patch, _), *_ = ((write, lane) for lane, write in writer.writes)
    with pytest.raises(ConflictError):
        cluster.patch(**patch.arguments)
    writer.go()
    binder.drain()
    binder.apply(Decisions())
    again = writer.writes[-2][1]
    cluster.patch(**again.arguments)
    (condition,) = cluster.get("Pod", "default", "p")["status"]["conditions"]
    assert condition["message"] == "m"


def test_what_a_pod_is_reported_waits_for_what_it_was_reported_before(cluster: Any) -> None:
    writer = Held()
    binder = Binder(cluster, writer=writer)
    binder.apply(waits("one"))
    binder.apply(waits("two"))
    assert writer.verbs().count("patch") == 1
    writer.go()
    binder.drain()
    binder.apply(Decisions())
    assert writer.verbs().count("patch") == 2


def test_a_nomination_that_no_longer_holds_is_taken_back(cluster: Any) -> None:
    binder = Binder(cluster)
    binder.apply(Decisions(nominated={"default/p": "n"}, pipelined={"default/p": "n"}))
    binder.apply(waits("m", pipelined={"default/p": "n"}))
    assert cluster.get("Pod", "default", "p")["status"]["nominatedNodeName"] == "n"
    binder.apply(waits("m"))
    assert "nominatedNodeName" not in cluster.get("Pod", "default", "p")["status"]


def test_a_refused_bind_is_reported_in_a_condition(cluster: Any) -> None:
    class Refusing(Held):
        def answer(self, write: Any) -> Any:
            return RejectedError("Pod", problem="no") if write.verb == "bind" else None

    writer = Refusing()
    binder = Binder(cluster, writer=writer)
    binder.apply(Decisions(binds={"default/p": "n"}))
    writer.go()
    binder.drain()
    binder.apply(Decisions())
    patch = next(write for _, write in writer.writes if write.verb == "patch")
    (condition,) = patch.arguments["patch"]["status"]["conditions"]
    assert condition["reason"] == "SchedulerError"
    assert condition["message"].startswith("failed to bind to node n: ")


def test_nobody_is_reported_of_writes_that_were_held_back(cluster: Any) -> None:
    class Fenced(Held):
        def answer(self, write: Any) -> Any:
            return FencedError()

    writer = Fenced()
    binder = Binder(cluster, writer=writer)
    binder.apply(Decisions(binds={"default/p": "n"}))
    writer.go()
    assert list(binder.drain().failed) == ["default/p"]
    assert writer.verbs() == ["bind"]


def test_a_group_hears_once_that_it_waits_and_once_that_it_can_start(cluster: Any) -> None:
    binder = Binder(cluster)
    waits = Decisions(
        pod_groups={"default/g": PodGroupState("Inqueue")},
        unschedulable={"default/g": "why"},
        task_statuses={"default/g": {"Pending": 2, "Running": 1}},
    )
    scheduled = [Condition("Scheduled", "True", "r")]
    for _ in range(2):
        binder.apply(waits)
    for running in (0, 1):
        ready = PodGroupState("Running", scheduled, running=running)
        binder.apply(Decisions(pod_groups={"default/g": ready}))
    reported = [(e["reason"], e["message"], e.get("count", 1)) for e in cluster.list("Event")[0]]
    assert reported == [
        ("Unschedulable", "2/3 tasks in gang unschedulable: why", 1),
        ("Scheduled", "pod group is ready", 1),
    ]


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ("cluster", "resource in cluster is overused: overused cpu, overused memory"),
        ("q", "queue resource quota insufficient: insufficient cpu, insufficient memory"),
        (
            "resource quota team",
            (
                "resource quota team insufficient, requested: cpu=1,memory=2Gi, "
                "used: cpu=1.5,memory=0, limited: cpu=2,memory=1Gi"
            ),
        ),
    ],
)
def test_a_group_kept_out_of_its_queue_hears_of_every_short_resource(
    cluster: Any, at: str, message: str
) -> None:
    cpu = {"resource": "cpu", "used": 1500.0, "request": 1000.0, "limit": 2000.0}
    memory = {
        "resource": "memory",
        "used": 0.0,
        "request": 2.0 * (1 << 30),
        "limit": 1.0 * (1 << 30),
    }
    record = JobRecord("enqueue", "over quota", {**cpu, "at": at, "more": [memory]})
    binder = Binder(cluster)
    state = PodGroupState("Pending")
    binder.apply(Decisions(pod_groups={"default/g": state}, records={"default/g": record}))
    assert [event["message"] for event in cluster.list("Event")[0]] == [message]


class Refusing(Held):
    """Refuses every status."""

    def answer(self, write: Any) -> Any:
        return RejectedError("Queue", problem="no") if write.verb == "patch" else None


def test_a_refused_status_is_offered_ever_more_rarely_and_reported_once(
    cluster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    writer = Refusing()
    binder = Binder(cluster, writer=writer)
    states = {"default/g": PodGroupState("Inqueue")}
    decided = waits("m", pod_groups=states, queues={"default": {"cpu": "1"}})
    tried = []
    for second in range(200):
        before = writer.verbs().count("patch")
        binder.apply(decided)
        writer.go()
        binder.drain()
        if writer.verbs().count("patch") > before:
            assert writer.verbs().count("patch") == before + 3
            tried.append(second)
        cluster.clock.advance(1)
    assert tried == [0, 1, 3, 7, 15, 31, 63, 123, 183]
    assert sum("status refused" in record.message for record in caplog.records) == 3


def test_a_status_whose_report_is_lost_is_written_again_in_the_end(cluster: Any) -> None:
    writer = Held()
    binder = Binder(cluster, writer=writer)
    decided = Decisions(pod_groups={"default/g": PodGroupState("Inqueue")})
    for seconds, writes in ((0, 1), (599, 1), (1, 2)):
        cluster.clock.advance(seconds)
        binder.apply(decided)
        assert len(writer.writes) == writes


def test_events_that_are_not_taken_are_counted(cluster: Any) -> None:
    class Full(Held):
        def answer(self, write: Any) -> Any:
            return UnavailableError(sent=False) if write.verb == "record" else None

    writer = Full()
    binder = Binder(cluster, writer=writer)
    binder.apply(Decisions(binds={"default/p": "n"}))
    for _ in range(2):
        writer.go()
        binder.drain()
    assert binder.events_lost == 1


def test_an_annotation_is_written_although_the_status_stays(cluster: Any) -> None:
    state = PodGroupState(phase="Pending", hyper_node="s0")
    assert Binder(cluster).apply(Decisions(pod_groups={"default/g": state})).results
    group = cluster.get(GROUP, "default", "g")
    assert group["metadata"]["annotations"]["volcano.sh/job-allocated-hypernode"] == "s0"
    before = group["metadata"]["resourceVersion"]
    Binder(cluster).apply(Decisions(pod_groups={"default/g": state}))
    assert cluster.get(GROUP, "default", "g")["metadata"]["resourceVersion"] == before


def test_what_was_sent_is_forgotten_with_its_object(cluster: Any) -> None:
    binder = Binder(cluster)
    binder.apply(Decisions(pod_groups={"default/g": PodGroupState("Inqueue")}))
    cluster.delete(GROUP, "default", "g")
    for _ in range(64):
        binder.apply(Decisions())
    assert not len(binder._statuses)
