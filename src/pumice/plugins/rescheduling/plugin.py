"""The rescheduling plugin: asks its strategies for victims, no oftener than its interval."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from pumice.framework.arguments import Duration, arg, bind_arguments
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.plugins.rescheduling.low_node_utilization import LowNodeUtilization
from pumice.plugins.rescheduling.strategy import Strategy

log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Rescheduling(Plugin, name="rescheduling"):
    """Name victims for shuffle, by every strategy of the configuration.

    To add a strategy, derive a plugin with a longer ``registry`` and hand it to the scheduler
    under the same name, directly or by entry point.
    """

    registry: ClassVar[Mapping[str, type[Strategy]]] = MappingProxyType(
        {LowNodeUtilization.name: LowNodeUtilization}
    )
    """Strategies by the name the configuration uses."""

    interval: Duration = arg(
        "interval", default=Duration(300.0), doc="shortest time between two runs"
    )
    metrics_period: Duration = arg(
        "metricsPeriod",
        default=Duration(300.0),
        doc="accepted and without effect: `period` of the section `metrics` counts",
    )
    strategies: list[Any] = arg(
        "strategies",
        default_factory=list,
        doc="name and params of each; lowNodeUtilization if none is given",
    )

    def on_open(self, ssn: Session) -> None:
        """Make the strategies if it is time to run."""
        self._ssn = ssn
        self._due: list[Strategy] = []
        last = ssn.memory.get(self.name)
        if last is None or last + self.interval < ssn.now:
            ssn.memory[self.name] = ssn.now
            self._due = self._make()

    def victims(self, running: list[int]) -> list[int]:
        """Join what the strategies choose."""
        chosen: dict[int, None] = {}
        for strategy in self._due:
            chosen.update(dict.fromkeys(strategy.victims(self._ssn, running)))
        return list(chosen)

    def _make(self) -> list[Strategy]:
        """Make each configured strategy; of two entries of one name the last counts."""
        entries = self.strategies or [{"name": LowNodeUtilization.name}]
        made: dict[str, Strategy] = {}
        for entry in entries:
            name = entry.get("name") if isinstance(entry, Mapping) else None
            cls = self.registry.get(name) if isinstance(name, str) else None
            params = (entry.get("params") or {}) if cls else None
            if cls is None or not isinstance(params, Mapping):
                log.warning("rescheduling: strategy %s is not known, left out", entry)
                continue
            fields, problems = bind_arguments(cls, params, path=cls.name)
            for problem in problems:
                log.warning("rescheduling: %s", problem)
            made[cls.name] = cls(**fields)
        return list(made.values())
