"""nodeorder: candidates compared with each other, by taints, labels, neighbours and spread."""

import math
from typing import Any

import numpy as np
import pytest

from pumice.core.views import Nodes
from pumice.plugins.nodeorder import NodeOrder
from pumice.plugins.predicates import Predicates
from pumice.testing import node, pod, pod_group, queue

HOST = "kubernetes.io/hostname"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
OFF: dict[str, Any] = dict.fromkeys(
    ("least", "most", "node_affinity", "pod_affinity", "balanced", "taints", "images", "spread"), 0
)


@pytest.fixture
def ranks(open_session: Any) -> Any:
    """Return a function that ranks (some) nodes for pod p; all weights are 0 unless given."""

    def asked(objects: Any, rows: Any = None, **weights: Any) -> Any:
        world = [queue("default"), pod_group("g"), *objects]
        ssn = open_session(world, NodeOrder(**{**OFF, **weights}), Predicates())
        return ranked(ssn, rows)

    return asked


def ranked(ssn: Any, rows: Any = None, name: str = "p") -> Any:
    task = ssn.task(ssn.snapshot.tasks.row_of[f"default/{name}"])
    chosen = np.arange(ssn.snapshot.nodes.n) if rows is None else np.asarray(rows)
    column = ssn.plugins[0].rank_nodes(task, Nodes(ssn.snapshot, chosen))
    return None if column is None else column.tolist()


def waiting(**spec: Any) -> Any:
    return pod("p", group="g", labels={"app": "x"}, spec=spec)


def wish(weight: Any, app: Any, key: str = "zone") -> Any:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"weight": weight, "podAffinityTerm": term}


def near(*wishes: Any) -> Any:
    return {"podAffinity": {PREFERRED: list(wishes)}}


def far(*wishes: Any) -> Any:
    return {"podAntiAffinity": {PREFERRED: list(wishes)}}


def app(name: Any, label: Any, on: Any, **spec: Any) -> Any:
    return pod(name, group="g", labels={"app": label}, node=on, spec=spec)


ZONES = [
    node("a", labels={"zone": "x"}),
    node("b", labels={"zone": "y"}),
    node("c", labels={"zone": "y"}),
]


def test_nothing_is_compared_where_nothing_can_differ(ranks: Any) -> None:
    weights = {"node_affinity": 1, "pod_affinity": 1, "taints": 1, "spread": 1}
    assert ranks([*ZONES, waiting(), app("o", "x", "a")], **weights) is None


class TestTaints:
    SOFT = tuple({"key": f"k{i}", "effect": "PreferNoSchedule"} for i in range(3))

    def test_fewer_untolerated_taints_are_better(self, ranks: Any) -> None:
        nodes = [node(f"n{i}", taints=self.SOFT[:i]) for i in range(4)]
        assert ranks([*nodes, waiting()], taints=3) == [300, 3 * (100 - 33), 3 * (100 - 66), 0]

    def test_the_worst_candidate_sets_the_scale(self, ranks: Any) -> None:
        nodes = [node(f"n{i}", taints=self.SOFT[:i]) for i in range(4)]
        assert ranks([*nodes, waiting()], rows=[0, 1], taints=1) == [100, 0]

    def test_a_tolerated_taint_does_not_count(self, ranks: Any) -> None:
        tolerations = [{"key": "k0", "operator": "Exists"}]
        nodes = [node("a", taints=self.SOFT[:1]), node("b", taints=self.SOFT[:2])]
        assert ranks([*nodes, waiting(tolerations=tolerations)], taints=1) == [100, 0]


class TestNodeAffinity:
    def test_weights_of_met_wishes_add_up_and_the_best_sets_the_scale(self, ranks: Any) -> None:
        def wanted(key: Any, weight: Any) -> Any:
            condition = {"key": key, "operator": "Exists"}
            return {"weight": weight, "preference": {"matchExpressions": [condition]}}

        nodes = [node("a", labels={"s": "", "t": ""}), node("b", labels={"t": ""}), node("c")]
        affinity = {"nodeAffinity": {PREFERRED: [wanted("s", 1), wanted("t", 2)]}}
        objects = [*nodes, waiting(affinity=affinity)]
        assert ranks(objects, node_affinity=2) == [200, 2 * 66, 0]
        assert ranks(objects, rows=[1, 2], node_affinity=1) == [100, 0]
        assert ranks(objects, rows=[2], node_affinity=1) is None


class TestNeighbours:
    def test_own_wishes_draw_to_pods_and_away_from_them(self, ranks: Any) -> None:
        others = [app("o1", "y", "a"), app("o2", "z", "b")]
        nodes = [*ZONES, node("d")]
        spec = {"affinity": {**near(wish(10, "y")), **far(wish(5, "z"))}}
        assert ranks([*nodes, *others, waiting(**spec)], pod_affinity=1) == [
            100,
            0,
            0,
            100 * 5 // 15,
        ]

    def test_wishes_of_others_count_too(self, ranks: Any) -> None:
        others = [app("o", "y", "b", affinity=near(wish(3, "x")))]
        assert ranks([*ZONES, *others, waiting()], pod_affinity=2) == [0, 200, 200]

    def test_wishes_of_others_count_for_the_pods_they_name_alone(self, open_session: Any) -> None:
        """Pods that differ in their labels alone are told apart, whoever is asked first."""
        wishing = app("o", "y", "a", affinity=near(wish(10, "x")))
        pods = [pod(name, group="g", labels={"app": name}) for name in ("w", "x", "z")]
        world = [queue("default"), pod_group("g"), *ZONES, wishing, *pods]
        ssn = open_session(world, NodeOrder(**{**OFF, "pod_affinity": 1}), Predicates())
        answers = [ranked(ssn, name=name) for name in ("w", "x", "z")]
        assert answers == [None, [100, 0, 0], None]

    def test_required_affinity_of_others_does_not_count(self, ranks: Any) -> None:
        term = wish(1, "x")["podAffinityTerm"]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        others = [app("o", "y", "b", affinity={"podAffinity": required})]
        assert ranks([*ZONES, *others, waiting()], pod_affinity=1) is None

    def test_a_pod_placed_in_this_session_makes_its_wishes_known(self, open_session: Any) -> None:
        fan = pod("fan", group="g", labels={"app": "y"}, spec={"affinity": far(wish(3, "x"))})
        world = [queue("default"), pod_group("g"), *ZONES, waiting(), fan]
        ssn = open_session(world, NodeOrder(**{**OFF, "pod_affinity": 1}), Predicates())
        assert ranked(ssn) is None
        statement = ssn.statement()
        statement.place(ssn.snapshot.tasks.row_of["default/fan"], 1)
        assert ranked(ssn) == [100, 0, 0]
        statement.discard()
        assert ranked(ssn) is None


class TestSpread:
    @staticmethod
    def constraint(key: str = "zone", skew: Any = 1, **more: Any) -> Any:
        return {
            "topologyKey": key,
            "maxSkew": skew,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "x"}},
            **more,
        }

    @staticmethod
    def turned(raw: Any) -> Any:
        raw = [math.floor(each + 0.5) for each in raw]
        return [100 * (max(raw) + min(raw) - each) // max(raw) for each in raw]

    def test_fewer_pods_in_the_zone_are_better(self, ranks: Any) -> None:
        others = [app("o1", "x", "b"), app("o2", "x", "c"), app("o3", "x", "a")]
        spec = {"topologySpreadConstraints": [self.constraint()]}
        scale = math.log(4)
        want = self.turned([scale, 2 * scale, 2 * scale])
        assert want == ranks([*ZONES, *others, waiting(**spec)], spread=1)

    def test_hosts_are_counted_one_by_one_and_constraints_add_up(self, ranks: Any) -> None:
        others = [app("o1", "x", "b"), app("o2", "x", "b")]
        constraints = [self.constraint(), self.constraint(HOST, skew=3)]
        zones, hosts = math.log(2 + 2), math.log(3 + 2)
        want = self.turned([2, 2 * zones + 2 * hosts + 2, 2 * zones + 2])
        objects = [*ZONES, *others, waiting(topologySpreadConstraints=constraints)]
        assert [2 * each for each in want] == ranks(objects, spread=2)

    def test_nothing_to_spread_from_is_as_good_everywhere(self, ranks: Any) -> None:
        spec = {"topologySpreadConstraints": [self.constraint()]}
        assert ranks([*ZONES, waiting(**spec)], spread=1) == [100, 100, 100]

    def test_a_node_without_the_label_gets_nothing(self, ranks: Any) -> None:
        spec = {"topologySpreadConstraints": [self.constraint()]}
        assert ranks([*ZONES, node("d"), waiting(**spec)], spread=1) == [100, 100, 100, 0]

    def test_only_domains_of_candidates_set_the_scale(self, ranks: Any) -> None:
        others = [app("o1", "x", "b"), app("o2", "x", "c")]
        spec = {"topologySpreadConstraints": [self.constraint(skew=2)]}
        scale = math.log(1 + 2)
        want = self.turned([2 * scale + 1, 2 * scale + 1])
        assert want == ranks([*ZONES, *others, waiting(**spec)], rows=[1, 2], spread=1)

    def test_hard_constraints_are_no_matter_of_score(self, ranks: Any) -> None:
        hard = self.constraint(whenUnsatisfiable="DoNotSchedule")
        assert ranks([*ZONES, waiting(topologySpreadConstraints=[hard])], spread=1) is None


def test_soft_spread_over_a_label_that_no_node_has_ranks_nobody(open_session: Any) -> None:
    soft: dict[str, Any] = {
        "topologyKey": "rack",
        "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway",
    }
    soft["labelSelector"] = {"matchLabels": {"app": "x"}}
    objects = [node("a"), node("b"), waiting(topologySpreadConstraints=[soft])]
    plugins = NodeOrder(**{**OFF, "spread": 2}), Predicates()
    ssn = open_session([queue("default"), pod_group("g"), *objects], *plugins)
    assert ranked(ssn) is None
    task = ssn.task(0)
    assert ssn.placing.choose(task, ssn.placing.fit(task)) is not None
    assert ssn.failures.lines() == []


def test_pods_are_told_apart_by_the_wishes_of_others(open_session: Any) -> None:
    nodes = [node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"})]
    wishing = app("o", "x", "a", affinity=near(wish(1, "y")))
    pods = [app("p", "y", None), app("q", "z", None)]
    world = [queue("default"), pod_group("g"), *nodes, wishing, *pods]

    def varied(**weights: Any) -> Any:
        ssn = open_session(world, NodeOrder(**{**OFF, **weights}), Predicates())
        rows = ssn.snapshot.tasks.row_of
        return [ssn.plugins[0].vary_by(ssn.task(rows[f"default/{name}"])) for name in "pq"]

    about_p, about_q = varied(pod_affinity=1)
    assert about_p
    assert about_q is None
    assert varied(spread=1) == [None, None]


def test_nodes_may_differ_if_there_is_a_rank(open_session: Any) -> None:
    def may(*others: Any, **spec: Any) -> Any:
        nodes = [node("a", taints=[{"key": "k", "effect": "PreferNoSchedule"}]), node("b")]
        world = [queue("default"), pod_group("g"), *nodes, waiting(**spec), *others]
        ssn = open_session(world, NodeOrder(**{**OFF, "taints": 1}), Predicates())
        return ssn.plugins[0].may_rank(ssn.task(ssn.snapshot.tasks.row_of["default/p"]))

    assert may() is True
    tolerant = {"tolerations": [{"operator": "Exists"}]}
    assert may(**tolerant) is False
    assert may(app("o", "x", "a", affinity=near(wish(1, "y"))), **tolerant) is False


@pytest.mark.parametrize(
    ("taints", "want"), [([0, 1, 2], [100, 50, 0]), ([1, 1], [0, 0]), ([0, 0], None)]
)
def test_taints_are_scaled_by_the_worst_candidate(ranks: Any, taints: Any, want: Any) -> None:
    nodes = [
        node(f"n{i}", taints=[{"key": f"k{j}", "effect": "PreferNoSchedule"} for j in range(n)])
        for i, n in enumerate(taints)
    ]
    found = ranks([*nodes, waiting()], taints=2)
    assert found == (None if want is None else [2 * each for each in want])


@pytest.mark.parametrize("skew", [1, 3])
def test_the_allowed_skew_counts_for_every_domain(ranks: Any, skew: int) -> None:
    """Two zones with three and one pods: scale log(2 + 2)."""
    nodes = [node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"})]
    there = [app(f"o{i}", "x", "a") for i in range(3)] + [app("o3", "x", "b")]
    constraint = {
        "maxSkew": skew,
        "topologyKey": "zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    found = ranks([*nodes, *there, waiting(topologySpreadConstraints=[constraint])], spread=1)
    raw = [math.floor(n * math.log(4) + skew - 1 + 0.5) for n in (3, 1)]
    assert found == [100 * (max(raw) + min(raw) - each) // max(raw) for each in raw]
