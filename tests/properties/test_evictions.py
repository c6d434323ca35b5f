"""Evictions worked out on sums and columns: the same as those tried node by node."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.actions.preempt import Preemption
from pumice.api.conf import SchedulerConf, parse_conf
from pumice.framework.eviction import gangs
from pumice.framework.eviction.candidates import Candidates, Visit
from pumice.framework.eviction.gangs import GangEvictor
from pumice.framework.eviction.sums import VictimColumns
from pumice.framework.ordering import Heap, Ordering
from pumice.framework.placement.equal_jobs import EqualJobs
from pumice.scheduler import Scheduler
from pumice.testing.samples import snapshot_of
from tests.properties.full_clusters import (
    full_cluster,
    full_cluster_of_equal_gangs,
    full_cluster_of_gangs,
)

NOW = 1_767_225_600.0 + 1800.0
"""Half an hour after the objects were made."""
TIERS = (
    ("priority gang/off conformance", "predicates proportion nodeorder"),
    ("priority conformance cdp", "drf/off predicates capacity nodeorder"),
    ("priority", "conformance predicates"),
    ("priority gang conformance", "drf predicates proportion binpack"),
    ("conformance", "priority pdb predicates"),
    ("priority", ""),
)
RUNNING_TIERS = (
    *TIERS,
    ("priority gang conformance", "predicates capacity nodeorder"),
    ("gang conformance", "drf predicates proportion nodeorder"),
    ("priority gang", "conformance cdp proportion predicates binpack"),
    ("conformance", "gang priority tdm predicates nodeorder"),
    ("priority conformance tdm cdp", "capacity sla predicates"),
    ("gang", "proportion", "capacity priority predicates nodeorder"),
    ("cdp gang capacity", "priority conformance proportion predicates"),
    ("strict priority gang capacity conformance", "predicates nodeorder"),
    ("conformance", "strict gang proportion priority pdb", "drf predicates"),
)


def ask_always(heap: Heap, places: slice, _: int) -> None:
    """Compute the keys of some rows again, whatever has moved."""
    rows = [row for _, row in heap.entries[places]]
    heap.entries[places] = zip(heap._keys(rows), rows, strict=True)


def all_members(candidates: Candidates, scope: Any, node: int) -> tuple[list[int], None]:
    """List the members of a scope on a node without keys: they are put in order each time."""
    return candidates.rows[scope.members & (candidates.node == node)].tolist(), None


SLOW: list[tuple[Any, str, Callable[..., Any]]] = [
    (EqualJobs, "key", lambda *_: None),
    (VictimColumns, "victims", lambda *_: None),
    (Candidates, "_line_up", all_members),
    (Candidates, "_with_victims", lambda self, *_: np.ones(self._snapshot.nodes.n, bool)),
    (Visit, "keep", lambda *_: None),
    (Preemption, "_is_in_vain", lambda *_: False),
    (gangs, "_few_at_a_time", lambda *_: ()),
    (GangEvictor, "_strike_off", lambda evictor, _: evictor._found.clear()),
    (Ordering, "_kept_job_keys", Ordering.job_keys),
    (Heap, "_ask_again", ask_always),
]
"""What makes evictions fast, and what it becomes to do without."""


def conf_of(tiers: tuple[str, ...], action: str, **arguments: Any) -> SchedulerConf:
    lines = [f'actions: "allocate, {action}"', "tiers:"]
    for tier in filter(None, tiers):
        plain = tier.removeprefix("strict ")
        lines += ["- plugins:"] if plain == tier else ["- victims: strict", "  plugins:"]
        for word in plain.split():
            name, _, off = word.partition("/")
            lines.append(f"  - name: {name}")
            lines += ["    enablePreemptable: false"] if off else []
    if arguments:
        lines += ["configurations:", f"- name: {action}", "  arguments:"]
    lines += [f"    {key}: {value}" for key, value in arguments.items()]
    return parse_conf("\n".join(lines))


def decide_both_ways(
    conf: SchedulerConf, seed: int, cluster_of: Callable[[int], list[Any]] = full_cluster
) -> tuple[Any, Any]:
    cluster = cluster_of(seed)
    fast = Scheduler(conf, seed=seed).decide(snapshot_of(cluster), NOW)
    with pytest.MonkeyPatch.context() as patch:
        for owner, name, slow in SLOW:
            patch.setattr(owner, name, slow)
        return fast, Scheduler(conf, seed=seed).decide(snapshot_of(cluster), NOW)


@settings(max_examples=75)
@given(
    seed=st.integers(0, 10**6),
    tiers=st.sampled_from(RUNNING_TIERS),
    actions=st.sampled_from(["preempt", "reclaim", "reclaim, preempt"]),
)
def test_room_is_made_as_if_every_node_were_asked_from_scratch(
    seed: int, tiers: tuple[str, ...], actions: str
) -> None:
    fast, slow = decide_both_ways(conf_of(tiers, actions), seed, full_cluster_of_gangs)
    assert fast == slow


@settings(max_examples=75)
@given(
    seed=st.integers(0, 10**6),
    tiers=st.sampled_from(RUNNING_TIERS),
    actions=st.sampled_from(["preempt", "reclaim", "reclaim", "reclaim, preempt"]),
)
def test_room_for_equal_gangs_is_made_as_if_every_node_were_asked_from_scratch(
    seed: int, tiers: tuple[str, ...], actions: str
) -> None:
    fast, slow = decide_both_ways(conf_of(tiers, actions), seed, full_cluster_of_equal_gangs)
    assert fast == slow


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), tiers=st.sampled_from(TIERS), share=st.sampled_from([30, 100]))
def test_dry_runs_on_sums_choose_as_dry_runs_by_trial(
    seed: int, tiers: tuple[str, ...], share: int
) -> None:
    arguments = {"enableTopologyAwarePreemption": True, "minCandidateNodesPercentage": share}
    fast, slow = decide_both_ways(conf_of(tiers, "preempt", **arguments), seed)
    assert fast == slow


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    tiers=st.sampled_from(TIERS),
    action=st.sampled_from(["gangpreempt", "gangreclaim"]),
)
def test_bundles_asked_about_in_turn_go_as_bundles_asked_about_at_once(
    seed: int, tiers: tuple[str, ...], action: str
) -> None:
    fast, slow = decide_both_ways(conf_of(tiers, action), seed)
    assert fast == slow
