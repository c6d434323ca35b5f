"""What the annotations of a pod group prefer about its roles."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations

from pumice.core.views import Job, Task

AFFINITY = "volcano.sh/task-topology-affinity"
ANTI_AFFINITY = "volcano.sh/task-topology-anti-affinity"
TASK_ORDER = "volcano.sh/task-topology-task-order"
SELF_APART, TOGETHER, SELF_TOGETHER, APART = 4, 3, 2, 1
"""The urgency of a role by its preferences; the highest counts."""

Pair = frozenset[str]
"""Two roles, or one with itself."""


@dataclass
class Wishes:
    """The preferences of one pod group about its roles, from its annotations."""

    together: set[Pair] = field(default_factory=set)
    apart: set[Pair] = field(default_factory=set)
    urgency: dict[str, int] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)
    """Position in the wanted order, counted from its end."""

    def add(self, group: list[str], pairs: set[Pair], alone: int, among: int) -> None:
        """Add one group of roles."""
        if len(group) == 1:
            pairs.add(frozenset(group))
        pairs.update(frozenset(pair) for pair in combinations(group, 2))
        for role in group:
            grade = alone if len(group) == 1 else among
            self.urgency[role] = max(self.urgency.get(role, 0), grade)

    def grade(self, role: str) -> tuple[int, int]:
        """Rank a role; higher goes first."""
        return self.order.get(role, 0), self.urgency[role]

    def weigh(self, role: str, others: dict[str, int], *, apart_only: bool = False) -> int:
        """Add up tasks that a role prefers near, minus those it avoids."""
        total = 0
        for other, count in others.items():
            pair = frozenset((role, other))
            if pair in self.together and not apart_only:
                total += count
            if pair in self.apart:
                total -= count
        return total


def read_wishes(job: Job) -> Wishes | None:
    """Read a group's annotations; an unknown or repeated role makes all of them invalid."""
    marks = job.group.metadata.annotations
    if not {AFFINITY, ANTI_AFFINITY, TASK_ORDER} & marks.keys():
        return None
    roles = {Task(job.snapshot, row).role for row in job.tasks}
    together = _groups(marks.get(AFFINITY))
    apart = _groups(marks.get(ANTI_AFFINITY))
    order = _groups(marks.get(TASK_ORDER), separator=None)
    if not all(_is_sound(group, roles) for group in (*together, *apart, *order)):
        return None
    wishes = Wishes()
    for group in together:
        wishes.add(group, wishes.together, SELF_TOGETHER, TOGETHER)
    for group in apart:
        wishes.add(group, wishes.apart, SELF_APART, APART)
    for group in order:
        wishes.order = {role: len(group) - i for i, role in enumerate(group)}
    return wishes


def _groups(text: str | None, separator: str | None = ";") -> list[list[str]]:
    if text is None:
        return []
    return [part.split(",") for part in ([text] if separator is None else text.split(separator))]


def _is_sound(group: Iterable[str], roles: set[str]) -> bool:
    named = [role for role in group if role]
    return len(named) == len(set(named)) and roles.issuperset(named)
