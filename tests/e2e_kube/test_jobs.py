"""Jobs on a real API server: gangs, ends, suspending, failure policies, plugins."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.e2e_kube.space import command, job
from tests.e2e_kube.waiting import until

pytestmark = pytest.mark.usefixtures("controllers", "webhooks", "default_scheduler")


def vcctl(plane: Any, *arguments: Any) -> Any:
    """Run a command of pumice as the administrator."""
    start = [sys.executable, "-c", "from pumice.cli.main import main; main()"]
    done = subprocess.run(  # noqa: S603  # our own program
        [*start, *arguments, "--kubeconfig", plane.admin_kubeconfig],
        text=True,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_gang_runs_to_completion_and_every_pod_is_bound_once(space: Any, audit: Any) -> None:
    space.nodes(2, cpu=4)
    space.kubectl.create(job("train", replicas=6, run_seconds=1))
    space.wait_phase("train", "Completed")
    done = space.kubectl.get("vcjob/train")["status"]
    assert (done["succeeded"], done["minAvailable"]) == (6, 6)
    names = [f"train-worker-{number}" for number in range(6)]
    assert audit.binds(space.namespace) == dict.fromkeys(names, 1)
    about = [event["involvedObject"] for event in space.events("Scheduled")]
    assert sorted(each["name"] for each in about if each["kind"] == "Pod") == names


def test_a_gang_waits_as_a_whole_until_a_node_comes(space: Any) -> None:
    """Three nodes have room for its sum, but only for one pod each."""
    space.nodes(3, cpu=3)
    space.kubectl.create(job("train", replicas=4, cpu=2))

    def reported() -> Any:
        found = [group.get("status", {}).get("conditions", ()) for group in space.groups()]
        return [c["message"] for each in found for c in each if c["type"] == "Unschedulable"]

    until("reported why it waits", reported, lambda texts: "4 Pending" in "".join(texts))
    assert space.placed() == {}
    space.nodes(1, prefix="more", cpu=2)
    space.wait_running("train", 4)
    space.wait_phase("train", "Running")


def test_a_job_is_suspended_and_resumed(space: Any, plane: Any) -> None:
    space.nodes(1, cpu=4)
    space.kubectl.create(job("train", replicas=3))
    space.wait_running("train", 3)
    vcctl(plane, "job", "suspend", "-n", space.namespace, "-N", "train")
    space.wait_phase("train", "Aborted")
    until("without pods", space.pods, lambda pods: not pods)
    vcctl(plane, "job", "resume", "-n", space.namespace, "-N", "train")
    space.wait_running("train", 3)
    space.wait_phase("train", "Running")
    assert "train" in vcctl(plane, "job", "list", "-n", space.namespace)


def test_a_failing_pod_restarts_its_job_until_tries_run_out(space: Any) -> None:
    space.nodes(1, cpu=4)
    policy = {"event": "PodFailed", "action": "RestartJob"}
    fails = {"pumice.dev/fail-after-seconds": "1"}
    space.kubectl.create(job("train", replicas=2, annotations=fails, policies=[policy], maxRetry=2))
    space.wait_phase("train", "Failed")
    assert space.kubectl.get("vcjob/train")["status"]["retryCount"] == 2


def test_an_exit_code_aborts_a_job_and_its_other_pods(space: Any) -> None:
    space.nodes(1, cpu=4)
    policy = {"exitCode": 3, "action": "AbortJob"}
    whole = job("train", replicas=1, policies=[policy], minAvailable=2)
    steady = {**whole["spec"]["tasks"][0], "name": "steady"}
    fails = {"pumice.dev/fail-after-seconds": "1", "pumice.dev/exit-code": "3"}
    failing = job("other", annotations=fails)["spec"]["tasks"][0]
    whole["spec"]["tasks"] = [steady, {**failing, "name": "failing"}]
    space.kubectl.create(whole)
    space.wait_phase("train", "Aborted")
    until("no running pod", lambda: space.running("train"), lambda seen: seen == 0)


def test_a_job_grows_when_it_is_patched(space: Any) -> None:
    space.nodes(1, cpu=8)
    space.kubectl.create(job("train", replicas=2, min_available=1))
    space.wait_running("train", 2)
    step = '[{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 4}]'
    space.kubectl("patch", "vcjob/train", "--type=json", "-p", step)
    space.wait_running("train", 4)


def test_plugins_give_pods_names_keys_and_places(space: Any) -> None:
    """The namespace default is the one in which the deployment allows jobs to have secrets."""
    kubectl = space.kubectl.inside("default")
    space.nodes(1, cpu=4)
    plugins: Any = {"env": [], "svc": [], "ssh": []}
    kubectl.create(job("train", replicas=2, plugins=plugins))
    try:
        kubectl.wait("vcjob/train", ".status.state.phase", "Running")
        pod = kubectl.get("pod/train-worker-1")
        names = {each["name"] for each in pod["spec"]["containers"][0]["env"]}
        assert {"VK_TASK_INDEX", "VC_TASK_INDEX"} <= names
        assert kubectl.get("service/train")["spec"]["clusterIP"] == "None"
        hosts = kubectl.get("configmap/train-svc")["data"]
        assert "train-worker-0.train" in hosts["worker.host"]
        assert len(kubectl.get("secrets")["items"]) == 1
        wider = [
            {"op": "replace", "path": "/spec/minAvailable", "value": 3},
            {"op": "replace", "path": "/spec/tasks/0/replicas", "value": 3},
        ]
        kubectl("patch", "vcjob/train", "--type=json", "-p", json.dumps(wider))
        until(
            "the third host listed",
            lambda: kubectl.get("configmap/train-svc")["data"]["worker.host"],
            lambda hosts: "train-worker-2.train" in hosts,
        )
        kubectl.create(command("stop", "AbortJob", "Job", kubectl.get("vcjob/train")))
        kubectl.wait("vcjob/train", ".status.state.phase", "Aborted")
        made = ("service/train", "configmap/train-svc", "networkpolicy/train", "secret/train-ssh")
        until(
            "nothing left of the plugins",
            lambda: kubectl("get", *made, "--ignore-not-found"),
            lambda left: not left,
        )
    finally:
        kinds = (
            "vcjob,podgroups.scheduling.volcano.sh,pods,services,configmaps,secrets,networkpolicies"
        )
        kubectl("delete", kinds, "--all", "--grace-period=0", "--force")


def test_a_volume_that_a_job_describes_is_claimed(space: Any) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {"mountPath": "/data", "volumeClaim": claim}
    space.kubectl.create(job("train", volumes=[volume]))
    made = until("a claim", lambda: space.kubectl.items("persistentvolumeclaims"))
    names = [each["metadata"]["name"] for each in made]
    until(
        "the claim named in the job",
        lambda: space.kubectl.get("vcjob/train")["spec"]["volumes"],
        lambda volumes: [each.get("volumeClaimName") for each in volumes] == names,
    )
    space.kubectl("delete", "persistentvolumeclaims", "--all", "--wait=false")


def test_a_flow_runs_its_jobs_in_order_and_removes_them(space: Any) -> None:
    api = "flow.volcano.sh/v1alpha1"
    space.nodes(1, cpu=4)
    template = job("any", run_seconds=1)["spec"]
    for name in ("first", "second"):
        metadata = {"name": name}
        space.kubectl.create(
            {"apiVersion": api, "kind": "JobTemplate", "metadata": metadata, "spec": template}
        )
    steps = [{"name": "first"}, {"name": "second", "dependsOn": {"targets": ["first"]}}]
    flow = {"jobRetainPolicy": "delete", "flows": steps}
    space.kubectl.create(
        {"apiVersion": api, "kind": "JobFlow", "metadata": {"name": "flow"}, "spec": flow}
    )
    space.kubectl.wait("jobflow/flow", ".status.state.phase", "Succeed")
    until("the jobs removed", lambda: not space.kubectl.items("vcjob"))
    space.kubectl("delete", "jobflow,jobtemplate", "--all")


def test_plain_pods_get_a_group_of_their_own(space: Any) -> None:
    space.nodes(1, cpu=4)
    container = {"name": "main", "image": "busybox:1"}
    plain = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "plain"},
        "spec": {"schedulerName": "volcano", "containers": [container]},
    }
    space.kubectl.create(plain)
    space.kubectl.wait("pod/plain", ".status.phase", "Running")
    assert len(space.groups()) == 1
