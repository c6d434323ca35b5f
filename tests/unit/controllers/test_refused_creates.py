"""Pods that a quota refuses, on a cluster that is slow: few are tried, and all that have room."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from pumice.clock import RealClock, VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.controllers.base import Create, Key, Plan, UpdateStatus, View
from pumice.controllers.threaded_loop import ThreadedLoop
from pumice.errors import QuotaExceededError, RejectedError
from pumice.testing import pod, queue
from tests.present import present
from tests.unit.controllers.test_threaded_loop import Late, Owner

MANY = 40
AT_A_TIME = 32
"""Effects that are carried out in parallel."""


def named(index: int, task: str) -> Any:
    made = pod(f"{task}-{index}")
    marks = {"volcano.sh/job-name": "j", "volcano.sh/task-spec": task}
    return {**made, "metadata": {**made["metadata"], "annotations": marks}}


class Maker:
    """Makes many pods of two tasks."""

    name, watches = "maker", ("Queue.scheduling.volcano.sh", "Pod")
    again_in_s: float | None = None

    def concerns(self, kind: str, manifest: Any, view: View) -> tuple[Key, ...]:
        return (Key(kind, "", manifest["metadata"]["name"]),) if kind != "Pod" else ()

    def reconcile(self, key: Key, view: View) -> Plan:
        wanted = [named(i, task) for task in ("big", "small") for i in range(MANY)]
        effects = [
            Create(one)
            for one in wanted
            if view.get("Pod", "default", one["metadata"]["name"]) is None
        ]
        return Plan([*effects], self.again_in_s)


class Refusing(EmbeddedCluster):
    """Has no room for pods of one task, and refuses one pod otherwise."""

    room = 0
    rejects = ""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.tried: Counter[str] = Counter()

    def create(self, manifest: Any, **how: Any) -> Any:
        name = manifest["metadata"]["name"]
        if manifest["kind"] == "Pod":
            task, _, index = name.partition("-")
            self.tried[task] += 1
            if name == self.rejects:
                raise RejectedError("Pod", "default", name, "not this one")
            if task == "big" and int(index) >= self.room:
                raise QuotaExceededError("Pod", "default", name, "exceeded quota")
        return super().create(manifest, **how)

    def names(self) -> Counter[str]:
        return Counter(one["metadata"]["name"].partition("-")[0] for one in self.list("Pod")[0])


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def cluster(clock: VirtualClock) -> Refusing:
    made = Refusing(clock)
    made.create(queue("q"))
    return made


@pytest.fixture
def loop(cluster: Refusing) -> Iterator[ThreadedLoop]:
    made = ThreadedLoop(cluster, [Maker()])
    yield made
    made.close()


def again(loop: ThreadedLoop, clock: VirtualClock) -> None:
    clock.advance_to(present(loop.next_at()))
    loop.run_until_quiet()


def test_pods_like_a_refused_one_are_not_tried(loop: Any, cluster: Any, clock: Any) -> None:
    loop.run_until_quiet()
    assert cluster.names() == {"small": MANY}
    assert 1 <= cluster.tried["big"] <= AT_A_TIME
    cluster.tried.clear()
    for _ in range(10):
        again(loop, clock)
    assert cluster.tried == {"big": 10}


def test_all_that_have_room_again_are_made(loop: Any, cluster: Any, clock: Any) -> None:
    loop.run_until_quiet()
    cluster.room = MANY
    again(loop, clock)
    assert cluster.names() == {"small": MANY, "big": MANY}
    assert loop.next_at() is None


def test_a_pod_that_fails_otherwise_keeps_none_from_being_tried(
    loop: Any, cluster: Any, clock: Any
) -> None:
    cluster.rejects = "small-0"
    loop.run_until_quiet()
    cluster.room, cluster.rejects = MANY, "big-0"
    again(loop, clock)
    assert cluster.names() == {"small": MANY, "big": MANY - 1}


def test_timers_run_on_though_pods_are_refused(cluster: Any, clock: Any) -> None:
    maker = Maker()
    maker.again_in_s = 2.0
    loop = ThreadedLoop(cluster, [maker])
    try:
        loop.run_until_quiet()
        for _ in range(15):
            again(loop, clock)
        assert present(loop.next_at()) - clock.now() == pytest.approx(2.0)
    finally:
        loop.close()


class Counting(Owner):
    """Counts what is there if its pods are refused."""

    def reconcile(self, key: Any, view: Any) -> Any:
        plan = super().reconcile(key, view)
        owner = view.get(key.kind, "", key.name)
        if not (owner.get("status") or {}).get("pending"):
            plan.if_refused = [UpdateStatus({**owner, "status": {"pending": 1}})]
        return plan


def test_what_is_to_be_written_beside_a_refused_pod_is_written() -> None:
    def before(verb: Any) -> None:
        if verb == "create":
            raise QuotaExceededError("Pod", "default", "x", "refused")

    cluster: Any = Late(EmbeddedCluster(RealClock()))
    cluster.create(queue("a"))
    cluster.before = before
    loop = ThreadedLoop(cluster, [Counting()])
    try:
        loop.run_until_quiet()
    finally:
        loop.close()
    [found] = cluster.list("Queue.scheduling.volcano.sh")[0]
    assert found["status"]["pending"] == 1
    assert cluster.list("Pod")[0] == []
