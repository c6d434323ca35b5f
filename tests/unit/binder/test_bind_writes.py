"""Binds after what they need: one write after the other, undone while the pod waits."""

from typing import Any

import pytest

from pumice.api.decisions import Decisions
from pumice.api.devices import ClaimReservation
from pumice.api.objects import from_manifest, in_namespace
from pumice.binder.bind_writes import BindWrites
from pumice.binder.claim_writes import ClaimWrites
from pumice.cluster.base import Write
from pumice.errors import ClusterError, ConflictError, NotFoundError, RejectedError
from pumice.testing import node, pod, resource_claim

KEY, CLAIM = "default/p", ClaimReservation(claim="default/c", uid="c-1")
BIND = Write("bind", {"namespace": "default", "pod": "p", "node": "n"})


class Writer:
    """Takes writes down and answers each at once, with an error if its verb is to fail."""

    def __init__(self) -> None:
        self.sent: list[Write] = []
        self.errors: dict[str, Any] = {}
        self.held: list[Any] | None = None
        """Where answers wait, if they do."""

    def submit(self, write: Write, *, lane: Any, done: Any = None) -> None:
        self.sent.append(write)
        if self.held is None:
            done(self.errors.get(write.verb))
        else:
            self.held.append(done)

    def flush(self, timeout_s: float) -> bool:
        return True

    def verbs(self) -> list[str]:
        return [write.verb for write in self.sent]


class Scene:
    """One pod with a claim, and what is reported about its bind."""

    def __init__(self) -> None:
        manifest = pod("p")
        manifest["metadata"]["uid"] = "u"
        self.pod: Any = from_manifest(manifest)
        self.known: dict[str, Any] = {KEY: self.pod}
        self.writer = Writer()
        self.binds = BindWrites(self.writer, lambda _, key: self.known.get(key), lambda: 0.0)
        self.reports: list[Any] = []

    def bind(self) -> None:
        self.binds.bind(KEY, self.pod, (CLAIM,), BIND, self.reports.append)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_the_claim_is_reserved_before_the_bind(scene: Scene) -> None:
    scene.bind()
    assert scene.writer.verbs() == ["patch", "bind"]
    assert scene.reports == [None]


def test_a_claim_that_is_gone_refuses_the_pod_and_ends_the_bind(scene: Scene) -> None:
    scene.writer.errors["patch"] = NotFoundError("ResourceClaim", "default", "c")
    scene.bind()
    assert scene.writer.verbs() == ["patch"]
    (error,) = scene.reports
    assert isinstance(error, RejectedError)


def test_a_pod_that_is_gone_is_reported_as_gone(scene: Scene) -> None:
    scene.writer.errors["bind"] = gone = NotFoundError("Pod", "default", "p")
    scene.bind()
    assert scene.reports == [gone]


def test_the_claim_of_a_pod_that_waits_is_given_back_once(scene: Scene) -> None:
    scene.bind()
    scene.binds.prune()
    released: list[ClusterError | None] = []
    assert scene.binds.unreserve(KEY, "u", released.append)
    assert not scene.binds.unreserve(KEY, "u", released.append)
    assert scene.writer.verbs() == ["patch", "bind", "patch"]
    assert released == [None]


def test_a_claim_that_is_given_back_late_stays_with_the_next_bind(scene: Scene) -> None:
    scene.bind()
    late: list[Any] = []
    scene.writer.held = late
    scene.binds.unreserve(KEY, "u", scene.reports.append)
    scene.writer.held = None
    scene.bind()
    (answer,) = late
    answer(None)
    assert scene.binds.unreserve(KEY, "u", scene.reports.append)


def test_a_claim_that_is_not_given_back_is_reported(scene: Scene) -> None:
    scene.bind()
    scene.writer.errors["patch"] = conflict = ConflictError("ResourceClaim", "default", "c")
    released: list[ClusterError | None] = []
    assert scene.binds.unreserve(KEY, "u", released.append)
    assert released == [conflict]


def test_the_claim_of_a_bound_pod_is_its_own(scene: Scene) -> None:
    scene.bind()
    scene.binds.forget(KEY, "u")
    scene.binds.unreserve(KEY, "u", scene.reports.append)
    assert scene.writer.verbs() == ["patch", "bind"]


def test_the_claim_of_a_pod_that_is_gone_is_forgotten(scene: Scene) -> None:
    scene.bind()
    del scene.known[KEY]
    scene.binds.prune()
    scene.binds.unreserve(KEY, "u", scene.reports.append)
    assert scene.writer.verbs() == ["patch", "bind"]


@pytest.mark.parametrize(("is_bound", "undone"), [(False, ["patch"]), (True, [])])
def test_the_lock_of_a_bound_pod_is_left_to_its_device_plugin(
    scene: Scene, is_bound: Any, undone: Any
) -> None:
    scene.known["n"] = from_manifest(node("n"))
    scene.binds.expect(Decisions(binds={KEY: "n"}, node_locks={KEY: ("lock",)}))
    scene.binds.bind(KEY, scene.pod, (), BIND, scene.reports.append)
    assert scene.writer.verbs() == ["patch", "bind"]
    if is_bound:
        scene.binds.forget(KEY, "u")
    scene.binds.unreserve(KEY, "u", scene.reports.append)
    assert scene.writer.verbs()[2:] == undone


class Unanswered(Writer):
    """Sends without an answer until asked for it."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Any] = []

    def submit(self, write: Write, *, lane: Any, done: Any = None) -> None:
        self.sent.append(write)
        self.waiting.append(done)

    def answer(self) -> None:
        waiting, self.waiting = self.waiting, []
        for done in waiting:
            done(None)


def test_devices_of_a_claim_are_released_by_one_write_at_a_time() -> None:
    writer = Unanswered()
    claim: Any = from_manifest(in_namespace(resource_claim("c")))
    claims = ClaimWrites(writer, lambda _, key: claim if key == "default/c" else None)
    claims.release("default/unknown")
    assert writer.sent == []
    for _ in range(2):
        claims.release("default/c")
        claims.release("default/c")
        writer.answer()
    assert writer.verbs() == ["patch", "patch"]
