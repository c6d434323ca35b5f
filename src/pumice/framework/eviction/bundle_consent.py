"""Bundles of victims that plugins allow, a few at a time where that makes no difference."""

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from pumice.core.resources import Mask
from pumice.framework.combining import Ask
from pumice.framework.eviction.bundles import Bundle
from pumice.framework.eviction.gang_eviction import GangEviction
from pumice.framework.plugin import Plugin
from pumice.framework.session_state import SessionState

_AT_ONCE = 64
"""Minimum number of tasks to ask about together."""


def let_go(
    state: SessionState, eviction: GangEviction, bundles: Iterator[Bundle]
) -> Iterator[Bundle]:
    """Yield what plugins leave of bundles, in order.

    Plugins are asked about all candidates, and the first tier that names one of them decides.  If
    its plugins judge tasks one by one and agree on a single one, the tier decides whatever the
    others are: then bundles are asked about as they are needed.
    """
    hook = Plugin.gang_evictable
    first = next(iter(state.hooks.tiers(hook)), [])
    asks = [ask for plugin, ask in first if hook.__name__ in plugin.judges_alone]
    agreed = False
    for some in _few_at_a_time(bundles) if len(asks) == len(first) else ():
        rows = [row for bundle in some for row in bundle.tasks]
        allowed = _agreed(asks, eviction, rows)
        agreed = agreed or (allowed is not None and bool(allowed.any()))
        if not agreed or allowed is None:
            bundles = chain(some, bundles)
            break
        yield from keep_allowed(some, np.array(rows)[allowed].tolist())
    everything = list(bundles)
    if not everything:
        return
    rows = [row for bundle in everything for row in bundle.tasks]
    yield from keep_allowed(everything, state.policy.gang_evictable(eviction, rows))


def _few_at_a_time(bundles: Iterator[Bundle]) -> Iterator[list[Bundle]]:
    some, n = list[Bundle](), 0
    for bundle in bundles:
        some.append(bundle)
        n += len(bundle.tasks)
        if n >= _AT_ONCE:
            yield some
            some, n = [], 0
    if some:
        yield some


def _agreed(asks: list[Ask], eviction: GangEviction, rows: list[int]) -> Mask | None:
    """Mark the tasks that all plugins offer; None if they have no opinion."""
    kept: Mask | None = None
    for ask in asks:
        answer = ask(eviction, rows)
        if answer is not None:
            kept = answer if kept is None else kept & answer
    return kept


def keep_allowed(bundles: list[Bundle], allowed: Iterable[int]) -> list[Bundle]:
    """Remove what plugins did not allow: whole bundles altogether, safe ones task by task."""
    keep = set(allowed)
    out = []
    for bundle in bundles:
        left = [row for row in bundle.tasks if row in keep]
        if left and (not bundle.is_whole or len(left) == len(bundle.tasks)):
            out.append(Bundle(bundle.job, left, bundle.is_whole))
    return out
