"""Label selectors, node selectors and tolerations, evaluated once for each distinct value.

A label of the nodes is a column of small integers; a condition is tried on the distinct values and
gathered over the nodes.  Used by plugins; holds no state of a session.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.api.devices import DeviceTaint
from pumice.api.meta import LabelSelector
from pumice.api.nodes import Taint
from pumice.api.pods import NodeSelector, NodeSelectorTerm, PodSpec, Toleration
from pumice.core.resources import Mask
from pumice.core.snapshot import Snapshot
from pumice.core.tables import Ints

NAME_FIELD = "metadata.name"
UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""The taint of a cordoned node."""

_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")
_DERIVED = "core.labels"


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Try a label selector; none at all matches nothing, an empty one everything."""
    if selector is None:
        return False
    for key, value in selector.match_labels.items():
        if labels.get(key) != value:
            return False
    return all(
        is_well_formed(each.operator, each.values)
        and label_fits(each.operator, each.values, labels.get(each.key))
        for each in selector.match_expressions
    )


def is_well_formed(operator: str, values: tuple[str, ...]) -> bool:
    """Return whether a condition is valid; in Kubernetes an invalid one matches nothing."""
    if operator in ("In", "NotIn"):
        return bool(values)
    if operator in ("Gt", "Lt"):
        return len(values) == 1 and _integer(values[0]) is not None
    return not values


def label_fits(operator: str, values: tuple[str, ...], value: str | None) -> bool:
    """Try a well-formed condition on the value of a label, None for a missing label."""
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    given, bound = _integer(value or ""), _integer(values[0])
    if given is None or bound is None:
        return False
    return given > bound if operator == "Gt" else given < bound


def _integer(text: str) -> int | None:
    """Read a number of 64 bits as Kubernetes does; None if it is not one."""
    match = _INTEGER.fullmatch(text)
    number = 0 if match is None else int(match[1] + match[2])
    return number if match is not None and -(2**63) <= number < 2**63 else None


def selects_node(selector: NodeSelector, name: str, labels: Mapping[str, str]) -> bool:
    """Try a node selector on one node: all conditions of one term must hold."""
    return any(_meets(term, name, labels) for term in selector.node_selector_terms)


def _meets(term: NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    for each in term.match_expressions:
        if not is_well_formed(each.operator, each.values):
            return False
        if not label_fits(each.operator, each.values, labels.get(each.key)):
            return False
    for each in term.match_fields:
        if each.operator not in ("In", "NotIn") or len(each.values) != 1:
            return False
        found = name if each.key == NAME_FIELD else ""
        if (found == each.values[0]) != (each.operator == "In"):
            return False
    return True


def tolerates(tolerations: Iterable[Toleration], taint: Taint | DeviceTaint) -> bool:
    """Return whether one of the tolerations covers a taint."""
    return any(_covers(each, taint) for each in tolerations)


def _covers(toleration: Toleration, taint: Taint | DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


class LabelColumn:
    """One label of all nodes: ``codes`` index ``values``, -1 where a node lacks the label."""

    def __init__(self, found: Iterable[str | None]) -> None:
        code_of: dict[str | None, int] = {None: -1}
        self.codes = np.array(
            [code_of.setdefault(value, len(code_of) - 1) for value in found], dtype=np.intp
        )
        self.code_of = code_of
        del code_of[None]
        self.values: list[str] = [value for value in code_of if value is not None]
        self.is_everywhere = bool((self.codes >= 0).all())
        """Whether every node has the label."""
        self._rows: dict[int, NDArray[np.intp]] = {}

    def rows_of(self, code: int) -> NDArray[np.intp]:
        """Return the node rows with one value."""
        found = self._rows.get(code)
        if found is None:
            found = self._rows[code] = np.flatnonzero(self.codes == code)
        return found

    def codes_on(self, rows: Mask) -> NDArray[np.intp]:
        """Return the codes of the values that some nodes have."""
        if self.is_everywhere and rows.all():
            return np.arange(len(self.values))
        codes = self.codes[rows]
        return np.bincount(codes[codes >= 0]).nonzero()[0]

    def where(self, fits: Callable[[str | None], bool]) -> Mask:
        """Mark nodes by a test of the label's value, None where it is missing (n,)."""
        answers = np.array([*map(fits, self.values), fits(None)], dtype=bool)
        return answers[self.codes]


class NodeLabels:
    """The labels of all nodes as columns, made when first asked for."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._nodes = snapshot.nodes
        self._columns: dict[str, LabelColumn] = {}

    def column(self, key: str) -> LabelColumn:
        """Return one label."""
        found = self._columns.get(key)
        if found is None:
            labels = self._nodes.labels[: self._nodes.n]
            found = self._columns[key] = LabelColumn(each.get(key) for each in labels)
        return found

    def names(self) -> LabelColumn:
        """Return the names of the nodes as if they were a label."""
        found = self._columns.get(NAME_FIELD + "()")
        if found is None:
            found = LabelColumn(self._nodes.names[: self._nodes.n])
            self._columns[NAME_FIELD + "()"] = found
        return found

    def matching(self, term: NodeSelectorTerm) -> Mask:
        """Mark nodes that meet all conditions of a term; an empty term matches none (n,)."""
        nothing = np.zeros(self._nodes.n, dtype=bool)
        if not term.match_expressions and not term.match_fields:
            return nothing
        kept = ~nothing
        for each in term.match_expressions:
            operator, values = each.operator, each.values
            if not is_well_formed(operator, values):
                return nothing
            column = self.column(each.key)
            kept &= column.where(lambda v, op=operator, vs=values: label_fits(op, vs, v))  # type: ignore[misc]
        for each in term.match_fields:
            if each.operator not in ("In", "NotIn") or len(each.values) != 1:
                return nothing
            named = self._named(each.key, each.values[0])
            kept &= named if each.operator == "In" else ~named
        return kept

    def _named(self, field: str, value: str) -> Mask:
        """Mark nodes whose field has a value; fields other than the name are always empty."""
        if field == NAME_FIELD:
            return self.names().where(lambda name: name == value)
        return np.full(self._nodes.n, value == "")

    def selected(self, selector: NodeSelector) -> Mask:
        """Mark nodes that meet one of the terms (n,)."""
        kept = np.zeros(self._nodes.n, dtype=bool)
        for term in selector.node_selector_terms:
            kept |= self.matching(term)
        return kept

    def labelled(self, selector: LabelSelector | None) -> Mask:
        """Mark nodes that a label selector selects; none at all selects nothing (n,)."""
        kept = np.full(self._nodes.n, selector is not None)
        if selector is None:
            return kept
        for key, value in selector.match_labels.items():
            column = self.column(key)
            kept &= column.codes == column.code_of.get(value, -2)
        for each in selector.match_expressions:
            operator, values = each.operator, each.values
            if not is_well_formed(operator, values):
                return np.zeros_like(kept)
            column = self.column(each.key)
            kept &= column.where(lambda v, op=operator, vs=values: label_fits(op, vs, v))  # type: ignore[misc]
        return kept

    def demanded(self, spec: PodSpec) -> Mask | None:
        """Mark nodes that a pod's nodeSelector and required node affinity allow; None: all."""
        kept, here = self.selected_by_labels(spec), self.selected_by_affinity(spec)
        if kept is None or here is None:
            return here if kept is None else kept
        return kept & here

    def selected_by_labels(self, spec: PodSpec) -> Mask | None:
        """Mark nodes that a pod's nodeSelector allows; None: all."""
        kept: Mask | None = None
        for key, value in spec.node_selector.items():
            column = self.column(key)
            here = column.codes == column.code_of.get(value, -2)
            kept = here if kept is None else kept & here
        return kept

    def selected_by_affinity(self, spec: PodSpec) -> Mask | None:
        """Mark nodes that a pod's required node affinity allows; None: all."""
        affinity = spec.affinity.node_affinity if spec.affinity else None
        if affinity is None or affinity.required is None:
            return None
        return self.selected(affinity.required)


def node_labels(snapshot: Snapshot) -> NodeLabels:
    """Return the label columns of a snapshot; they last until a node changes."""
    generation = snapshot.nodes.generation
    kept: tuple[int, Any] | None = snapshot.derived.get(_DERIVED)
    if kept is None or kept[0] != generation:
        kept = snapshot.derived[_DERIVED] = (generation, NodeLabels(snapshot))
    found: NodeLabels = kept[1]
    return found


def untolerated(snapshot: Snapshot, spec: PodSpec, effects: tuple[str, ...]) -> Ints | None:
    """Count, on each node, the taints of some effects that a pod does not tolerate; None: none."""
    counts = [
        sum(1 for t in taints if t.effect in effects and not tolerates(spec.tolerations, t))
        for taints in snapshot.taint_sets
    ]
    if not any(counts):
        return None
    found = np.array(counts, dtype=np.int32)[snapshot.nodes.taint_class[: snapshot.nodes.n]]
    return found if found.any() else None
