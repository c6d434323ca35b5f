"""`pumice pod list`: rows for the states that a pod can be in."""

from contextlib import nullcontext
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.cli.vcctl.columns import pod_row
from pumice.cluster.embedded.store import EmbeddedCluster

NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z
DONE = {"terminated": {"exitCode": 0, "reason": "Completed"}}
UP: Any = {"running": {}}


def make(statuses: Any = (), inits: Any = (), init_specs: Any = (), **status: Any) -> Any:
    return {
        "metadata": {"name": "p", "creationTimestamp": "2025-12-31T23:59:00Z"},
        "spec": {
            "containers": [{"name": one["name"]} for one in statuses] or [{"name": "main"}],
            "initContainers": list(init_specs),
        },
        "status": {
            "containerStatuses": list(statuses),
            "initContainerStatuses": list(inits),
            **status,
        },
    }


def container(name: Any, state: Any, **more: Any) -> Any:
    return {"name": name, "state": state, **more}


@pytest.mark.parametrize(
    ("pod", "ready", "status"),
    [
        (make(phase="Pending"), "0/1", "Pending"),
        (make([container("a", UP, ready=True)], phase="Running"), "1/1", "Running"),
        (make([container("a", UP)], phase="Running"), "0/1", "Running"),
        (make([container("a", DONE)], phase="Succeeded"), "0/1", "Completed"),
        (
            make([container("a", DONE), container("b", UP, ready=True)], phase="Running"),
            "1/2",
            "NotReady",
        ),
        (
            make([], [container("i", {"terminated": {"exitCode": 2}})], [{"name": "i"}]),
            "0/1",
            "Init:ExitCode:2",
        ),
        (make([], [container("i", {"waiting": {}})], [{"name": "i"}]), "0/1", "Init:0/1"),
        (
            make(
                [container("a", UP, ready=True)],
                [container("s", UP, started=True, ready=True)],
                [{"name": "s", "restartPolicy": "Always"}],
                phase="Running",
            ),
            "2/2",
            "Running",
        ),
    ],
)
def test_the_most_telling_reason_is_shown(pod: Any, ready: str, status: str) -> None:
    row = pod_row(pod, NOW)
    assert (row.ready, row.status, row.age) == (ready, status, "60s")


def test_a_pod_that_is_being_deleted_says_so_unless_it_has_ended() -> None:
    ending = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    for phase, status in (("Running", "Terminating"), ("Failed", "Failed")):
        pod = make(phase=phase)
        pod["metadata"] |= ending
        assert pod_row(pod, NOW).status == status


def test_restarts_tell_when_the_last_one_was() -> None:
    ended = {"terminated": {"finishedAt": "2025-12-31T23:30:00Z"}}
    older = {"terminated": {"finishedAt": "2025-12-31T22:30:00Z"}}
    pod = make(
        [
            container("a", UP, restartCount=2, lastState=ended),
            container("b", UP, restartCount=1, lastState=older),
        ]
    )
    assert pod_row(pod, NOW).restarts == "3 (30m ago)"


def test_pods_are_chosen_by_job_or_queue() -> None:
    cluster = EmbeddedCluster()
    for name, labels, annotations in (
        ("plain", {}, {}),
        ("of-job", {"volcano.sh/job-name": "j", "volcano.sh/queue-name": "q"}, {}),
        ("noted", {}, {"scheduling.volcano.sh/queue-name": "q"}),
    ):
        metadata = {"name": name, "namespace": "default", "labels": labels}
        metadata["annotations"] = annotations
        spec = {"containers": [{"name": "main"}]}
        cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def names(*words: Any) -> Any:
        words = ("pod", "list", "-o", "name", *words)
        output = CliRunner().invoke(main, words, obj=lambda _: nullcontext(cluster)).output
        return output.replace("pod/", "").split()

    assert names() == ["of-job"]
    assert names("-j", "j") == ["of-job"]
    assert names("-q", "q") == ["noted", "of-job"]
    assert names("-n", "elsewhere") == []
