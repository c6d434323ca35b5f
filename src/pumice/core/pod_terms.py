"""Number of pods that match a term in each topology domain, as columns that follow every move.

A session's filters and scores share one ``PodTerms``.  Counts are made when first asked for and
follow the Kubernetes view of nodes afterwards, also when a move is rolled back.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from pumice.core.labels import LabelColumn, node_labels, untolerated
from pumice.core.resources import Mask
from pumice.core.shape_terms import Matcher, Port, ShapeTerms, Spread, Term, TermBook, ports_clash
from pumice.core.shapes import Shape
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.core.term_counts import Counter, Log, SpreadCounter

Owner = int | tuple[int, int]
"""A shape, with a label class where the shape's terms quote labels."""

Wish = tuple[int, Term]
"""A weight, below zero for anti-affinity, and a preferred term."""

_BOOK, _TERMS = "core.shape_terms", "core.pod_terms"
_BROAD = 512
"""A count that follows more label classes than this is asked, not listed under each class."""


class PodTerms:
    """The counts of one session."""

    def __init__(self, snapshot: Snapshot, book: TermBook) -> None:
        self.book = book
        self._snapshot = snapshot
        self._tasks = snapshot.tasks
        self._journal = snapshot.journal
        self.session = snapshot.journal.session
        self._labels = node_labels(snapshot)
        self._rows: LabelColumn | None = None
        self._counters: dict[Any, Counter] = {}
        self._by_class: dict[int, list[Counter]] = {}
        self._by_owner: dict[Owner, list[Counter]] = {}
        self._broad: list[Counter] = []
        self._told: dict[tuple[int, int], list[Counter]] = {}
        """Counts that pods of a label class and a shape change, as long as none is added."""
        self.speaking = self._in_use()
        self.anti: dict[Term, list[Owner]] = {}
        self.preferred: dict[Wish, list[Owner]] = {}
        self._list_owners()
        self._bound: _Bound | None = None
        self._varies = any(map(book.varies, self.speaking))
        """Whether terms quote the labels of their own pods."""
        self._unmatched: int | None = None

    def _in_use(self) -> set[int]:
        """Find the shapes that have terms and a pod."""
        speaking = np.array(self.book.speaking, dtype=np.intp)
        if not len(speaking):
            return set()
        shapes = self._tasks.shape[: self._tasks.n]
        used = np.bincount(shapes[shapes >= 0], minlength=len(self._snapshot.shapes))
        return set(speaking[used[speaking] > 0].tolist())

    def _list_owners(self) -> None:
        for number in sorted(self.speaking):
            shape = self._snapshot.shapes[number]
            terms = self.book.of(shape, 0)
            if terms is None or not (terms.anti or terms.preferred):
                continue
            for owner, own in self._owners(shape, terms):
                for term in set(own.anti):
                    self.anti.setdefault(term, []).append(owner)
                for wish in set(own.preferred):
                    self.preferred.setdefault(wish, []).append(owner)

    def _owners(self, shape: Shape, terms: ShapeTerms) -> Iterable[tuple[Owner, ShapeTerms]]:
        if not self.book.varies(shape.id):
            yield shape.id, terms
            return
        rows = np.flatnonzero(self._tasks.shape[: self._tasks.n] == shape.id)
        for label_class in np.unique(self._tasks.label_class[rows]).tolist():
            own = self.book.of(shape, label_class)
            if own is not None:
                yield (shape.id, label_class), own

    # Terms of other pods about a pod

    def binding(self, label_class: int) -> tuple[list[Term], list[Wish]]:
        """Return other pods' anti-affinity terms and weighted preferences about pods of a class."""
        if self._bound is None:
            self._bound = _Bound(self.book, self.anti, self.preferred)
        return self._bound.of(label_class)

    def like(self, label_class: int) -> int:
        """Return the first label class about which all terms say the same as about this one."""
        if self._varies:
            return label_class
        found = self._likes.get(label_class)
        if found is None:  # no term matches it
            if self._unmatched is None:
                self._unmatched = label_class
            found = self._unmatched
        return found

    @cached_property
    def _likes(self) -> dict[int, int]:
        """Label classes that a term matches to the first that is matched by the same terms."""
        matchers: dict[int, Matcher] = {}
        for number in self.speaking:
            terms = self.book.of(self._snapshot.shapes[number], 0) or ShapeTerms()
            matchers |= {each.id: each for each in terms.matchers()}
        matched: dict[int, list[int]] = {}
        for matcher in matchers.values():
            for label_class in matcher.classes(self.book):
                matched.setdefault(label_class, []).append(matcher.id)
        first: dict[tuple[int, ...], int] = {}
        return {each: first.setdefault(tuple(found), each) for each, found in matched.items()}

    # Counts

    def matching(
        self,
        matchers: Iterable[Matcher],
        key: str | None,
        *,
        eligible: Mask | None = None,
        staying: bool = False,
    ) -> Counter:
        """Count pods that match all matchers by the domains of a label, by node without one.

        Only pods on ``eligible`` nodes count, and with ``staying`` none that is terminating.
        """
        chosen = tuple(sorted({matcher.id: matcher for matcher in matchers}.items()))
        where = None if eligible is None else eligible.tobytes()
        name = ("matching", tuple(number for number, _ in chosen), key, where, staying)
        found = self._counters.get(name)
        if found is None:
            found = Counter(self._domains(key), eligible)
            self._follow_classes(name, found, [each for _, each in chosen], staying=staying)
        return found

    def spread(self, each: Spread, eligible: Mask) -> SpreadCounter:
        """Count pods for a hard spread constraint."""
        name = ("spread", each.counted.id, each.key, each.min_domains, eligible.tobytes())
        found = self._counters.get(name)
        if found is None:
            found = SpreadCounter(self._domains(each.key), eligible, each.min_domains)
            self._follow_classes(name, found, [each.counted], staying=True)
        assert isinstance(found, SpreadCounter)  # noqa: S101  # the name says so
        return found

    def owning(self, term: Term) -> Counter:
        """Count pods that have a required anti-affinity term."""
        return self._owned(("anti", term), term.key, self.anti[term])

    def wishing(self, wish: Wish) -> Counter:
        """Count pods that have a preferred term of this weight."""
        return self._owned(("wish", wish), wish[1].key, self.preferred[wish])

    def holding(self, port: Port) -> Counter:
        """Count pods, node by node, that hold a host port which clashes with the given one."""
        owners = [
            number
            for number in self.speaking
            if any(ports_clash(port, each) for each in self._ports(number))
        ]
        return self._owned(("port", port), None, owners)

    def _ports(self, number: int) -> tuple[Port, ...]:
        terms = self.book.of(self._snapshot.shapes[number], 0)
        return () if terms is None else terms.ports

    def eligible(
        self, shape: Shape, constraints: tuple[Spread, ...]
    ) -> Iterable[tuple[Spread, Mask]]:
        """Yield, for each of a pod's spread constraints, the nodes whose pods count."""
        if not constraints:
            return
        labels, spec = self._labels, shape.spec
        whole = np.ones(self._snapshot.nodes.n, dtype=bool)
        for each in constraints:
            column = labels.column(each.key)
            if not column.is_everywhere:
                whole &= column.codes >= 0
        demanded = labels.demanded(spec)
        tainted = untolerated(self._snapshot, spec, ("NoSchedule", "NoExecute"))
        for each in constraints:
            mask = whole
            if each.honours_affinity and demanded is not None:
                mask = mask & demanded
            if each.honours_taints and tainted is not None:
                mask = mask & (tainted == 0)
            yield each, mask

    def _domains(self, key: str | None) -> LabelColumn:
        if key is not None:
            return self._labels.column(key)
        if self._rows is None:
            self._rows = self._labels.names()
        return self._rows

    def _follow_classes(
        self, name: Any, counter: Counter, matchers: list[Matcher], *, staying: bool
    ) -> None:
        """Fill a count of matching pods and keep it up to date."""
        classes = matchers[0].classes(self.book)
        for matcher in matchers[1:]:
            both = set(classes).intersection(matcher.classes(self.book))
            classes = sorted(both)
        tasks, n = self._tasks, self._tasks.n
        mask = np.zeros(len(self._snapshot.label_classes) + 1, dtype=bool)
        mask[classes] = True
        picked = np.flatnonzero(mask[tasks.label_class[:n]] & tasks.in_view[:n])
        if staying:
            leaving = picked[tasks.status[picked] == Status.RELEASING].tolist()
            gone = [row for row in leaving if self._is_terminating(row)]
            picked = np.setdiff1d(picked, gone) if gone else picked
        counter.fill(tasks.node[picked])
        if len(classes) > _BROAD:
            counter.followed = frozenset(classes)
            self._broad.append(counter)
        else:
            for each in classes:
                self._by_class.setdefault(each, []).append(counter)
        self._counters[name] = counter
        self._told.clear()

    def _is_terminating(self, task: int) -> bool:
        pod: Any = self._tasks.pods[task]
        return bool(pod.metadata.deletion_timestamp)

    def _owned(self, name: Any, key: str | None, owners: Iterable[Owner]) -> Counter:
        found = self._counters.get(name)
        if found is None:
            found = self._counters[name] = Counter(self._domains(key), None)
            self._told.clear()
            tasks, n = self._tasks, self._tasks.n
            whole = np.zeros(len(self._snapshot.shapes) + 1, dtype=bool)
            whole[[owner for owner in owners if isinstance(owner, int)]] = True
            picked = whole[tasks.shape[:n]]
            for owner in owners:
                self._by_owner.setdefault(owner, []).append(found)
                if not isinstance(owner, int):
                    shape, label_class = owner
                    picked |= (tasks.shape[:n] == shape) & (tasks.label_class[:n] == label_class)
            found.fill(tasks.node[:n][picked & tasks.in_view[:n]])
        return found

    # Following moves

    def follow(self, task: int, node: int, sign: int) -> None:
        """Follow a change of the view, and undo it if the move is rolled back."""
        self._journal.on_rollback(self._undo, task, node, -sign)
        if self._counters:
            self._apply(task, node, sign, self._journal.touch)

    def _undo(self, task: int, node: int, sign: int) -> None:
        if not self._journal.is_ending:  # else nobody reads the counts again
            self._apply(task, node, sign, self._journal.moved.append)

    def _apply(self, task: int, node: int, sign: int, log: Log) -> None:
        for counter in self.counting(
            self._tasks.label_class.item(task), self._tasks.shape.item(task)
        ):
            counter.add(node, sign, log)

    def counting(self, label_class: int, shape: int) -> list[Counter]:
        """List the counts in which pods of a label class and a shape are: another list if changed.

        It is not written to.
        """
        told = self._told.get((label_class, shape))
        if told is None:
            told = self._told[label_class, shape] = self._counting(label_class, shape)
        return told

    def _counting(self, label_class: int, shape: int) -> list[Counter]:
        found = [*self._by_class.get(label_class, ())]
        found += [each for each in self._broad if label_class in each.followed]
        if shape in self.speaking:
            found += self._by_owner.get(shape, ())
            found += self._by_owner.get((shape, label_class), ())
        return found


class _Bound:
    """Terms of pods by the label classes they match."""

    def __init__(self, book: TermBook, anti: Iterable[Term], preferred: Iterable[Wish]) -> None:
        self._anti: dict[int, list[Term]] = {}
        self._preferred: dict[int, list[Wish]] = {}
        for term in anti:
            for label_class in term.matcher.classes(book):
                self._anti.setdefault(label_class, []).append(term)
        for wish in preferred:
            for label_class in wish[1].matcher.classes(book):
                self._preferred.setdefault(label_class, []).append(wish)

    def of(self, label_class: int) -> tuple[list[Term], list[Wish]]:
        return self._anti.get(label_class, []), self._preferred.get(label_class, [])


def pod_terms(snapshot: Snapshot) -> PodTerms:
    """Return the counts of the running session, made at the first call."""
    kept: PodTerms | None = snapshot.derived.get(_TERMS)
    if kept is not None and kept.session == snapshot.journal.session:
        return kept
    book: TermBook | None = snapshot.derived.get(_BOOK)
    if book is None:
        book = snapshot.derived[_BOOK] = TermBook(snapshot)
    book.start()
    if kept is None or book.speaking:  # without terms there is nothing to count
        kept = snapshot.derived[_TERMS] = PodTerms(snapshot, book)
    kept.session = snapshot.journal.session
    if kept.speaking:
        snapshot.view_watchers.append(kept.follow)
    return kept
