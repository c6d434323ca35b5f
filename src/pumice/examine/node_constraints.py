"""How many nodes are left for a pod after each constraint, and the other pods that close nodes.

Every constraint is tested by itself over all nodes, so that each result is its own; the
order is fixed, with unchangeable constraints first.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from pumice.api.annotations import HOSTNAME
from pumice.api.codes import Cause
from pumice.api.meta import LabelSelector
from pumice.api.wording import counted, first_of, listing, verb
from pumice.core.labels import LabelColumn, node_labels
from pumice.core.pod_terms import PodTerms, ShapeTerms, Term, pod_terms
from pumice.core.resources import PODS, STEP, Column, Mask
from pumice.core.views import NodeFacts, Nodes, Task
from pumice.framework.plugin import Plugin, implements
from pumice.framework.session import Session

CAPACITY: Final = "capacity"
"""The first constraint: whether a node is large enough at all."""
ORDER: Final = (
    CAPACITY,
    Cause.NODE_UNSCHEDULABLE,
    Cause.NODE_NOT_READY,
    Cause.NODE_SELECTOR,
    Cause.NODE_AFFINITY,
    Cause.TAINT,
    Cause.NODE_GROUP,
    Cause.NODE_SHARD,
    Cause.WINDOW_CLOSED,
    Cause.VOLUME,
    Cause.DEVICE,
    Cause.NUMA_POLICY,
    Cause.PLUGIN_FAILED,
    Cause.EXTENDER_REFUSED,
    Cause.PLUGIN_REFUSED,
    Cause.POD_LIMIT,
    Cause.HOST_PORT,
    Cause.INSUFFICIENT_RESOURCE,
    Cause.POD_AFFINITY,
    Cause.POD_ANTI_AFFINITY,
    Cause.TOPOLOGY_SPREAD,
    Cause.NODE_USAGE,
)
_LASTING: Final = frozenset(ORDER[: ORDER.index(Cause.VOLUME) + 1])
"""Constraints that hold in an empty cluster, too."""
OF_PODS: Final = (Cause.POD_AFFINITY, Cause.POD_ANTI_AFFINITY, Cause.TOPOLOGY_SPREAD)
"""Constraints of other pods."""


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


# All constraints on one pod


@dataclass(frozen=True)
class Constraint:
    """One constraint: the nodes that it refuses by itself (n,)."""

    name: str
    failed: Mask

    @property
    def is_lasting(self) -> bool:
        """Whether it holds in an empty cluster, too."""
        return self.name in _LASTING

    @property
    def code(self) -> Cause:
        """The cause of a job for which it leaves no node."""
        return Cause.INSUFFICIENT_RESOURCE if self.name == CAPACITY else Cause(self.name)


class Funnel:
    """The constraints on one pod at one moment of a session."""

    def __init__(self, ssn: Session, task: Task) -> None:
        self.snapshot = ssn.snapshot
        self.task = task
        self._room = Nodes(ssn.snapshot).future_idle.copy()  # the session continues
        self.beside = 0
        """Pods of the same job that were placed for the trial and count as placed."""
        self.plugins: dict[str, set[str]] = {}
        """Constraint to the plugins that refuse nodes for it."""
        self.texts: dict[str, set[str]] = {}
        """Constraint to the reasons as the filters state them."""
        self.words: dict[str, list[str]] = {}
        """Constraint to messages from external services."""
        found = self._resources()
        self.failures = ssn.failures
        for name, failed in self._filters(ssn).items():
            found[name] = found[name] | failed if name in found else failed
        self.compared = ssn.refusal_numbers(task)
        """Numbers that plugins compared, by their names."""
        self.constraints = [Constraint(name, found[name]) for name in ORDER if name in found]
        near = any(each.failed.any() for each in self.constraints if each.name in OF_PODS)
        self.neighbours = Neighbours.of(ssn, task) if near else None
        """The pods that close nodes, if any do."""

    @cached_property
    def lacking(self) -> Column:
        """What each node lacks of each resource once leaving pods are gone (R, n)."""
        lacking = np.asarray(self.task.need - self._room)
        lacking[PODS] = 0.0
        return np.where(lacking >= STEP, lacking, 0.0)

    @cached_property
    def undersized(self) -> Column:
        """What each node would lack if it were empty (R, n)."""
        lacking = np.asarray(self.task.need - NodeFacts(self.snapshot).allocatable)
        lacking[PODS] = 0.0
        return np.where(lacking >= STEP, lacking, 0.0)

    def _resources(self) -> dict[str, Mask]:
        full = self.task.need[PODS, 0] - self._room[PODS] >= STEP
        return {
            Cause.POD_LIMIT: np.asarray(full),
            CAPACITY: np.asarray((self.undersized > 0).any(axis=0)),
            Cause.INSUFFICIENT_RESOURCE: np.asarray((self.lacking > 0).any(axis=0)),
        }

    def _filters(self, ssn: Session) -> dict[str, Mask]:
        """Ask every plugin by itself."""
        found: dict[str, Mask] = {}
        for plugin in ssn.plugins:
            if not (implements(plugin, "filter_shape") or implements(plugin, "filter_nodes")):
                continue
            for name, failed in self._tests(ssn, plugin).items():
                found[name] = found[name] | failed if name in found else failed
                if failed.any() and plugin.own_words():
                    self.words[name] = plugin.own_words()
                if failed.any():
                    self.plugins.setdefault(name, set()).add(plugin.name)
        return found

    def _tests(self, ssn: Session, plugin: Plugin) -> dict[str, Mask]:
        nodes = Nodes(self.snapshot)
        codes = ssn.placing.plugin_codes(self.task, plugin.position)
        reasons = ssn.placing.reasons
        if codes is None:
            return {}
        reason_of = {int(code): reasons[code] for code in np.unique(codes[codes > 0]).tolist()}
        for reason in reason_of.values():
            self.texts.setdefault(reason.code, set()).add(reason.text)
        asked = ssn.hooks.ask_aside(plugin, Plugin.node_tests)(self.task, nodes)
        if asked is not None:
            failing = {code for code, one in reason_of.items() if one.code is Cause.PLUGIN_FAILED}
            failed = np.isin(codes, list(failing))
            return {**asked, Cause.PLUGIN_FAILED: failed} if failing else dict(asked)
        tests: dict[str, Mask] = {}
        for code, reason in reason_of.items():
            here = codes == code
            tests[reason.code] = tests[reason.code] | here if reason.code in tests else here
        return tests

    # Results

    @cached_property
    def left(self) -> list[tuple[Constraint, Mask]]:
        """The nodes that are left after each constraint (n,)."""
        out, left = [], np.ones(self.snapshot.nodes.n, dtype=bool)
        for constraint in self.constraints:
            left = left & ~constraint.failed
            out.append((constraint, left))
        return out

    @property
    def decisive(self) -> Constraint | None:
        """The constraint that leaves no node; None if some node is left."""
        return next((each for each, left in self.left if not left.any()), None)

    @property
    def holds_when_empty(self) -> bool:
        """Whether no node would fit in an empty cluster either."""
        decisive = self.decisive
        return decisive is not None and decisive.is_lasting

    @property
    def fitting(self) -> Mask:
        """The nodes that take the pod now (n,)."""
        return self.left[-1][1] if self.left else np.ones(self.snapshot.nodes.n, dtype=bool)

    @property
    def usable(self) -> Mask:
        """The nodes that would fit in an empty cluster (n,)."""
        usable = np.ones(self.snapshot.nodes.n, dtype=bool)
        for each in self.constraints:
            if each.is_lasting:
                usable &= ~each.failed
        return usable

    def alone(self) -> list[Constraint]:
        """List the constraints that by themselves leave no node."""
        return [each for each in self.constraints if each.failed.all()]

    def but_for(self) -> list[tuple[Constraint, Mask]]:
        """List the constraints without which nodes would be left, and those nodes (n,)."""
        out = []
        for each in self.constraints:
            others = [one.failed for one in self.constraints if one is not each]
            open_now = each.failed & ~np.logical_or.reduce(others or [np.zeros_like(each.failed)])
            if open_now.any():
                out.append((each, open_now))
        return out

    def nearest(self, among: Mask) -> tuple[str, dict[str, float]] | None:
        """Return the node of some that lacks least, in parts of the request, and what it lacks."""
        rows = np.flatnonzero(among & (self.lacking > 0).any(axis=0))
        if not len(rows):
            return None
        lacking = self.lacking[:, rows]
        parts = lacking / np.where(self.task.request > 0, self.task.request, 1.0)
        best = int(np.argmin(parts.max(axis=0)))
        names = self.snapshot.resources.names
        lacks = {
            names[row]: float(lacking[row, best])
            for row in np.flatnonzero(lacking[:, best]).tolist()
        }
        return self.snapshot.nodes.names[int(rows[best])], lacks

    def holds(self, among: Mask) -> int:
        """Count how many pods like this one some nodes would take, by their room alone."""
        need = self.task.need[:, 0]
        asked = need >= STEP
        asked[PODS] = False
        if not asked.any():
            return int(among.sum()) * 1000
        room = self._room[asked][:, among]
        return int(np.floor((room + STEP) / need[asked][:, None]).min(axis=0).clip(0).sum())
