"""Why a cycle of a scenario decided as it did: what `explain` says, and why victims were chosen."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Final

from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.explain import Explanation, explain_job
from pumice.diagnosis.runner import Replay
from pumice.errors import PumiceError
from pumice.examine.findings import Finding
from pumice.examine.victims import VictimExaminer
from pumice.framework.plugin import Plugin
from pumice.scenarios.compare import Difference
from pumice.scenarios.cycles import PlayedCycle
from pumice.scenarios.scenario import Scenario

_MOST: Final = 3
"""Pods and jobs of one difference that are explained."""


class Reasons:
    """One cycle of a scenario, examined on a copy where a difference asks for it."""

    def __init__(
        self, scenario: Scenario, cycle: PlayedCycle, plugins: Mapping[str, type[Plugin]]
    ) -> None:
        self._cycle = cycle
        self._known: dict[str, Explanation] = {}
        self._world = ClusterState(
            objects=tuple(cycle.objects),
            now=cycle.now,
            conf=scenario.conf,
            conf_source=scenario.conf_source,
            node_usage=cycle.usage,
            seed=scenario.seed,
            hidden=scenario.hidden,
            plugins=plugins,
        ).with_counts()

    def causes(self, job: str) -> Sequence[Finding]:
        """Return the causes for which a job waits, the first one first.

        Raises:
            InputError: there is no such job.
        """
        return self._explained(job).causes

    def because(self, differences: Iterable[Difference]) -> list[Difference]:
        """Return differences with the reasons of what they are about."""
        return [
            replace(each, because=tuple(dict.fromkeys(self._sentences(each))))
            for each in differences
        ]

    def _sentences(self, difference: Difference) -> Iterator[str]:
        decided = self._cycle.decisions
        for name in difference.about[:_MOST]:
            with suppress(PumiceError):  # the reason is an addition to the difference
                if name in self._victims:
                    yield self._victims[name]
                elif difference.expected == "evicted":
                    yield from self._spared()
                elif name not in decided.binds:
                    yield from self._waiting(name)

    def _waiting(self, name: str) -> Iterator[str]:
        found = self._explained(name)
        if found.causes:
            first = found.causes[0]
            yield f"{found.job} waits: {first.code}: {first.text}"
        elif found.state != "waits":
            yield f"{found.job}: {found.text}"

    def _spared(self) -> Iterator[str]:
        """Explain for whom nobody was evicted, and why."""
        waiting = [job for job, phase in self._phases() if phase in ("Pending", "Inqueue")]
        for job in waiting[:_MOST]:
            found = self._explained(job)
            yield from self._waiting(job)
            yield from (f"{each.code}: {each.text}" for each in found.not_evicted)

    def _phases(self) -> Iterator[tuple[str, str]]:
        return ((job, state.phase) for job, state in self._cycle.decisions.pod_groups.items())

    def _explained(self, name: str) -> Explanation:
        if name not in self._known:
            self._known[name] = explain_job(self._world, name, unblock=False, foresee=False)
        return self._known[name]

    @cached_property
    def _victims(self) -> Mapping[str, str]:
        """A sentence for each pod that the cycle evicts."""
        if not self._cycle.decisions.evictions:
            return {}
        examiner = VictimExaminer(self._cycle.decisions)
        Replay(self._world).decide(examiner)
        return examiner.sentences()
