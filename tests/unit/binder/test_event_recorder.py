"""What is reported once, and when it is reported again."""

import pytest

from pumice.api.decisions import Decisions
from pumice.binder import Binder
from pumice.binder import binder as binder_module
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.testing import pod_group


def test_a_group_that_is_made_again_is_reported_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binder_module, "_PRUNED_EACH", 1)
    cluster = EmbeddedCluster()
    cluster.create(pod_group("g"))
    binder, line = Binder(cluster), "plugin numbers failed in filter_shape: no number"
    binder.apply(Decisions(failed_for={"default/g": [line]}))
    cluster.delete("PodGroup.scheduling.volcano.sh", "default", "g")
    binder.apply(Decisions())
    cluster.create(pod_group("g"))
    binder.apply(Decisions(failed_for={"default/g": [line]}))
    assert sum(event.get("count", 1) for event in cluster.list("Event")[0]) == 2
