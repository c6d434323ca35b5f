"""numa-aware: who is admitted where, which cpus are taken, and how few NUMA nodes that takes."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.annotations import NUMA_POLICY
from pumice.api.nodes import CpuPlace, Numatopology
from pumice.framework.dispatch import Enabled
from pumice.framework.session import Session
from pumice.plugins.numa_aware import CpuLayout, NumaAware, parse_cpus, read_layout, reserved_cpus
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import snapshot_of
from tests.present import present, read_as

FITS, EMPTY, NOT_STATIC, _, NO_CPUS, REFUSED = range(6)


def detail(numas: Any, per_numa: Any, *, threads: Any = 1) -> Any:
    """Cpus in a row: NUMA by NUMA, each one a socket, with so many threads a core."""
    places = {}
    for cpu in range(numas * per_numa):
        numa = cpu // per_numa
        places[str(cpu)] = {"numa": numa, "socket": numa, "core": cpu // threads}
    return places


def differing(task: str, node: str) -> int:
    text = f"task topology policy[{task}] is different with node[{node}]"
    return 1 + [reason.text for reason in NumaAware.reasons].index(text)


def topology(
    name: Any,
    policy: str = "best-effort",
    *,
    numas: Any = 2,
    per_numa: Any = 4,
    free: Any = None,
    manager: str = "static",
    **up: Any,
) -> Any:
    places = detail(numas, per_numa, threads=up.get("threads", 1))
    listed = ",".join(places) if free is None else free
    spec = {
        "policies": {"CPUManagerPolicy": manager, "TopologyManagerPolicy": policy},
        "numares": {"cpu": {"allocatable": listed, "capacity": len(places)}},
        "cpuDetail": places,
    }
    if "reserved" in up:
        spec["resReserved"] = {"cpu": up["reserved"]}
    return {
        "apiVersion": "nodeinfo.volcano.sh/v1alpha1",
        "kind": "Numatopology",
        "metadata": {"name": name},
        "spec": spec,
    }


def asking(
    name: str = "p", cpu: Any = 2, policy: Any = None, *, limit: Any = None, **more: Any
) -> Any:
    amounts = {"cpu": cpu, "memory": "1Gi"}
    return pod(
        name,
        group="g",
        resources=amounts,
        limits=amounts if limit is None else limit,
        annotations={} if policy is None else {NUMA_POLICY: policy},
        **more,
    )


def opened(pods: Any, topologies: Any, nodes: Any = None, **arguments: Any) -> Any:
    names = [each["metadata"]["name"] for each in topologies]
    machines = [node(name, cpu=64, memory="64Gi") for name in nodes or names]
    group = [queue("default"), pod_group("g", min_member=0)]
    plugin = NumaAware(**arguments)
    ssn = Session(snapshot_of([*machines, *topologies, *group, *pods]), [[Enabled(plugin, {})]])
    return plugin, ssn


def task_of(ssn: Any, name: str = "p") -> Any:
    return ssn.task(ssn.snapshot.tasks.row_of[f"default/{name}"])


def codes(mine: Any, topologies: Any, nodes: Any = None) -> Any:
    plugin, ssn = opened([mine], topologies, nodes)
    found = plugin.filter_nodes(task_of(ssn), ssn.nodes())
    return None if found is None else found.tolist()


def test_all_its_refusals_are_beyond_the_reach_of_evictions() -> None:
    assert not any(reason.curable for reason in NumaAware.reasons)


@pytest.mark.parametrize(
    "mine",
    [
        asking(limit={"cpu": 3, "memory": "1Gi"}, policy="restricted"),
        asking(limit={"cpu": 2}, policy="restricted"),
        pod("p", group="g", annotations={NUMA_POLICY: "restricted"}),
    ],
    ids=["burstable", "no memory limit", "best effort"],
)
def test_pods_that_are_not_guaranteed_are_let_through(mine: Any) -> None:
    assert codes(mine, [topology("n", "single-numa-node")]) is None


def test_a_policy_asks_for_a_topology_a_static_manager_and_the_same_policy() -> None:
    machines = [
        topology("other", "restricted"),
        topology("dynamic", manager="none"),
        topology("full", free=""),
        topology("good"),
    ]
    names = ["bare", "other", "dynamic", "full", "good"]
    wanted = [EMPTY, differing("best-effort", "restricted"), NOT_STATIC, NO_CPUS, FITS]
    assert codes(asking(policy="best-effort"), machines, names) == wanted


@pytest.mark.parametrize("policy", [None, "none", ""])
def test_a_guaranteed_pod_without_policy_is_tested_only_where_the_node_has_one(policy: Any) -> None:
    machines = [
        topology("strict", "restricted", free="0"),
        topology("none", "none", free="0"),
        topology("dynamic", "restricted", free="0", manager="none"),
    ]
    names = ["bare", "strict", "none", "dynamic"]
    assert codes(asking(policy=policy), machines, names) == [FITS, REFUSED, FITS, FITS]


@pytest.mark.parametrize(
    ("policy", "cpu", "free", "code"),
    [
        ("best-effort", 4, "0-2,4-6", FITS),  # spread, but best effort
        ("best-effort", 12, "0-7", FITS),  # not even enough cpus
        ("restricted", 4, "0-2,4-6", REFUSED),  # one NUMA node could do, none has four left
        ("restricted", 4, "0-2,4-7", FITS),
        ("restricted", 6, "0-2,4-6", FITS),  # needs two in any case
        ("single-numa-node", 4, "0-2,4-7", FITS),
        ("single-numa-node", 5, "0-7", REFUSED),
        ("single-numa-node", 4, "0-2,4-6", REFUSED),
        ("single-numa-node", "1500m", "0", FITS),  # no whole cpus, no preference
        ("restricted", "500m", "0", FITS),
    ],
)
def test_a_node_admits_by_its_policy(policy: str, cpu: Any, free: str, code: Any) -> None:
    """Two NUMA nodes with four cpus each."""
    assert codes(asking(cpu=cpu, policy=policy), [topology("n", policy, free=free)]) == [code]


def test_reserved_cpus_are_not_given_away() -> None:
    machines = [topology("n", "single-numa-node", reserved="500m")]
    plugin, ssn = opened([asking(cpu=4, policy="single-numa-node")], machines)
    assert plugin.filter_nodes(task_of(ssn), ssn.nodes()).tolist() == [FITS]
    plugin.on_place(task_of(ssn), 0)
    assert plugin._given[task_of(ssn).row] == {4, 5, 6, 7}  # cpu 0 is reserved


def test_containers_take_cpus_in_turn() -> None:
    amounts = {"cpu": "3", "memory": "1Gi"}
    container = {"name": "c", "resources": {"requests": amounts, "limits": amounts}}
    mine = asking(policy="restricted", spec={"containers": [container, container]})
    assert codes(mine, [topology("n", "restricted")]) == [FITS]
    assert codes(mine, [topology("n", "restricted", numas=1, per_numa=5)]) == [REFUSED]


def placed(plugin: Any, ssn: Any, *names: Any, where: Any = 0) -> Any:
    stmt = ssn.statement()
    for name in names:
        stmt.place(task_of(ssn, name).row, where)
    return stmt


def test_what_one_task_gets_is_gone_for_the_next() -> None:
    pods = [asking(f"p{i}", 4, "single-numa-node") for i in range(3)]
    plugin, ssn = opened(pods, [topology("n", "single-numa-node")])
    placed(plugin, ssn, "p0", "p1")
    assert plugin._machines.free(0) == frozenset()
    assert plugin.filter_nodes(task_of(ssn, "p2"), ssn.nodes()).tolist() == [NO_CPUS]


def test_a_discarded_placement_gives_its_cpus_back() -> None:
    plugin, ssn = opened([asking("p0", 4, "restricted")], [topology("n", "restricted")])
    before = plugin._machines.free(0)
    placed(plugin, ssn, "p0").discard()
    assert (plugin._machines.free(0), plugin._given) == (before, {})


def test_a_promise_taken_back_gives_its_cpus_back() -> None:
    plugin, ssn = opened([asking("p0", 4, "restricted")], [topology("n", "restricted")])
    stmt = ssn.statement()
    row = task_of(ssn, "p0").row
    stmt.pipeline(row, 0)
    assert len(plugin._machines.free(0)) == 4
    stmt.unpipeline(row)
    assert len(plugin._machines.free(0)) == 8


def test_fewer_numa_nodes_score_higher() -> None:
    """Four cpus from one of four, from two of two; the widest assignment is the yardstick."""
    machines = [topology("narrow"), topology("wide", free="0-1,4-5")]
    plugin, ssn = opened([asking(cpu=4, policy="best-effort")], machines, weight=3)
    assert plugin.rank_nodes(task_of(ssn), ssn.nodes()).tolist() == [150, 0]


def test_scores_are_cut_to_whole_numbers() -> None:
    machines = [
        topology("one", numas=3, per_numa=6),
        topology("two", numas=3, per_numa=6, free="0-2,6-8"),
        topology("three", numas=3, per_numa=6, free="0-1,6-7,12-13"),
    ]
    plugin, ssn = opened([asking(cpu=6, policy="best-effort")], machines)
    assert plugin.rank_nodes(task_of(ssn), ssn.nodes()).tolist() == [67, 34, 0]


def test_an_assignment_of_no_cpus_on_all_candidates_gives_all_the_full_score() -> None:
    plugin, ssn = opened([asking(cpu="500m", policy="best-effort")], [topology("n")])
    assert plugin.rank_nodes(task_of(ssn), ssn.nodes()).tolist() == [100]


def test_pods_without_policy_are_not_scored() -> None:
    plugin, ssn = opened([asking()], [topology("n")])
    assert plugin.rank_nodes(task_of(ssn), ssn.nodes()) is None


def layout(numas: Any = 2, per_numa: Any = 4, threads: Any = 1) -> Any:
    return read_layout(
        read_as(Numatopology, topology("n", numas=numas, per_numa=per_numa, threads=threads))
    )


def test_whole_sockets_are_taken_first_then_whole_cores_then_single_cpus() -> None:
    machine = layout(numas=2, per_numa=4, threads=2)
    everything = frozenset(range(8))
    assert machine.take(everything, 4) == {0, 1, 2, 3}
    assert machine.take(everything, 2) == {0, 1}
    assert machine.take(frozenset({1, 2, 3}), 1) == {1}  # the half used core


def test_taking_nothing_gives_nothing_and_taking_too_much_fails() -> None:
    machine = layout()
    assert machine.take(frozenset({1}), 0) == frozenset()
    assert machine.take(frozenset({1}), 2) is None


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=12),
    st.data(),
)
def test_what_is_taken_was_free_and_is_enough(numas: Any, data: Any) -> None:
    places = {i: CpuPlace(numa=numa, socket=numa // 2, core=i // 2) for i, numa in enumerate(numas)}
    totals = {numa: numas.count(numa) for numa in numas}
    machine = CpuLayout(places, tuple(sorted(totals)), 2, 2, totals)
    free = frozenset(data.draw(st.sets(st.sampled_from(sorted(places)))))
    wanted = data.draw(st.integers(0, len(places)))
    taken = machine.take(free, wanted)
    if wanted > len(free):
        assert taken is None
    else:
        assert present(taken) <= free
        assert len(present(taken)) >= wanted


def slow_hint(machine: Any, free: Any, wanted: Any) -> Any:
    """Try every set of NUMA nodes, as the kubelet does."""
    every = [
        frozenset(chosen)
        for size in range(1, len(machine.numas) + 1)
        for chosen in itertools.combinations(machine.numas, size)
    ]
    able = [s for s in every if sum(machine.places[c].numa in s for c in free) >= wanted]
    least = min(
        (len(s) for s in every if sum(machine.totals[numa] for numa in s) >= wanted),
        default=len(machine.numas),
    )
    if not able:
        return frozenset(machine.numas), False
    best = min(able, key=lambda s: (len(s) != least, len(s), sum(1 << numa for numa in s)))
    return best, len(best) == least


@given(st.lists(st.integers(0, 4), min_size=1, max_size=10), st.data())
def test_the_best_hint_is_the_one_that_trying_every_set_finds(numas: Any, data: Any) -> None:
    places = {i: CpuPlace(numa=numa) for i, numa in enumerate(numas)}
    totals = {numa: numas.count(numa) for numa in numas}
    machine = CpuLayout(places, tuple(sorted(totals)), 1, 1, totals)
    free = frozenset(data.draw(st.sets(st.sampled_from(sorted(places)))))
    wanted = data.draw(st.integers(1, len(places) + 1))
    hint = machine.best_hint(free, wanted)
    assert (hint.numas, hint.preferred) == slow_hint(machine, free, wanted)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0,2-4", {0, 2, 3, 4}),
        ("", set()),
        ("5-99999999", {5, 6, 7}),
        ("3-1", set()),
        ("a", set()),
        ("1,x", set()),
        ("1--2", set()),
        ("9" * 5000, set()),
        ("1".zfill(20), {1}),
        ("1".zfill(21), set()),
        ("1-", set()),
        ("-1", set()),
    ],
)
def test_a_list_of_cpus_names_numbers_and_ranges(text: Any, found: Any) -> None:
    assert parse_cpus(text, range(8)) == found


@pytest.mark.parametrize(("amount", "number"), [("1500m", 2), ("0", 0), ("100", 0)])
def test_reserved_cpus_are_rounded_up_and_none_if_there_are_too_few(
    amount: str, number: int
) -> None:
    machine = read_as(Numatopology, topology("n", reserved=amount))
    assert len(reserved_cpus(machine, read_layout(machine))) == number


def test_a_topology_of_an_unknown_node_is_ignored() -> None:
    plugin, ssn = opened([asking(policy="best-effort")], [topology("gone")], ["n"])
    assert plugin.filter_nodes(task_of(ssn), ssn.nodes()).tolist() == [EMPTY]


def test_sixty_four_numa_nodes_are_no_trouble() -> None:
    """The choice does not try every set."""
    machine = layout(numas=64, per_numa=1)
    hint = machine.best_hint(frozenset(range(64)), 32)
    assert hint.numas == frozenset(range(32))


def test_a_policy_that_nobody_knows_is_another_policy() -> None:
    assert codes(asking(policy="odd"), [topology("n", "restricted")]) == [3]
    assert codes(asking(policy="restricted"), [topology("n", "odd")]) == [3]


def test_with_no_machine_at_all_only_a_policy_refuses() -> None:
    assert codes(asking(), [], ["a", "b"]) is None
    assert codes(asking(policy="restricted"), [], ["a", "b"]) == [EMPTY, EMPTY]
    plugin, ssn = opened([asking(policy="restricted")], [], ["a", "b"])
    assert plugin.rank_nodes(task_of(ssn), ssn.nodes()).tolist() == [100, 100]
    mixed, ssn = opened([asking(policy="best-effort")], [topology("a")], ["a", "b"])
    assert mixed.rank_nodes(task_of(ssn), ssn.nodes()).tolist() == [0, 100]
