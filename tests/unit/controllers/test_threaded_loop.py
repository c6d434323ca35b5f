"""The loop for a slow cluster: serial reconciliation, parallel effects, harmless late events."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pumice.clock import RealClock, VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.controllers.base import Create, Effect, Key, Plan, UpdateStatus
from pumice.controllers.threaded_loop import ThreadedLoop
from pumice.errors import ClusterError, ConflictError, QuotaExceededError, RejectedError
from pumice.metrics import Metrics
from pumice.testing import pod, queue
from tests.present import present


class Late:
    """A cluster that reports changes only when allowed."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.telling = True
        self.forgets = ""
        self.before: Callable[[str], object] = lambda verb: None

    def watch(self, kind: Any, namespace: str = "", since: str = "") -> Any:
        events = self._cluster.watch(kind, namespace, since) if self.telling else ()
        return (event for event in events if event.object["metadata"]["name"] != self.forgets)

    def __getattr__(self, name: Any) -> Any:
        method = getattr(self._cluster, name)
        if name not in ("create", "delete", "update_status", "patch", "get"):
            return method

        def called(*args: Any, **kwargs: Any) -> Any:
            self.before(name)
            return method(*args, **kwargs)

        return called


class Owner:
    """Keeps three named pods for each queue and marks the queue; not one more, however late."""

    name = "owner"
    watches = ("Queue.scheduling.volcano.sh", "Pod")

    def __init__(self) -> None:
        self.looks: list[Any] = []

    def concerns(self, kind: Any, manifest: Any, view: Any) -> Any:
        if kind == "Pod":
            return [Key(self.watches[0], "", manifest["metadata"]["labels"]["of"])]
        return [Key(kind, "", manifest["metadata"]["name"])]

    def reconcile(self, key: Any, view: Any) -> Any:
        self.looks.append(key.name)
        owner = view.get(key.kind, "", key.name)
        if owner is None:
            return Plan()
        here = view.list("Pod", "default", {"of": key.name})
        effects: list[Effect] = [Create(self.child(key.name)) for _ in range(3 - len(here))]
        if (owner.get("status") or {}).get("pending") != 3:
            effects.append(UpdateStatus({**owner, "status": {"pending": 3}}))
        return Plan(effects)

    @staticmethod
    def child(owner: Any) -> Any:
        manifest = pod("x")
        manifest["metadata"] = {
            "generateName": f"{owner}-",
            "namespace": "default",
            "labels": {"of": owner},
        }
        return manifest


@pytest.fixture
def cluster() -> Any:
    return Late(EmbeddedCluster(RealClock()))


@pytest.fixture
def loop_of(cluster: Any) -> Iterator[Any]:
    made = []

    def make(*controllers: Any, **options: Any) -> Any:
        made.append(ThreadedLoop(cluster, controllers, **options))
        return made[-1]

    yield make
    for loop in made:
        loop.close()


def names(cluster: Any, kind: str = "Pod") -> Any:
    return sorted(m["metadata"]["name"] for m in cluster.list(kind)[0])


def test_what_is_wanted_gets_done(cluster: Any, loop_of: Any) -> None:
    for name in ("a", "b", "c", "d"):
        cluster.create(queue(name))
    loop = loop_of(Owner(), workers={"owner": 2})
    loop.run_until_quiet()
    assert len(names(cluster)) == 12
    assert not loop.failures


def test_what_was_written_is_seen_before_the_cluster_tells(cluster: Any, loop_of: Any) -> None:
    cluster.create(queue("a"))
    owner = Owner()
    loop = loop_of(owner)
    loop.turn()
    cluster.telling = False
    loop.run_until_quiet()
    assert len(names(cluster)) == 3
    looks = len(owner.looks)
    assert looks > 1  # its own writes concern it
    cluster.telling = True
    loop.run_until_quiet()
    assert len(names(cluster)) == 3
    assert len(owner.looks) == looks  # a repeated event changes nothing


def test_an_object_is_not_looked_at_while_something_is_done_about_it(
    cluster: Any, loop_of: Any
) -> None:
    go_on, begun = threading.Event(), threading.Event()

    def before(verb: Any) -> None:
        if verb == "create":
            begun.set()
            go_on.wait(20)

    cluster.create(queue("a"))
    cluster.before = before
    owner = Owner()
    loop = loop_of(owner, workers={"owner": 5})
    loop.turn()
    assert begun.wait(20)
    cluster.patch(*("Queue.scheduling.volcano.sh", "", "a"), {"metadata": {"labels": {"x": "y"}}})
    loop.turn()
    assert owner.looks == ["a"]
    assert not loop.quiet
    go_on.set()
    loop.run_until_quiet()
    assert len(owner.looks) > 1


def test_a_conflict_is_tried_again_and_not_reported(cluster: Any, loop_of: Any) -> None:
    failures = [ConflictError("Queue", problem="stale")]

    def before(verb: Any) -> None:
        if verb == "update_status" and failures:
            raise failures.pop()

    cluster.create(queue("a"))
    cluster.before = before
    metrics = Metrics()
    loop = loop_of(Owner(), metrics=metrics)
    loop.run_until_quiet()
    assert cluster.get("Queue.scheduling.volcano.sh", "", "a")["status"]["pending"] == 3
    assert not loop.failures
    assert 'pumice_controller_failures_total{controller="owner"} 1' in metrics.text()


def test_an_object_that_was_deleted_meanwhile_is_no_failure(
    cluster: Any, loop_of: Any, caplog: Any
) -> None:
    class Marking(Owner):
        def reconcile(self, key: Any, view: Any) -> Any:
            found = view.get(key.kind, "", key.name)
            return Plan([UpdateStatus(found)] if found else [])

    cluster.create(queue("a"))
    late = loop_of(Marking())
    late.run_until_quiet()
    cluster.telling = False
    cluster.delete("Queue.scheduling.volcano.sh", "", "a")
    late.look_at("owner", Key("Queue.scheduling.volcano.sh", "", "a"))
    for _ in range(5):
        late.run_until_quiet()
    assert not late.failures
    assert "reconciliation failed" not in caplog.text
    cluster.telling = True
    late.run_until_quiet()
    assert not late.failures


def test_a_failure_is_reported_and_tried_later_while_others_go_on(loop_of: Any) -> None:
    clock = VirtualClock()
    cluster: Any = Late(EmbeddedCluster(clock))
    broken = threading.Event()

    class Picky(Owner):
        def reconcile(self, key: Any, view: Any) -> Any:
            if key.name == "bad" and not broken.is_set():
                raise ClusterError("Queue", problem="broken")
            return super().reconcile(key, view)

    cluster.create(queue("bad"))
    cluster.create(queue("good"))
    loop = ThreadedLoop(cluster, [Picky()])
    try:
        loop.run_until_quiet()
        assert len(names(cluster)) == 3
        assert [failure.key.name for failure in loop.failures] == ["bad"]
        assert loop.next_at() is not None
        broken.set()
        clock.advance(1)
        loop.run_until_quiet()
        assert len(names(cluster)) == 6
    finally:
        loop.close()


def test_an_object_that_keeps_failing_is_reported_why() -> None:
    clock = VirtualClock()
    cluster = EmbeddedCluster(clock)

    class Broken(Owner):
        def reconcile(self, key: Any, view: Any) -> Any:
            raise ClusterError("Secret", "default", "keys", "may not be created")

    cluster.create(queue("bad"))
    loop = ThreadedLoop(cluster, [Broken()])
    try:
        for _ in range(12):
            loop.run_until_quiet()
            clock.advance(20)
    finally:
        loop.close()
    [event] = [e for e in cluster.list("Event")[0] if e["reason"] == "FailedSync"]
    assert event["involvedObject"]["name"] == "bad"
    assert event["message"] == (
        "tried 8 times, still retrying: Secret default/keys: may not be created"
    )


def test_all_creations_are_tried_though_one_fails(cluster: Any, loop_of: Any) -> None:
    failures, tried = [ClusterError("Pod", problem="refused")], []

    def before(verb: Any) -> None:
        if verb == "create":
            tried.append(verb)
            if failures:
                raise failures.pop()

    cluster.create(queue("a"))
    cluster.before = before
    loop = loop_of(Owner())
    loop.run_until_quiet()
    assert len(loop.failures) == 1
    assert len(tried) == 4  # three, and the one that failed once more
    assert len(names(cluster)) == 3


def test_run_ends_when_reported_and_finishes_what_it_began(cluster: Any, loop_of: Any) -> None:
    stop = threading.Event()
    cluster.create(queue("a"))
    cluster.before = lambda verb: stop.set() if verb == "create" else None
    loop_of(Owner()).run(stop)
    assert len(names(cluster)) == 3


def test_what_was_written_and_is_gone_before_its_answer_is_read_is_made_again(
    cluster: Any, loop_of: Any
) -> None:
    loop = loop_of(Owner())
    made = cluster.create(queue("q"))
    cluster.update_status({**made, "status": {"pending": 3}})  # so that only pods are written
    loop.turn()
    while loop._done.empty():
        loop._wake.wait(1)
    for name in names(cluster):
        cluster.delete("Pod", "default", name, grace_s=0)
    cluster.create(Owner.child("other"))  # the watch goes past what it left out
    passing = cluster.watch
    cluster.watch = lambda *a, **k: (e for e in passing(*a, **k) if not of_q(e.object))
    loop.run_until_quiet()
    assert sum(of_q(each) for each in cluster.list("Pod")[0]) == 3


def of_q(manifest: Any) -> bool:
    return manifest["metadata"]["name"].startswith("q-")


@pytest.mark.parametrize(
    ("error", "longest_s"), [(QuotaExceededError, 60.0), (RejectedError, 1000.0)]
)
def test_what_a_quota_refuses_is_tried_once_a_minute(
    error: type[ClusterError], longest_s: float
) -> None:
    clock = VirtualClock()
    cluster = EmbeddedCluster(clock)

    class Refused(Owner):
        def reconcile(self, key: Any, view: Any) -> Any:
            raise error("Pod", "default", "x", "refused")

    cluster.create(queue("bad"))
    loop = ThreadedLoop(cluster, [Refused()])
    try:
        for _ in range(30):
            loop.run_until_quiet()
            clock.advance_to(present(loop.next_at()))
        loop.run_until_quiet()
        assert present(loop.next_at()) - clock.now() == longest_s
    finally:
        loop.close()
