"""KubeCluster: memory for reading, lanes for writing, one thread for all traffic."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pumice.cluster.base import Lane, Write
from pumice.cluster.http.loop_thread import LoopThread
from pumice.cluster.kube.cluster import KubeCluster
from pumice.cluster.kube.connection import Connection
from pumice.errors import FencedError, GoneError, NotFoundError, UnavailableError
from tests.unit.cluster.kube.fakes import (
    LAB,
    PODS,
    FakeTime,
    Refuse,
    line,
    page,
    pod,
    serving,
    stream,
)

LIST, WATCH = f"GET {PODS}", f"WATCH {PODS}"
QUEUES = "GET /apis/scheduling.volcano.sh/v1beta1/queues"
NO_WATCH = stream(end="hang")


class Gate:
    """Holds answers back until it is opened; signals when one arrived."""

    def __init__(self, said: Any) -> None:
        self.said = said
        self.arrived = threading.Semaphore(0)
        self.open = threading.Event()

    async def __call__(self, request: Any) -> Any:
        self.arrived.release()
        await asyncio.to_thread(self.open.wait)
        return self.said


@contextmanager
def server(answers: Any) -> Iterator[Any]:
    """Run a fake server in a thread of its own."""
    thread = LoopThread("fake-server")
    thread.start()
    context = serving(answers)
    fake = thread.run(context.__aenter__())
    try:
        yield fake
    finally:
        thread.run(context.__aexit__(None, None, None))
        thread.stop()


@contextmanager
def cluster_of(answers: Any, **options: Any) -> Iterator[Any]:
    """Yield a cluster and the server behind it."""
    options.setdefault("qps", 0)
    with (
        server(answers) as fake,
        KubeCluster(Connection(fake.url), timing=FakeTime().timing, **options) as cluster,
    ):
        yield cluster, fake


def bind(name: Any, node: str = "n1") -> Any:
    arguments = {"namespace": "lab", "pod": name, "node": node, "annotations": {}}
    return Write("bind", arguments)


def patch(name: Any, value: Any) -> Any:
    return Write(
        "patch", {"kind": "Pod", "namespace": "lab", "name": name, "patch": {"value": value}}
    )


def test_what_is_followed_is_read_without_a_request() -> None:
    answers = {LIST: page(pod("a", 3)), WATCH: NO_WATCH}
    with cluster_of(answers, kinds=["Pod"]) as (cluster, fake):
        assert cluster.wait_synced(10) == []
        asked = len(fake.asked)
        copy = cluster.get("Pod", "lab", "a")
        copy["spec"]["changed"] = True
        assert cluster.peek("Pod", "lab", "a") == pod("a", 3)
        assert cluster.list("Pod") == ([pod("a", 3)], "10")
        assert list(cluster.watch("Pod", since="10")) == []
        with pytest.raises(GoneError):
            cluster.watch("Pod", since="9")
        with pytest.raises(NotFoundError):
            cluster.get("Pod", "lab", "b")
        others = [one for one in fake.asked[asked:] if "watch" not in one.query]
        assert others == []


def test_kinds_without_a_complete_list_are_named_and_those_without_a_definition_are_empty() -> None:
    gate = Gate(page())
    answers = {LIST: gate, WATCH: NO_WATCH, QUEUES: Refuse(404, bare=True)}
    kinds = ["Pod", "Queue.scheduling.volcano.sh"]
    with cluster_of(answers, kinds=kinds) as (cluster, _):
        gate.arrived.acquire()
        assert cluster.list(kinds[1]) == ([], "0")
        assert cluster.wait_synced(0) == ["Pod"]
        assert kinds[1] not in cluster.troubles()
        assert cluster.absent() == [kinds[1]]
        gate.open.set()
        assert cluster.wait_synced(10) == []


def test_a_kind_that_cannot_be_followed_is_reported_with_the_reason() -> None:
    gate = Gate(page())
    with cluster_of({LIST: [Refuse(403), gate], WATCH: NO_WATCH}, kinds=["Pod"]) as (cluster, _):
        gate.arrived.acquire()
        assert cluster.troubles() == {"Pod": "no, because"}
        assert cluster.absent() == []
        gate.open.set()
        assert cluster.wait_synced(10) == []
        assert cluster.troubles() == {}


def test_nothing_is_current_after_a_start_over_before_it_was_listed_again() -> None:
    again = Gate(page(pod("a", 3), pod("b", 20), version=20))
    answers = {LIST: [page(pod("a", 3)), again], WATCH: NO_WATCH}
    with cluster_of(answers, kinds=["Pod"]) as (cluster, _):
        assert cluster.wait_current(10) == []
        known = cluster.peek("Pod", "lab", "a")
        cluster.start_over()  # although its watch is open and has reported no trouble
        assert cluster.wait_current(0) == ["Pod"]
        assert cluster.wait_synced(0) == []
        again.arrived.acquire()
        assert cluster.wait_current(0) == ["Pod"]
        again.open.set()
        assert cluster.wait_current(10) == []
        assert cluster.peek("Pod", "lab", "b") == pod("b", 20)
        assert cluster.peek("Pod", "lab", "a") is known


def test_a_kind_whose_watch_is_lost_is_not_current_until_it_is_open_again() -> None:
    again = Gate(NO_WATCH)
    lost = Gate(stream(end="reset"))
    answers = {LIST: page(pod("a", 3)), WATCH: [lost, again]}
    with cluster_of(answers, kinds=["Pod"]) as (cluster, _):
        assert cluster.wait_current(10) == []
        lost.open.set()
        again.arrived.acquire()
        assert cluster.wait_current(0) == ["Pod"]
        assert list(cluster.troubles()) == ["Pod"]
        again.open.set()
        assert cluster.wait_current(10) == []


def test_a_watch_that_the_server_ends_in_order_leaves_no_gap() -> None:
    again = Gate(NO_WATCH)
    answers = {LIST: page(pod("a", 3)), WATCH: [stream(line("ADDED", pod("b", 11))), again]}
    with cluster_of(answers, kinds=["Pod"]) as (cluster, _):
        again.arrived.acquire()
        assert cluster.wait_current(0) == []
        again.open.set()


def test_a_kind_that_never_comes_is_reported_as_out_of_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pumice.cluster.kube.cluster._FIRST_LIST_S", 0.01)
    gate = Gate(page())
    with cluster_of({LIST: gate, WATCH: NO_WATCH}, kinds=["Pod"]) as (cluster, _):
        gate.arrived.acquire()
        with pytest.raises(UnavailableError, match="no complete list yet"):
            cluster.list("Pod")
        gate.open.set()


def test_a_closed_fence_fails_what_waits_at_once_whatever_the_rate() -> None:
    reported: list[Any] = []
    with cluster_of({}, qps=1, burst=1) as (cluster, fake):
        cluster.fence = lambda: False
        for n in range(100):
            cluster.submit(bind(f"p{n}"), lane=Lane.BIND, done=reported.append)
        assert cluster.flush(10)
        assert cluster._timing.clock() == FakeTime().now
        assert {type(error) for error in reported} == {FencedError}
        assert fake.asked == []


def test_the_end_tells_everybody_whose_write_was_not_done() -> None:
    reported: list[Any] = []
    gate = Gate(pod("x"))
    with server({f"PATCH {LAB}/x": gate}) as fake:
        with KubeCluster(Connection(fake.url), workers=1) as cluster:
            for value in range(3):
                cluster.submit(patch("x", value), lane=Lane.STATUS, done=reported.append)
            cluster.submit(patch("y", 1), lane=Lane.STATUS, done=reported.append)
            gate.arrived.acquire()
        gate.open.set()
        cluster.submit(patch("x", 4), lane=Lane.STATUS, done=reported.append)
        assert [type(error) for error in reported] == [UnavailableError] * 5
        assert cluster.flush(0)
        with pytest.raises(UnavailableError):
            cluster.get("Pod", "lab", "x")


def test_a_kind_is_taken_in_the_newest_version_that_the_server_has() -> None:
    """What is read from it is of that version, and so are writes to it."""
    kind, group = "PodGroup.scheduling.k8s.io", "/apis/scheduling.k8s.io"
    one = {"metadata": {"name": "g", "namespace": "lab", "resourceVersion": "3"}}
    answers = {
        **{f"GET {group}/{each}/podgroups": Refuse(404) for each in ("v1beta1", "v1alpha3")},
        f"GET {group}/v1alpha2/podgroups": page(one),
        f"WATCH {group}/v1alpha2/podgroups": NO_WATCH,
        f"PATCH {group}/v1alpha2/namespaces/lab/podgroups/g/status": {},
    }
    with cluster_of(answers, kinds=[kind]) as (cluster, _):
        assert cluster.wait_synced(10) == []
        found = cluster.get(kind, "lab", "g")
        assert (found["apiVersion"], cluster.absent()) == ("scheduling.k8s.io/v1alpha2", [])
        cluster.patch(kind, "lab", "g", {"status": {}}, subresource="status")
