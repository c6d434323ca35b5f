"""pdb: evictions stay within the disruption budgets of pods."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.api.codes import Spared
from pumice.core.labels import selects
from pumice.core.resources import Mask
from pumice.core.views import Task
from pumice.framework.plugin import Plugin
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession


@dataclass(kw_only=True)
class Pdb(Plugin, name="pdb"):
    """Take candidates in order and use up what every matching budget still allows.

    Pods without labels are never offered; a budget without selector, or with an empty one, matches
    no pod.
    """

    protects = "pods whose disruption budget is used up"
    foreseeable = True
    simulator = SimulatorAssumptions()
    spares = Spared.BUDGET

    def on_open(self, ssn: PluginSession) -> None:
        """Collect the budgets."""
        self._snapshot = ssn.snapshot
        self._budgets: list[Any] = list(ssn.snapshot.kind("PodDisruptionBudget").values())
        self._allowed = [budget.status.disruptions_allowed for budget in self._budgets]
        self._matches: dict[int, list[int] | None] = {}

    def preemptable(self, preemptor: Task, candidates: list[int]) -> Mask:
        """Offer pods while budgets last."""
        return self._within_budgets(candidates)

    def reclaimable(self, reclaimer: Task, candidates: list[int]) -> Mask:
        """Offer pods while budgets last."""
        return self._within_budgets(candidates)

    def victims(self, running: list[int]) -> list[int]:
        """Return the running pods that no budget forbids to move."""
        kept = self._within_budgets(running).tolist()
        return [row for row, keep in zip(running, kept, strict=True) if keep]

    def bound_victims(self, hook: str, asker: Task, candidates: NDArray[np.intp]) -> Mask:
        """Mark pods that would be offered if they were the only candidate."""
        classes = self._snapshot.tasks.label_class[candidates]
        known = np.unique(classes)
        alone = np.array([self._may_go(found) for found in known.tolist()], dtype=bool)
        if any(budget.status.disrupted_pods for budget in self._budgets):
            alone |= np.array([self._budgets_of(c) is not None for c in known.tolist()], dtype=bool)
        return alone[np.searchsorted(known, classes)]

    def _may_go(self, label_class: int) -> bool:
        budgets = self._budgets_of(label_class)
        return budgets is not None and all(self._allowed[i] > 0 for i in budgets)

    def _within_budgets(self, candidates: list[int]) -> Mask:
        tasks = self._snapshot.tasks
        left = list(self._allowed)
        out = np.zeros(len(candidates), dtype=bool)
        for i, row in enumerate(candidates):
            budgets = self._budgets_of(int(tasks.label_class[row]))
            if budgets is not None:
                out[i] = self._spend(left, budgets, tasks.keys[row].partition("/")[2])
        return out

    def _spend(self, left: list[int], budgets: list[int], pod: str) -> bool:
        """Take one eviction from every budget, even if the pod must stay; True if all allow it."""
        allowed = True
        for i in budgets:
            if pod not in self._budgets[i].status.disrupted_pods:
                left[i] -= 1
                allowed = allowed and left[i] >= 0
        return allowed

    def _budgets_of(self, label_class: int) -> list[int] | None:
        """List the budgets that match pods of a label class; None for pods without labels."""
        if label_class not in self._matches:
            namespace, labels = self._snapshot.label_classes[label_class]
            self._matches[label_class] = (
                [i for i, each in enumerate(self._budgets) if _covers(each, namespace, labels)]
                if labels
                else None
            )
        return self._matches[label_class]


def _covers(budget: Any, namespace: str, labels: dict[str, str]) -> bool:
    selector = budget.spec.selector
    if budget.metadata.namespace != namespace or selector is None:
        return False
    is_empty = not selector.match_labels and not selector.match_expressions
    return not is_empty and selects(selector, labels)
