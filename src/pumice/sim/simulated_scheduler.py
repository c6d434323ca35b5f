"""The scheduler of a simulation: it decides as usual and has no effect outside."""

from collections.abc import Mapping

from pumice.api.conf import SchedulerConf
from pumice.framework.plugin import Plugin
from pumice.plugins.extender import UnaskedExtender
from pumice.scheduler import Scheduler


def simulated_scheduler(
    conf: SchedulerConf, *, seed: int = 0, plugins: Mapping[str, type[Plugin]] | None = None
) -> Scheduler:
    """Make a scheduler that asks no outside service; an extender abstains."""
    known: dict[str, type[Plugin]] = {"extender": UnaskedExtender, **(plugins or {})}
    return Scheduler(conf, seed=seed, plugins=known)
