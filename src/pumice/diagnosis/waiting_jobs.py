"""All jobs that wait, each with its decisive cause: one cycle, examined for every one of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pumice.api.decisions import Decisions
from pumice.clock import Deadline
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.explain import state_of, with_stated
from pumice.diagnosis.forecast import Forecast, broken_promises, forecast_all
from pumice.diagnosis.manifest_causes import causes_of
from pumice.diagnosis.runner import Replay
from pumice.examine.causes import Examiner, as_recorded
from pumice.examine.findings import Finding, Position
from pumice.examine.order_keys import OrderBook
from pumice.framework.session import Session
from pumice.scheduler import Observer

MOST_EXAMINED: Final = 300
"""Jobs for which every gate is asked; further ones show the record of the cycle."""


@dataclass(frozen=True, kw_only=True)
class WaitingJob:
    """One line of the list."""

    job: str
    name: str
    queue: str
    cause: Finding
    position: Position | None
    forecast: Mapping[str, Any] | None = None
    reservation: Mapping[str, Any] | None = None

    def to_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            "job": self.job,
            "name": self.name,
            "queue": self.queue,
            **self.cause.to_data(),
            "position": self.position.to_data() if self.position else None,
            "forecast": dict(self.forecast) if self.forecast else None,
            "reservation": dict(self.reservation) if self.reservation else None,
        }


class _All(Observer):
    """Observes one cycle for many jobs."""

    def __init__(self, keys: list[str]) -> None:
        self.examiners = [Examiner(key) for key in keys]

    def opened(self, ssn: Session) -> None:
        """Ask every gate for each job."""
        book = OrderBook(ssn)
        for number, each in enumerate(self.examiners):
            each.book = book
            each.asks = number < MOST_EXAMINED
            each.opened(ssn)

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        """Record the outcome of each."""
        for each in self.examiners:
            each.decided(ssn, decisions)


def waiting_jobs(
    world: ClusterState,
    *,
    foresee: bool = True,
    default_s: float | None = None,
    deadline: Deadline | None = None,
) -> list[WaitingJob]:
    """List every job that the next cycle leaves waiting, whatever the reason.

    Starts that are not known at the deadline are unknown.
    """
    bare = [key for key in world.jobs if world.group_titled(key) not in world.groups]
    watch = _All([*world.groups, *bare])
    Replay(world).decide(watch)
    waiting = [each for each in watch.examiners if state_of(world, each.outcome) == "waits"]
    keys = [each.outcome.job for each in waiting]
    starts: Mapping[str, Forecast] = {}
    if keys and foresee:
        starts = forecast_all(world, keys, default_s=default_s, deadline=deadline)
    promised = [each for each in waiting if each.outcome.makes_room and each.outcome.job in starts]
    broken = broken_promises(world, promised) if promised else {}
    return [
        _line(world, each, starts, broken.get(each.outcome.job))
        for each in sorted(waiting, key=_in_line)
    ]


def _in_line(examiner: Examiner) -> tuple[int, int, str]:
    place = examiner.position
    if place is None:
        return 1 << 30, 0, examiner.outcome.job
    return place.queue_place, place.place, examiner.outcome.job


def _line(
    world: ClusterState,
    examiner: Examiner,
    starts: Mapping[str, Any],
    broken: Sequence[Finding] | None,
) -> WaitingJob:
    outcome = examiner.outcome
    if broken:
        cause = broken[0]
    elif examiner.asks or not outcome.listed:
        cause = causes_of(world, examiner)[0]
    else:
        cause = as_recorded(outcome)
    found = starts.get(outcome.job)
    return WaitingJob(
        job=outcome.job,
        name=world.title(outcome.job),
        queue=with_stated(world, outcome).queue,
        cause=cause,
        position=examiner.position,
        forecast=found.to_data() if found is not None else None,
        reservation=outcome.reservation,
    )
