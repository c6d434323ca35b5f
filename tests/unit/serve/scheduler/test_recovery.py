"""Recovery by itself: what each answer to a write leads to, and when."""

from types import SimpleNamespace
from typing import Any

import pytest

from pumice.api.decisions import Decisions
from pumice.api.devices import ClaimReservation
from pumice.binder.write_results import WriteResult
from pumice.errors import (
    ClusterError,
    ConflictError,
    FencedError,
    NotFoundError,
    RejectedError,
    UnavailableError,
)
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


@pytest.fixture
def scene() -> Scene:
    return Scene()


LOST = UnavailableError(problem="no answer")
UNSENT = UnavailableError(sent=False)


def test_what_is_decided_is_assumed(scene: Scene) -> None:
    decided = Decisions(
        binds={POD: "n"},
        annotations={POD: {"a": "b"}},
        reservations={POD: (CLAIM,)},
        evictions=["ns/q"],
    )
    scene.recovery.assume(decided, 0.0)
    assert scene.tables.calls == [
        ("assume", POD, "n", {"a": "b"}),
        ("assume_claims", POD, (CLAIM,)),
        ("assume_evicted", "ns/q"),
    ]
    assert scene.recovery.open == 2
    scene.tables.calls.clear()
    scene.recovery.assume_bind("ns/q", "m", {"c": "d"}, (CLAIM,), 1.0)
    assert scene.tables.calls == [
        ("assume", "ns/q", "m", {"c": "d"}),
        ("assume_claims", "ns/q", (CLAIM,)),
    ]
    assert scene.recovery.open == 3


@pytest.mark.parametrize(
    ("error", "held_until"),
    [
        (NotFoundError("Pod"), 70.0),
        (FencedError(), None),
        (UNSENT, 11.0),
        (RejectedError(), 11.0),
    ],
)
def test_a_bind_that_is_not_done_gives_its_room_back(
    scene: Scene, error: ClusterError, held_until: float | None
) -> None:
    scene.bind()
    scene.answer("bind", error, 10.0)
    assert scene.recovery.open == 0
    assert scene.recovery.undone == 1
    assert ("undo", POD, "bound") in scene.tables.calls
    assert ("undo_claims", UID) in scene.tables.calls
    assert scene.recovery.next_release == held_until
    assert (("hold", POD) in scene.tables.calls) == (held_until is not None)


@pytest.mark.parametrize("what", ["bind", "evict"])
def test_an_answer_about_another_pod_of_the_name_is_none(scene: Scene, what: str) -> None:
    (scene.bind if what == "bind" else scene.evict)()
    scene.recovery.learn([WriteResult(what, POD, "other", RejectedError())], 1.0)
    scene.recovery.learn([WriteResult(what, "ns/unknown", UID, RejectedError())], 1.0)
    assert scene.recovery.open == 1
    assert scene.recovery.undone == 0


@pytest.mark.parametrize("what", ["bind", "evict"])
def test_what_is_done_is_looked_up_unless_it_is_confirmed_in_time(scene: Scene, what: str) -> None:
    (scene.bind if what == "bind" else scene.evict)()
    scene.found = {
        "metadata": {"uid": UID, "deletionTimestamp": "t"},
        "spec": {"nodeName": "n"},
    }
    scene.answer(what, None, 10.0)
    scene.recovery.step(39.9)
    assert scene.reads == []
    scene.recovery.step(40.0)
    assert [pod for pod, _ in scene.reads] == [POD]
    assert scene.recovery.undone == 0
    scene.recovery.step(69.9)
    assert len(scene.reads) == 1
    scene.recovery.step(70.0)
    assert len(scene.reads) == 2
    scene.tables.ended, scene.tables.waits = {POD}, False
    scene.recovery.step(71.0)
    assert scene.recovery.open == 0


def test_only_what_the_tables_confirm_is_forgotten(scene: Scene) -> None:
    scene.bind()
    scene.tables.waits = False
    scene.recovery.step(1.0)  # nothing has changed since
    assert scene.recovery.open == 1
    scene.tables.ended = {"ns/q"}
    scene.recovery.step(1.0)
    assert scene.recovery.open == 1
    scene.tables.ended = {POD}
    scene.recovery.step(1.0)
    assert scene.recovery.open == 0


def test_a_new_write_is_looked_at_once_though_nothing_ended(scene: Scene) -> None:
    scene.tables.waits = False
    scene.recovery.assume(Decisions(binds={POD: "n"}), 0.0)
    scene.recovery.step(0.0)
    assert scene.recovery.open == 0


def test_a_bind_without_an_answer_is_sent_again_ever_later_and_then_looked_up(
    scene: Scene,
) -> None:
    scene.bind(annotations={POD: {"a": "b"}})
    now, sent = 10.0, list[Any]()
    for pause in (0.0, 1.0, 3.0):
        scene.answer("bind", LOST, now)
        if pause:
            scene.recovery.step(now + pause - 0.1)
            assert len(scene.sender.bound) == len(sent)
        now += pause
        scene.recovery.step(now)
        sent.append((POD, "n", {"a": "b"}))
        assert scene.sender.bound == sent
    scene.answer("bind", LOST, now)
    scene.recovery.step(now + 4.9)
    assert scene.reads == []
    scene.recovery.step(now + 5.0)
    assert scene.reads[0][0] == POD
    assert scene.sender.bound == sent
    assert scene.recovery.open == 0  # it has no node
    assert scene.recovery.next_release == now + 6.0


@pytest.mark.parametrize("error", [RejectedError(), ConflictError(), FencedError(), UNSENT])
def test_a_refusal_after_a_lost_answer_proves_nothing(scene: Scene, error: ClusterError) -> None:
    scene.bind()
    scene.answer("bind", LOST, 10.0)
    scene.recovery.step(10.0)
    scene.answer("bind", error, 11.0)
    assert scene.recovery.open == 1
    assert scene.recovery.undone == 0
    scene.recovery.step(15.9)
    assert scene.recovery.open == 1
    looked_up = isinstance(error, RejectedError | ConflictError)
    scene.recovery.step(16.0)
    assert bool(scene.reads) == looked_up
    assert len(scene.sender.bound) == (1 if looked_up else 2)


def test_a_conflict_is_looked_up_at_once(scene: Scene) -> None:
    scene.bind()
    scene.answer("bind", ConflictError(), 10.0)
    scene.recovery.step(10.0)
    assert scene.reads[0][0] == POD


def test_refusals_hold_a_pod_ever_longer_until_it_is_bound(scene: Scene) -> None:
    now = 0.0
    for delay in (1, 2, 4, 8, 16, 32, 60, 60):
        scene.bind(now=now)
        scene.answer("bind", RejectedError(), now)
        assert scene.recovery.next_release == now + delay
        scene.recovery.step(now + delay - 0.1)
        assert scene.tables.named("undo") == [("undo", POD, "bound")]
        now += delay
        scene.recovery.step(now)
        assert scene.tables.named("undo") == [("undo", POD, "held")]
        assert scene.recovery.next_release is None
    scene.bind(now=now)
    scene.answer("bind", None, now)
    scene.bind(now=now)
    scene.answer("bind", RejectedError(), now)
    assert scene.recovery.next_release == now + 1


def test_unsent_binds_hold_a_pod_for_a_short_time_only(scene: Scene) -> None:
    delays = []
    for now in (0.0, 100.0, 200.0, 300.0, 400.0, 500.0):
        scene.bind(now=now)
        scene.answer("bind", UNSENT, now)
        delays.append((scene.recovery.next_release or 0.0) - now)
        scene.recovery.step(now + 90.0)
    assert delays == [1, 2, 4, 8, 8, 8]


def test_another_pod_of_the_name_is_held_as_if_it_were_the_first(scene: Scene) -> None:
    for uid, delay in ((UID, 1), (UID, 2), ("new", 1)):
        scene.tables.uids[POD] = uid
        scene.bind()
        scene.answer("bind", RejectedError(), 0.0)
        assert scene.recovery.next_release == delay
        scene.recovery.step(90.0)


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        ({"metadata": {"uid": UID}, "spec": {"nodeName": "n"}}, "bound"),
        ({"metadata": {"uid": UID}, "spec": {"nodeName": "m"}}, "elsewhere"),
        ({"metadata": {"uid": UID}, "spec": {}}, "waits"),
        ({"metadata": {"uid": UID}, "spec": None}, "waits"),
        ({"metadata": {"uid": "other"}, "spec": {"nodeName": "n"}}, "gone"),
        (NotFoundError("Pod"), "gone"),
        (UnavailableError(), "unknown"),
    ],
)
def test_what_a_look_at_a_bind_leads_to(scene: Scene, found: Any, outcome: str) -> None:
    scene.bind()
    scene.answer("bind", ConflictError(), 10.0)
    scene.found = found
    scene.recovery.step(10.0)
    calls = scene.tables.calls
    assert (("undo", POD, "bound") in calls) == (outcome in ("waits", "gone"))
    assert (("assume", POD, "m") in calls) == (outcome == "elsewhere")
    assert ("assume", POD, "n") not in calls
    held = {"waits": 11.0, "gone": 70.0}
    assert scene.recovery.next_release == held.get(outcome)
    scene.recovery.step(10.1)
    assert len(scene.reads) == (2 if outcome == "unknown" else 1)


@pytest.mark.parametrize(
    ("error", "is_undone"),
    [(FencedError(), True), (RejectedError(), True), (UNSENT, True), (LOST, False)],
)
def test_an_eviction_that_is_not_done_is_undone(
    scene: Scene, error: ClusterError, is_undone: bool
) -> None:
    scene.evict()
    scene.answer("evict", error, 10.0)
    assert scene.recovery.open == (not is_undone)
    assert scene.recovery.undone == is_undone
    assert (("undo", POD, "evicted") in scene.tables.calls) == is_undone
    scene.recovery.step(14.9)
    assert scene.reads == []
    scene.recovery.step(15.0)
    assert bool(scene.reads) == (not is_undone)


def test_a_victim_that_is_gone_is_waited_for(scene: Scene) -> None:
    scene.evict()
    scene.answer("evict", NotFoundError("Pod"), 10.0)
    scene.recovery.step(39.9)
    assert (scene.recovery.open, scene.reads) == (1, [])


@pytest.mark.parametrize(
    ("found", "is_undone"),
    [
        ({"metadata": {"uid": UID}}, True),
        ({"metadata": {"uid": UID, "deletionTimestamp": "t"}}, False),
        ({"metadata": {"uid": "other"}}, False),
        (NotFoundError("Pod"), False),
    ],
)
def test_what_a_look_at_a_victim_leads_to(scene: Scene, found: Any, is_undone: bool) -> None:
    scene.evict()
    scene.answer("evict", LOST, 10.0)
    scene.found = found
    scene.recovery.step(15.0)
    assert scene.recovery.undone == is_undone
    assert scene.recovery.open == (not is_undone)
    scene.recovery.step(44.9)
    assert len(scene.reads) == 1
    scene.recovery.step(45.0)
    assert len(scene.reads) == (1 if is_undone else 2)


def test_a_write_without_an_answer_is_read_once_later_ones_were_answered(scene: Scene) -> None:
    scene.bind()
    scene.bind("ns/q")
    scene.answer("bind", None, 590.0, "ns/q")
    scene.found = {"metadata": {"uid": UID}, "spec": {"nodeName": "n"}}
    scene.tables.ended, scene.tables.waits = {"ns/q"}, False
    scene.recovery.step(599.9)
    assert scene.reads == []
    scene.recovery.step(600.0)
    assert [pod for pod, _ in scene.reads] == [POD]


def test_a_write_behind_those_that_were_answered_is_not_taken_for_lost(scene: Scene) -> None:
    scene.bind("ns/q")
    scene.bind()
    scene.answer("bind", None, 500.0, "ns/q")
    scene.tables.ended, scene.tables.waits = {"ns/q"}, False
    for now in (600.0, 1099.9):
        scene.recovery.step(now)
        assert scene.reads == []
    scene.recovery.step(1100.0)  # nothing was answered for long
    assert [pod for pod, _ in scene.reads] == [POD]


def test_answers_to_binds_prove_nothing_about_evictions(scene: Scene) -> None:
    scene.evict("ns/q", now=1000.0)
    scene.bind(now=1000.0)
    scene.answer("bind", None, 1590.0)
    scene.tables.ended, scene.tables.waits = {POD}, False
    scene.recovery.step(1590.0)
    scene.found = {"metadata": {"uid": "v", "deletionTimestamp": "t"}}
    scene.recovery.step(1600.0)
    assert [pod for pod, _ in scene.reads] == ["ns/q"]  # none was answered at all


def test_a_late_answer_to_an_early_write_moves_nothing_back(scene: Scene) -> None:
    for pod in ("ns/q", POD):
        scene.bind(pod)
    scene.bind("ns/q")  # once more: the third
    scene.answer("bind", None, 400.0, "ns/q")
    scene.evict(POD)
    scene.answer("bind", None, 500.0)
    assert scene.recovery._last_answered["bind"] == (3, 500.0)


@pytest.mark.parametrize(
    ("takes_s", "reads", "times"),
    [(0.0, 32, [1.0] * 32), (0.4, 3, [1.0, 0.6, 0.2]), (0.95, 2, [1.0, 0.1]), (5.0, 1, [1.0])],
)
def test_looks_are_bounded_in_number_and_time(
    scene: Scene, takes_s: float, reads: int, times: Any
) -> None:
    pods = [f"ns/p{number}" for number in range(40)]
    scene.tables.uids = dict.fromkeys(pods, UID)
    scene.bind(*pods)
    for pod in pods:
        scene.answer("bind", ConflictError(), 10.0, pod)
    scene.found = {"metadata": {"uid": UID}, "spec": {"nodeName": "n"}}
    scene.read_takes_s = takes_s
    scene.recovery.step(10.0)
    assert [pod for pod, _ in scene.reads] == pods[:reads]
    assert [left for _, left in scene.reads] == pytest.approx(times)
    scene.recovery.step(10.0)
    assert scene.reads[reads][0] == pods[reads]


def test_after_a_look_that_failed_others_come_first(scene: Scene) -> None:
    scene.bind(POD, "ns/q")
    for pod in (POD, "ns/q"):
        scene.answer("bind", ConflictError(), 10.0, pod)
    scene.found = UnavailableError()
    for _ in range(3):
        scene.recovery.step(10.0)
    assert [pod for pod, _ in scene.reads] == [POD, "ns/q", POD]
