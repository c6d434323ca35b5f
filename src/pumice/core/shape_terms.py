"""Terms of a pod's specification about other pods: affinity, spread, host ports.

Terms are read once for each shape and interned, so that equal terms of different shapes share one
matcher and one count.  Counting is done in ``pod_terms``.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from pumice.api.meta import LabelSelector, LabelSelectorRequirement
from pumice.api.pods import PodAffinity, PodAffinityTerm, PodSpec, TopologySpreadConstraint
from pumice.core.labels import selects
from pumice.core.shapes import Shape
from pumice.core.snapshot import Snapshot

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
