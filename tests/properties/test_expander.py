"""What the expander says a job becomes is what the controllers make of it in a cluster."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.controllers import all_controllers
from pumice.controllers.job.objects import expand
from pumice.controllers.loop import ControllerLoop
from pumice.controllers.view import ManifestView
from pumice.testing import priority_class, queue
from pumice.webhooks.embedded import EmbeddedAdmission
from pumice.webhooks.files import stored_job

DISK = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
JOB = "Job.batch.volcano.sh"
PODGROUP = "PodGroup.scheduling.volcano.sh"
CLAIM = "PersistentVolumeClaim"
PLUGINS = {
    "env": [],
    "svc": ["--publish-not-ready-addresses=true"],
    "ssh": ["--ssh-private-key=a", "--ssh-public-key=b"],
    "pytorch": ["--master=first", "--worker=second", "--port=23456"],
    "tensorflow": ["--ps=first", "--worker=second"],
    "hcclrank": ["--master=first", "--worker=second"],
    "ray": ["--head=first", "--worker=second"],
}
MARKS = {
    "volcano.sh/preemptable": "true",
    "volcano.sh/cooldown-time": "60s",
    "volcano.sh/revocable-zone": "*",
    "volcano.sh/jdb-min-available": "1",
    "volcano.sh/jdb-max-unavailable": "50%",
    "example.com/team": "ai",
}
EXISTING = (
    queue("root"),
    queue("default"),
    queue("research", weight=3),
    {**queue("shared"), "spec": {"weight": 1, "extendClusters": [{"name": "far"}]}},
    priority_class("high", value=100),
    priority_class("low", value=1),
    {
        "apiVersion": "v1",
        "kind": CLAIM,
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {**DISK, "accessModes": ["ReadWriteMany"]},
    },
)


def some(options: Any, *, most: Any = 3) -> Any:
    """A part of a mapping."""
    names = st.lists(st.sampled_from(sorted(options)), unique=True, max_size=most)
    return names.map(lambda chosen: {name: options[name] for name in chosen})


def maybe(**fields: Any) -> Any:
    """Some of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


amounts = some({"cpu": "2", "memory": "1Gi", "example.com/gpu": "1", "ephemeral-storage": "5G"})
resources = st.builds(lambda limits: {"limits": limits}, amounts) | st.builds(
    lambda requests: {"requests": requests, "limits": requests}, amounts
)
containers = st.builds(
    lambda given, name: {"name": name, "image": "app:1", "resources": given},
    resources,
    st.sampled_from(("main", "head", "worker")),
)
pod_specs = st.builds(
    lambda container, more: {"containers": [container], **more},
    containers,
    maybe(
        restartPolicy=st.just("Never"),
        priorityClassName=st.sampled_from(("high", "low")),
        schedulerName=st.just("other"),
        hostname=st.just("host"),
        hostNetwork=st.booleans(),
        nodeSelector=st.just({"disk": "ssd"}),
        initContainers=st.builds(lambda one: [{**one, "name": "init"}], containers),
        volumes=st.just([{"name": "scratch", "emptyDir": {}}]),
    ),
)
templates = st.builds(
    lambda spec, metadata: {"spec": spec, **metadata},
    pod_specs,
    maybe(metadata=maybe(labels=some({"app": "a", "tier": "b"}), annotations=some(MARKS))),
)
topologies = st.sampled_from(
    (
        {"mode": "hard", "highestTierAllowed": 2},
        {"mode": "soft"},
        {"highestTierName": "rack"},
    )
)


@st.composite
def tasks(draw: Any, name: Any) -> Any:
    """A task; its partitions, where it has some, are as many as its pods."""
    task = draw(
        maybe(
            topologyPolicy=st.sampled_from(("none", "best-effort", "restricted")),
            maxRetry=st.integers(1, 3),
            policies=st.just([{"event": "PodFailed", "action": "RestartJob"}]),
        )
    )
    task["template"] = draw(templates)
    if task.get("topologyPolicy", "none") != "none":  # which wants whole processors
        for one in (*task["template"]["spec"]["containers"],
                    *task["template"]["spec"].get("initContainers", ())):  # fmt: skip
            one["resources"] = {"requests": {"cpu": "2"}}
    if name:
        task["name"] = name
    if draw(st.booleans()):
        total, size = draw(st.integers(1, 3)), draw(st.integers(1, 2))
        policy = {"totalPartitions": total, "partitionSize": size}
        policy |= draw(maybe(minPartitions=st.integers(1, total), networkTopology=topologies))
        return {**task, "replicas": total * size, "partitionPolicy": policy}
    if draw(st.integers(0, 9)):
        task["replicas"] = draw(st.integers(0, 4))
        task |= draw(maybe(minAvailable=st.integers(0, task["replicas"])))
    return task


@st.composite
def jobs(draw: Any) -> Any:
    """A job that webhooks let pass."""
    names = draw(st.sampled_from((("first",), ("first", "second"), ("first", "second", "third"))))
    if len(names) == 1 and draw(st.booleans()):
        names = ("",)
    listed = [draw(tasks(name)) for name in names]
    for before, task in zip(names, listed[1:], strict=False):
        if draw(st.booleans()):
            task["dependsOn"] = {"name": [before]}
    pods = sum(task.get("replicas", 0) for task in listed)
    spec = draw(
        maybe(
            minAvailable=st.integers(0, pods),
            queue=st.sampled_from(("default", "research", "shared")),
            schedulerName=st.sampled_from(("volcano", "other")),
            priorityClassName=st.sampled_from(("high", "low")),
            networkTopology=topologies,
            plugins=some(PLUGINS),
            volumes=st.lists(
                st.sampled_from(
                    (
                        {"mountPath": "/made", "volumeClaim": DISK},
                        {"mountPath": "/data", "volumeClaimName": "data"},
                    )
                ),
                unique_by=lambda volume: volume["mountPath"],
            ),
            policies=st.just([{"event": "PodEvicted", "action": "RestartJob"}]),
            ttlSecondsAfterFinished=st.just(60),
            minSuccess=st.just(1),
        )
    )
    metadata = draw(maybe(labels=some(MARKS | {"a": "b"}), annotations=some(MARKS)))
    for key in ("volcano.sh/revocable-zone", "volcano.sh/jdb-max-unavailable"):
        metadata.get("labels", {}).pop(key, None)  # their values are no values of labels
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default", **metadata},
        "spec": {**spec, "tasks": copy.deepcopy(listed)},
    }


def new_cluster() -> Any:
    cluster = EmbeddedCluster(VirtualClock(1_767_268_800.0))
    for manifest in EXISTING:
        cluster.create(manifest)
    for one in cluster.list("Queue.scheduling.volcano.sh")[0]:
        cluster.update_status({**one, "status": {"state": "Open"}})
    cluster.admission = EmbeddedAdmission(cluster)
    return cluster


def reported(manifest: Any) -> Any:
    """An object without what only the server knows."""
    server = ("uid", "resourceVersion", "creationTimestamp", "generation")
    metadata = {k: v for k, v in manifest["metadata"].items() if k not in server}
    return {**manifest, "metadata": metadata, "status": None}


def by_name(manifests: Any) -> Any:
    return {manifest["metadata"]["name"]: reported(manifest) for manifest in manifests}


@given(jobs())
def test_controllers_make_what_the_expander_says(job: Any) -> None:
    cluster = new_cluster()
    loop = ControllerLoop(cluster, all_controllers(), cluster.clock)
    made = cluster.create(job)
    loop.run_until_quiet()
    (group,) = cluster.list(PODGROUP)[0]
    cluster.update({**group, "status": {"phase": "Inqueue"}})
    loop.run_until_quiet()

    manifest = stored_job(job)
    manifest["metadata"]["uid"] = made["metadata"]["uid"]
    expansion = expand(manifest, ManifestView(EXISTING))

    assert manifest["spec"] == made["spec"]
    assert reported(group) == reported(expansion.podgroup())
    claims = {name: one for name, one in by_name(cluster.list(CLAIM)[0]).items() if name != "data"}
    assert claims == by_name(expansion.new_claims())
    other = new_cluster()  # which stores the pods of the expander with the same defaults
    pods = [pod for task in expansion.tasks for pod in expansion.new_pods(task)]
    assert by_name(cluster.list("Pod")[0]) == by_name(map(other.create, pods))
