"""The rescheduling plugin: asks its strategies for victims, no more often than its interval."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from pumice.api.wording import nearest
from pumice.framework.arguments import Duration, Fault, arg, bind_arguments
from pumice.framework.plugin import Plugin
from pumice.framework.plugin_session import PluginSession
from pumice.framework.simulator_assumptions import SimulatorAssumptions
from pumice.plugins.rescheduling.low_node_utilization import LowNodeUtilization
from pumice.plugins.rescheduling.strategy import Strategy


@dataclass(kw_only=True)
class Rescheduling(Plugin, name="rescheduling"):
    """Name victims for shuffle, by every strategy of the configuration.

    To add a strategy, derive a plugin with a longer ``registry`` and pass it to the scheduler
    under the same name, directly or by entry point.
    """

    simulator = SimulatorAssumptions(timed=True, all_jobs=True)
    registry: ClassVar[Mapping[str, type[Strategy]]] = MappingProxyType(
        {LowNodeUtilization.name: LowNodeUtilization}
    )
    """Strategies by the name the configuration uses."""

    interval: Duration = arg(
        "interval",
        default=Duration(300.0),
        doc="shortest time between two runs, and from the start of the process to the first",
    )
    metrics_period: Duration = arg(
        "metricsPeriod",
        default=Duration(300.0),
        doc="accepted and without effect: `period` of the section `metrics` is used",
    )
    strategies: list[Any] = arg(
        "strategies",
        default_factory=list,
        doc="name and params of each; lowNodeUtilization if none is given",
    )

    def on_open(self, ssn: PluginSession) -> None:
        """Make the strategies if it is time to run."""
        self._ssn = ssn
        self._due: list[Strategy] = []
        self._idle = False
        last = ssn.memory.get(self.name, ssn.started_at)
        if last is None or last + self.interval < ssn.now:
            ssn.memory[self.name] = ssn.now
            faults = [f"wanted {fault.wanted}, found {fault.found}" for fault in self.faults()]
            ssn.warn(self.name, faults)
            self._due = self._make()

    def victims(self, running: list[int]) -> list[int]:
        """Join the choices of the strategies."""
        chosen: dict[int, None] = {}
        for strategy in self._due:
            chosen.update(dict.fromkeys(strategy.victims(self._ssn, running)))
        self._idle = bool(self._due) and not chosen
        return list(chosen)

    def changes_at(self, ssn: PluginSession) -> float | None:
        """Return when it runs next; a run that found nothing finds nothing later either."""
        last = ssn.memory.get(self.name, ssn.started_at)
        if last is None or self._idle:
            return None
        return float(last) + math.floor(self.interval) + 1.0

    def passed_over(self, memory: dict[str, Any], now: float) -> None:
        """Advance the time of the last run: runs happen whether or not there is a pod to move."""
        turn = math.floor(self.interval) + 1.0
        if self.name in memory:
            memory[self.name] += max(0, (now - 1.0 - memory[self.name]) // turn) * turn

    def faults(self) -> Iterator[Fault]:
        """Report strategies that do not exist and params they cannot use."""
        for entry in self.strategies:
            name, cls, params = self._read(entry)
            if cls is None:
                near = nearest(name, self.registry)
                hint = f"did you mean '{near}'?" if near else f"known: {', '.join(self.registry)}"
                yield Fault("strategies", "the name of a strategy", name or entry, hint)
            elif params is None:
                yield Fault("strategies", f"a mapping as params of {name}", entry["params"])
            else:
                for problem in bind_arguments(cls, params, path=name)[1]:
                    hint = f"{problem.field}; {problem.hint}".removesuffix("; ")
                    yield Fault("strategies", problem.wanted, problem.found, hint)

    def _read(self, entry: Any) -> tuple[str, type[Strategy] | None, Mapping[str, Any] | None]:
        """Return the name, the class and the params of an entry; None for a malformed one."""
        given: Mapping[str, Any] = entry if isinstance(entry, Mapping) else {}
        name = given.get("name")
        name = name if isinstance(name, str) else ""
        params = given.get("params") or {}
        return name, self.registry.get(name), params if isinstance(params, Mapping) else None

    def _make(self) -> list[Strategy]:
        """Make each configured strategy; of two entries with one name the last counts."""
        made: dict[str, Strategy] = {}
        for entry in self.strategies or [{"name": LowNodeUtilization.name}]:
            name, cls, params = self._read(entry)
            if cls is not None and params is not None:
                made[name] = cls(**bind_arguments(cls, params)[0])
        return list(made.values())
