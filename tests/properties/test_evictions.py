"""Evictions worked out on sums and columns: the same as those tried node by node."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.conf import SchedulerConf, parse_conf
from pumice.framework.eviction import bundle_consent
from pumice.framework.eviction.gang_evictor import GangEvictor
from pumice.framework.eviction.victim_columns import VictimColumns
from pumice.scheduler import Scheduler
from pumice.testing.samples import snapshot_of
from tests.properties.full_clusters import full_cluster

TIERS = (
    ("priority gang/off conformance", "predicates proportion nodeorder"),
    ("priority conformance cdp", "drf/off predicates capacity nodeorder"),
    ("priority", "conformance predicates"),
    ("priority gang conformance", "drf predicates proportion binpack"),
    ("conformance", "priority pdb predicates"),
    ("priority", ""),
)
SLOW: list[tuple[Any, str, Callable[..., Any]]] = [
    (VictimColumns, "victims", lambda *_: None),
    (bundle_consent, "_few_at_a_time", lambda *_: ()),
    (GangEvictor, "_strike_off", lambda evictor, _: evictor._found.clear()),
]
"""What makes evictions fast, and what it becomes to do without."""


def conf_of(tiers: tuple[str, ...], action: str, **arguments: Any) -> SchedulerConf:
    lines = [f'actions: "allocate, {action}"', "tiers:"]
    for tier in filter(None, tiers):
        lines.append("- plugins:")
        for word in tier.split():
            name, _, off = word.partition("/")
            lines.append(f"  - name: {name}")
            lines += ["    enablePreemptable: false"] if off else []
    if arguments:
        lines += ["configurations:", f"- name: {action}", "  arguments:"]
    lines += [f"    {key}: {value}" for key, value in arguments.items()]
    return parse_conf("\n".join(lines))


def decide_both_ways(conf: SchedulerConf, seed: int) -> tuple[Any, Any]:
    cluster = full_cluster(seed)
    fast = Scheduler(conf, seed=seed).decide(snapshot_of(cluster), 0.0)
    with pytest.MonkeyPatch.context() as patch:
        for owner, name, slow in SLOW:
            patch.setattr(owner, name, slow)
        return fast, Scheduler(conf, seed=seed).decide(snapshot_of(cluster), 0.0)


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
