"""Binds after what they need: one write after the other, undone while the pod waits."""

from typing import Any

import pytest

from pumice import logs
from pumice.api.decisions import Decisions
from pumice.api.devices import Allocation, ClaimReservation
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


def test_a_claim_that_stays_allocated_is_logged_on_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    writer = Writer()
    claim: Any = from_manifest(in_namespace(resource_claim("c")))
    claims = ClaimWrites(writer, lambda _, __: claim)
    for level, error, lines in ((1, ConflictError(), 0), (2, None, 0), (2, ConflictError(), 1)):
        logs.set_verbosity(level)
        writer.errors["patch"] = error
        claims.release("default/c")
        assert sum(each.getMessage() == "claim stays allocated" for each in caplog.records) == lines
    logs.set_verbosity(0)


RESERVED = ClaimReservation(claim="default/c", uid="c-1")
ALLOCATED = ClaimReservation(claim="default/c", uid="c-1", allocation=Allocation())


def patches(writer: Writer) -> list[Any]:
    return [write.arguments for write in writer.sent if write.verb == "patch"]


def test_what_is_written_of_a_claim_before_a_bind_and_after_it_failed(scene: Scene) -> None:
    user = {"resource": "pods", "name": "p", "uid": "u"}
    scene.binds.bind(KEY, scene.pod, (RESERVED,), BIND, scene.reports.append)
    (only,) = patches(scene.writer)
    assert (only["kind"], only["namespace"], only["name"]) == (
        "ResourceClaim.resource.k8s.io", "default", "c",
    )  # fmt: skip
    assert (only["patch_type"], only["subresource"]) == ("strategic", "status")
    assert only["patch"] == {"metadata": {"uid": "c-1"}, "status": {"reservedFor": [user]}}
    scene.writer.sent.clear()
    scene.binds.unreserve(KEY, "u", scene.reports.append)
    (only,) = patches(scene.writer)
    gone = [{"$patch": "delete", "uid": "u"}]
    assert only["patch"] == {"metadata": {"uid": "c-1"}, "status": {"reservedFor": gone}}


def test_devices_are_protected_given_and_taken_back(scene: Scene) -> None:
    scene.binds.bind(KEY, scene.pod, (ALLOCATED,), BIND, scene.reports.append)
    first, second = patches(scene.writer)
    assert "subresource" not in first
    assert first["patch"]["metadata"]["uid"] == "c-1"
    assert len(first["patch"]["metadata"]["finalizers"]) == 1
    assert "allocation" in second["patch"]["status"]
    scene.writer.sent.clear()
    scene.binds.unreserve(KEY, "u", scene.reports.append)
    _, last = patches(scene.writer)
    assert last["patch"]["status"] == {"allocation": None}


def test_a_repeated_bind_remembers_its_claims_and_their_devices(scene: Scene) -> None:
    scene.binds.bind(KEY, scene.pod, (ALLOCATED,), BIND, scene.reports.append)
    for claims in ((), (RESERVED,)):
        scene.writer.sent.clear()
        scene.binds.bind(KEY, scene.pod, claims, BIND, scene.reports.append)
        assert "allocation" in patches(scene.writer)[1]["patch"]["status"]
    other = ClaimReservation(claim="default/d", uid="d-1")
    scene.writer.sent.clear()
    scene.binds.bind(KEY, scene.pod, (other,), BIND, scene.reports.append)
    assert [each["name"] for each in patches(scene.writer)] == ["d"]


@pytest.mark.parametrize(
    ("error", "uid", "reported"),
    [
        (None, "c-1", None),
        (NotFoundError("ResourceClaim.resource.k8s.io", "default", "c"), "c-1", None),
        (NotFoundError("Node", "", "n"), "c-1", RejectedError),
        (ConflictError(), "c-1", ConflictError),
        (ConflictError(), "other", None),
        (ConflictError(), None, ConflictError),
    ],
)
def test_a_claim_that_is_gone_needs_no_release(
    scene: Scene, error: Any, uid: str | None, reported: Any
) -> None:
    scene.bind()
    if uid is not None:
        claim = in_namespace(resource_claim("c"))
        claim["metadata"]["uid"] = uid
        scene.known["default/c"] = from_manifest(claim)
    scene.writer.errors["patch"] = error
    released: list[Any] = []
    assert scene.binds.unreserve(KEY, "u", released.append)
    (found,) = released
    assert type(found) is (reported or type(None))
    scene.writer.errors.clear()
    assert scene.binds.unreserve(KEY, "u", released.append) == (reported is not None)


def test_the_release_of_several_claims_is_reported_once(scene: Scene) -> None:
    claims = tuple(ClaimReservation(claim=f"default/{name}", uid=name) for name in "abc")
    scene.binds.bind(KEY, scene.pod, claims, BIND, scene.reports.append)
    scene.writer.held = []
    released: list[Any] = []
    scene.binds.unreserve(KEY, "u", released.append)
    first, second, third = scene.writer.held
    first(None)
    second(ConflictError("ResourceClaim", "default", "b"))
    assert released == []
    third(RejectedError("ResourceClaim", "default", "c"))
    assert [type(each) for each in released] == [ConflictError]


@pytest.mark.parametrize("change", ["gone", "another", "bound"])
def test_pods_that_do_not_wait_are_pruned(scene: Scene, change: str) -> None:
    scene.bind()
    manifest = pod("p", node="n" if change == "bound" else None)
    manifest["metadata"]["uid"] = "other" if change == "another" else "u"
    scene.known = {} if change == "gone" else {KEY: from_manifest(manifest)}
    scene.binds.prune()
    assert not scene.binds.unreserve(KEY, "u", scene.reports.append)


def test_a_claim_that_is_not_given_back_is_logged_on_request(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    scene.bind()
    scene.writer.errors["patch"] = ConflictError("ResourceClaim", "default", "c")
    for level, lines in ((1, 0), (2, 1)):
        logs.set_verbosity(level)
        scene.binds.unreserve(KEY, "u", scene.reports.append)
        assert sum(each.getMessage() == "claim stays allocated" for each in caplog.records) == lines
    logs.set_verbosity(0)
