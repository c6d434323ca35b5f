"""The search for the best domain: narrow tiers first, parts together, nothing left behind."""

import time
from typing import Any

import numpy as np
import pytest

from pumice.api.conf import parse_conf
from pumice.core.consistency import check
from pumice.framework.dispatch import Enabled
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.framework.topology import search
from pumice.framework.topology.search import DomainSearch, Trial
from pumice.plugins.gang import Gang
from pumice.plugins.network_topology_aware import NetworkTopologyAware
from pumice.plugins.priority import Priority
from pumice.scheduler import Scheduler
from pumice.testing import hyper_node, node, pod, pod_group, queue
from pumice.testing.samples import snapshot_of

HARD = {"mode": "hard", "highestTierAllowed": 2}
TREE = [
    hyper_node("s0", nodes=["n0", "n1"]),
    hyper_node("s1", nodes=["n2", "n3"]),
    hyper_node("s2", nodes=["n4", "n5"]),
    hyper_node("g0", tier=2, children=["s0", "s1"]),
]
CONF = """
actions: "allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
  - name: network-topology-aware
"""


def decide(*objects: Any, cpus: Any = (4, 4, 4, 4, 4, 4), conf: Any = CONF) -> Any:
    nodes = [node(f"n{i}", cpu=cpu) for i, cpu in enumerate(cpus)]
    world = [queue("default"), *nodes, *TREE, *objects]
    return Scheduler(parse_conf(conf)).cycle(world, 0.0)


def job(
    name: str = "j",
    n: Any = 2,
    *,
    cpu: Any = 2,
    parts: Any = None,
    policies: Any = (),
    first: Any = 0,
    **group: Any,
) -> Any:
    """A gang; ``parts`` is the label value of each pod."""
    group = {"min_member": n, "network_topology": HARD, "phase": "Inqueue", **group}
    spec = {"subGroupPolicy": list(policies)} if policies else {}
    labels = [{} if parts is None else {"part": str(parts[i])} for i in range(n)]
    pods = [
        pod(f"{name}-w-{first + i}", group=name, cpu=cpu, labels=label)
        for i, label in enumerate(labels)
    ]
    return [pod_group(name, spec=spec, **group), *pods]


def policy(size: Any, *, tier: Any = None, least: Any = None) -> Any:
    built = {"name": "p", "matchLabelKeys": ["part"], "subGroupSize": size}
    if least is not None:
        built["minSubGroups"] = least
    if tier is not None:
        built["networkTopology"] = {"mode": "hard", "highestTierAllowed": tier}
    return built


def domain_of(decisions: Any, name: str = "j") -> Any:
    return decisions.pod_groups[f"default/{name}"].hyper_node


def nodes_of(decisions: Any) -> Any:
    return sorted(set(decisions.binds.values()))


# One job, one domain


def test_the_narrowest_tier_that_takes_a_job_is_used() -> None:
    decisions = decide(*job(n=4))
    assert domain_of(decisions) in {"s0", "s1", "s2"}
    assert len(nodes_of(decisions)) == 2


def test_a_wider_tier_is_used_when_no_narrow_domain_is_large_enough() -> None:
    decisions = decide(*job(n=6))
    assert domain_of(decisions) == "g0"
    assert len(decisions.binds) == 6


def test_a_hard_limit_leaves_a_job_pending_rather_than_spread() -> None:
    decisions = decide(*job(n=12))
    assert decisions.binds == {}
    assert domain_of(decisions) is None


def test_a_soft_topology_ends_with_the_whole_cluster() -> None:
    decisions = decide(*job(n=12, network_topology={"mode": "soft"}))
    assert len(decisions.binds) == 12
    assert domain_of(decisions) == "<cluster-top-hypernode>"


def test_the_domain_that_the_job_leaves_fullest_is_preferred() -> None:
    decisions = decide(pod("other", cpu=1, node="n4"), *job(n=2))
    assert domain_of(decisions) == "s2"


def test_a_domain_that_looks_large_enough_but_is_not_gives_way_to_the_next() -> None:
    """Sums do not show how requests fit on nodes; only a dry run does."""
    decisions = decide(*job(n=1, cpu=4), cpus=(3, 3, 3, 3, 4, 3))
    assert decisions.binds == {"default/j-w-0": "n4"}


def test_a_job_with_tasks_running_stays_within_reach_of_them() -> None:
    """The rack s2 has as much room, but lies beyond the limit around n0."""
    decisions = decide(pod("j-w-9", group="j", cpu=4, node="n0"), *job(n=3, min_member=4))
    assert domain_of(decisions) == "g0"
    assert set(nodes_of(decisions)) <= {"n1", "n2", "n3"}


def test_a_job_whose_tasks_lie_further_apart_than_allowed_gets_no_more() -> None:
    apart = [
        pod(f"j-w-{9 + i}", group="j", cpu=1, node=name) for i, name in enumerate(("n0", "n5"))
    ]
    decisions = decide(*apart, *job(n=1, min_member=3))
    assert decisions.binds == {}
    assert domain_of(decisions) == "<cluster-top-hypernode>"


def test_tasks_beyond_the_gang_follow_one_by_one_into_the_same_domain() -> None:
    decisions = decide(*job(n=4, min_member=2, network_topology={**HARD, "highestTierAllowed": 1}))
    assert len(decisions.binds) == 4
    assert len(nodes_of(decisions)) == 2
    assert domain_of(decisions) in {"s0", "s1", "s2"}


def test_a_domain_must_look_large_enough_for_all_pending_tasks_not_only_the_gang() -> None:
    decisions = decide(*job(n=5, min_member=2, network_topology={**HARD, "highestTierAllowed": 1}))
    assert decisions.binds == {}
    assert decisions.explanations["default/j"].startswith(
        "no network domain up to tier 1 takes it: 3 of 3 look large enough"
    )


def test_a_job_may_wait_for_room_that_is_being_freed() -> None:
    leaving = pod("old", cpu=4, node="n0")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-15T10:00:00Z"
    full = [pod(f"o{i}", cpu=4, node=f"n{i}") for i in range(2, 6)]
    decisions = decide(leaving, *full, *job(n=3))
    assert decisions.binds == {}
    assert sorted(decisions.pipelined.values()) == ["n0"]
    assert domain_of(decisions) is None


def test_without_the_plugin_the_whole_cluster_is_one_domain() -> None:
    conf = CONF.replace("  - name: network-topology-aware\n", "")
    decisions = decide(*job(n=12), conf=conf)
    assert len(decisions.binds) == 12
    assert domain_of(decisions) == "<cluster-top-hypernode>"


# Sub-groups


def test_each_subgroup_keeps_to_its_own_limit_inside_the_jobs() -> None:
    decisions = decide(*job(n=8, parts=[0, 0, 0, 0, 1, 1, 1, 1], policies=[policy(4, tier=1)]))
    first = {decisions.binds[f"default/j-w-{i}"] for i in range(4)}
    second = {decisions.binds[f"default/j-w-{i}"] for i in range(4, 8)}
    assert sorted([sorted(first), sorted(second)]) == [["n0", "n1"], ["n2", "n3"]]
    assert domain_of(decisions) == "g0"


def test_a_job_starts_with_as_many_subgroups_as_it_needs() -> None:
    decisions = decide(
        *job(
            n=6,
            min_member=4,
            cpu=4,
            parts=[0, 0, 1, 1, 2, 2],
            policies=[policy(2, tier=1, least=2)],
            network_topology=HARD,
        )
    )
    assert len(decisions.binds) == 4


def test_a_job_short_of_subgroups_is_not_valid() -> None:
    short = job(n=2, parts=[0, 0], policies=[policy(2, least=2)])
    assert decide(*short).binds == {}
    ssn = session_of([queue("default"), *short])
    why = ssn.policy.job_valid(ssn.snapshot.jobs.row_of["default/j"])
    assert why == "not enough sub-groups for gang-scheduling"


def test_a_policy_that_states_no_number_needs_no_subgroup() -> None:
    decisions = decide(*job(n=2, policies=[policy(2)]))
    assert len(decisions.binds) == 2


def test_a_subgroup_that_does_not_fit_holds_up_a_job_that_needs_it() -> None:
    decisions = decide(
        *job(n=4, min_member=2, cpu=4, parts=[0, 0, 0, 1], policies=[policy(3, tier=1, least=1)])
    )
    assert decisions.binds == {}


def test_subgroups_go_by_priority_then_by_number() -> None:
    parts = [10, 2]
    pods = job(n=2, min_member=1, cpu=4, parts=parts, policies=[policy(1)])
    assert next(iter(decide(*pods).binds)) == "default/j-w-1"
    pods[1]["spec"]["priority"] = 9
    assert next(iter(decide(*pods).binds)) == "default/j-w-0"


# What the search leaves behind


def search_world(seed: Any) -> Any:
    """A cluster of uneven racks, partly in use, and one job in one or two parts."""
    rng = np.random.default_rng(seed)
    names = [f"n{i}" for i in range(12)]
    objects = [queue("default")]
    objects += [node(name, cpu=int(rng.integers(2, 9))) for name in names]
    objects += [hyper_node(f"s{i}", nodes=names[2 * i : 2 * i + 2]) for i in range(6)]
    objects += [
        hyper_node(f"g{i}", tier=2, children=[f"s{k}" for k in range(3 * i, 3 * i + 3)])
        for i in range(2)
    ]
    for i, name in enumerate(names):
        if rng.random() < 0.5:
            objects.append(pod(f"old{i}", cpu=int(rng.integers(1, 3)), node=name))
    n = int(rng.integers(2, 7))
    parts = [i % 2 for i in range(n)]
    policies = [policy(max(1, n // 2), tier=1)] if rng.random() < 0.5 else ()
    least = n
    for i in range(int(rng.integers(0, 3))):
        labels, where = {"part": str(i % 2)}, names[int(rng.integers(0, 12))]
        objects.append(pod(f"run{i}", group="j", cpu=1, node=where, labels=labels))
        least += 1
    objects += job(
        n=n, cpu=int(rng.integers(1, 4)), parts=parts, policies=policies, min_member=least
    )
    return objects


def session_of(objects: Any) -> Any:
    tier = [Enabled(plugin, {}) for plugin in (Priority(), Gang(), NetworkTopologyAware())]
    return Session(snapshot_of(objects), [tier])


class Exhaustive(DomainSearch):
    """Tries every domain, as Volcano does."""

    def _most_promising_first(self, sheet: Any, level: Any) -> Any:
        return [(np.inf, domain) for domain in level]

    def _find_twins(self, sheet: Any) -> Any:
        return None

    def _place_part(self, stmt: Any, part: Any, tasks: Any, within: Any, *, first: Any) -> Any:
        ssn = self._state
        for level in ssn.policy.domain_levels(part, within, "allocate"):
            runs = [self._run(stmt, part, tasks, domain) for domain in level]
            trials = [trial for trial in runs if trial is not None]
            if trials:
                domains = [trial.domain for trial in trials]
                scores = ssn.policy.score_domains(part, domains)
                best = np.flatnonzero(scores == scores.max())
                if len(best) > 1:
                    scores[best] += ssn.policy.rank_domains(part, [domains[i] for i in best])
                winner = trials[int(np.argmax(scores))]
                stmt.repeat(winner.moves)
                return Trial(winner.domain, winner.moves, float(scores.max()), winner.left)
        return None


@pytest.mark.parametrize("seed", range(40))
def test_leaving_out_hopeless_domains_does_not_change_the_outcome(seed: Any) -> None:
    found = []
    for kind in (DomainSearch, Exhaustive):
        ssn = session_of(search_world(seed))
        row = ssn.snapshot.jobs.row_of["default/j"]
        search, stmt = kind(ssn), ssn.statement()
        trial = search.place(stmt, row, search.worksheet(row))
        found.append(None if trial is None else (trial.score, len(trial.moves)))
    assert found[0] == found[1]


@pytest.mark.parametrize("seed", range(10))
def test_only_the_winning_moves_stay(seed: Any) -> None:
    ssn = session_of(search_world(seed))
    row = ssn.snapshot.jobs.row_of["default/j"]
    before = ssn.snapshot.nodes.books.copy()
    lies_in = ssn.topology.allocated(ssn.job(row))
    search, stmt = DomainSearch(ssn), ssn.statement()
    trial = search.place(stmt, row, search.worksheet(row))
    assert len(stmt) == (0 if trial is None else len(trial.moves))
    check(ssn.snapshot)
    stmt.discard()
    assert (ssn.snapshot.nodes.books == before).all()
    assert ssn.topology.allocated(ssn.job(row)) is lies_in


def test_domains_alike_are_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    run = DomainSearch._try_job

    def counted(self: Any, stmt: Any, job: Any, sheet: Any, domain: Any) -> Any:
        tried.append(domain.name)
        return run(self, stmt, job, sheet, domain)

    monkeypatch.setattr(DomainSearch, "_try_job", counted)
    decide(*job(n=2, parts=[0, 1], policies=[policy(1, tier=1)]))
    assert tried == ["s0"]


@pytest.mark.parametrize("zones", ["xxyz", "yzxx"])
def test_domains_of_like_nodes_are_tried_apart_for_pods_that_look_beyond_their_node(
    zones: str,
) -> None:
    """Two sub-groups that keep apart by zone fit only the domain with nodes in two zones."""
    term = {"labelSelector": {"matchExpressions": [{"key": "part", "operator": "Exists"}]}}
    required = [{**term, "topologyKey": "zone"}]
    group, *pods = job(
        parts=[0, 1],
        policies=[policy(1, tier=1)],
        network_topology={"mode": "hard", "highestTierAllowed": 1},
    )
    for each in pods:
        apart = {"requiredDuringSchedulingIgnoredDuringExecution": required}
        each["spec"]["affinity"] = {"podAntiAffinity": apart}
    nodes = [node(f"n{i}", cpu=4, labels={"zone": zone}) for i, zone in enumerate(zones)]
    world = [queue("default"), *nodes, *TREE[:2], group, *pods]
    decisions = Scheduler(parse_conf(CONF)).cycle(world, 0.0)
    assert "".join(zones[int(name[1])] for name in nodes_of(decisions)) == "yz"


def test_a_job_in_one_piece_is_tried_in_the_best_domain_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = []
    run = DomainSearch._try_job

    def counted(self: Any, stmt: Any, job: Any, sheet: Any, domain: Any) -> Any:
        tried.append(domain.name)
        return run(self, stmt, job, sheet, domain)

    monkeypatch.setattr(DomainSearch, "_try_job", counted)
    decide(pod("other", cpu=1, node="n2"), *job(n=2))
    assert tried == ["s1"]


# Trials that fail, and sub-groups that must come first


def trial_session(*objects: Any, cpus: Any = (4, 4, 4, 4, 4, 4), plugins: Any = None) -> Any:
    nodes = [node(f"n{i}", cpu=cpu) for i, cpu in enumerate(cpus)]
    tier = plugins or [Priority(), Gang(), NetworkTopologyAware()]
    world = [queue("default"), *nodes, *TREE, *objects]
    return Session(snapshot_of(world), [[Enabled(plugin, {}) for plugin in tier]])


def trial(ssn: Any, domain: str) -> Any:
    """Try the only part of job j in one domain."""
    row = ssn.snapshot.jobs.row_of["default/j"]
    (part,) = ssn.topology.subgroups(row)
    found = next(each for each in ssn.topology.tree.domains if each.name == domain)
    tasks = ssn.pending_tasks(row)
    return DomainSearch(ssn)._run(ssn.statement(), part, tasks, found)


def test_a_trial_that_places_too_few_has_failed_and_leaves_nothing() -> None:
    ssn = trial_session(*job(n=5))
    assert trial(ssn, "s0") is None
    assert not (ssn.snapshot.tasks.node[: ssn.snapshot.tasks.n] >= 0).any()
    assert len(trial(ssn, "g0").moves) == 5


def test_a_trial_that_places_nothing_has_failed_even_of_a_job_that_is_ready() -> None:
    runs = pod("j-w-9", group="j", cpu=1, node="n0")
    ssn = trial_session(*job(n=1, cpu=9, min_member=1), runs)
    assert ssn.policy.job_ready(0)
    assert trial(ssn, "s0") is None


def test_a_trial_forgets_why_earlier_ones_failed() -> None:
    ssn = trial_session(*job(n=2))
    ssn.records.no_fit[0] = {"too far away": 2}
    ssn.records.barred[0] = None
    assert trial(ssn, "s0") is not None
    assert ssn.records.no_fit == {}
    assert ssn.records.barred == {}


@pytest.mark.parametrize(("least", "needed"), [(None, []), (1, ["1"]), (2, ["1", "2"])])
def test_as_many_subgroups_come_first_as_the_job_cannot_start_without(
    least: Any, needed: Any
) -> None:
    """Sub-group 0 runs already, and counts; pods of no sub-group are never needed."""
    policies = [policy(1, least=None if least is None else least + 1)]
    ssn = trial_session(
        *job(n=4, parts=[3, 1, 2, 4], policies=policies, min_member=1),
        pod("j-w-8", group="j", cpu=1, node="n0", labels={"part": "0"}),
        pod("j-w-9", group="j", cpu=1),
    )
    row = ssn.snapshot.jobs.row_of["default/j"]
    found = search._needed(ssn, row, ssn.topology.subgroups(row))
    assert sorted(part.id.rpartition("-")[2] for part in found) == needed


class Taste(Plugin, name="taste"):
    """Scores and ranks domains by their names."""

    def __init__(self, scores: Any, ranks: Any) -> None:
        self._scores, self._ranks = scores, ranks

    def score_domains(self, subgroup: Any, domains: Any) -> Any:
        return np.array([self._scores.get(each.name, 0.0) for each in domains])

    def rank_domains(self, subgroup: Any, domains: Any) -> Any:
        return np.array([self._ranks.get(each.name, 0.0) for each in domains])


@pytest.mark.parametrize(
    ("scores", "ranks", "cpus", "wanted", "score"),
    [
        ({}, {}, (4, 4, 4, 4, 4, 4), "s0", 0),
        ({"s1": 1}, {}, (4, 4, 4, 4, 4, 4), "s1", 1),
        ({"s1": 1}, {}, (4, 4, 1, 1, 4, 4), "s0", 0),
        ({"s0": 1}, {"s2": 9}, (4, 4, 4, 4, 4, 4), "s0", 1),
        ({}, {"s1": 2, "s2": 1}, (4, 4, 4, 4, 4, 4), "s1", 2),
        ({}, {"s1": 1, "s2": 2}, (4, 4, 4, 4, 4, 4), "s2", 2),
        ({}, {"s1": 2, "s2": 1}, (4, 4, 1, 1, 4, 4), "s2", 1),
        ({}, {"s1": 2, "s2": 1}, (1, 1, 1, 1, 4, 4), "s2", 0),
        ({"s1": 1, "s2": 1}, {"s1": 2, "s2": 3}, (4, 4, 4, 4, 4, 4), "s2", 4),
        ({}, {"s0": -1}, (4, 4, 4, 4, 4, 4), "s1", 0),
        ({"s0": 1}, {}, (1, 1, 1, 1, 1, 1), None, 0),
        ({}, {"s0": 1}, (1, 1, 1, 1, 1, 1), None, 0),
    ],
)
def test_the_best_score_wins_and_of_equals_that_take_the_part_the_best_rank(
    scores: Any, ranks: Any, cpus: Any, wanted: Any, score: float
) -> None:
    """A rank is added to the score if it decided."""
    ssn = trial_session(*job(n=2), cpus=cpus, plugins=[Gang(), Taste(scores, ranks)])
    row = ssn.snapshot.jobs.row_of["default/j"]
    (part,) = ssn.topology.subgroups(row)
    level = [ssn.topology.tree.by_name[name] for name in ("s0", "s1", "s2")]
    search, stmt = DomainSearch(ssn), ssn.statement()
    search._levels[part.id] = {0: [level]}
    top = ssn.topology.tree.top
    found = search._place_part(stmt, part, ssn.pending_tasks(row), top, first=True)
    if wanted is None:
        assert (found, len(stmt)) == (None, 0)
        return
    assert found is not None
    assert (found.domain.name, found.score, len(stmt)) == (wanted, score, 2)
    stmt.discard()


def test_a_trial_leaves_no_place_that_is_followed() -> None:
    ssn = trial_session(*job(n=2))
    (part,) = ssn.topology.subgroups(ssn.snapshot.jobs.row_of["default/j"])
    assert trial(ssn, "g0") is not None
    assert ssn.topology.near(part) is None


def test_a_trial_is_made_once_while_nothing_is_placed() -> None:
    ssn = trial_session(*job(n=2))
    row = ssn.snapshot.jobs.row_of["default/j"]
    (part,) = ssn.topology.subgroups(row)
    search, stmt, tasks = DomainSearch(ssn), ssn.statement(), ssn.pending_tasks(row)
    domain = ssn.topology.tree.by_name["s0"]
    first = search._try_part(stmt, part, tasks, domain, first=True)
    assert search._try_part(stmt, part, tasks, domain, first=True) is first
    assert search._try_part(stmt, part, tasks, domain, first=False) is not first
    levels = search._part_levels(part, domain, first=True)
    assert search._part_levels(part, domain, first=True) is levels
    assert search._part_levels(part, domain, first=False) is not levels


@pytest.mark.parametrize(
    ("least", "size", "n", "wanted"), [(3, 1, 3, False), (2, 1, 3, True), (2, 3, 3, False)]
)
def test_a_part_goes_on_after_a_task_without_node_if_it_can_be_ready(
    least: int, size: int, n: int, wanted: bool
) -> None:
    made = job(n=n, parts=[0] * n, policies=[policy(size)], min_member=least)
    ssn = trial_session(*made)
    (part,) = ssn.topology.subgroups(ssn.snapshot.jobs.row_of["default/j"])
    assert DomainSearch(ssn)._goes_on(part) == wanted


@pytest.mark.parametrize(("tier", "total"), [(1, 3), (2, 4), (None, 5)])
def test_a_job_without_domain_is_told_how_many_there_are(tier: Any, total: int) -> None:
    topology = None if tier is None else {"mode": "hard", "highestTierAllowed": tier}
    ssn = trial_session(*job(n=2, network_topology=topology))
    row = ssn.snapshot.jobs.row_of["default/j"]
    DomainSearch(ssn)._explain(row, 2)
    record = ssn.records.by_job[row]
    assert record.numbers == {"limit": tier, "large": 2, "total": total}


def test_a_pattern_written_to_take_forever_does_not_hold_up_a_cycle() -> None:
    slow = {"type": "Node", "selector": {"regexMatch": {"pattern": "^(a+)+$"}}}
    world = [queue("default"), hyper_node("slow", members=[slow]), *job(n=1, network_topology=None)]
    world += [node(f"{'a' * 60}{i}") for i in range(50)]
    started = time.thread_time()
    assert Scheduler(parse_conf(CONF)).cycle(world, 0.0).binds
    assert time.thread_time() - started < 10.0
