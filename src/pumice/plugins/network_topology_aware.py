"""network-topology-aware: keep the tasks of a job close together in the network."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import CPU, MEMORY, STEP, Column, fits, weighted_sum
from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Job, Nodes, Task
from pumice.framework.arguments import arg, arg_pattern
from pumice.framework.domains import Domain, DomainUse
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.framework.subgroups import SubGroup


@dataclass(kw_only=True)
class NetworkTopologyAware(Plugin, name="network-topology-aware"):
    """Try narrow domains first, prefer the fullest one that fits, stay near what is placed.

    Pods that ask for no topology are packed into domains that are in use already.
    """

    weight: int = arg("weight", default=1, minimum=0, fallback=1, doc="weight of all scores")
    cpu: int = arg("hypernode.binpack.cpu", default=1, minimum=0, fallback=1, doc="weight of cpu")
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
        doc="what a domain one tier up counts for such pods",
    )
    max_evict_domains: int = arg(
        "hypernode.gradient.evict.max-hypernodes",
        default=8,
        minimum=1,
        doc="domains to look for victims in",
    )

    def on_open(self, ssn: Session) -> None:
        """Add up what domains offer, hold and have free before anything moves."""
        self._topology = ssn.topology
        self._tree = tree = ssn.topology.tree
        nodes = ssn.snapshot.nodes
        self._tasks = ssn.snapshot.tasks
        self._row_of = nodes.row_of
        self._offered = tree.sums(nodes.allocatable)
        self._idle = tree.sums(nodes.idle)
        self._future_idle = tree.sums(nodes.future_idle)
        self._use = DomainUse(ssn.snapshot, tree)
        self._shapes = ssn.snapshot.shapes
        known = ssn.snapshot.resources
        self._named = known.mask(["cpu", "memory", *self.resources])[:, None]
        self._weights = np.zeros((len(known), 1))
        for name in self.resources:
            row = known.row(name)
            if row is not None:
                self._weights[row] = self.resource_weights.get(name, 1)
        self._weights[CPU], self._weights[MEMORY] = self.cpu, self.memory
        self._tiers = self._weigh_tiers()

    def _weigh_tiers(self) -> list[tuple[float, NDArray[np.intp]]]:
        """Give each tier its part in the score of a normal pod, with the nodes' domains there."""
        tree = self._tree
        tiers = range(tree.min_tier, tree.max_tier + 1)
        weights = np.power(float(self.fading), np.array(tiers, dtype=float) - 1)
        total = weights.sum()
        if not np.isfinite(total) or total <= 0:
            return []
        return [
            (float(weight / total), tree.at_tier(tier))
            for weight, tier in zip(weights, tiers, strict=True)
        ]

    # Which domains

    def domain_levels(
        self, part: SubGroup | Job, within: Domain, purpose: str
    ) -> list[list[Domain]]:
        """List domains within the limit that could hold what is asked, tier by tier.

        To place, the narrowest tier comes first; to evict, the widest.
        """
        if isinstance(part, SubGroup):
            limit, need = part.limit, self._pending(part)
        else:
            limit, need = self._topology.limit(part.row), part.min_resources
        if limit is None:
            return [[within]]
        present = self._topology.allocated(part)
        root = within if present is None else _search_root(present, within, limit)
        if root is None:
            return []
        tiers = self._tree.tiers[root.index : root.end]
        eligible = tiers <= limit
        if present is None and need is not None:
            eligible &= self._could_hold(need[:, None], root, purpose)
        found = [self._tree.domains[root.index + i] for i in np.flatnonzero(eligible).tolist()]
        levels = [
            sorted((each for each in found if each.tier == tier), key=lambda each: each.name)
            for tier in np.unique(tiers[eligible]).tolist()
        ]
        return levels if purpose == "allocate" else self._widest_first(levels)

    def _could_hold(self, need: Column, root: Domain, purpose: str) -> NDArray[np.bool_]:
        below = slice(root.index, root.end)
        if purpose != "allocate":
            return fits(need, self._offered[:, below])
        return fits(need, self._idle[:, below]) | fits(need, self._future_idle[:, below])

    def _widest_first(self, levels: list[list[Domain]]) -> list[list[Domain]]:
        out, left = [], self.max_evict_domains
        for level in reversed(levels):
            if left > 0:
                out.append(level[-left:])
                left -= len(out[-1])
        return out

    def _pending(self, part: SubGroup) -> Column:
        """Add up what the pending tasks of a sub-group ask for (R,)."""
        waiting = part.rows[self._tasks.status[part.rows] == Status.PENDING]
        return self._requests(waiting)

    def _requests(self, rows: NDArray[np.intp]) -> Column:
        total = np.zeros(len(self._offered))
        shapes, counts = np.unique(self._tasks.shape[rows], return_counts=True)
        for shape, count in zip(shapes.tolist(), counts.tolist(), strict=True):
            total += count * self._shapes[shape].request[:, 0]
        return total

    # How good

    def score_domains(self, subgroup: SubGroup, domains: list[Domain]) -> Column:
        """Prefer the domain that the whole sub-group leaves fullest, then where more of it lies."""
        index = np.array([domain.index for domain in domains], dtype=np.intp)
        scores = self._fullness(self._requests(subgroup.rows)[:, None])[index]
        best = np.flatnonzero(scores == scores.max())
        if len(best) > 1:
            masks = np.stack([domains[i].mask for i in best.tolist()])
            scores[best] += self._share(subgroup, masks)
        return scores * 100.0 * self.weight

    def rank_nodes(self, task: Task, nodes: Nodes) -> Column | None:
        """Prefer nodes near the tasks placed so far, or in domains that are in use."""
        if self.weight == 0:
            return None
        topology = self._topology
        part = topology.subgroup_of(task.row) if topology.has_topology(task.job) else None
        if part is None or part.topology is None:
            return self._rank_for_normal(task, nodes.index)
        near = self._topology.near(task.row)
        return None if near is None else self._rank_by_nearness(part, near, nodes.index)

    def _rank_for_normal(self, task: Task, rows: NDArray[np.intp]) -> Column | None:
        if not self.packs_normal_pods or not self._tiers:
            return None
        fullness = np.append(self._fullness(task.request), 1.0)
        score = np.zeros(len(rows))
        for weight, domain_at in self._tiers:
            score += weight * fullness[domain_at[rows]]
        return score * 100.0 * self.weight

    def _rank_by_nearness(self, part: SubGroup, near: Domain, rows: NDArray[np.intp]) -> Column:
        tree = self._tree
        homes = tree.homes[rows]
        score = np.zeros(len(rows))
        for index in np.unique(homes[homes >= 0]).tolist():
            score[homes == index] = self._nearness(tree.domains[index], near)
        best = np.flatnonzero(score == score.max())
        if len(best) > 1:
            known = np.unique(homes[best][homes[best] >= 0])
            share = np.zeros(len(tree.domains) + 1)
            if len(known):
                masks = np.stack([tree.domains[i].mask for i in known.tolist()])
                share[known] = self._share(part, masks)
            score[best] += share[homes[best]]
        return score * 100.0 * self.weight

    def _nearness(self, home: Domain, near: Domain) -> float:
        tree = self._tree
        if home is near or tree.min_tier == tree.max_tier:
            return 1.0
        return (tree.max_tier - near.common(home).tier) / (tree.max_tier - tree.min_tier)

    def _fullness(self, request: Column) -> Column:
        """Give the weighted use of all domains with a request (R, 1) added; overflow is 0 (D,)."""
        wanted = self._named & (request >= STEP)
        weights = np.where(wanted, self._weights, 0.0)
        total = weights.sum()
        if total <= 0:
            return np.zeros(len(self._tree.domains))
        after = self._use.now() + request
        overflow = (wanted & (after > self._offered)).any(axis=0)
        use = np.where(wanted, after / np.where(self._offered > 0, self._offered, 1.0), 0.0)
        return np.where(overflow, 0.0, weighted_sum(weights, use) / total)

    def _share(self, part: SubGroup, masks: NDArray[np.bool_]) -> Column:
        """Give the part of a sub-group's tasks that lies in each of some sets of nodes."""
        tasks = self._tasks
        nodes = [
            int(tasks.node[row])
            if tasks.node[row] != NOWHERE
            else self._row_of.get(tasks.pods[row].spec.node_name, NOWHERE)
            for row in part.rows.tolist()
        ]
        placed = np.array([node for node in nodes if node != NOWHERE], dtype=np.intp)
        return np.asarray(masks[:, placed].sum(axis=1) / part.n_tasks)


def _search_root(present: Domain, within: Domain, limit: int) -> Domain | None:
    """Give the widest domain around the present one that both the limit and the caller allow."""
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
