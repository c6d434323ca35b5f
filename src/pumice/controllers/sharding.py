"""NodeShards: the nodes of a cluster divided among several schedulers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pumice import logs
from pumice.api.annotations import MIRROR
from pumice.api.kinds import ENDED_PHASES, NODE_SHARD, Manifest
from pumice.api.quantity import parse_quantity
from pumice.controllers.base import SOURCE, Create, Delete, Effect, Key, Patch, Plan, Record, View
from pumice.controllers.shard_conf import CONF_KEY, Shard, ShardConf, read_shards
from pumice.errors import InputError

SHARDING_CONFIG: Final = ("volcano-system", "volcano-sharding-configmap")
"""Namespace and name of the ConfigMap, as Volcano names it."""
_MUCH: Final = 0.5
"""A change of a node's use, of 1, after which nodes are assigned again at once."""
_PAUSE_S: Final = 0.2
"""The least time between two assignments: pods and nodes change in bursts."""
_UNNOTICED: Final = 10
"""One in so many nodes may be another one before a shard is written."""
_RESOURCES: Final = ("cpu", "memory")

_log = logs.get("sharding")


class ShardingController:
    """Keeps one NodeShard for each scheduler of the settings, and no others."""

    name = "sharding"
    watches: tuple[str, ...] = (NODE_SHARD, "Node", "Pod", "ConfigMap")

    def __init__(
        self,
        conf: ShardConf,
        config: tuple[str, str] = SHARDING_CONFIG,
        *,
        poll_s: float | None = None,
    ) -> None:
        """Make one; ``conf`` is used until the ConfigMap at ``config`` has been read.

        With ``poll_s`` the ConfigMap is read that often instead of being watched.
        """
        self._everything = Key("ConfigMap", *config)
        self._conf = conf
        self._poll_s = poll_s
        self._text: str | None = None
        self._use = _Use()
        self._assigned: dict[str, tuple[str, ...]] = {}
        self._last_at = -_PAUSE_S
        self._due = 0.0

    def concerns(self, kind: str, manifest: Manifest, view: View) -> Iterable[Key]:
        """Assign nodes again when settings change, a node comes, goes or changes much."""
        metadata = manifest["metadata"]
        place = str(metadata.get("namespace", "")), str(metadata["name"])
        match kind:
            case "Pod":
                concerned = self._use.see_pod(place, view.get("Pod", *place))
            case "Node":
                concerned = self._use.see_node(place[1], view.get("Node", "", place[1]))
            case "ConfigMap":
                if place != (self._everything.namespace, self._everything.name):
                    return ()
                self._due = 0.0
                return (self._everything,)
            case _:
                return (Key(NODE_SHARD, "", place[1]),)
        if not concerned or not self._conf.by_event:
            return ()
        self._due = 0.0
        return (self._everything,)

    def reconcile(self, key: Key, view: View) -> Plan:
        """Assign the nodes, if it is time, or correct one shard."""
        if key != self._everything:
            return Plan(self._effects(key.name, view))
        left_s = self._last_at + _PAUSE_S - view.now
        if 0 < left_s <= _PAUSE_S:
            return Plan(again_in_s=left_s)
        self._last_at = view.now
        effects = self._read_conf(view)
        if view.now >= self._due:
            self._due = view.now + self._conf.period_s
            self._assigned = assignments(self._conf.shards, view.list("Node"), self._use)
            self._use.settle()
        known = [str(each["metadata"]["name"]) for each in view.list(NODE_SHARD)]
        wrong = [n for n in sorted({*self._assigned, *known}) if self._effects(n, view)]
        waits = min(self._due - view.now, self._poll_s or self._conf.period_s)
        return Plan(
            effects,
            again_in_s=max(waits, _PAUSE_S),
            look_at=[Key(NODE_SHARD, "", name) for name in wrong],
        )

    def _read_conf(self, view: View) -> list[Effect]:
        """Apply the settings if they changed; those that cannot be used change nothing."""
        key = self._everything
        found = view.read(key.kind, key.namespace, key.name)
        text = ((found or {}).get("data") or {}).get(CONF_KEY)
        if found is None or text is None or text == self._text:
            return []
        self._text, self._due = text, 0.0
        try:
            self._conf = read_shards(text, f"{key.namespace}/{key.name}", self._conf)
        except InputError as error:
            _log.warning("sharding", problem=f"{error}; the last settings are kept")
            return [Record(found, "Warning", "Sharding", str(error), SOURCE)]
        return []

    def _effects(self, name: str, view: View) -> list[Effect]:
        """Return the effects that correct a NodeShard."""
        known, wanted = view.get(NODE_SHARD, "", name), self._assigned.get(name)
        if known is None:
            return [] if wanted is None else [Create(_node_shard(name, wanted))]
        metadata = known["metadata"]
        if metadata.get("deletionTimestamp") or not self._assigned:
            return []
        key = Key(NODE_SHARD, "", name)
        if wanted is None:
            return [Delete(key, uid=str(metadata["uid"]))]
        if not _differs((known.get("spec") or {}).get("nodesDesired") or [], wanted):
            return []
        return [Patch(key, {"spec": {"nodesDesired": [*wanted]}})]


def _node_shard(name: str, nodes: Sequence[str]) -> Manifest:
    return {
        "apiVersion": "shard.volcano.sh/v1alpha1",
        "kind": "NodeShard",
        "metadata": {"name": name},
        "spec": {"nodesDesired": [*nodes]},
    }


def _differs(known: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether the number of nodes differs, or more than a few of them are others."""
    if len(known) != len(wanted):
        return True
    return len({*wanted} - {*known}) >= max(1, len(wanted) // _UNNOTICED)


class _Use:
    """What the pods of each node ask for, as parts of what it has."""

    def __init__(self) -> None:
        self._pods: dict[tuple[str, str], tuple[str, Mapping[str, float]]] = {}
        self._asked: dict[str, dict[str, float]] = {}
        self._nodes: dict[str, tuple[dict[str, float], Any]] = {}
        self._settled: dict[str, dict[str, float]] = {}
        """The use of each node when nodes were assigned last."""

    def see_pod(self, place: tuple[str, str], pod: Manifest | None) -> bool:
        """Count a pod as it is now; return whether the use of its node changed much."""
        old, new = self._pods.pop(place, None), _counted(pod)
        if new is not None:
            self._pods[place] = new
        for sign, each in ((-1.0, old), (1.0, new)):
            if each is not None:
                asked = self._asked.setdefault(each[0], dict.fromkeys(_RESOURCES, 0.0))
                for name, amount in each[1].items():
                    asked[name] += sign * amount
        return any(self._changed_much(each[0]) for each in (old, new) if each is not None)

    def see_node(self, name: str, node: Manifest | None) -> bool:
        """Take a node as it is now; return whether it is new, gone or has other labels."""
        if node is None:
            return self._nodes.pop(name, None) is not None
        capacity = (node.get("status") or {}).get("capacity") or {}
        has = {key: _amount(capacity.get(key)) for key in _RESOURCES}
        metadata = node["metadata"]
        marks = metadata.get("labels") or {}, metadata.get("annotations") or {}
        old, self._nodes[name] = self._nodes.get(name), (has, marks)
        return old is None or old[1] != marks or self._changed_much(name)

    def of(self, node: str) -> dict[str, float]:
        """Return the part of cpu and memory of a node that its pods ask for, at most 1."""
        has, _ = self._nodes.get(node, ({}, None))
        asked = self._asked.get(node, {})
        return {
            name: min(asked.get(name, 0.0) / amount, 1.0) if amount > 0 else 0.0
            for name, amount in has.items()
        }

    def settle(self) -> None:
        """Compare with the present use from now on."""
        self._settled = {name: self.of(name) for name in self._nodes}

    def _changed_much(self, node: str) -> bool:
        before = self._settled.get(node)
        if node not in self._nodes:
            return False
        now = self.of(node)
        return before is None or any(abs(now[key] - before.get(key, 0.0)) > _MUCH for key in now)


def _counted(pod: Manifest | None) -> tuple[str, dict[str, float]] | None:
    """Return the node of a pod and what its containers ask for; None if it does not count."""
    spec = (pod or {}).get("spec") or {}
    if pod is None or not spec.get("nodeName"):
        return None
    if (pod.get("status") or {}).get("phase") in ENDED_PHASES:
        return None
    if MIRROR in (pod["metadata"].get("annotations") or {}):
        return None
    asked = dict.fromkeys(_RESOURCES, 0.0)
    for container in spec.get("containers") or ():
        requests = (container.get("resources") or {}).get("requests") or {}
        for name in _RESOURCES:
            asked[name] += _amount(requests.get(name))
    return str(spec["nodeName"]), asked


def _amount(text: Any) -> float:
    try:
        return float(parse_quantity(text)) if text is not None else 0.0
    except InputError:
        return 0.0


def assignments(
    shards: Sequence[Shard], nodes: Iterable[Manifest], use: _Use
) -> dict[str, tuple[str, ...]]:
    """Assign each node to at most one shard: those that come first choose first."""
    free = {str(each["metadata"]["name"]): each for each in nodes}
    found: dict[str, tuple[str, ...]] = {}
    for shard in shards:
        fitting = [name for name in free if shard.accepts(use.of(name)["cpu"])]
        # nodes that score the same stay in the order of their names
        fitting.sort(key=lambda name: -shard.score(use.of(name)["cpu"], _labels(free[name])))
        found[shard.name] = tuple(fitting[: shard.max_nodes or None])
        for name in found[shard.name]:
            del free[name]
    return found


def _labels(node: Manifest) -> Mapping[str, str]:
    labels: Mapping[str, str] = node["metadata"].get("labels") or {}
    return labels
