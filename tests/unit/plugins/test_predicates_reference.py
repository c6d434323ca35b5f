"""predicates agrees with a slow reference that looks at every pod on every node, move by move."""

from typing import Any

import numpy as np
import pytest

from pumice.plugins.predicates import Predicates
from pumice.testing import node, pod, pod_group, queue

HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
APPS = ("x", "y", "z")


class Reference:
    """Filters by the book: plain loops over manifests and who is where."""

    def __init__(self, nodes: Any, where: Any) -> None:
        self.labels = {each["metadata"]["name"]: each["metadata"]["labels"] for each in nodes}
        self.where = where  # pairs of pod and node name

    def fits(self, asking: Any, name: Any) -> Any:
        return (
            self.ports_are_free(asking, name)
            and self.is_near(asking, name)
            and self.is_far(asking, name)
            and self.is_let_near(asking, name)
            and self.is_spread(asking, name)
        )

    def domain(self, key: Any, name: Any) -> Any:
        return self.labels[name].get(key)

    def together(self, key: Any, one: Any, other: Any) -> Any:
        here = self.domain(key, one)
        return here is not None and here == self.domain(key, other)

    def ports_are_free(self, asking: Any, name: Any) -> bool:
        def held(each: Any) -> Any:
            return {p["hostPort"] for c in each["spec"]["containers"] for p in c.get("ports", ())}

        return not any(on == name and held(other) & held(asking) for other, on in self.where)

    def is_near(self, asking: Any, name: Any) -> Any:
        terms = terms_of(asking, "podAffinity")
        found = [
            (other, on) for other, on in self.where if all(means(asking, t, other) for t in terms)
        ]
        if not terms or any(self.domain(t["topologyKey"], name) is None for t in terms):
            return not terms
        placed = [t for t in terms for _, on in found if self.domain(t["topologyKey"], on)]
        if not placed and all(means(asking, t, asking) for t in terms):
            return True
        return all(any(self.together(t["topologyKey"], name, on) for _, on in found) for t in terms)

    def is_far(self, asking: Any, name: Any) -> bool:
        return not any(
            means(asking, t, other) and self.together(t["topologyKey"], name, on)
            for t in terms_of(asking, "podAntiAffinity")
            for other, on in self.where
        )

    def is_let_near(self, asking: Any, name: Any) -> bool:
        return not any(
            means(other, t, asking) and self.together(t["topologyKey"], name, on)
            for other, on in self.where
            for t in terms_of(other, "podAntiAffinity")
        )

    def is_spread(self, asking: Any, name: Any) -> bool:
        constraints = asking["spec"].get("topologySpreadConstraints", [])
        keys = [each["topologyKey"] for each in constraints]
        usable = [n for n in self.labels if all(self.domain(key, n) for key in keys)]
        for each in constraints:
            counts = {self.domain(each["topologyKey"], n): 0 for n in usable}
            for other, on in self.where:
                if on in usable and selected(each, other):
                    counts[self.domain(each["topologyKey"], on)] += 1
            least = min(counts.values(), default=0)
            if len(counts) < each.get("minDomains", 1):
                least = 0
            here = self.domain(each["topologyKey"], name)
            own = selected(each, asking)
            if here is None or counts.get(here, 0) + own - least > each["maxSkew"]:
                return False
        return True


def terms_of(each: Any, kind: Any) -> Any:
    return each["spec"].get("affinity", {}).get(kind, {}).get(REQUIRED, [])


def selected(holder: Any, other: Any) -> bool:
    wanted = holder["labelSelector"]["matchLabels"]["app"]
    return other["metadata"].get("labels", {}).get("app") == wanted


def means(owner: Any, term: Any, other: Any) -> Any:
    spaces = term.get("namespaces") or [owner["metadata"]["namespace"]]
    return other["metadata"]["namespace"] in spaces and selected(term, other)


class Scene:
    """A random cluster and a session on it."""

    def __init__(self, seed: Any, open_session: Any) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes = [
            node(f"n{i}", labels={"zone": f"z{i % 3}"} if i % 4 else {}, cpu=1000) for i in range(8)
        ]
        pods = [self.some_pod(i) for i in range(45)]
        self.pods = {f"{p['metadata']['namespace']}/{p['metadata']['name']}": p for p in pods}
        groups = [pod_group("g", namespace=space) for space in ("default", "team")]
        self.ssn = open_session([queue("default"), *groups, *self.nodes, *pods], Predicates())
        self.tasks = self.ssn.snapshot.tasks

    def some_pod(self, i: Any) -> Any:
        spec: dict[str, Any] = {"containers": [{"name": "main", "ports": self.some_ports()}]}
        affinity = {
            kind: {REQUIRED: [self.some_term() for _ in range(self.rng.integers(1, 3))]}
            for kind in ("podAffinity", "podAntiAffinity")
            if self.rng.random() < 0.3
        }
        if affinity:
            spec["affinity"] = affinity
        if self.rng.random() < 0.3:
            spec["topologySpreadConstraints"] = [
                {
                    **self.some_term(),
                    "maxSkew": int(self.rng.integers(1, 4)),
                    "minDomains": int(self.rng.integers(1, 5)),
                    "whenUnsatisfiable": "DoNotSchedule",
                }
                for _ in range(self.rng.integers(1, 3))
            ]
            for each in spec["topologySpreadConstraints"]:
                each.pop("namespaces", None)
        return pod(
            f"p{i}",
            namespace=str(self.rng.choice(["default", "default", "team"])),
            group="g",
            labels={"app": str(self.rng.choice(APPS))},
            node=f"n{i % 8}" if i < 12 else None,
            spec=spec,
        )

    def some_ports(self) -> Any:
        if self.rng.random() < 0.8:
            return []
        return [{"containerPort": 1, "hostPort": int(self.rng.integers(80, 83))}]

    def some_term(self) -> Any:
        term = {
            "topologyKey": str(self.rng.choice([HOST, "zone"])),
            "labelSelector": {"matchLabels": {"app": str(self.rng.choice(APPS))}},
        }
        if self.rng.random() < 0.2:
            term["namespaces"] = ["team", "default"]
        return term

    def rows(self, status: Any) -> Any:
        return [
            row
            for key, row in self.tasks.row_of.items()
            if self.ssn.task(row).status.label == status
        ]

    def check(self) -> None:
        """Compare all nodes for some waiting pods."""
        names = self.ssn.snapshot.nodes.names
        where = [
            (self.pods[key], names[self.tasks.node[row]])
            for key, row in self.tasks.row_of.items()
            if self.tasks.in_view[row]
        ]
        # pods of other namespaces are no part of a spread, whatever their labels
        for row in self.rng.permutation(self.rows("Pending"))[:8].tolist():
            asking = self.pods[self.tasks.keys[row]]
            reference = Reference(self.nodes, where)
            own = asking["metadata"]["namespace"]
            alone = Reference(
                self.nodes, [p for p in where if p[0]["metadata"]["namespace"] == own]
            )
            reference.is_spread = alone.is_spread  # type: ignore[method-assign]
            want = {name: reference.fits(asking, name) for name in names}
            got = (self.ssn.placing.fit(self.ssn.task(row)).verdict == 0).tolist()
            assert want == dict(zip(names, got, strict=True)), self.tasks.keys[row]


@pytest.mark.parametrize("seed", range(12))
def test_filters_agree_with_the_reference_after_every_move(open_session: Any, seed: Any) -> None:
    scene = Scene(seed, open_session)
    statement = scene.ssn.statement()
    scene.check()
    for _ in range(6):
        mark = statement.checkpoint()
        for _ in range(4):
            waiting, running = scene.rows("Pending"), scene.rows("Running")
            if scene.rng.random() < 0.7 and waiting:
                row = waiting[int(scene.rng.integers(len(waiting)))]
                statement.place(row, int(scene.rng.integers(8)))
            elif running:
                statement.evict(running[int(scene.rng.integers(len(running)))], "test")
            scene.check()
        if scene.rng.random() < 0.5:
            statement.rollback(mark)
            scene.check()
