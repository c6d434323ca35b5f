"""Answers about pods that are still to be made obey the quotas that would refuse them."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from pumice.api.annotations import RUN_SECONDS
from pumice.cli.main import main
from pumice.diagnosis.changes import Change
from pumice.diagnosis.explain import Explanation, explain_job
from pumice.diagnosis.manifest_causes import missing_input
from pumice.diagnosis.missing_pods import quota_notes, raised_limits
from pumice.diagnosis.queue_order import queue_order
from pumice.diagnosis.sources import load_world
from pumice.diagnosis.waiting_jobs import waiting_jobs
from pumice.diagnosis.whatif import Question, what_if
from pumice.errors import InputError
from pumice.testing import pod, pod_group, queue
from tests.present import present

NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node"},
    "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}},
}


def quota(cpu: str, name: str = "team", status: Any = None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name},
        "spec": {"hard": {"requests.cpu": cpu}},
        "status": status or {},
    }


def task(name: str, replicas: int, cpu: str = "1", **fields: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    template = {
        "metadata": {"annotations": {RUN_SECONDS: "60"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    return {"name": name, "replicas": replicas, "template": template, **fields}


def job(name: str, replicas: int, least: int = 1, *tasks: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"minAvailable": least, "tasks": tasks or [task("w", replicas)]},
    }


def made(name: str, job_name: str) -> dict[str, Any]:
    """Return a running pod of a job."""
    owner = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": job_name,
        "uid": f"uid-{job_name}",
        "controller": True,
    }
    group = {"scheduling.k8s.io/group-name": f"{job_name}-uid-{job_name}"}
    spec = job(job_name, 1)["spec"]["tasks"][0]["template"]["spec"]
    marks = {**group, "volcano.sh/task-spec": "w", "volcano.sh/job-name": job_name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "ownerReferences": [owner],
            "annotations": marks,
            "labels": {"volcano.sh/job-name": job_name},
        },
        "spec": {**spec, "schedulerName": "volcano", "nodeName": "node"},
        "status": {"phase": "Running"},
    }


def written(folder: Path, *objects: dict[str, Any]) -> Path:
    file = folder / "cluster.yaml"
    file.write_text(yaml.safe_dump_all([NODE, *objects]), encoding="utf-8")
    return file


def refusal(used: int, hard: int) -> str:
    return (
        "exceeded quota: team, requested: requests.cpu=1, "
        f"used: requests.cpu={used}, limited: requests.cpu={hard}"
    )


def explained(folder: Path, name: str, *objects: dict[str, Any]) -> Explanation:
    return explain_job(load_world([written(folder, *objects)]), name)


def codes(found: Explanation) -> list[str]:
    return [each.code.value for each in found.causes]


def test_a_job_that_can_start_without_refused_pods_starts(tmp_path: Path) -> None:
    world = load_world([written(tmp_path, quota("2"), job("big", 4, 2))])
    note = (
        "default/big: the cluster would refuse 2 of its 4 missing pods, without which it can "
        f"start: {refusal(2, 2)}"
    )
    assert quota_notes(world) == [note]
    found = explain_job(world, "big")
    assert (found.state, found.expected, found.refused) == ("starts", 2, 2)
    assert found.text == "it starts now: 2 pods on 1 node; the API server refuses 2 more"
    assert note in found.notes
    answer = what_if(world, Question(job="big"))
    assert note in answer.notes
    assert len(present(answer.job).places) == 2


def test_a_gang_that_needs_refused_pods_waits_for_the_quota(tmp_path: Path) -> None:
    found = explained(tmp_path, "big", quota("2"), job("big", 4, 3))
    assert (found.state, found.expected, found.refused) == ("waits", 2, 2)
    assert codes(found) == ["QuotaExceeded"]
    assert found.text == (
        "resource quota team has no room for 1 of its 4 pods, which the gang needs: "
        "needs 1 requests.cpu, none of 2 left"
    )
    cause = found.causes[0]
    assert present(cause.about).to_data() == {
        "kind": "ResourceQuota",
        "namespace": "default",
        "name": "team",
    }
    expected = {"resource": "requests.cpu", "used": 2, "request": 1, "limit": 2, "over": 1}
    assert {key: cause.numbers[key] for key in expected} == expected
    assert (cause.numbers["pods"], cause.numbers["needed"]) == (2, 1)
    assert not [note for note in found.notes if "refuse" in note]


def pods_quota(entry: str, hard: str) -> dict[str, Any]:
    return {**quota("0"), "spec": {"hard": {entry: hard}}}


@pytest.mark.parametrize("entry", ["pods", "count/pods"])
def test_a_quota_on_pods_is_written_as_one(tmp_path: Path, entry: str) -> None:
    found = explained(tmp_path, "big", pods_quota(entry, "0"), job("big", 2, 2))
    assert found.text == (
        "resource quota team has no room for any of its 2 pods, which the gang needs: "
        "needs 2 more pods, limit 0"
    )
    found = explained(tmp_path, "big", pods_quota(entry, "1"), job("big", 2, 2))
    assert found.text == (
        "resource quota team has no room for 1 of its 2 pods, which the gang needs: "
        "needs 1 more pod, none of 1 left"
    )
    world = load_world([written(tmp_path, pods_quota(entry, "0"), job("big", 2, 2))])
    why = "resource quota team refuses pod big-w-0: pods in use 0, limit 0"
    assert what_if(world, Question(job="big")).waiting == {"default/big": why}


def test_remedies_are_true_when_applied(tmp_path: Path) -> None:
    world = load_world([written(tmp_path, quota("2"), job("big", 4, 4))])
    remedies = {each.text: each for each in explain_job(world, "big").remedies}
    assert list(remedies) == [
        "raise resource quota team: requests.cpu from 2 to 4",
        "lower minAvailable from 4 to 2",
        "ask for less: cpu 500m a pod",
    ]
    for remedy in remedies.values():
        changed = Change.from_data(remedy.changes)(world)
        assert explain_job(changed, "big").state == "starts", remedy.text
        assert present(what_if(changed, Question(job="big")).job).state == "now", remedy.text


@pytest.mark.parametrize(("devices", "hard", "less"), [(1, 2, ""), (4, 10, "3"), (4, 2, "")])
def test_devices_are_asked_for_whole(tmp_path: Path, devices: int, hard: int, less: str) -> None:
    device, cards = "nvidia.com/gpu", task("w", 3)
    amounts = {"limits": {device: str(devices)}}
    cards["template"]["spec"]["containers"][0]["resources"] = amounts
    limit = quota("0")
    limit["spec"]["hard"] = {f"requests.{device}": str(hard)}
    equipped = {"status": {"allocatable": {**NODE["status"]["allocatable"], device: "64"}}}
    found = explained(tmp_path, "big", {**NODE, **equipped}, limit, job("big", 0, 3, cards))
    texts = [each.text for each in found.remedies if "less" in each.text]
    assert texts == ([f"ask for less: {device} {less} a pod"] if less else [])
    if less:
        assert found.causes[0].numbers["lacks"] == {device: devices - int(less)}


def test_no_container_is_to_ask_for_no_device(tmp_path: Path) -> None:
    device, cards = "nvidia.com/gpu", task("w", 2)
    each = {"image": "x", "resources": {"limits": {device: "1"}}}
    cards["template"]["spec"]["containers"] = [{"name": name, **each} for name in "ab"]
    limit = quota("0")
    limit["spec"]["hard"] = {f"requests.{device}": "2"}
    equipped = {"status": {"allocatable": {**NODE["status"]["allocatable"], device: "64"}}}
    found = explained(tmp_path, "big", {**NODE, **equipped}, limit, job("big", 0, 2, cards))
    assert codes(found) == ["QuotaExceeded"]
    assert not [remedy for remedy in found.remedies if "less" in remedy.text]


def test_all_quotas_that_refuse_are_causes_and_are_raised_together(tmp_path: Path) -> None:
    found = explained(tmp_path, "big", quota("2"), quota("3", "wide"), job("big", 4, 4))
    assert codes(found) == ["QuotaExceeded", "QuotaExceeded"]
    text = "raise resource quota team: requests.cpu from 2 to 4 and wide: requests.cpu from 3 to 4"
    assert text in [each.text for each in found.remedies]


def test_room_is_raised_for_jobs_that_are_before_too(tmp_path: Path) -> None:
    found = explained(tmp_path, "second", quota("1"), job("first", 3, 3), job("second", 2, 2))
    assert found.remedies[0].text == "raise resource quota team: requests.cpu from 1 to 5"


def test_causes_behind_a_quota_are_listed(tmp_path: Path) -> None:
    found = explained(tmp_path, "big", quota("2"), job("big", 4, 4, task("w", 4, "6")))
    assert "QuotaExceeded" in codes(found)
    assert "InsufficientResource" in codes(found)
    assert "TooFewPods" not in codes(found)


def test_a_role_that_lacks_refused_pods_waits(tmp_path: Path) -> None:
    tasks = task("first", 2, minAvailable=1), task("last", 2, minAvailable=1)
    found = explained(tmp_path, "big", quota("2"), job("big", 0, 2, *tasks))
    assert codes(found) == ["QuotaExceeded"]
    assert found.causes[0].numbers["needed"] == 1


def test_pods_that_state_too_little_are_refused(tmp_path: Path) -> None:
    found = explained(tmp_path, "big", quota("9"), job("big", 0, 1, bare(1)))
    assert codes(found) == ["QuotaExceeded"]
    assert found.text == (
        "resource quota team refuses its only pod, which must state requests.cpu for: c "
        "(no limit range of namespace default gives a default)"
    )
    assert (
        raised_limits(load_world([written(tmp_path, quota("9"), job("x", 0, 1, bare(1)))]), "x", 1)
        == []
    )


def bare(replicas: int) -> dict[str, Any]:
    """Return a task that states no amounts."""
    found = task("w", replicas)
    found["template"]["spec"]["containers"][0]["resources"] = {}
    return found


def limit_range(**item: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "defaults"},
        "spec": {"limits": [{"type": "Container", **item}]},
    }


def test_defaults_of_limit_ranges_count(tmp_path: Path) -> None:
    given = limit_range(default={"cpu": "1"}, defaultRequest={"cpu": "500m"})
    objects = quota("1"), given, job("big", 0, 2, bare(3))
    world = load_world([written(tmp_path, *objects)])
    assert world.left_out == {}
    found = explain_job(world, "big")
    assert (found.state, found.expected, found.refused) == ("starts", 2, 1)
    assert present(what_if(world, Question(job="big")).job).state == "now"
    [line] = quota_notes(world)
    assert "requested: requests.cpu=500m, used: requests.cpu=1, limited: requests.cpu=1" in line


def test_a_limit_range_of_other_things_gives_no_default(tmp_path: Path) -> None:
    other = limit_range(defaultRequest={"memory": "1Gi"})
    found = explained(tmp_path, "big", quota("9"), other, job("big", 0, 1, bare(1)))
    assert codes(found) == ["QuotaExceeded"]


def test_a_new_pod_gets_the_defaults_of_limit_ranges(tmp_path: Path) -> None:
    given = limit_range(defaultRequest={"cpu": "1"})
    world = load_world([written(tmp_path, quota("2"), given, job("old", 1))])
    answer = what_if(world, Question(new_job=(pod_group("new"), pod("a", group="new"))))
    assert present(answer.job).state == "now"


@pytest.mark.parametrize(
    ("selector", "field"),
    [
        ([1], "spec.scopeSelector"),
        ({"matchExpressions": ["x"]}, "spec.scopeSelector.matchExpressions[0]"),
        (
            {"matchExpressions": [{"scopeName": "BestEffort", "operator": "Is"}]},
            "spec.scopeSelector.matchExpressions[0].operator",
        ),
    ],
)
def test_an_odd_scope_selector_is_an_error_of_its_file(
    tmp_path: Path, selector: Any, field: str
) -> None:
    odd = quota("2")
    odd["spec"]["scopeSelector"] = selector
    with pytest.raises(InputError) as caught:
        load_world([written(tmp_path, odd, job("big", 4))])
    assert caught.value.field == field


def test_a_job_starts_once_another_has_ended(tmp_path: Path) -> None:
    world = load_world([written(tmp_path, quota("3"), job("first", 3, 3), job("second", 2, 2))])
    found = explain_job(world, "second")
    assert codes(found) == ["QuotaExceeded"]
    assert present(found.forecast)["text"] == (
        "it starts in 1 min 1 s, once default/first has ended"
    )
    answer = what_if(world, Question(job="second"))
    assert present(answer.job).in_s == 61
    why = "resource quota team refuses pod second-w-0: requests.cpu needs 1, in use 3, limit 3"
    assert answer.waiting == {"default/second": why}
    assert why in present(answer.job).sentence


def test_lists_of_jobs_name_the_same_cause(tmp_path: Path) -> None:
    world = load_world([written(tmp_path, quota("2"), job("big", 4, 3))])
    [line] = waiting_jobs(world, foresee=False)
    assert line.cause.code.value == "QuotaExceeded"
    [ordered] = queue_order(world).jobs["default"]
    assert ordered.outcome == line.cause.text


def test_an_admitted_job_whose_pods_are_all_refused_is_named_beside_the_order(
    tmp_path: Path,
) -> None:
    group = pod_group("none", phase="Inqueue", min_member=2)
    file = written(tmp_path, queue("default"), quota("0"), job("none", 2, 2), group)
    world = load_world([file])
    [line] = waiting_jobs(world, foresee=False)
    order = queue_order(world)
    assert order.jobs == {}
    assert order.without_pods == {"default/none": line.cause.text}
    shown = CliRunner().invoke(main, ["queue", "order", "-f", str(file)])
    assert shown.output.startswith("no job waits in line")
    assert "Jobs waiting for their pods" in shown.output
    assert "resource quota team has no room" in " ".join(shown.output.split())


def test_the_plugin_and_the_api_server_are_not_both_named(tmp_path: Path) -> None:
    conf = tmp_path / "scheduler.conf"
    conf.write_text(
        "actions: enqueue, allocate\n"
        "tiers: [{plugins: [{name: gang}, {name: resourcequota}, {name: predicates}]}]\n"
    )
    counted = {"hard": {"requests.cpu": "2"}, "used": {"requests.cpu": "0"}}
    file = written(tmp_path, quota("2", status=counted), job("big", 4, 3))
    found = explain_job(load_world([file], conf=conf), "big")
    assert codes(found) == ["NotAdmitted"]


def test_what_a_cluster_counted_decides(tmp_path: Path) -> None:
    counted = {"hard": {"requests.cpu": "5"}, "used": {"requests.cpu": "5"}}
    world = load_world([written(tmp_path, quota("5", status=counted), job("big", 1))])
    assert codes(explain_job(world, "big")) == ["QuotaExceeded"]
    assert present(what_if(world, Question(job="big")).job).state == "never"


@pytest.mark.parametrize("cpu", ["4", "100"])
def test_pods_with_room_are_not_refused(tmp_path: Path, cpu: str) -> None:
    assert load_world([written(tmp_path, quota(cpu), job("big", 4))]).refusals == {}


def test_many_jobs_are_counted(tmp_path: Path) -> None:
    jobs = [job(f"j{i}", 0, 1, task("a", 1), task("b", 1, "6")) for i in range(5)]
    found = quota_notes(load_world([written(tmp_path, quota("5"), *jobs)]))
    assert len(found) == 4
    assert found[-1] == "quotas refuse pods of 2 more jobs"


@pytest.mark.parametrize("phase", ["Pending", "Running"])
def test_existing_pods_are_told_from_those_to_be_made(tmp_path: Path, phase: str) -> None:
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": "big-uid-big",
            "ownerReferences": made("x", "big")["metadata"]["ownerReferences"],
        },
        "spec": {"minMember": 1, "queue": "default"},
        "status": {"phase": "Running"},
    }
    big = {**job("big", 2), "status": {"state": {"phase": phase}}}
    file = written(tmp_path, quota("1"), big, group, made("big-w-0", "big"))
    ran = CliRunner().invoke(main, ["explain", "big", "-f", str(file)])
    assert ran.exit_code == 0
    assert "1 running; the API server refuses 1 more" in ran.stdout
    assert f"refuse its only missing pod, without which it runs: {refusal(1, 1)}" in ran.stderr


def test_refused_pods_are_counted_beside_those_that_run(tmp_path: Path) -> None:
    world = load_world([written(tmp_path, quota("2"), job("big", 4, 2))])
    raised = Change.from_data([{"op": "remove", "kind": "ResourceQuota", "name": "default/team"}])
    [effect] = what_if(world, Question(changes=[raised])).jobs
    assert effect.before == "2 of 4 run, 2 refused by quotas, Running"
    assert effect.after == "4 of 4 run, Running"


def test_pods_of_a_task_that_waits_for_another_are_not_refused(tmp_path: Path) -> None:
    gang = job("big", 3, 3)
    first, after = gang["spec"]["tasks"][0], {"dependsOn": {"name": ["w"]}, "name": "after"}
    gang["spec"]["tasks"] = [{**first, "minAvailable": 3}, {**first, **after}]
    world = load_world([written(tmp_path, quota("2"), gang)])
    raised = Change.from_data([{"op": "remove", "kind": "ResourceQuota", "name": "default/team"}])
    [effect] = what_if(world, Question(changes=[raised])).jobs
    assert effect.before == "0 of 3 run, 1 refused by quotas, Inqueue"
    assert effect.after == "6 of 6 run, Running"


def test_no_pod_is_said_to_be_spared_for_a_gang_that_lacks_its_pods(tmp_path: Path) -> None:
    low = [pod_group("low"), pod("low", group="low", cpu=15, node="node", phase="Running")]
    conf = {"actions": "enqueue, allocate, preempt", "tiers": [{"plugins": [{"name": "gang"}]}]}
    file = tmp_path / "scene.yaml"
    objects = [NODE, queue("default"), quota("18"), *low, job("big", 4, 4)]
    file.write_text(yaml.safe_dump({"conf": conf, "objects": objects}))
    found = explain_job(load_world([file]), "big")
    assert codes(found)[0] == "QuotaExceeded"
    assert found.not_evicted == []


def test_a_new_pod_that_a_quota_refuses_cannot_be_submitted(tmp_path: Path) -> None:
    world = load_world([written(tmp_path, quota("2"), made("old", "big"), job("big", 1))])
    new = pod_group("new", min_member=2), pod("a", group="new", cpu=1), pod("b", group="new", cpu=1)
    with pytest.raises(InputError, match=r"default/b: .* got 'exceeded quota: team, "):
        what_if(world, Question(new_job=new))


def test_files_without_quotas_are_said_to_lack_them_if_an_admitted_job_lacks_pods(
    tmp_path: Path,
) -> None:
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": "big-uid-big",
            "namespace": "default",
            "ownerReferences": made("x", "big")["metadata"]["ownerReferences"],
        },
        "spec": {"minMember": 2, "queue": "default"},
        "status": {"phase": "Inqueue"},
    }
    objects = [queue("default"), job("big", 2, 2), group, made("big-w-0", "big")]
    note = (
        "1 job is admitted and lacks pods: default/big; controllers have still to make them, "
        "or a ResourceQuota that is not known here refuses them"
    )
    assert note in missing_input(load_world([written(tmp_path, *objects)]))
    assert note not in missing_input(load_world([written(tmp_path, quota("9"), *objects)]))
