"""How nodes are divided among schedulers: the settings, from a ConfigMap or from flags."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pumice.api.duration import parse_duration
from pumice.api.wording import name_hint
from pumice.api.yaml_text import parse_yaml
from pumice.errors import ABSENT, InputError

CONF_KEY: Final = "sharding.yaml"
_RATE, _WARMUP, _LIMIT = "allocation-rate", "warmup", "node-limit"
_POLICIES: Final = (_RATE, _WARMUP, _LIMIT)
_KEYS: Final = ("schedulerConfigs", "shardSyncPeriod", "enableNodeEventTrigger")
_LEAST_PERIOD_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Rate:
    """A range of the part of cpu that is asked for; busy nodes come first."""

    least: float
    most: float
    weight: int = 1

    def accepts(self, use: float) -> bool:
        """Return whether a node is in the range."""
        return self.least <= _rounded(use) <= self.most

    def score(self, use: float) -> float:
        """Return how far up in the range a node is."""
        if self.most == self.least:
            return self.weight
        return self.weight * min(max((_rounded(use) - self.least) / (self.most - self.least), 0), 1)


@dataclass(frozen=True, slots=True)
class Warmup:
    """A label of nodes that come first."""

    label: str = "node.volcano.sh/warmup"
    value: str = "true"
    weight: int = 1


def _rounded(use: float) -> float:
    return math.floor(use * 100 + 0.5) / 100


@dataclass(frozen=True, slots=True)
class Shard:
    """The part of one scheduler: which nodes, which of them first, and how many."""

    name: str
    rates: tuple[Rate, ...] = ()
    warmups: tuple[Warmup, ...] = ()
    max_nodes: int = 0
    """At most so many; 0: all."""

    def accepts(self, use: float) -> bool:
        """Return whether a node with this part of its cpu in use may belong to it."""
        return all(rate.accepts(use) for rate in self.rates)

    def score(self, use: float, labels: Mapping[str, str]) -> float:
        """Return how much it wants a node."""
        warm = sum(each.weight for each in self.warmups if labels.get(each.label) == each.value)
        return sum(rate.score(use) for rate in self.rates) + warm


@dataclass(frozen=True, slots=True)
class ShardConf:
    """All shards, in the order in which they choose, and when nodes are assigned."""

    shards: tuple[Shard, ...]
    period_s: float = 60.0
    by_event: bool = True


def shards_of_flags(entries: Iterable[str]) -> tuple[Shard, ...]:
    """Read ``name:type:min_util:max_util:prefer_warmup:min_nodes:max_nodes`` entries.

    Raises:
        InputError: an entry cannot be read.
    """
    return tuple(_of_flag(entry) for entry in entries)


def _of_flag(entry: str) -> Shard:
    try:
        name, _, low, high, _, _, limit = entry.split(":")
        least, most, max_nodes = _utilisation(low), _utilisation(high), int(limit)
    except ValueError:
        wanted = "name:type:min_util:max_util:prefer_warmup:min_nodes:max_nodes"
        raise InputError(wanted=wanted, found=entry, field="scheduler-configs") from None
    return Shard(name, (Rate(_rounded(least), _rounded(most)),), (), max(max_nodes, 0))


def _utilisation(text: str) -> float:
    known = {"inf": 1.0, "infinity": 1.0, "-inf": 0.0, "-infinity": 0.0}
    return known[text] if text in known else float(text)


def read_shards(text: str, source: str, before: ShardConf) -> ShardConf:
    """Read the settings; what they leave out stays as it was before.

    Raises:
        InputError: they cannot be used.
    """
    documents = parse_yaml(text, source, unique=False)
    found = documents[0] if documents else None
    reader = _Reader(source)
    top = reader.mapping(found, "", _KEYS)
    entries = top.get("schedulerConfigs")
    if not isinstance(entries, list) or not entries:
        raise reader.problem("schedulerConfigs", "a list with at least one scheduler", entries)
    shards = tuple(reader.shard(e, f"schedulerConfigs[{i}]") for i, e in enumerate(entries))
    conf = replace(before, shards=shards)
    period = top.get("shardSyncPeriod")
    if period:
        conf = replace(conf, period_s=max(parse_duration(str(period)), _LEAST_PERIOD_S))
    by_event = top.get("enableNodeEventTrigger")
    return conf if by_event is None else replace(conf, by_event=bool(by_event))


class _Reader:
    """Reads one file; the first mistake ends it."""

    def __init__(self, source: str) -> None:
        self._source = source

    def problem(self, where: str, wanted: str, found: Any, hint: str = "") -> InputError:
        found = ABSENT if found is None else found
        return InputError(wanted=wanted, found=found, field=where, file=self._source, hint=hint)

    def mapping(self, given: Any, where: str, keys: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(given, dict):
            raise self.problem(where, "a mapping", given)
        for key in given:
            if key not in keys:
                raise self.problem(where, "a known key", key, name_hint(str(key), keys))
        return given

    def shard(self, given: Any, where: str) -> Shard:
        old = ("cpuUtilizationMin", "cpuUtilizationMax", "preferWarmupNodes")
        keys = ("name", "type", "policies", "arguments", "minNodes", "maxNodes", *old)
        entry = self.mapping(given, where, keys)
        name = entry.get("name")
        if not isinstance(name, str) or not name:
            raise self.problem(f"{where}.name", "the name of a scheduler", name)
        policies = entry.get("policies") or self._older_policies(entry)
        if not isinstance(policies, list):
            raise self.problem(f"{where}.policies", "a list", policies)
        shard = Shard(name, max_nodes=self._limits(entry, where))
        for index, policy in enumerate(policies):
            shard = self._with_policy(shard, policy, f"{where}.policies[{index}]")
        return shard

    def _older_policies(self, entry: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the policies that settings without ``policies`` mean."""
        arguments = entry.get("arguments") or {
            "minCPUUtil": entry.get("cpuUtilizationMin", 0.0),
            "maxCPUUtil": entry.get("cpuUtilizationMax", 0.0),
        }
        warm = [{"name": _WARMUP}] if entry.get("preferWarmupNodes") else []
        return [{"name": _RATE, "arguments": arguments}, *warm]

    def _with_policy(self, shard: Shard, given: Any, where: str) -> Shard:
        policy = self.mapping(given, where, ("name", "weight", "arguments"))
        arguments = policy.get("arguments") or {}
        weight = self._number(policy.get("weight") or 1, f"{where}.weight", int)
        match policy.get("name"):
            case "allocation-rate":
                args = self.mapping(arguments, f"{where}.arguments", ("minCPUUtil", "maxCPUUtil"))
                return replace(shard, rates=(*shard.rates, self._rate(args, weight, where)))
            case "warmup":
                keys = ("warmupLabel", "warmupLabelValue")
                args = self.mapping(arguments, f"{where}.arguments", keys)
                usual = Warmup()
                label = str(args.get(keys[0]) or usual.label)
                warmup = Warmup(label, str(args.get(keys[1], usual.value)), weight)
                return replace(shard, warmups=(*shard.warmups, warmup))
            case "node-limit":
                args = self.mapping(arguments, f"{where}.arguments", ("minNodes", "maxNodes"))
                limits = [each for each in (shard.max_nodes, self._limits(args, where)) if each]
                return replace(shard, max_nodes=min(limits, default=0))
            case name:
                hint = name_hint(str(name), _POLICIES)
                raise self.problem(f"{where}.name", "a known policy", name, hint)

    def _rate(self, args: dict[str, Any], weight: int, where: str) -> Rate:
        least = self._number(args.get("minCPUUtil", 0.0), f"{where}.arguments.minCPUUtil", float)
        most = self._number(args.get("maxCPUUtil", 0.0), f"{where}.arguments.maxCPUUtil", float)
        if not 0 <= least <= most <= 1:
            wanted = "minCPUUtil and maxCPUUtil between 0 and 1, the smaller one first"
            raise self.problem(f"{where}.arguments", wanted, f"{least:g} and {most:g}")
        return Rate(_rounded(least), _rounded(most), weight)

    def _limits(self, given: Mapping[str, Any], where: str) -> int:
        least = self._number(given.get("minNodes") or 0, f"{where}.minNodes", int)
        most = self._number(given.get("maxNodes") or 0, f"{where}.maxNodes", int)
        if least < 0 or (0 < most < least):
            wanted = "minNodes of at least 0 and at most maxNodes"
            raise self.problem(where, wanted, f"{least} and {most}")
        return int(max(most, 0))

    def _number(self, given: Any, where: str, kind: type) -> Any:
        usable = (int, float) if kind is float else (int,)
        if isinstance(given, bool) or not isinstance(given, usable) or given != given:  # noqa: PLR0124  # NaN
            raise self.problem(where, "a number", given)
        return kind(given)
