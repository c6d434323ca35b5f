"""A session whose jobs are all examined decides what it would have decided unobserved."""

from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from pumice.api.conf import SchedulerConf
from pumice.api.decisions import Decisions
from pumice.cluster.services import SERVICES
from pumice.examine.causes import Examiner
from pumice.examine.order_keys import OrderBook
from pumice.framework.session import Session
from pumice.scenarios.runner import CycleScheduler, SchedulerFactory, find_scenarios, play
from pumice.scenarios.scenario import Scenario, read_document, scenario_from
from pumice.scheduler import Observer, Scheduler

TESTS: Final = Path(__file__).parents[1]
FOLDERS: Final = sorted(
    each for root in ("golden", "scenarios") for each in (TESTS / root).iterdir() if each.is_dir()
)
SAMPLE: Final = 8
"""Cases examined in each folder."""


class ExaminesAll(Observer):
    """Examines every job of a session, as it opens and when all is decided."""

    def opened(self, ssn: Session) -> None:
        book = OrderBook(ssn)
        self._examiners = [Examiner(key) for key in ssn.snapshot.jobs.row_of]
        for each in self._examiners:
            each.book = book
            each.opened(ssn)

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        for each in self._examiners:
            each.decided(ssn, decisions)


class Examined(Scheduler):
    """Decides under the eyes of an examiner."""

    def decide(self, *given: Any, **more: Any) -> Decisions:
        return super().decide(*given, **more, observer=ExaminesAll())


def examined(conf: SchedulerConf, seed: int) -> CycleScheduler:
    return Examined(conf, seed=seed, services=SERVICES)


def unobserved(conf: SchedulerConf, seed: int) -> CycleScheduler:
    return Scheduler(conf, seed=seed, services=SERVICES)


def decided(scenario: Scenario, factory: SchedulerFactory) -> list[Any]:
    """Return each cycle's decisions; an examiner adds numbers to records, so those are left out."""
    found = []
    for cycle in play(scenario, factory):
        records = {key: replace(one, numbers={}) for key, one in cycle.decisions.records.items()}
        found.append(replace(cycle.decisions, records=records))
    return found


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda each: f"{each.parent.name}-{each.name}")
def test_an_examined_session_decides_the_same(folder: Path) -> None:
    files = [each.path for each in find_scenarios([folder])]
    for path in files[:: max(1, len(files) // SAMPLE)]:
        scenario = scenario_from(read_document(path), path)
        assert decided(scenario, examined) == decided(scenario, unobserved), path.name
