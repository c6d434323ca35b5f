"""Random clusters without much room, where jobs of high priority wait: made to evict."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from pumice.api.annotations import COOLDOWN_TIME, PREEMPTABLE
from pumice.testing import node, pdb, pod, pod_group, priority_class, queue

_LEVELS = {"low": 1, "middle": 10, "high": 1000}
_SCHEDULED = {
    "type": "PodScheduled",
    "status": "True",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
_T = TypeVar("_T")


class Dice:
    """Draws by a seed."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def between(self, low: int, high: int) -> int:
        return int(self._generator.integers(low, high + 1))

    def one_of(self, options: Sequence[_T]) -> _T:
        return options[self.between(0, len(options) - 1)]

    def chance(self, share: float) -> bool:
        return bool(self._generator.random() < share)


def full_cluster(seed: int) -> list[Any]:
    """Fill nodes with pods of mixed sizes, with waiting gangs."""
    dice = Dice(seed)
    names = ["blue", "green"][: dice.between(1, 2)]
    objects = [priority_class(name, value=value) for name, value in _LEVELS.items()]
    objects += [_queue(dice, name) for name in names]
    hosts = [f"n{i}" for i in range(dice.between(2, 9))]
    rooms = {host: dice.one_of([2000, 4000, 8000]) for host in hosts}
    objects += [
        node(
            host,
            cpu=f"{rooms[host]}m",
            memory="64Gi",
            pods=dice.one_of([3, 6, 110]),
            labels={"zone": dice.one_of("ab")},
        )
        for host in hosts
    ]
    unnumbered = dice.one_of([0.0, 0.0, 0.2, 1.0])
    for number in range(dice.between(2, 8)):
        objects += _running(dice, number, dice.one_of(names), rooms, unnumbered)
    for number in range(dice.between(1, 4)):
        objects += _waiting(dice, number, dice.one_of(names))
    return objects


def full_cluster_of_gangs(seed: int) -> list[Any]:
    """Fill nodes with pods of a few sizes, budgets and protected ones among them; large gangs wait.

    Nodes that are alike, gangs of equal pods on both sides, some with a pod that differs.
    """
    dice = Dice(seed)
    objects, names = _nodes_full_of_gangs(dice)
    for number in range(dice.between(1, 4)):
        objects += _waiting_gang(dice, number, dice.one_of(names))
    if dice.chance(0.3):
        _lose_devices(dice, objects)
    return objects


def full_cluster_of_equal_gangs(seed: int) -> list[Any]:
    """Fill nodes the same way; small gangs of the same pods wait in one queue, or in two.

    Some of them wait for one more pod, which is too large for any node.
    """
    dice = Dice(seed)
    objects, names = _nodes_full_of_gangs(dice)
    where = names[-dice.between(1, 2) :]
    size, cpu = dice.between(3, 5), dice.one_of([500, 1000, 1000, 1500, 1500])
    for number in range(dice.between(2, 6)):
        name, level = f"new{number}", dice.one_of(["high", "high", "high", "middle"])
        is_vain = dice.chance(0.15)
        least = size + 1 if is_vain else dice.one_of([1, size, size])
        objects.append(
            pod_group(
                name,
                queue=dice.one_of(where),
                min_member=least,
                phase="Inqueue",
                priority_class=level,
            )
        )
        objects += [
            pod(f"{name}-w-{i}", group=name, cpu=f"{each}m", priority=_LEVELS[level])
            for i, each in enumerate([cpu] * size + [99000] * is_vain)
        ]
    return objects


def _nodes_full_of_gangs(dice: Dice) -> tuple[list[Any], list[str]]:
    """Make queues, whose names are returned, and nodes that running gangs fill."""
    names = ["blue", "green", "red"][: dice.between(2, 3)]
    dues: list[Any] = [None, {"cpu": 1}, {"cpu": 6}, {"cpu": 60, "memory": "99Gi"}]
    objects = [priority_class(name, value=value) for name, value in _LEVELS.items()]
    objects += [
        queue(
            name,
            weight=dice.one_of([1, 1, 8]),
            capability=dice.one_of([None, None, None, {"cpu": 16}]),
            deserved=dice.one_of(dues),
            guarantee=dice.one_of([None, None, {"cpu": 2}]),
            reclaimable=dice.chance(0.9),
        )
        for name in names
    ]
    if dice.chance(0.3):
        objects.append(pdb("b", match_labels={"app": "x"}, disruptions_allowed=dice.between(0, 3)))
    size = dice.one_of([4000, 8000])
    hosts = [f"n{i}" for i in range(dice.between(3, 10))]
    rooms = {host: dice.one_of([size, size, 2 * size]) for host in hosts}
    pods = dice.one_of([5, 110, 110])
    objects += [
        node(host, cpu=f"{rooms[host]}m", memory="64Gi", pods=pods, labels={"zone": zone})
        for host, zone in zip(hosts, "abababababab", strict=False)
    ]
    owners = dice.one_of([names, names[:1]])
    for number in range(dice.between(3, 9)):
        objects += _running_gang(dice, number, dice.one_of(owners), rooms)
    return objects, names


def _lose_devices(dice: Dice, objects: list[Any]) -> None:
    """Add to some running pods a device that their node no longer has."""
    for one in objects:
        if one["kind"] == "Pod" and one["spec"].get("nodeName") and dice.chance(0.15):
            resources = one["spec"]["containers"][0].setdefault("resources", {})
            resources.setdefault("requests", {})["nvidia.com/gpu"] = "1"


def _running_gang(dice: Dice, number: int, where: str, rooms: dict[str, int]) -> list[Any]:
    name, level = f"old{number}", dice.one_of(["low", "low", "middle"])
    cpus, kind = dice.one_of([[500], [1000], [500, 1000], [0, 1000, 2000]]), dice.one_of("xy")
    made: list[Any] = []
    for i in range(dice.between(4, 14)):
        cpu = dice.one_of(cpus)
        hosts = [host for host, room in rooms.items() if room >= cpu]
        if not hosts:
            break
        host = hosts[0] if dice.chance(0.8) else dice.one_of(hosts)
        rooms[host] -= cpu
        made.append(
            pod(
                f"{name}-{i}",
                group=name,
                cpu=f"{cpu}m" if cpu else None,
                node=host,
                priority=_LEVELS[level] + dice.one_of([0, 0, 0, 1]),
                preemptable=dice.chance(0.95),
                created=f"2026-01-01T00:00:{dice.between(0, 2):02d}Z",
                labels={"app": kind},
                annotations={COOLDOWN_TIME: "1h"} if dice.chance(0.1) else {},
                spec=_terms(dice) if dice.chance(0.1) else {},
            )
        )
        made[-1]["status"]["conditions"] = [_SCHEDULED]
    group = pod_group(
        name,
        queue=where,
        min_member=dice.one_of([0, 1, 1, max(1, len(made) - 2), max(1, len(made) // 2)]),
        phase="Running",
        priority_class=level,
        annotations={PREEMPTABLE: "true"} if dice.chance(0.3) else {},
    )
    return [group, *made]


def _waiting_gang(dice: Dice, number: int, where: str) -> list[Any]:
    name, level = f"new{number}", dice.one_of(["middle", "high", "high"])
    size, cpu = dice.between(2, 12), dice.one_of([500, 1000, 1000, 1500, 2500])
    group = pod_group(
        name,
        queue=where,
        min_member=dice.one_of([1, size // 2, size]),
        phase="Inqueue",
        priority_class=level,
    )
    odd, spec = dice.between(0, 2 * size), _terms(dice) if dice.chance(0.1) else {}
    pods = [
        pod(
            f"{name}-w-{i}",
            group=name,
            cpu=f"{cpu + 500 * (i == odd)}m",
            priority=_LEVELS[level],
            labels={"app": "x"},
            role="w" if number % 2 else None,
            spec=spec,
        )
        for i in range(size)
    ]
    return [group, *pods]


def _queue(dice: Dice, name: str) -> Any:
    amounts: list[Any] = [None, {"cpu": 2, "memory": "8Gi"}, {"cpu": 8}]
    return queue(
        name,
        weight=dice.between(1, 3),
        capability=dice.one_of([None, {"cpu": 6}, {"cpu": 12}]),
        deserved=dice.one_of(amounts),
        reclaimable=dice.chance(0.8),
    )


def _running(
    dice: Dice, number: int, where: str, rooms: dict[str, int], unnumbered: float
) -> list[Any]:
    name, level = f"old{number}", dice.one_of(["low", "low", "middle"])
    made: list[Any] = []
    for i in range(dice.between(1, 8)):
        cpu, host = dice.one_of([0, 250, 500, 1000, 2000]), dice.one_of(sorted(rooms))
        if rooms[host] < cpu:
            continue
        rooms[host] -= cpu
        made.append(
            pod(
                f"{name}-{'xyzuvabc'[i] if dice.chance(unnumbered) else i}",
                group=name,
                cpu=f"{cpu}m" if cpu else None,
                node=host,
                priority=_LEVELS[level] + dice.one_of([0, 0, 1]),
                priority_class="system-node-critical" if dice.chance(0.05) else None,
                preemptable=dice.chance(0.9),
                created=f"2026-01-01T00:00:{dice.between(0, 3):02d}Z",
                labels={"app": dice.one_of("xy")},
                spec=_terms(dice),
            )
        )
    least = dice.between(0, max(1, len(made)))
    group = pod_group(name, queue=where, min_member=least, phase="Running", priority_class=level)
    return [group, *made]


def _waiting(dice: Dice, number: int, where: str) -> list[Any]:
    name, level = f"new{number}", dice.one_of(["middle", "high", "high"])
    size, cpu = dice.between(1, 4), dice.one_of([0, 500, 1000, 1500, 3000])
    least = dice.between(1, size)
    spec = _terms(dice)
    group = pod_group(name, queue=where, min_member=least, phase="Inqueue", priority_class=level)
    mixed = dice.chance(0.2)
    pods = [
        pod(
            f"{name}-w-{i}",
            group=name,
            cpu=f"{cpu + 250 * i * mixed}m" if cpu else None,
            priority=_LEVELS[level],
            labels={"app": "x"},
            spec=spec,
        )
        for i in range(size)
    ]
    return [group, *pods]


def _terms(dice: Dice) -> dict[str, Any]:
    """Make pods that have to do with others now and then."""
    kind = dice.one_of(["plain"] * 8 + ["apart", "near"])
    selector = {"matchLabels": {"app": dice.one_of("xy")}}
    term = {
        "labelSelector": selector,
        "topologyKey": dice.one_of(["zone", "kubernetes.io/hostname"]),
    }
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    if kind == "apart":
        return {"affinity": {"podAntiAffinity": rule}}
    if kind == "near":
        return {"affinity": {"podAffinity": rule}}
    return {}
