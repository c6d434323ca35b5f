"""drf: the job with the smallest dominant share goes first, and may take from larger ones."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
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


def row(ssn: Any, name: Any) -> Any:
    return ssn.snapshot.tasks.row_of[f"default/{name}"]


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
