"""Terms of pods about other pods (affinity, spread, host ports), and the pods that match them.

Terms are read once for each shape and interned, so that equal terms of different shapes share one
matcher and one count.  A session's filters and scores share one ``PodTerms``: numbers of pods by
topology domain, made when first asked for, that follow every move, also one that is rolled back.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from pumice.api.meta import LabelSelector, LabelSelectorRequirement
from pumice.api.pods import PodAffinity, PodAffinityTerm, PodSpec, TopologySpreadConstraint
from pumice.core.labels import LabelColumn, node_labels, selects, untolerated
from pumice.core.resources import Mask
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.core.tables import Shape
from pumice.core.term_counts import Counter, Log, SpreadCounter

ANY_IP = "0.0.0.0"  # noqa: S104  # an address to compare with, nothing listens here
Port = tuple[str, str, int]
"""Address, protocol and number of a host port."""


class Matcher:
    """The pods of a term: some namespaces and a label selector, answered by label class."""

    __slots__ = ("_hits", "_seen", "anchor", "id", "namespace_selector", "namespaces", "selector")

    def __init__(
        self,
        number: int,
        namespaces: frozenset[str],
        namespace_selector: LabelSelector | None,
        selector: LabelSelector | None,
    ) -> None:
        self.id = number
        self.namespaces = namespaces
        self.namespace_selector = namespace_selector
        self.selector = selector
        self.anchor = _anchor(selector)
        self.forget()

    def forget(self) -> None:
        """Drop answers that no longer hold."""
        self._hits: list[int] = []
        self._seen = 0

    def classes(self, book: "TermBook") -> list[int]:
        """List the label classes of matching pods; the list grows with the classes."""
        known, seen = book.snapshot.label_classes, self._seen
        if seen < len(known):
            self._hits += [
                row
                for row in book.classes_with(self.anchor)
                if row >= seen and self.means(book, *known[row])
            ]
            self._seen = len(known)
        return self._hits

    def means(self, book: "TermBook", namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether it matches a pod with these labels in this namespace."""
        if namespace not in self.namespaces:
            wanted = self.namespace_selector
            if wanted is None or not selects(wanted, book.namespace_labels(namespace)):
                return False
        return selects(self.selector, labels)


def _anchor(selector: LabelSelector | None) -> tuple[str, str] | None:
    """Return a label that every matching pod must have, if the selector names one."""
    if selector is None:
        return None
    for pair in selector.match_labels.items():
        return pair
    for each in selector.match_expressions:
        if each.operator == "In" and len(each.values) == 1:
            return each.key, each.values[0]
    return None


class Term(msgspec.Struct, frozen=True):
    """Pods that a matcher selects, seen by the domains of a node label."""

    matcher: Matcher
    key: str


class Spread(msgspec.Struct, frozen=True):
    """One topology spread constraint; an empty selector matches its own pod but counts none."""

    matcher: Matcher
    counted: Matcher
    key: str
    max_skew: int
    min_domains: int
    honours_affinity: bool
    honours_taints: bool


class ShapeTerms(msgspec.Struct):
    """All terms of a shape about other pods; ``anti`` and ``preferred`` also bind others.

    ``varies`` is set if the terms quote labels of the pod itself, so that they must be read again
    for each label class.
    """

    required: tuple[Term, ...] = ()
    anti: tuple[Term, ...] = ()
    preferred: tuple[tuple[int, Term], ...] = ()
    """Weight, below zero for anti-affinity, and term."""
    hard_spread: tuple[Spread, ...] = ()
    soft_spread: tuple[Spread, ...] = ()
    ports: tuple[Port, ...] = ()
    varies: bool = False
    by_class: "dict[int, ShapeTerms]" = msgspec.field(default_factory=dict)

    def matchers(self) -> Iterator[Matcher]:
        """Yield what the terms match."""
        terms = (*self.required, *self.anti, *(term for _, term in self.preferred))
        yield from (each.matcher for each in terms)
        for each in (*self.hard_spread, *self.soft_spread):
            yield from (each.matcher, each.counted)

    @property
    def is_empty(self) -> bool:
        """Whether there are no terms."""
        return not (
            self.required
            or self.anti
            or self.preferred
            or self.hard_spread
            or self.soft_spread
            or self.ports
        )


class TermBook:
    """Interned matchers and the terms of all shapes of a snapshot; outlives sessions."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._matchers: dict[bytes, Matcher] = {}
        self._shapes: list[ShapeTerms | None] = []
        self._speaking: list[int] = []
        self._by_label: dict[str, dict[str, list[int]]] = {}
        self._indexed: dict[str, int] = {}
        self.nobody = self.matcher(frozenset(), None, None)

    def start(self) -> None:
        """Apply changes since the last session."""
        for matcher in self._matchers.values():
            if matcher.namespace_selector is not None:
                matcher.forget()
        for shape in self.snapshot.shapes[len(self._shapes) :]:
            terms = _read(self, shape.spec, shape.namespace, None)
            if not terms.is_empty:
                self._speaking.append(shape.id)
            self._shapes.append(None if terms.is_empty else terms)

    @property
    def speaking(self) -> list[int]:
        """Shapes with terms about other pods."""
        return self._speaking

    def varies(self, shape: int) -> bool:
        """Return whether the terms of a shape quote labels of the pod."""
        terms = self._shapes[shape]
        return terms is not None and terms.varies

    def of(self, shape: Shape, label_class: int) -> ShapeTerms | None:
        """Return the terms of a pod, None if it has none."""
        terms = self._shapes[shape.id]
        if terms is None or not terms.varies:
            return terms
        own = terms.by_class.get(label_class)
        if own is None:
            labels = self.snapshot.label_classes[label_class][1]
            own = terms.by_class[label_class] = _read(self, shape.spec, shape.namespace, labels)
        return own

    def matcher(
        self,
        namespaces: frozenset[str],
        namespace_selector: LabelSelector | None,
        selector: LabelSelector | None,
    ) -> Matcher:
        """Intern a matcher."""
        key = msgspec.json.encode((sorted(namespaces), namespace_selector, selector))
        found = self._matchers.get(key)
        if found is None:
            found = Matcher(len(self._matchers), namespaces, namespace_selector, selector)
            self._matchers[key] = found
        return found

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """Return the labels of a namespace; an unknown one has none."""
        namespace = self.snapshot.kind("Namespace").get(name)
        labels: dict[str, str] = {} if namespace is None else namespace.metadata.labels
        return labels

    def classes_with(self, anchor: tuple[str, str] | None) -> Iterable[int]:
        """List the label classes that carry a label; all without one."""
        known = self.snapshot.label_classes
        if anchor is None:
            return range(len(known))
        key, value = anchor
        by_value = self._by_label.setdefault(key, {})
        for row in range(self._indexed.get(key, 0), len(known)):
            found = known[row][1].get(key)
            if found is not None:
                by_value.setdefault(found, []).append(row)
        self._indexed[key] = len(known)
        return by_value.get(value, ())


def _read(
    book: TermBook, spec: PodSpec, namespace: str, labels: Mapping[str, str] | None
) -> ShapeTerms:
    """Read the terms of a pod; without labels, terms that quote them are read as if it had none."""
    near = spec.affinity.pod_affinity if spec.affinity else None
    far = spec.affinity.pod_anti_affinity if spec.affinity else None
    constraints = spec.topology_spread_constraints
    ports = _host_ports(spec)
    if near is None and far is None and not constraints and not ports:
        return ShapeTerms()
    own: Mapping[str, str] = labels or {}

    def term(each: PodAffinityTerm) -> Term:
        return Term(_term_matcher(book, each, namespace, own), each.topology_key)

    def spread(action: str) -> tuple[Spread, ...]:
        chosen = [each for each in constraints if each.when_unsatisfiable == action]
        return tuple(_spread(book, each, namespace, own) for each in chosen)

    near, far = near or PodAffinity(), far or PodAffinity()
    wishes = [(each.weight, term(each.pod_affinity_term)) for each in near.preferred]
    wishes += [(-each.weight, term(each.pod_affinity_term)) for each in far.preferred]
    return ShapeTerms(
        required=tuple(map(term, near.required)),
        anti=tuple(map(term, far.required)),
        preferred=tuple((weight, each) for weight, each in wishes if weight),
        hard_spread=spread("DoNotSchedule"),
        soft_spread=spread("ScheduleAnyway"),
        ports=ports,
        varies=labels is None and _quotes_labels(near, far, constraints),
    )


def _quotes_labels(near: PodAffinity, far: PodAffinity, constraints: Iterable[Any]) -> bool:
    terms = [*near.required, *far.required]
    terms += [each.pod_affinity_term for each in (*near.preferred, *far.preferred)]
    return any(each.match_label_keys or each.mismatch_label_keys for each in terms) or any(
        each.match_label_keys for each in constraints
    )


def _term_matcher(
    book: TermBook, term: PodAffinityTerm, namespace: str, labels: Mapping[str, str]
) -> Matcher:
    names = frozenset(term.namespaces)
    if not names and term.namespace_selector is None:
        names = frozenset({namespace})
    selector = _quoting(term.label_selector, labels, term.match_label_keys, "In")
    selector = _quoting(selector, labels, term.mismatch_label_keys, "NotIn")
    return book.matcher(names, term.namespace_selector, selector)


def _spread(
    book: TermBook, each: TopologySpreadConstraint, namespace: str, labels: Mapping[str, str]
) -> Spread:
    selector = _quoting(each.label_selector, labels, each.match_label_keys, "In")
    matcher = book.matcher(frozenset({namespace}), None, selector)
    # Kubernetes: a selector without conditions matches the pod itself but counts none
    counts_nobody = selector is not None and not (
        selector.match_labels or selector.match_expressions
    )
    return Spread(
        matcher=matcher,
        counted=book.nobody if counts_nobody else matcher,
        key=each.topology_key,
        max_skew=each.max_skew,
        min_domains=1 if each.min_domains is None else each.min_domains,
        honours_affinity=each.node_affinity_policy != "Ignore",
        honours_taints=each.node_taints_policy == "Honor",
    )


def _quoting(
    selector: LabelSelector | None, labels: Mapping[str, str], keys: tuple[str, ...], operator: Any
) -> LabelSelector | None:
    """Add the conditions of a pod's own labels for the quoted keys; keys it lacks do not count."""
    extra = [
        LabelSelectorRequirement(key=key, operator=operator, values=(labels[key],))
        for key in keys
        if key in labels
    ]
    if selector is None or not extra:
        return selector
    return LabelSelector(
        match_labels=selector.match_labels, match_expressions=(*selector.match_expressions, *extra)
    )


def _host_ports(spec: PodSpec) -> tuple[Port, ...]:
    """List the host ports of containers and sidecars."""
    sidecars = [each for each in spec.init_containers if each.restart_policy == "Always"]
    return tuple(
        (port.host_ip or ANY_IP, port.protocol or "TCP", port.host_port)
        for container in (*spec.containers, *sidecars)
        for port in container.ports
        if port.host_port > 0
    )


def ports_clash(one: Port, other: Port) -> bool:
    """Return whether two host ports cannot be on one node."""
    if one[1:] != other[1:]:
        return False
    return one[0] == other[0] or ANY_IP in (one[0], other[0])


Owner = int | tuple[int, int]
"""A shape, with a label class where the shape's terms quote labels."""

Wish = tuple[int, Term]
"""A weight, below zero for anti-affinity, and a preferred term."""

_BOOK, _TERMS = "core.terms", "core.pod_terms"
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
        counter.staying = staying
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
        return self._tasks.status[task] == Status.RELEASING and bool(
            pod.metadata.deletion_timestamp
        )

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
            if not (counter.staying and self._is_terminating(task)):
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
