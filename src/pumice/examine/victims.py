"""Why a pod was chosen as a victim: whom its room is for, and how plugins judge it alone."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pumice.api.cycle_facts import EvictedPod
from pumice.api.decisions import Decisions
from pumice.core.views import Task
from pumice.examine.cycle_facts import FactsObserver
from pumice.framework.dispatch import Method
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.framework.topology.domains import GangEviction


class VictimExaminer(FactsObserver):
    """Asks the plugins about each victim of decisions that are known already."""

    def __init__(self, known: Decisions) -> None:
        super().__init__()
        self._known = known
        self._votes: dict[str, Mapping[str, bool]] = {}

    def opened(self, ssn: Session) -> None:
        """Ask about each victim by itself, as the cycle begins."""
        super().opened(ssn)
        for pod in self._known.evictions:
            asker = _asker(ssn, self._known.beneficiaries.get(pod, ""))
            row = ssn.snapshot.tasks.row_of.get(pod)
            if asker is not None and row is not None:
                action = self._known.evicted_by.get(pod, "")
                self._votes[pod] = _votes(ssn, asker, row, action)

    def sentences(self) -> dict[str, str]:
        """Return a sentence for each victim."""
        return {each.pod: self._sentence(each) for each in self.facts.evicted}

    def _sentence(self, pod: EvictedPod) -> str:
        by = f" by {pod.action}" if pod.action else ""
        whom = f" for {pod.whom}" if pod.whom else ""
        if pod.whom and pod.whose_priority is not None:
            whom += f" (queue {pod.whose_queue}, priority {pod.whose_priority})"
        own = f"queue {pod.queue}, priority {pod.priority}" if pod.queue else "no queue"
        text = f"{pod.pod} ({own}) is evicted{by}{whom}"
        votes = self._votes.get(pod.pod, {})
        parts = [
            f"{', '.join(names)} {verb if len(names) > 1 else f'{verb}s'} it"
            for verb, names in (
                ("permit", [name for name, vote in votes.items() if vote]),
                ("refuse", [name for name, vote in votes.items() if not vote]),
            )
            if names
        ]
        return f"{text}; asked about it alone, {' and '.join(parts)}" if parts else text


def _asker(ssn: Session, whom: str) -> Task | None:
    """Return the pod that room is made for, or the first waiting one of a job."""
    snapshot = ssn.snapshot
    if whom in snapshot.tasks.row_of:
        return Task(snapshot, snapshot.tasks.row_of[whom])
    job = snapshot.jobs.row_of.get(whom)
    pending = [] if job is None else ssn.ordering.sort_tasks(ssn.pending_tasks(job))
    return Task(snapshot, pending[0]) if pending else None


def _votes(ssn: Session, asker: Task, row: int, action: str) -> dict[str, bool]:
    reclaims = action.endswith("reclaim")
    hook: Method = Plugin.reclaimable if reclaims else Plugin.preemptable
    asked: Any = asker
    if action.startswith("gang"):
        hook = Plugin.gang_evictable
        asked = GangEviction(ssn.job(asker.job), ssn.topology.tree.top, reclaims)
    return {
        plugin.name: bool(np.asarray(mask, dtype=bool)[0])
        for plugin, ask in ssn.hooks.bound(hook)
        if (mask := ask(asked, [row])) is not None
    }
