"""What network domains offer, have free and would have in use, as columns over domains."""

from collections.abc import Mapping

import numpy as np

from pumice.core.resources import STEP, Column, Mask, Resources, fits, weighted_sum
from pumice.core.snapshot import Snapshot
from pumice.framework.topology.domains import Domain, DomainTree, DomainUse


class DomainBooks:
    """Amounts of all domains: free ones as they were when the session opened, used ones live.

    Volcano: the two are not the same moment; a domain that filled up since is still tried.
    """

    def __init__(self, snapshot: Snapshot, tree: DomainTree, weights: Mapping[str, int]) -> None:
        nodes = snapshot.nodes
        self._offered = tree.sums(nodes.allocatable)
        self._idle = tree.sums(nodes.idle)
        self._future_idle = tree.sums(nodes.future_idle)
        self._use = DomainUse(snapshot, tree)
        self._named = snapshot.resources.mask(weights)[:, None]
        self._weights = _lay_out(snapshot.resources, weights)

    def could_hold(self, need: Column, root: Domain, purpose: str) -> Mask:
        """Mark the domains from a root downwards that are large enough for a need (R,)."""
        below, wanted = slice(root.index, root.end), need[:, None]
        if purpose == "evict":
            return fits(wanted, self._offered[:, below])
        return fits(wanted, self._idle[:, below]) | fits(wanted, self._future_idle[:, below])

    def fullness(self, request: Column) -> Column:
        """Give the weighted use of all domains with a request (R, 1) added; overflow is 0 (D,)."""
        wanted = self._named & (request >= STEP)
        weights = np.where(wanted, self._weights, 0.0)
        total = weights.sum()
        offered = self._offered
        if total <= 0:
            return np.zeros(offered.shape[1])
        after = self._use.now() + request
        overflow = (wanted & (after > offered)).any(axis=0)
        use = np.where(wanted, after / np.where(offered > 0, offered, 1.0), 0.0)
        return np.where(overflow, 0.0, weighted_sum(weights, use) / total)


def _lay_out(resources: Resources, weights: Mapping[str, int]) -> Column:
    """Lay weights out along the resource axis (R, 1)."""
    column = np.zeros((len(resources), 1))
    for name, weight in weights.items():
        row = resources.row(name)
        if row is not None:
            column[row] = weight
    return column
