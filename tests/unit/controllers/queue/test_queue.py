"""Queue: states, commands, hierarchy."""

from typing import Any

import pytest

from pumice.api.times import rfc3339
from pumice.controllers.queue import CLOSED_BY_PARENT, QueueController
from tests.unit.controllers.fakes import NOON, FakeView

QUEUE = "Queue.scheduling.volcano.sh"


def queue(
    name: Any,
    parent: str | None = "root",
    state: str | None = "Open",
    mark: Any = None,
    **metadata: Any,
) -> Any:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {
            "name": name,
            **({"annotations": {CLOSED_BY_PARENT: mark}} if mark else {}),
            **metadata,
        },
        "spec": {"parent": parent} if parent else {},
        "status": {"state": state} if state else {},
    }


def podgroup(name: Any, queue_name: Any, **metadata: Any) -> Any:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "ns", **metadata},
        "spec": {"queue": queue_name},
    }


def command(action: Any, target: Any, kind: str = "Queue") -> Any:
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": f"{action}-{target}".lower(), "namespace": "ns"},
        "action": action,
        "target": {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": kind, "name": target},
    }


def world(*manifests: Any) -> Any:
    return FakeView(queue("root", parent=None), *manifests)


def settle(view: Any, *manifests: Any, controller: Any = None) -> None:
    view.settle(controller or QueueController(), *manifests)


def state(view: Any, name: Any) -> Any:
    return view.get(QUEUE, "", name)["status"]["state"]


def mark(view: Any, name: Any) -> Any:
    return (view.get(QUEUE, "", name)["metadata"].get("annotations") or {}).get(CLOSED_BY_PARENT)


def order(view: Any, action: Any, target: Any, controller: Any = None) -> None:
    controller = controller or QueueController()
    settle(view, view.add(command(action, target)), controller=controller)
    everything = view.list(QUEUE)
    for _ in everything:  # a change travels one generation at a time
        settle(view, *everything, controller=controller)


def test_podgroups_of_a_former_queue_of_that_name_do_not_count() -> None:
    old = podgroup("g", "q", creationTimestamp=rfc3339(NOON - 10))
    view = world(old, queue("q"))
    order(view, "CloseQueue", "q")
    assert state(view, "q") == "Closed"


@pytest.mark.parametrize(
    ("action", "target"), [("PaintQueue", "q"), ("CloseQueue", "nowhere")], ids=["action", "queue"]
)
def test_a_command_is_used_up_although_it_means_nothing(action: str, target: str) -> None:
    view = world(queue("q"))
    order(view, action, target)
    assert (state(view, "q"), view.list("Command.bus.volcano.sh")) == ("Open", [])


def test_a_command_for_something_else_is_left_alone() -> None:
    view = world(queue("q"), other := command("CloseQueue", "q", kind="Job"))
    settle(view, other)
    assert view.list("Command.bus.volcano.sh") != []


def test_a_child_cannot_be_opened_below_a_closed_parent() -> None:
    view = world(queue("a", state="Closed"), queue("b", "a", state="Closed"))
    order(view, "OpenQueue", "b")
    assert (state(view, "b"), view.events) == ("Closed", [])


def test_a_child_opens_after_all_if_its_parent_does_in_time() -> None:
    view = world(queue("a", state="Closed"), queue("b", "a", state="Closed"))
    controller = QueueController()
    order(view, "OpenQueue", "b", controller)
    view.now += 160
    order(view, "OpenQueue", "a", controller)
    assert (state(view, "b"), mark(view, "b")) == ("Open", "false")


def test_a_wish_to_open_ends_with_a_later_one_to_close() -> None:
    view = world(queue("a", state="Closed"), queue("b", "a", state="Closed"))
    controller = QueueController()
    for action, target in [("OpenQueue", "b"), ("CloseQueue", "b"), ("OpenQueue", "a")]:
        order(view, action, target, controller)
    assert state(view, "b") == "Closed"


@pytest.mark.parametrize(("retries", "after_s"), [(3, 0.035), (15, 163.835), (0, 0.0)])
def test_a_refusal_is_reported_when_retries_are_over(retries: int, after_s: float) -> None:
    view = world(queue("a", state="Closed"), child := queue("b", "a", state="Closed"))
    controller = QueueController(max_requeue_num=retries)
    view.add(command("OpenQueue", "b"))
    (key,) = controller.concerns(QUEUE, child, view)
    plan = view.apply(controller.reconcile(key, view))
    assert plan.again_in_s == (pytest.approx(after_s, abs=1e-5) if after_s else None)
    view.now += after_s + 0.001
    view.apply(controller.reconcile(key, view))
    (record,) = view.records
    assert (record.type, record.reason, state(view, "b")) == ("Warning", "OpenQueue", "Closed")
    assert "Open the parent queue first." in record.message


def test_retries_may_have_no_end() -> None:
    view = world(queue("a", state="Closed"), child := queue("b", "a", state="Closed"))
    controller = QueueController(max_requeue_num=-1)
    view.add(command("OpenQueue", "b"))
    (key,) = controller.concerns(QUEUE, child, view)
    plan = view.apply(controller.reconcile(key, view))
    assert (plan.again_in_s, view.events) == (None, [])


def test_a_queue_without_its_parent_is_open() -> None:
    view = world(new := queue("b", "nowhere", state=None))
    settle(view, new)
    assert state(view, "b") == "Open"
