"""Short forms of a scenario: nodes by number, queues by name, workloads that stand or wait."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pumice.api.annotations import RUN_SECONDS
from pumice.api.builders import node, pod, pod_group, priority_class, queue
from pumice.api.kinds import Manifest
from pumice.api.quantity import format_quantity, parse_quantity
from pumice.api.scenario_values import (
    is_count,
    listed,
    mapped,
    problem,
    refuse_unknown,
    seconds_from,
    typed,
)
from pumice.api.times import rfc3339
from pumice.errors import QuantityError

SHORT_KEYS: Final = ("nodes", "queues", "priorities", "workloads")
USUAL_PRIORITIES: Final = {"low": 100, "normal": 500, "high": 1000, "urgent": 10000}
"""What these names mean where no priority class says otherwise."""
_GPU: Final = "nvidia.com/gpu"
RESOURCES: Final = {"cpu": "cpu", "memory": "memory", "gpu": _GPU, "pods": "pods"}
NODE_KEYS: Final = (
    "name",
    "count",
    "cpu",
    "memory",
    "gpu",
    "pods",
    "labels",
    "taints",
    "cordoned",
)
QUEUE_KEYS: Final = (
    *("weight", "parent", "priority", "reclaimable", "closed"),
    *("deserved", "guarantee", "capability"),
)
WORKLOAD_KEYS: Final = (
    *("name", "namespace", "queue", "count", "pods", "cpu", "memory", "gpu", "gang", "running"),
    *("node", "priority", "labels", "nodeSelector", "preemptable", "age", "runs"),
)
_DEFAULT_QUEUE: Final = "default"
_ROOT: Final = "root"
_MEMORY_PER_CPU: Final = 4 << 30
_NANO: Final = 10**9
_MOST: Final = 100_000
_FIRST_AGE: Final = 3600.0
"""Seconds since the first workload of a list was made; each further one is a second younger."""


def is_resource(name: str) -> bool:
    """Return whether a key is the full name of a resource, such as example.com/npu."""
    return "/" in name


# Nodes


def nodes_from(path: Path, where: str, given: Any, taken: Iterable[str] = ()) -> list[Manifest]:
    """Make nodes: of one pool, of a list of pools, or by name; none gets a name that is taken.

    Raises:
        ScenarioError: they break the format.
    """
    pools = given if isinstance(given, list) else [given]
    if isinstance(given, dict) and _are_by_name(given):
        pools = [{"name": name, **one} for name, one in given.items()]
    known, made, first = set(taken), [], dict[str, int]()
    for i, pool in enumerate(pools):
        at = f"{where}[{i}]" if isinstance(given, list) else where
        for one in _pool(path, at, pool, known, first):
            known.add(one["metadata"]["name"])
            made.append(one)
    return made


def _are_by_name(given: Mapping[str, Any]) -> bool:
    stated = given.values()
    return bool(given) and "labels" not in given and all(isinstance(one, dict) for one in stated)


def _pool(
    path: Path, where: str, given: Any, taken: set[str], first: dict[str, int]
) -> Iterator[Manifest]:
    pool = mapped(path, where, given, "a mapping with count and cpu")
    _refuse_keys(path, where, pool, NODE_KEYS)
    count = _number(path, f"{where}.count", pool.get("count", 1))
    amounts = _amounts(path, where, pool)
    cores = parse_quantity(amounts.pop("cpu", 4))
    memory = amounts.pop("memory", _quantity("memory", cores * _MEMORY_PER_CPU))
    stem = typed(path, f"{where}.name", pool.get("name", "node"), str, "a name")
    taints = [_taint(path, f"{where}.taints", one) for one in pool.get("taints", ())]
    numbered = "count" in pool or "name" not in pool
    for name in _names(stem, count, taken, first) if numbered else (stem,):
        yield node(
            name,
            cpu=pool.get("cpu", 4),
            memory=memory,
            pods=int(amounts.get("pods", 110)),
            labels=_labels(path, f"{where}.labels", pool.get("labels", {})),
            taints=taints,
            unschedulable=bool(pool.get("cordoned", False)),
            resources={key: value for key, value in amounts.items() if key != "pods"},
        )


def _names(stem: str, count: int, taken: set[str], first: dict[str, int]) -> Iterator[str]:
    """Yield free names; ``first`` has by stem the number from which some may be free."""
    number = first.get(stem, 0)
    made = 0
    while made < count:
        if f"{stem}-{number}" not in taken:
            made += 1
            yield f"{stem}-{number}"
        number += 1
    first[stem] = number


def _taint(path: Path, where: str, given: Any) -> dict[str, str]:
    """Read a taint: a mapping, or the text of kubectl, KEY=VALUE:EFFECT."""
    if isinstance(given, dict):
        return {str(key): str(value) for key, value in given.items()}
    text, _, effect = typed(path, where, given, str, "KEY=VALUE:NoSchedule").rpartition(":")
    key, _, value = text.partition("=")
    if not key:
        raise problem(path, where, given, "KEY=VALUE:NoSchedule")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


# Queues and priorities


def queues_from(path: Path, where: str, given: Any) -> list[Manifest]:
    """Make open queues: a list of names, or names to what they state.

    Raises:
        ScenarioError: they break the format.
    """
    if isinstance(given, list):
        given = dict.fromkeys(typed(path, where, name, str, "names of queues") for name in given)
    return [
        _queue(path, f"{where}.{name}", str(name), {} if stated is None else stated)
        for name, stated in mapped(path, where, given, "names of queues").items()
    ]


def _queue(path: Path, where: str, name: str, given: Any) -> Manifest:
    stated = mapped(path, where, given, "a mapping with weight or deserved")
    refuse_unknown(path, where, stated, QUEUE_KEYS)
    amounts: dict[str, Any] = {
        part: _amounts(path, f"{where}.{part}", mapped(path, f"{where}.{part}", stated[part]))
        for part in ("deserved", "guarantee", "capability")
        if part in stated
    }
    return queue(
        name,
        weight=_number(path, f"{where}.weight", stated.get("weight", 1)),
        state="Closed" if stated.get("closed") else "Open",
        parent=stated.get("parent"),
        priority=stated.get("priority"),
        reclaimable=stated.get("reclaimable"),
        **amounts,
    )


def changed_queue(path: Path, where: str, before: Manifest, given: Any) -> Manifest:
    """Return a queue with what a step states about it; the rest stays."""
    stated = {} if given is None else mapped(path, where, given)
    made = _queue(path, where, before["metadata"]["name"], stated)
    spec = {key: value for key, value in made["spec"].items() if key != "weight"}
    if "weight" in stated:
        spec["weight"] = made["spec"]["weight"]
    status = {**(before.get("status") or {})}
    if "closed" in stated:
        status["state"] = made["status"]["state"]
    return {**before, "spec": {**(before.get("spec") or {}), **spec}, "status": status}


def _with_parents(queues: list[Manifest], known: set[str]) -> Iterator[Manifest]:
    """Yield queues, those above them that nobody states, and the root of a tree."""
    has_tree = any(one["spec"].get("parent") for one in queues)
    names = known | {one["metadata"]["name"] for one in queues}
    for one in queues:
        above = one["spec"].get("parent")
        if has_tree and not above and one["metadata"]["name"] != _ROOT:
            one["spec"]["parent"] = above = _ROOT
        if above and above not in names:
            names.add(above)
            yield queue(above, parent=None if above == _ROOT else _ROOT)
            if above != _ROOT and _ROOT not in names:
                names.add(_ROOT)
                yield queue(_ROOT)
    yield from queues


def _priorities(path: Path, given: Any) -> list[Manifest]:
    stated = mapped(path, "priorities", given, "names of priority classes to numbers")
    for name, value in stated.items():
        if not is_count(value):
            raise problem(path, f"priorities.{name}", value, "a whole number")
    return [priority_class(str(name), value=value) for name, value in stated.items()]


# Workloads


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Equal jobs, each a pod group with equal pods."""

    where: str
    """Its place in the file."""
    name: str = ""
    namespace: str = "default"
    queue: str = _DEFAULT_QUEUE
    count: int = 1
    pods: int = 1
    requests: Mapping[str, Any] = field(default_factory=dict)
    least: int = 1
    """How many pods it needs to start."""
    running: int = 0
    on: tuple[str, ...] = ()
    """The nodes that its running pods are on; none: the first with room."""
    priority: str | int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    preemptable: bool | None = None
    age: float | None = None
    runs: float | None = None
    """How long its user expects it to run, in seconds."""


def workloads_from(path: Path, where: str, given: Any) -> list[Workload]:
    """Read a list of workloads.

    Raises:
        ScenarioError: they break the format.
    """
    items = listed(path, where, given)
    return [_workload(path, f"{where}[{i}]", item) for i, item in enumerate(items)]


def _workload(path: Path, where: str, item: Any) -> Workload:
    given = mapped(path, where, item, "a mapping with queue and pods")
    _refuse_keys(path, where, given, WORKLOAD_KEYS)
    count = _number(path, f"{where}.count", given.get("count", 1))
    pods = _number(path, f"{where}.pods", given.get("pods", 1))
    for name in ("name", "namespace", "queue"):
        if name in given:
            typed(path, f"{where}.{name}", given[name], str, "a name")
    return Workload(
        where=where,
        name=given.get("name", ""),
        namespace=given.get("namespace", "default"),
        queue=given.get("queue", _DEFAULT_QUEUE),
        count=count,
        pods=pods,
        requests=_amounts(path, where, {k: v for k, v in given.items() if k != "pods"})
        or {"cpu": 1},
        least=_part(path, f"{where}.gang", given.get("gang", False), pods, none=1),
        running=_part(path, f"{where}.running", given.get("running", False), pods, none=0),
        on=_strings(path, f"{where}.node", given.get("node", ())),
        priority=_priority(path, f"{where}.priority", given.get("priority")),
        labels=_labels(path, f"{where}.labels", given.get("labels", {})),
        node_selector=_labels(path, f"{where}.nodeSelector", given.get("nodeSelector", {})),
        preemptable=_truth(path, f"{where}.preemptable", given.get("preemptable")),
        age=seconds_from(path, f"{where}.age", given["age"]) if "age" in given else None,
        runs=seconds_from(path, f"{where}.runs", given["runs"]) if "runs" in given else None,
    )


def _part(path: Path, where: str, value: Any, pods: int, *, none: int) -> int:
    """Read how many of the pods: all, none or a number."""
    if isinstance(value, bool):
        return pods if value else none
    if is_count(value) and 0 <= value <= pods:
        return int(value)
    raise problem(path, where, value, f"true, false or a number up to {pods}")


def _priority(path: Path, where: str, value: Any) -> str | int | None:
    if value is None or is_count(value) or (isinstance(value, str) and value):
        found: str | int | None = value
        return found
    raise problem(path, where, value, "the name of a priority class, or a number")


def _truth(path: Path, where: str, value: Any) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise problem(path, where, value, "true or false")
    return value


class Making:
    """Makes the objects of workloads beside those that are there."""

    def __init__(self, path: Path, there: Iterable[Manifest], now: float) -> None:
        self._path, self._now = path, now
        self._known = {(one["kind"], _key(one)): one for one in there}
        self._room = _Room(self._known.values())
        self._numbers: dict[str, int] = {}

    def objects(self, workloads: Sequence[Workload], *, fresh: bool = False) -> list[Manifest]:
        """Return the pod groups and pods of workloads, and the queues and classes they need.

        ``fresh`` ones are made now, others some time ago, in their order.

        Raises:
            ScenarioError: running pods have no room, or a priority is not known.
        """
        made: list[Manifest] = []
        number = 0
        for each in workloads:
            made += self._needed(each)
            for _ in range(each.count):
                usual = 0.0 if fresh else max(_FIRST_AGE - number, 0.0)
                age = usual if each.age is None else each.age
                made += self._job(each, rfc3339(self._now - age))
                number += 1
        return made

    def _needed(self, workload: Workload) -> Iterator[Manifest]:
        name, value = self._class(workload)
        if name and ("PriorityClass", name) not in self._known:
            yield self._noted(priority_class(name, value=value))
        if ("Queue", workload.queue) not in self._known:
            yield self._noted(queue(workload.queue))

    def _noted(self, one: Manifest) -> Manifest:
        self._known[one["kind"], _key(one)] = one
        return one

    def _class(self, workload: Workload) -> tuple[str, int]:
        """Return the priority class of a workload and its value."""
        given = workload.priority
        if given is None:
            return "", 0
        if isinstance(given, int):
            return f"priority-{given}", given
        known = self._known.get(("PriorityClass", given))
        if known is not None:
            return given, int(known["value"])
        if given in USUAL_PRIORITIES:
            return given, USUAL_PRIORITIES[given]
        hint = f"add priorities: {{{given}: 1000}}"
        where = f"{workload.where}.priority"
        raise problem(self._path, where, given, "a known priority class", hint)

    def _name(self, workload: Workload) -> str:
        stem = workload.name or workload.queue
        if workload.name and workload.count == 1:
            return stem
        while True:
            number = self._numbers[stem] = self._numbers.get(stem, 0) + 1
            if ("PodGroup", f"{workload.namespace}/{stem}-{number}") not in self._known:
                return f"{stem}-{number}"

    def _job(self, workload: Workload, created: str) -> Iterator[Manifest]:
        name = self._name(workload)
        kind, value = self._class(workload)
        nodes = self._places(workload)
        least = {
            key: _quantity(key, parse_quantity(amount) * workload.least)
            for key, amount in workload.requests.items()
        }
        yield self._noted(
            pod_group(
                name,
                namespace=workload.namespace,
                min_member=workload.least,
                queue=workload.queue,
                phase="Running" if nodes else "Pending",
                min_resources=least,
                priority_class=kind or None,
                annotations=None
                if workload.runs is None
                else {RUN_SECONDS: f"{workload.runs:.15g}"},
                created=created,
            )
        )
        selector = {"nodeSelector": dict(workload.node_selector)}
        for i in range(workload.pods):
            made = self._noted(
                pod(
                    f"{name}-{i}",
                    namespace=workload.namespace,
                    group=name,
                    resources=workload.requests,
                    node=nodes[i] if i < len(nodes) else None,
                    priority=value if kind else None,
                    priority_class=kind or None,
                    preemptable=workload.preemptable,
                    labels=workload.labels,
                    created=created,
                    spec=selector if workload.node_selector else None,
                )
            )
            if i < len(nodes):
                made["status"]["startTime"] = created
            yield made

    def _places(self, workload: Workload) -> list[str]:
        places = self._room.take(workload)
        if len(places) < workload.running:
            found = f"room for {len(places)} on the nodes"
            wanted = f"room for {workload.running} running pods"
            raise problem(self._path, f"{workload.where}.running", found, wanted)
        return places


class _Room:
    """What is free on nodes, beside the pods that are there."""

    def __init__(self, objects: Iterable[Manifest]) -> None:
        things = list(objects)
        self._nodes = {one["metadata"]["name"]: one for one in things if one["kind"] == "Node"}
        self._free = {
            name: {key: parse_quantity(value) for key, value in _allocatable(one).items()}
            for name, one in self._nodes.items()
        }
        for one in things:
            spec = one.get("spec") or {}
            if one["kind"] == "Pod" and spec.get("nodeName") in self._free:
                self._use(spec["nodeName"], _requests(spec))

    def _use(self, name: str, amounts: Mapping[str, int]) -> None:
        free = self._free[name]
        for key, amount in amounts.items():
            free[key] = free.get(key, 0) - amount

    def take(self, workload: Workload) -> list[str]:
        """Return a node for each running pod, the first with room; fewer if there is none."""
        request = {key: parse_quantity(value) for key, value in workload.requests.items()}
        request["pods"] = _NANO
        names = workload.on or tuple(self._nodes)
        places: list[str] = []
        for name in names:
            while len(places) < workload.running and self._fits(name, request, workload):
                self._use(name, request)
                places.append(name)
        return places

    def _fits(self, name: str, request: Mapping[str, int], workload: Workload) -> bool:
        if name not in self._free:
            return False
        labels = self._nodes[name]["metadata"].get("labels") or {}
        wanted = workload.node_selector.items()
        free = self._free[name]
        return all(labels.get(key) == value for key, value in wanted) and all(
            free.get(key, 0) >= amount for key, amount in request.items()
        )


def _allocatable(one: Manifest) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (one.get("status") or {}).get("allocatable") or {}
    return found


def _requests(spec: Mapping[str, Any]) -> dict[str, int]:
    total = {"pods": _NANO}
    for container in spec.get("containers") or ():
        asked = (container.get("resources") or {}).get("requests") or {}
        for key, value in asked.items():
            total[key] = total.get(key, 0) + parse_quantity(value)
    return total


# The whole


def short_objects(
    path: Path, document: Mapping[str, Any], there: Sequence[Manifest], now: float
) -> list[Manifest]:
    """Return the objects that the short forms of a scenario stand for.

    Raises:
        ScenarioError: they break the format.
    """
    if not any(key in document for key in SHORT_KEYS):
        return []
    made: list[Manifest] = []
    names = {one["metadata"]["name"] for one in there if one["kind"] == "Node"}
    if "nodes" in document:
        made += nodes_from(path, "nodes", document["nodes"], names)
    if "priorities" in document:
        made += _priorities(path, document["priorities"])
    if "queues" in document:
        known = {one["metadata"]["name"] for one in there if one["kind"] == "Queue"}
        made += _with_parents(queues_from(path, "queues", document["queues"]), known)
    workloads = workloads_from(path, "workloads", document.get("workloads", []))
    return made + Making(path, [*there, *made], now).objects(workloads)


def _key(one: Manifest) -> str:
    meta = one["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else str(meta["name"])


def _refuse_keys(path: Path, where: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    plain = {key: value for key, value in given.items() if not is_resource(str(key))}
    refuse_unknown(path, where, plain, known)


def _amounts(path: Path, where: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the amounts among the keys of a mapping, by their full names."""
    found = {}
    for key, value in given.items():
        name = RESOURCES.get(str(key)) or (str(key) if is_resource(str(key)) else "")
        if not name:
            continue
        try:
            parse_quantity(typed(path, f"{where}.{key}", value, (int, float, str), "an amount"))
        except QuantityError:
            raise problem(path, f"{where}.{key}", value, "an amount such as 4 or 8Gi") from None
        found[name] = value
    return found


def _quantity(resource: str, nano: int) -> str:
    return format_quantity(resource, nano * 1000 / _NANO if resource == "cpu" else nano / _NANO)


def _number(path: Path, where: str, value: Any) -> int:
    if not is_count(value) or not 0 <= value <= _MOST:
        raise problem(path, where, value, f"a number up to {_MOST}")
    return int(value)


def _strings(path: Path, where: str, value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        raise problem(path, where, value, "a name or a list of names")
    return tuple(typed(path, where, one, str, "a name") for one in items)


def _labels(path: Path, where: str, value: Any) -> dict[str, str]:
    return {str(key): str(text) for key, text in mapped(path, where, value).items()}
