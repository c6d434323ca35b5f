"""Network domains, the parts of a job that must stay within one, and where these may go."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pumice.api.groups import NetworkTopology, PodGroup, SubGroupPolicy
from pumice.api.meta import LabelSelector
from pumice.api.nodes import HyperNode, MemberSelector
from pumice.api.patterns import occurrences
from pumice.core.labels import NodeLabels, selects
from pumice.core.resources import Column, Mask, sum_by
from pumice.core.snapshot import Snapshot
from pumice.core.status import ALLOCATED_CLASS, N_STATUS, PENDING, Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Job

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


_READY = np.zeros(N_STATUS, dtype=bool)
_READY[[int(s) for s in (*ALLOCATED_CLASS, Status.SUCCEEDED)]] = True


@dataclass(slots=True, eq=False)
class SubGroup:
    """Tasks of one job that must be placed together; ``size`` of them make it ready.

    ``limit`` is the highest tier of network domain it may spread over, None for any.
    """

    snapshot: Snapshot = field(repr=False)
    id: str
    job: int
    policy: str | None
    """The name of its policy, None for tasks of no policy."""
    size: int
    match_index: int = 0
    """The first label value if it is a number; orders sub-groups."""
    topology: NetworkTopology | None = None
    limit: int | None = None
    priority: int = 0
    """The highest priority of its tasks."""
    rows: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    @property
    def n_tasks(self) -> int:
        """How many tasks it has, whatever their state."""
        return len(self.rows)

    @property
    def ready(self) -> int:
        """Tasks that hold a node, have succeeded, or wait and request nothing."""
        tasks = self.snapshot.tasks
        status = tasks.status[self.rows]
        idle = (status == PENDING) & tasks.best_effort[self.rows]
        return int((_READY[status] | idle).sum())

    @property
    def waiting(self) -> int:
        """Tasks that are pipelined."""
        return int((self.snapshot.tasks.status[self.rows] == Status.PIPELINED).sum())

    @property
    def is_ready(self) -> bool:
        """Whether enough tasks are placed."""
        return self.ready >= self.size

    @property
    def is_pipelined(self) -> bool:
        """Whether enough tasks are placed or pipelined."""
        return self.ready + self.waiting >= self.size


def split(job: Job) -> list[SubGroup]:
    """Divide a job's tasks by the policies of its pod group, in a fixed order.

    A pod belongs to the first policy that selects it and whose label keys it all has; pods of no
    policy, and jobs without any, form one sub-group that follows the job itself.
    """
    snapshot = job.snapshot
    group: PodGroup = job.group
    policies = group.spec.sub_group_policy
    if not policies:
        whole = _subgroup(job, None, ())
        whole.rows = np.asarray(job.tasks, dtype=np.intp)
        whole.priority = max([0, *snapshot.tasks.priority[whole.rows].tolist()])
        return [whole]
    found: dict[str, SubGroup] = {}
    rows: dict[str, list[int]] = {}
    for row in job.tasks:
        policy, values = _policy_of(policies, snapshot.tasks.pods[row])
        part = _subgroup(job, policy, values)
        found.setdefault(part.id, part)
        rows.setdefault(part.id, []).append(row)
    for name, part in found.items():
        part.rows = np.asarray(rows[name], dtype=np.intp)
        part.priority = max(0, int(snapshot.tasks.priority[part.rows].max()))
    return [found[name] for name in sorted(found)]


def _policy_of(
    policies: tuple[SubGroupPolicy, ...], pod: Any
) -> tuple[SubGroupPolicy | None, tuple[str, ...]]:
    labels = pod.metadata.labels
    for policy in policies:
        if policy.label_selector is not None and not selects(policy.label_selector, labels):
            continue
        values = tuple(labels.get(key, "") for key in policy.match_label_keys)
        if values and all(values):
            return policy, values
    return None, ()


def _subgroup(job: Job, policy: SubGroupPolicy | None, values: tuple[str, ...]) -> SubGroup:
    spec = job.group.spec
    if policy is None:
        size = 1 if spec.sub_group_policy else job.min_member
        return SubGroup(job.snapshot, job.key, job.row, None, size, topology=spec.network_topology)
    return SubGroup(
        job.snapshot,
        f"{job.key}/{policy.name}-{'-'.join(values)}",
        job.row,
        policy.name,
        1 if policy.sub_group_size is None else policy.sub_group_size,
        _number(values[0]),
        policy.network_topology,
    )


def _number(text: str) -> int:
    """Read a whole number as Go does, 0 for anything else."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 19 else 0


class Topology:
    """Network facts of a session; jobs without a topology cost next to nothing."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._parts: dict[int, list[SubGroup]] = {}
        self._part_of: dict[int, SubGroup] = {}
        self._allocated: dict[str | int, Domain | None] = {}
        self._near: dict[str, Domain | None] = {}
        self.led: set[int] = set()
        """Jobs (rows) that are placed where their pods are nominated, if that is possible."""

    @cached_property
    def tree(self) -> DomainTree:
        """The network domains of the cluster."""
        return domain_tree(self._snapshot)

    # Requirements of a job

    def has_policy(self, job: int) -> bool:
        """Return whether a job divides into sub-groups."""
        return self._asks(job) and bool(self._job(job).group.spec.sub_group_policy)

    def _asks(self, job: int) -> bool:
        """Return whether a job states anything about topology at all: few do."""
        return bool(self._snapshot.jobs.has_topology[job])

    def has_topology(self, job: int) -> bool:
        """Return whether a job or a part of it has a network topology."""
        if not self._asks(job):
            return False
        spec = self._job(job).group.spec
        if spec.network_topology is not None:
            return True
        return bool(spec.sub_group_policy) and any(
            part.topology is not None for part in self.subgroups(job)
        )

    def is_limited(self, job: int) -> bool:
        """Return whether a job or a part of it must keep within a tier."""
        return self.has_topology(job) and (
            self.limit(job) is not None
            or any(part.limit is not None for part in self.subgroups(job))
        )

    def needs_search(self, job: int) -> bool:
        """Return whether a job is placed domain by domain."""
        return self.has_policy(job) or self.is_limited(job)

    def limit(self, job: int) -> int | None:
        """Return the highest tier a job may spread over, None for any."""
        return self._limit(self._job(job).group.spec.network_topology, self.tree.top.tier)

    def _limit(self, asked: NetworkTopology | None, soft: int) -> int | None:
        """Read a topology; a soft one is a hard one that ends at the widest tier."""
        if asked is None:
            return None
        if asked.mode == "soft":
            return soft
        return self._highest(asked) if asked.mode == "hard" else None

    def _highest(self, asked: NetworkTopology) -> int | None:
        if asked.highest_tier_allowed is not None or not asked.highest_tier_name:
            return asked.highest_tier_allowed
        return self.tree.tier_names.get(asked.highest_tier_name)

    # Sub-groups

    def subgroups(self, job: int) -> list[SubGroup]:
        """List the parts of a job; there is one for all tasks if it has no policy."""
        parts = self._parts.get(job)
        if parts is None:
            parts = self._parts[job] = split(self._job(job))
            widest = self._widest(job)
            for part in parts:
                part.limit = self._limit(part.topology, widest)
                self._part_of.update(dict.fromkeys(part.rows.tolist(), part))
        return parts

    def _widest(self, job: int) -> int:
        """Return the tier that bounds soft parts of a job."""
        asked = self._job(job).group.spec.network_topology
        highest = None if asked is None or asked.mode == "soft" else self._highest(asked)
        return self.tree.top.tier if highest is None else highest

    def subgroup_of(self, task: int) -> SubGroup:
        """Return the part of its job that a task belongs to."""
        if task not in self._part_of:
            self.subgroups(int(self._snapshot.tasks.job[task]))
        return self._part_of[task]

    def has_enough_subgroups(self, job: int, is_met: Callable[[SubGroup], bool]) -> bool:
        """Return whether as many parts as each policy needs meet a condition."""
        if not self.has_policy(job):
            return True
        policies = self._job(job).group.spec.sub_group_policy
        wanted = {policy.name: policy.min_sub_groups or 0 for policy in policies}
        for part in self.subgroups(job):
            if wanted.get(part.policy, 0) > 0 and is_met(part):
                wanted[part.policy] -= 1
        return all(left <= 0 for left in wanted.values())

    # Places of jobs

    def allocated(self, owner: "SubGroup | Job") -> Domain | None:
        """Return the domain of a job or a part of it, where it is placed."""
        key = owner.id if isinstance(owner, SubGroup) else owner.row
        if key not in self._allocated:
            found = self._lies_in(owner)
            self._allocated[key] = found
        return self._allocated[key]

    def _lies_in(self, owner: "SubGroup | Job") -> Domain | None:
        if isinstance(owner, SubGroup):
            return None if owner.topology is None else self._domain_of(owner)
        if not self.has_topology(owner.row):
            return None
        found: Domain | None = None
        for part in self.subgroups(owner.row):
            domain = self.allocated(part)
            if domain is not None:
                found = domain if found is None else found.common(domain)
        return found

    def _domain_of(self, part: SubGroup) -> Domain | None:
        tasks = self._snapshot.tasks
        nodes = [
            int(tasks.node[row]) for row in part.rows if int(tasks.status[row]) in ALLOCATED_CLASS
        ]
        return None if NOWHERE in nodes else self.tree.smallest_with(nodes)

    def widen(self, owner: "SubGroup | Job", domain: Domain) -> Domain:
        """Record that a job or a part of it is now in a further domain; return the common one."""
        present = self.allocated(owner)
        joined = domain if present is None else present.common(domain)
        key = owner.id if isinstance(owner, SubGroup) else owner.row
        self._snapshot.journal.put(self._allocated, key, joined)
        return joined

    def placed_jobs(self) -> list[int]:
        """List the jobs in a domain."""
        return [
            key
            for key, domain in self._allocated.items()
            if isinstance(key, int) and domain is not None
        ]

    def open(self) -> None:
        """Find the places of all jobs, before anything moves."""
        for row in self._snapshot.jobs.has_topology.nonzero()[0].tolist():
            self.allocated(self._job(row))

    # The place so far, while a part is being placed

    def near(self, part: SubGroup) -> Domain | None:
        """Return the domain that a part is being placed in, None while it has none."""
        return self._near.get(part.id)

    def follow(self, part: SubGroup, domain: Domain) -> Callable[[int, int], None] | None:
        """Start to follow the places of a part's tasks; call the result with each task and node.

        If all nodes of a domain have the same home, none is nearer: nothing is followed.
        """
        if part.topology is None or self.tree.has_one_home(domain):
            return None
        self._near = {part.id: self.allocated(part)}

        def placed(_task: int, node: int) -> None:
            home, near = self.tree.home(node), self._near.get(part.id)
            if home is not None:
                self._near[part.id] = home if near is None else near.common(home)

        return placed

    def follow_job(self, job: int) -> Callable[[int, int], None] | None:
        """Start to follow a job that is placed as a whole."""
        if not self.has_topology(job):
            return None
        return self.follow(self.subgroups(job)[0], self.tree.top)

    def stop_following(self) -> None:
        """Forget the places followed."""
        self._near = {}

    def _job(self, row: int) -> Job:
        return Job(self._snapshot, row)


class GangEviction(msgspec.Struct, frozen=True):
    """The request for victims: a whole job, in a domain, from its own queue or from others."""

    job: Job
    domain: Domain
    reclaims: bool
    """Whether other queues lose pods; else jobs of lower priority in the same queue."""
