"""One cycle of the whole scheduler on manifests, for tests of actions."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.scheduler import Scheduler

NOW = 1_768_471_200.0  # 2026-01-15T10:00:00Z


def _conf(actions: Any, tiers: Any, arguments: Any) -> Any:
    lines = [f'actions: "{actions}"', "tiers:"]
    for tier in tiers:
        lines.append("- plugins:")
        lines += [f"  - name: {name}" for name in tier.split()]
    if arguments:
        lines.append("configurations:")
    for action, values in arguments.items():
        lines += [f"- name: {action}", "  arguments:"]
        lines += [f"    {key}: {value}" for key, value in values.items()]
    return parse_conf("\n".join(lines))


@pytest.fixture
def decide() -> Any:
    """Run one cycle: tiers are texts with plugin names, arguments go to actions."""

    def run(objects: Any, *tiers: Any, actions: Any, arguments: Any = None, seed: Any = 0) -> Any:
        conf = _conf(actions, tiers or ("gang",), arguments or {})
        return Scheduler(conf, seed=seed).cycle(objects, NOW)

    return run
