"""Parts live and end together; the lease is released last."""

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pumice.metrics import Metrics
from pumice.serve.process import Part, Process, Watchdog


class Elector:
    """Replaces the election."""

    def __init__(self, story: Any) -> None:
        self.story = story
        self.leads = False
        self.lost = False

    def is_leader(self) -> Any:
        return self.leads

    def run(self, stop: Any) -> None:
        stop.wait(20)
        self.story.append("released")


def until_stopped(story: Any, name: Any) -> Any:
    def run(stop: Any) -> None:
        story.append(f"{name} began")
        stop.wait(20)
        story.append(f"{name} ended")

    return run


@pytest.fixture
def story() -> Any:
    return []


def process(parts: Any, elector: Any = None) -> Any:
    return Process(Metrics(), parts, elector)


def test_the_lease_is_given_back_after_all_parts_ended(story: Any) -> None:
    elector = Elector(story)
    made = process([Part("a", until_stopped(story, "a"))], elector)
    made.stop.set()
    made.run()
    assert story == ["a began", "a ended", "released"]


def breaks(stop: Any) -> None:
    raise ValueError("no")


@pytest.mark.parametrize(
    ("run", "problem"), [(breaks, "b ended: no"), (lambda stop: None, "b ended")]
)
def test_a_part_that_ends_by_itself_ends_all_and_is_reported(
    story: Any, run: Any, problem: str
) -> None:
    made = process([Part("b", run), Part("a", until_stopped(story, "a"))])
    assert made.run() == 1
    assert made.problem == problem
    assert story[-1] == "a ended"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [({"lost": True}, "the lease is lost"), ({"run": breaks}, "election ended: no")],
)
def test_without_its_lease_a_process_ends(story: Any, changes: Any, problem: str) -> None:
    elector = Elector(story)
    vars(elector).update(changes)
    made = process([Part("a", until_stopped(story, "a"))], elector)
    assert made.run() == 1
    assert made.problem == problem


def test_a_part_that_needs_the_lead_waits_for_it(story: Any) -> None:
    elector = Elector(story)
    made = process([Part("a", until_stopped(story, "a"), needs_lead=True)], elector)
    made.watch()
    assert story == []
    elector.leads = True
    made.watch()
    made.watch()
    made.stop.set()
    made.run()
    assert story == ["a began", "a ended", "released"]
    assert "pumice_leader 1" in made.metrics.text()


def test_without_an_election_it_leads(story: Any) -> None:
    made = process([])
    made.watch()
    assert "pumice_leader 1" in made.metrics.text()


def test_a_part_that_does_not_end_is_not_waited_for_for_ever() -> None:
    never = threading.Event()

    def wait(stop: threading.Event) -> None:
        never.wait(60)

    made = process([Part("stuck", wait)])
    made.patience_s = 0.01
    made.stop.set()
    assert made.run() == 1
    assert made.problem == "stuck did not stop in time"
    never.set()


@pytest.fixture
def signals() -> Iterator[Any]:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.usefixtures("signals")
def test_a_signal_stops_it(story: Any, number: Any) -> None:
    made = process([Part("a", until_stopped(story, "a"))])
    made.handle_signals()
    os.kill(os.getpid(), number)
    assert made.run() == 0


@pytest.mark.usefixtures("signals")
def test_a_signal_has_what_is_known_written_down(story: Any) -> None:
    made = process([])
    made.dump = lambda: story.append("dumped")
    made.handle_signals()
    os.kill(os.getpid(), signal.SIGUSR2)
    made.watch()
    made.watch()
    assert story == ["dumped"]


@pytest.mark.usefixtures("signals")
def test_a_dump_that_fails_is_no_harm(story: Any) -> None:
    made = process([])
    made.dump = lambda: 1 / 0
    made.handle_signals()
    os.kill(os.getpid(), signal.SIGUSR1)
    made.watch()
    assert not made.problem


def test_a_scheduler_that_is_stuck_is_noticed() -> None:
    now = [0.0]
    watchdog = Watchdog(120.0, clock=lambda: now[0])
    now[0] = 500.0
    assert watchdog.problem() == ""  # it waits for its caches
    watchdog.beat()
    now[0] = 620.0
    assert watchdog.problem() == ""
    now[0] = 621.0
    assert watchdog.problem() == "no cycle began for 121 s"


def test_controllers_that_are_stuck_are_noticed() -> None:
    made = process([])
    made.controllers_watchdog.beat()
    assert made.health_problem() == ""
    at = made.controllers_watchdog.clock()
    made.controllers_watchdog.clock = lambda: at + 700.0
    assert made.health_problem() == "no controller looked for 700 s"
    made.problem = "controllers ended"
    assert made.health_problem() == "controllers ended"
