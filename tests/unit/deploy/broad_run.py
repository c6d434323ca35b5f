"""A run in which everything happens that scheduler and controllers write about."""

import functools
from typing import Any

from pumice.cluster.embedded.node_operations import add_node
from tests.unit.deploy.recording import Stage

_BATCH = "batch.volcano.sh/v1alpha1"
_FLOW = "flow.volcano.sh/v1alpha1"
_SCHEDULING = "scheduling.volcano.sh/v1beta1"


def template(cpu: str = "1", seconds: Any = 0, **spec: Any) -> Any:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    annotations = {"pumice.dev/run-seconds": str(seconds)} if seconds else {}
    spec = {"restartPolicy": "Never", "containers": [container], **spec}
    return {"metadata": {"annotations": annotations}, "spec": spec}


def job_spec(replicas: Any = 2, pods: Any = None, **more: Any) -> Any:
    task = {"name": "w", "replicas": replicas, "template": pods or template()}
    head = {"schedulerName": "volcano", "queue": "default", "minAvailable": replicas, "maxRetry": 3}
    return {**head, "tasks": [{**task, "minAvailable": replicas}], **more}


def put(
    stage: Any, api_version: Any, kind: Any, name: Any, namespace: str = "default", **parts: Any
) -> Any:
    metadata = {"name": name, **parts.pop("metadata", {})}
    if namespace:
        metadata["namespace"] = namespace
    return stage.cluster.create(
        {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}
    )


def command(stage: Any, name: Any, action: Any, target: Any) -> None:
    reference = {
        "apiVersion": target["apiVersion"],
        "kind": target["kind"],
        "name": target["metadata"]["name"],
        "uid": target["metadata"]["uid"],
        "controller": True,
    }
    put(stage, "bus.volcano.sh/v1alpha1", "Command", name, action=action, target=reference)


def jobs(stage: Any) -> None:
    """Jobs with plugins and volumes: scaled, suspended, resumed, completed, deleted."""
    keys = ["--ssh-private-key=private", "--ssh-public-key=public"]
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec = job_spec(
        plugins={"svc": [], "ssh": keys, "env": []},
        volumes=[{"mountPath": "/data", "volumeClaim": claim}],
        policies=[{"event": "PodEvicted", "action": "RestartJob"}],
    )
    full = put(stage, _BATCH, "Job", "full", spec=spec)
    put(
        stage,
        _BATCH,
        "Job",
        "short",
        spec=job_spec(pods=template(seconds=2)) | {"ttlSecondsAfterFinished": 1},
    )
    stage.run()
    wider = {"minAvailable": 3, "tasks": [{**spec["tasks"][0], "replicas": 3}]}
    stage.cluster.patch("Job.batch.volcano.sh", "default", "full", {"spec": wider})
    stage.run()
    narrower = {
        "minAvailable": 1,
        "tasks": [{**spec["tasks"][0], "replicas": 1, "minAvailable": 1}],
    }
    stage.cluster.patch("Job.batch.volcano.sh", "default", "full", {"spec": narrower})
    stage.run()
    command(stage, "stop", "AbortJob", full)
    stage.run()
    command(stage, "go", "ResumeJob", full)
    stage.run(4)
    stage.cluster.delete("Job.batch.volcano.sh", "default", "full")
    stage.run()


def clocks_and_flows(stage: Any) -> None:
    """A CronJob that replaces its job, and a flow of two steps."""
    put(
        stage,
        _BATCH,
        "CronJob",
        "tick",
        spec={
            "schedule": "* * * * *",
            "concurrencyPolicy": "Replace",
            "jobTemplate": {"spec": job_spec(1)},
        },
    )
    for name in ("first", "then"):
        put(stage, _FLOW, "JobTemplate", name, spec=job_spec(1, template(seconds=1)))
    flows = [{"name": "first"}, {"name": "then", "dependsOn": {"targets": ["first"]}}]
    put(stage, _FLOW, "JobFlow", "flow", spec={"flows": flows, "jobRetainPolicy": "delete"})
    for _ in range(4):
        stage.clock.advance(40)
        stage.run(4)
    stage.cluster.delete("CronJob.batch.volcano.sh", "default", "tick")
    stage.run()


def queues(stage: Any) -> None:
    """A queue that is closed and opened by commands."""
    queue = put(stage, _SCHEDULING, "Queue", "team", "", spec={"weight": 2})
    stage.run()
    command(stage, "close", "CloseQueue", queue)
    stage.run()
    command(stage, "open", "OpenQueue", queue)
    stage.run()


def plain_pods(stage: Any) -> None:
    """Pods of a ReplicaSet that is scaled to nothing."""
    owner = put(
        stage,
        "apps/v1",
        "ReplicaSet",
        "web",
        spec={
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, **template()},
        },
    )
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web",
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    spec = {**template()["spec"], "schedulerName": "volcano"}
    put(stage, "v1", "Pod", "web-0", spec=spec, metadata={"ownerReferences": [reference]})
    stage.run()
    stage.cluster.delete("Pod", "default", "web-0", grace_s=0)
    stage.cluster.patch("ReplicaSet.apps", "default", "web", {"spec": {"replicas": 0}})
    stage.run()


def kube_groups(stage: Any) -> None:
    """A gang of Kubernetes' own that changes its size."""
    policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    put(stage, "scheduling.k8s.io/v1beta1", "PodGroup", "gang", spec=policy)
    group = {"podGroupName": "gang"}
    spec = {**template()["spec"], "schedulerName": "volcano", "schedulingGroup": group}
    put(stage, "v1", "Pod", "gang-0", spec=spec)
    stage.run()
    changed = {"spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}}
    stage.cluster.patch("PodGroup.scheduling.k8s.io", "default", "gang", changed)
    stage.run()


def gated_pods(stage: Any) -> None:
    """A pod that waits behind a gate until its queue has room."""
    gate = "scheduling.volcano.sh/queue-allocation-gate"
    gates = {"schedulingGates": [{"name": gate}], "schedulerName": "volcano"}
    spec = {**template()["spec"], **gates}
    put(stage, "v1", "Pod", "gated", spec=spec, metadata={"annotations": {gate: "true"}})
    stage.run()
    assert stage.cluster.get("Pod", "default", "gated")["spec"]["nodeName"]
    stage.cluster.delete("Pod", "default", "gated", grace_s=0)


def topology(stage: Any) -> None:
    """HyperNodes that come and go with the label of a node."""
    text = """
    networkTopologyDiscovery:
      - source: label
        enabled: true
        config:
          networkTopologyTypes:
            racks: [{nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]
    """
    put(
        stage,
        "v1",
        "ConfigMap",
        "volcano-controller-configmap",
        "volcano-system",
        data={"volcano-controller.conf": text},
    )
    for rack in ("one", "two", None):
        for number in range(2 if rack != "two" else 1):
            change = {"metadata": {"labels": {"rack": rack}}}
            stage.cluster.patch("Node", "", f"node-{number}", change)
        stage.run(4)


def volumes(stage: Any) -> None:
    """Claims that wait for their first consumer: one gets a local volume, one is provisioned."""
    for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("made", "disk.test")):
        put(
            stage,
            "storage.k8s.io/v1",
            "StorageClass",
            name,
            "",
            provisioner=provisioner,
            volumeBindingMode="WaitForFirstConsumer",
        )
    disk = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    put(stage, "v1", "PersistentVolume", "disk", "", spec={**disk, "storageClassName": "local"})
    for name in ("local", "made"):
        wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        put(stage, "v1", "PersistentVolumeClaim", name, spec={**wanted, "storageClassName": name})
    mounted = [{"mountPath": f"/{name}", "volumeClaimName": name} for name in ("local", "made")]
    put(stage, _BATCH, "Job", "disks", spec=job_spec(1, template(seconds=1), volumes=mounted))
    stage.run(4)
    assert stage.cluster.get("Job.batch.volcano.sh", "default", "disks")["status"]["succeeded"]


def contention(stage: Any) -> None:
    """More is asked for than there is: pods wait, and urgent ones take the room of others."""
    for name, value in (("low", 1), ("high", 100)):
        put(stage, "scheduling.k8s.io/v1", "PriorityClass", name, "", value=value)
    low = job_spec(8, priorityClassName="low", minAvailable=1)
    low["tasks"][0]["minAvailable"] = 1
    put(stage, _BATCH, "Job", "low", spec=low)
    put(stage, _BATCH, "Job", "never", spec=job_spec(1, template(cpu="64")))
    stage.run()
    put(stage, _BATCH, "Job", "high", spec=job_spec(4, priorityClassName="high"))
    stage.run(6)


def claims(stage: Any) -> None:
    """A pod with a resource claim."""
    devices = "resource.k8s.io/v1"
    put(stage, devices, "DeviceClass", "gpu", "")
    pool = {"name": "n0", "generation": 1, "resourceSliceCount": 1}
    piece = {
        "driver": "gpu.example.com",
        "pool": pool,
        "allNodes": True,
        "devices": [{"name": "g"}],
    }
    put(stage, devices, "ResourceSlice", "gpus", "", spec=piece)
    asked = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    put(stage, devices, "ResourceClaim", "mine", spec={"devices": {"requests": asked}})
    entry = {"name": "gpu", "resourceClaimName": "mine"}
    put(stage, _BATCH, "Job", "gpu", spec=job_spec(1, template(resourceClaims=[entry])))
    stage.run()


@functools.cache
def broad_run() -> Any:
    """Return the stage after everything has happened; ``seen`` is every object as it was stored."""
    stage = Stage()
    for number in range(2):
        add_node(stage.cluster, f"node-{number}", {"cpu": "4", "memory": "16Gi"})
    stage.cluster.listeners.append(lambda _, event: stage.seen.append(event.object))
    acts = (
        *(jobs, clocks_and_flows, queues, plain_pods, kube_groups, gated_pods),
        *(topology, volumes, claims, contention),
    )
    for act in acts:
        act(stage)
    stage.loop.close()
    return stage
