"""The documents of the pages by name, each made once for all viewers."""

import gzip
import hashlib
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from pumice.api.times import rfc3339
from pumice.dashboard import documents
from pumice.dashboard.answers import Answers, UnansweredError
from pumice.dashboard.feed import Picture
from pumice.dashboard.past import Hour, LastHour, Life
from pumice.dashboard.questions import Ask, Pictured, Starting, Waiting
from pumice.dashboard.runs import RunLibrary
from pumice.dashboard.sources import Source
from pumice.dashboard.view import Causes, Document, Scope, View, hide
from pumice.errors import InputError, Words
from pumice.records.history import History

_EVERY_S: Final = 2.0
_SHARE: Final = 0.25
"""The part of the time of the answering process that one such question may take."""


class Recurring:
    """One question about the cluster as it is, and its last answer."""

    def __init__(self, ask: Callable[[], Future[Any]], notify: Callable[[], None]) -> None:
        """Make one; ``notify`` is called when the answer differs from the one before."""
        self._ask = ask
        self._notify = notify
        self._lock = threading.Lock()
        self._asked: Future[Any] | None = None
        self._asked_for = -1
        self._asked_at = 0.0
        self._due = 0.0
        self.found: dict[str, Any] = {}
        self.problem = ""
        """Why there is no answer."""
        self.version = 0
        """Differs whenever the answer does."""

    def look(self, revision: int) -> None:
        """Ask again if the cluster has changed and the last answer is not too fresh."""
        with self._lock:
            now = time.monotonic()
            if now < self._due or revision == self._asked_for or self._asked is not None:
                return
            self._asked_at, self._asked_for = now, revision
            self._due = now + _EVERY_S
            with suppress(UnansweredError):
                self._asked = self._ask()
        if self._asked is not None:
            self._asked.add_done_callback(self._take)

    def _take(self, asked: Future[Any]) -> None:
        found, problem = _answer_of(asked)
        with self._lock:
            now = time.monotonic()
            self._due = max(self._due, now + (now - self._asked_at) * (1 / _SHARE - 1))
            self._asked = None
            if problem:
                self._asked_for = -1  # ask again, even if nothing changes
            is_new = (found, problem) != (self.found, self.problem)
            if is_new:
                self.found, self.problem = found, problem
                self.version += 1
        if is_new:
            self._notify()


def _answer_of(asked: Future[Any]) -> tuple[dict[str, Any], str]:
    """Return what was found, or why nothing was."""
    if asked.cancelled():
        return {}, "the dashboard is being stopped"
    error = asked.exception()
    return ({}, str(error)) if error is not None else (asked.result(), "")


_KEPT: Final = 64
_FEW_PODS: Final = 5_000
"""Up to this many pods the causes of waiting jobs are computed; beyond, those on groups count."""
_MOMENT_S: Final = 30.0
"""How long a page waits for the picture of an earlier moment."""

_LONGEST_NUMBER: Final = 15
_LONGEST_TIME: Final = 40
_SHORT: Final = 4_000
"""Bytes from which a document is compressed."""
_LEVEL: Final = 4


class Made(NamedTuple):
    """A document as JSON."""

    tag: str
    """The same as long as the document is."""
    body: bytes
    packed: bytes
    """The body as gzip; empty if it is short."""


class NotThereError(UnansweredError):
    """An object that the cluster does not have, or that the viewer may not see."""

    def __init__(self, what: str) -> None:
        super().__init__(f"there is no {what}, or you may not see it", 404)


@dataclass(frozen=True)
class Moment:
    """The cluster in question: as it is now, before one of the last cycles, or at a time."""

    cycle: int | None = None
    time: float | None = None
    """Of the record of the cluster."""


NOW: Final = Moment()


class Pages:
    """Documents about one cluster."""

    def __init__(self, source: Source, answers: Answers, runs: RunLibrary | None = None) -> None:
        self.source = source
        self._runs = runs or RunLibrary(())
        self.answers = answers
        self._lock = threading.Lock()
        self._made: OrderedDict[Hashable, Made] = OrderedDict()
        self._causes = Recurring(lambda: self.ask(NOW, Waiting()), self._notify)
        self._starts = Recurring(lambda: self.ask(NOW, Starting()), self._notify)

    @property
    def revision(self) -> str:
        """A tag that differs whenever documents may."""
        picture = self.source.feed.picture
        parts = (picture.revision if picture is not None else 0, self._causes.version)
        return ".".join(map(str, (*parts, self._starts.version)))

    # Moments

    def moment(self, text: str) -> Moment:
        """Read a moment: the number of a cycle, or a time of the record.

        Raises:
            InputError: it is neither.
        """
        if not text:
            return NOW
        if text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER:
            return Moment(int(text))
        if self._record is None:
            raise UnansweredError(f"expected the number of a cycle, got '{text:.40}'", 400)
        history = History(self._record)
        time = history.time(text[:_LONGEST_TIME])
        if not history.start <= time <= history.end:
            raise InputError(
                wanted=f"a time from {rfc3339(history.start)} to {rfc3339(history.end)}",
                found=Words(rfc3339(time)),
                hint="the record has no other",
            )
        return Moment(time=time)

    @property
    def _record(self) -> Path | None:
        past = self.source.about.past
        return None if past is None else past.record

    def past(self, moment: Moment) -> Made:
        """Write how far the record reaches, and the time that is looked at."""
        if self._record is None:
            raise NotThereError("record of this cluster")
        history = History(self._record)
        return _plain({"start": history.start, "end": history.end, "at": moment.time})

    def life(self, scope: Scope, name: str) -> Future[Any]:
        """Ask what became of a job over the whole record."""
        if self._record is None or not scope.sees(name):
            raise NotThereError(f"record of job {name}")
        return self.ask(NOW, Life(self._record, name))

    def _hour(self, moment: Moment) -> Hour:
        """Return what happened before a moment, as far as it is remembered."""
        feed = self.source.feed
        if moment.time is None or self._record is None:
            return Hour(feed.cycles(), feed.samples())
        resources = self._pictured(moment).resources
        asked = self.ask(moment, LastHour(self._record, moment.time, resources))
        found: Hour = asked.result(_MOMENT_S)
        return found

    # Documents

    def overview(self, scope: Scope, moment: Moment) -> Made:
        """Write the first page."""

        def make(view: View) -> Document:
            hour = self._hour(moment)
            decides = self.source.about.decides if moment.time is None else bool(hour.cycles)
            return documents.overview(view, hour.cycles, hour.samples, decides=decides)

        return self._document(("overview", self._last_cycle()), scope, moment, make)

    def queues(self, scope: Scope, moment: Moment) -> Made:
        """Write all queues."""
        _check_cluster(scope)
        return self._document("queues", scope, moment, documents.queues)

    def jobs(self, scope: Scope, moment: Moment) -> Made:
        """Write all jobs."""
        if moment is NOW and _is_small(picture := self._picture()):
            self._starts.look(picture.revision)
        return self._document("jobs", scope, moment, documents.jobs)

    def nodes(self, scope: Scope, moment: Moment) -> Made:
        """Write all nodes."""
        _check_cluster(scope)
        return self._document("nodes", scope, moment, documents.nodes)

    def job(self, scope: Scope, moment: Moment, name: str) -> Made:
        """Write one job."""

        def make(view: View) -> Document:
            row = view.job_named(name)
            if row is None:
                raise NotThereError(f"job {name}")
            events = self.source.events(name.partition("/")[0]) if moment is NOW else ()
            return documents.job(view, row, self._hour(moment).cycles, events)

        return self._document(("job", name), scope, moment, make)

    def node(self, scope: Scope, moment: Moment, name: str) -> Made:
        """Write one node."""
        _check_cluster(scope)

        def make(view: View) -> Document:
            names = view.picture.nodes.names
            if name not in names:
                raise NotThereError(f"node {name}")
            return documents.node(view, names.index(name))

        return self._document(("node", name), scope, moment, make)

    def fit(self, scope: Scope, moment: Moment, shape: dict[str, str]) -> Made:
        """Compute the largest gang of a shape that finds room."""
        _check_cluster(scope)
        key = ("fit", tuple(sorted(shape.items())))
        return self._document(key, scope, moment, lambda view: documents.fit(view, shape))

    def cycles(self, scope: Scope, moment: Moment) -> Made:
        """Write the last cycles, or those before a time."""

        def make(view: View) -> Document:
            return documents.cycles(view, self._hour(moment).cycles, self.source.feed.moments())

        return self._document(("cycles", self._last_cycle()), scope, _timed(moment), make)

    def cycle(self, scope: Scope, moment: Moment, number: int) -> Made:
        """Write one cycle."""

        def make(view: View) -> Document:
            found = next((c for c in self._hour(moment).cycles if c.number == number), None)
            if found is None:
                raise NotThereError(f"cycle {number} any more")
            return documents.cycle(view, found, self.source.feed.moments())

        return self._document(("cycle", number), scope, _timed(moment), make)

    def simulations(self) -> Made:
        """Write all runs of the simulator."""
        return _plain(self._runs.list())

    def simulation(self, name: str) -> Made:
        """Write one run."""
        found = self._runs.run(name)
        if found is None:
            raise NotThereError(f"run {name}")
        return _plain(found)

    def group_of(self, scope: Scope, moment: Moment, name: str) -> str:
        """Return the pod group of a job that may be seen."""
        view = self._view(scope, moment)
        row = view.job_named(name)
        if row is None:
            raise NotThereError(f"job {name}")
        return view.picture.jobs.keys[row]

    def namespaces(self, moment: Moment = NOW) -> list[str]:
        """Name the namespaces that have jobs or pods, now and at a moment."""
        then = _namespaces(self._pictured(moment)) if moment.time is not None else ()
        return sorted({*namespaces_of(self.source), *then})

    # Answers

    def ask(self, moment: Moment, question: Ask, wanted_s: float = math.inf) -> Future[Any]:
        """Ask a question that takes time; given up unless it is asked again in ``wanted_s``."""
        if moment.cycle is not None:
            kept = self.source.feed.moments().get(moment.cycle)
            if kept is None:
                raise NotThereError(f"snapshot of cycle {moment.cycle} any more")
            return self.answers.ask(moment, lambda: kept, question, wanted_s)
        past = self.source.about.past
        if moment.time is not None and past is not None:
            material = replace(past, now=moment.time)
            return self.answers.ask(moment, lambda: material, question, wanted_s)
        about = (id(self), self._picture().revision)
        return self.answers.ask(about, self.source.material, question, wanted_s)

    def _last_cycle(self) -> int:
        cycles = self.source.feed.cycles()
        return cycles[-1].number if cycles else 0

    # Making documents

    def _picture(self) -> Picture:
        picture = self.source.feed.picture
        if picture is None:
            problem = self.source.problem or "no cycle has run yet"
            raise UnansweredError(f"nothing to show yet: {problem}", 503)
        return picture

    def _view(self, scope: Scope, moment: Moment) -> View:
        if moment == NOW:
            now = self._picture()
            known = self._causes
            is_computed = _is_small(now) and not known.problem
            found = known.found if is_computed else None
            return View(now, found, scope, known.problem, self._starts.found)
        picture = self._pictured(moment)
        causes: Causes = self.ask(moment, Waiting()).result(_MOMENT_S) if _is_small(picture) else {}
        return View(picture, causes, scope)

    def _pictured(self, moment: Moment) -> Picture:
        """Return the picture of an earlier moment."""
        found: Picture = self.ask(moment, Pictured()).result(_MOMENT_S)
        return found

    def _document(
        self, name: Hashable, scope: Scope, moment: Moment, make: Callable[[View], Document]
    ) -> Made:
        if moment is NOW and _is_small(picture := self._picture()):
            self._causes.look(picture.revision)
        key = (name, scope, self.revision if moment == NOW else moment)
        with self._lock:
            known = self._made.get(key)
        if known is not None:
            return known
        document = hide(make(self._view(scope, moment)), scope, self.namespaces(moment))
        made = _plain(document)
        with self._lock:
            self._made[key] = made
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
        return made

    def _notify(self) -> None:
        for listener in self.source.feed.listeners:
            listener()


def namespaces_of(source: Source) -> list[str]:
    """Name the namespaces of a cluster that have jobs or pods."""
    picture = source.feed.picture
    if picture is None:
        return []
    return sorted(_namespaces(picture))


def _namespaces(picture: Picture) -> set[str]:
    keys = (*picture.jobs.keys, *picture.pods.keys)
    return {key.partition("/")[0] for key in keys if key}


def _timed(moment: Moment) -> Moment:
    """Return a moment of a record; cycles that are remembered show themselves."""
    return moment if moment.time is not None else NOW


def _plain(document: Document) -> Made:
    body = msgspec.json.encode(document)
    packed = gzip.compress(body, _LEVEL, mtime=0) if len(body) >= _SHORT else b""
    return Made(hashlib.blake2b(body, digest_size=9).hexdigest(), body, packed)


def _check_cluster(scope: Scope) -> None:
    """Refuse cluster-wide objects to viewers who may not list nodes and queues."""
    if not scope.cluster:
        raise UnansweredError("you may not see the nodes and queues of this cluster", 403)


def _is_small(picture: Picture) -> bool:
    return len(picture.pods.keys) <= _FEW_PODS
