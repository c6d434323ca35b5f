"""Clocks: timers run in order, at their time, once."""

from functools import partial

from pumice.clock import Deadline, RealClock, VirtualClock


def test_timers_run_in_the_order_of_time_then_of_setting() -> None:
    clock = VirtualClock(0.0)
    ran = []

    def run(name: str) -> None:
        ran.append((clock.now(), name))

    for when, name in [(2, "c"), (1, "a"), (1, "b"), (5, "late")]:
        clock.call_at(when, partial(run, name))
    assert clock.advance_to(3) == 3
    assert ran == [(1, "a"), (1, "b"), (2, "c")]
    assert clock.now() == 3


def test_a_timer_set_by_a_timer_runs_on_the_way() -> None:
    clock = VirtualClock(0.0)
    ran = []
    clock.call_at(1, lambda: clock.call_at(2, lambda: ran.append(clock.now())))
    clock.advance(10)
    assert ran == [2]


def test_a_cancelled_timer_does_not_run() -> None:
    clock = VirtualClock(0.0)
    ran = []
    clock.call_at(1, lambda: ran.append(1)).cancel()
    assert clock.next_at() is None
    assert clock.advance(5) == 0
    assert ran == []


def test_a_step_goes_to_the_next_timer_and_no_further() -> None:
    clock = VirtualClock(0.0)
    clock.call_at(7, lambda: None)
    assert clock.step()
    assert clock.now() == 7
    assert not clock.step()


def test_a_timer_of_the_past_runs_now_and_time_never_goes_back() -> None:
    clock = VirtualClock(10.0)
    seen = []
    clock.call_at(3, lambda: seen.append(clock.now()))
    clock.advance_to(5)
    assert (seen, clock.now()) == ([10.0], 10.0)


def test_real_time_runs_what_is_due_when_asked() -> None:
    clock = RealClock()
    ran = []
    clock.call_at(clock.now() - 1, lambda: ran.append("past"))
    clock.call_at(clock.now() + 3600, lambda: ran.append("future"))
    assert clock.run_due() == 1
    assert ran == ["past"]


def test_a_part_of_an_answer_has_half_of_the_time_and_states_all_of_it() -> None:
    whole = Deadline.of(600.0)
    half = whole.halved()
    assert half.within_s == 600.0
    assert 299.0 < whole.ends - half.ends <= 300.0
    assert Deadline.of(0.0).halved().is_over
    assert not Deadline().halved().is_over
