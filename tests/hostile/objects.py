"""Objects that an API server refuses, by name, and a strategy for objects that it may not."""

import json
from collections.abc import Iterable
from typing import Any, Final

from hypothesis import strategies as st

VERSIONS: Final = {
    "Job": "batch.volcano.sh/v1alpha1",
    "PodDisruptionBudget": "policy/v1",
    "PodGroup": "scheduling.volcano.sh/v1beta1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "Queue": "scheduling.volcano.sh/v1beta1",
}


def _body(kind: str, metadata: Any = None, **parts: Any) -> tuple[str, str]:
    head = {"apiVersion": VERSIONS.get(kind, "v1"), "kind": kind}
    return kind, json.dumps({**head, "metadata": metadata or {"name": "bad"}, **parts})


def _pod(**parts: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "i", **parts}]}


def _text(kind: str, text: str) -> tuple[str, str]:
    head = f'"apiVersion": "{VERSIONS.get(kind, "v1")}", "kind": "{kind}"'
    return kind, f"{{{head}, {text}}}"


REFUSED: Final[dict[str, tuple[str, str]]] = {
    "surrogate": _text("ConfigMap", r'"metadata": {"name": "a", "labels": {"a": "\ud800"}}'),
    "surrogate annotation": _text(
        "ConfigMap", r'"metadata": {"name": "a", "annotations": {"a": "\ud800"}}'
    ),
    "nan": _text("ConfigMap", '"metadata": {"name": "a", "annotations": {"a": NaN}}'),
    "infinity": _text("Queue", '"metadata": {"name": "a"}, "spec": {"weight": 1e999}'),
    "huge number": _text(
        "Queue", '"metadata": {"name": "a"}, "spec": {"weight": ' + "9" * 5000 + "}"
    ),
    "nested": _text("Queue", '"metadata": {"name": "a"}, "spec": ' + "[" * 5000 + "]" * 5000),
    "name": _body("ConfigMap", {"name": "Bad_Name"}),
    "name of a node": _body("Node", {"name": "a/b"}),
    "name of a namespace": _body("Namespace", {"name": "a.b"}),
    "name that is a number": _body("ConfigMap", {"name": 5}),
    "long name": _body("ConfigMap", {"name": "a" * 254}),
    "name of a service": _body("Service", {"name": "1a"}),
    "generated name": _body("ConfigMap", {"generateName": "-"}),
    "no name": _body("ConfigMap", {"labels": {}}),
    "metadata": _body("ConfigMap", [1]),
    "null port": _body("Service", spec={"ports": [None]}),
    "null limit": _body("LimitRange", spec={"limits": [None]}),
    "null condition": _body("Node", status={"conditions": [None]}),
    "label": _body("Node", {"name": "a", "labels": {"a": "b c"}}),
    "long label": _body("Node", {"name": "a", "labels": {"a": "b" * 64}}),
    "label key": _body("Node", {"name": "a", "labels": {"a/b/c": "d"}}),
    "label that is a number": _body("Node", {"name": "a", "labels": {"a": 5}}),
    "labels": _body("Node", {"name": "a", "labels": [1]}),
    "annotation": _body("Node", {"name": "a", "annotations": {"a": {}}}),
    "large annotation": _body("Node", {"name": "a", "annotations": {"a": "b" * 300_000}}),
    "owner": _body("ConfigMap", {"name": "a", "ownerReferences": [5]}),
    "owners": _body("ConfigMap", {"name": "a", "ownerReferences": {"uid": "x"}}),
    "empty owner": _body("ConfigMap", {"name": "a", "ownerReferences": [{"uid": "x"}]}),
    "finalizers": _body("ConfigMap", {"name": "a", "finalizers": "x"}),
    "time": _body("ConfigMap", {"name": "a", "creationTimestamp": 5}),
    "data": _body("ConfigMap", data={"a": 5}),
    "data list": _body("ConfigMap", data=["a"]),
    "data key": _body("ConfigMap", data={"a/b": "c"}),
    "large data": _body("ConfigMap", data={"a": "b" * 1_100_000}),
    "node amount": _body("Node", status={"allocatable": {"cpu": "lots"}}),
    "negative node amount": _body("Node", status={"capacity": {"cpu": "-1"}}),
    "node amounts": _body("Node", status={"allocatable": ["cpu"]}),
    "taints": _body("Node", spec={"taints": "x"}),
    "taint": _body("Node", spec={"taints": [{"key": "a", "effect": "Never"}]}),
    "node conditions": _body("Node", status={"conditions": {"Ready": True}}),
    "budget of 5,000 digits": _body("PodDisruptionBudget", spec={"minAvailable": "9" * 5000}),
    "budget number": _body("PodDisruptionBudget", spec={"minAvailable": 10**30}),
    "budget percentage": _body("PodDisruptionBudget", spec={"maxUnavailable": "9" * 5000 + "%"}),
    "negative budget": _body("PodDisruptionBudget", spec={"minAvailable": -1}),
    "budget text": _body("PodDisruptionBudget", spec={"minAvailable": "half"}),
    "two bounds": _body("PodDisruptionBudget", spec={"minAvailable": 1, "maxUnavailable": 1}),
    "budget selector": _body("PodDisruptionBudget", spec={"selector": {"matchLabels": [1]}}),
    "budget operator": _body(
        "PodDisruptionBudget",
        spec={"selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
    ),
    "quota scopes": _body("ResourceQuota", spec={"scopes": "BestEffort"}),
    "quota scope": _body("ResourceQuota", spec={"scopes": ["Everything"]}),
    "quota scope number": _body("ResourceQuota", spec={"scopes": [5]}),
    "quota selector": _body("ResourceQuota", spec={"scopeSelector": {"matchExpressions": ["x"]}}),
    "quota selectors": _body("ResourceQuota", spec={"scopeSelector": [1]}),
    "quota operator": _body(
        "ResourceQuota",
        spec={"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass"}]}},
    ),
    "quota amount": _body("ResourceQuota", spec={"hard": {"cpu": "x"}}),
    "quota amounts": _body("ResourceQuota", spec={"hard": 5}),
    "priority": _body("PriorityClass", value="high"),
    "high priority": _body("PriorityClass", value=2_000_000_000),
    "service ports": _body("Service", spec={"ports": [5]}),
    "service": _body("Service", spec=5),
    "claim": _body("PersistentVolumeClaim", spec={"resources": {"requests": {"storage": "x"}}}),
    "pod": _body("Pod", spec=5),
    "pod without containers": _body("Pod", spec={"containers": []}),
    "pod containers": _body("Pod", spec={"containers": [None]}),
    "pod amount": _body("Pod", spec=_pod(resources={"requests": {"cpu": "NaN"}})),
    "pod limits": _body("Pod", spec=_pod(resources={"limits": 5})),
    "job": _body("Job", spec=5),
    "job tasks": _body("Job", spec={"tasks": [None]}),
    "queue": _body("Queue", spec={"weight": "x"}),
    "queue spec": _body("Queue", spec=[1]),
    "queue amount": _body("Queue", spec={"capability": {"cpu": "x"}}),
    "pod group": _body("PodGroup", spec={"minMember": "x"}),
    "pod group spec": _body("PodGroup", spec="x"),
}

_ODD: Final = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.sampled_from([0.5, 1e300, "", "x", "-1", "9" * 5000, "1%", "5000%", "2020-01-01T00:00:00Z"]),
    st.lists(st.sampled_from([None, 1, "x", {}]), max_size=2),
    st.dictionaries(st.sampled_from(["a", "cpu", "key", "name"]), st.sampled_from(["x", 1, None])),
)
_SPECS: Final[dict[str, Any]] = {
    "Pod": _pod(resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}})
    | {"schedulerName": "volcano", "nodeName": "node-1", "priorityClassName": "", "affinity": {}},
    "Job": {
        "minAvailable": 1,
        "queue": "default",
        "schedulerName": "volcano",
        "tasks": [{"name": "t", "replicas": 1, "template": {"spec": _pod()}}],
        "policies": [{"event": "*", "action": "RestartJob"}],
        "plugins": {"svc": []},
        "volumes": [],
        "ttlSecondsAfterFinished": 1,
    },
    "PodGroup": {"minMember": 1, "queue": "default", "minResources": {"cpu": "1"}},
    "Queue": {"weight": 1, "capability": {"cpu": "4"}, "parent": "root", "guarantee": {}},
    "Node": {"taints": [{"key": "a", "effect": "NoSchedule"}], "unschedulable": False},
    "PodDisruptionBudget": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}},
    "ResourceQuota": {"hard": {"cpu": "1", "pods": "5"}, "scopes": ["BestEffort"]},
    "Service": {"ports": [{"port": 80}], "selector": {"a": "b"}},
    "PersistentVolumeClaim": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the paths of all values inside a value."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, part in value.items():
            found += _places(part, (*path, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            found += _places(part, (*path, index))
    return found


@st.composite
def objects(draw: Any, kinds: Iterable[str]) -> tuple[str, dict[str, Any]]:
    """Draw an object that is right but for at most three of its values."""
    kind = draw(st.sampled_from(sorted(kinds)))
    manifest: dict[str, Any] = {
        "apiVersion": VERSIONS.get(kind, "v1"),
        "kind": kind,
        "metadata": {"labels": {"a": "b"}, "annotations": {"pumice.dev/run-seconds": "1"}},
        "spec": json.loads(json.dumps(_SPECS.get(kind, {}))),
    }
    if kind == "Node":
        manifest["status"] = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
    if kind == "PriorityClass":
        manifest["value"] = 5
    for _ in range(draw(st.integers(0, 3))):
        places = [path for path in _places(manifest) if path[0] not in ("apiVersion", "kind")]
        path = draw(st.sampled_from(places))
        holder: Any = manifest
        for step in path[:-1]:
            holder = holder[step]
        holder[path[-1]] = draw(_ODD)
    if not isinstance(manifest["metadata"], dict):
        manifest["metadata"] = {}
    return kind, manifest
