"""predicates: host ports, affinity and anti-affinity between pods, hard topology spread."""

from typing import Any

import pytest

from pumice.framework.placing import Placing
from pumice.plugins.predicates import Predicates
from pumice.testing import node, pod, pod_group, queue

FITS = "fits"
NEAR = "node(s) didn't match pod affinity rules"
FAR = "node(s) didn't match pod anti-affinity rules"
OTHERS = "node(s) didn't satisfy existing pods anti-affinity rules"
NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
SKEW = "node(s) didn't match pod topology spread constraints"
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def term(app: Any, key: Any = HOST) -> Any:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def near(*terms: Any) -> Any:
    return {"affinity": {"podAffinity": {REQUIRED: list(terms)}}}


def far(*terms: Any) -> Any:
    return {"affinity": {"podAntiAffinity": {REQUIRED: list(terms)}}}


def spread(app: Any, key: str = "zone", skew: Any = 1, **more: Any) -> Any:
    selector = {"matchLabels": {"app": app}}
    constraint = {"topologyKey": key, "maxSkew": skew, "labelSelector": selector, **more}
    return {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule", **constraint}]}


def ports(*wanted: Any) -> Any:
    listed = [{"containerPort": 1, **port} for port in wanted]
    return {"containers": [{"name": "main", "ports": listed}]}


def app(name: Any, label: Any, **more: Any) -> Any:
    return pod(name, group="g", labels={"app": label}, **more)


NODES = [
    node("a", labels={"zone": "x"}),
    node("b", labels={"zone": "x"}),
    node("c", labels={"zone": "y"}),
    node("d"),
]


@pytest.fixture
def world(open_session: Any) -> Any:
    """Return a function that opens a session on nodes a, b (zone x), c (zone y), d (no zone)."""

    def opened(*pods: Any, nodes: Any = NODES, **switches: Any) -> Any:
        return World(
            open_session([queue("default"), pod_group("g"), *nodes, *pods], Predicates(**switches))
        )

    return opened


class World:
    """A session asked by pod names."""

    def __init__(self, ssn: Any) -> None:
        self.ssn = ssn
        self.statement = ssn.statement()

    def row(self, name: Any) -> Any:
        return self.ssn.snapshot.tasks.row_of[f"default/{name}"]

    def reported(self, name: Any, placing: Any = None) -> Any:
        """Return the reason of each node, '' where the pod fits."""
        placing = placing or self.ssn.placing
        verdict = placing.fit(self.ssn.task(self.row(name))).verdict.tolist()
        texts = [placing.reasons[code].text for code in verdict]
        return dict(zip(self.ssn.snapshot.nodes.names, texts, strict=True))

    def afresh(self, name: Any) -> Any:
        """Return the same from columns that were never cached."""
        placing = Placing(self.ssn.snapshot, self.ssn.hooks, seed=0)
        return self.reported(name, placing)

    def place(self, name: Any, on: Any) -> None:
        self.statement.place(self.row(name), self.ssn.snapshot.nodes.row_of[on])

    def evict(self, name: Any) -> None:
        self.statement.evict(self.row(name), "test")


def on(**reasons: Any) -> Any:
    return {"a": FITS, "b": FITS, "c": FITS, "d": FITS, **reasons}


class TestAffinity:
    def test_one_pod_must_meet_all_terms(self, world: Any) -> None:
        both = near(
            term("x", "zone"),
            {"topologyKey": "zone", "labelSelector": {"matchLabels": {"tier": "1"}}},
        )
        w = world(
            app("p", "y", spec=both),
            app("o", "x", node="a"),
            pod("t", group="g", labels={"tier": "1"}, node="b"),
            pod("both", group="g", labels={"app": "x", "tier": "1"}, node="c"),
        )
        assert on(a=NEAR, b=NEAR, d=NEAR) == w.reported("p")


class TestAntiAffinity:
    def test_other_namespaces_do_not_count_unless_named(self, world: Any) -> None:
        own = term("x")
        named = {**own, "namespaces": ["team"]}
        w = world(
            app("p", "y", spec=far(own)),
            app("q", "y", spec=far(named)),
            pod("o", namespace="team", labels={"app": "x"}, node="a"),
        )
        assert on() == w.reported("p")
        assert on(a=FAR) == w.reported("q")

    def test_pods_of_one_shape_are_reported_apart_by_their_labels(self, world: Any) -> None:
        w = world(app("p", "x"), app("q", "y"), app("o", "y", spec=far(term("x")), node="a"))
        assert on(a=OTHERS) == w.reported("p")
        assert on() == w.reported("q")


class TestSpread:
    def test_nodes_the_pod_may_not_use_make_no_domain_unless_reported_to(self, world: Any) -> None:
        selector = {"nodeSelector": {"zone": "x"}}
        w = world(
            app("p", "x", spec={**spread("x"), **selector}),
            app("q", "x", spec={**spread("x", nodeAffinityPolicy="Ignore"), **selector}),
            app("o", "x", node="a"),
        )
        assert {n: w.reported("p")[n] for n in "ab"} == {"a": FITS, "b": FITS}
        assert {n: w.reported("q")[n] for n in "ab"} == {"a": SKEW, "b": SKEW}

    def test_tainted_nodes_make_a_domain_unless_reported_not_to(self, world: Any) -> None:
        tainted = node("t", labels={"zone": "z"}, taints=[{"key": "k", "effect": "NoSchedule"}])
        nodes = [node("a", labels={"zone": "x"}), tainted]
        w = world(
            app("p", "x", spec=spread("x")),
            app("q", "x", spec=spread("x", nodeTaintsPolicy="Honor")),
            app("o", "x", node="a"),
            nodes=nodes,
        )
        assert [w.reported(name)["a"] for name in "pq"] == [SKEW, FITS]

    def test_quoted_labels_count_only_pods_of_the_same_value(self, world: Any) -> None:
        spec = spread("x", matchLabelKeys=["rev"])
        old = pod("o", group="g", labels={"app": "x", "rev": "1"}, node="a")
        news = [
            pod(n, group="g", labels={"app": "x", "rev": r}, spec=spec)
            for n, r in (("p", "1"), ("q", "2"))
        ]
        w = world(old, *news)
        assert on(a=SKEW, b=SKEW, d=NO_LABEL) == w.reported("p")
        assert on(d=NO_LABEL) == w.reported("q")

    def test_terminating_pods_do_not_count(self, world: Any) -> None:
        leaving = app("o", "x", node="a")
        leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        assert on(d=NO_LABEL) == world(app("p", "x", spec=spread("x")), leaving).reported("p")
