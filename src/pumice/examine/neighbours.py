"""Other pods that close nodes to a pod: those of its (anti-)affinity terms, and its spread.

Counts are those at one moment of a trial: pods of the job that were placed before count, too.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pumice.api.annotations import HOSTNAME
from pumice.api.meta import LabelSelector
from pumice.api.wording import counted, first_of, listing, verb
from pumice.core.labels import LabelColumn, node_labels
from pumice.core.pod_terms import PodTerms, pod_terms
from pumice.core.resources import Mask
from pumice.core.shape_terms import ShapeTerms, Term
from pumice.core.views import Task
from pumice.framework.session import Session

_NAMED: Final = 3
_MOST_PODS: Final = 50
"""Pods that the numbers of a finding list."""


@dataclass(frozen=True)
class SpreadCount:
    """One hard spread constraint of a pod, with the pods of each domain."""

    key: str
    max_skew: int
    column: LabelColumn
    domains: dict[str, int]
    """Pods that count in each domain of nodes that the pod may use."""
    least: int
    adds: int
    """1 if the pod itself counts where it is placed."""

    def numbers(self) -> dict[str, Any]:
        """Return what was compared; ``skew`` is the least that a refused domain would have."""
        over = [n + self.adds - self.least for n in self.domains.values() if self._exceeds(n)]
        return {
            "topologyKey": self.key,
            "maxSkew": self.max_skew,
            "domains": self.domains,
            "least": self.least,
            **({"skew": min(over)} if over else {}),
        }

    def text(self, refused: Mask) -> str:
        """Describe the domains of refused nodes, and those with the fewest pods; empty if none."""
        word, values = _word(self.key), self.column.values
        codes = np.unique(self.column.codes[refused]).tolist()
        full = [values[code] for code in codes if code >= 0]
        full = [each for each in full if self._exceeds(self.domains.get(each, 0))]
        if not full:
            return ""
        by_count: dict[int, list[str]] = {}
        for each in full:
            by_count.setdefault(self.domains[each] + self.adds, []).append(each)
        parts = [
            f"{_domains(word, names)} would have {counted(n, 'pod')}"
            for n, names in sorted(by_count.items())
        ]
        few = [each for each, n in self.domains.items() if n == self.least]
        if few:
            parts.append(f"{_domains(word, few)} {verb(len(few), 'has', 'have')} {self.least}")
        else:
            parts.append(f"there are fewer {word}s than minDomains")
        return f"{', '.join(parts)} (maxSkew {self.max_skew})"

    def lacks_label(self, refused: Mask) -> Mask:
        """Mark the refused nodes that are in no domain (n,)."""
        return np.asarray(refused & (self.column.codes < 0))

    def refuses(self, nodes: Mask) -> bool:
        """Return whether it refuses some of the nodes."""
        return bool(self.text(nodes)) or bool(self.lacks_label(nodes).any())

    def _exceeds(self, pods: int) -> bool:
        return pods + self.adds - self.least > self.max_skew


@dataclass(frozen=True)
class TermPods:
    """One term about other pods, with those that it is about, by domain."""

    key: str
    selector: str
    column: LabelColumn
    pods: dict[str, list[str]]
    is_theirs: bool = False
    """Whether it is a term of those pods, about this one."""

    def numbers(self) -> dict[str, Any]:
        """Return what was compared."""
        names = [pod for pods in self.pods.values() for pod in pods]
        return {
            "topologyKey": self.key,
            "selector": self.selector,
            "domains": {domain: len(pods) for domain, pods in self.pods.items()},
            "pods": names[:_MOST_PODS],
        }

    def near(self, refused: Mask) -> list[str]:
        """List the pods in the domains of refused nodes."""
        codes = np.unique(self.column.codes[refused]).tolist()
        domains = [self.column.values[code] for code in codes if code >= 0]
        return [pod for domain in domains for pod in self.pods.get(domain, ())]


@dataclass(frozen=True)
class Neighbours:
    """All terms of a pod about others, and theirs about it."""

    spreads: list[SpreadCount]
    required: list[TermPods]
    anti: list[TermPods]

    @classmethod
    def of(cls, ssn: Session, task: Task) -> "Neighbours":
        """Count the pods that the terms of a pod are about, at this moment."""
        terms = pod_terms(ssn.snapshot)
        label_class = int(ssn.snapshot.tasks.label_class[task.row])
        own = ShapeTerms()
        if task.shape.id in terms.speaking:
            own = terms.book.of(task.shape, label_class) or own
        bound = terms.binding(label_class)[0] if terms.anti else []
        return cls(
            list(_spreads(ssn, terms, task, own)),
            [_matching(ssn, terms, each) for each in own.required],
            [_matching(ssn, terms, each) for each in own.anti]
            + [_owning(ssn, terms, each) for each in bound],
        )

    # Texts: ``nodes`` describes the refused ones

    def spread_text(self, nodes: str, refused: Mask) -> str:
        """Describe the spread that pods would have on refused nodes."""
        found = [text for each in self.spreads if (text := each.text(refused))]
        lacking = [each.key for each in self.spreads if each.lacks_label(refused).any()]
        if lacking:
            found.append(f"{nodes} {_have(refused)} no label {first_of(lacking, _NAMED)}")
        return "; ".join(found)

    def affinity_text(self, nodes: str, refused: Mask) -> str:
        """Describe the pods that a pod must be near."""
        found = []
        for each in self.required:
            if not each.pods:
                found.append(f"no pod matches the pod affinity ({each.selector})")
            elif not each.near(refused):
                word = _word(each.key)
                places = [f"{first_of(pods, _NAMED)} ({x})" for x, pods in each.pods.items()]
                lack = f"{_have(refused)} no pod with {each.selector} {_in(word, refused)}"
                found.append(f"{nodes} {lack}; by {word} there are {first_of(places, _NAMED)}")
        return "; ".join(found)

    def anti_affinity_text(self, nodes: str, refused: Mask) -> str:
        """Describe the pods that a pod must not be near; each is named once."""
        found, named = [], set[str]()
        for each in self.anti:
            pods = [pod for pod in each.near(refused) if pod not in named]
            if pods:
                whose = "whose anti-affinity forbids it" if each.is_theirs else "that it must avoid"
                where = f"{_have(refused)} pods {_in(_word(each.key), refused)} {whose}"
                found.append(f"{nodes} {where} ({each.selector}): {first_of(pods, _NAMED)}")
                named |= {*pods}
        return "; ".join(found)


def compared(terms: Iterable[SpreadCount | TermPods]) -> dict[str, Any]:
    """Return the numbers of terms: of the first, and of more."""
    first, *more = [each.numbers() for each in terms] or [{}]
    return {**first, "more": more} if more else first


def _spreads(ssn: Session, terms: PodTerms, task: Task, own: ShapeTerms) -> Iterator[SpreadCount]:
    known = ssn.snapshot.label_classes[int(ssn.snapshot.tasks.label_class[task.row])]
    for each, eligible in terms.eligible(task.shape, own.hard_spread):
        counter = terms.spread(each, eligible)
        values = counter.domains.values
        present = np.unique(counter.codes[eligible & (counter.codes >= 0)]).tolist()
        yield SpreadCount(
            each.key,
            each.max_skew,
            counter.domains,
            {values[code]: int(counter.counts[code]) for code in present},
            counter.least,
            int(each.matcher.means(terms.book, *known)),
        )


def _matching(ssn: Session, terms: PodTerms, term: Term) -> TermPods:
    """Return the pods that a term selects."""
    tasks = ssn.snapshot.tasks
    classes = term.matcher.classes(terms.book)
    rows = np.flatnonzero(np.isin(tasks.label_class[: tasks.n], classes) & tasks.in_view[: tasks.n])
    return _pods(ssn, term, rows.tolist(), is_theirs=False)


def _owning(ssn: Session, terms: PodTerms, term: Term) -> TermPods:
    """Return the pods that have a term about this one."""
    tasks, owners = ssn.snapshot.tasks, terms.anti[term]
    rows = [
        row
        for row in np.flatnonzero(tasks.in_view[: tasks.n]).tolist()
        for shape in (int(tasks.shape[row]),)
        if shape in owners or (shape, int(tasks.label_class[row])) in owners
    ]
    return _pods(ssn, term, rows, is_theirs=True)


def _pods(ssn: Session, term: Term, rows: list[int], *, is_theirs: bool) -> TermPods:
    column, tasks = node_labels(ssn.snapshot).column(term.key), ssn.snapshot.tasks
    pods: dict[str, list[str]] = {}
    for row in rows:
        code = int(column.codes[tasks.node[row]])
        if code >= 0:
            pods.setdefault(column.values[code], []).append(tasks.keys[row])
    pods = {domain: sorted(names) for domain, names in sorted(pods.items())}
    return TermPods(term.key, _selector_text(term.matcher.selector), column, pods, is_theirs)


def _selector_text(selector: LabelSelector | None) -> str:
    if selector is None:
        return "no labels"
    parts = [f"{key}={value}" for key, value in selector.match_labels.items()]
    parts += [
        f"{each.key} {each.operator} {','.join(each.values)}".strip()
        for each in selector.match_expressions
    ]
    return ", ".join(parts) or "any labels"


def _word(key: str) -> str:
    """Name the domains of a label: its last part."""
    return "node" if key == HOSTNAME else key.rpartition("/")[2]


def _domains(word: str, names: list[str]) -> str:
    """Name some domains: "zones a and b"."""
    if len(names) == 1:
        return f"{word} {names[0]}"
    return f"{word}s {listing(names, _NAMED)}"


def _in(word: str, nodes: Mask) -> str:
    n = int(nodes.sum())
    if word == "node":
        return verb(n, "on it", "on them")
    return f"in {verb(n, 'its', 'their')} {word}"


def _have(nodes: Mask) -> str:
    return verb(int(nodes.sum()), "has", "have")
