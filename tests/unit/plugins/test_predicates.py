"""predicates: pod number, cordon, node affinity, taints, and the switches."""

from typing import Any

import pytest

from pumice.api.codes import Cause
from pumice.plugins.predicates import Predicates
from pumice.plugins.predicates.reasons import REASONS, Code
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


# Reasons

INCURABLE = {
    "CORDON": ("were unschedulable", Cause.NODE_UNSCHEDULABLE),
    "NODE_AFFINITY": ("didn't match Pod's node affinity/selector", Cause.NODE_AFFINITY),
    "TAINT": ("had untolerated taint(s)", Cause.TAINT),
    "AFFINITY": ("didn't match pod affinity rules", Cause.POD_AFFINITY),
    "VOLUME_ZONE": ("had no available volume zone", Cause.VOLUME),
    "SPREAD_LABEL": (
        "didn't match pod topology spread constraints (missing required label)",
        Cause.TOPOLOGY_SPREAD,
    ),
    "VOLUME_NODE": ("didn't match PersistentVolume's node affinity", Cause.VOLUME),
    "VOLUME_BINDING": ("didn't find available persistent volumes to bind", Cause.VOLUME),
    "VOLUME_CAPACITY": ("did not have enough free storage", Cause.VOLUME),
    "CLAIM_NODE": ("don't reach the devices of the pod's resource claims", Cause.DEVICE),
    "DEVICES": ("cannot allocate all resource claims", Cause.DEVICE),
}
CURABLE = {
    "PODS": ("pod number exceeded", Cause.POD_LIMIT),
    "PORTS": ("didn't have free ports for the requested pod ports", Cause.HOST_PORT),
    "ANTI_AFFINITY": ("didn't match pod anti-affinity rules", Cause.POD_ANTI_AFFINITY),
    "EXISTING_ANTI_AFFINITY": (
        "didn't satisfy existing pods anti-affinity rules",
        Cause.POD_ANTI_AFFINITY,
    ),
    "VOLUME_LIMIT": ("exceed max volume count", Cause.VOLUME),
    "SPREAD": ("didn't match pod topology spread constraints", Cause.TOPOLOGY_SPREAD),
}


def test_every_code_has_its_reason_and_evictions_cure_some() -> None:
    reasons = {code.name: REASONS[code - 1] for code in Code if code != Code.FITS}
    assert len(reasons) == len(REASONS) == len(Code) - 1
    for name, (text, cause) in (INCURABLE | CURABLE).items():
        reason = reasons[name]
        assert (reason.text, reason.code) == (f"node(s) {text}", cause)
        assert reason.curable is (name in CURABLE)
    assert reasons.keys() == INCURABLE.keys() | CURABLE.keys()


# Each test by itself


@pytest.fixture
def tests(open_session: Any) -> Any:
    """Return a function that returns, test by test, the nodes that it refuses."""

    def asked(nodes: Any, spec: Any = None, others: Any = (), **switches: Any) -> Any:
        world = [queue("default"), pod_group("g"), pod("p", group="g", cpu=1, spec=spec or {})]
        ssn = open_session([*world, *nodes, *others], Predicates(**switches))
        task = ssn.task(ssn.snapshot.tasks.row_of["default/p"])
        found = ssn.plugins[0].node_tests(task, ssn.nodes())
        names = ssn.snapshot.nodes.names
        return {
            cause: [name for name, fails in zip(names, mask.tolist(), strict=True) if fails]
            for cause, mask in found.items()
        }

    return asked


SICK = [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]
CORDONED = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]


def test_each_test_marks_what_it_alone_would_refuse(tests: Any) -> None:
    nodes = [
        node("cordoned", unschedulable=True),
        node("sick", taints=SICK),
        node("tainted", taints=TAINTED, labels={"disk": "ssd"}),
        node("both", taints=[*SICK, *TAINTED], labels={"disk": "ssd", "zone": "x"}),
        node("full", pods=1, labels={"zone": "x"}),
        node("soft", taints=[{"key": "k", "effect": "PreferNoSchedule"}]),
    ]
    terms = [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    spec = {"nodeSelector": {"disk": "ssd"}, "affinity": {"nodeAffinity": required}}
    others = [pod("o", node="full")]
    assert tests(nodes, spec, others) == {
        Cause.NODE_UNSCHEDULABLE: ["cordoned"],
        Cause.NODE_SELECTOR: ["cordoned", "sick", "full", "soft"],
        Cause.NODE_AFFINITY: ["cordoned", "sick", "tainted", "soft"],
        Cause.NODE_NOT_READY: ["sick", "both"],
        Cause.TAINT: ["tainted", "both"],
        Cause.POD_LIMIT: ["full"],
    }
    off = tests(nodes, spec, others, node_affinity=False, taints=False)
    assert off.keys() == {Cause.NODE_UNSCHEDULABLE, Cause.POD_LIMIT}


def test_tolerated_taints_and_cordons_fail_no_test(tests: Any) -> None:
    nodes = [node("a", unschedulable=True, taints=[*SICK, *TAINTED])]
    tolerations = [*CORDONED, {"key": "dedicated", "operator": "Exists"}]
    found = tests(nodes, {"tolerations": tolerations})
    assert found == {
        Cause.NODE_UNSCHEDULABLE: [],
        Cause.NODE_NOT_READY: ["a"],
        Cause.POD_LIMIT: [],
    }
    assert Cause.NODE_NOT_READY not in tests(nodes, {"tolerations": [{"operator": "Exists"}]})


ZONES = {"a": "x", "b": "x", "c": "y", "d": None}


def claiming(*names: str) -> Any:
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    return {"volumes": volumes}


def bound_claim(name: str, zone: str) -> Any:
    condition = {"key": "zone", "operator": "In", "values": [zone]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [condition]}]}}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"volumeName": f"v-{name}"},
        "status": {"phase": "Bound"},
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"v-{name}"},
        "spec": {"nodeAffinity": affinity},
    }
    return [claim, volume]


def test_volumes_are_tested_by_themselves(tests: Any) -> None:
    nodes = [node(name, labels={"zone": zone} if zone else {}) for name, zone in ZONES.items()]
    found = tests(nodes, claiming("c"), bound_claim("c", "x"))
    assert found[Cause.VOLUME] == ["c", "d"]
    assert Cause.VOLUME not in tests(nodes, {}, bound_claim("c", "x"))
    off = {"volume_limits": False, "volume_zones": False, "volume_binding": False}
    assert Cause.VOLUME not in tests(nodes, claiming("c"), bound_claim("c", "x"), **off)


# What distinguishes pods


def test_pods_with_claims_of_their_own_are_told_apart(open_session: Any) -> None:
    own = {"volumes": [{"name": "v", "ephemeral": {}}]}
    pods = [pod(f"o{i}", group="g", spec=own) for i in range(2)]
    pods += [pod(f"s{i}", group="g", spec=claiming("c")) for i in range(2)]
    ssn = open_session([queue("default"), pod_group("g"), node("a"), *pods], Predicates())
    rows, plugin = ssn.snapshot.tasks.row_of, ssn.plugins[0]
    found = {
        name: plugin.vary_by(ssn.task(rows[f"default/{name}"])) for name in ("o0", "o1", "s0", "s1")
    }
    assert found["o0"] != found["o1"]
    assert found["s0"] == found["s1"]


def test_a_pod_whose_claims_have_a_problem_is_beyond_cure(open_session: Any) -> None:
    claims = {"resourceClaims": [{"name": "r", "resourceClaimName": "r"}]}
    pods = [pod("v", group="g", spec=claiming("c")), pod("d", group="g", spec=claims)]
    world = [queue("default"), pod_group("g"), node("a"), *pods]
    for devices in (True, False):
        ssn = open_session(world, Predicates(devices=devices))
        rows, plugin = ssn.snapshot.tasks.row_of, ssn.plugins[0]
        by_volume = plugin.filter_task(ssn.task(rows["default/v"]))
        by_device = plugin.filter_task(ssn.task(rows["default/d"]))
        assert (by_volume.curable, by_volume.code) == (False, Cause.VOLUME)
        assert (by_device.curable, by_device.code) == (False, Cause.DEVICE)
        assert ("switched off" in by_device.text) is not devices
        assert plugin.filter_task(ssn.task(rows["default/v"])) is not None
