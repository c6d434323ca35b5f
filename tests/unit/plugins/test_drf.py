"""drf: the job with the smallest dominant share goes first, and may take from larger ones."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.framework.plugin import Plugin
from pumice.plugins.drf import Drf
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue

CLUSTER = [queue("default"), node("n", cpu=10, memory="100Gi", pods=1000)]


def job(name: Any, running: Any = (), waiting: Any = (), **more: Any) -> Any:
    """A job of pods given as (cpu, memory in Gi)."""
    out = [pod_group(name, phase="Running" if running else "Inqueue", **more)]
    sized = [(each, "n") for each in running] + [(each, None) for each in waiting]
    for i, ((cpu, memory), on) in enumerate(sized):
        out.append(pod(f"{name}-{i}", group=name, cpu=cpu, memory=f"{memory}Gi", node=on))
    return out


def order(ssn: Any) -> Any:
    rows = ssn.ordering.sort_jobs(range(ssn.snapshot.jobs.n))
    return [ssn.snapshot.jobs.keys[row].partition("/")[2] for row in rows]


def row(ssn: Any, name: Any) -> Any:
    return ssn.snapshot.tasks.row_of[f"default/{name}"]


def test_jobs_are_ordered_by_their_largest_share_of_any_resource(open_session: Any) -> None:
    """2 of 10 cpu is more than 15 of 100 Gi, whatever the sizes of the other resource."""
    world = [*job("cpu", [(2, 1)]), *job("memory", [(0.1, 15)]), *job("idle", (), [(1, 1)])]
    ssn = open_session([*CLUSTER, *world], Drf())
    assert order(ssn) == ["idle", "memory", "cpu"]


def test_a_share_of_the_pods_counts_like_any_other(open_session: Any) -> None:
    world = [*job("many", [(0.1, 1)] * 5), *job("big", [(2, 10)])]
    ssn = open_session(
        [queue("default"), node("n", cpu=10, memory="100Gi", pods=10), *world], Drf()
    )
    assert order(ssn) == ["big", "many"]


def test_the_order_tells_shares_apart_by_any_difference(open_session: Any) -> None:
    """There is no tolerance: a byte decides."""
    ahead = pod("b", group="b", memory=str(2**33 - 1), node="n")
    behind = pod("a", group="a", memory=str(2**33), node="n")
    groups = [pod_group(name, phase="Running") for name in "ab"]
    ssn = open_session([*CLUSTER, *groups, ahead, behind], Drf())
    assert order(ssn) == ["b", "a"]


def test_placing_tasks_raises_a_job_s_share() -> None:
    """Jobs take turns: none is more than one task ahead of the other."""
    conf = parse_conf('actions: "allocate"\ntiers:\n- plugins:\n  - name: drf\n  - name: gang\n')
    world = [*job("a", (), [(4, 1)] * 3), *job("b", (), [(4, 1)] * 3)]
    binds = Scheduler(conf).cycle([*CLUSTER, *world], 0.0).binds
    assert sorted(binds) == ["default/a-0", "default/b-0"]


@pytest.mark.parametrize(
    ("victims", "names"),
    [
        ([(1, 1)] * 5, ["old-0", "old-1"]),
        ([(1, 1)] * 4, ["old-0"]),
        ([(1, 1)] * 3, []),
    ],
)
def test_a_task_takes_from_jobs_that_keep_at_least_its_own_share(
    open_session: Any, victims: Any, names: Any
) -> None:
    """The newcomer would have 3 of 10: a job of 5 may fall to 4 and 3, no further."""
    world = [*job("old", victims), *job("new", (), [(3, 1)])]
    ssn = open_session([*CLUSTER, *world], Drf())
    candidates = [row(ssn, f"old-{i}") for i in range(len(victims))]
    found = ssn.policy.preemptable(ssn.task(row(ssn, "new-0")), candidates)
    assert found == [row(ssn, name) for name in names]


def test_shares_within_a_millionth_are_equal_for_preemption(open_session: Any) -> None:
    """100 GiB are about 1.07e11 bytes: 1000 of them make no difference, 1,000,000 do."""
    for bytes_short, allowed in ((1000, True), (1_000_000, False)):
        old = [
            pod("o0", group="old", memory="1Gi", node="n"),
            pod("o1", group="old", memory=str(2**33 - bytes_short), node="n"),
        ]
        new = pod("p", group="new", memory=str(2**33))
        groups = [pod_group("old", phase="Running"), pod_group("new", phase="Inqueue")]
        ssn = open_session([*CLUSTER, *groups, *old, new], Drf())
        assert bool(ssn.policy.preemptable(ssn.task(row(ssn, "p")), [row(ssn, "o0")])) is allowed


def test_without_the_switch_queues_are_not_compared(open_session: Any) -> None:
    ssn = open_session([*CLUSTER, *job("a", [(1, 1)])], Drf())
    assert ssn.hooks.tiers(Plugin.compare_queues) == []
    assert ssn.hooks.tiers(Plugin.reclaimable) == []
