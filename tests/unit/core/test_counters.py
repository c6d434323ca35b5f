"""Counters of pods by domain: after every move as if counted anew, and logs of what flips."""

from typing import Any

import numpy as np
import pytest

from pumice.core.labels import LabelColumn
from pumice.core.term_counts import Counter, SpreadCounter

ZONES = ["a", "a", "b", None, "c", "c", "c"]
"""Of each node, the domain."""
ELIGIBLE = [
    None,
    [True] * 7,
    [True, False, True, True, True, True, False],
    [False, False, False, True, True, False, True],
    [False] * 7,
]


def eligible_of(given: Any) -> Any:
    return None if given is None else np.array(given)


def counted(pods: list[int], eligible: Any) -> dict[str, int]:
    """Count slowly: pods on eligible nodes that are in a domain, by domain."""
    found = dict.fromkeys("abc", 0)
    for row in pods:
        zone = ZONES[row]
        if zone is not None and (eligible is None or eligible[row]):
            found[zone] += 1
    return found


def moves(seed: int) -> Any:
    """Draw pods that come and go; yield the pods afterwards, the node and the sign."""
    rng = np.random.default_rng(seed)
    pods: list[int] = []
    for _ in range(60):
        if pods and rng.random() < 0.45:
            row, sign = pods.pop(int(rng.integers(len(pods)))), -1
        else:
            row, sign = int(rng.integers(len(ZONES))), 1
            pods.append(row)
        yield pods, row, sign


@pytest.mark.parametrize("given", ELIGIBLE)
def test_counts_follow_every_move(given: Any) -> None:
    eligible = eligible_of(given)
    counter = Counter(LabelColumn(ZONES), eligible)
    for pods, row, sign in moves(1):
        counter.add(row, sign, lambda _: None)
        fresh = Counter(LabelColumn(ZONES), eligible)
        fresh.fill(np.array(pods, dtype=np.int32))
        wanted = counted(pods, given)
        for each in (counter, fresh):
            assert each.total == sum(wanted.values())
            assert each.at(np.arange(len(ZONES))).tolist() == [
                wanted.get(zone or "", 0) for zone in ZONES
            ]


@pytest.mark.parametrize("given", ELIGIBLE)
@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("totals", [False, True])
def test_rows_are_logged_whose_answer_flips_between_none_and_some(
    given: Any, edges: bool, totals: bool
) -> None:
    """The node that moved is logged by others; a domain of one node need not be."""
    counter = Counter(LabelColumn(ZONES), eligible_of(given))
    counter.edges, counter.totals = edges, totals
    before = counted([], given)
    for pods, row, sign in moves(2):
        logged: list[Any] = []
        counter.add(row, sign, logged.append)
        now = counted(pods, given)
        flipped: set[int] = set()
        for zone in "abc":
            if edges and (before[zone] == 0) != (now[zone] == 0):
                rows = {i for i, each in enumerate(ZONES) if each == zone}
                flipped |= rows if len(rows) > 1 else set()
        if totals and (sum(before.values()) == 0) != (sum(now.values()) == 0):
            flipped |= set(range(len(ZONES)))
        assert {int(each) for rows in logged for each in rows} == flipped
        before = now


@pytest.mark.parametrize("given", ELIGIBLE[1:])
@pytest.mark.parametrize("min_domains", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("limits", [{0}, {1}, {0, 2}])
def test_spread_counters_know_the_least_domain_and_log_what_flips(
    given: Any, min_domains: int, limits: set[int]
) -> None:
    def make() -> SpreadCounter:
        return SpreadCounter(LabelColumn(ZONES), np.array(given), min_domains)

    present = {zone for zone, takes in zip(ZONES, given, strict=True) if takes and zone}

    def least(found: dict[str, int]) -> int:
        enough = len(present) >= max(1, min_domains)
        return min(found[zone] for zone in present) if enough else 0

    def answers(found: dict[str, int]) -> dict[str, list[bool]]:
        return {zone: [found[zone] - least(found) > limit for limit in limits] for zone in "abc"}

    counter, before = make(), counted([], given)
    counter.limits = limits
    counter.fill(np.zeros(0, dtype=np.int32))
    for pods, row, sign in moves(3):
        logged: list[Any] = []
        counter.add(row, sign, logged.append)
        fresh, now = make(), counted(pods, given)
        fresh.fill(np.array(pods, dtype=np.int32))
        assert counter.least == fresh.least == least(now)
        then, after = answers(before), answers(now)
        flipped = {i for i, zone in enumerate(ZONES) if zone and then[zone] != after[zone]}
        seen = {int(each) for rows in logged for each in rows}
        assert seen - {row} == flipped - {row}
        before = now
