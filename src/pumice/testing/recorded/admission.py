"""Recorded decisions of Volcano's webhooks and of an API server with its schemas, run on ours.

A case holds what exists, what is written, and the outcome: decision, message, who decided,
which webhooks were called with which answers, and the resulting object.
"""

import copy
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

from pumice.api.kinds import QUEUE, Manifest, kind_of
from pumice.api.schema.build import schema_of
from pumice.webhooks.admission_chain import KINDS, Chain, Verdict
from pumice.webhooks.go_types import parse_int
from pumice.webhooks.review import Options, applied, children_of, read_groups
from pumice.webhooks.schemas import fill_in

BASE: Final[dict[str, Any]] = {
    "queues": [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": spec,
            "status": {"state": "Open"},
        }
        for name, spec in (
            ("root", {"weight": 1, "reclaimable": False}),
            ("default", {"weight": 1, "parent": "root"}),
        )
    ],
    "namespaces": ["default", "kube-system", "volcano-system", "mgmt", "nsq"],
    "admissionConf": """
resourceGroups:
- resourceGroup: management
  object:
    key: namespace
    value:
    - mgmt
  schedulerName: default-scheduler
  tolerations:
  - effect: NoSchedule
    key: taint
    operator: Exists
  labels:
    volcano.sh/nodetype: management
- resourceGroup: cpu
  object:
    key: annotation
    value:
    - "volcano.sh/resource-group: cpu"
    - "team: red"
  schedulerName: volcano
  labels:
    volcano.sh/nodetype: cpu
  affinity: >-
    {"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
    {"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]}]}}}
- resourceGroup: gpu
  schedulerName: volcano
  labels:
    volcano.sh/nodetype: gpu
""",
}


Case = Mapping[str, Any]
_STORED: Final = "10"
_LISTS: Final = re.compile(r"(valid (?:events|actions) are \[)([^\]]*)\]")
_SERVER_MADE: Final = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"}
)


def is_admission_case(case: Case) -> bool:
    """Return whether a recorded case is of this kind."""
    return "operation" in case and "allowed" in (case.get("result") or {})


def run_admission_case(case: Case) -> list[str]:
    """Judge the write of a case and list how that differs from what was recorded."""
    world = _World(case.get("given") or ())
    options = _options(case.get("webhookFlags") or ())
    sent = copy.deepcopy(case["object"])
    if case.get("oldObject") is not None:
        world.put(case["oldObject"])
    old = world.find_like(sent) if case["operation"] == "UPDATE" else None
    if old is not None and "without-resource-version" not in case["name"]:
        sent["metadata"].setdefault("resourceVersion", _STORED)
    verdict = Chain(world, options).judge(case["operation"], sent, old)
    return [*_compare_result(case["result"], verdict), *_compare_rest(case, verdict)]


def _compare_result(wanted: Case, verdict: Verdict) -> Iterable[str]:
    found = {
        "allowed": verdict.allowed,
        "source": verdict.source or None,
        "webhook": verdict.webhook or None,
        "code": verdict.code or None,
        "reason": verdict.reason,
    }
    for key, value in found.items():
        if value != wanted.get(key):
            yield f"{key}: {value!r}, expected {wanted.get(key)!r}"
    texts = [wanted["message"], *wanted.get("messageVariants", ())]
    comparable = _without_order if "messageVariants" in wanted else _sorted_lists
    if comparable(verdict.message) not in [comparable(text) for text in texts]:
        yield f"message: {verdict.message!r}, expected {wanted['message']!r}"


def _sorted_lists(message: str) -> str:
    return _LISTS.sub(lambda m: f"{m[1]}{' '.join(sorted(m[2].split()))}]", message)


def _without_order(message: str) -> tuple[str, ...]:
    """Take a message apart where its parts have no fixed order."""
    return tuple(sorted(re.split(r", |; |[\[\];] ?|: \[|request: ", _sorted_lists(message))))


def _compare_rest(case: Case, verdict: Verdict) -> Iterable[str]:
    calls = []
    for call in verdict.calls:
        record: dict[str, Any] = {"path": call.service.path, "allowed": call.answer.allowed}
        if call.answer.patch:
            record["patch"] = call.answer.patch
        calls.append(record)
    wanted = [
        {key: value for key, value in call.items() if key in ("path", "allowed", "patch")}
        for call in case.get("calls") or ()
    ]
    if calls != wanted:
        yield f"calls: {calls}, expected {wanted}"
    warnings = [f'"{text.replace(chr(34), chr(92) + chr(34))}"' for text in verdict.warnings]
    if warnings != list(case.get("warnings") or ()):
        yield f"warnings: {warnings}, expected {case.get('warnings')}"
    if case.get("mutated") is not None and verdict.allowed:
        yield from _compare_objects(case, verdict)


def _compare_objects(case: Case, verdict: Verdict) -> Iterable[str]:
    if case["object"].get("kind") == "Pod":
        patch = [change for call in verdict.calls for change in call.answer.patch or ()]
        if patch != case["mutated"]:
            yield f"mutated: {patch}, expected {case['mutated']}"
        return
    wanted = _bare(_patched(case["object"], case["mutated"]))
    found = _bare(verdict.object)
    if "generateName" in case["object"]["metadata"]:
        found["metadata"].pop("name", None)
        wanted["metadata"].pop("name", None)
    if found != wanted:
        yield f"object: {found}, expected {wanted}"


def _patched(document: Any, patch: list[dict[str, Any]]) -> Any:
    """Apply a recorded patch, which may also remove."""
    changed = copy.deepcopy(document)
    for change in patch:
        if change["op"] != "remove":
            changed = applied(changed, [change])
            continue
        steps = [s.replace("~1", "/").replace("~0", "~") for s in change["path"].split("/")[1:]]
        holder = changed
        for step in steps[:-1]:
            holder = holder[parse_int(step) if isinstance(holder, list) else step]
        del holder[parse_int(steps[-1]) if isinstance(holder, list) else steps[-1]]
    return changed


def _bare(manifest: Manifest) -> Manifest:
    metadata = {k: v for k, v in manifest["metadata"].items() if k not in _SERVER_MADE}
    return {**manifest, "metadata": metadata}


def _options(flags: Iterable[str]) -> Options:
    given: dict[str, list[str]] = {}
    for flag in flags:
        name, _, value = flag.removeprefix("--").partition("=")
        given.setdefault(name, []).append(value)
    gates = ",".join(given.get("feature-gates", ()))

    return Options(
        scheduler_names=tuple(given.get("scheduler-name", ("volcano",))),
        resource_groups=read_groups(yaml.safe_load(BASE["admissionConf"])),
        max_queue_depth=int(given.get("max-queue-depth", ["5"])[-1]),
        check_allocated_pods=given.get("enable-queue-allocated-pods-check", ["false"])[-1]
        == "true",
        protect_root_queue=given.get("enable-root-queue-protection", ["true"])[-1] == "true",
        gate_pods="SchedulingGatesQueueAdmission=true" in gates,
    )


class _World:
    """What exists before a case."""

    def __init__(self, given: Iterable[Manifest]) -> None:
        self._objects: dict[tuple[str, str, str], Manifest] = {}
        for name in BASE["namespaces"]:
            self.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for queue in BASE["queues"]:
            self.put(queue)
        for manifest in given:
            self.put(manifest)

    def put(self, manifest: Manifest) -> Manifest:
        """Store an object as written, with the defaults of its schema."""
        stored = copy.deepcopy(manifest)
        fill_in(stored, schema_of(kind_of(stored)))
        stored["metadata"]["resourceVersion"] = _STORED
        self._objects[self._key(stored)] = stored
        return stored

    def _key(self, manifest: Manifest) -> tuple[str, str, str]:
        kind = kind_of(manifest)
        known = KINDS.get(kind)
        metadata = manifest["metadata"]
        namespaced = known is None or known.namespaced
        return kind, metadata.get("namespace", "") if namespaced else "", metadata.get("name", "")

    def find_like(self, manifest: Manifest) -> Manifest | None:
        return self._objects.get(self._key(manifest))

    def find(self, kind: str, namespace: str, name: str) -> Manifest | None:
        return self._objects.get((kind, namespace, name))

    def queue(self, name: str) -> Manifest | None:
        return self.find(QUEUE, "", name)

    def queues(self) -> Iterable[Manifest]:
        return [one for key, one in self._objects.items() if key[0].startswith("Queue.")]

    def below(self, name: str) -> list[Manifest]:
        return children_of(name, self.queues())

    def namespace(self, name: str) -> Manifest | None:
        return self.find("Namespace", "", name)
