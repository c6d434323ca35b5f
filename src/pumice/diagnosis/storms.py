"""Storms: pods that evict each other over and over, so that a cluster never comes to rest."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from pumice.api.kinds import ENDED_PHASES
from pumice.api.wording import counted, first_of
from pumice.diagnosis.story import Moved
from pumice.diagnosis.timeline import Timeline

REPEATS: Final = 3
"""How often a cluster must return to the same state before it is called a storm."""
_LONGEST_S: Final = 3600.0
"""Longest time from one round to the next; a daily recurrence is not a storm."""


@dataclass(frozen=True, kw_only=True)
class Storm:
    """Which pods evict each other, and how often."""

    every_s: float
    """Seconds from one round to the next."""
    pods: list[str] = field(default_factory=list)
    """Pods that are evicted in each round."""
    jobs: list[str] = field(default_factory=list)
    why: list[str] = field(default_factory=list)
    """A sentence for each pair: which job makes room for which, and by which action."""

    @property
    def text(self) -> str:
        """The storm in one sentence."""
        every = "every cycle" if self.every_s <= 1 else f"every {self.every_s:g} s"
        if len(self.pods) == 1:
            return f"{self.pods[0]} is evicted and comes back {every}"
        return f"{counted(len(self.pods), 'pod')} evict each other {every}"

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain data."""
        return {**asdict(self), "text": self.text}


class StormWatch:
    """Watches a timeline; ``look`` after each step."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._seen: dict[Hashable, list[tuple[float, int]]] = {}
        """State of the cluster to the times at which it occurred, with the evictions before."""
        self.storm: Storm | None = None
        self.rounds = 0
        """Number of rounds of the storm so far."""

    def look(self, evicted: Sequence[str]) -> None:
        """Check whether a cycle that evicts found the same state as an earlier one."""
        if not evicted:
            return
        timeline, story = self._timeline, self._timeline.story
        stand = self._stand(evicted)
        times = self._seen.setdefault(stand, [])
        now = timeline.now
        if times and now - times[-1][0] > _LONGEST_S:
            times.clear()
        times.append((now, len(story.evictions)))
        if len(times) > REPEATS:
            self.rounds = len(times) - 1
            (then, before), (at, after) = times[-2:]
            self.storm = self._describe(at - then, story.evictions[before:after])

    def _stand(self, evicted: Sequence[str]) -> Hashable:
        """Describe where pods run: by name, or by owner where names are generated."""
        places: Counter[tuple[str, str]] = Counter()
        for pod in self._timeline.pods():
            node = pod["spec"].get("nodeName")
            phase = (pod.get("status") or {}).get("phase")
            if node and phase not in ENDED_PHASES:
                places[self._timeline.ident(pod), str(node)] += 1
        return frozenset(places.items()), len(evicted)

    def _describe(self, every_s: float, round_: Sequence[Moved]) -> Storm:
        pods = sorted({each.pod for each in round_})
        jobs = dict.fromkeys(each.job for each in round_)
        why = {
            f"{first_of([m.pod for m in round_ if (m.job, m.whose, m.action) == key], 3)} "
            f"{'makes' if sum((m.job, m.whose, m.action) == key for m in round_) == 1 else 'make'} "
            f"room for {key[1] or 'nobody'} by {key[2] or 'the scheduler'}": None
            for key in dict.fromkeys((m.job, m.whose, m.action) for m in round_)
        }
        return Storm(every_s=every_s, pods=pods, jobs=list(jobs), why=list(why))
