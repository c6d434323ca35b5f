"""Decisions do not depend on the order in which objects arrive."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.conf import parse_conf
from pumice.scheduler import Scheduler
from pumice.testing import pdb
from tests.properties.clusters import ACTIONS, clusters, conf_of, confs

NOON = 1_768_478_400.0  # 2026-01-15T12:00:00Z
MOVERS = {
    "tdm": "{tdm.revocable-zone.night: 20:00-23:00}",
    "rescheduling": """
      strategies:
      - name: lowNodeUtilization
        params:
          thresholds: {cpu: 30, memory: 30}
          targetThresholds: {cpu: 60, memory: 60}
""",
    "pdb": "{}",
}
ROLES = (None, "ps", "worker")
WISHES = {
    "volcano.sh/task-topology-affinity": "ps,worker",
    "volcano.sh/task-topology-task-order": "ps,worker",
}


def moved(decisions: Any) -> Any:
    """The decisions, in order."""
    return list(decisions.binds.items()), decisions.evictions, decisions


def with_nodes_in_place(cluster: Any, mixed: Any) -> Any:
    """Mixed objects whose nodes come as they came: equal nodes are distinguished by that."""
    nodes = iter(each for each in cluster if each["kind"] == "Node")
    return [next(nodes) if each["kind"] == "Node" else each for each in mixed]


@st.composite
def crowds(draw: Any) -> Any:
    """A cluster whose pods have roles, wishes, and names with and without numbers."""
    cluster = draw(clusters())
    for each in cluster:
        meta = each["metadata"]
        if each["kind"] == "Pod":
            role = draw(st.sampled_from(ROLES))
            if role is not None:
                meta["annotations"]["volcano.sh/task-spec"] = role
            if draw(st.integers(0, 4)) == 0:
                meta["name"] = meta["name"].replace("-", "")
                meta["creationTimestamp"] = f"2026-01-01T00:00:{draw(st.integers(0, 59)):02d}Z"
            if draw(st.integers(0, 5)) == 0:
                each["status"]["nominatedNodeName"] = "n0"
        elif each["kind"] == "PodGroup" and draw(st.booleans()):
            meta["annotations"] = {**(meta.get("annotations") or {}), **WISHES}
    return cluster


@settings(max_examples=40)
@given(
    cluster=crowds(),
    conf=confs(actions=(*ACTIONS, "shuffle"), wide=True),
    seed=st.integers(0, 9),
    data=st.data(),
)
def test_whole_cycles(cluster: Any, conf: Any, seed: Any, data: Any) -> None:
    mixed = with_nodes_in_place(cluster, data.draw(st.permutations(cluster)))
    found = [Scheduler(conf, seed=seed).cycle(each, NOON) for each in (cluster, mixed)]
    assert moved(found[0]) == moved(found[1])


@settings(max_examples=30)
@given(cluster=crowds(), data=st.data())
def test_victims_of_jobs_with_and_without_wishes(cluster: Any, data: Any) -> None:
    conf = conf_of(["reclaim", "preempt"], ["conformance", "task-topology"], ["predicates"])
    mixed = with_nodes_in_place(cluster, data.draw(st.permutations(cluster)))
    found = [Scheduler(conf).cycle(each, NOON) for each in (cluster, mixed)]
    assert moved(found[0]) == moved(found[1])


@pytest.mark.parametrize("mover", MOVERS)
@settings(max_examples=25)
@given(cluster=clusters(max_jobs=6), data=st.data())
def test_shuffle_even_if_nodes_are_mixed(mover: Any, cluster: Any, data: Any) -> None:
    named = f"  - name: {mover}\n    arguments: {MOVERS[mover]}"
    conf = parse_conf(f'actions: "shuffle"\ntiers:\n- plugins:\n  - name: priority\n{named}')
    usage = {}
    for each in cluster:
        if each["kind"] == "Node":
            if data.draw(st.integers(0, 3)) == 0:
                each["metadata"]["labels"]["volcano.sh/revocable-zone"] = "night"
            load = data.draw(st.sampled_from([10.0, 80.0, 90.0]))
            usage[each["metadata"]["name"]] = {"cpu": load, "memory": load, "metricsTime": NOON}
    budget = pdb("few", namespace="team", match_labels={"app": "x"}, disruptions_allowed=1)
    cluster = [*cluster, budget]
    mixed = data.draw(st.permutations(cluster))
    found = [Scheduler(conf).cycle(each, NOON, usage) for each in (cluster, mixed)]
    assert moved(found[0])[:2] == moved(found[1])[:2]
