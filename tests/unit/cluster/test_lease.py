"""One of several candidates leads, and never two at once."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from pumice.api.kinds import LEASE
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.cluster.lease import LeaseElector
from pumice.errors import ClusterError

_PLACE = (LEASE, "volcano-system", "volcano")


class Gate:
    """A cluster that can be cut off, or lose its answers, for one candidate."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.cut = False
        self.deaf = False
        self.before_answer: Callable[[], object] = lambda: None

    def __getattr__(self, name: Any) -> Any:
        method = getattr(self._cluster, name)
        if name not in ("get", "create", "update"):
            return method

        def called(*args: Any) -> Any:
            if self.cut:
                raise ClusterError("Lease", problem="no connection")
            answer = method(*args)
            self.before_answer()
            if self.deaf:
                raise ClusterError("Lease", problem="no answer")
            return answer

        return called


@pytest.fixture
def clock() -> Any:
    return VirtualClock()


@pytest.fixture
def cluster(clock: Any) -> Any:
    cluster = EmbeddedCluster(clock)
    cluster.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}}
    )
    return cluster


@pytest.fixture
def candidate(cluster: Any, clock: Any) -> Any:
    def make(identity: Any, through: Any = None, **more: Any) -> Any:
        return LeaseElector(
            through or cluster,
            namespace="volcano-system",
            name="volcano",
            identity=identity,
            clock=clock.now,
            **more,
        )

    return make


def spec_of(cluster: Any) -> Any:
    return cluster.get(*_PLACE)["spec"]


def test_the_first_candidate_makes_the_lease_and_leads(cluster: Any, candidate: Any) -> None:
    first = candidate("a")

    assert first.step()

    spec = spec_of(cluster)
    assert spec["holderIdentity"] == "a"
    assert spec["leaseDurationSeconds"] == 15
    assert spec["leaseTransitions"] == 0
    assert spec["renewTime"] == spec["acquireTime"] == "2026-01-01T00:00:00.000000Z"


def test_a_lease_that_is_taken_is_reported_before_its_holder_leads(
    cluster: Any, candidate: Any
) -> None:
    reported = []

    def on_won() -> None:
        reported.append((first.is_leader(), spec_of(cluster)["holderIdentity"]))
        if len(reported) == 1:
            raise ClusterError("Pod", problem="no connection")

    first = candidate("a", on_won=on_won)
    assert [first.step() for _ in range(4)] == [False, True, True, True]
    assert reported == [(False, "a"), (False, "a")]


def test_a_lease_not_renewed_is_taken_after_its_time_and_not_before(
    cluster: Any, candidate: Any, clock: Any
) -> None:
    first, second = candidate("a"), candidate("b")
    first.step()
    second.step()  # sees the lease now for the first time
    clock.advance(14.9)
    assert not second.step()
    clock.advance(0.1)
    assert second.step()
    spec = spec_of(cluster)
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("b", 1)


def test_no_moment_has_two_leaders_when_one_is_cut_off(
    cluster: Any, candidate: Any, clock: Any
) -> None:
    gate = Gate(cluster)
    first, second = candidate("a", gate), candidate("b")
    leaders = []
    for tick in range(400):
        gate.cut = tick >= 60
        if tick % 8 == 0:
            first.step()
            second.step()
        leaders.append((first.is_leader(), second.is_leader()))
        clock.advance(0.25)
    assert leaders[0] == (True, False)
    assert leaders[-1] == (False, True)
    assert (True, True) not in leaders


def test_the_lead_ends_with_the_renew_deadline_even_if_nobody_asks(
    candidate: Any, clock: Any
) -> None:
    first = candidate("a")
    first.step()
    clock.advance(9.9)
    assert first.is_leader()
    clock.advance(0.2)
    assert not first.is_leader()
    assert first.lost


def test_a_renewal_counts_from_when_it_was_asked_for(
    cluster: Any, candidate: Any, clock: Any
) -> None:
    gate = Gate(cluster)
    first = candidate("a", gate)
    first.step()
    clock.advance(2)
    gate.before_answer = lambda: clock.advance(4)
    first.step()
    gate.before_answer = lambda: None
    clock.advance(5.9)
    assert first.is_leader()
    clock.advance(0.2)
    assert not first.is_leader()


def test_an_answer_later_than_the_deadline_gives_no_lead(
    cluster: Any, candidate: Any, clock: Any
) -> None:
    gate = Gate(cluster)
    gate.before_answer = lambda: clock.advance(11)
    first = candidate("a", gate)
    assert not first.step()
    assert not first.lost
    gate.before_answer = lambda: None
    assert first.step()


def test_a_lost_answer_does_not_lose_the_lead(cluster: Any, candidate: Any, clock: Any) -> None:
    gate = Gate(cluster)
    first = candidate("a", gate)
    first.step()
    clock.advance(2)
    gate.deaf = True
    assert first.step()  # the renewal was stored, the answer was lost: the deadline of before holds
    gate.deaf = False
    clock.advance(2)
    assert first.step()  # a conflict with itself
    clock.advance(2)
    assert first.step()
    clock.advance(9)
    assert first.is_leader()


def test_who_sees_another_holder_stops_at_once_and_for_good(
    cluster: Any, candidate: Any, clock: Any
) -> None:
    first = candidate("a")
    first.step()
    lease = cluster.get(*_PLACE)
    lease["spec"]["holderIdentity"] = "b"
    cluster.update(lease)
    clock.advance(2)
    assert not first.step()
    assert first.lost
    cluster.delete(*_PLACE)
    assert not first.step()
    with pytest.raises(ClusterError):
        cluster.get(*_PLACE)


def test_a_lease_deleted_under_its_holder_is_made_again(
    cluster: Any, candidate: Any, clock: Any
) -> None:
    first = candidate("a")
    first.step()
    cluster.delete(*_PLACE)
    clock.advance(2)
    assert first.step()
    assert spec_of(cluster)["holderIdentity"] == "a"


def test_a_clean_stop_gives_the_lease_back(cluster: Any, candidate: Any, clock: Any) -> None:
    first, second = candidate("a"), candidate("b")
    second.step()
    assert second.is_leader()
    stop = threading.Event()
    stop.set()
    second.run(stop)
    assert spec_of(cluster)["holderIdentity"] == ""
    assert not second.is_leader()
    assert first.step()  # at once, without waiting for the lease to run out


def test_who_does_not_hold_the_lease_gives_nothing_back(cluster: Any, candidate: Any) -> None:
    first, second = candidate("a"), candidate("b")
    first.step()
    second.step()
    stop = threading.Event()
    stop.set()
    second.run(stop)
    assert spec_of(cluster)["holderIdentity"] == "a"


def test_run_ends_when_the_lead_is_lost(candidate: Any, clock: Any, cluster: Any) -> None:
    gate = Gate(cluster)
    first = candidate("a", gate)

    class Ticking(threading.Event):
        def wait(self, timeout: Any = None) -> bool:
            gate.cut = True
            clock.advance(timeout)
            return False

    first.run(Ticking())
    assert first.lost


def test_a_candidate_survives_whatever_goes_wrong(cluster: Any, candidate: Any, clock: Any) -> None:
    gate = Gate(cluster)
    first, second = candidate("a"), candidate("b", gate)
    first.step()
    gate.before_answer = lambda: 1 / 0
    assert not second.step()
    gate.before_answer = lambda: None
    second.step()
    clock.advance(15)
    assert second.step()


def test_terms_set_by_another_component_are_kept(cluster: Any, candidate: Any, clock: Any) -> None:
    cluster.create(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "volcano", "namespace": "volcano-system", "labels": {"a": "b"}},
            "spec": {"holderIdentity": "go", "leaseDurationSeconds": 5, "leaseTransitions": 7},
        }
    )
    second = candidate("b")
    assert not second.step()
    clock.advance(5)
    assert second.step()
    assert spec_of(cluster)["leaseTransitions"] == 8
    assert cluster.get(*_PLACE)["metadata"]["labels"] == {"a": "b"}


def test_what_becomes_of_a_lease_is_logged(
    cluster: Any, candidate: Any, clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    gate = Gate(cluster)
    first = candidate("a", gate)

    def messages() -> list[str]:
        found = [each.getMessage() for each in caplog.records]
        caplog.clear()
        return found

    first.step()
    assert messages() == ["became leader"]
    gate.cut = True
    first.step()
    assert messages() == ["cannot read or renew the lease"]
    first.release()
    assert messages() == ["cannot release the lease"]
    gate.cut = False
    second = candidate("a2", gate)
    clock.advance(20)
    second.step()
    clock.advance(20)
    second.step()
    assert messages() == ["became leader"]
    second.release()
    assert messages() == ["released the lease"]
    spec = spec_of(cluster)
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("", 1)
    third = candidate("a3", gate)
    third.release()
    assert messages() == []


@pytest.mark.parametrize(("lease_s", "stored"), [(0.5, 1), (1.0, 1), (1.9, 1), (2.0, 2)])
def test_a_lease_lasts_whole_seconds(
    cluster: Any, candidate: Any, lease_s: float, stored: int
) -> None:
    candidate("a", lease_s=lease_s).step()
    assert spec_of(cluster)["leaseDurationSeconds"] == stored


def test_a_conflict_and_then_whatever_does_not_end_a_candidate(
    cluster: Any, candidate: Any, clock: Any
) -> None:
    gate = Gate(cluster)
    first = candidate("a", gate)
    first.step()
    lease = cluster.get(*_PLACE)
    cluster.update({**lease, "spec": {**lease["spec"], "renewTime": "2026-01-01T00:00:01.0Z"}})
    gate.before_answer = lambda: 1 / 0
    assert first.step()  # the conflict is about its own lease, as far as it knows
    first.release()
    assert not first.is_leader()
