"""Evictions worked out on sums and columns: the same as those tried node by node."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.conf import SchedulerConf, parse_conf
from pumice.core.views import Nodes
from pumice.framework.eviction import bundle_consent
from pumice.framework.eviction.eviction_ladders import Ladders
from pumice.framework.eviction.eviction_runs import EvictionRuns, Plan
from pumice.framework.eviction.gang_evictor import GangEvictor
from pumice.framework.eviction.victim_columns import VictimColumns
from pumice.framework.fits import Fit
from pumice.framework.ordering import Heap, Ordering
from pumice.framework.placing import Placing
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
)


def ask_always(heap: Heap, places: slice, _: int) -> None:
    """Compute the keys of some rows again, whatever has moved."""
    rows = [row for _, row in heap.entries[places]]
    heap.entries[places] = zip(heap._keys(rows), rows, strict=True)


SLOW: list[tuple[Any, str, Callable[..., Any]]] = [
    (VictimColumns, "victims", lambda *_: None),
    (bundle_consent, "_few_at_a_time", lambda *_: ()),
    (EvictionRuns, "equals", lambda *_: 0),
    (GangEvictor, "_strike_off", lambda evictor, _: evictor._found.clear()),
    (Ordering, "_kept_job_keys", Ordering.job_keys),
    (Heap, "_ask_again", ask_always),
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


def decide_both_ways(
    conf: SchedulerConf, seed: int, cluster_of: Callable[[int], list[Any]] = full_cluster
) -> tuple[Any, Any]:
    cluster = cluster_of(seed)
    fast = Scheduler(conf, seed=seed).decide(snapshot_of(cluster), NOW)
    with pytest.MonkeyPatch.context() as patch:
        for owner, name, slow in SLOW:
            patch.setattr(owner, name, slow)
        return fast, Scheduler(conf, seed=seed).decide(snapshot_of(cluster), NOW)


@settings(max_examples=150)
@given(
    seed=st.integers(0, 10**6),
    tiers=st.sampled_from(RUNNING_TIERS),
    actions=st.sampled_from(["preempt", "reclaim", "reclaim, preempt"]),
)
def test_room_made_for_equal_tasks_at_once_is_the_room_made_for_one_after_the_other(
    seed: int, tiers: tuple[str, ...], actions: str
) -> None:
    fast, slow = decide_both_ways(conf_of(tiers, actions), seed, full_cluster_of_gangs)
    assert fast == slow


@settings(max_examples=150)
@given(
    seed=st.integers(0, 10**6),
    tiers=st.sampled_from(RUNNING_TIERS),
    actions=st.sampled_from(["preempt", "reclaim", "reclaim", "reclaim, preempt"]),
)
def test_room_planned_for_several_jobs_is_the_room_made_for_one_after_the_other(
    seed: int, tiers: tuple[str, ...], actions: str
) -> None:
    fast, slow = decide_both_ways(conf_of(tiers, actions), seed, full_cluster_of_equal_gangs)
    assert fast == slow


def test_plans_reach_over_jobs_and_over_tasks_that_gangs_keep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Random clusters of the tests above contain both, so that these compare something."""
    followed, later = [0], [0]
    follows, tiers_of = Plan.follows, Ladders.tiers

    def count_follows(plan: Plan, *args: Any) -> bool:
        found = follows(plan, *args)
        followed[0] += found and len(plan.steps) > 0
        return found

    def count_tiers(ladders: Ladders, steps: Any) -> list[int]:
        later[0] += sum(tiers_of(ladders, steps))
        return tiers_of(ladders, steps)

    monkeypatch.setattr(Plan, "follows", count_follows)
    monkeypatch.setattr(Ladders, "tiers", count_tiers)
    for seed in range(60):
        cluster = snapshot_of(full_cluster_of_equal_gangs(seed))
        Scheduler(conf_of(RUNNING_TIERS[6], "reclaim"), seed=seed).decide(cluster, NOW)
    assert followed[0] > 0
    assert later[0] > 0


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), tiers=st.sampled_from(RUNNING_TIERS))
def test_what_a_run_foresaw_of_its_nodes_is_what_they_answer(
    seed: int, tiers: tuple[str, ...]
) -> None:
    """Each fit that took answers over is compared with one that asks."""
    taken: list[tuple[Fit, Any]] = []
    adopt, fit_of = Fit.adopt, Placing.fit_of

    def note(fit: Fit, rows: Any, answers: Any, moved: int) -> None:
        adopt(fit, rows, answers, moved)
        taken.append((fit, rows))

    def compare(placing: Placing, key: Any, task: Any) -> Fit:
        fit = fit_of(placing, key, task)
        while taken and taken[-1][0] is fit:
            rows = taken.pop()[1]
            now = placing.answers(fit, task, Nodes(placing.snapshot, rows), rows)
            for name in ("verdict", "room", "score", "value"):
                assert (getattr(fit, name)[rows] == getattr(now, name)).all()
        return fit

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fit, "adopt", note)
        patch.setattr(Placing, "fit_of", compare)
        cluster = snapshot_of(full_cluster_of_equal_gangs(seed))
        Scheduler(conf_of(tiers, "preempt"), seed=seed).decide(cluster, NOW)


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
