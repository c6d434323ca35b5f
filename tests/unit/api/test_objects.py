"""Objects: manifests become typed values and back; what Kubernetes refuses is refused."""

import gc
from typing import Any

import pytest

from pumice.api import times
from pumice.api.devices import OLDER_VERSIONS
from pumice.api.groups import KubePodGroup
from pumice.api.kinds import BUILT_IN, Kinds, guess_plural, kind_of
from pumice.api.objects import (
    KINDS,
    Container,
    NetworkTopology,
    Node,
    ObjectMeta,
    Pod,
    PodGroup,
    PodSpec,
    Queue,
    ResourceRequirements,
    from_manifest,
    to_manifest,
)
from pumice.api.times import epoch
from pumice.errors import InputError

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "namespace": "ns",
        "uid": "u",
        "creationTimestamp": "2026-01-15T10:05:29Z",
        "deletionTimestamp": "2026-01-15T11:59:30Z",
        "deletionGracePeriodSeconds": 300,
        "labels": {"a": "b"},
        "annotations": {"scheduling.k8s.io/group-name": "pg"},
        "ownerReferences": [{"kind": "Job", "name": "j", "uid": "x", "controller": True}],
    },
    "spec": {
        "nodeName": "n0",
        "schedulerName": "volcano",
        "containers": [
            {
                "name": "c",
                "image": "i:1",
                "resources": {"requests": {"cpu": "1", "memory": 5}, "limits": {"cpu": 1.5}},
                "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1"}],
            }
        ],
        "initContainers": [{"name": "side", "restartPolicy": "Always"}],
        "overhead": {"cpu": "100m"},
        "nodeSelector": {"disk": "ssd"},
        "affinity": {
            "nodeAffinity": {
                REQUIRED: {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "d", "operator": "Gt", "values": ["1"]}]}
                    ]
                },
                PREFERRED: [
                    {
                        "weight": 5,
                        "preference": {
                            "matchFields": [
                                {"key": "metadata.name", "operator": "In", "values": ["n"]}
                            ]
                        },
                    }
                ],
            },
            "podAffinity": {
                REQUIRED: [
                    {
                        "topologyKey": "zone",
                        "labelSelector": {"matchLabels": {"a": "b"}},
                        "namespaces": ["ns"],
                        "matchLabelKeys": ["k"],
                    }
                ]
            },
            "podAntiAffinity": {
                PREFERRED: [
                    {
                        "weight": 1,
                        "podAffinityTerm": {
                            "topologyKey": "zone",
                            "namespaceSelector": {
                                "matchExpressions": [{"key": "t", "operator": "Exists"}]
                            },
                            "mismatchLabelKeys": ["k"],
                        },
                    }
                ]
            },
        },
        "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 3}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "minDomains": 2,
                "nodeAffinityPolicy": "Honor",
                "nodeTaintsPolicy": "Ignore",
                "matchLabelKeys": ["k"],
            }
        ],
        "priority": 5,
        "priorityClassName": "high",
        "preemptionPolicy": "Never",
        "schedulingGates": [{"name": "g"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
    },
    "status": {
        "phase": "Running",
        "conditions": [{"type": "PodScheduled", "status": "True"}],
        "startTime": "2026-01-15T10:05:29Z",
        "nominatedNodeName": "n5",
    },
}


def manifest(kind: Any, api_version: Any, **fields: Any) -> Any:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **fields}


SCHEDULING = "scheduling.volcano.sh/v1beta1"
DEVICES = "resource.k8s.io/v1"
OTHERS = [
    manifest(
        "Node",
        "v1",
        spec={"unschedulable": True, "taints": [{"key": "k", "effect": "NoExecute"}]},
        status={
            "capacity": {"cpu": "4"},
            "allocatable": {"cpu": "3500m"},
            "images": [{"names": ["i:1"], "sizeBytes": 7}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    ),
    manifest(
        "PodGroup",
        SCHEDULING,
        spec={
            "minMember": 0,
            "minTaskMember": {"ps": 1},
            "queue": "q",
            "minResources": {},
            "networkTopology": {"mode": "hard", "highestTierAllowed": 0},
            "subGroupPolicy": [
                {
                    "name": "tp",
                    "labelSelector": {"matchLabels": {"a": "b"}},
                    "matchLabelKeys": ["part"],
                    "subGroupSize": 2,
                    "minSubGroups": 1,
                    "networkTopology": {"mode": "soft", "highestTierName": "rack"},
                }
            ],
        },
        status={"phase": "Inqueue", "running": 2},
    ),
    manifest(
        "Queue",
        SCHEDULING,
        spec={
            "weight": 0,
            "capability": {"cpu": "10"},
            "deserved": {"cpu": "5"},
            "guarantee": {"resource": {"cpu": "1"}},
            "reclaimable": False,
            "parent": "root",
            "priority": 3,
            "affinity": {
                "nodeGroupAffinity": {REQUIRED: ["g1"]},
                "nodeGroupAntiAffinity": {PREFERRED: ["g2"]},
            },
            "dequeueStrategy": "fifo",
        },
        status={"state": "Open", "allocated": {"cpu": "2"}},
    ),
    manifest("PriorityClass", "scheduling.k8s.io/v1", value=10, globalDefault=True),
    manifest("ResourceQuota", "v1", spec={"hard": {"cpu": "2"}}, status={"used": {"cpu": "1"}}),
    manifest(
        "LimitRange",
        "v1",
        spec={"limits": [{"type": "Container", "defaultRequest": {"cpu": "1"}}]},
    ),
    manifest(
        "PodDisruptionBudget",
        "policy/v1",
        spec={"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}},
        status={"disruptionsAllowed": 1},
    ),
    manifest(
        "HyperNode",
        "topology.volcano.sh/v1alpha1",
        spec={
            "tier": 1,
            "tierName": "rack",
            "members": [
                {"type": "Node", "selector": {"exactMatch": {"name": "n0"}}},
                {"type": "Node", "selector": {"regexMatch": {"pattern": "^n"}}},
                {"type": "HyperNode", "selector": {"labelMatch": {"matchLabels": {"r": "1"}}}},
            ],
        },
    ),
    manifest(
        "NodeShard",
        "shard.volcano.sh/v1alpha1",
        spec={"nodesDesired": ["n0", "n1"]},
        status={"nodesInUse": ["n0"], "nodesToAdd": ["n1"], "nodesToRemove": ["n2"]},
    ),
    manifest(
        "Numatopology",
        "nodeinfo.volcano.sh/v1alpha1",
        spec={
            "policies": {"CPUManagerPolicy": "static"},
            "resReserved": {"cpu": "1"},
            "numares": {"cpu": {"allocatable": "0,2-3", "capacity": 4}},
            "cpuDetail": {"1": {"numa": 1, "socket": 1, "core": 3}},
        },
    ),
    manifest("Namespace", "v1"),
    manifest("PersistentVolumeClaim", "v1", spec={"storageClassName": "", "volumeName": "v"}),
    manifest(
        "PersistentVolume",
        "v1",
        spec={
            "claimRef": {"name": "c", "namespace": "ns"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
                    ]
                }
            },
        },
    ),
    manifest("CSIDriver", "storage.k8s.io/v1", spec={"storageCapacity": True}),
    manifest(
        "CSIStorageCapacity",
        "storage.k8s.io/v1",
        storageClassName="fast",
        nodeTopology={"matchLabels": {"zone": "a"}},
        capacity="1Gi",
        maximumVolumeSize="1Gi",
    ),
    manifest("StorageClass", "storage.k8s.io/v1", provisioner="x", volumeBindingMode="Immediate"),
    manifest(
        "CSINode",
        "storage.k8s.io/v1",
        spec={"drivers": [{"name": "d", "nodeID": "i", "allocatable": {"count": 3}}]},
    ),
    manifest("DeviceClass", DEVICES, spec={"selectors": [{"cel": {"expression": "true"}}]}),
    manifest(
        "ResourceSlice",
        DEVICES,
        spec={
            "driver": "d",
            "pool": {"name": "p", "generation": 2, "resourceSliceCount": 3},
            "nodeName": "n",
            "devices": [
                {
                    "name": "g",
                    "attributes": {
                        "a": {"int": 1},
                        "b": {"bool": False},
                        "c": {"version": "1.0.0"},
                    },
                    "capacity": {"memory": {"value": "1Gi"}},
                }
            ],
        },
    ),
    manifest(
        "ResourceClaim",
        DEVICES,
        spec={"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}},
        status={
            "allocation": {
                "devices": {
                    "results": [{"request": "r", "driver": "d", "pool": "p", "device": "g"}]
                }
            },
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
        },
    ),
    manifest("ConfigMap", "v1", data={"key": "text"}),
    manifest(
        "ResourceClaimTemplate",
        DEVICES,
        spec={
            "metadata": {"labels": {"a": "b"}},
            "spec": {"devices": {"requests": [{"name": "r", "count": 2}]}},
        },
    ),
]


def as_read(given: Any) -> Any:
    return from_manifest(given)


@pytest.mark.parametrize("given", [POD, *OTHERS], ids=lambda given: given["kind"])
def test_a_manifest_comes_back_as_it_was(given: Any) -> None:
    assert given == to_manifest(from_manifest(given))


def test_every_kind_is_tried_above() -> None:
    tried = {(given["apiVersion"], given["kind"]) for given in [POD, *OTHERS]}
    written = {kind for kind, cls in KINDS.items() if cls is not KubePodGroup}
    assert {kind for kind in written if kind[0] not in OLDER_VERSIONS} == tried


def test_absent_stays_absent() -> None:
    pod = as_read(manifest("Pod", "v1"))
    queue = as_read(manifest("Queue", SCHEDULING))
    group = as_read(manifest("PodGroup", SCHEDULING))
    assert (pod.metadata.namespace, pod.spec.priority, pod.spec.affinity) == ("", None, None)
    assert (queue.spec.weight, queue.spec.reclaimable, queue.spec.capability) == (None, None, {})
    assert (group.spec.min_member, group.spec.min_resources) == (None, None)


def test_an_empty_selector_differs_from_an_absent_one() -> None:
    given = manifest("PodDisruptionBudget", "policy/v1", spec={"selector": {}})
    assert as_read(given).spec.selector is not None
    assert as_read(given | {"spec": {}}).spec.selector is None


def test_null_means_absent() -> None:
    given = manifest("Pod", "v1", spec={"affinity": None, "containers": [{"ports": None}]})
    given["metadata"] |= {"creationTimestamp": None, "labels": None}
    assert from_manifest(given) == Pod(
        metadata=ObjectMeta(name="x"), spec=PodSpec(containers=(Container(),))
    )


def test_unknown_fields_are_ignored() -> None:
    given = manifest("Node", "v1", spec={"podCIDR": "10.0.0.0/8"}, extra=[1])
    assert from_manifest(given) == Node(metadata=ObjectMeta(name="x"))


def test_quantities_stay_as_written() -> None:
    requests = as_read(POD).spec.containers[0].resources.requests
    assert requests == {"cpu": "1", "memory": 5}


def test_objects_do_not_change_and_do_not_burden_the_collector() -> None:
    pod = as_read(POD)
    with pytest.raises(AttributeError):
        pod.status = None
    assert not gc.is_tracked(pod)


def test_an_empty_default_is_not_shared() -> None:
    one, two = ObjectMeta(name="a"), ObjectMeta(name="b")
    one.labels["k"] = "v"
    assert two.labels == {}


def test_objects_built_in_python_are_checked_alike() -> None:
    with pytest.raises(InputError):
        ResourceRequirements(requests={"cpu": "many"})


def test_equal_objects_are_equal() -> None:
    assert from_manifest(POD) == from_manifest(dict(POD))
    group: Any = PodGroup(metadata=ObjectMeta(name="x"))
    assert group != Queue(metadata=ObjectMeta(name="x"))
    assert NetworkTopology(mode="hard") != NetworkTopology(mode="soft")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-01-15T10:00:19Z", 1768471219),
        ("2026-01-15T10:00:19.5Z", 1768471219.5),
        ("2026-01-15T10:00:19.123456789Z", 1768471219.123456),
        ("2026-01-15T12:00:19+02:00", 1768471219),
        ("2026-01-15t10:00:19z", 1768471219),
    ],
)
def test_a_time_is_seconds_since_1970(text: str, seconds: float) -> None:
    assert seconds == epoch(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "now", "2026-01-15", "2026-01-15T10:00:19", "2026-01-15 10:00:19Z", "20260115T100019Z",
        "2026-13-15T10:00:19Z", "2026-02-30T10:00:19Z", "2026-01-15T25:00:19Z",
        "2026-W03-4T10:00:19Z", "2026-01-15T10:00Z", "2026-01-15T10:00:19Z\n",
    ],
)  # fmt: skip
def test_what_is_no_rfc_3339_time_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        epoch(text)
    assert caught.value.found == text


def test_a_time_is_checked_whatever_was_checked_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many good times are kept as there is place for; bad ones never are."""
    monkeypatch.setattr(times, "_good", good := set[str]())
    monkeypatch.setattr(times, "_MOST_TIMES", 2)
    for second in (1, 2, 2, 3):
        times.check_time(f"2026-01-15T10:00:0{second}Z", "start")
    assert good == {"2026-01-15T10:00:03Z"}
    for _ in range(2):
        with pytest.raises(InputError, match="RFC 3339"):
            times.check_time("tomorrow", "start")
    assert good == {"2026-01-15T10:00:03Z"}


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.name)
def test_a_kind_is_found_by_name_by_address_and_by_its_objects(kind: Any) -> None:
    kinds = Kinds()
    manifest = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "x"}}
    assert kinds.get(kind_of(manifest)) == kind
    assert kinds.by_plural(kind.group, kind.plural) == kind
    assert kinds.of(manifest) == kind


def test_jobs_of_two_groups_are_two_kinds() -> None:
    kinds = Kinds()
    assert kinds.get("Job.batch") != kinds.get("Job.batch.volcano.sh")


@pytest.mark.parametrize(
    ("kind", "plural"),
    [("Thing", "things"), ("Policy", "policies"), ("Class", "classes"), ("Key", "keys")],
)
def test_plurals_are_guessed(kind: str, plural: str) -> None:
    assert guess_plural(kind) == plural


def test_a_learned_kind_lives_where_its_first_object_does() -> None:
    kinds = Kinds()
    manifest = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "a"}}
    assert not kinds.of(manifest).namespaced
    assert kinds.get("Thing.x.io") in list(kinds)
