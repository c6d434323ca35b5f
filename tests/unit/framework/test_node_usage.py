"""Measured load as columns."""

from typing import Any

import numpy as np

from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.framework.plugin_session import node_load
from pumice.framework.session import Session
from pumice.testing import node


def load_of(usage: Any) -> Any:
    snapshot = Ingest(Snapshot()).load([from_manifest(node(name)) for name in ("a", "b", "c")])
    return node_load(Session(snapshot, [], node_usage=usage))


def test_measurements_stand_in_the_order_of_the_nodes() -> None:
    load = load_of({"c": {"cpu": 3, "memory": 30, "metricsTime": 7.0}, "a": {"cpu": 1}})
    assert load.percent.tolist() == [[1, 0, 3], [0, 0, 30]]
    assert load.measured_at.tolist() == [-np.inf, -np.inf, 7.0]
    assert load.known.tolist() == [False, False, True]


def test_a_measurement_is_fresh_up_to_the_given_age() -> None:
    load = load_of({name: {"metricsTime": time} for name, time in (("a", 9.0), ("b", 10.0))})
    assert load.fresh(20.0, 10.0).tolist() == [False, True, False]


def test_measurements_of_unknown_nodes_are_passed_over() -> None:
    assert not load_of({"elsewhere": {"cpu": 50, "metricsTime": 1.0}}).known.any()
