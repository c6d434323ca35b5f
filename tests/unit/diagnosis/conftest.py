"""Small worlds for tests of answers."""

from typing import Any

import pytest

from pumice.diagnosis.cluster_state import ClusterState
from pumice.testing import pod, pod_group

NOW = 1_768_471_200.0  # 2026-01-15T10:00:00Z


@pytest.fixture
def world() -> Any:
    """Make a world of manifests; tiers are texts with plugin names."""

    def make(
        objects: Any,
        *tiers: Any,
        actions: str = "enqueue, allocate",
        now: Any = NOW,
    ) -> Any:
        lines = [f'actions: "{actions}"', "tiers:"]
        for tier in tiers or ("gang predicates",):
            lines.append("- plugins:")
            lines += [f"  - name: {name}" for name in tier.split()]
        return ClusterState(objects=tuple(objects), now=now, conf="\n".join(lines))

    return make


@pytest.fixture
def job() -> Any:
    """Make a pod group with equal pods; the first ones run if nodes are named for them."""

    def make(
        name: Any,
        *,
        cpu: Any,
        pods: Any = 1,
        least: Any = None,
        nodes: Any = (),
        seconds: Any = None,
        spec: Any = None,
        **group: Any,
    ) -> Any:
        marks = {} if seconds is None else {"pumice.dev/run-seconds": str(seconds)}
        homes = [*nodes, *[None] * (pods - len(nodes))]
        phase = group.pop("phase", "Running" if nodes else "Pending")
        created = group.pop("created", None)
        members = [
            pod(
                f"{name}-{i}",
                group=name,
                cpu=cpu,
                node=home,
                annotations=marks,
                created=created,
                spec=spec,
            )
            for i, home in enumerate(homes)
        ]
        least = pods if least is None else least
        return [pod_group(name, min_member=least, phase=phase, created=created, **group), *members]

    return make
