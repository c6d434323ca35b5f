"""Chapters in words: what happened, which pods were evicted for which and why, from the record.

Decides nothing and prints nothing; each line holds numbers that were actually compared.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pumice.cli.demo.player import PodEvent, StoryRecord
from pumice.cli.demo.story import Chapter, Story


@dataclass(frozen=True)
class ChapterText:
    """One chapter: its title, what is at stake, and the outcome."""

    title: str
    text: str
    lines: tuple[str, ...]


def narrate(played: StoryRecord) -> list[ChapterText]:
    """Describe all chapters."""
    return [
        ChapterText(
            chapter.title,
            chapter.text,
            tuple(_KINDS[chapter.kind](_ChapterRecord(played, chapter))),
        )
        for chapter in played.story.chapters
    ]


def clock(seconds: float) -> str:
    """Write a moment of the story as minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


@dataclass(frozen=True)
class _ChapterRecord:
    """The record, and the chapter that is described."""

    played: StoryRecord
    chapter: Chapter

    @property
    def story(self) -> Story:
        return self.played.story

    @property
    def job(self) -> Mapping[str, Any]:
        return self.chapter.jobs[0]

    def start_of(self, job: str) -> list[PodEvent]:
        """Return the binds of the first moment at which a job got nodes."""
        binds = self.played.of("bind", job=job)
        return [each for each in binds if each.at == binds[0].at]

    def evictions(self) -> list[PodEvent]:
        return self.played.of("evict", whom=self.job["name"])

    def held(self, at: float) -> dict[str, float]:
        return [held for when, held in self.played.held if when < at][-1]


def _gangs(part: _ChapterRecord) -> list[str]:
    lines = [_started(part, job) for job in part.chapter.jobs]
    at = part.start_of(part.job["name"])[0].at
    lines.append(f"queues hold: {_shares(part, at + 1)}")
    return lines


def _started(part: _ChapterRecord, job: Mapping[str, Any]) -> str:
    binds = part.start_of(job["name"])
    nodes = sorted({each.node for each in binds})
    return (
        f"{clock(binds[0].at)}  {job['name']} ({job['queue']}) starts: {len(binds)} of "
        f"{job['pods']} pods at once, at least {job['gang']} needed, on {', '.join(nodes)}"
    )


def _shares(part: _ChapterRecord, at: float) -> str:
    held = part.held(at)
    parts = []
    for queue, deserved in part.story.deserved.items():
        lent = f", {held[queue] - deserved:g} of them borrowed" if held[queue] > deserved else ""
        parts.append(f"{queue} {held[queue]:g} cpus of {deserved:g} deserved{lent}")
    return "; ".join(parts)


def _waiting(part: _ChapterRecord) -> list[str]:
    name = part.job["name"]
    at, sentence = part.played.waits[name][0]
    waited = part.start_of(name)[0].at - part.chapter.at
    return [
        f"{clock(at)}  {name} waits: {sentence}",
        f"{_started(part, part.job)}, {clock(waited)} after it arrived",
    ]


def _preempt(part: _ChapterRecord) -> list[str]:
    evicted, job, played = part.evictions(), part.job, part.played
    lines = _left(evicted)
    for victim in dict.fromkeys(each.job for each in evicted):
        lost = sum(each.job == victim for each in evicted)
        theirs = part.story.jobs[victim][1]
        low, high = played.priorities[victim], played.priorities[job["name"]]
        lines.append(
            f"why: {victim} and {job['name']} are both in queue {played.queues[victim]}; the first "
            f"has priority {low}, the second {high}; "
            f"{victim} keeps {theirs['pods'] - lost} pods, its gang needs {theirs['gang']}"
        )
    return [*lines, _started(part, job), *_back(part, evicted)]


def _reclaim(part: _ChapterRecord) -> list[str]:
    evicted, job = part.evictions(), part.job
    lines = _left(evicted)
    lines.append(f"why: before that, {_shares(part, evicted[0].at)}")
    after = _started(part, job)
    at = part.start_of(job["name"])[0].at
    return [*lines, after, f"queues hold: {_shares(part, at + 1)}", *_back(part, evicted)]


def _shuffle(part: _ChapterRecord) -> list[str]:
    job = part.job
    evicted = part.played.of("evict", job=job["name"])
    start = part.start_of(job["name"])
    used = job["cpu"] * len(start)
    lines = [
        f"{_started(part, job)}: {used:g} cpus asked, {job['uses'] * len(start):g} actually used"
    ]
    for at in dict.fromkeys(each.at for each in evicted):
        some = [each for each in evicted if each.at == at]
        lines.append(f"{clock(at)}  measured: {_load(part, at)}")
        lines += _left(some)
        lines += _back(part, some)
    last = evicted[-1].at
    later = next(load for when, load in part.played.measured if when > last + 5)
    lines.append(f"afterwards: {_percents(later)}")
    return lines


def _load(part: _ChapterRecord, at: float) -> str:
    return _percents([load for when, load in part.played.measured if when <= at][-1])


def _percents(load: Mapping[str, float]) -> str:
    return ", ".join(f"{node} {percent:g} %" for node, percent in load.items())


def _left(evicted: list[PodEvent]) -> list[str]:
    """Return which pods leave where, for whom: one line for each moment."""
    lines = []
    for at in dict.fromkeys(each.at for each in evicted):
        some = [each for each in evicted if each.at == at]
        whom = f"for {some[0].whom}" if some[0].whom else "to run elsewhere"
        names = ", ".join(f"{_short(each.pod)} ({each.node})" for each in some)
        lines.append(f"{clock(at)}  {some[0].by} evicts {whom}: {names}")
    return lines


def _back(part: _ChapterRecord, evicted: list[PodEvent]) -> list[str]:
    """Return where evicted pods run again."""
    found: dict[tuple[float, str], list[str]] = {}
    for each in evicted:
        later = [one for one in part.played.of("bind", pod=each.pod) if one.at > each.at]
        if later:
            found.setdefault((later[0].at, later[0].node), []).append(_short(each.pod))
    return [
        f"{clock(at)}  {', '.join(pods)} {'runs' if len(pods) == 1 else 'run'} again on {node}"
        for (at, node), pods in sorted(found.items())
    ]


def _short(pod: str) -> str:
    return pod.rpartition("/")[2]


_KINDS: dict[str, Callable[[_ChapterRecord], list[str]]] = {
    "gangs": _gangs,
    "waiting": _waiting,
    "preempt": _preempt,
    "reclaim": _reclaim,
    "shuffle": _shuffle,
}
