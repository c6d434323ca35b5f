"""A new configuration judged on a recorded past: conditions, a verdict, pages for both readers."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pumice.api.conditions import Condition, conditions, figure_words
from pumice.api.conf import SchedulerConf
from pumice.api.output_files import make_folder, write_file
from pumice.api.wording import counted, signed_span
from pumice.records.history import History
from pumice.replay.compare import ENOUGH, Comparison, GroupChange, Played, play
from pumice.scenarios.runner import CaseResult, write_junit
from pumice.sim.figures import NAMES
from pumice.sim.output import options_data, summary
from pumice.sim.report.page import render

FIGURES = (*NAMES, "jobs-earlier", "jobs-later")
"""What a condition may name."""


@dataclass(frozen=True)
class Verdict:
    """A condition, whether it is met, and the figures."""

    condition: str
    is_met: bool
    text: str

    @property
    def figures(self) -> str:
        """The text without the condition."""
        return self.text.removeprefix(f"{self.condition}: ")


@dataclass(frozen=True)
class Chapter:
    """A part of the page."""

    title: str
    text: str
    lines: list[str]


@dataclass(frozen=True)
class Canary:
    """The judgement of a configuration."""

    played: Played
    required: Sequence[Condition]
    seconds: float = 0.0

    @cached_property
    def comparison(self) -> Comparison:
        """Both configurations compared."""
        return self.played.compared()

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """Of each condition; the first is about how well the past is reproduced.

        Raises:
            InputError: a condition names a figure that there is not.
        """
        sides, fidelity = (self.comparison.old, self.comparison.new), self.comparison.fidelity
        found = [
            Verdict(each.text, each.is_met(*sides), each.words(*sides)) for each in self.required
        ]
        text = (
            f"{fidelity.near} of {counted(fidelity.jobs, 'job')} start about when they did, "
            f"{100 * ENOUGH:g} % are needed"
        )
        return [Verdict("fidelity", fidelity.is_trusted, text), *found]

    @property
    def is_good(self) -> bool:
        """Whether the answer can be trusted, and all conditions are met."""
        return all(each.is_met for each in self.verdicts)

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain data."""
        verdicts = [
            {"condition": v.condition, "met": v.is_met, "text": v.text} for v in self.verdicts
        ]
        return {"good": self.is_good, "conditions": verdicts, **self.comparison.to_dict()}


def judge(
    history: History,
    new: SchedulerConf,
    required: Iterable[str],
    since: float | None = None,
    until: float | None = None,
    *,
    old: SchedulerConf | None = None,
) -> Canary:
    """Simulate a recorded past under both configurations.

    Raises:
        InputError: a condition cannot be read, or the record has no jobs.
    """
    known = [each for text in required for each in conditions(text, FIGURES)]
    began = time.perf_counter()
    played = play(history, new, since, until, old=old)
    return Canary(played, known, time.perf_counter() - began)


def write_results(canary: Canary, path: Path, conf: Path) -> None:
    """Write JUnit XML, one test case for each condition."""
    results = [
        CaseResult(
            path=conf,
            outcome="passed" if each.is_met else "failed",
            differences=() if each.is_met else (each.text,),
            seconds=canary.seconds if not number else 0.0,
            words=each.condition,
        )
        for number, each in enumerate(canary.verdicts)
    ]
    write_junit(results, path)


def write_page(canary: Canary, path: Path, conf: str) -> None:
    """Write one page for people: the verdict, who gains and loses, and the charts of both."""
    played, found, recorded = canary.played, canary.comparison, canary.played.recorded
    measured = (played.old, played.new)
    options = options_data(recorded.setup, recorded.options, recorded.seed)
    page = render(
        summary(recorded.setup, measured, options),
        measured,
        (),
        title=f"{conf}: {'accepted' if canary.is_good else 'refused'}",
        introduction=f"{counted(found.fidelity.jobs, 'job')} of a record under the configuration "
        f"that it had, and under {conf}.",
        heading="The verdict",
        chapters=[*_chapters(canary)],
    )
    make_folder(path.parent)
    write_file(path, page)


def _chapters(canary: Canary) -> Iterator[Chapter]:
    found = canary.comparison
    marks = {True: "met", False: "NOT met"}
    lines = [f"{marks[each.is_met]}: {each.condition} ({each.figures})" for each in canary.verdicts]
    yield Chapter("Conditions", "All must be met.", lines)
    clear = "" if found.is_clear else ", not more than chance and the error of the simulation"
    wait = found.wait
    low, high = signed_span(wait.low), signed_span(wait.high)
    gap = f"A job waits {signed_span(wait.mean)} (95 %: {low} to {high})"
    yield Chapter(
        "Who gains and who loses",
        f"{gap} under the new one{clear}; {found.earlier} jobs start earlier, {found.later} later.",
        [
            *(f"queue {_line(each)}" for each in found.queues),
            *(f"namespace {_line(each)}" for each in found.namespaces),
            *found.named(),
        ],
    )
    yield Chapter(
        "How far this can be trusted",
        f"The old configuration, simulated, starts jobs {found.fidelity.mean_error_s:.1f} s off on "
        f"average; the mean wait is known to within {found.fidelity.bound_s:.1f} s.",
        [f"not known: {each}" for each in found.fidelity.unknown],
    )


def _line(each: GroupChange) -> str:
    old, new = (figure_words("wait.", side) for side in (each.old_wait_s, each.new_wait_s))
    return f"{each.name}: {counted(each.jobs, 'job')} wait {new} on average, before {old}"
