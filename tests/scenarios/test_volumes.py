"""Which volumes pods get and where, as Kubernetes' scheduler decides it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pumice.scenarios.runner import default_scheduler
from pumice.testing import CompareOptions, check, find_scenarios, load_scenario

VOLUMES = [file.path for file in find_scenarios([Path(__file__).parent / "volumes"])]


@pytest.mark.parametrize("path", VOLUMES, ids=[path.stem for path in VOLUMES])
def test_decided_as_kubernetes_decides(path: Any) -> None:
    scenario = load_scenario(path)
    options = CompareOptions(messages=True)
    assert check(scenario, default_scheduler, options) == []
    turned = replace(scenario, objects=scenario.objects[::-1], seed=7)
    assert check(turned, default_scheduler, options) == []


def test_the_scenarios_are_there() -> None:
    """An empty folder must not pass for success."""
    assert len(VOLUMES) > 20
