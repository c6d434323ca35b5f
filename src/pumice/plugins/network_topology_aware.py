"""network-topology-aware: keep the tasks of a job close together in the network."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import STEP, Column, Mask, Resources, fits, need_of, weighted_sum
from pumice.core.snapshot import Snapshot
from pumice.core.status import PENDING
from pumice.core.tables import NOWHERE
from pumice.core.views import Job, Nodes, Task
from pumice.framework.arguments import arg, arg_pattern
from pumice.framework.placement.kernel import NodeTerm
from pumice.framework.plugin import Plugin
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession
from pumice.framework.topology.domains import Domain, DomainTree, DomainUse, SubGroup

_index_of: Final = attrgetter("index")


class DomainBooks:
    """Amounts of all domains: free ones as they were when the session opened, used ones live.

    Volcano: the two are not the same moment; a domain that filled up since is still tried.
    """

    def __init__(self, snapshot: Snapshot, tree: DomainTree, weights: Mapping[str, int]) -> None:
        nodes = snapshot.nodes
        self._offered = tree.sums(nodes.allocatable)
        self._idle = tree.sums(nodes.idle)
        self._future_idle = tree.sums(nodes.future_idle)
        self._large_enough: dict[tuple[bytes, str], Mask] = {}
        self._use = DomainUse(snapshot, tree)
        self._named = snapshot.resources.mask(weights)[:, None]
        self._weights = _lay_out(snapshot.resources, weights)

    def could_hold(self, need: Column, purpose: str) -> Mask:
        """Mark the domains that are large enough for a need (R,); fixed for the session."""
        key = (need.tobytes(), purpose)
        found = self._large_enough.get(key)
        if found is None:
            wanted = need_of(need[:, None])
            if purpose != "allocate":  # pods of the session's beginning may be gone then
                found = fits(wanted, self._offered)
            else:
                found = fits(wanted, self._idle) | fits(wanted, self._future_idle)
            self._large_enough[key] = found
        return found

    def fullness(self, request: Column, some: NDArray[np.intp] | None = None) -> Column:
        """Return the weighted use of some domains, or of all, with a request (R, 1).

        On overflow it is 0 (D,).
        """
        wanted = self._named & (request >= STEP)
        weights = np.where(wanted, self._weights, 0.0)
        total = weights.sum()
        offered, used = self._offered, self._use.now()
        if some is not None:
            offered, used = offered.take(some, axis=1), used.take(some, axis=1)
        if total <= 0:
            return np.zeros(offered.shape[1])
        after = used + request
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


@dataclass(kw_only=True)
class NetworkTopologyAware(Plugin, name="network-topology-aware"):
    """Try narrow domains first, prefer the fullest one that fits, stay near what is placed.

    Pods without a topology are packed into domains that are already in use.
    """

    simulator = SimulatorAssumptions()
    weight: int = arg("weight", default=1, minimum=0, fallback=1, doc="weight of all scores")
    cpu: int = arg("hypernode.binpack.cpu", default=1, minimum=0, fallback=1, doc="weight of CPU")
    memory: int = arg(
        "hypernode.binpack.memory", default=1, minimum=0, fallback=1, doc="weight of memory"
    )
    resources: list[str] = arg(
        "hypernode.binpack.resources", default_factory=list, doc="further resources that count"
    )
    resource_weights: dict[str, int] = arg_pattern(
        "hypernode.binpack.resources.*",
        minimum=0,
        fallback=1,
        doc="weight of one of them; default 1",
    )
    packs_normal_pods: bool = arg(
        "hypernode.binpack.normal-pod.enable",
        default=True,
        doc="whether pods without a topology are packed by domain",
    )
    fading: float = arg(
        "hypernode.binpack.normal-pod.fading",
        default=0.8,
        minimum=0,
        doc="weight of a domain one tier up for such pods",
    )
    max_evict_domains: int = arg(
        "hypernode.gradient.evict.max-hypernodes",
        default=8,
        minimum=1,
        doc="domains to look for victims in",
    )

    def on_open(self, ssn: PluginSession) -> None:
        """Add up the capacity, use and free amounts of domains before anything moves."""
        self._topology = ssn.topology
        self._tree = ssn.topology.tree
        self._snapshot, self._tasks = ssn.snapshot, ssn.snapshot.tasks
        self._row_of = ssn.snapshot.nodes.row_of
        weights = {name: self.resource_weights.get(name, 1) for name in self.resources}
        weights |= {"cpu": self.cpu, "memory": self.memory}
        self._books = DomainBooks(ssn.snapshot, self._tree, weights)
        self._tiers = self._weigh_tiers()
        self._near_scores: dict[int, Column] = {}
        self._moved = ssn.journal.moved
        self._asked: tuple[Any, Column] = (None, np.zeros(0))

    def _weigh_tiers(self) -> list[tuple[float, NDArray[np.intp]]]:
        """Return the part of each tier in the score of a normal pod, with the nodes' domains."""
        tree = self._tree
        parts: list[tuple[float, NDArray[np.intp]]] = []
        after = tree.min_tier
        for tier in np.unique(tree.tiers).tolist():
            if tier > after:  # tiers without domains, however many
                weight = _weight_of_tiers(self.fading, after, tier - 1)
                parts.append((weight, np.full(len(tree.top.mask), -1, dtype=np.intp)))
            parts.append((_weight_of_tiers(self.fading, tier, tier), tree.at_tier(tier)))
            after = tier + 1
        total = sum(weight for weight, _ in parts)
        if len(tree.domains) == 1 or not np.isfinite(total) or total <= 0:
            return []  # one domain for all: no node is better than another
        return parts

    # Which domains

    def domain_levels(
        self, part: SubGroup | Job, within: Domain, purpose: str
    ) -> list[list[Domain]]:
        """List domains within the limit that could hold the request, tier by tier.

        To place, the narrowest tier comes first; to evict, the widest.
        """
        limit = part.limit if isinstance(part, SubGroup) else self._topology.limit(part.row)
        if limit is None:
            return [[within]]
        present = self._topology.allocated(part)
        root = within if present is None else _search_root(present, within, limit)
        if root is None:
            return []
        need = self._waiting(part) if isinstance(part, SubGroup) else part.min_resources
        below = slice(root.index, root.end)
        eligible = self._tree.tiers[below] <= limit
        if present is None and need is not None:
            eligible = eligible & self._books.could_hold(need, purpose)[below]
        levels = self._by_tier(root, eligible)
        return self._widest_first(levels) if purpose == "evict" else levels

    def levels_within(self, part: SubGroup, some: list[Domain]) -> list[list[list[Domain]]] | None:
        """Answer for many domains at once while nothing of a sub-group is placed."""
        if part.limit is None or self._topology.allocated(part) is not None:
            return None
        fit = self._books.could_hold(self._waiting(part), "allocate")
        eligible = (self._tree.tiers <= part.limit) & fit
        alone, before = self._tree.alone, [0, *np.cumsum(eligible).tolist()]
        found: list[list[list[Domain]]] = []
        for each in some:
            n = before[each.end] - before[each.index]
            if n == 1 and eligible[each.index]:
                found.append(alone[each.index])
            else:
                below = slice(each.index, each.end)
                found.append(self._by_tier(each, eligible[below]) if n else [])
        return found

    def _waiting(self, part: SubGroup) -> Column:
        """Return the pending requests of a sub-group; the same until something moves."""
        now = (part.id, len(self._moved))
        if self._asked[0] != now:
            waiting = part.rows[self._tasks.status[part.rows] == PENDING]
            self._asked = (now, self._snapshot.sum_requests(waiting))
        return self._asked[1]

    def _by_tier(self, root: Domain, eligible: Mask) -> list[list[Domain]]:
        """List the eligible domains from a root downwards by tier, the narrowest first."""
        domains, ordered = self._tree.domains, self._tree.by_tier
        below = ordered[(ordered >= root.index) & (ordered < root.end)]
        chosen = below[eligible[below - root.index]]
        if not len(chosen):
            return []
        found = [domains[at] for at in chosen.tolist()]
        ends = np.flatnonzero(np.diff(self._tree.tiers[chosen])) + 1
        bounds = [0, *ends.tolist(), len(found)]
        return [found[start:end] for start, end in pairwise(bounds)]

    def _widest_first(self, levels: list[list[Domain]]) -> list[list[Domain]]:
        out, left = [], self.max_evict_domains
        for level in reversed(levels):
            if left > 0:
                out.append(level[-left:])
                left -= len(out[-1])
        return out

    # Scores of domains

    def score_domains(self, subgroup: SubGroup, domains: list[Domain]) -> Column:
        """Prefer the domain that the whole sub-group would leave fullest."""
        index = np.fromiter(map(_index_of, domains), np.intp, len(domains))
        request = self._snapshot.sum_requests(subgroup.rows)[:, None]
        return self._books.fullness(request, index) * 100.0 * self.weight

    def rank_domains(self, subgroup: SubGroup, domains: list[Domain]) -> Column:
        """Prefer the domain with more of the sub-group."""
        placed = self._placed(subgroup)
        if not len(placed):
            return np.zeros(len(domains))
        inside = np.array([domain.mask[placed].sum() for domain in domains], dtype=float)
        return inside / max(1, subgroup.n_tasks) * 100.0 * self.weight

    def _placed(self, part: SubGroup) -> NDArray[np.intp]:
        """List the nodes of a sub-group's tasks, of finished ones too."""
        tasks, nodes = self._tasks, self._tasks.node[part.rows].astype(np.intp)
        for at in np.flatnonzero(
            (nodes == NOWHERE) & (tasks.status[part.rows] != PENDING)
        ).tolist():
            name = tasks.pods[part.rows[at]].spec.node_name
            nodes[at] = self._row_of.get(name, NOWHERE)
        return nodes[nodes != NOWHERE]

    # Scores of nodes

    def vary_by(self, task: Task) -> Hashable:
        """Distinguish tasks whose nodes are compared from others."""
        return self._compares_for(task) or None

    def node_terms(self, task: Task) -> list[NodeTerm] | None:
        """State for most tasks that nodes are not compared."""
        return None if self._compares_for(task) else []

    def _compares_for(self, task: Task) -> bool:
        """Return whether tasks near this one are placed, or domains are filled one by one."""
        if self.weight == 0:
            return False
        topology = self._topology
        part = topology.subgroup_of(task.row) if topology.has_topology(task.job) else None
        if part is None or part.topology is None:
            return self.packs_normal_pods and bool(self._tiers)
        return topology.near(part) is not None

    def rank_nodes(self, task: Task, nodes: Nodes) -> Column | None:
        """Prefer nodes near the tasks placed so far, or in domains that are in use."""
        if self.weight == 0:
            return None
        topology = self._topology
        part = topology.subgroup_of(task.row) if topology.has_topology(task.job) else None
        if part is None or part.topology is None:
            return self._rank_for_normal(task, nodes.index)
        near = topology.near(part)
        return None if near is None else self._rank_by_nearness(part, near, nodes.index)

    def _rank_for_normal(self, task: Task, rows: NDArray[np.intp]) -> Column | None:
        if not self.packs_normal_pods or not self._tiers:
            return None
        # the last entry is for nodes outside of all domains of a tier: they are preferred
        fullness = np.append(self._books.fullness(task.request), 1.0)
        score = np.zeros(len(rows))
        total = 0.0
        for weight, domain_at in self._tiers:
            score += weight * fullness[domain_at[rows]]
            total += weight
        return score / total * 100.0 * self.weight

    def _rank_by_nearness(self, part: SubGroup, near: Domain, rows: NDArray[np.intp]) -> Column:
        """Score by the domain over a node and the place so far, equal ones by the tasks there."""
        homes = self._tree.homes
        score = self._nearness(near)[homes[rows]]
        best = score == score.max()
        if best.sum() > 1:
            there = homes[self._placed(part)]
            counts = np.bincount(there[there >= 0], minlength=len(self._tree.domains))
            share = np.append(counts, 0) / part.n_tasks
            score = np.where(best, score + share[homes[rows]], score)
        return score * 100.0 * self.weight

    def _nearness(self, near: Domain) -> Column:
        """Score homes by the tier that joins them with a domain; nodes without a home get 0."""
        known = self._near_scores.get(near.index)
        if known is None:
            tree = self._tree
            span = tree.max_tier - tree.min_tier
            known = np.zeros(len(tree.domains) + 1)
            for domain in reversed([*near.lineage()]):  # those below it are joined by it
                known[domain.index : domain.end] = (
                    (tree.max_tier - domain.tier) / span if span else 1.0
                )
            if near.tier == tree.min_tier:
                known[near.index] = 1.0
            self._near_scores[near.index] = known
        return known


def _weight_of_tiers(fading: float, first: int, last: int) -> float:
    """Add up the weights of tiers: each is ``fading`` times that of the tier below it."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        lowest, beyond = np.power(float(fading), np.array([first - 1, last], dtype=float))
    if first == last:
        return float(lowest)
    return float(last - first + 1 if fading == 1 else (lowest - beyond) / (1.0 - fading))


def _search_root(present: Domain, within: Domain, limit: int) -> Domain | None:
    """Return the widest domain around the present one that both the limit and the caller allow."""
    highest: Domain | None = None
    for domain in present.lineage():
        if domain.tier > limit:
            break
        highest = domain
    if highest is None:
        return None
    if highest.holds(within):
        return within
    return highest if within.holds(highest) else None
