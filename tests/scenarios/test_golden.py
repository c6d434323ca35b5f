"""Cases decided by the real Volcano: same manifests, same configuration, same decisions."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pumice.api.conf import SchedulerConf
from pumice.scheduler import Scheduler
from pumice.testing import CompareOptions, check, find_scenarios, load_scenario

GOLDEN = Path(__file__).parent.parent / "golden"
FAMILIES = sorted(folder.name for folder in GOLDEN.iterdir() if folder.is_dir())


def differences(family: str, seed: int) -> Iterator[str]:
    def scheduler(conf: SchedulerConf, _: int) -> Scheduler:
        return Scheduler(conf, seed=seed)

    for file in find_scenarios([GOLDEN / family]):
        for difference in check(load_scenario(file.path), scheduler, CompareOptions()):
            yield f"{file.path.name}: {difference}"


@pytest.mark.parametrize("family", FAMILIES)
def test_same_decisions_as_volcano(family: Any) -> None:
    """Every golden case of a family ends as the real scheduler ended it."""
    assert list(differences(family, seed=0)) == []


@pytest.mark.parametrize("family", ["default-conf", "mixed-cycle", "natural", "preempt"])
def test_the_seed_decides_nothing_but_ties(family: str) -> None:
    """Golden cases do not depend on which of several equal nodes is taken."""
    assert list(differences(family, seed=12345)) == []


def test_the_fixtures_are_there() -> None:
    """An empty folder must not pass for success."""
    assert len(FAMILIES) == 36
    assert sum(1 for _ in GOLDEN.glob("*/*.json")) > 800
