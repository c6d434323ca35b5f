"""resource-strategy-fit: fill or spread nodes, resource by resource, and keep scarce ones free."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pumice.api.annotations import STRATEGY_TYPE, STRATEGY_WEIGHT
from pumice.api.codes import Cause
from pumice.core.resources import CPU, MEMORY, STEP, Column, Mask
from pumice.core.tables import Shape
from pumice.core.views import NodeFacts, Nodes, Task
from pumice.framework.arguments import Fault, WholePart, arg
from pumice.framework.placement.kernel import NodeTerm, strategy_score
from pumice.framework.plugin import Codes, Plugin, Reason
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession

MOST, LEAST = "MostAllocated", "LeastAllocated"
_MAX_SCORE = 100.0
_INT64 = 2**63


@dataclass(kw_only=True)
class Sra:
    """Keep pods away from nodes with scarce resources (sra: specialised resource affinity)."""

    enable: bool = arg("enable", default=False, doc="switches this part on")
    resources: list[str] = arg("resources", default_factory=list, doc="the scarce resources")
    weight: WholePart = arg("weight", default=0, doc="weight of this part of the score; 0 is off")
    weights: dict[str, Any] = arg("resourceWeight", default_factory=dict, doc="weight of each")


@dataclass(kw_only=True)
class Proportional:
    """Keep cpu and memory free beside scarce resources that are free."""

    enable: bool = arg("enable", default=False, doc="switches this part on")
    resources: list[str] = arg("resources", default_factory=list, doc="the scarce resources")
    rates: dict[str, Any] = arg(
        "resourceProportion",
        default_factory=dict,
        doc="<resource>.cpu and <resource>.memory (GB) to keep for each free unit; default 1",
    )


@dataclass(frozen=True, slots=True)
class _Rule:
    """The rule for one requested resource."""

    row: int
    kind: str
    weight: int


@dataclass(kw_only=True)
class ResourceStrategyFit(Plugin, name="resource-strategy-fit"):
    """Score by use after placement: high or low use is better, as configured for each resource."""

    simulator = SimulatorAssumptions()
    weight: WholePart = arg(
        "resourceStrategyFitWeight",
        default=10,
        minimum=0,
        fallback=10,
        doc="weight of the strategies; 0 is off",
    )
    resources: dict[str, Any] = arg(
        "resources",
        default_factory=dict,
        doc="name, or prefix with a star, to type (MostAllocated, LeastAllocated) "
        "and weight; default: CPU and memory LeastAllocated",
    )
    sra: Sra = arg("sra", default_factory=Sra, doc="avoid nodes with scarce resources")
    proportional: Proportional = arg(
        "proportional", default_factory=Proportional, doc="keep CPU and memory for them"
    )

    def faults(self) -> Iterator[Fault]:
        """Report entries of ``resources`` that are ignored, and a part without a weight."""
        if self.sra.enable and self.sra.weight <= 0:
            hint = "sra is enabled and has no effect"
            yield Fault("sra", "a weight above 0", self.sra.weight, hint, severity="odd")
        for name, entry in self.resources.items():
            if not _is_pattern(name):
                yield Fault("resources", "a star at the end of a name only", name, "left out")
            given = entry if isinstance(entry, dict) else {}
            kind, weight = given.get("type", LEAST), given.get("weight", 1)
            if not isinstance(entry, dict):
                yield Fault("resources", f"a mapping with type and weight for {name}", entry)
            if kind not in (MOST, LEAST):
                hint = f"{LEAST} is used for {name}"
                yield Fault("resources", f"{MOST} or {LEAST}", kind, hint)
            if _whole(weight, 0) <= 0:
                yield Fault("resources", "a weight above 0", weight, f"1 is used for {name}")

    def on_open(self, ssn: PluginSession) -> None:
        """Resolve names to rows."""
        self._names = ssn.snapshot.resources.names
        self._row = ssn.snapshot.resources.row
        self._strategies = _read_strategies(self.resources)
        self._rules: dict[int, list[_Rule]] = {}
        self._kept: list[tuple[int, float, float, Mask]] = []
        if self.proportional.enable:
            self._open_proportional(ssn)

    def _open_proportional(self, ssn: PluginSession) -> None:
        rates, names = self.proportional.rates, []
        for name in dict.fromkeys(self.proportional.resources):
            row = self._row(name)
            if row is None or row in (CPU, MEMORY):
                continue
            has = np.array([name in node.status.allocatable for node in ssn.nodes().objects], bool)
            cpu, memory = _rate(rates.get(f"{name}.cpu")), _rate(rates.get(f"{name}.memory"))
            self._kept.append((row, cpu, memory * 1e6, has))
            names.append(name)
        self.reasons = tuple(  # type: ignore[misc]  # distinguished apart by the names in the configuration
            Reason(
                f"proportional of resource {name} check failed",
                curable=False,
                code=Cause.INSUFFICIENT_RESOURCE,
            )
            for name in names
        )

    def filter_nodes(self, task: Task, nodes: Nodes) -> Codes | None:
        """Refuse pods that would leave too little beside the free scarce resources."""
        request = task.request
        if not self._keeps_from(task.shape):
            return None
        idle, index = nodes.idle, nodes.index
        codes = np.zeros(len(nodes), dtype=np.int16)
        for code, (row, cpu, memory, has) in enumerate(self._kept, start=1):
            short = idle[CPU] - request[CPU] < idle[row] * cpu
            short |= idle[MEMORY] - request[MEMORY] < idle[row] * memory
            codes[has[index] & short & (codes == 0)] = code
        return codes

    def _keeps_from(self, shape: Shape) -> bool:
        """Return whether room beside scarce resources is kept from pods of a shape."""
        return bool(self._kept) and not any(shape.request[row, 0] > 0 for row, *_ in self._kept)

    def node_terms(self, task: Task) -> list[NodeTerm] | None:
        """State the score, unless some nodes keep room."""
        if self._keeps_from(task.shape):
            return None
        rules = self._rules_of(task.shape) if self.weight > 0 else []
        if not rules:
            return []
        counted = [
            (rule.row, rule.weight, rule.kind == MOST)
            for rule in rules
            if rule.weight and rule.kind in (MOST, LEAST)
        ]
        total = sum(rule.weight for rule in rules)
        return [strategy_score(_MAX_SCORE * self.weight, total, counted)]

    def score_nodes(self, task: Task, nodes: Nodes) -> Column | None:
        """Average the use of requested resources; one that would overflow makes it all zero."""
        rules = self._rules_of(task.shape) if self.weight > 0 else []
        if not rules:
            return None
        used, allocatable = nodes.used, nodes.allocatable
        total, overflow = np.zeros(len(nodes)), np.zeros(len(nodes), dtype=bool)
        for rule in rules:
            if rule.weight == 0 or rule.kind not in (MOST, LEAST):
                continue
            offered = allocatable[rule.row]
            after = used[rule.row] + task.request[rule.row]
            counted = offered != 0
            overflow |= counted & (after > offered)
            amount = after if rule.kind == MOST else offered - after
            part = amount * rule.weight / np.where(counted, offered, 1.0)
            total = total + np.where(counted, part, 0.0)
        weights = sum(rule.weight for rule in rules)
        if weights > 0:
            total = total / weights
        return np.where(overflow, 0.0, total * (_MAX_SCORE * self.weight))

    def _rules_of(self, shape: Shape) -> list[_Rule]:
        """Return the rules for the resources that a shape requests; kept by shape."""
        rules = self._rules.get(shape.id)
        if rules is None:
            rules = self._rules[shape.id] = self._find_rules(shape)
        return rules

    def _find_rules(self, shape: Shape) -> list[_Rule]:
        asked = np.flatnonzero(shape.request[:, 0] >= STEP).tolist()
        kind = shape.annotations.get(STRATEGY_TYPE, "")
        if kind:
            own = _pod_weights(shape.annotations.get(STRATEGY_WEIGHT, ""))
            found = [(row, kind, own.get(self._names[row])) for row in asked]
            return [_Rule(row, kind, weight) for row, kind, weight in found if weight is not None]
        rules = []
        for row in asked:
            strategy = _match(self._names[row], self._strategies)
            if strategy is not None:
                rules.append(_Rule(row, *strategy))
        return rules

    def score_shape(self, shape: Shape, facts: NodeFacts) -> Column | None:
        """Prefer nodes without the scarce resources, among those that have all requested ones."""
        if not self.sra.enable or self.sra.weight <= 0:
            return None
        allocatable = facts.allocatable
        has_all = (allocatable[shape.request[:, 0] >= STEP] != 0).all(axis=0)
        weights = [(name, _whole(self.sra.weights.get(name), 1)) for name in self.sra.resources]
        weights = [(name, 1 if weight < 0 else weight) for name, weight in weights]
        total = sum(weight for _, weight in weights)
        score = np.zeros(len(facts))
        for name, weight in dict(weights).items():
            row = self._row(name)
            if row is not None:
                score += np.where(allocatable[row] > 0, weight, 0.0)
        if total > 0:
            score = 1.0 - score / total
        return np.where(has_all, score * (_MAX_SCORE * self.sra.weight), 0.0)


def _read_strategies(resources: dict[str, Any]) -> dict[str, tuple[str, int]]:
    """Read type and weight of each entry; a star is allowed only at the end of a longer name."""
    if not resources:
        return {"cpu": (LEAST, 1), "memory": (LEAST, 1)}
    found = {}
    for name, entry in resources.items():
        if not _is_pattern(name):
            continue
        given = entry if isinstance(entry, dict) else {}
        weight = _whole(given.get("weight"), 1)
        kind = MOST if given.get("type") == MOST else LEAST
        found[name] = (kind, weight if weight > 0 else 1)
    return found


def _is_pattern(name: str) -> bool:
    """Return whether a name has no star, or one at its end after other characters."""
    return "*" not in name or name.find("*") == len(name) - 1 > 0


def _match(name: str, strategies: dict[str, tuple[str, int]]) -> tuple[str, int] | None:
    """Find the entry of a resource: its own name before the longest prefix."""
    if name in strategies:
        return strategies[name]
    patterns = [p for p in strategies if p.endswith("*") and name.startswith(p[:-1])]
    return strategies[max(patterns, key=len)] if patterns else None


def _pod_weights(text: str) -> dict[str, int]:
    """Read a pod's own weights; anything but whole numbers makes them all invalid."""
    try:
        weights = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(weights, dict):
        return {}
    whole = {name: 0 if weight is None else weight for name, weight in weights.items()}
    usable = all(type(weight) is int and abs(weight) < _INT64 for weight in whole.values())
    return whole if usable else {}


def _whole(value: Any, default: int) -> int:
    """Read a whole number; a fraction is cut off, anything else is the default."""
    usable = type(value) in {int, float} and abs(value) < _INT64
    return int(value) if usable else default


def _rate(value: Any) -> float:
    """Read a rate; none, a negative or an invalid one is 1."""
    usable = type(value) in {int, float} and 0 <= value < _INT64
    return float(value) if usable else 1.0
