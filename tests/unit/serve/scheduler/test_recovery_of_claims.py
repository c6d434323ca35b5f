"""Recovery beside pods: claims, groups, rebuilt tables, and pods that are held back."""

from types import SimpleNamespace
from typing import Any

import pytest

from pumice import logs
from pumice.api.decisions import Decisions
from pumice.api.devices import ClaimReservation
from pumice.binder.write_results import WriteResult
from pumice.errors import ConflictError, FencedError, NotFoundError, RejectedError, UnavailableError
from pumice.serve.scheduler.recovery import Recovery

POD, UID, CLAIM = "ns/p", "u", ClaimReservation(claim="ns/c", uid="c-1")


class Tables:
    """An informer that takes down what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.uids = {POD: UID, "ns/q": "v"}
        self.ended: set[str] = set()
        self.waits = True

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.calls.append((name, *arguments))

    def known(self, kind: str, key: str) -> Any:
        assert kind == "Pod"
        uid = self.uids.get(key)
        return None if uid is None else SimpleNamespace(metadata=SimpleNamespace(uid=uid))

    def take_ended(self) -> set[str]:
        ended, self.ended = self.ended, set()
        return ended

    def waits_for(self, pod: str, uid: str, what: str) -> bool:
        return self.waits

    def named(self, *names: str) -> list[tuple[Any, ...]]:
        found = [call for call in self.calls if call[0] in names]
        self.calls.clear()
        return found


class Sender:
    """A binder that takes down what is sent again or released."""

    def __init__(self) -> None:
        self.bound: list[tuple[Any, ...]] = []
        self.has_claims = False
        self.underway: set[tuple[str, str, str]] = set()
        self.written_groups: dict[str, Any] = {}

    def bind(self, *arguments: Any) -> None:
        self.bound.append(arguments)

    def unreserve(self, pod: str, uid: str) -> bool:
        return self.has_claims

    def is_underway(self, what: str, pod: str, uid: str) -> bool:
        return (what, pod, uid) in self.underway


class Scene:
    """Recovery of one pod's bind or eviction; the cluster answers with ``found``."""

    def __init__(self) -> None:
        self.tables, self.sender = Tables(), Sender()
        self.reads: list[tuple[str, float]] = []
        self.found: Any = {"metadata": {"uid": UID}, "spec": {}}
        self.read_takes_s = self.ticking = 0.0
        informer, binder = self._fakes()
        self.recovery = Recovery(informer, binder, self.read, clock=lambda: self.ticking)

    def _fakes(self) -> tuple[Any, Any]:
        return self.tables, self.sender

    def read(self, kind: str, namespace: str, name: str, left_s: float) -> Any:
        self.reads.append((f"{namespace}/{name}", left_s))
        self.ticking += self.read_takes_s
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def bind(self, *pods: str, now: float = 0.0, **more: Any) -> None:
        self.recovery.assume(Decisions(binds=dict.fromkeys(pods or (POD,), "n"), **more), now)
        self.recovery.step(now)
        self.tables.calls.clear()

    def evict(self, *pods: str, now: float = 0.0) -> None:
        self.recovery.assume(Decisions(evictions=list(pods or (POD,))), now)
        self.recovery.step(now)
        self.tables.calls.clear()

    def answer(self, what: str, error: Any, now: float, pod: str = POD) -> None:
        uid = self.tables.uids.get(pod, "")
        self.recovery.learn([WriteResult(what, pod, uid, error, "n")], now)


LOST = UnavailableError(problem="no answer")


@pytest.fixture
def scene() -> Scene:
    return Scene()


# Claims


def test_claims_count_as_taken_until_they_are_released(scene: Scene) -> None:
    scene.sender.has_claims = True
    scene.bind(reservations={POD: (CLAIM,)})
    scene.answer("bind", RejectedError(), 10.0)
    assert ("undo_claims", UID) not in scene.tables.calls
    scene.recovery.step(12.0)
    assert ("undo", POD, "held") not in scene.tables.calls  # it is busy with its claims
    assert scene.recovery.next_release == 13.0
    scene.answer("release", ConflictError(), 12.0)
    assert ("undo_claims", UID) not in scene.tables.calls
    scene.answer("release", None, 12.5)
    assert ("undo_claims", UID) in scene.tables.calls
    scene.answer("release", None, 12.6)
    scene.recovery.step(13.0)
    assert ("undo", POD, "held") in scene.tables.calls


def test_claims_whose_release_is_never_answered_are_released_in_the_end(scene: Scene) -> None:
    scene.sender.has_claims = True
    scene.bind()
    scene.answer("bind", RejectedError(), 10.0)
    scene.recovery.step(39.9)
    assert ("undo_claims", UID) not in scene.tables.calls
    scene.recovery.step(40.0)
    assert ("undo_claims", UID) in scene.tables.calls


def test_a_pod_that_is_bound_again_keeps_its_claims(scene: Scene) -> None:
    scene.sender.has_claims = True
    scene.bind()
    scene.answer("bind", RejectedError(), 10.0)
    scene.bind(now=11.0)
    scene.answer("release", None, 12.0)
    assert scene.tables.calls == []


def test_a_bind_that_was_assumed_can_be_undone_from_outside(scene: Scene) -> None:
    scene.recovery.undo_bind(POD, UID, 10.0)
    assert scene.tables.calls == [
        ("undo_claims", UID),
        ("undo", POD, "bound"),
        ("hold", POD),
    ]
    assert (scene.recovery.undone, scene.recovery.next_release) == (1, 11.0)


# Groups


@pytest.mark.parametrize(
    ("error", "undone_at"), [(None, 40.0), (RejectedError(), 10.0), ("none", 600.0)]
)
def test_the_status_of_a_group_is_assumed_until_it_is_confirmed(
    scene: Scene, error: Any, undone_at: float
) -> None:
    scene.sender.written_groups = {"ns/g": ("status", {"a": "b"})}
    scene.recovery.assume_groups(0.0)
    assert scene.tables.named("assume_group") == [("assume_group", "ns/g", "status", {"a": "b"})]
    if error != "none":
        scene.recovery.learn([WriteResult("group", "ns/g", "", error)], 10.0)
    if undone_at > 10.0:
        scene.recovery.step(undone_at - 0.1)
        assert scene.tables.named("undo_group") == []
        scene.recovery.step(undone_at)
    assert scene.tables.named("undo_group") == [("undo_group", "ns/g")]
    scene.recovery.step(9999.0)
    assert scene.tables.named("undo_group") == []


def test_other_writes_are_left_to_others(scene: Scene) -> None:
    for what in ("queue", "cause", "pod status"):
        scene.recovery.learn([WriteResult(what, "ns/g", "", RejectedError())], 1.0)
    assert scene.tables.calls == []


# Failures


def test_an_answer_that_cannot_be_processed_leaves_its_pod_in_doubt(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.bind(POD, "ns/q")
    learn = scene.recovery._learn

    def fails(result: WriteResult, now: float) -> None:
        if result.key == POD:
            raise RuntimeError("first")
        learn(result, now)

    monkeypatch.setattr(scene.recovery, "_learn", fails)
    results = [WriteResult("bind", POD, UID), WriteResult("bind", "ns/q", "v", FencedError())]
    with pytest.raises(RuntimeError, match="first"):
        scene.recovery.learn(results, 10.0)
    assert scene.recovery.open == 1
    scene.recovery.step(14.9)
    assert scene.reads == []
    scene.recovery.step(15.0)
    assert [pod for pod, _ in scene.reads] == [POD]


# Rebuilt tables


@pytest.mark.parametrize("what", ["bind", "evict"])
@pytest.mark.parametrize(
    ("answered", "underway", "read_at"),
    [(True, False, 31.0), (False, True, 600.0), (False, False, 15.0)],
)
def test_writes_count_on_rebuilt_tables_and_unclear_ones_are_looked_up(
    scene: Scene, what: str, answered: bool, underway: bool, read_at: float
) -> None:
    (scene.bind if what == "bind" else scene.evict)()
    if answered:
        scene.answer(what, None, 1.0)
    if underway:
        scene.sender.underway = {(what, POD, UID)}
    rebuilt: Any = Tables()
    scene.recovery.move_to(rebuilt, 10.0)
    wanted: list[Any] = [("assume", POD, "n", {}), ("assume_claims", POD, ())]
    assert rebuilt.named("assume", "assume_claims", "assume_evicted") == (
        wanted if what == "bind" else [("assume_evicted", POD)]
    )
    scene.recovery.step(read_at - 0.1)
    assert scene.reads == []
    scene.recovery.step(read_at)
    assert [pod for pod, _ in scene.reads] == [POD]


def test_a_bind_decided_on_replaced_tables_is_not_sent_again(scene: Scene) -> None:
    scene.bind()
    scene.sender.underway = {("bind", POD, UID)}
    rebuilt: Any = Tables()
    scene.recovery.move_to(rebuilt, 10.0)
    scene.answer("bind", LOST, 11.0)
    scene.recovery.step(15.9)
    assert (scene.sender.bound, scene.reads) == ([], [])
    scene.recovery.step(16.0)
    assert [pod for pod, _ in scene.reads] == [POD]


def test_another_pod_of_the_name_is_not_assumed_on_rebuilt_tables(scene: Scene) -> None:
    scene.sender.has_claims = True
    scene.bind("ns/q")
    scene.answer("bind", RejectedError(), 1.0, "ns/q")
    scene.bind()
    other: Any = Tables()
    other.uids = {POD: "other", "ns/q": "other"}
    scene.recovery.move_to(other, 10.0)
    assert other.calls == []
    same: Any = Tables()
    scene.recovery.move_to(same, 10.0)
    assert same.calls == [
        ("assume", POD, "n", {}),
        ("assume_claims", POD, ()),
        ("assume_claims", "ns/q", ()),
        ("hold", "ns/q"),
    ]


def test_groups_are_as_the_cluster_has_them_on_rebuilt_tables(scene: Scene) -> None:
    scene.sender.written_groups = {"ns/g": ("status", {})}
    scene.recovery.assume_groups(0.0)
    rebuilt: Any = Tables()
    scene.recovery.move_to(rebuilt, 10.0)
    scene.recovery.step(9999.0)
    assert rebuilt.named("undo_group") == []


def test_what_the_rebuilt_tables_do_not_wait_for_is_forgotten(scene: Scene) -> None:
    scene.bind()
    scene.evict("ns/q")
    rebuilt: Any = Tables()
    rebuilt.waits = False
    scene.recovery.move_to(rebuilt, 10.0)
    scene.recovery.step(10.0)
    assert scene.recovery.open == 0


# Held pods


def test_a_pod_that_is_gone_is_held_only_as_long_as_it_is_known(scene: Scene) -> None:
    scene.bind()
    del scene.tables.uids[POD]
    scene.recovery.learn([WriteResult("bind", POD, UID, NotFoundError("Pod"))], 10.0)
    assert scene.recovery.next_release is None


def test_refusals_of_pods_that_are_gone_are_forgotten(scene: Scene) -> None:
    pods = [f"ns/p{number}" for number in range(34)]
    for pod in pods:
        scene.tables.uids[pod] = UID
        scene.bind(pod)
        scene.answer("bind", RejectedError(), 0.0, pod)
    for pod in pods[1:]:
        del scene.tables.uids[pod]
    held: Any = scene.recovery._held
    scene.recovery.step(0.5)
    assert len(held._refused) == 34  # all are held back
    scene.recovery.step(1.0)
    assert list(held._refused) == [pods[0]]


def test_a_look_that_failed_is_logged_on_request(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    scene.bind()
    scene.answer("bind", ConflictError(), 10.0)
    scene.found = UnavailableError()
    for level, lines in ((1, 0), (2, 1)):
        logs.set_verbosity(level)
        scene.recovery.step(10.0)
        assert sum(each.getMessage() == "look-up failed" for each in caplog.records) == lines
    logs.set_verbosity(0)
