"""Counts of pods by term and domain follow the view, and cost nothing where unused."""

from typing import Any

import numpy as np
import pytest

from pumice.api.meta import LabelSelector
from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.pod_terms import pod_terms
from pumice.core.shape_terms import ANY_IP, ports_clash
from pumice.core.snapshot import Snapshot
from pumice.testing import node, pod
from pumice.testing.samples import snapshot_of

ZONE = "zone"


def term(app: Any, key: Any = ZONE, **more: Any) -> Any:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def far_from(*terms: Any) -> Any:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}
    return {"affinity": {"podAntiAffinity": required}}


def cluster(*pods: Any, zones: Any = ("x", "x", "y")) -> Any:
    nodes = [node(f"n{i}", labels={ZONE: zone} if zone else {}) for i, zone in enumerate(zones)]
    snapshot = snapshot_of([*nodes, *pods])
    snapshot.view_is_live = True
    return snapshot


def speaker(name: str = "speaker", **more: Any) -> Any:
    return pod(name, labels={"app": "web"}, spec=far_from(term("web")), **more)


def matcher_of(terms: Any, app: Any) -> Any:
    wanted = LabelSelector(match_labels={"app": app})
    return terms.book.matcher(frozenset({"default"}), None, wanted)


def counts(counter: Any, snapshot: Any) -> Any:
    return counter.at(np.arange(snapshot.nodes.n)).tolist()


def test_nobody_watches_moves_where_no_pod_speaks_of_others() -> None:
    snapshot = cluster(pod("a", labels={"app": "web"}))
    assert not pod_terms(snapshot).speaking
    assert not snapshot.view_watchers


def test_pods_of_all_nodes_in_a_domain_are_counted_together() -> None:
    snapshot = cluster(
        speaker(),
        pod("a", labels={"app": "web"}, node="n0"),
        pod("b", labels={"app": "web"}, node="n1"),
        pod("c", labels={"app": "db"}, node="n2"),
    )
    terms = pod_terms(snapshot)
    assert counts(terms.matching([matcher_of(terms, "web")], ZONE), snapshot) == [2, 2, 0]


def test_a_node_without_the_label_is_in_no_domain() -> None:
    snapshot = cluster(speaker(), pod("a", labels={"app": "web"}, node="n1"), zones=("x", "", "y"))
    terms = pod_terms(snapshot)
    counter = terms.matching([matcher_of(terms, "web")], ZONE)
    assert counts(counter, snapshot) == [0, 0, 0]
    assert counter.total == 0


def test_all_matchers_must_mean_a_pod() -> None:
    snapshot = cluster(
        speaker(),
        pod("a", labels={"app": "web"}, node="n0"),
        pod("b", labels={"app": "web", "tier": "1"}, node="n2"),
    )
    terms = pod_terms(snapshot)
    second = terms.book.matcher(
        frozenset({"default"}), None, LabelSelector(match_labels={"tier": "1"})
    )
    both = terms.matching([matcher_of(terms, "web"), second], ZONE)
    assert counts(both, snapshot) == [0, 0, 1]


def test_counts_follow_moves_and_roll_back_with_them() -> None:
    snapshot = cluster(speaker(), pod("a", labels={"app": "web"}, node="n2"))
    terms = pod_terms(snapshot)
    counter = terms.matching([matcher_of(terms, "web")], ZONE)
    tasks, mark = snapshot.tasks.row_of, snapshot.journal.mark()
    snapshot.place(tasks["default/speaker"], 0)
    snapshot.evict(tasks["default/a"])
    assert counts(counter, snapshot) == [1, 1, 0]
    snapshot.journal.rollback(mark)
    assert counts(counter, snapshot) == [0, 0, 1]


def test_a_count_made_after_a_move_is_right_when_the_move_is_taken_back() -> None:
    snapshot = cluster(speaker(), pod("a", labels={"app": "web"}, node="n2"))
    terms = pod_terms(snapshot)
    mark = snapshot.journal.mark()
    snapshot.place(snapshot.tasks.row_of["default/speaker"], 0)
    counter = terms.matching([matcher_of(terms, "web")], ZONE)
    assert counts(counter, snapshot) == [1, 1, 1]
    snapshot.journal.rollback(mark)
    assert counts(counter, snapshot) == [0, 0, 1]


def test_only_pods_on_eligible_nodes_count() -> None:
    snapshot = cluster(
        speaker(),
        pod("a", labels={"app": "web"}, node="n0"),
        pod("b", labels={"app": "web"}, node="n1"),
    )
    terms = pod_terms(snapshot)
    eligible = np.array([True, False, True])
    counter = terms.matching([matcher_of(terms, "web")], ZONE, eligible=eligible)
    assert counts(counter, snapshot) == [1, 1, 0]


def test_terminating_pods_are_left_out_of_counts_of_those_that_stay() -> None:
    leaving = pod("a", labels={"app": "web"}, node="n0")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    snapshot = cluster(speaker(), leaving)
    terms = pod_terms(snapshot)
    matcher = matcher_of(terms, "web")
    assert counts(terms.matching([matcher], ZONE), snapshot) == [1, 1, 0]
    assert counts(terms.matching([matcher], ZONE, staying=True), snapshot) == [0, 0, 0]


def test_owners_of_a_term_are_counted_where_they_are() -> None:
    snapshot = cluster(speaker("a", node="n0"), speaker("b", node="n2"), speaker("c"))
    terms = pod_terms(snapshot)
    (anti,) = terms.anti
    counter = terms.owning(anti)
    assert counts(counter, snapshot) == [1, 1, 1]
    snapshot.place(snapshot.tasks.row_of["default/c"], 1)
    assert counts(counter, snapshot) == [2, 2, 1]


def test_terms_bind_the_label_classes_they_mean() -> None:
    snapshot = cluster(speaker("a", node="n0"), pod("b", labels={"app": "db"}))
    terms = pod_terms(snapshot)
    classes = snapshot.tasks.label_class
    rows = snapshot.tasks.row_of
    assert list(terms.anti) == terms.binding(int(classes[rows["default/a"]]))[0]
    assert terms.binding(int(classes[rows["default/b"]]))[0] == []


def test_quoted_labels_make_a_term_of_their_own_for_each_value() -> None:
    quoting = far_from(term("web", matchLabelKeys=["version"]))
    snapshot = cluster(
        *(
            pod(f"p{i}", labels={"app": "web", "version": str(i)}, spec=quoting, node=f"n{i}")
            for i in range(3)
        )
    )
    terms = pod_terms(snapshot)
    assert len(terms.anti) == 3
    bound = terms.binding(int(snapshot.tasks.label_class[snapshot.tasks.row_of["default/p2"]]))[0]
    assert counts(terms.owning(bound[0]), snapshot) == [0, 0, 1]


@pytest.mark.parametrize(
    ("namespaces", "selector", "want"),
    [
        ([], None, {"default"}),
        (["team"], None, {"team"}),
        (["team"], {"matchLabels": {"kind": "x"}}, {"team", "other"}),
        ([], {}, {"default", "team", "other"}),
    ],
)
def test_a_term_names_namespaces_or_selects_them(namespaces: Any, selector: Any, want: Any) -> None:
    own = term("web", namespaces=namespaces)
    if selector is not None:
        own["namespaceSelector"] = selector
    other: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
    other["metadata"]["labels"] = {"kind": "x"}
    spaces = ("default", "team", "other")
    snapshot = snapshot_of(
        [
            other,
            node("n"),
            pod("speaker", labels={"app": "web"}, spec=far_from(own)),
            *(pod("p", namespace=space, labels={"app": "web"}) for space in spaces),
        ]
    )
    terms = pod_terms(snapshot)
    bound = {
        space
        for space in spaces
        if terms.binding(int(snapshot.tasks.label_class[snapshot.tasks.row_of[f"{space}/p"]]))[0]
    }
    assert want == bound


def test_selected_namespaces_are_those_of_the_current_session() -> None:
    own = term("web", namespaceSelector={"matchLabels": {"kind": "x"}})
    world = [
        node("n"),
        pod("speaker", labels={"app": "web"}, spec=far_from(own)),
        pod("p", namespace="other", labels={"app": "web"}),
    ]
    ingest = Ingest(Snapshot())
    snapshot = ingest.load(from_manifest(each) for each in world)
    bound = []
    for kind in ("x", "y", "x"):
        metadata = {"name": "other", "labels": {"kind": kind}}
        ingest.load(
            [from_manifest({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})]
        )
        row = snapshot.tasks.row_of["other/p"]
        terms = pod_terms(snapshot).binding(int(snapshot.tasks.label_class[row]))[0]
        bound.append(len(terms))
        snapshot.release_session()
    assert bound == [1, 0, 1]


def test_only_rows_of_a_domain_whose_answer_flips_are_logged() -> None:
    snapshot = cluster(speaker("a"), speaker("b"), zones=("x", "x", "x", "y"))
    terms = pod_terms(snapshot)
    counter = terms.matching([matcher_of(terms, "web")], ZONE)
    counter.edges = True
    moved, rows = snapshot.journal.moved, snapshot.tasks.row_of
    snapshot.place(rows["default/a"], 0)
    assert moved[-1].tolist() == [0, 1, 2]
    before = len(moved)
    snapshot.place(rows["default/b"], 1)
    assert moved[before:] == [1]


@pytest.mark.parametrize(
    ("other", "want"),
    [
        ((ANY_IP, "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), True),
        (("10.0.0.2", "TCP", 80), False),
        (("10.0.0.1", "UDP", 80), False),
        (("10.0.0.1", "TCP", 81), False),
    ],
)
def test_host_ports_clash_by_number_protocol_and_address(other: Any, want: bool) -> None:
    assert want == ports_clash(("10.0.0.1", "TCP", 80), other)
    assert want == ports_clash(other, ("10.0.0.1", "TCP", 80))
