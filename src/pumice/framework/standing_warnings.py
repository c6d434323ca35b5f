"""Warnings of plugins about a cluster: each is logged once while it lasts."""

import logging
from collections.abc import Collection


class StandingWarnings:
    """What plugins have warned of.

    Answers try many variants of one cluster: for them it forgets nothing, so that what stands in
    most of the variants is not logged for each of them.
    """

    def __init__(self, *, forgets: bool = True) -> None:
        self._forgets = forgets
        self._logged: dict[str, set[str]] = {}

    def report(self, plugin: str, texts: Collection[str]) -> None:
        """Log what a plugin finds wrong in a cycle, except what was logged before."""
        logged = self._logged.setdefault(plugin, set())
        for text in texts:
            if text not in logged:
                logging.getLogger(f"pumice.plugins.{plugin}").warning("%s: %s", plugin, text)
        if self._forgets:
            logged.intersection_update(texts)
        logged.update(texts)
