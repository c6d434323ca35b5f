"""predicates: pod number, cordon, node affinity, taints, and the switches."""

from typing import Any

import pytest

from pumice.plugins.predicates import Predicates
from pumice.testing import node, pod, pod_group, queue

CORDON = "node(s) were unschedulable"
LABELS = "node(s) didn't match Pod's node affinity/selector"
TAINT = "node(s) had untolerated taint(s)"
PODS = "node(s) pod number exceeded"
TAINTED = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]


@pytest.fixture
def verdicts(open_session: Any) -> Any:
    """Return a function that returns, node by node, why a pod with some spec does not fit."""

    def asked(nodes: Any, spec: Any = None, others: Any = (), **switches: Any) -> Any:
        world = [queue("default"), pod_group("g"), pod("p", group="g", cpu=1, spec=spec or {})]
        ssn = open_session([*world, *nodes, *others], Predicates(**switches))
        task = ssn.task(ssn.snapshot.tasks.row_of["default/p"])
        placing = ssn.placing
        reasons = [placing.reasons[code].text for code in placing.fit(task).verdict.tolist()]
        return dict(zip(ssn.snapshot.nodes.names, reasons, strict=True))

    return asked


FITS = "fits"


def test_a_cordoned_node_takes_nobody(verdicts: Any) -> None:
    assert verdicts([node("a", unschedulable=True), node("b")]) == {"a": CORDON, "b": FITS}


def test_a_toleration_of_the_cordon_taint_opens_a_cordoned_node(verdicts: Any) -> None:
    spec = {"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]}
    assert verdicts([node("a", unschedulable=True)], spec) == {"a": FITS}


def test_a_node_selector_wants_every_label(verdicts: Any) -> None:
    nodes = [node("a", labels={"disk": "ssd", "zone": "x"}), node("b", labels={"disk": "ssd"})]
    assert verdicts(nodes, {"nodeSelector": {"disk": "ssd", "zone": "x"}}) == {
        "a": FITS,
        "b": LABELS,
    }


def test_required_node_affinity_wants_one_term(verdicts: Any) -> None:
    terms = [
        {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["c"]}]},
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    nodes = [node("a", labels={"disk": "ssd"}), node("b"), node("c")]
    spec = {"affinity": {"nodeAffinity": required}}
    assert verdicts(nodes, spec) == {"a": FITS, "b": LABELS, "c": FITS}


@pytest.mark.parametrize(
    ("effect", "want"),
    [("NoSchedule", TAINT), ("NoExecute", TAINT), ("PreferNoSchedule", FITS)],
)
def test_taints_keep_pods_away_by_effect(verdicts: Any, effect: str, want: Any) -> None:
    taint = {"key": "dedicated", "value": "batch", "effect": effect}
    assert {"a": want} == verdicts([node("a", taints=[taint])])


def test_a_tolerated_taint_keeps_nobody_away(verdicts: Any) -> None:
    spec = {"tolerations": [{"key": "dedicated", "operator": "Equal", "value": "batch"}]}
    assert verdicts([node("a", taints=TAINTED)], spec) == {"a": FITS}


def test_pods_are_counted_whoever_they_belong_to(verdicts: Any) -> None:
    others = [pod("o", node="a", scheduler="default-scheduler")]
    assert verdicts([node("a", pods=1), node("b", pods=1)], None, others) == {"a": PODS, "b": FITS}


def test_what_no_eviction_cures_is_reported_before_a_full_node(verdicts: Any) -> None:
    others = [pod("o", node="a")]
    assert verdicts([node("a", pods=1, taints=TAINTED)], None, others) == {"a": TAINT}


def test_cordon_labels_and_taints_are_reported_in_this_order(verdicts: Any) -> None:
    spec = {"nodeSelector": {"disk": "ssd"}}
    nodes = [
        node("a", unschedulable=True, taints=TAINTED),
        node("b", taints=TAINTED),
        node("c", taints=TAINTED, labels={"disk": "ssd"}),
    ]
    assert verdicts(nodes, spec) == {"a": CORDON, "b": LABELS, "c": TAINT}


@pytest.mark.parametrize(
    ("switch", "spec", "kind"),
    [
        ("node_affinity", {"nodeSelector": {"disk": "ssd"}}, {}),
        ("taints", {}, {"taints": TAINTED}),
    ],
)
def test_a_switch_turns_a_test_off(verdicts: Any, switch: str, spec: Any, kind: Any) -> None:
    assert verdicts([node("a", **kind)], spec)["a"] != FITS
    assert verdicts([node("a", **kind)], spec, **{switch: False}) == {"a": FITS}


def test_only_full_nodes_could_be_cured(open_session: Any) -> None:
    ssn = open_session([node("a")], Predicates())
    curable = {reason.text for reason in ssn.placing.reasons if reason.curable}
    assert PODS in curable
    assert not curable & {CORDON, LABELS, TAINT}


def test_an_evicted_pod_gives_its_slot_back_and_a_pipelined_one_takes_it(open_session: Any) -> None:
    world = [queue("default"), pod_group("g"), pod("p", group="g"), pod("q", group="g")]
    ssn = open_session([*world, node("a", pods=1), pod("o", group="g", node="a")], Predicates())
    rows = ssn.snapshot.tasks.row_of
    task = ssn.task(rows["default/p"])
    assert (ssn.placing.fit(task).verdict == 0).tolist() == [False]
    statement = ssn.statement()
    statement.evict(rows["default/o"], "test")
    assert (ssn.placing.fit(task).verdict == 0).tolist() == [True]
    statement.pipeline(rows["default/q"], 0)
    assert (ssn.placing.fit(task).verdict == 0).tolist() == [False]
    statement.discard()
    assert (ssn.placing.fit(task).verdict == 0).tolist() == [False]
