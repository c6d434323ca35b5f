"""Counts of pods by term and domain, on random walks: always those of counting from scratch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pumice.api.meta import LabelSelector
from pumice.core.pod_terms import PodTerms, pod_terms
from pumice.core.shape_terms import ports_clash
from pumice.core.status import Status
from pumice.core.term_counts import Counter, SpreadCounter
from pumice.testing import node, pod
from pumice.testing.samples import snapshot_of

ZONE, HOST = "zone", "kubernetes.io/hostname"
ZONES = ("x", "x", "x", "y", "y", "z", "")
APPS = ("web", "db")
LIMITS = (0, 1)


def near(app: str, key: str, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def even(key: str, **more: Any) -> dict[str, Any]:
    rest = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"} | more
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "web"}}, **rest}


def wish(weight: int, app: str) -> dict[str, Any]:
    return {"weight": weight, "podAffinityTerm": near(app, ZONE)}


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
PORT = {"containerPort": 80, "hostPort": 8080}
SPECS: dict[str, dict[str, Any]] = {
    "silent": {},
    "far": {"affinity": {"podAntiAffinity": {REQUIRED: [near("web", ZONE), near("db", HOST)]}}},
    "quoting": {
        "affinity": {"podAntiAffinity": {REQUIRED: [near("web", ZONE, matchLabelKeys=["version"])]}}
    },
    "wishing": {
        "affinity": {
            "podAffinity": {PREFERRED: [wish(5, "db")]},
            "podAntiAffinity": {PREFERRED: [wish(3, "web")]},
        }
    },
    "even": {"topologySpreadConstraints": [even(ZONE), even(ZONE, minDomains=4), even(HOST)]},
    "port": {"containers": [{"name": "main", "image": "i", "ports": [PORT]}]},
}


def make_cluster() -> Any:
    made = [node(f"n{i}", labels={ZONE: zone} if zone else {}) for i, zone in enumerate(ZONES)]
    for i, name in enumerate((*SPECS, *SPECS, *SPECS)):
        labels = {"app": APPS[i % 2], "version": str(i % 3)} | ({"tier": "1"} if i % 4 == 0 else {})
        space = "default" if i % 5 else "team"
        where = f"n{i % 6}" if i % 3 == 0 else None
        each = pod(f"p{i}", namespace=space, labels=labels, spec=SPECS[name], node=where)
        if i == 3:
            each["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        made.append(each)
    snapshot = snapshot_of(made)
    snapshot.view_is_live = True
    return snapshot


class Recount:
    """One counter, and the same count from scratch."""

    def __init__(
        self,
        counter: Counter,
        key: str | None,
        meant: Callable[[int], bool],
        eligible: Any = None,
        min_domains: int = 1,
    ) -> None:
        self.counter, self.key, self.meant = counter, key, meant
        self.eligible = np.ones(len(ZONES), dtype=bool) if eligible is None else eligible
        self.min_domains = min_domains

    def compare(self, snapshot: Any) -> None:
        rows = np.arange(snapshot.nodes.n)
        counts = self.counts(snapshot)
        wanted = [counts.get(self.domain(snapshot, row), 0) for row in rows]
        assert self.counter.at(rows).tolist() == wanted
        assert self.counter.total == sum(counts.values())
        if isinstance(self.counter, SpreadCounter):
            assert self.counter.least == self.least(snapshot)

    def domain(self, snapshot: Any, row: int) -> Any:
        return row if self.key is None else snapshot.nodes.labels[row].get(self.key)

    def counts(self, snapshot: Any) -> dict[Any, int]:
        tasks, found = snapshot.tasks, dict[Any, int]()
        for task in range(tasks.n):
            row = int(tasks.node[task])
            if tasks.in_view[task] and self.eligible[row] and self.meant(task):
                domain = self.domain(snapshot, row)
                if domain is not None:
                    found[domain] = found.get(domain, 0) + 1
        return found

    def least(self, snapshot: Any) -> int:
        counts = self.counts(snapshot)
        domains = {self.domain(snapshot, row) for row in np.flatnonzero(self.eligible).tolist()} - {
            None
        }
        few = len(domains) < max(1, self.min_domains)
        return 0 if few else min(counts.get(domain, 0) for domain in domains)

    def answers(self, snapshot: Any) -> list[Any]:
        """Return, node by node, what a filter reads of this count."""
        at, total = self.counter.at(np.arange(snapshot.nodes.n)), self.counter.total
        if isinstance(self.counter, SpreadCounter):
            return [tuple(count - self.counter.least > limit for limit in LIMITS) for count in at]
        some = total > 0 if self.counter.totals else None
        return [(count > 0 if self.counter.edges else None, some) for count in at]


def labels_of(snapshot: Any, task: int) -> Any:
    return snapshot.label_classes[snapshot.tasks.label_class[task]]


def recounts(snapshot: Any, terms: PodTerms) -> list[Recount]:
    """Ask for counts of every kind."""
    tasks, book = snapshot.tasks, terms.book

    def has(space: str, **labels: str) -> Callable[[int], bool]:
        def meant(task: int) -> bool:
            own_space, own = labels_of(snapshot, task)
            return bool(space == own_space and labels.items() <= own.items())

        return meant

    def stays(task: int) -> bool:
        leaving = tasks.status[task] == Status.RELEASING
        return not (leaving and tasks.pods[task].metadata.deletion_timestamp)

    def terms_of(task: int) -> Any:
        return book.of(snapshot.shapes[tasks.shape[task]], int(tasks.label_class[task]))

    space = frozenset({"default"})
    web, first = (
        book.matcher(space, None, LabelSelector(match_labels=wanted))
        for wanted in ({"app": "web"}, {"tier": "1"})
    )
    is_web, both = has("default", app="web"), has("default", app="web", tier="1")
    some = np.array([True, False, True, True, True, False, True])
    found = [
        Recount(terms.matching([web], ZONE), ZONE, is_web),
        Recount(terms.matching([web], None), None, is_web),
        Recount(terms.matching([web, first], ZONE), ZONE, both),
        Recount(terms.matching([web], ZONE, eligible=some), ZONE, is_web, some),
        Recount(terms.matching([web], ZONE, staying=True), ZONE, lambda t: is_web(t) and stays(t)),
        Recount(
            terms.holding(("1.2.3.4", "TCP", 8080)),
            None,
            lambda t: any(
                ports_clash(("1.2.3.4", "TCP", 8080), each)
                for each in (terms_of(t).ports if terms_of(t) else ())
            ),
        ),
    ]
    assert terms.matching([web], ZONE) is found[0].counter

    def owns(field: str, term: Any) -> Callable[[int], bool]:
        return lambda task: bool(terms_of(task)) and term in getattr(terms_of(task), field)

    found += [Recount(terms.owning(one), one.key, owns("anti", one)) for one in terms.anti]
    found += [
        Recount(terms.wishing(one), one[1].key, owns("preferred", one)) for one in terms.preferred
    ]
    evenly = next(s for s in snapshot.shapes if s.spec.topology_spread_constraints)
    constraints = present_terms(book.of(evenly, 0)).hard_spread
    for constraint, eligible in terms.eligible(evenly, constraints):
        for nodes in (eligible, eligible & some):
            counter = terms.spread(constraint, nodes)
            counter.limits.update(LIMITS)
            found.append(
                Recount(
                    counter,
                    constraint.key,
                    lambda t: has(evenly.namespace, app="web")(t) and stays(t),
                    nodes,
                    constraint.min_domains,
                )
            )
    return found


def present_terms(found: Any) -> Any:
    assert found is not None
    return found


class Walk:
    """Moves of a session, drawn at random."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.snapshot = make_cluster()
        self.marks: list[int] = []

    def step(self) -> set[int] | None:
        """Make a move; return the node that it changes, None after a roll-back."""
        snapshot, kind = self.snapshot, self.rng.integers(8)
        tasks = snapshot.tasks
        if kind == 0:
            self.marks.append(snapshot.journal.mark())
            return set()
        if kind == 1 and self.marks:
            snapshot.journal.rollback(self.marks.pop())
            return None
        status = {2: Status.PIPELINED, 3: Status.RUNNING}.get(int(kind), Status.PENDING)
        rows = np.flatnonzero(tasks.status[: tasks.n] == status)
        if not len(rows):
            return set()
        row, at = int(self.rng.choice(rows)), int(self.rng.integers(snapshot.nodes.n))
        if status == Status.PENDING:
            (snapshot.pipeline if kind == 4 else snapshot.place)(row, at)
        else:
            at = int(tasks.node[row])
            (snapshot.evict if kind == 3 else snapshot.unpipeline)(row)
        return {at}


@pytest.mark.parametrize("broad", [512, 1])
@pytest.mark.parametrize("seed", range(6))
def test_counts_on_a_walk_are_those_from_scratch_and_changed_answers_are_logged(
    seed: int, broad: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pumice.core.pod_terms._BROAD", broad)
    walk = Walk(seed)
    snapshot = walk.snapshot
    terms = pod_terms(snapshot)
    for _ in range(seed):  # counts may be asked for at any time
        walk.step()
    found = recounts(snapshot, terms)
    watched = found[seed % len(found)]
    watched.counter.edges, watched.counter.totals = seed % 2 == 0, seed % 3 == 0
    for _ in range(30):
        before = [each.answers(snapshot) for each in found]
        start = len(snapshot.journal.moved)
        moved = walk.step()
        for each in found:
            each.compare(snapshot)
        logged = {
            int(row) for rows in snapshot.journal.moved[start:] for row in np.atleast_1d(rows)
        }
        flipped = {
            row
            for each, old in zip(found, before, strict=True)
            for row, (one, two) in enumerate(zip(old, each.answers(snapshot), strict=True))
            if one != two
        }
        assert flipped <= logged
        if moved is not None:
            assert logged <= flipped | moved


@pytest.mark.parametrize(
    ("more", "want"),
    [
        ({}, ["a", "b"]),
        ({"nodeAffinityPolicy": "Ignore"}, ["a", "b", "c"]),
        ({"nodeTaintsPolicy": "Honor"}, ["a"]),
        ({"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}, ["a", "c"]),
    ],
)
def test_nodes_count_for_a_spread_as_its_policies_demand(more: Any, want: Any) -> None:
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    snapshot = snapshot_of(
        [
            node("a", labels={ZONE: "x", "disk": "ssd"}),
            node("b", labels={ZONE: "x", "disk": "ssd"}, taints=[taint]),
            node("c", labels={ZONE: "y"}),
            node("d", labels={"disk": "ssd"}),
            pod(
                "p",
                labels={"app": "web"},
                spec={
                    "nodeSelector": {"disk": "ssd"},
                    "topologySpreadConstraints": [even(ZONE, **more), even(HOST)],
                },
            ),
        ]
    )
    terms = pod_terms(snapshot)
    shape = snapshot.shapes[0]
    constraints = present_terms(terms.book.of(shape, 0)).hard_spread
    (_, mask), (_, plain) = terms.eligible(shape, constraints)
    assert [snapshot.nodes.names[row] for row in np.flatnonzero(mask)] == want
    assert [snapshot.nodes.names[row] for row in np.flatnonzero(plain)] == ["a", "b"]
    assert list(terms.eligible(shape, ())) == []
