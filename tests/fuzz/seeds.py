"""Right documents from which the inputs of the targets are made."""

import io
import json
from pathlib import Path
from typing import Any, Final

import yaml
from pyarrow import csv, parquet

from pumice.api.cloning import clone
from pumice.api.conf import DEFAULT_CONF

ROOT: Final = Path(__file__).resolve().parents[2]
_POD: Final[dict[str, Any]] = {
    "schedulerName": "volcano",
    "priorityClassName": "high",
    "containers": [
        {
            "name": "c",
            "image": "i",
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"a.b/gpu": 1}},
            "ports": [{"containerPort": 80, "hostPort": 80}],
            "env": [{"name": "A", "value": "b"}],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        }
    ],
    "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
    "nodeSelector": {"zone": "a"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["5"]}]}
                ]
            }
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
            ]
        },
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"a": "b"}},
        }
    ],
}


def _object(version: str, kind: str, **parts: Any) -> dict[str, Any]:
    metadata = parts.pop("metadata", {"name": kind.lower(), "namespace": "default"})
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}


_VOLCANO: Final = "scheduling.volcano.sh/v1beta1"
_JOB_SPEC: Final[dict[str, Any]] = {
    "minAvailable": 2,
    "queue": "default",
    "schedulerName": "volcano",
    "priorityClassName": "high",
    "maxRetry": 3,
    "ttlSecondsAfterFinished": 10,
    "plugins": {"svc": [], "ssh": ["--no-root"], "env": [], "pytorch": ["--master=t"]},
    "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
    "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
    "volumes": [
        {"mountPath": "/d", "volumeClaim": {"resources": {"requests": {"storage": "1Gi"}}}}
    ],
    "tasks": [
        {
            "name": "t",
            "replicas": 3,
            "minAvailable": 2,
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": _POD},
            "policies": [{"exitCode": 3, "action": "RestartTask", "timeout": "1h"}],
            "dependsOn": {"name": ["u"], "iteration": "any"},
            "topologyPolicy": "none",
        },
        {
            "name": "u",
            "replicas": 4,
            "partitionPolicy": {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1},
            "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    ],
}
_NOTES: Final = {
    "scheduling.volcano.sh/group-min-member": "2",
    "scheduling.k8s.io/group-name": "podgroup",
    "volcano.sh/task-spec": "t",
    "volcano.sh/preemptable": "true",
    "volcano.sh/revocable-zone": "*",
    "volcano.sh/cooldown-time": "10m",
    "volcano.sh/jdb-min-available": "50%",
    "volcano.sh/task-topology-affinity": "a,b",
    "volcano.sh/task-topology-task-order": "a,b",
    "volcano.sh/numa-topology-policy": "single-numa-node",
    "volcano.sh/hierarchy": "root/a",
    "volcano.sh/hierarchy-weights": "1/2",
    "sla-waiting-time": "1h",
    "pumice.dev/run-seconds": "10",
    "pumice.dev/arrival-seconds": "5",
}
MANIFESTS: Final[list[dict[str, Any]]] = [
    _object(
        "v1",
        "Node",
        metadata={"name": "n1", "labels": {"zone": "a", "n": "7"}, "annotations": dict(_NOTES)},
        spec={"taints": [{"key": "a", "effect": "NoSchedule"}], "unschedulable": False},
        status={
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10", "a.b/gpu": "2"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    ),
    _object(
        "v1",
        "Pod",
        metadata={"name": "p", "namespace": "default", "labels": {"a": "b"}, "annotations": _NOTES},
        spec=_POD,
        status={"phase": "Pending"},
    ),
    _object(_VOLCANO, "Queue", metadata={"name": "default"}, spec={
        "weight": 1, "reclaimable": True, "parent": "root", "priority": 5,
        "dequeueStrategy": "fifo", "capability": {"cpu": "4"}, "deserved": {"cpu": "2"},
        "guarantee": {"resource": {"cpu": "1"}},
        "affinity": {"nodeGroupAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": ["g"]}}},
        status={"state": "Open"}),
    _object(_VOLCANO, "PodGroup", spec={
        "minMember": 2, "queue": "default", "minResources": {"cpu": "2"}, "minTaskMember": {"t": 1},
        "priorityClassName": "high", "networkTopology": {"mode": "soft", "highestTierAllowed": 2},
        "subGroupPolicy": [{"name": "s", "subGroupSize": 2, "minSubGroups": 1,
                            "labelSelector": {"matchLabels": {"a": "b"}},
                            "matchLabelKeys": ["a"]}]}, status={"phase": "Pending"}),
    _object("batch.volcano.sh/v1alpha1", "Job", spec=_JOB_SPEC,
            metadata={"name": "job", "namespace": "default", "annotations": _NOTES}),
    _object("batch.volcano.sh/v1alpha1", "CronJob", spec={
        "schedule": "*/5 * * * *", "timeZone": "Europe/Berlin", "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": 10, "jobTemplate": {"spec": _JOB_SPEC}}),
    _object("flow.volcano.sh/v1alpha1", "JobTemplate", spec=_JOB_SPEC),
    _object("flow.volcano.sh/v1alpha1", "JobFlow", spec={
        "jobRetainPolicy": "retain", "flows": [
            {"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]}),
    _object("topology.volcano.sh/v1alpha1", "HyperNode", metadata={"name": "h"}, spec={
        "tier": 1, "members": [
            {"type": "Node", "selector": {"exactMatch": {"name": "n1"}}},
            {"type": "Node", "selector": {"regexMatch": {"pattern": "^n[0-9]+$"}}},
            {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"zone": "a"}}}}]}),
    _object("scheduling.k8s.io/v1", "PriorityClass", metadata={"name": "high"}, value=100),
    _object("policy/v1", "PodDisruptionBudget", spec={
        "minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}}),
    _object("v1", "ResourceQuota", spec={
        "hard": {"cpu": "10", "pods": "5"}, "scopes": ["NotTerminating"],
        "scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}}),
    _object("v1", "PersistentVolumeClaim", metadata={"name": "c", "namespace": "default"}, spec={
        "accessModes": ["ReadWriteOnce"], "storageClassName": "s",
        "resources": {"requests": {"storage": "1Gi"}}}),
    _object("v1", "ConfigMap", data={"volcano-scheduler.conf": DEFAULT_CONF}),
    _object("nodeinfo.volcano.sh/v1alpha1", "Numatopology", metadata={"name": "n1"}, spec={
        "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "best-effort"},
        "numares": {"cpu": {"allocatable": "0-3", "capacity": 4}},
        "cpuDetail": {"0": {"numaID": 0, "socketID": 0, "coreID": 0}},
        "resReserved": {"cpu": "1"}}),
]  # fmt: skip
CONFIGURATIONS: Final[list[Any]] = [
    yaml.safe_load(DEFAULT_CONF),
    {
        "actions": "enqueue, allocate, preempt, reclaim, backfill, shuffle",
        "tiers": [
            {"plugins": [{"name": "gang", "enableJobOrder": True, "enablePreemptable": False},
                         {"name": "sla", "arguments": {"sla-waiting-time": "1h"}}]},
            {"plugins": [{"name": "drf", "enableHierarchy": True},
                         {"name": "predicates", "arguments": {"predicate.GPUSharingEnable": True}},
                         {"name": "nodeorder", "arguments": {"nodeaffinity.weight": 2}},
                         {"name": "binpack", "arguments": {"binpack.weight": 10,
                                                           "binpack.resources": "a.b/gpu"}},
                         {"name": "tdm", "arguments": {"tdm.revocable-zone.rz1": "10:00-21:00",
                                                       "tdm.evict.period": "1m"}},
                         {"name": "usage", "arguments": {"thresholds": {"cpu": 80}}}]},
        ],
        "configurations": [{"name": "enqueue", "arguments": {"overcommit-factor": 1.2}}],
        "metrics": {"type": "prometheus", "address": "http://127.0.0.1:9090", "interval": "30s"},
    },
]  # fmt: skip
SCENARIOS: Final[list[Any]] = [
    {
        "name": "s",
        "now": "2026-01-01T00:00:00Z",
        "seed": 5,
        "cycles": 2,
        "conf": configuration,
        "nodeUsage": {"n1": {"cpu": 20.0, "memory": 30, "metricsTime": "2026-01-01T00:00:00Z"}},
        "objects": [clone(one) for one in MANIFESTS if one["kind"] in kinds],
        "expect": {"cycles": [{"binds": {}}, {"evictNum": 0}]},
    }
    for configuration, kinds in (
        (CONFIGURATIONS[0], {"Node", "Pod", "Queue", "PodGroup", "PriorityClass"}),
        (CONFIGURATIONS[1], {"Node", "Pod", "Queue", "PodGroup", "HyperNode", "ResourceQuota",
                             "PodDisruptionBudget", "Numatopology", "PersistentVolumeClaim"}),
    )
]  # fmt: skip
SYNTHETIC: Final = [yaml.safe_load((ROOT / "examples/sim/synthetic.yaml").read_text())]
KUBECONFIGS: Final[list[Any]] = [
    {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "u", "namespace": "n"}}],
        "clusters": [{"name": "a", "cluster": {
            "server": "https://127.0.0.1:6443", "certificate-authority-data": "LS0t",
            "insecure-skip-tls-verify": False, "tls-server-name": "x",
            "proxy-url": "http://127.0.0.1:3128"}}],
        "users": [{"name": "u", "user": {
            "token": "t", "username": "u", "password": "p", "client-certificate-data": "LS0t",
            "client-key-data": "LS0t", "as": "x"}}],
    }
]  # fmt: skip
PROMETHEUS: Final[list[Any]] = [
    {
        "status": "success",
        "data": {"resultType": "vector", "result": [
            {"metric": {"instance": "n1"}, "value": [1767225600.5, "12.5"]}]},
    },
    {"kind": "NodeMetricsList", "items": [
        {"metadata": {"name": "n1"}, "timestamp": "2026-01-01T00:00:00Z", "window": "10s",
         "usage": {"cpu": "100m", "memory": "1Gi"}}]},
]  # fmt: skip
EXTENDER: Final[list[Any]] = [
    {"status": 1, "code": 0, "overused": False, "errorMessage": "", "nodeScore": {"n1": 5},
     "victims": [{"UID": "u", "Name": "n", "Namespace": "d", "Job": "d/j", "NodeName": "n1",
                  "Resreq": {"MilliCPU": 5.0, "Memory": 1.0, "ScalarResources": {"a": 1}},
                  "Priority": 5, "Preemptable": True, "Pod": {}}]},
]  # fmt: skip
VALUES: Final[list[Any]] = [
    yaml.safe_load((ROOT / "deploy/helm/pumice/values.yaml").read_text(encoding="utf-8"))
]
TEXTS: Final = {
    "philly": (ROOT / "tests/data/traces/philly.csv").read_bytes()[:3000],
    "swf": (ROOT / "tests/data/traces/small.swf").read_bytes()[:3000],
    "openb": (ROOT / "tests/data/traces/openb_pods.csv").read_bytes()[:3000],
    **{
        name: (ROOT / f"tests/data/traces/{name}").read_bytes()
        for name in (
            *("alibaba2018_tasks.csv", "alibaba2018_instances.csv", "alibaba2018_list.csv"),
            *("alibaba2025.csv", "jobs.csv", "metacentrum.swf"),
        )
    },
}


def parquet_table() -> bytes:
    """Return the table of jobs as Parquet."""
    out = io.BytesIO()
    parquet.write_table(csv.read_csv(ROOT / "tests/data/traces/jobs.csv"), out)
    return out.getvalue()


QUANTITIES: Final = ["1", "100m", "1.5Gi", "1e3", "12E", "0.1n", "5k", "-2", "+1Ki", ".5", "1."]


def review(kind: str, plural: str, manifest: dict[str, Any]) -> dict[str, Any]:
    """Wrap an object as an API server sends it to a webhook."""
    group, _, version = manifest["apiVersion"].rpartition("/")
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {"group": group, "version": version, "resource": plural},
            "operation": "CREATE",
            "namespace": "default",
            "object": json.loads(json.dumps(manifest)),
        },
    }


def _stored(number: int, one: dict[str, Any]) -> dict[str, Any]:
    identity = {"uid": f"u{number}", "resourceVersion": str(number), "generation": 1}
    times = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    return {**one, "metadata": {**one["metadata"], **identity, **times}}


_HOME: Final = _object("v1", "Namespace", metadata={"name": "default"}, status={"phase": "Active"})
_OBJECTS: Final = [_stored(number, one) for number, one in enumerate((_HOME, *MANIFESTS), start=1)]
_HEAD: Final = {"format": 1, "version": 10, "now": 1767225600.0, "starts": 1}
DATA: Final[list[Any]] = [
    {"snapshot": [_HEAD, *_OBJECTS[:10]], "log": [
        {"type": "ADDED", "at": 1767225601.5, "object": one} for one in _OBJECTS[10:]]},
    {"snapshot": [_HEAD, *_OBJECTS[:4]], "log": [
        {"type": "MODIFIED", "at": 1767225601.5, "object": _stored(11, _OBJECTS[2])},
        {"type": "DELETED", "at": 1767225602.5, "object": _stored(12, _OBJECTS[1])}]},
]  # fmt: skip


def _steps() -> list[dict[str, Any]]:
    """Steps of RFC 6902, of each sort."""
    return [
        {"op": "test", "path": "/metadata/name", "value": "p"},
        {"op": "add", "path": "/metadata/labels", "value": {"a/b": "c"}},
        {"op": "copy", "from": "/metadata/labels", "path": "/metadata/annotations"},
        {"op": "copy", "from": "", "path": "/metadata/x"},
        {"op": "copy", "from": "/metadata", "path": "/metadata/x/metadata/x"},
        {"op": "replace", "path": "/metadata/labels/a~1b", "value": "d"},
        {"op": "add", "path": "/spec/containers/-", "value": {"name": "e"}},
        {"op": "move", "from": "/spec/containers/0", "path": "/spec/containers/1"},
        {"op": "remove", "path": "/spec/tolerations/0"},
    ]


def _strategic() -> dict[str, Any]:
    return {
        "metadata": {"finalizers": ["a"], "$deleteFromPrimitiveList/finalizers": ["b"]},
        "spec": {
            "$setElementOrder/containers": [{"name": "d"}, {"name": "c"}],
            "containers": [{"name": "d", "image": "i"}, {"name": "c", "$patch": "delete"}],
            "volumes": [{"$patch": "replace"}, {"name": "w"}],
            "affinity": {"$patch": "delete"},
            "nodeSelector": {"$retainKeys": ["zone"], "zone": None},
        },
    }


PATCHES: Final[list[Any]] = [
    ["json", MANIFESTS[1], _steps()],
    ["json", MANIFESTS[1], _steps()[3:5] * 12],
    ["merge", MANIFESTS[1], {"metadata": {"labels": {"a": None}}, "spec": {"priority": 1}}],
    ["strategic", MANIFESTS[1], _strategic()],
    ["apply", MANIFESTS[1], _strategic()],
]
"""Sort of patch, document and patch."""
CHANGES: Final[list[Any]] = [
    [
        {"op": "patch", "kind": "Queue", "name": "default", "patch": [
            {"op": "replace", "path": "/spec/weight", "value": 3},
            {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
            {"op": "copy", "from": "/metadata", "path": "/metadata/annotations"},
        ]},
        {"op": "patch", "kind": "Pod", "namespace": "default", "name": "w-0", "patch": [
            {"op": "add", "path": "/spec/tolerations", "value": [{"operator": "Exists"}]},
            {"op": "remove", "path": "/metadata/labels"},
        ]},
        {"op": "wait", "pods": ["default/w-0"]},
        {"op": "remove", "kind": "Pod", "namespace": "default", "name": "w-1"},
    ],
    {"text": "more", "changes": [
        {"op": "add", "object": MANIFESTS[0]},
        {"op": "remove", "kind": "Node", "name": "n1"},
        {"op": "conf", "text": DEFAULT_CONF},
    ]},
]  # fmt: skip
"""Lists for `pumice whatif --changes`."""


def _http() -> list[Any]:
    head = {"Accept": "application/json", "If-None-Match": "x", "Cookie": "pumice_session=x"}
    pages = [
        "/static/app.js", "/api/session", "/api/overview?at=1", "/api/past?at=-1h", "/api/jobs",
        "/api/nodes/node-a",
        "/api/fit?cpu=1&memory=1Gi&at=", "/api/cycles/1", "/api/jobs/ai/sweep",
        "/api/simulations/a:b", "/api/actions/jobs/ai/sweep", "/nodes/node-a",
    ]  # fmt: skip
    sent = {"token": "x", "job": "ai/sweep", "action": "delete", "drain": ["node-a"]}
    kinds = {"Content-Type": "application/json-patch+json", "X-Pumice-Csrf": "x"}
    pods = "/api/v1/namespaces/default/pods"
    return [
        *(["dashboard", "GET", path, head, ""] for path in pages),
        *(["dashboard", "POST", f"/api/{name}", kinds, sent]
          for name in ("login", "logout", "whatif", "actions")),
        ["api", "GET", f"{pods}?limit=1&continue=x&labelSelector=a%3Db", head, ""],
        ["api", "POST", pods, {"Content-Type": "application/json"}, MANIFESTS[1]],
        ["api", "PATCH", f"{pods}/p", kinds, _steps()],
        ["api", "GET", "/apis/batch.volcano.sh/v1alpha1", head, ""],
    ]  # fmt: skip


HTTP: Final[list[Any]] = _http()
"""Server, method, address, headers and body."""

_RECORDED_POD: Final = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "namespace": "d",
        "annotations": {"scheduling.k8s.io/group-name": "g"},
    },
    "spec": {"schedulerName": "volcano", "containers": [{"name": "c"}]},
}
RECORDS: Final[list[Any]] = [
    [
        {"at": 1, "conf": {"text": "actions: allocate\ntiers: [{plugins: [{name: gang}]}]\n"}},
        {"at": 1, "settings": {"seed": 1, "names": ["volcano"], "assume": True, "startedAt": 1.0}},
        {"at": 1, "usage": {"n": {"cpu": 0.5, "metricsTime": 1.0}}},
        {"at": 2, "put": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}},
        {
            "at": 3,
            "put": {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "PodGroup",
                "metadata": {"name": "g", "namespace": "d"},
                "spec": {"minMember": 1},
            },
        },
        {"at": 3, "put": _RECORDED_POD},
        {"at": 4, "of": ["Pod", "d", "p"], "patch": {"spec": {"nodeName": "n"}}},
        {
            "at": 4,
            "cycle": {
                "now": 4,
                "evictions": {"d/p": "preempt"},
                "results": [
                    ["evict", "d/p", "u", "ConflictError"],
                    ["bind", "d/p", "u", ""],
                ],
            },
        },
        {"at": 5, "of": ["Pod", "d", "p"], "patch": {"status": {"phase": "Failed"}}},
        {"at": 6, "gone": ["Pod", "d", "p"]},
        {"at": 7, "put": _RECORDED_POD},
        {"at": 8, "gone": ["PodGroup.scheduling.volcano.sh", "d", "g"]},
        {"at": 9, "gone": ["Node", "", "n"]},
    ]
]
