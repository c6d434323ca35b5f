"""Pods of schedulers that do not run here."""

from typing import Any

import pytest

from pumice.controllers.foreign_pods import ForeignPodController
from pumice.testing import pod
from tests.unit.controllers.fakes import NOON, FakeView, key


def waiting(scheduler: str = "default-scheduler", **spec: Any) -> Any:
    made = pod("p")
    made["metadata"]["namespace"] = "default"
    made["spec"] |= {"schedulerName": scheduler, **spec}
    return made


def test_an_event_says_that_nobody_places_the_pod() -> None:
    view = FakeView(waiting())
    controller = ForeignPodController()
    assert controller.reconcile(key(waiting()), view).again_in_s == 5
    view.now = NOON + 6
    view.settle(controller, waiting())
    (record,) = view.records
    assert (record.type, record.reason) == ("Warning", "FailedScheduling")
    assert record.message == (
        "no scheduler named default-scheduler runs in this cluster: set schedulerName: volcano, "
        "or start it with --default-scheduler"
    )
    (found,) = view.list("Pod")
    assert found["status"]["conditions"][0]["reason"] == "NoScheduler"
    assert controller.concerns("Pod", found, view) == ()  # said once


@pytest.mark.parametrize(
    "made", [waiting("volcano"), waiting("volcano", nodeName=""), waiting(nodeName="n")]
)
def test_other_pods_are_left_alone(made: Any) -> None:
    view = FakeView(made, now=NOON + 60)
    view.settle(ForeignPodController(), made)
    assert (view.records, view.list("Pod")[0].get("status")) == ([], made.get("status"))
