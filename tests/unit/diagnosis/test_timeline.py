"""Time that passes in a copy of a cluster: what is bound, ends, leaves and is made again."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.diagnosis.forecast import forecast
from pumice.diagnosis.runner import Replay, Timeline
from pumice.diagnosis.sources import load_world
from pumice.testing import (
    device,
    device_class,
    node,
    pod,
    pod_group,
    priority_class,
    queue,
    resource_claim_template,
    resource_slice,
)
from tests.unit.diagnosis.conftest import NOW
from tests.unit.diagnosis.test_changes import loaded, volcano_job

WORLD = [queue("default"), node("n1", cpu=4)]
PREEMPTING = ("priority conformance", "predicates")


def played(world: Any, until: float = 1000.0, **options: Any) -> Timeline:
    """Play a world for some time."""
    timeline = Timeline(world, **options)
    while timeline.next_at is not None and timeline.next_at <= world.now + until:
        timeline.step()
    return timeline


def reported(timeline: Timeline) -> list[tuple[float, str, str]]:
    story, start = timeline.story, timeline.start
    kinds = {"bind": story.binds, "evict": story.evictions, "end": story.ends, "gone": story.gone}
    return sorted((m.at - start, what, m.pod) for what, moved in kinds.items() for m in moved)


def test_bound_pods_run_at_once_and_end_in_time(world: Any, job: Any) -> None:
    timeline = played(world([*WORLD, *job("j", cpu=2, seconds=7)]))
    assert reported(timeline) == [(0.0, "bind", "default/j-0"), (7.0, "end", "default/j-0")]
    [found] = timeline.pods()
    assert found["status"]["startTime"] == "2026-01-15T10:00:00Z"
    assert timeline.next_at is None


def test_what_a_pod_has_run_already_counts(world: Any, job: Any) -> None:
    old = job("j", cpu=2, nodes=["n1"], seconds=3600, created="2026-01-15T09:30:00Z")
    assert reported(played(world([*WORLD, *old]), until=4000)) == [(1800.0, "end", "default/j-0")]


def test_a_group_or_a_default_says_how_long_its_pods_run(world: Any, job: Any) -> None:
    group, member = job("j", cpu=1)
    group["metadata"]["annotations"] = {"pumice.dev/run-seconds": "5"}
    timeline = played(world([*WORLD, group, member, *job("k", cpu=1)]), default_s=9.0)
    ends = {what: at for at, kind, what in reported(timeline) if kind == "end"}
    assert ends == {"default/j-0": 5.0, "default/k-0": 9.0}


def evicting(job: Any, *, spec: Any = None) -> list[Any]:
    low = job("low", cpu=4, nodes=["n1"], least=0, spec=spec)
    return [*WORLD, priority_class("high", value=10), *low, *job("j", cpu=4, priority_class="high")]


@pytest.mark.parametrize("grace", [0, 5, 30])
def test_an_evicted_pod_takes_its_grace_and_a_bare_one_does_not_come_back(
    world: Any, job: Any, grace: int
) -> None:
    objects = evicting(job, spec={"terminationGracePeriodSeconds": grace})
    timeline = played(world(objects, *PREEMPTING, actions="enqueue, allocate, preempt"))
    assert reported(timeline) == sorted(
        [
            (0.0, "evict", "default/low-0"),
            (float(grace), "gone", "default/low-0"),
            (float(max(grace, 1)), "bind", "default/j-0"),
        ]
    )
    assert [each["metadata"]["name"] for each in timeline.pods()] == ["j-0"]


def test_the_rest_of_a_grace_period_is_waited_for(world: Any, job: Any) -> None:
    [group, leaving] = job("old", cpu=4, nodes=["n1"])
    leaving["metadata"] |= {
        "deletionTimestamp": "2026-01-15T10:00:12Z",
        "deletionGracePeriodSeconds": 30,
    }
    timeline = played(world([*WORLD, group, leaving, *job("j", cpu=4)]))
    assert reported(timeline) == [(12.0, "bind", "default/j-0"), (12.0, "gone", "default/old-0")]


def owned(kind: str, name: str) -> list[dict[str, Any]]:
    version = "apps/v1" if kind != "Job" else "batch.volcano.sh/v1alpha1"
    owner = {"apiVersion": version, "kind": kind, "name": name, "uid": "u", "controller": True}
    return [owner]


@pytest.mark.parametrize(
    ("kind", "again"),
    [("ReplicaSet", "default/web-"), ("StatefulSet", "default/low-0"), ("Job", "default/low-0")],
)
def test_pods_of_other_controllers_are_made_again(
    world: Any, job: Any, kind: str, again: str
) -> None:
    objects = evicting(job, spec={"terminationGracePeriodSeconds": 3})
    for one in objects:
        if one["metadata"]["name"] == "low-0":
            one["metadata"]["ownerReferences"] = owned(kind, "web")
    timeline = played(world(objects, *PREEMPTING, actions="enqueue, allocate, preempt"))
    pods = {f"default/{one['metadata']['name']}": one for one in timeline.pods()}
    [made] = [key for key in pods if key != "default/j-0"]
    assert made.startswith(again)
    assert pods[made]["status"]["phase"] == "Pending"


def test_a_volcano_job_gets_its_pods_once_it_is_admitted() -> None:
    timeline = played(loaded(volcano_job()))
    assert reported(timeline) == [
        (1.0, "bind", "default/train-worker-0"),
        (1.0, "bind", "default/train-worker-1"),
    ]
    assert {m.job for m in timeline.story.binds} == {"default/train"}


def test_looking_changes_nothing(world: Any, job: Any) -> None:
    timeline = Timeline(world([*WORLD, *job("j", cpu=2)]))
    version = timeline.cluster.version
    assert timeline.look().binds == timeline.look().binds == {"default/j-0": "n1"}
    assert timeline.cluster.version == version
    assert timeline.now == NOW


def test_a_pod_that_waits_to_start_again_goes_on_waiting(world: Any, job: Any) -> None:
    group, crashed = job("j", cpu=1, nodes=["n1"], seconds=100)
    crashed["metadata"]["annotations"]["pumice.dev/fail-after-seconds"] = "5"
    crashed["metadata"]["annotations"]["pumice.dev/fail-times"] = "1"
    crashed["status"]["startTime"] = "2026-01-15T09:59:50Z"
    ended = {"exitCode": 1, "finishedAt": "2026-01-15T09:59:56Z"}
    crashed["status"]["containerStatuses"] = [
        {
            "name": "main",
            "ready": False,
            "restartCount": 0,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": ended},
        }
    ]
    # six seconds of back-off are left, then it runs its hundred seconds
    assert reported(played(world([*WORLD, group, crashed]))) == [(106.0, "end", "default/j-0")]


def test_a_lone_pod_is_named_by_itself(world: Any) -> None:
    timeline = played(world([*WORLD, pod("lone", cpu=1)]))
    assert [(m.pod, m.job) for m in timeline.story.binds] == [("default/lone", "default/lone")]


def test_devices_of_a_pod_that_ends_go_to_the_next(world: Any, job: Any) -> None:
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}
    devices = [
        device_class("gpu"),
        resource_slice("n1", node="n1", devices=[device("gpu-0")]),
        resource_claim_template("t"),
    ]
    jobs = [*job("j", cpu=1, seconds=7, spec=spec), *job("k", cpu=1, seconds=5, spec=spec)]
    assert reported(played(world([*WORLD, *devices, *jobs]))) == [
        (0.0, "bind", "default/j-0"),
        (7.0, "bind", "default/k-0"),
        (7.0, "end", "default/j-0"),
        (12.0, "end", "default/k-0"),
    ]


def test_jobs_that_are_still_to_be_created_are_the_youngest(tmp_path: Path) -> None:
    told: dict[str, Any] = {"created": "2026-01-15T09:00:00Z"}
    old = [pod_group("z", phase="Inqueue", **told), pod("z-0", group="z", cpu=3, **told)]
    new = [pod_group("a", phase="Inqueue"), pod("a-0", group="a", cpu=3)]
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all([*WORLD, *old, *new]))
    there = load_world([file], now=NOW)
    assert list(Replay(there).decide().binds) == ["default/z-0"]
    assert list(Timeline(there).step().binds) == ["default/z-0"]


def test_claims_of_a_job_are_bound_as_pods_expect_it() -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    mounted = volcano_job()
    mounted["spec"]["volumes"] = [{"mountPath": "/data", "volumeClaim": claim}]
    there = loaded(mounted)
    assert len(Replay(there).decide().binds) == 2
    assert [what for _, what, _ in reported(played(there))] == ["bind", "bind"]


def test_a_forecast_sees_what_a_quota_states_in_the_first_cycle(world: Any, job: Any) -> None:
    """As the next cycle of the cluster does; proofs of remedies count pods again before it."""
    amounts = {"hard": {"cpu": "4"}, "used": {"cpu": "0"}}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "rq", "namespace": "default"},
        "spec": {"hard": {"cpu": "4"}},
        "status": amounts,
    }
    group = {"minResources": {"cpu": "4"}}
    objects = [*WORLD, quota, *job("j", cpu=4, pods=1)]
    objects[-2]["spec"] |= group
    there = world(objects, "gang resourcequota predicates")
    assert forecast(there, "default/j").state == "now"
    assert Replay(there).decide().binds == {"default/j-0": "n1"}
    assert not Timeline(there).step().binds
