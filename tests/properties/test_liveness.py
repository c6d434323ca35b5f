"""What every cycle must do: nothing waits for no reason."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue
from tests.properties.clusters import confs

ACTIONS = ("enqueue", "allocate", "backfill", "preempt", "reclaim")


@settings(max_examples=60)
@given(
    conf=confs(actions=ACTIONS),
    cores=st.lists(st.integers(1, 8), min_size=1, max_size=4),
    data=st.data(),
)
def test_a_pod_that_fits_an_empty_cluster_gets_a_node(conf: Any, cores: Any, data: Any) -> None:
    millis = data.draw(st.integers(1, 1000 * max(cores)))
    phase = "Pending" if "enqueue" in conf.actions else data.draw(st.sampled_from(["Inqueue"]))
    cluster = [
        queue("default"),
        *(node(f"n{i}", cpu=cpu) for i, cpu in enumerate(cores)),
        pod_group("job", phase=phase),
        pod("only", group="job", cpu=f"{millis}m"),
    ]
    decisions = Scheduler(conf).cycle(cluster, 0.0)
    assert list(decisions.binds) == ["default/only"]


@settings(max_examples=40)
@given(conf=confs(actions=ACTIONS), size=st.integers(1, 12), data=st.data())
def test_a_gang_that_fits_an_empty_cluster_is_placed_whole(conf: Any, size: Any, data: Any) -> None:
    least = data.draw(st.integers(1, size))
    spread = data.draw(st.integers(1, 4))
    cluster = [
        queue("default"),
        *(node(f"n{i}", cpu=-(-size // spread), pods=20) for i in range(spread)),
        pod_group("job", min_member=least, phase="Inqueue"),
        *(pod(f"job-main-{i}", group="job", cpu=1) for i in range(size)),
    ]
    decisions = Scheduler(conf).cycle(cluster, 0.0)
    assert len(decisions.binds) == size


@settings(max_examples=30)
@given(conf=confs(must=("gang",)), free=st.integers(1, 3), data=st.data())
def test_a_pod_that_asks_for_nothing_is_placed_by_backfill(conf: Any, free: Any, data: Any) -> None:
    cluster = [
        queue("default"),
        *(node(f"n{i}", cpu=1) for i in range(free)),
        pod_group("job", phase="Inqueue"),
        pod("modest", group="job"),
    ]
    decisions = Scheduler(conf).cycle(cluster, 0.0)
    assert bool(decisions.binds) == ("backfill" in conf.actions)
