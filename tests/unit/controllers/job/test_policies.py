"""Lifecycle policies: what happens to a job when something happens to its pods."""

from typing import Any

import pytest

from pumice.controllers.base import Delete, Key, UpdateStatus
from pumice.controllers.job import JobController
from tests.unit.controllers.job.stage import JOB, Stage, job, task


def policy(event: Any, action: Any, **more: Any) -> Any:
    return {"event": event, "action": action, **more}


def test_an_evicted_pod_counts_one_restart_and_its_replacement_stays() -> None:
    stage = Stage().start(job(policies=[policy("PodEvicted", "RestartPod")]))
    stage.gone("j-w-0")
    assert stage.status["retryCount"] == 1
    assert not stage.deleting()
    replacement = stage.pods()["j-w-0"]["metadata"]["uid"]
    stage.run("j-w-0")
    assert stage.pods()["j-w-0"]["metadata"]["uid"] == replacement
    assert stage.status["retryCount"] == 1
    assert stage.phase == "Running"


def test_a_task_that_is_hit_while_another_restarts_counts_no_retry_of_its_own() -> None:
    tasks = task("a", 2), task("b", 2)
    stage = Stage().start(job(*tasks, policies=[policy("PodEvicted", "RestartTask")]))
    stage.gone("j-a-0")
    stage.gone("j-b-0")
    assert stage.deleting() == {"j-a-1", "j-b-1"}
    stage.gone("j-a-1", "j-b-1")
    stage.run(*stage.pods())
    assert (stage.phase, stage.status["retryCount"]) == ("Running", 1)


def test_restart_partition_kills_the_partition_of_the_pod() -> None:
    parts = {"totalPartitions": 2, "partitionSize": 2}
    given = job(
        task("w", 4, partitionPolicy=parts), policies=[policy("PodFailed", "RestartPartition")]
    )
    stage = Stage().start(given)
    stage.put("j-w-3", "Failed")
    assert stage.deleting() == {"j-w-2"}
    assert stage.status["retryCount"] == 1


def test_container_restarts_of_a_task_add_up_to_task_failed() -> None:
    given = job(task("w", 2, maxRetry=3), policies=[policy("TaskFailed", "AbortJob")])
    stage = Stage().start(given)
    stage.put("j-w-0", "Running", restartCount=2)
    assert stage.phase == "Running"
    stage.put("j-w-1", "Running", restartCount=1)
    assert stage.phase == "Aborting"


def test_container_restarts_count_although_the_next_report_takes_them_back() -> None:
    given = job(task("w", 2, maxRetry=3), policies=[policy("TaskFailed", "TerminateJob")])
    stage = Stage().start(given)
    reports = [{"pod": "j-w-0", "phase": "Running", "restartCount": n} for n in (4, 0)]
    stage.play({"set": reports})
    assert stage.phase == "Terminating"
    assert "Start to execute action TerminateJob " in stage.messages()


def test_restarts_of_a_pod_that_was_replaced_do_not_count_for_its_successor() -> None:
    given = job(task("w", 1, maxRetry=3), policies=[policy("TaskFailed", "AbortJob")])
    stage = Stage().start(given)
    stage.put("j-w-0", "Running", restartCount=2)
    stage.gone("j-w-0")
    stage.run("j-w-0")
    stage.put("j-w-0", "Running", restartCount=1)
    assert stage.phase == "Running"


def test_a_task_with_max_retry_minus_one_never_fails() -> None:
    given = job(task("w", 1, maxRetry=-1), policies=[policy("TaskFailed", "AbortJob")])
    stage = Stage().start(given)
    stage.put("j-w-0", "Running", restartCount=99)
    assert stage.phase == "Running"


def test_a_pod_that_stays_pending_too_long_ends_the_job() -> None:
    stage = Stage()
    given = job(policies=[policy("PodPending", "TerminateJob", timeout="1m30s")])
    stage.start(given, running=False)
    assert "Execute action TerminateJob after 1m30s" in stage.messages()
    stage.play({"wait": 80})
    assert stage.phase == "Pending"
    stage.play({"wait": 10})
    assert stage.phase == "Terminated"
    assert "Start to execute action TerminateJob " not in stage.messages()


def test_a_delayed_action_is_not_lost_when_the_job_changes_meanwhile() -> None:
    stage = Stage().start(job(policies=[policy("PodFailed", "AbortJob", timeout="10s")]))
    stage.put("j-w-0", "Failed")
    stage.patch_spec("priorityClassName", "high")
    stage.play({"wait": 10})
    assert stage.phase == "Aborting"


def test_a_delayed_answer_to_an_eviction_stops_when_the_pod_runs_again() -> None:
    stage = Stage().start(job(policies=[policy("PodEvicted", "AbortJob", timeout="10s")]))
    stage.gone("j-w-0")
    stage.run("j-w-0")
    stage.play({"wait": 20})
    assert stage.phase == "Running"


def test_a_delayed_answer_to_an_eviction_comes_when_the_pod_does_not_run_again() -> None:
    stage = Stage().start(job(policies=[policy("PodEvicted", "AbortJob", timeout="10s")]))
    stage.gone("j-w-0")
    stage.play({"wait": 10})
    assert stage.phase in {"Aborting", "Aborted"}


def test_an_unknown_podgroup_is_answered_once() -> None:
    stage = Stage().start(job(policies=[policy("Unknown", "RestartTask")]))
    stage.admit("Unknown")
    assert stage.status["retryCount"] == 1
    stage.put("j-w-0", "Running", restartCount=1)
    assert stage.status["retryCount"] == 1


def test_a_command_goes_only_after_what_it_asked_for_is_written() -> None:
    """A refused status must not cost the command."""
    stage = Stage().start(job())
    stage.cluster.create(
        {
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "metadata": {"name": "c", "namespace": "ns"},
            "action": "AbortJob",
            "target": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j"},
        }
    )
    list(stage.loop.view.refresh())
    plan = JobController().reconcile(Key(JOB, "ns", "j"), stage.loop.view)
    kinds = [type(effect) for effect in plan.effects]
    assert plan.effects[-1] == Delete(Key("Command.bus.volcano.sh", "ns", "c"))
    assert kinds.index(UpdateStatus) < kinds.index(Delete)


def test_an_action_that_means_nothing_does_not_hide_another() -> None:
    first = task("a", 1, policies=[policy("PodFailed", "EnqueueJob")])
    stage = Stage().start(job(first, task("b", 1, policies=[policy("PodFailed", "AbortJob")])))
    failed = [{"pod": name, "phase": "Failed"} for name in ("j-a-0", "j-b-0")]
    stage.play({"set": failed})
    assert stage.phase == "Aborted"


def test_pods_of_an_earlier_job_of_the_same_name_do_not_speak_for_this_one() -> None:
    given = job(policies=[policy("PodEvicted", "AbortJob")])
    stage = Stage().start(given)
    stage.play({"delete": [{"kind": JOB, "name": "j", "propagation": "Orphan"}]})
    stage.play({"apply": [given]})
    stage.gone("j-w-0")
    assert stage.phase == "Pending"


@pytest.mark.parametrize("leaving", [False, True])
def test_what_starts_a_timer_is_not_counted_before_the_next_change(leaving: bool) -> None:
    """As in the original: the failed pod is counted when something else happens."""
    given = job(
        task("w", 3), minAvailable=1, policies=[policy("PodFailed", "AbortJob", timeout="1m")]
    )
    stage = Stage().start(given)
    if leaving:
        stage.cluster.delete("Pod", "ns", "j-w-2")
        stage.settle()
        assert stage.status["terminating"] == 1
    stage.put("j-w-0", "Failed")
    assert "failed" not in stage.status
    stage.put("j-w-1", "Succeeded")
    assert (stage.status["failed"], stage.status["succeeded"]) == (1, 1)
    stage.play({"wait": 60})
    assert stage.phase in {"Aborting", "Aborted"}
