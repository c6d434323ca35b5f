"""A corpus of files written to do harm, by name; text or bytes."""

import itertools
import json
from typing import Any, Final

DEEP: Final = 200_000
_NODE: Final = "apiVersion: v1\nkind: Node\nmetadata: {name: n1"
_QUEUE: Final = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\n"
_CONTEXT: Final = "current-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n"


def _laughs() -> str:
    names = "abcdefghij"
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    lines += [
        f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]"
        for before, name in itertools.pairwise(names)
    ]
    return "\n".join(lines)


def _job(metadata: Any = None, **spec: Any) -> str:
    head = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
    return json.dumps({**head, "metadata": metadata or {"name": "j"}, "spec": spec})


_POD: Final = {"spec": {"containers": [{"name": "c", "image": "i"}]}}

NESTED: Final[dict[str, str]] = {
    "brackets.yaml": "[" * DEEP,
    "brackets.json": "[" * DEEP,
    "closed.yaml": "[" * DEEP + "]" * DEEP,
    "closed.json": "[" * DEEP + "]" * DEEP,
    "braces.yaml": "{a: " * DEEP + "1" + "}" * DEEP,
    "braces.json": '{"a":' * DEEP + "1" + "}" * DEEP,
    "objects.json": '{"objects": ' + "[" * DEEP + "]" * DEEP + "}",
    "objects.yaml": "objects: " + "[" * DEEP + "]" * DEEP + "\n",
    "block.yaml": "\n".join(" " * level + "a:" for level in range(1000)),
    "dashes.yaml": "- " * 5000 + "x",
    "arguments.yaml": "tiers: [{plugins: [{name: gang, arguments: {a: "
    + "[" * 2000
    + "]" * 2000
    + "}}]}]",
}

UNREADABLE: Final[dict[str, str | bytes]] = {
    **NESTED,
    "utf16.yaml": "kind: Node\n".encode("utf-16"),
    "utf16.json": '{"kind": "Node"}'.encode("utf-16"),
    "latin.yaml": "name: café\n".encode("latin-1"),
    "nul.yaml": b"a: \0b\n",
    "laughs.yaml": _laughs(),
    "loop.yaml": "a: &a [*a]\n",
    "duplicate.yaml": "kind: Node\nkind: Pod\n",
    "duplicate.json": '{"kind": "Node", "kind": "Pod"}',
    "nan.json": '{"kind": "Node", "spec": NaN}',
    "nan.yaml": f"{_NODE}}}\nstatus: {{allocatable: {{cpu: .nan}}}}\n",
    "infinite.yaml": f"{_QUEUE}spec: {{weight: .inf}}\n",
    "overflow.json": '{"kind": "Node", "spec": 1e999}',
    "surrogate.json": '{"kind": "Node", "metadata": {"labels": {"a": "\\ud800"}}}',
    "surrogate.yaml": f'{_NODE}, labels: {{a: "\\ud800"}}}}\n',
    "tag.yaml": "a: !!python/object:os.system x\n",
}
"""Files that no reader takes for anything."""

ODD: Final[dict[str, str | bytes]] = {
    "empty.yaml": "",
    "number.yaml": "5",
    "null.json": "null",
    "text.json": '"x"',
    "list.yaml": "- 1\n- 2\n",
    "day.yaml": "2020-01-01: x\n",
    "huge.yaml": f"{_QUEUE}spec: {{weight: {'9' * 5000}}}\n",
    "huge.json": '{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", '
    f'"metadata": {{"name": "q"}}, "spec": {{"weight": {"9" * 5000}}}}}',
    "tasks.json": _job(tasks=5),
    "null-task.json": _job(tasks=[None]),
    "replicas.json": _job(tasks=[{"replicas": "x"}]),
    "many.json": _job(tasks=[{"replicas": 10**30, "template": _POD}]),
    "template.json": _job(tasks=[{"replicas": 1, "template": []}]),
    "containers.json": _job(
        tasks=[{"replicas": 2, "name": 5, "template": {"spec": {"containers": 5}}}]
    ),
    "container.json": _job(tasks=[{"name": "a", "template": {"spec": {"containers": [None]}}}]),
    "available.json": _job(minAvailable="x", queue=5),
    "metadata.json": _job(5),
    "labels.json": _job({"name": 5, "labels": [1]}),
    "items.json": '{"kind": "List", "apiVersion": "v1", "items": 5}',
    "pods.json": '{"kind": "PodList", "apiVersion": "v1", "items": {"a": 1}}',
    "pods-number.json": '{"kind": "PodList", "apiVersion": "v1", "items": 5}',
    "pods-in-objects.yaml": "objects: [{kind: PodList, apiVersion: v1, items: 5}]\n",
    "empty-mapping.json": "{}",
    "item.yaml": "kind: List\napiVersion: v1\nitems: [5]\n",
    "objects-number.yaml": "objects: 5\n",
    "now.yaml": "objects: []\nnow: 5\n",
    "usage.yaml": "objects: []\nnodeUsage: {a: 5}\n",
    "usage-time.yaml": 'objects: []\nnodeUsage: {a: {metricsTime: "x"}}\n',
    "usage-text.yaml": "objects: []\nnodeUsage: {a: {cpu: x}}\n",
    "seed.yaml": f"objects: []\nseed: {'9' * 5000}\n",
    "conf.yaml": "objects: []\nconf: 5\n",
    "from.yaml": "objects: []\nobjectsFrom: 5\nconfFrom: 5\n",
    "from-lists.yaml": "objects: []\nobjectsFrom: lists.yaml\n",
    "lists.yaml": "[[]]\n",
    "no-version.yaml": "objects: [{kind: PodGroup, metadata: {name: a}}]\n",
    "from-nowhere.yaml": "objects: []\nobjectsFrom: [/dev/null/x]\n",
    "cycles.yaml": "objects: []\ncycles: 99999999999999\n",
    "server.yaml": f"clusters: [{{name: a, cluster: {{server: 5}}}}]\n{_CONTEXT}",
    "clusters.yaml": "clusters: {a: 1}\n1: 2\ncurrent-context: [1]\n",
    "address.yaml": f'clusters: [{{name: a, cluster: {{server: "http://[::1"}}}}]\n{_CONTEXT}',
    "weight.yaml": "actions: allocate\ntiers: [{plugins: [{name: binpack, arguments: "
    f"{{binpack.weight: {'9' * 5000}}}}}]}}]\n",
}
"""Files that can be read and have strange content."""

FILES: Final[dict[str, str | bytes]] = {**UNREADABLE, **ODD}
