"""The rules of a job one by one: phases, counts, what happened, kill passes, retries."""

from typing import Any

import pytest

from pumice.api.kinds import ENDED_PHASES
from pumice.controllers.base import Delete, Key, Patch, UpdateStatus
from pumice.controllers.job.actions import Target, kill_job, kill_target, settled
from pumice.controllers.job.plugins import plugins_of
from pumice.controllers.job.policies import LifecycleEvent, TrackedJob, reactions
from pumice.controllers.job.state import JobState
from pumice.controllers.job.status import NEXT, Counts, Status
from tests.unit.controllers.fakes import NOON, FakeView
from tests.unit.controllers.job.stage import job, task

VERSION, MARK = "volcano.sh/job-version", "volcano.sh/controller-out-of-sync"
GONE = "2026-01-01T00:00:00Z"


def stored(*tasks: Any, status: Any = None, **spec: Any) -> Any:
    manifest = job(*tasks, **spec)
    manifest["metadata"] |= {"namespace": "ns", "uid": "u"}
    return manifest | ({"status": status} if status else {})


def pod(name: str, phase: str = "Running", *, of: str = "w", version: int = 0, **more: Any) -> Any:
    owner = {"kind": "Job", "name": "j", "uid": "u", "controller": True}
    metadata = {
        "name": name,
        "namespace": "ns",
        "uid": f"uid-of-{name}",
        "annotations": {"volcano.sh/task-spec": of, VERSION: str(version), **more.pop("marks", {})},
        "ownerReferences": [owner],
        **more.pop("metadata", {}),
    }
    status = {"phase": phase, **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status}


def state(*pods: Any, of: Any = None, others: Any = ()) -> JobState:
    return JobState.read(of or stored(), FakeView(*pods, *others))


# Phases


def following(phase: str, of: Any, **counts: Any) -> str | None:
    of["status"] = {"state": {"phase": phase}}
    return NEXT[phase](JobState.read(of, FakeView()), Status(counts))


@pytest.mark.parametrize("phase", ["", "Pending"])
@pytest.mark.parametrize(
    ("counts", "starts"),
    [
        ({}, False),
        ({"running": 1, "pending": 5, "terminating": 5, "unknown": 5}, False),
        ({"running": 2}, True),
        ({"running": 1, "succeeded": 1}, True),
        ({"succeeded": 1, "failed": 1}, True),
        ({"running": 3}, True),
    ],
)
def test_a_job_runs_once_enough_pods_run_or_have_run(phase: str, counts: Any, starts: bool) -> None:
    assert following(phase, stored(), **counts) == ("Running" if starts else None)


TWO = [("a", 2, 2), ("b", 1, 1)]


@pytest.mark.parametrize(
    ("tasks", "least", "more", "counts", "succeeded", "phase"),
    [
        ([("w", 0, 0)], 0, {}, {}, {}, None),
        ([("w", 2, 2)], 2, {}, {"running": 2}, {}, None),
        ([("w", 2, 2)], 2, {}, {"running": 1, "pending": 1}, {}, "Pending"),
        ([("w", 3, 2)], 2, {}, {"running": 2, "pending": 1}, {}, None),
        ([("w", 3, 2)], 2, {}, {"running": 1, "pending": 2}, {}, "Pending"),
        ([("w", 2, 2)], 2, {}, {"succeeded": 1, "running": 1}, {}, None),
        ([("w", 2, 2)], 2, {}, {"succeeded": 2}, {"w": 2}, "Completed"),
        ([("w", 2, 2)], 2, {}, {"succeeded": 1, "failed": 1}, {"w": 1}, "Failed"),
        ([("w", 2, 1)], 1, {}, {"succeeded": 1, "failed": 1}, {"w": 1}, "Completed"),
        ([("w", 2, 1)], 1, {}, {"failed": 2}, {"w": 0}, "Failed"),
        ([("w", 2, None)], 1, {}, {"succeeded": 1, "failed": 1}, {"w": 1}, "Completed"),
        (TWO, 3, {}, {"succeeded": 2, "failed": 1}, {"a": 2, "b": 0}, "Failed"),
        (TWO, 2, {}, {"succeeded": 2, "failed": 1}, {"a": 2, "b": 0}, "Completed"),
        (TWO, 3, {}, {"succeeded": 3}, {"a": 2}, "Completed"),
        ([("w", 3, 3)], 3, {"minSuccess": 1}, {"succeeded": 1, "running": 2}, {}, "Completed"),
        ([("w", 3, 3)], 3, {"minSuccess": 2}, {"succeeded": 1, "running": 2}, {}, None),
        ([("w", 2, 1)], 1, {"minSuccess": 2}, {"succeeded": 1, "failed": 1}, {"w": 1}, "Failed"),
    ],
)
def test_a_running_job_ends_waits_or_goes_on(
    tasks: Any, least: int, more: Any, counts: Any, succeeded: Any, phase: str | None
) -> None:
    listed = [task(name, replicas, minAvailable=need or 0) for name, replicas, need in tasks]
    manifest = stored(*listed, minAvailable=least, **more)
    for one, (_, _, need) in zip(manifest["spec"]["tasks"], tasks, strict=True):
        if need is None:
            del one["minAvailable"]
    by_task = {name: {"phase": {"Succeeded": number}} for name, number in succeeded.items()}
    assert following("Running", manifest, taskStatusCount=by_task, **counts) == phase


@pytest.mark.parametrize(
    ("counts", "phase"),
    [
        ({"retryCount": 3}, "Failed"),
        ({"retryCount": 2, "minAvailable": 2}, "Pending"),
        ({"retryCount": 2, "minAvailable": 2, "terminating": 1}, None),
        ({"retryCount": 2, "minAvailable": 1, "terminating": 1}, "Pending"),
    ],
)
def test_a_restarting_job_starts_over_or_has_failed(counts: Any, phase: str | None) -> None:
    assert following("Restarting", stored(), **counts) == phase
    assert following("Restarting", stored(maxRetry=None), **{**counts, "retryCount": 0}) == "Failed"


@pytest.mark.parametrize(
    ("phase", "after"),
    [("Aborting", "Aborted"), ("Terminating", "Terminated"), ("Completing", "Completed")],
)
@pytest.mark.parametrize("alive", ["terminating", "pending", "running", "succeeded"])
def test_a_job_that_ends_settles_with_its_last_live_pod(phase: str, after: str, alive: str) -> None:
    assert following(phase, stored(), **{alive: 1}) == (after if alive == "succeeded" else None)
    assert following(phase, stored(), terminating=1, pending=1) is None
    assert following(phase, stored(), terminating=1, running=1) is None
    assert following(phase, stored(), pending=1, running=1) is None


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Terminated", "Aborted"])
def test_a_finished_job_stays(phase: str) -> None:
    assert following(phase, stored(), running=9) is None


# The status


def test_pods_are_counted_for_the_job_and_its_tasks() -> None:
    counts = Counts()
    counts.add_all([pod("a"), pod("b"), pod("c", "Strange", of="x"), pod("d", "Failed")])
    counts.add_terminating()
    counts.add_terminating(2)
    status = Status({"succeeded": 7, "taskStatusCount": {"old": {}}})
    status.set_counts(counts)
    assert status.manifest == {
        "running": 2,
        "unknown": 1,
        "failed": 1,
        "terminating": 3,
        "taskStatusCount": {
            "w": {"phase": {"Running": 2, "Failed": 1}},
            "x": {"phase": {"Unknown": 1}},
        },
    }
    status.set_counts(Counts())
    assert status.manifest == {}


def test_each_phase_is_once_in_the_conditions_the_newest_last() -> None:
    status = Status({"state": {"phase": "Pending", "reason": "r"}})
    for second, phase in enumerate(("Pending", "Running", "Pending")):
        status.set_phase(phase, float(second))
    last = "1970-01-01T00:00:02Z"
    assert status.manifest["state"] == {
        "phase": "Pending", "reason": "r", "lastTransitionTime": last,
    }  # fmt: skip
    assert status.manifest["conditions"] == [
        {"status": "Running", "lastTransitionTime": "1970-01-01T00:00:01Z"},
        {"status": "Pending", "lastTransitionTime": last},
    ]
    assert status.phase == "Pending"
    assert Status({}).phase == ""


@pytest.mark.parametrize(
    ("last", "created", "duration"),
    [
        ("1970-01-01T00:01:30Z", "1970-01-01T00:00:00Z", "1m30s"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:09Z", "0s"),
        (None, "1970-01-01T00:00:00Z", None),
        ("1970-01-01T00:00:00Z", None, None),
    ],
)
def test_a_duration_needs_both_its_ends(last: Any, created: Any, duration: str | None) -> None:
    status = Status({"state": {"lastTransitionTime": last}})
    status.set_duration({"metadata": {"creationTimestamp": created}})
    assert status.manifest.get("runningDuration") == duration


# What happened


class Past:
    """Past events that the objects no longer show."""

    def __init__(self, gone: Any = None, restarts: Any = None) -> None:
        self.gone: Any = gone or {}
        self.restarts: Any = restarts or {}


def names(found: JobState, past: Past | None = None) -> list[str]:
    return [each.event.name for each in reactions(found, past or Past())]


ALL = [{"event": "*", "action": "A", "timeout": "1s"}]


def ended(code: int, **more: Any) -> Any:
    return [{"state": {"terminated": {"exitCode": code, **more}}}]


@pytest.mark.parametrize(
    ("one", "found"),
    [
        (pod("j-w-0"), []),
        (pod("j-w-0", "Pending"), ["PodPending"]),
        (pod("j-w-0", "Failed"), ["PodFailed"]),
        (pod("j-w-0", "Failed", version=1), ["PodFailed"]),
        (pod("j-w-0", "Failed", marks={MARK: "true"}), []),
        (pod("j-w-0", "Failed", metadata={"deletionTimestamp": GONE}), []),
    ],
)
def test_what_the_phase_of_a_pod_shows(one: Any, found: Any) -> None:
    assert names(state(one, of=stored(policies=ALL))) == found


def test_pods_of_an_older_version_count_for_nothing() -> None:
    later = stored(policies=ALL, status={"version": 1})
    failed = pod("j-w-0", "Failed")
    assert names(state(failed, of=later), Past({"x": (failed, 0.0)})) == []
    failed = pod("j-w-0", "Failed", version=1)
    assert names(state(failed, of=later), Past({"x": (failed, 0.0)})) == ["PodFailed", "PodEvicted"]


def test_a_failed_pod_shows_its_exit_code_and_when() -> None:
    since = {"finishedAt": "1970-01-01T00:00:07Z"}
    one = pod("j-w-0", "Failed", containerStatuses=ended(3, **since) + ended(9))
    one["metadata"]["labels"] = {"volcano.sh/partition-id": "5"}
    (found,) = reactions(state(one, of=stored(policies=ALL)), Past())
    assert found.event == LifecycleEvent(
        "PodFailed", "uid-of-j-w-0", "w", "j-w-0", "5", exit_code=3, since=7.0
    )
    assert (found.action, found.delay_s) == ("A", 1.0)


@pytest.mark.parametrize(
    ("policy", "acts"),
    [
        ({"event": "PodFailed"}, True),
        ({"events": ["PodEvicted", "PodFailed"]}, True),
        ({"events": ["*"]}, True),
        ({"event": "PodEvicted"}, False),
        ({"exitCode": 3}, True),
        ({"exitCode": 4}, False),
        ({"exitCode": 0}, False),
        ({"event": "PodEvicted", "exitCode": 3}, True),
    ],
)
def test_a_policy_is_about_events_or_an_exit_code(policy: Any, acts: bool) -> None:
    one = pod("j-w-0", "Failed", containerStatuses=ended(3))
    found = list(reactions(state(one, of=stored(policies=[{**policy, "action": "A"}])), Past()))
    assert [(each.action, each.delay_s) for each in found] == ([("A", 0.0)] if acts else [])


def test_a_pod_without_an_exit_code_matches_none() -> None:
    one = pod("j-w-0", "Failed", containerStatuses=ended(0))
    assert names(state(one, of=stored(policies=[{"exitCode": 0, "action": "A"}]))) == []


@pytest.mark.parametrize(("timeout", "acts"), [(None, False), ("0s", True), ("5s", True)])
def test_a_pending_pod_matters_only_after_a_while(timeout: str | None, acts: bool) -> None:
    policy = {"event": "PodPending", "action": "A", **({"timeout": timeout} if timeout else {})}
    assert bool(names(state(pod("j-w-0", "Pending"), of=stored(policies=[policy])))) == acts


def test_the_policy_of_a_task_comes_before_that_of_its_job_and_the_first_wins() -> None:
    own = [{"event": "PodFailed", "action": action} for action in ("own", "second")]
    of_job = [{"event": "PodFailed", "action": "of job"}]
    manifest = stored(task("w", 1, policies=own), task("x", 1), policies=of_job)
    found = state(pod("j-w-0", "Failed"), pod("j-x-0", "Failed", of="x"), of=manifest)
    assert [each.action for each in reactions(found, Past())] == ["own", "of job"]


@pytest.mark.parametrize(
    ("phases", "replicas", "completed"),
    [
        (["Succeeded", "Succeeded"], 2, True),
        (["Succeeded", "Running"], 2, False),
        (["Succeeded", "Succeeded"], 1, True),
        (["Succeeded", "Succeeded"], 3, False),
        (["Running"], 1, False),
        ([], 0, False),
        (["Succeeded"], 0, False),
    ],
)
def test_a_task_is_completed_by_as_many_pods_as_it_wants(
    phases: Any, replicas: int, completed: bool
) -> None:
    pods = [pod(f"j-w-{index}", phase) for index, phase in enumerate(phases)]
    manifest = stored(task("w", replicas), policies=[{"event": "TaskCompleted", "action": "A"}])
    found = [each.event.pod for each in reactions(state(*pods, of=manifest), Past())]
    assert found == ([f"j-w-{len(phases) - 1}"] if completed else [])


def restarted(name: str, count: int, phase: str = "Running", **more: Any) -> Any:
    return pod(name, phase, containerStatuses=[{"restartCount": count}], **more)


@pytest.mark.parametrize(
    ("limit", "pods", "seen", "worst"),
    [
        (3, [restarted("j-w-0", 3)], {}, "j-w-0"),
        (3, [restarted("j-w-0", 2)], {}, None),
        (3, [restarted("j-w-0", 1), restarted("j-w-1", 2)], {}, "j-w-1"),
        (None, [restarted("j-w-0", 3)], {}, "j-w-0"),
        (None, [restarted("j-w-0", 2)], {}, None),
        (-1, [restarted("j-w-0", 9)], {}, None),
        (1, [restarted("j-w-0", 1, "Pending")], {}, "j-w-0"),
        (1, [restarted("j-w-0", 1, "Failed")], {}, None),
        (3, [restarted("j-w-0", 1)], {"uid-of-j-w-0": 3}, "j-w-0"),
        (3, [restarted("j-w-0", 3)], {"uid-of-j-w-0": 1}, "j-w-0"),
        (1, [restarted("j-w-0", 1, marks={MARK: "true"})], {}, None),
        (1, [restarted("j-w-0", 1, metadata={"deletionTimestamp": GONE})], {}, None),
    ],
)
def test_restarts_of_a_task_add_up_to_its_limit(
    limit: Any, pods: Any, seen: Any, worst: str | None
) -> None:
    policies = [{"event": "TaskFailed", "action": "A"}]
    manifest = stored(task("w", 2, maxRetry=limit), policies=policies)
    found = reactions(state(*pods, of=manifest), Past(restarts=seen))
    assert [each.event.pod for each in found] == ([worst] if worst else [])


@pytest.mark.parametrize("phase", ["Unknown", "Running"])
def test_an_unknown_pod_group_is_an_event(phase: str) -> None:
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    metadata = {"name": "j-u", "namespace": "ns", "uid": "g"}
    group = {**kind, "metadata": metadata, "status": {"phase": phase}}
    found = list(reactions(state(of=stored(policies=ALL), others=[group]), Past()))
    assert [each.event.subject for each in found] == (["g"] if phase == "Unknown" else [])


# Kill passes


def enter(phase: str) -> Any:
    return lambda status: status.set_phase(phase, NOON)


def killed(
    found: JobState, keep: Any = ENDED_PHASES, phase: str = "Aborting"
) -> tuple[Any, list[str]]:
    written, *rest = kill_job(found, [], keep, enter(phase))
    assert isinstance(written, UpdateStatus)
    gone = [each.key.name for each in rest if isinstance(each, Delete)]
    marked = [each.key.name for each in rest if isinstance(each, Patch)]
    assert set(marked) <= set(gone)
    return written.manifest["status"], gone


def test_a_kill_pass_counts_what_stays_and_what_goes() -> None:
    pods = pod("j-w-0"), pod("j-w-1", "Failed"), pod("j-w-2", "Pending")
    leaving = pod("j-w-3", "Succeeded", metadata={"deletionTimestamp": GONE})
    status, gone = killed(state(*pods, leaving, of=stored(status={"version": 4, "running": 9})))
    assert gone == ["j-w-0", "j-w-2"]
    assert (status["version"], status["terminating"], status["failed"]) == (5, 3, 1)
    assert "running" not in status
    assert status["taskStatusCount"] == {"w": {"phase": {"Failed": 1}}}


def test_a_pass_that_restarts_counts_no_pod_that_stays() -> None:
    status, gone = killed(state(pod("j-w-0", "Failed"), pod("j-w-1")), phase="Restarting")
    assert gone == ["j-w-1"]
    assert "failed" not in status
    assert status["terminating"] == 1


@pytest.mark.parametrize(
    ("retries", "most", "gone"),
    [(0, 3, ["j-w-0"]), (1, 3, ["j-w-0"]), (2, 3, []), (3, 3, []), (0, None, [])],
)
def test_at_the_last_retry_ended_pods_stay(retries: int, most: Any, gone: Any) -> None:
    manifest = stored(status={"retryCount": retries}, maxRetry=most)
    found = state(pod("j-w-0", "Failed"), of=manifest)
    assert killed(found, frozenset(), "Restarting")[1] == gone


def test_a_kill_pass_removes_the_pod_group_and_what_plugins_made() -> None:
    owner = {"kind": "Job", "name": "j", "uid": "u", "controller": True}
    kept = [
        {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {"name": name, "namespace": "ns", "ownerReferences": owners},
        }
        for kind, name, owners in (
            ("ConfigMap", "j-svc", [owner]),
            ("Service", "j", [{**owner, "uid": "other"}]),
        )
    ]
    version = "scheduling.volcano.sh/v1beta1"
    place = {"name": "j-u", "namespace": "ns"}
    group = {"apiVersion": version, "kind": "PodGroup", "metadata": place}
    resources = {"plugin-svc": "svc", "plugin-ssh": "ssh"}
    manifest = stored(plugins={"svc": []}, status={"controlledResources": resources})
    found = state(of=manifest, others=[*kept, group])
    plugins, _ = plugins_of(manifest, lambda: ("", ""))
    written, *rest = kill_job(found, plugins, ENDED_PHASES, enter("Aborting"))
    assert isinstance(written, UpdateStatus)
    assert written.manifest["status"]["controlledResources"] == {"plugin-ssh": "ssh"}
    assert rest == [
        Delete(Key("ConfigMap", "ns", "j-svc")),
        Delete(Key("PodGroup.scheduling.volcano.sh", "ns", "j-u")),
    ]


@pytest.mark.parametrize(
    ("target", "gone"),
    [
        (Target("RestartTask", "w"), ["j-w-0", "j-w-1"]),
        (Target("RestartTask", "absent"), []),
        (Target("RestartPod", "w", "j-w-1"), ["j-w-1"]),
        (Target("RestartPod", "w", "j-w-9"), []),
        (Target("RestartPartition", "w", partition="1"), ["j-w-1"]),
        (Target("RestartPartition", "w", partition="7"), None),
    ],
)
def test_a_part_of_a_job_is_removed_and_nothing_else(target: Target, gone: Any) -> None:
    pods = [pod("j-w-0"), pod("j-w-1"), pod("j-x-0", of="x")]
    for one, part in zip(pods, "012", strict=True):
        one["metadata"]["labels"] = {"volcano.sh/partition-id": part}
    effects = kill_target(state(*pods), target, enter("Restarting"))
    if gone is None:
        assert effects is None
        return
    assert effects is not None
    written = effects[0]
    assert isinstance(written, UpdateStatus)
    assert written.manifest["status"].get("terminating", 0) == len(gone)
    assert [each.key.name for each in effects if isinstance(each, Delete)] == gone


def test_a_pod_of_the_target_that_is_leaving_is_counted_and_left_alone() -> None:
    leaving = pod("j-w-0", metadata={"deletionTimestamp": GONE})
    effects = kill_target(state(leaving), Target("RestartTask", "w"), enter("Restarting"))
    assert effects is not None
    (written,) = effects
    assert isinstance(written, UpdateStatus)
    assert written.manifest["status"]["terminating"] == 1


COUNTED = {"version": 1, "failed": 1, "taskStatusCount": {"w": {"phase": {"Failed": 1}}}}
LEAVING = pod("j-w-1", metadata={"deletionTimestamp": GONE})


@pytest.mark.parametrize(
    ("status", "pods", "is_settled"),
    [
        ({"version": 1}, [], True),
        ({}, [], False),
        (COUNTED, [pod("j-w-0", "Failed")], True),
        ({**COUNTED, "failed": 2}, [pod("j-w-0", "Failed")], False),
        ({"version": 1}, [pod("j-w-0", "Failed")], False),
        (COUNTED, [pod("j-w-0", "Failed"), LEAVING], False),
        ({**COUNTED, "terminating": 1}, [pod("j-w-0", "Failed"), LEAVING], True),
        ({"version": 1, "running": 1}, [pod("j-w-0")], False),
    ],
)
def test_a_job_in_a_quiet_phase_is_settled(status: Any, pods: Any, is_settled: bool) -> None:
    assert settled(state(*pods, of=stored(status=status)), []) == is_settled


# What is remembered


def test_delays_double_and_an_early_look_counts_no_failure() -> None:
    tracked = TrackedJob()
    now, delays = 100.0, []
    for _ in range(23):
        delays.append(round(tracked.failed(now), 6))
        assert tracked.failed(now) == pytest.approx(delays[-1])
        now = tracked.retry_at
    assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
    assert delays[20:] == [round(0.005 * 2**20, 6)] * 3
    assert tracked.failures == 23
