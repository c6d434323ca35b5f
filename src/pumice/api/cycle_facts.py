"""What one cycle did to pods, gangs, queues and nodes, as plain data: what invariants are about.

Collected by `examine.cycle_facts`; only what the cycle touched is listed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pumice.api.decisions import Decisions
from pumice.api.kinds import Manifest

Amounts = Mapping[str, float]
"""Resource to amount, in cores, bytes or pieces."""


@dataclass(frozen=True, kw_only=True)
class EvictedPod:
    """A pod that the cycle evicts."""

    pod: str
    job: str = ""
    queue: str = ""
    node: str = ""
    priority: int = 0
    priority_class: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    action: str = ""
    """The action that evicts it."""
    whom: str = ""
    """The pod or job that it is evicted for; empty: for none."""
    whose_queue: str = ""
    whose_priority: int | None = None
    """The priority that counts against its own; None if it is evicted for none."""


@dataclass(frozen=True, kw_only=True)
class TouchedGang:
    """A job of which the cycle binds or evicts pods."""

    job: str
    queue: str
    needed: int
    """How many pods it needs at least."""
    before: int
    after: int
    """How many of its pods have a node or succeeded, before and after the cycle."""
    holding: int
    """How many of its pods have a node after the cycle."""
    is_whole: bool
    """Whether it then has either no pods on nodes or as many as it needs, of each role."""

    @property
    def is_stopped(self) -> bool:
        """Whether it had the pods that it needs, and has them no longer."""
        needs = max(self.needed, 1)
        return self.before >= needs and (not self.is_whole if self.holding else self.after < needs)


@dataclass(frozen=True, kw_only=True)
class LosingQueue:
    """A queue that loses pods: what it holds then, and its due, of the resources that they had."""

    queue: str
    pods: Sequence[str]
    held: Amounts
    deserved: Amounts
    guarantee: Amounts


@dataclass(frozen=True, kw_only=True)
class FilledNode:
    """A node on which the cycle places pods, or promises room."""

    node: str
    allocatable: Amounts
    used: Amounts
    """By pods that stay or are still leaving."""
    later: Amounts
    """Once leaving pods are gone and promised ones are there."""


@dataclass(frozen=True, kw_only=True)
class CycleFacts:
    """One cycle: the objects it began with, its decisions, and what they do."""

    number: int = 1
    now: float = 0.0
    objects: Sequence[Manifest] = ()
    decisions: Decisions = field(default_factory=Decisions)
    evicted: Sequence[EvictedPod] = ()
    gangs: Sequence[TouchedGang] = ()
    queues: Sequence[LosingQueue] = ()
    nodes: Sequence[FilledNode] = ()
    evicted_before: int = 0
    """How many pods earlier cycles evicted."""
    since_change: int = 1
    """The number of this cycle since something was last changed from outside, from 1."""
    seconds_since_change: float = 0.0
    is_quiet: bool = False
    """Whether it binds, evicts and admits nobody."""


Invariant = Callable[[CycleFacts, Any], Iterable[str]]
"""Yields a sentence for each violation; its second argument is the value in `always`."""
