"""Answers that take time: several at once, and none that nobody waits for."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from pumice.dashboard import answers as module
from pumice.dashboard.answers import Answers, UnansweredError
from pumice.dashboard.questions import Why
from pumice.dashboard.worker import Answered

PATIENCE_S = 20.0


class Slow:
    """A process that answers when it may, or is ended."""

    may_answer = threading.Event()
    made: list["Slow"]

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.is_ended = False
        self.made.append(self)

    def has(self, about: Any) -> bool:
        return about == "same" and bool(self.asked)

    def ask(self, _about: Any, _material: Any, question: Any, is_wanted: Any) -> Answered:
        self.asked.append(question)
        while not self.may_answer.wait(0.01):
            if not is_wanted():
                raise module._NobodyWaitsError
        return Answered(question.job)

    def end(self) -> None:
        self.is_ended = True


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Slow]]:
    Slow.made, Slow.may_answer = [], threading.Event()
    monkeypatch.setattr(module, "_Respondent", Slow)
    yield Slow
    Slow.may_answer.set()


def ask(answers: Answers, job: str, wanted_s: float = 60.0) -> Future[Any]:
    unused: Any = None
    return answers.ask("same", unused, Why(job), wanted_s)


def until(holds: Any) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_second_question_does_not_wait_for_the_first(slow: type[Slow]) -> None:
    answers = Answers()
    found = [ask(answers, "a"), ask(answers, "b"), ask(answers, "c")]
    until(lambda: [len(each.asked) for each in slow.made] == [1, 1])
    slow.may_answer.set()
    assert [each.result(PATIENCE_S) for each in found] == ["a", "b", "c"]
    assert len(slow.made) == 2
    answers.close()
    assert all(each.is_ended for each in slow.made)


def test_a_question_that_nobody_asks_any_more_is_given_up(slow: type[Slow]) -> None:
    answers = Answers()
    left, kept = ask(answers, "left", 0.05), ask(answers, "kept")
    with pytest.raises(UnansweredError, match="given up"):
        left.result(PATIENCE_S)
    ended = [each.asked[0].job for each in slow.made if each.is_ended]
    assert ended == ["left"]
    slow.may_answer.set()
    assert kept.result(PATIENCE_S) == "kept"
    assert ask(answers, "left").result(PATIENCE_S) == "left"
    answers.close()


def test_a_question_that_is_asked_again_goes_on(slow: type[Slow]) -> None:
    answers = Answers()
    found = ask(answers, "a", 0.3)
    end = time.monotonic() + 0.9
    while time.monotonic() < end:
        assert ask(answers, "a", 0.3) is found
        time.sleep(0.02)
    slow.may_answer.set()
    assert found.result(PATIENCE_S) == "a"
    answers.close()
