"""The real kubectl against `pumice up`: what a user types, and what comes back."""

import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.up_process import Program, running_cluster
from tests.present import present

KUBECTL = shutil.which("kubectl")
pytestmark = [
    pytest.mark.skipif(KUBECTL is None, reason="kubectl is not on the PATH"),
    pytest.mark.timeout(120),
]
JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: {name}}}
spec:
  minAvailable: 2
  schedulerName: volcano
  tasks:
  - name: worker
    replicas: 2
    template:
      metadata: {{annotations: {{pumice.dev/run-seconds: "{seconds}"}}}}
      spec:
        restartPolicy: Never
        containers:
        - {{name: main, image: busybox, resources: {{requests: {{cpu: "1", memory: 1Gi}}}}}}
"""
DEVICES = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec:
  selectors: [{cel: {expression: device.driver == "gpu.example.com"}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-2-gpus}
spec:
  driver: gpu.example.com
  nodeName: node-2
  pool: {name: node-2, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}}
"""
CLAIMING = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: gpus}
spec:
  minAvailable: 2
  schedulerName: volcano
  tasks:
  - name: worker
    replicas: 2
    template:
      metadata: {annotations: {pumice.dev/run-seconds: "600"}}
      spec:
        restartPolicy: Never
        resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
        containers:
        - {name: main, image: busybox, resources: {requests: {cpu: "1"}, claims: [{name: gpu}]}}
"""
QUEUE = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec: {weight: 4, reclaimable: true, parent: root}
"""
GROUP = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: pair}
spec: {minMember: 2, queue: default}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, annotations: {{scheduling.k8s.io/group-name: pair}}}}
spec:
  schedulerName: volcano
  containers: [{{name: main, image: busybox, resources: {{requests: {{cpu: "1"}}}}}}]
"""


class Kubectl(Program):
    """Runs kubectl against one cluster."""

    def get(self, *arguments: Any) -> Any:
        return json.loads(self("get", *arguments, "-o", "json"))

    def wait(self, what: Any, path: Any, value: Any) -> None:
        self("wait", f"--for=jsonpath={{{path}}}={value}", what, "--timeout=20s")


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    home = tmp_path_factory.mktemp("home")
    kubeconfig = home / "kubeconfig"
    with running_cluster(kubeconfig):
        yield Kubectl(present(KUBECTL), home, kubeconfig)


def rows(text: Any) -> Any:
    return [line.split() for line in text.splitlines()]


def test_nodes_are_shown_described_and_cordoned(kubectl: Any) -> None:
    header, *nodes = rows(kubectl("get", "nodes"))
    assert header == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert [node[:2] for node in nodes] == [["node-1", "Ready"], ["node-2", "Ready"]]
    assert "Allocatable:" in kubectl("describe", "node", "node-1")
    kubectl("cordon", "node-2")
    assert rows(kubectl("get", "no", "node-2"))[1][1] == "Ready,SchedulingDisabled"
    kubectl("uncordon", "node-2")


def test_a_job_is_applied_runs_and_completes(kubectl: Any) -> None:
    manifest = JOB.format(name="short", seconds=20)
    assert kubectl("apply", "-f", "-", given=manifest) == "job.batch.volcano.sh/short created\n"
    assert kubectl("apply", "-f", "-", given=manifest) == "job.batch.volcano.sh/short configured\n"
    kubectl.wait("vcjob/short", ".status.state.phase", "Running")
    header, job = rows(kubectl("get", "vcjob", "short", "-o", "wide"))
    assert header == ["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE", "QUEUE"]
    assert [*job[:4], job[5]] == ["short", "Running", "2", "2", "default"]
    assert [row[1] for row in rows(kubectl("get", "podgroups"))] == ["STATUS", "Running"]
    pods = rows(kubectl("get", "pods", "-l", "volcano.sh/job-name=short"))
    assert [row[:3] for row in pods[1:]] == [
        ["short-worker-0", "1/1", "Running"],
        ["short-worker-1", "1/1", "Running"],
    ]
    kubectl.wait("vcjob/short", ".status.state.phase", "Completed")
    described = kubectl("describe", "vcjob", "short")
    assert "Phase:                 Completed" in described
    assert "Scheduled" in kubectl("describe", "pod", "short-worker-0")
    kubectl("delete", "vcjob", "short")
    assert kubectl.get("pods", "-l", "volcano.sh/job-name=short")["items"] == []


def test_the_pods_of_a_job_get_a_device_each(kubectl: Any) -> None:
    kubectl("apply", "-f", "-", given=DEVICES)
    kubectl("apply", "-f", "-", given=CLAIMING)
    kubectl.wait("vcjob/gpus", ".status.state.phase", "Running")
    header, *claims = rows(kubectl("get", "resourceclaims"))
    assert header == ["NAME", "STATE", "AGE"]
    assert [claim[1] for claim in claims] == ["allocated,reserved"] * 2
    given = [
        result["device"]
        for claim in kubectl.get("resourceclaims")["items"]
        for result in claim["status"]["allocation"]["devices"]["results"]
    ]
    assert sorted(given) == ["gpu-0", "gpu-1"]
    pods = kubectl.get("pods", "-l", "volcano.sh/job-name=gpus")["items"]
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node-2"}
    kubectl("delete", "vcjob", "gpus")
    kubectl("wait", "--for=delete", "resourceclaim", "--all", "--timeout=20s")


def test_a_job_grows_when_it_is_patched(kubectl: Any) -> None:
    kubectl("create", "-f", "-", given=JOB.format(name="grow", seconds=6000))
    step = {"op": "replace", "path": "/spec/tasks/0/replicas", "value": 3}
    kubectl("patch", "vcjob", "grow", "--type=json", "-p", json.dumps([step]))
    kubectl.wait("vcjob/grow", ".status.running", "3")
    kubectl("patch", "vcjob", "grow", "--type=merge", "-p", '{"metadata":{"labels":{"a":"b"}}}')
    assert kubectl.get("vcjob", "grow")["metadata"]["labels"] == {"a": "b"}
    kubectl("delete", "vcjob", "grow")


def test_a_watch_shows_pods_come_and_go(kubectl: Any) -> None:
    watching = ("get", "pods", "-w", "--output-watch-events", "-o", "name")
    watch = kubectl.start(*watching, "--request-timeout=60s")
    kubectl("apply", "-f", "-", given=JOB.format(name="seen", seconds=1))
    try:
        names = (line.split()[-1] for line in watch.stdout)  # pods of others may still be leaving
        assert any(name.startswith("pod/seen-worker-") for name in names)
    finally:
        watch.kill()
        watch.communicate()
    kubectl.wait("vcjob/seen", ".status.state.phase", "Completed")
    kubectl("delete", "vcjob", "seen")


def test_queues_are_made_changed_and_deleted(kubectl: Any) -> None:
    kubectl("apply", "-f", "-", given=QUEUE)
    kubectl.wait("queue/research", ".status.state", "Open")
    changed = QUEUE.replace("weight: 4", "weight: 7")
    assert "configured" in kubectl("apply", "-f", "-", given=changed)
    queues = rows(kubectl("get", "queues", "-o", "wide"))
    assert ["research", "root", "Open", "7"] in queues
    assert "Weight:" in kubectl("describe", "queue", "research")
    kubectl("delete", "queue", "research")
    assert "NotFound" in kubectl.run("get", "queue", "research").stderr


def test_pods_of_a_group_start_together_and_are_evicted_by_a_drain(kubectl: Any) -> None:
    kubectl("apply", "-f", "-", given=GROUP)
    kubectl("apply", "-f", "-", given=POD.format(name="one"))
    assert not kubectl.get("pod", "one")["spec"].get("nodeName")
    kubectl("apply", "-f", "-", given=POD.format(name="two"))
    kubectl.wait("pod/one", ".status.phase", "Running")
    kubectl.wait("pg/pair", ".status.phase", "Running")
    node = kubectl.get("pod", "one")["spec"]["nodeName"]
    assert "evicted" in kubectl("drain", node, "--force", "--ignore-daemonsets", "--timeout=20s")
    assert "NotFound" in kubectl.run("get", "pod", "one").stderr
    kubectl("uncordon", node)
    kubectl("delete", "pod", "two", "--ignore-not-found")
    kubectl("delete", "pg", "pair")


def test_server_side_apply_and_dry_runs_are_taken(kubectl: Any) -> None:
    assert "serverside-applied" in kubectl("apply", "--server-side", "-f", "-", given=QUEUE)
    kubectl("delete", "queue", "research", "--dry-run=server")
    assert kubectl.get("queue", "research")["spec"]["weight"] == 4
    kubectl("delete", "queue", "research")
    kubectl("apply", "--dry-run=server", "-f", "-", given=QUEUE)
    assert kubectl.run("get", "queue", "research").returncode == 1


def test_namespaces_hold_what_is_deleted_with_them(kubectl: Any) -> None:
    kubectl("create", "namespace", "team")
    kubectl("create", "configmap", "notes", "-n", "team", "--from-literal=a=b")
    assert kubectl.get("cm", "notes", "-n", "team")["data"] == {"a": "b"}
    kubectl("delete", "namespace", "team")
    assert kubectl.get("cm", "-n", "team")["items"] == []


BOOKS = """
apiVersion: v1
kind: Namespace
metadata: {name: books}
---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: books}
spec: {selector: {app: front}, ports: [{port: 80}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: keep, namespace: books}
spec: {minAvailable: 1, selector: {matchLabels: {app: front}}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: most, namespace: books}
spec: {hard: {requests.cpu: "4", pods: "9"}}
---
apiVersion: v1
kind: Pod
metadata:
  name: front
  namespace: books
  labels: {app: front}
  annotations: {pumice.dev/fail-after-seconds: "5", pumice.dev/fail-times: "1"}
spec:
  schedulerName: volcano
  restartPolicy: OnFailure
  containers: [{name: main, image: busybox, resources: {requests: {cpu: "1"}}}]
"""


def test_services_budgets_quotas_and_restarts_are_kept_as_users_know_them(kubectl: Any) -> None:
    kubectl("apply", "-f", "-", given=BOOKS)
    kubectl("wait", "-n", "books", "--for=jsonpath={.status.disruptionsAllowed}=0", "pdb/keep")
    (_, front) = rows(kubectl("get", "service", "front", "-n", "books"))
    assert (front[1], front[4]) == ("ClusterIP", "80/TCP")
    reported = "jsonpath={.status.containerStatuses[0].restartCount}=1"
    kubectl("wait", "-n", "books", f"--for={reported}", "pod/front", "--timeout=20s")
    kubectl("wait", "-n", "books", "--for=condition=Ready", "pod/front", "--timeout=20s")
    assert "pods: 1/9, requests.cpu: 1/4" in kubectl("get", "quota", "-n", "books")
    node = kubectl.get("pod", "front", "-n", "books")["spec"]["nodeName"]
    refused = kubectl.run("drain", node, "--force", "--ignore-daemonsets", "--timeout=1s")
    assert "violate the pod's disruption budget" in refused.stderr
    kubectl("uncordon", node)
    kubectl("delete", "namespace", "books", "--wait=false")


def test_the_configuration_is_a_config_map_that_can_be_edited(kubectl: Any) -> None:
    place = ("configmap", "volcano-scheduler-configmap", "-n", "volcano-system")
    before = kubectl.get(*place)["data"]["volcano-scheduler.conf"]
    assert before.startswith('actions: "enqueue, allocate, backfill"')
    patch = {"data": {"volcano-scheduler.conf": before.replace("enqueue, ", "")}}
    kubectl("patch", *place, "--type=merge", "-p", json.dumps(patch))
    reason = ("--for=jsonpath={.reason}=Reloaded", "event", "--all", "--timeout=20s")
    kubectl("wait", "-n", "volcano-system", *reason)


def test_what_a_simulated_pod_cannot_do_is_said(kubectl: Any) -> None:
    kubectl("apply", "-f", "-", given=POD.format(name="mute"))
    assert "run nothing" in kubectl.run("logs", "mute").stderr
    kubectl("delete", "pod", "mute")


CUSTOM = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: lamps, kind: Lamp, shortNames: [lp]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Colour, type: string, jsonPath: .spec.colour}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {colour: {type: string, enum: [red, green]}}
"""
LAMP = """
apiVersion: example.com/v1
kind: Lamp
metadata: {name: one}
spec: {colour: red}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      schedulerName: volcano
      containers: [{name: main, image: busybox, resources: {requests: {cpu: 100m}}}]
"""


def test_a_deployment_is_rolled_out_compared_changed_and_rolled_back(kubectl: Any) -> None:
    kubectl("apply", "-f", "-", given=DEPLOYMENT)
    rolled = ("rollout", "status", "deployment/shop", "--timeout=20s")
    assert "successfully rolled out" in kubectl(*rolled)
    more = DEPLOYMENT.replace("replicas: 3", "replicas: 4")
    compared = kubectl.run("diff", "-f", "-", given=more)
    assert (compared.returncode, "+  replicas: 4" in compared.stdout) == (1, True)
    stored = kubectl("get", "deployment", "shop", "-o", "yaml")
    kubectl("replace", "--dry-run=server", "-f", "-", given=stored)
    kubectl("set", "image", "deployment/shop", "main=alpine")
    kubectl(*rolled)
    assert "alpine" in kubectl("get", "pods", "-l", "app=shop", "-o", "yaml")
    kubectl("rollout", "undo", "deployment/shop")
    kubectl(*rolled)
    assert len(kubectl.get("replicasets", "-l", "app=shop")["items"]) == 2
    kubectl("delete", "deployment", "shop")
    kubectl("wait", "--for=delete", "pod", "-l", "app=shop", "--timeout=20s")


def test_kinds_are_sent_as_kubectl_creates_them(kubectl: Any) -> None:
    kubectl("create", "deployment", "made", "--image=busybox", "--replicas=0")
    kubectl("create", "job", "made", "--image=busybox")
    kubectl("create", "service", "clusterip", "made", "--tcp=80")
    kubectl("create", "role", "made", "--verb=get", "--resource=pods")
    kubectl("create", "poddisruptionbudget", "made", "--selector=a=b", "--min-available=1")
    kubectl("create", "cronjob", "made", "--image=busybox", "--schedule=0 0 1 1 *")
    assert kubectl.get("deployment", "made")["spec"]["replicas"] == 0
    for kind in ("deployment", "job", "service", "role", "pdb", "cronjob"):
        kubectl("delete", kind, "made")


def test_the_user_may_do_everything(kubectl: Any) -> None:
    assert kubectl("auth", "can-i", "delete", "pods") == "yes\n"
    assert "*.*" in kubectl("auth", "can-i", "--list")
    assert "pumice" in kubectl("auth", "whoami")


def test_kinds_can_be_defined(kubectl: Any) -> None:
    kubectl("apply", "-f", "-", given=CUSTOM)
    kubectl("wait", "--for=condition=established", "crd/lamps.example.com", "--timeout=20s")
    kubectl("apply", "-f", "-", given=LAMP)
    assert rows(kubectl("get", "lp")) == [["NAME", "COLOUR"], ["one", "red"]]
    refused = kubectl.run("apply", "-f", "-", given=LAMP.replace("red", "blue"))
    assert 'spec.colour: Unsupported value: "blue"' in refused.stderr
    misspelt = kubectl.run("apply", "-f", "-", given=LAMP.replace("colour", "color"))
    assert 'unknown field "spec.color"' in misspelt.stderr
    kubectl("delete", "crd", "lamps.example.com", "--timeout=20s")
    assert kubectl.run("get", "lamps").returncode == 1


def test_pods_of_other_schedulers_have_an_event(kubectl: Any) -> None:
    kubectl("run", "alone", "--image=busybox")
    kubectl.wait("pod/alone", ".status.conditions[0].reason", "NoScheduler")
    assert "no scheduler named default-scheduler" in kubectl("describe", "pod", "alone")
    kubectl("delete", "pod", "alone")


@pytest.mark.parametrize(
    "arguments", [("exec", "mute", "--", "ls"), ("attach", "mute"), ("cp", "mute:/a", "b")]
)
def test_commands_in_a_simulated_pod_say_why_not(
    kubectl: Any, arguments: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    kubectl("apply", "-f", "-", given=GROUP.replace("minMember: 2", "minMember: 1"))
    kubectl("apply", "-f", "-", given=POD.format(name="mute"))
    kubectl.wait("pod/mute", ".status.phase", "Running")
    assert "run nothing" in kubectl.run(*arguments).stderr
    kubectl("delete", "pod", "mute")
    kubectl("delete", "pg", "pair")
