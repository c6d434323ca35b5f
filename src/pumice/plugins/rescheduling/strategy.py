"""The base class of rescheduling strategies; the plugin makes and calls them."""

from dataclasses import dataclass
from typing import Any, ClassVar

from pumice.framework.plugin_session import PluginSession


@dataclass(kw_only=True)
class Strategy:
    """A strategy that finds tasks which should run elsewhere.

    The class line names it: ``class Spread(Strategy, name="spread")``.  Fields declared with
    ``arg`` are read from the strategy's ``params``.
    """

    name: ClassVar[str] = ""

    def __init_subclass__(cls, name: str = "", **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if name:
            cls.name = name

    def victims(self, ssn: PluginSession, running: list[int]) -> list[int]:
        """Choose among running tasks (rows) those to evict."""
        raise NotImplementedError
