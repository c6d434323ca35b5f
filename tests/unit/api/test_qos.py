"""Quality-of-service classes, by Kubernetes' rules."""

from typing import Any

import msgspec
import pytest

from pumice.api.objects import from_manifest
from pumice.api.qos import QosClass, manifest_qos_class, qos_class
from pumice.testing import pod

BOTH = {"cpu": "1", "memory": "1Gi"}


def spec(containers: Any, init: Any = (), level: Any = None) -> Any:
    def build(parts: Any) -> Any:
        return [{"name": "c", "resources": part} for part in parts]

    extra = {"containers": build(containers), "initContainers": build(init)}
    if level is not None:
        extra["resources"] = level
    made: Any = from_manifest(pod("p", spec=extra))
    return made.spec


FULL = {"requests": BOTH, "limits": BOTH}
CASES = {
    "nothing said": (spec([{}]), QosClass.BEST_EFFORT),
    "zero is nothing": (spec([{"requests": {"cpu": "0"}}]), QosClass.BEST_EFFORT),
    "other resources do not count": (
        spec([{"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 1}}]),
        QosClass.BEST_EFFORT,
    ),
    "a request alone": (spec([{"requests": {"cpu": "1"}}]), QosClass.BURSTABLE),
    "limits without requests": (spec([{"limits": BOTH}]), QosClass.BURSTABLE),
    "only cpu limited": (
        spec([{"requests": {"cpu": 1}, "limits": {"cpu": 1}}]),
        QosClass.BURSTABLE,
    ),
    "limit above the request": (
        spec([{"requests": BOTH, "limits": BOTH | {"cpu": "2"}}]),
        QosClass.BURSTABLE,
    ),
    "all limited to the request": (spec([FULL, FULL]), QosClass.GUARANTEED),
    "spelt differently": (
        spec([{"requests": BOTH, "limits": {"cpu": "1000m", "memory": "1024Mi"}}]),
        QosClass.GUARANTEED,
    ),
    "one container says nothing": (spec([FULL, {}]), QosClass.BURSTABLE),
    "an init container says nothing": (spec([FULL], init=[{}]), QosClass.BURSTABLE),
    "the pod as a whole decides": (spec([{}], level=FULL), QosClass.GUARANTEED),
    "and containers do not": (spec([FULL], level={"requests": BOTH}), QosClass.BURSTABLE),
    "but only with what it can state": (
        spec([FULL], level={"requests": {"nvidia.com/gpu": "1"}}),
        QosClass.GUARANTEED,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_pod_is_classed_by_what_it_requests_and_may_not_exceed(name: Any) -> None:
    given, expected = CASES[name]
    assert qos_class(given) == expected


@pytest.mark.parametrize("name", CASES)
def test_a_manifest_is_classed_alike(name: Any) -> None:
    given, expected = CASES[name]
    assert manifest_qos_class(msgspec.to_builtins(given)) == expected


def test_amounts_that_cannot_be_read_are_nothing() -> None:
    bad = {"containers": [{"resources": {"requests": {"cpu": "much", "memory": ["1Gi"]}}}]}
    assert manifest_qos_class(bad) is QosClass.BEST_EFFORT
