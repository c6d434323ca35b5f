"""Prefer nodes that were labelled recently, for as long as they count as fresh."""

from dataclasses import dataclass

import numpy as np

from pumice.plugin import (
    Column,
    Duration,
    InputError,
    NodeFacts,
    Plugin,
    PluginSession,
    Shape,
    SimulatorAssumptions,
    arg,
    epoch,
)


@dataclass(kw_only=True)
class PreferFreshNodes(Plugin, name="prefer-fresh-nodes"):
    """Prefer nodes that were labelled recently: the fresher, the better.

    An annotation of the node has the time; without one, its creation time counts.
    """

    simulator = SimulatorAssumptions()

    annotation: str = arg(
        "prefer-fresh-nodes.annotation",
        default="example.com/labelled-at",
        doc="annotation with the time at which the node was labelled",
    )
    window: Duration = arg(
        "prefer-fresh-nodes.window",
        default=Duration(3600.0),
        above=0.0,
        doc="how long a node counts as fresh",
    )

    def on_open(self, ssn: PluginSession) -> None:
        """Remember the time of the cycle."""
        self._now = ssn.now

    def score_shape(self, shape: Shape, facts: NodeFacts) -> Column:
        """Score from 100 for a node labelled now down to 0 for one that is not fresh any more."""
        stated = np.array([_time(text) for text in facts.annotation(self.annotation)], dtype=float)
        since = np.where(np.isnan(stated), facts.created, stated)
        return 100.0 * np.clip(1.0 - (self._now - since) / self.window, 0.0, 1.0)


def _time(text: str) -> float:
    """Read a time; not a number where there is none."""
    try:
        return epoch(text)
    except InputError:
        return float("nan")
