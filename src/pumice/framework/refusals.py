"""Refusals of a plugin: a vote, a reason against nodes, a refusal with the numbers compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import numpy as np

from pumice.api.codes import Cause
from pumice.api.decisions import Short
from pumice.core.resources import PODS, Column, holds_any

PERMIT, ABSTAIN, REJECT = 1, 0, -1
"""Votes."""


@dataclass(frozen=True)
class Reason:
    """Why a node does not fit, and whether evicting pods could change that."""

    text: str
    curable: bool = True
    code: Cause = Cause.PLUGIN_REFUSED
    """Its cause, where a job waits for it."""
    lasting: bool = True
    """Whether actions leave a node out, unasked, for a task that allocate saw refused by it; of
    reasons that are not curable. An error counts for the action that met it alone."""
    vetoes: bool = False
    """Whether the task cannot be placed at all while it holds, also by actions that evict without
    asking filters afterwards: what the task needs could not be assigned to it."""


class Why(Enum):
    """The closed list of reasons, in the order of the stages."""

    NOT_VALID = "not valid"
    PLUGIN_FAILED = "a plugin failed"
    NOT_ENQUEUED = "not enqueued"
    NOT_TAKEN = "no action places its pods"
    QUEUE_OVERUSED = "queue has its share"
    QUEUE_CLOSED = "queue is not open"
    QUEUE_MISPLACED = "queue has no valid place in the tree"
    QUEUE_POSITION = "jobs before it take the room"
    WOULD_DELAY = "would delay a job that is promised a start"
    OVER_QUOTA = "over quota"
    NO_NODE_FITS = "no node fits"
    NO_DOMAIN_FITS = "no network domain fits"
    GANG_SHORT = "not ready with what was placed"
    WAITING_FOR_EVICTION = "waiting for evicted pods to leave"
    SCHEDULED = "scheduled"


_NEEDED: Final[Mapping[Why, frozenset[str]]] = {
    Why.NOT_VALID: frozenset({"problem"}),
    Why.PLUGIN_FAILED: frozenset({"problem"}),
    Why.QUEUE_MISPLACED: frozenset({"problem"}),
    Why.WOULD_DELAY: frozenset({"delayed", "start", "by_s"}),
    Why.NO_NODE_FITS: frozenset({"task", "nodes", "need", "idle"}),
    Why.NO_DOMAIN_FITS: frozenset({"limit", "large", "total"}),
    Why.GANG_SHORT: frozenset({"placed", "needed"}),
    Why.WAITING_FOR_EVICTION: frozenset({"victims"}),
}
"""The numbers that the message of a reason needs."""
_COMPARED: Final = frozenset({"at", "used", "request", "limit"})


@dataclass(frozen=True)
class Refusal:
    """A no with its reason: false where a hook answers yes or no, a reject where it votes.

    ``numbers`` are those that were compared; ``queue`` among them is a row.
    """

    why: Why
    numbers: Mapping[str, Any] = field(default_factory=dict)
    code: Cause = Cause.PLUGIN_REFUSED
    """Its cause, where a job waits for it."""

    def __post_init__(self) -> None:
        """Refuse a refusal that could not be explained.

        Raises:
            ValueError: A number is missing.
        """
        needed = _COMPARED if "resource" in self.numbers else _NEEDED.get(self.why, frozenset())
        missing = needed - self.numbers.keys()
        if missing:
            raise ValueError(f"a refusal for '{self.why.value}' needs {', '.join(sorted(missing))}")

    def __bool__(self) -> bool:
        return False


Verdict = bool | Refusal
"""Yes, or no with or without a reason."""
Vote = int | Refusal
"""PERMIT, ABSTAIN or REJECT; a refusal is a reject with a reason."""


@dataclass(frozen=True)
class Failed:
    """A plugin that failed in a hook; ``reasons`` are those that the plugin states."""

    plugin: str
    hook: str
    reasons: Sequence[Reason] = ()

    @property
    def text(self) -> str:
        """The message to the objects for which it failed."""
        return f"plugin {self.plugin} failed in {self.hook}"

    @property
    def reason(self) -> Reason:
        """The same as a reason against nodes, which no eviction cures."""
        return Reason(self.text, curable=False, code=Cause.PLUGIN_FAILED)

    @property
    def refusal(self) -> Refusal:
        """The same as a no with its reason."""
        return Refusal(Why.PLUGIN_FAILED, {"problem": self.text}, Cause.PLUGIN_FAILED)


def queue_closed(queue: int) -> Refusal:
    """Refuse any request to a queue (row): it is not open."""
    return Refusal(Why.QUEUE_CLOSED, {"queue": queue}, Cause.QUEUE_CLOSED)


def over_quota(
    short: Sequence[Short], *, queue: int, at: str, code: Cause = Cause.PLUGIN_REFUSED
) -> Refusal:
    """Refuse a request for the resources that are short; ``at`` names the owner of the limit.

    That is a queue, a resource quota or the cluster.  The first resource is among the numbers
    itself, others under ``more``.
    """
    first, *more = (each.numbers() for each in short)
    numbers = {"queue": queue, "at": at, **first}
    return Refusal(Why.OVER_QUOTA, {**numbers, "more": more} if more else numbers, code)


def within_quota(
    names: Sequence[str],
    used: Column,
    request: Column,
    limit: Column,
    *,
    queue: int,
    at: str,
    code: Cause = Cause.PLUGIN_REFUSED,
) -> Verdict:
    """Allow a request (R,) that fits beside the used amounts, in all it names except ``pods``.

    Compared strictly as floats; the refusal lists every resource that is exceeded.
    """
    over = (used + request > limit) & (request > 0)
    over[PODS] = False
    if not holds_any(over):
        return True
    short = [
        Short(names[row], float(used[row]), float(request[row]), float(limit[row]))
        for row in np.flatnonzero(over).tolist()
    ]
    return over_quota(short, queue=queue, at=at, code=code)
