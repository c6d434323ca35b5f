"""Selectors, node selectors and tolerations mean what they mean to Kubernetes."""

from typing import Any

import numpy as np
import pytest

from pumice.api.meta import LabelSelector, LabelSelectorRequirement
from pumice.api.nodes import Taint
from pumice.api.pods import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodSpec,
    Toleration,
)
from pumice.core.labels import node_labels, selects, selects_node, tolerates, untolerated
from pumice.testing import node
from pumice.testing.samples import snapshot_of
from tests.present import present


def condition(key: Any, operator: Any, *values: Any) -> Any:
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


def demand(key: Any, operator: Any, *values: Any) -> Any:
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


@pytest.fixture
def cluster() -> Any:
    return snapshot_of(
        [
            node("a", labels={"zone": "z1", "rank": "7"}),
            node("b", labels={"zone": "z2", "rank": "-2"}),
            node("c", labels={"rank": "high"}),
        ]
    )


def names(snapshot: Any, mask: Any) -> Any:
    return [snapshot.nodes.names[i] for i in np.flatnonzero(mask)]


class TestSelects:
    def test_no_selector_matches_nothing_and_an_empty_one_everything(self) -> None:
        assert [selects(None, {"a": "1"}), selects(LabelSelector(), {"a": "1"})] == [False, True]

    @pytest.mark.parametrize(
        ("operator", "values", "want"),
        [
            ("In", ("1", "2"), [True, False, False]),
            ("NotIn", ("1", "2"), [False, True, True]),
            ("Exists", (), [True, True, False]),
            ("DoesNotExist", (), [False, False, True]),
        ],
    )
    def test_operators_treat_a_missing_label_as_kubernetes_does(
        self, operator: str, values: Any, want: Any
    ) -> None:
        selector = LabelSelector(match_expressions=(condition("a", operator, *values),))
        assert want == [selects(selector, labels) for labels in ({"a": "1"}, {"a": "3"}, {})]

    def test_all_conditions_must_hold(self) -> None:
        selector = LabelSelector(
            match_labels={"a": "1"}, match_expressions=(condition("b", "Exists"),)
        )
        assert selects(selector, {"a": "1", "b": ""})
        assert not selects(selector, {"a": "1"})
        assert not selects(selector, {"b": ""})

    def test_a_condition_that_makes_no_sense_matches_nothing(self) -> None:
        selector = LabelSelector(match_expressions=(condition("a", "NotIn"),))
        assert not selects(selector, {})


class TestTolerates:
    TAINT = Taint(key="dedicated", value="batch", effect="NoSchedule")

    @pytest.mark.parametrize(
        ("toleration", "want"),
        [
            (Toleration(key="dedicated", value="batch"), True),
            (Toleration(key="dedicated", value="web"), False),
            (Toleration(key="dedicated", operator="Exists"), True),
            (Toleration(operator="Exists"), True),
            (Toleration(operator="Exists", effect="NoExecute"), False),
            (Toleration(key="other", operator="Exists"), False),
            (Toleration(key="dedicated", operator="Exists", effect="NoExecute"), False),
            (Toleration(key="other", operator="Equal", value="batch"), False),
            (Toleration(value="batch"), True),
            (Toleration(key="dedicated", operator="Gt", value="batch"), False),
            (
                Toleration(key="dedicated", operator="Equal", value="batch", effect="NoSchedule"),
                True,
            ),
        ],
    )
    def test_key_value_and_effect_must_cover_the_taint(self, toleration: Any, want: bool) -> None:
        assert want == tolerates((toleration,), self.TAINT)

    def test_untolerated_taints_are_counted_by_effect(self) -> None:
        snapshot = snapshot_of(
            [
                node(
                    "a",
                    taints=[
                        {"key": "x", "effect": "PreferNoSchedule"},
                        {"key": "y", "effect": "NoExecute"},
                    ],
                ),
                node("b"),
            ]
        )
        spec = PodSpec(tolerations=(Toleration(key="y", operator="Exists"),))
        assert present(untolerated(snapshot, spec, ("PreferNoSchedule",))).tolist() == [1, 0]
        assert untolerated(snapshot, spec, ("NoExecute",)) is None
        both = untolerated(snapshot, PodSpec(), ("NoExecute", "PreferNoSchedule"))
        assert present(both).tolist() == [2, 0]


class TestNodeLabels:
    @pytest.mark.parametrize(
        ("requirement", "want"),
        [
            (demand("zone", "In", "z1", "z9"), ["a"]),
            (demand("zone", "NotIn", "z1"), ["b", "c"]),
            (demand("zone", "Exists"), ["a", "b"]),
            (demand("zone", "DoesNotExist"), ["c"]),
            (demand("rank", "Gt", "-3"), ["a", "b"]),
            (demand("rank", "Lt", "7"), ["b"]),
            (demand("zone", "In"), []),
            (demand("rank", "Gt", "x"), []),
            (demand("rank", "Lt", "9223372036854775807"), ["a", "b"]),
            (demand("rank", "Lt", "9223372036854775808"), []),
            (demand("rank", "Lt", "9" * 5000), []),
            (demand("rank", "Gt", "-" + "9" * 5000), []),
            (demand("rank", "Lt", "0" * 5000 + "7"), ["b"]),
            (demand("rank", "Gt", "-9223372036854775808"), ["a", "b"]),
            (demand("rank", "Gt", "-9223372036854775809"), []),
            (demand("rank", "Gt", "+6"), ["a"]),
            (demand("rank", "Gt", "7"), []),
            (demand("rank", "Gt", "1", "2"), []),
            (demand("rank", "Gt"), []),
            (demand("zone", "Exists", "z1"), []),
            (demand("zone", "NotIn"), []),
        ],
    )
    def test_a_condition_is_tried_on_every_node(
        self, cluster: Any, requirement: Any, want: Any
    ) -> None:
        term = NodeSelectorTerm(match_expressions=(requirement,))
        assert want == names(cluster, node_labels(cluster).matching(term))

    @pytest.mark.parametrize(
        ("labels", "fields", "want"),
        [
            ((demand("zone", "In", "z1", "z2"),), (), ["a", "b"]),
            ((demand("zone", "In"),), (), []),
            ((demand("zone", "Exists"), demand("rank", "Gt", "0")), (), ["a"]),
            ((), (demand("metadata.name", "In", "b"),), ["b"]),
            ((), (demand("metadata.name", "NotIn", "b"),), ["a", "c"]),
            ((), (demand("metadata.name", "In", "a", "b"),), []),
            ((), (demand("metadata.name", "Exists", "a"),), []),
            ((), (demand("metadata.uid", "In", "b"),), []),
            ((), (demand("metadata.uid", "NotIn", "b"),), ["a", "b", "c"]),
            ((demand("zone", "Exists"),), (demand("metadata.name", "NotIn", "b"),), ["a"]),
            ((), (), []),
        ],
    )
    def test_one_node_is_selected_as_all_of_them_together(
        self, cluster: Any, labels: Any, fields: Any, want: Any
    ) -> None:
        term = NodeSelectorTerm(match_expressions=labels, match_fields=fields)
        nodes = cluster.nodes
        each = [
            name
            for name, mine in zip(nodes.names, nodes.labels, strict=True)
            if selects_node(NodeSelector(node_selector_terms=(term,)), name, mine)
        ]
        assert want == each == names(cluster, node_labels(cluster).matching(term))

    def test_one_term_must_hold_and_the_selector_too(self, cluster: Any) -> None:
        terms = tuple(
            NodeSelectorTerm(match_expressions=(demand("zone", "In", zone),))
            for zone in ("z1", "z2")
        )
        affinity = Affinity(
            node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=terms))
        )
        spec = PodSpec(affinity=affinity, node_selector={"rank": "-2"})
        assert names(cluster, node_labels(cluster).demanded(spec)) == ["b"]

    def test_a_pod_without_demands_goes_anywhere(self, cluster: Any) -> None:
        assert node_labels(cluster).demanded(PodSpec()) is None

    def test_a_required_selector_without_terms_allows_no_node(self, cluster: Any) -> None:
        spec = PodSpec(affinity=Affinity(node_affinity=NodeAffinity(required=NodeSelector())))
        assert not present(node_labels(cluster).demanded(spec)).any()

    @pytest.mark.parametrize(
        ("selector", "want"),
        [
            (None, []),
            (LabelSelector(), ["a", "b", "c"]),
            (LabelSelector(match_labels={"zone": "z1"}), ["a"]),
            (LabelSelector(match_labels={"zone": "z9"}), []),
            (LabelSelector(match_labels={"zone": "z1", "rank": "-2"}), []),
            (LabelSelector(match_expressions=(condition("zone", "NotIn", "z1"),)), ["b", "c"]),
            (LabelSelector(match_expressions=(condition("zone", "In"),)), []),
            (
                LabelSelector(
                    match_labels={"rank": "7"}, match_expressions=(condition("zone", "Exists"),)
                ),
                ["a"],
            ),
            (
                LabelSelector(
                    match_expressions=(condition("zone", "Exists"), condition("rank", "In", "-2"))
                ),
                ["b"],
            ),
        ],
    )
    def test_nodes_are_selected_by_labels_as_anything_else(
        self, cluster: Any, selector: Any, want: Any
    ) -> None:
        assert names(cluster, node_labels(cluster).labelled(selector)) == want
        nodes = cluster.nodes
        each = [
            n for n, own in zip(nodes.names, nodes.labels, strict=True) if selects(selector, own)
        ]
        assert each == want

    def test_a_selector_demands_every_label(self, cluster: Any) -> None:
        labels = node_labels(cluster)
        for selector, want in (
            ({"zone": "z1"}, ["a"]),
            ({"zone": "z1", "rank": "7"}, ["a"]),
            ({"zone": "z1", "rank": "-2"}, []),
            ({"zone": "z9"}, []),
        ):
            spec = PodSpec(node_selector=selector)
            assert names(cluster, labels.demanded(spec)) == want
            assert labels.selected_by_affinity(spec) is None
        assert labels.selected_by_labels(PodSpec(affinity=Affinity())) is None
