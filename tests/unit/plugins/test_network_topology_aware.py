"""network-topology-aware: which domains are tried, how good they are, which nodes are near."""

from typing import Any

import pytest

from pumice.core.views import Nodes
from pumice.plugins.network_topology_aware import NetworkTopologyAware
from pumice.testing import hyper_node, node, pod, pod_group, queue

BASE = [
    queue("default"),
    *(node(f"n{i}", cpu=4, memory="8Gi") for i in range(6)),
    hyper_node("s0", nodes=["n0", "n1"]),
    hyper_node("s1", nodes=["n2", "n3"]),
    hyper_node("s2", nodes=["n4"]),
    hyper_node("g0", tier=2, children=["s0", "s1"]),
]
HARD = {"mode": "hard", "highestTierAllowed": 2}
TOP = "<cluster-top-hypernode>"


def gang(
    n: Any = 2,
    *,
    cpu: Any = 1,
    memory: Any = None,
    running: Any = (),
    topology: Any = HARD,
    **group: Any,
) -> Any:
    """A job with some pods pending and some running on given nodes."""
    pods = [pod(f"p{i}", group="g", cpu=cpu, memory=memory) for i in range(n)]
    pods += [pod(f"r{i}", group="g", cpu=1, node=name) for i, name in enumerate(running)]
    return [pod_group("g", min_member=n, network_topology=topology, **group), *pods]


class World:
    """A session with the plugin and one job."""

    def __init__(self, ssn: Any) -> None:
        self.ssn = ssn
        self.plugin = ssn.plugins[0]
        self.tree = ssn.topology.tree
        self.job = ssn.job(ssn.snapshot.jobs.row_of["default/g"])
        self.part = ssn.topology.subgroups(self.job.row)[0]

    def task(self, name: Any) -> Any:
        return self.ssn.task(self.ssn.snapshot.tasks.row_of[f"default/{name}"])

    def levels(self, owner: Any = None, within: Any = TOP, purpose: str = "allocate") -> Any:
        found = self.plugin.domain_levels(owner or self.part, self.tree.by_name[within], purpose)
        return [[domain.name for domain in level] for level in found]

    def score(self, *names: Any) -> Any:
        return self.plugin.score_domains(self.part, [self.tree.by_name[n] for n in names]).tolist()

    def rank(self, name: str = "p0") -> Any:
        found = self.plugin.rank_nodes(self.task(name), Nodes(self.ssn.snapshot))
        return None if found is None else [round(x, 6) for x in found.tolist()]


@pytest.fixture
def world(open_session: Any) -> Any:
    def opened(*objects: Any, **arguments: Any) -> Any:
        return World(open_session([*BASE, *objects], NetworkTopologyAware(**arguments)))

    return opened


# Which domains


def test_a_job_in_place_is_searched_for_around_it_whatever_the_room(world: Any) -> None:
    assert world(*gang(n=20, running=["n0"])).levels() == [["s0", "s1"], ["g0"]]
    assert world(*gang(running=["n0"])).levels(within="s1") == [["s1"]]
    assert world(*gang(running=["n0"])).levels(within="s2") == []


def test_a_job_beyond_its_limit_finds_nothing(world: Any) -> None:
    assert world(*gang(running=["n0", "n4"])).levels() == []


# How good domains are


def test_named_resources_count_too(open_session: Any) -> None:
    gpus = [node(f"g{i}", cpu=4, resources={"nvidia.com/gpu": 4}) for i in range(2)]
    job = gang(n=1, cpu=4)
    job[1]["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "1"
    plugin = NetworkTopologyAware(
        resources=["nvidia.com/gpu"], resource_weights={"nvidia.com/gpu": 3}, memory=0
    )
    here = World(open_session([*BASE, *gpus, hyper_node("gpu", nodes=["g0", "g1"]), *job], plugin))
    assert here.score("gpu") == [100 * (4 / 8 + 3 * 1 / 8) / 4]


def test_equal_domains_are_reported_apart_by_what_lies_there(world: Any) -> None:
    here = world(*gang(n=3, running=["n2"]))
    domains = [here.tree.by_name[name] for name in ("s0", "s1")]
    assert here.plugin.rank_domains(here.part, domains).tolist() == [0.0, 25.0]


# How good nodes are


def test_packing_of_normal_pods_can_be_switched_off(world: Any) -> None:
    assert world(*gang(n=1, topology=None), packs_normal_pods=False).rank() is None


def test_without_hypernodes_no_node_is_better_than_another(open_session: Any) -> None:
    objects = [queue("default"), node("n0"), node("n1"), *gang(n=1, topology=None)]
    assert World(open_session(objects, NetworkTopologyAware())).rank() is None


def test_without_weight_nothing_is_scored(world: Any) -> None:
    here = world(*gang(running=["n0"]), weight=0)
    here.ssn.topology.follow(here.part, here.tree.top)
    assert here.rank() is None


def test_what_is_not_requested_does_not_count(world: Any) -> None:
    """The old pod fills half of the cpu; the new one requests memory alone."""
    here = world(pod("old", cpu=4, node="n0"), *gang(n=1, cpu=None, memory="8Gi"))
    assert here.score("s0") == [50.0]
    assert world(*gang(n=1, cpu=None, memory="8Gi"), memory=0).score("s0") == [0.0]


def test_a_resource_that_a_domain_lacks_overflows_it(world: Any) -> None:
    job = gang(n=1, cpu=4)
    job[1]["spec"]["containers"][0]["resources"]["requests"]["example.com/chip"] = "1"
    fields = {"resources": ["example.com/chip"], "memory": 0}
    assert world(*job, **fields).score("s0", "g0") == [0.0, 0.0]


def test_resources_named_without_a_weight_weigh_one(open_session: Any) -> None:
    gpus = node("g0", cpu=4, resources={"nvidia.com/gpu": 4})
    job = gang(n=1, cpu=4)
    job[1]["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "1"
    plugin = NetworkTopologyAware(resources=["nvidia.com/gpu", "gone"], memory=0)
    here = World(open_session([*BASE, gpus, hyper_node("gpu", nodes=["g0"]), *job], plugin))
    assert here.score("gpu") == [100 * (1 + 1 / 4) / 2]


@pytest.mark.parametrize("weight", [1, 3])
def test_scores_of_nodes_follow_the_weight(world: Any, weight: int) -> None:
    here = world(*gang(n=1, running=["n2"]), weight=weight)
    here.ssn.topology.follow(here.part, here.tree.top)
    near = round(weight * (100 + 100 / 2), 6)
    assert here.rank() == [50.0 * weight, 50.0 * weight, near, near, 0.0, 0.0]
    domains = [here.tree.by_name[name] for name in ("s0", "s1")]
    assert here.plugin.rank_domains(here.part, domains).tolist() == [0.0, 50.0 * weight]


def test_with_one_tier_all_nodes_in_domains_are_equally_near(open_session: Any) -> None:
    flat = [queue("default"), *(node(f"n{i}", cpu=4) for i in range(3))]
    flat += [hyper_node("s0", nodes=["n0"]), hyper_node("s1", nodes=["n1"])]
    here = World(open_session([*flat, *gang(running=["n0"])], NetworkTopologyAware()))
    here.ssn.topology.follow(here.part, here.tree.top)
    found = here.rank()
    assert found[0] == max(found) > found[1] >= found[2]


@pytest.mark.parametrize(
    ("fading", "scored"), [(0.0, True), (0.8, True), (float("inf"), False), (float("nan"), False)]
)
def test_a_fading_that_makes_no_weights_scores_nothing(
    world: Any, fading: float, scored: bool
) -> None:
    here = world(*gang(n=1, topology=None), fading=fading)
    assert (here.rank() is not None) is scored


def test_finished_tasks_still_draw_their_job(world: Any) -> None:
    done = pod("done", group="g", cpu=1, node="n2", phase="Succeeded")
    here = world(*gang(n=3), done)
    domains = [here.tree.by_name[name] for name in ("s0", "s1")]
    assert here.plugin.rank_domains(here.part, domains).tolist() == [0.0, 25.0]
