"""The network places of jobs: limits, sub-groups, allocated domains.

One object for each session, made of domains and sub-groups; actions, the search and plugins ask it.
"""

from collections.abc import Callable
from functools import cached_property

from pumice.api.groups import NetworkTopology
from pumice.core.snapshot import Snapshot
from pumice.core.status import ALLOCATED_CLASS
from pumice.core.tables import NOWHERE
from pumice.core.views import Job
from pumice.framework.topology.domains import Domain, DomainTree, domain_tree
from pumice.framework.topology.subgroups import SubGroup, split


class Topology:
    """Network facts of a session; jobs without a topology cost next to nothing."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._parts: dict[int, list[SubGroup]] = {}
        self._part_of: dict[int, SubGroup] = {}
        self._allocated: dict[str | int, Domain | None] = {}
        self._near: dict[str, Domain | None] = {}

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
