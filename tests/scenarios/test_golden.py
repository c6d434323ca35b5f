"""Cases decided by the real Volcano: same manifests, same configuration, same decisions."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pumice.api.conf import SchedulerConf
from pumice.scheduler import Scheduler
from pumice.testing import CompareOptions, check, find_scenarios, load_scenario

GOLDEN = Path(__file__).parent.parent / "golden"
FAMILIES = sorted(folder.name for folder in GOLDEN.iterdir() if folder.is_dir())
KNOWN = json.loads((Path(__file__).parent / "golden_differences.json").read_text())
"""Cases whose messages or nominated nodes differ, each with the reason; see docs/compat.md."""
DECISIONS, ALL = CompareOptions(), CompareOptions(messages=True, nominated=True)


def differences(
    family: str, seed: int, options: CompareOptions = DECISIONS
) -> Iterator[tuple[str, str]]:
    def scheduler(conf: SchedulerConf, _: int) -> Scheduler:
        return Scheduler(conf, seed=seed)

    for file in find_scenarios([GOLDEN / family]):
        for difference in check(load_scenario(file.path), scheduler, options):
            yield f"{family}/{file.path.stem}", str(difference)


def digest(found: list[str]) -> str:
    return hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()[:12]


@pytest.mark.parametrize("family", FAMILIES)
def test_same_decisions_as_volcano(family: Any) -> None:
    """Every golden case of a family ends as the real scheduler ended it, with its words."""
    found: dict[str, list[str]] = {}
    for case, difference in differences(family, seed=0, options=ALL):
        found.setdefault(case, []).append(difference)
    known = {case: one["digest"] for case, one in KNOWN.items() if case.startswith(f"{family}/")}
    assert {case: digest(texts) for case, texts in found.items()} == known, found


def test_what_is_known_to_differ_is_about_words_and_nominations_only() -> None:
    assert {word for one in KNOWN.values() for word in one["about"]} == {"messages", "nominated"}
    assert all(one["why"] for one in KNOWN.values())
    assert len(KNOWN) == 26  # fewer is better: take a case out when it agrees


@pytest.mark.parametrize("family", ["default-conf", "mixed-cycle", "natural", "preempt"])
def test_the_seed_decides_nothing_but_ties(family: str) -> None:
    """Golden cases do not depend on which of several equal nodes is taken."""
    assert list(differences(family, seed=12345)) == []


def test_the_fixtures_are_there() -> None:
    """An empty folder must not pass for success."""
    assert len(FAMILIES) == 36
    assert sum(1 for _ in GOLDEN.glob("*/*.json")) > 800
