"""Evictions for whole jobs, piece by piece: nodes to choose, candidates that go, bundles asked."""

from typing import Any

import numpy as np
import pytest

from pumice.core.views import Task
from pumice.framework.eviction import gangs
from pumice.framework.eviction.gangs import Bundle, GangEvictor, candidates, keep_allowed, let_go
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Reason
from pumice.framework.topology.domains import TOP_NAME, GangEviction
from pumice.framework.topology.search import make_worksheet
from pumice.plugins.gang import Gang
from pumice.plugins.priority import Priority
from pumice.testing import hyper_node, node, pod, pod_group, priority_class, queue
from pumice.testing.samples import open_session

BASE = [
    queue("default"),
    priority_class("low", value=1),
    priority_class("high", value=9),
    *(node(f"n{i}", cpu=4) for i in range(4)),
    hyper_node("s0", nodes=["n0", "n1"]),
]


def gang(name: str, n: int, least: int = 1, on: int = 0, **more: Any) -> list[Any]:
    """Make a running gang, its pods on one node after the other."""
    given: dict[str, Any] = {"cpu": 2} | more
    pods = [pod(f"{name}-{i}", group=name, node=f"n{on + i // 2}", **given) for i in range(n)]
    return [pod_group(name, min_member=least, phase="Running", priority_class="low"), *pods]


def asker(n: int = 2, *, cpu: Any = 2, least: int | None = None, **more: Any) -> list[Any]:
    group = pod_group(
        "asker", min_member=n if least is None else least, phase="Inqueue", priority_class="high"
    )
    return [group, *(pod(f"asker-{i}", group="asker", cpu=cpu, **more) for i in range(n))]


class Picky(Plugin, name="picky"):
    """Refuses nodes for a while or for good, tasks, and amounts beyond a quota."""

    reasons = (Reason("for a while"), Reason("for good", curable=False))
    codes: dict[int, int]
    without_node: str = ""
    over_quota: str = ""

    def filter_nodes(self, task: Any, nodes: Any) -> Any:
        return np.array([self.codes.get(int(row), 0) for row in nodes.index], dtype=np.int8)

    def filter_task(self, task: Any) -> Any:
        return Reason("no disk") if task.name == self.without_node else None

    def allocatable(self, queue: Any, task: Any) -> bool:
        return task.name != self.over_quota

    def score_nodes(self, task: Any, nodes: Any) -> Any:
        return -np.asarray(nodes.index, dtype=float)


def evictor(
    *objects: Any, picky: Any = None, configured: Any = None, reclaims: bool = False
) -> tuple[Any, GangEvictor]:
    plugin = Picky()
    plugin.codes = {}
    for name, value in (picky or {}).items():
        setattr(plugin, name, value)
    ssn = open_session([*BASE, *objects], [Priority(), Gang(), plugin])
    return ssn, GangEvictor(ssn, "gangpreempt", configured or {}, reclaims=reclaims)


def row(ssn: Any, name: str) -> int:
    return int(ssn.snapshot.tasks.row_of[f"default/{name}"])


@pytest.mark.parametrize(
    ("picky", "wanted"),
    [
        ({}, 1),
        ({"codes": {1: 1}}, 1),
        ({"codes": {1: 2}}, None),
        ({"without_node": "asker-0"}, None),
        ({"over_quota": "asker-0"}, None),
    ],
)
def test_a_node_is_chosen_in_the_domain_whatever_evictions_cure(picky: Any, wanted: Any) -> None:
    """Node n0 is full for good, n1 has room; n2 and n3 are not in the domain."""
    ssn, found = evictor(*gang("old", 2), *asker(), picky=picky)
    task, domain = Task(ssn.snapshot, row(ssn, "asker-0")), ssn.topology.tree.by_name["s0"]
    assert found._choose(task, domain, {}) == wanted


@pytest.mark.parametrize(("barred", "wanted"), [(None, 0), ([True, False], 1), ([False, True], 0)])
def test_nodes_that_an_earlier_attempt_found_hopeless_are_left_out(
    barred: Any, wanted: int
) -> None:
    ssn, found = evictor(*asker())
    task, domain = Task(ssn.snapshot, row(ssn, "asker-0")), ssn.topology.tree.by_name["s0"]
    mask = None if barred is None else np.array([*barred, False, False])
    ssn.records.barred[task.row] = mask
    assert found._choose(task, domain, {}) == wanted


@pytest.mark.parametrize("remembers", [True, False])
@pytest.mark.parametrize("role", ["w", None])
def test_a_node_that_refused_a_role_is_not_asked_again_in_an_attempt(
    remembers: bool, role: Any
) -> None:
    configured = {"allocate": {"predicateErrorCacheEnable": remembers}}
    pods = [*gang("old", 2), *asker(role=role)]
    ssn, found = evictor(*pods, configured=configured)
    domain, refused = ssn.topology.tree.by_name["s0"], dict[int, Any]()
    task = Task(ssn.snapshot, row(ssn, "asker-0"))
    assert found._choose(task, domain, refused) == 1
    ssn.snapshot.evict(row(ssn, "old-0"))
    ssn.snapshot.evict(row(ssn, "old-1"))
    ssn.snapshot.place(row(ssn, "asker-1"), 1)
    ssn.snapshot.nodes.books[0, 0, 1] = 0
    ssn.snapshot.journal.touch(1)
    kept = remembers and role is not None
    assert found._choose(task, domain, refused) == (None if kept else 0)
    assert bool(refused) == kept


def test_all_tasks_of_a_part_get_room_or_none() -> None:
    ssn, found = evictor(*gang("old", 3), *asker(2))
    job = ssn.snapshot.jobs.row_of["default/asker"]
    (part,) = ssn.topology.subgroups(job)
    rows, stmt = [row(ssn, "asker-0"), row(ssn, "asker-1")], ssn.statement()
    domain = ssn.topology.tree.by_name["s0"]
    assert not found._pipeline_all(stmt, part, rows, domain)
    assert len(stmt) == 0
    stmt.evict(row(ssn, "old-0"), "gangpreempt")
    assert found._pipeline_all(stmt, part, rows, domain)
    assert [int(ssn.snapshot.tasks.node[each]) for each in rows] == [1, 0]


@pytest.mark.parametrize(("least", "wanted"), [(2, ["asker-0", "asker-1"]), (5, [])])
def test_a_part_that_would_not_be_ready_gets_nothing(least: int, wanted: Any) -> None:
    ssn, found = evictor(*asker(2, least=least))
    job = ssn.snapshot.jobs.row_of["default/asker"]
    (part,) = ssn.topology.subgroups(job)
    rows, stmt = [row(ssn, "asker-0"), row(ssn, "asker-1")], ssn.statement()
    assert found._pipeline_all(stmt, part, rows, ssn.topology.tree.top) == bool(wanted)
    assert len(stmt) == len(wanted)


def test_the_demand_is_that_of_all_tasks_until_the_job_is_ready() -> None:
    policy = {"subGroupPolicy": [{"name": "part", "subGroupSize": 1, "matchLabelKeys": ["part"]}]}
    group = pod_group("asker", min_member=1, phase="Inqueue", spec=policy)
    pods = [pod(f"asker-{i}", group="asker", cpu=1, labels={"part": str(i)}) for i in range(3)]
    for runs, wanted in ((False, 3), (True, 1)):
        more = [pod("first", group="asker", cpu=1, node="n0", labels={"part": "9"})] * runs
        ssn, found = evictor(group, *pods, *more)
        job = ssn.snapshot.jobs.row_of["default/asker"]
        sheet, _ = make_worksheet(ssn, job, [row(ssn, f"asker-{i}") for i in range(3)])
        assert len(found._demand(job, sheet)) == wanted
        assert len(sheet) == 3


class Levels(Plugin, name="levels"):
    """Knows some domains."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def on_open(self, ssn: Any) -> None:
        self._tree = ssn.topology.tree

    def domain_levels(self, part: Any, within: Any, purpose: str) -> Any:
        return [[self._tree.by_name[name]] for name in self._names]


@pytest.mark.parametrize(
    ("limited", "known", "wanted"),
    [
        (False, (), [TOP_NAME]),
        (True, (), []),
        (True, ("s0", TOP_NAME), ["s0", TOP_NAME]),
        (True, ("s0", TOP_NAME, "s0"), ["s0", TOP_NAME]),
    ],
)
def test_a_job_looks_into_its_first_domains_and_without_a_limit_everywhere(
    limited: bool, known: Any, wanted: Any
) -> None:
    topology = {"mode": "hard", "highestTierAllowed": 1} if limited else None
    group = pod_group("asker", network_topology=topology, phase="Inqueue")
    ssn = open_session([*BASE, group, *asker()[1:]], [Gang(), Levels(*known)])
    found = GangEvictor(ssn, "gangpreempt", {"gangpreempt": {"maxDomains": 2}}, reclaims=False)
    domains = found._domains(ssn.snapshot.jobs.row_of["default/asker"])
    assert [domain.name for domain in domains] == wanted


@pytest.mark.parametrize("reclaims", [False, True])
def test_candidates_are_found_once_and_lose_those_that_go(reclaims: bool) -> None:
    objects = [
        queue("other"),
        *gang("old", 3),
        *gang("late", 2, on=2),
        pod_group("far", queue="other", phase="Running", priority_class="low"),
        *(pod(f"far-{i}", group="far", cpu=1, node="n3") for i in range(2)),
        *asker(),
    ]
    ssn, found = evictor(*objects, reclaims=reclaims)
    job = ssn.job(ssn.snapshot.jobs.row_of["default/asker"])
    tree = ssn.topology.tree
    asked = [GangEviction(job, domain, reclaims) for domain in (tree.top, tree.by_name["s0"])]
    first = [found._candidates(each) for each in asked]
    assert [one is two for one, two in zip(first, map(found._candidates, asked), strict=True)]
    gone = ["far-0"] if reclaims else ["old-0", "old-2", "late-0", "late-1"]
    for name in gone:
        ssn.snapshot.evict(row(ssn, name))
    found._strike_off([f"default/{name}" for name in gone])
    for each in asked:
        rows, amount = found._candidates(each)
        fresh = candidates(ssn, each)
        assert rows == fresh
        flat = [task for tasks in fresh.values() for task in tasks]
        assert amount.tolist() == ssn.snapshot.sum_requests(flat).tolist()


# Bundles


def bundles(*sizes: int, whole: Any = ()) -> list[Bundle]:
    made, at = [], 0
    for i, size in enumerate(sizes):
        made.append(Bundle(i, list(range(at, at + size)), i in whole))
        at += size
    return made


def tasks_of(found: Any) -> list[list[int]]:
    return [bundle.tasks for bundle in found]


@pytest.mark.parametrize(
    ("allowed", "wanted"),
    [
        ([0, 1, 2, 3, 4], [[0, 1], [2, 3], [4]]),
        ([0, 2, 3], [[0], [2, 3]]),
        ([0, 2, 4], [[0], [4]]),
        ([], []),
    ],
)
def test_a_whole_bundle_is_kept_whole_or_not_at_all(allowed: Any, wanted: Any) -> None:
    found = keep_allowed(bundles(2, 2, 1, whole={1}), allowed)
    assert tasks_of(found) == wanted
    assert [bundle.is_whole for bundle in found] == [bundle.job == 1 for bundle in found]


class Judge(Plugin, name="judge"):
    """Offers some of the tasks, and remembers what it was asked about."""

    judges_alone = frozenset({"gang_evictable"})

    def __init__(self, offers: Any) -> None:
        self._offers = offers
        self.asked: list[list[int]] = []

    def gang_evictable(self, eviction: Any, candidates: Any) -> Any:
        self.asked.append(list(candidates))
        if self._offers is None:
            return None
        return np.array([each in self._offers for each in candidates], dtype=bool)


class Together(Judge, name="together"):
    """Judges all candidates together."""

    judges_alone = frozenset()


@pytest.mark.parametrize(
    ("tiers", "wanted", "asked"),
    [
        ([[Judge(range(9))]], [[0, 1], [2, 3], [4]], [[0, 1], [2, 3], [4]]),
        ([[Judge({0, 4})]], [[0], [4]], [[0, 1], [2, 3], [4]]),
        ([[Judge({2})]], [[2]], [[0, 1], [0, 1, 2, 3, 4]]),
        ([[Judge(None)]], [], [[0, 1], [0, 1, 2, 3, 4]]),
        ([[Together({0, 4})]], [[0], [4]], [[0, 1, 2, 3, 4]]),
        ([[Judge({0, 1}), Judge({1, 2})]], [[1]], [[0, 1], [2, 3], [4]]),
        ([[Judge(())], [Judge({4})]], [[4]], [[0, 1], [0, 1, 2, 3, 4]]),
    ],
)
def test_plugins_are_asked_a_few_bundles_at_a_time_where_that_decides_the_same(
    tiers: Any, wanted: Any, asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gangs, "_AT_ONCE", 2)
    ssn = open_session([*BASE, *gang("old", 5)], *tiers)
    for tier in tiers:
        for judge in tier:
            judge.asked.clear()
    top = ssn.topology.tree.top
    eviction = GangEviction(ssn.job(0), top, reclaims=False)
    assert tasks_of(let_go(ssn, eviction, iter(bundles(2, 2, 1)))) == wanted
    assert tiers[0][0].asked == asked
    assert tasks_of(let_go(ssn, eviction, iter(()))) == []
