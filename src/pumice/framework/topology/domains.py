"""Network domains: the HyperNodes of a cluster as a tree over node rows.

Built from objects alone and kept until nodes or HyperNodes change.  A malformed HyperNode
affects only itself: members that cannot be resolved are left out, everything else stays.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pumice.api.meta import LabelSelector
from pumice.api.nodes import HyperNode, MemberSelector
from pumice.api.patterns import occurrences
from pumice.core.labels import NodeLabels
from pumice.core.resources import Column, Mask, sum_by
from pumice.core.snapshot import Snapshot

TOP_NAME = "<cluster-top-hypernode>"
"""The domain above all others, with every node; it exists in no manifest."""

_DERIVED = "framework.topology.domains"


class Domain(msgspec.Struct, eq=False):
    """Nodes that are close together; the lower the tier, the closer.

    A child's nodes are all in its parent.  ``index`` is its place in the tree, ``end`` one past the
    last domain below it.
    """

    name: str
    tier: int
    mask: Mask
    rows: NDArray[np.intp] = msgspec.field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    parent: "Domain | None" = None
    children: list["Domain"] = msgspec.field(default_factory=list)
    index: int = 0
    end: int = 1

    def holds(self, other: "Domain") -> bool:
        """Return whether another domain is this one or below it."""
        return self.index <= other.index < self.end

    def lineage(self) -> Iterator["Domain"]:
        """Yield this domain and its ancestors."""
        domain: Domain | None = self
        while domain is not None:
            yield domain
            domain = domain.parent

    def common(self, other: "Domain") -> "Domain":
        """Return the smallest domain over this one and another."""
        return next(domain for domain in self.lineage() if domain.holds(other))

    def adopt(self, child: "Domain") -> None:
        """Add a domain and its nodes."""
        child.parent = self
        self.children.append(child)
        self.mask |= child.mask


class DomainTree:
    """All domains, parents before children; ``top`` comes first."""

    def __init__(self, top: Domain, tier_names: dict[str, int]) -> None:
        self.top = top
        self.tier_names = tier_names
        self.domains: list[Domain] = []
        self._number(top)
        self.alone = [[[domain]] for domain in self.domains]
        """For each domain, itself as the only level of domains; not to be changed."""
        self.by_name = {domain.name: domain for domain in self.domains}
        self.tiers = np.array([domain.tier for domain in self.domains], dtype=np.int64)
        names = [(domain.tier, domain.name, domain.index) for domain in self.domains]
        self.by_tier = np.array([index for _, _, index in sorted(names)], dtype=np.intp)
        """Indices of all domains, by tier and then by name (D,)."""
        self.min_tier, self.max_tier = int(self.tiers.min()), int(self.tiers.max())
        self._flat_rows = np.concatenate([domain.rows for domain in self.domains])
        sizes = [len(domain.rows) for domain in self.domains]
        self._flat_domains = np.repeat(np.arange(len(self.domains)), sizes)
        self._home = self.at_tier(self.min_tier)
        self._of_row: list[NDArray[np.intp]] | None = None

    def _number(self, top: Domain) -> None:
        """Number all domains, parents first; chains of them may be deep."""
        ahead = [(top, False)]
        while ahead:
            domain, is_done = ahead.pop()
            if is_done:
                domain.end = len(self.domains)
                continue
            domain.index = len(self.domains)
            domain.rows = np.flatnonzero(domain.mask)
            self.domains.append(domain)
            children = sorted(domain.children, key=lambda each: (each.tier, each.name))
            ahead += [(domain, True), *((child, False) for child in reversed(children))]

    def sums(self, values: Column) -> Column:
        """Add node columns (R, N) up to domain columns (R, D)."""
        return sum_by(values[:, self._flat_rows], self._flat_domains, len(self.domains))

    def at_tier(self, tier: int) -> NDArray[np.intp]:
        """Return each node's domain of a tier by index, -1 where it has none (N,)."""
        found = np.full(len(self.top.mask), -1, dtype=np.intp)
        same = [domain for domain in self.domains if domain.tier == tier]
        for domain in sorted(same, key=lambda each: each.name, reverse=True):
            found[domain.rows] = domain.index
        return found

    def home(self, node: int) -> Domain | None:
        """Return the domain of the lowest tier of all that a node is in."""
        index = int(self._home[node])
        return self.domains[index] if index >= 0 else None

    def has_one_home(self, domain: Domain) -> bool:
        """Return whether all nodes of a domain share their home."""
        homes = self._home[domain.rows]
        return not len(homes) or bool((homes == homes[0]).all())

    @property
    def homes(self) -> NDArray[np.intp]:
        """Indices of the nodes' homes, -1 where there is none (N,)."""
        return self._home

    def of_node(self, node: int) -> NDArray[np.intp]:
        """Return the indices of all domains with a node."""
        if self._of_row is None:
            order = np.argsort(self._flat_rows, kind="stable")
            counts = np.bincount(self._flat_rows, minlength=len(self.top.mask))
            self._of_row = np.split(self._flat_domains[order], np.cumsum(counts)[:-1])
        return self._of_row[node]

    def smallest_with(self, nodes: list[int]) -> Domain | None:
        """Return the domain of the lowest tier with all given nodes; None for no nodes."""
        if not nodes:
            return None
        shared = set(self.of_node(nodes[0]).tolist())
        for node in nodes[1:]:
            shared.intersection_update(self.of_node(node).tolist())
        found = [self.domains[index] for index in shared]
        return min(found, key=lambda domain: (domain.tier, domain.name))


class DomainUse:
    """Amounts in use in each domain at this moment, updated from the journal's log.

    Pipelined tasks count, tasks evicted in this session do not.
    """

    def __init__(self, snapshot: Snapshot, tree: DomainTree) -> None:
        self._nodes = snapshot.nodes
        self._tree = tree
        self._moved = snapshot.journal.moved
        self._cursor = len(self._moved)
        self._leaving = self._nodes.releasing.copy()
        everything = slice(None)
        self._seen = self._use(everything)
        self._used = tree.sums(self._seen)

    def _use(self, rows: Any) -> Column:
        nodes = self._nodes
        evicted = nodes.releasing[:, rows] - self._leaving[:, rows]
        return nodes.used[:, rows] + nodes.pipelined[:, rows] - evicted

    def now(self) -> Column:
        """Return the amounts in use (R, D)."""
        fresh = self._moved[self._cursor :]
        if fresh:
            self._cursor = len(self._moved)
            rows = np.unique(np.concatenate([np.atleast_1d(each) for each in fresh]))
            use = self._use(rows)
            change = use - self._seen[:, rows]
            self._seen[:, rows] = use
            around = [self._tree.of_node(row) for row in rows.tolist()]
            if around:
                each = np.repeat(change, [*map(len, around)], axis=1)
                self._used += sum_by(each, np.concatenate(around), len(self._tree.domains))
        return self._used


def domain_tree(snapshot: Snapshot) -> DomainTree:
    """Return the domains of a cluster; built again only after nodes or HyperNodes changed."""
    hyper_nodes: list[HyperNode] = list(snapshot.kind("HyperNode").values())
    known = snapshot.derived.get(_DERIVED)
    if known is not None:
        generation, objects, tree = known
        same = len(objects) == len(hyper_nodes) and all(map(_is, objects, hyper_nodes))
        if same and generation == snapshot.nodes.generation:
            return tree
    tree = _build(snapshot, hyper_nodes)
    snapshot.derived[_DERIVED] = (snapshot.nodes.generation, hyper_nodes, tree)
    return tree


def _is(left: object, right: object) -> bool:
    return left is right


def _build(snapshot: Snapshot, hyper_nodes: list[HyperNode]) -> DomainTree:
    """Join domains bottom-up: a member must be of a lower tier and have no parent yet.

    Volcano: one child with two parents stops all jobs with a topology; here the parent of the
    lower tier (then name) keeps it and the other does without.
    """
    members = _Members(snapshot, hyper_nodes)
    domains: dict[str, Domain] = {}
    ordered = sorted(hyper_nodes, key=lambda each: (each.spec.tier, each.metadata.name))
    tier_names: dict[str, int] = {}
    for each in ordered:
        domain = Domain(each.metadata.name, each.spec.tier, members.mask(each))
        for name in _child_names(each):
            child = domains.get(name)
            if child is not None and child.parent is None and child.tier < domain.tier:
                domain.adopt(child)
        domains[domain.name] = domain
        if each.spec.tier_name:
            tier_names.setdefault(each.spec.tier_name, each.spec.tier)
    highest = max((domain.tier for domain in domains.values()), default=0)
    top = Domain(TOP_NAME, max(1, highest + 1), np.ones(snapshot.nodes.n, dtype=bool))
    for domain in domains.values():
        if domain.parent is None:
            top.adopt(domain)
    return DomainTree(top, tier_names)


def _child_names(hyper_node: HyperNode) -> list[str]:
    return [
        member.selector.exact_match.name
        for member in hyper_node.spec.members
        if member.type == "HyperNode" and member.selector.exact_match is not None
    ]


class _Members:
    """Finds the nodes of member selectors."""

    def __init__(self, snapshot: Snapshot, hyper_nodes: list[HyperNode]) -> None:
        self._nodes = snapshot.nodes
        self._labels = NodeLabels(snapshot)
        selectors = [one.selector for each in hyper_nodes for one in each.spec.members]
        patterns = {one.regex_match.pattern for one in selectors if one.regex_match is not None}
        self._matching = occurrences(patterns, self._nodes.names[: self._nodes.n])

    def mask(self, hyper_node: HyperNode) -> Mask:
        """Mark the nodes a HyperNode names itself (N,)."""
        mask = np.zeros(self._nodes.n, dtype=bool)
        for member in hyper_node.spec.members:
            if member.type == "Node":
                self._select(member.selector, mask)
        return mask

    def _select(self, selector: MemberSelector, mask: Mask) -> None:
        if selector.exact_match is not None:
            row = self._nodes.row_of.get(selector.exact_match.name)
            if row is not None:
                mask[row] = True
        if selector.regex_match is not None:
            mask[self._matching[selector.regex_match.pattern]] = True
        if selector.label_match is not None:
            mask |= self._labelled(selector.label_match)

    def _labelled(self, selector: LabelSelector) -> Mask:
        """Mark nodes by labels; an empty selector selects nothing."""
        if not selector.match_labels and not selector.match_expressions:
            return np.zeros(self._nodes.n, dtype=bool)
        return self._labels.labelled(selector)
