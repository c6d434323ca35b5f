"""pdb: evictions stay within the disruption budgets of pods."""

from typing import Any

import numpy as np
import pytest

from pumice.plugins.pdb import Pdb
from pumice.testing import node, pdb, pod, pod_group, queue

APP = {"app": "my-app"}


def running(*labels: Any) -> Any:
    """Pods p0, p1, … with these labels."""
    return [
        pod(f"p{i}", group="g", cpu=1, node="n1", labels=given) for i, given in enumerate(labels)
    ]


@pytest.fixture
def offered(open_session: Any) -> Any:
    """Ask about all pods in order; return the names of those that may be evicted."""

    def ask(*objects: Any, hook: str = "preemptable") -> Any:
        world = [node("n1", cpu=9), queue("default"), pod_group("g", min_member=0), *objects]
        ssn = open_session(world, Pdb())
        rows = list(range(ssn.snapshot.tasks.n))
        if hook == "victims":
            found = ssn.policy.victims(rows)
        elif hook == "bound":
            marks = ssn.plugins[0].bound_victims("preemptable", ssn.task(0), np.array(rows))
            found = np.flatnonzero(marks).tolist()
        else:
            found = getattr(ssn.policy, hook)(ssn.task(0), rows)
        return [ssn.snapshot.tasks.keys[row].removeprefix("default/") for row in found]

    return ask


@pytest.mark.parametrize("hook", ["preemptable", "reclaimable", "victims"])
def test_pods_go_while_the_budget_lasts(offered: Any, hook: str) -> None:
    budget = pdb("b", match_labels=APP, disruptions_allowed=2)
    assert offered(budget, *running(APP, APP, APP), hook=hook) == ["p0", "p1"]


def test_a_budget_of_zero_keeps_all(offered: Any) -> None:
    assert offered(pdb("b", match_labels=APP), *running(APP, APP)) == []


def test_pods_that_no_budget_matches_may_go(offered: Any) -> None:
    assert offered(pdb("b", match_labels=APP), *running(APP, {"app": "x"})) == ["p1"]


def test_pods_without_labels_never_go(offered: Any) -> None:
    assert offered(*running({}, {"app": "x"})) == ["p1"]


def test_a_budget_of_another_namespace_does_not_matter(offered: Any) -> None:
    budget = pdb("b", namespace="elsewhere", match_labels=APP)
    assert offered(budget, *running(APP)) == ["p0"]


@pytest.mark.parametrize("selector", [{"matchLabels": {}}, {}, None])
def test_an_empty_selector_matches_nothing(offered: Any, selector: Any) -> None:
    budget = pdb("b", match_labels=APP)
    budget["spec"]["selector"] = selector
    assert offered(budget, *running(APP)) == ["p0"]


def test_every_matching_budget_must_allow_it(offered: Any) -> None:
    wide = pdb("wide", match_labels=APP, disruptions_allowed=5)
    narrow = pdb("narrow", match_labels={"tier": "1"}, disruptions_allowed=0)
    pods = running({**APP, "tier": "1"}, APP)
    assert offered(wide, narrow, *pods) == ["p1"]


def test_a_pod_that_must_stay_uses_the_other_budgets_up_all_the_same(offered: Any) -> None:
    wide = pdb("wide", match_labels=APP, disruptions_allowed=1)
    narrow = pdb("narrow", match_labels={"tier": "1"}, disruptions_allowed=0)
    assert offered(wide, narrow, *running({**APP, "tier": "1"}, APP)) == []


def test_a_pod_whose_eviction_was_let_through_before_costs_nothing(offered: Any) -> None:
    budget = pdb("b", match_labels=APP, disruptions_allowed=1)
    budget["status"]["disruptedPods"] = {"p0": "2026-01-15T10:00:00Z"}
    assert offered(budget, *running(APP, APP, APP)) == ["p0", "p1"]
    assert set(offered(budget, *running(APP, APP, APP), hook="bound")) >= {"p0", "p1"}


def test_match_expressions_count_too(offered: Any) -> None:
    budget = pdb("b", match_labels=APP)
    expression = {"key": "app", "operator": "In", "values": ["a", "b"]}
    budget["spec"]["selector"] = {"matchExpressions": [expression]}
    assert offered(budget, *running({"app": "a"}, {"app": "c"})) == ["p1"]


def test_the_bound_leaves_out_who_could_not_even_go_alone(offered: Any) -> None:
    none = pdb("none", match_labels={"app": "a"}, disruptions_allowed=0)
    one = pdb("one", match_labels={"app": "b"}, disruptions_allowed=1)
    pods = running({"app": "a"}, {"app": "b"}, {"app": "b"}, {}, {"app": "c"})
    assert offered(none, one, *pods, hook="bound") == ["p1", "p2", "p4"]


@pytest.mark.parametrize("hook", ["preemptable", "bound"])
def test_pods_on_their_way_out_cost_a_spent_budget_nothing(offered: Any, hook: str) -> None:
    """The shortcut over many nodes must not rule out what the hook itself would offer."""
    budget = pdb("b", match_labels=APP, disruptions_allowed=0)
    budget["status"]["disruptedPods"] = {"p1": "2026-01-15T10:00:00Z"}
    found = offered(budget, *running(APP, APP), hook=hook)
    assert "p1" in found
    assert hook == "bound" or found == ["p1"]
