"""The controller loop: changes are reconciled, effects applied, one failure stays one."""

from collections.abc import Iterator
from typing import Any

import pytest

from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.controllers.base import Create, Delete, Key, Patch, Plan, Record, Update, UpdateStatus
from pumice.controllers.loop import ControllerLoop
from pumice.testing import pod, queue


def config(name: str = "a", **data: Any) -> Any:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class Sets:
    """Keeps as many pods as a ConfigMap states."""

    name = "sets"
    watches = ("ConfigMap", "Pod")

    def __init__(self) -> None:
        self.looks: list[Any] = []

    def concerns(self, kind: Any, manifest: Any, view: Any) -> Iterator[Any]:
        metadata = manifest["metadata"]
        if kind == "ConfigMap":
            yield Key(kind, metadata["namespace"], metadata["name"])
        for owner in metadata.get("ownerReferences") or ():
            yield Key("ConfigMap", metadata["namespace"], owner["name"])

    def reconcile(self, key: Any, view: Any) -> Any:
        self.looks.append(key.name)
        owner = view.get(key.kind, key.namespace, key.name)
        if owner is None:
            return Plan()
        pods = view.owned_by("Pod", owner)
        wanted = int(owner["data"]["pods"])
        missing = [Create(self.child(owner)) for _ in range(wanted - len(pods))]
        extra = [Delete(Key("Pod", key.namespace, p["metadata"]["name"])) for p in pods[wanted:]]
        return Plan([*missing, *extra])

    @staticmethod
    def child(owner: Any) -> Any:
        manifest = pod("x")
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "controller": True}
        reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
        manifest["metadata"] = {"generateName": "p-", "ownerReferences": [reference]}
        return manifest


class Scripted:
    """Follows a script."""

    name = "scripted"
    watches = ("ConfigMap",)

    def __init__(self, plan: Any) -> None:
        self.plan = plan
        self.looks: list[Any] = []

    def concerns(self, kind: Any, manifest: Any, view: Any) -> Any:
        return [Key(kind, manifest["metadata"]["namespace"], manifest["metadata"]["name"])]

    def reconcile(self, key: Any, view: Any) -> Any:
        self.looks.append((view.now, key.name))
        return self.plan(key, view)


@pytest.fixture
def cluster() -> Any:
    return EmbeddedCluster(VirtualClock(0.0))


def pods(cluster: Any) -> Any:
    return len(cluster.list("Pod")[0])


def test_controllers_run_until_the_cluster_is_as_wanted(cluster: Any) -> None:
    loop = ControllerLoop(cluster, [Sets()])
    cluster.create(config(pods="3"))
    loop.run_until_quiet()
    assert pods(cluster) == 3
    assert loop.quiet
    cluster.delete("Pod", "default", cluster.list("Pod")[0][0]["metadata"]["name"])
    loop.run_until_quiet()
    assert pods(cluster) == 3
    cluster.update(config(pods="1"))
    loop.run_until_quiet()
    assert pods(cluster) == 1


def test_a_loop_that_missed_too_much_lists_again_and_sees_what_went(cluster: Any) -> None:
    controller = Sets()
    loop = ControllerLoop(cluster, [controller])
    cluster.create(config("a", pods="1"))
    cluster.create(config("b", pods="1"))
    loop.run_until_quiet()
    controller.looks.clear()
    cluster.delete("ConfigMap", "default", "a")
    cluster.create(config("c", pods="1"))
    cluster.compact()
    loop.run_until_quiet()
    assert set(controller.looks) == {"a", "c"}
    assert pods(cluster) == 2


def test_every_effect_is_applied_in_order(cluster: Any) -> None:
    cluster.create(queue("q"))
    stated = {**queue("q"), "metadata": {"name": "q"}, "status": {"state": "Closed"}}

    def plan(key: Any, view: Any) -> Any:
        if key.name != "a":
            return Plan()
        about = view.get(key.kind, key.namespace, key.name)
        where = Key("ConfigMap", "default", "b")
        return Plan(
            [
                Create(config("b", k="1")),
                Update(config("b", k="2")),
                Patch(where, {"data": {"j": "3"}}),
                UpdateStatus(stated),
                Patch(Key("Queue.scheduling.volcano.sh", "", "q"), {"status": {"x": 1}}, "status"),
                Record(about, "Normal", "Done", "m", "s"),
                Delete(Key("ConfigMap", "default", "nothing")),
            ]
        )

    cluster.create(config("a"))
    loop = ControllerLoop(cluster, [Scripted(plan)])
    loop.run_until_quiet()
    assert not loop.failures
    assert cluster.get("ConfigMap", "default", "b")["data"] == {"k": "2", "j": "3"}
    status = cluster.get("Queue.scheduling.volcano.sh", "", "q")["status"]
    assert status == {"state": "Closed", "x": 1}
    assert [e["reason"] for e in cluster.list("Event")[0]] == ["Done"]


def test_a_controller_looks_again_when_it_wants(cluster: Any) -> None:
    controller = Scripted(lambda key, view: Plan(again_in_s=10 if view.now < 25 else None))
    loop = ControllerLoop(cluster, [controller], cluster.clock)
    cluster.create(config())
    loop.run_until_quiet()
    while cluster.clock.step():
        loop.run_until_quiet()
    assert [at for at, _ in controller.looks] == [0, 10, 20, 30]
    assert loop.next_at() is None


def test_a_stale_write_is_tried_again_at_once(cluster: Any) -> None:
    stale = cluster.create(config(k="1"))
    cluster.update(config(k="2"))
    tries = []

    def plan(key: Any, view: Any) -> Any:
        tries.append(key)
        present = view.get(key.kind, key.namespace, key.name)
        if present["data"].get("k") == "3":
            return Plan()
        base = stale if len(tries) == 1 else present
        return Plan([Update({**base, "data": {"k": "3"}})])

    loop = ControllerLoop(cluster, [Scripted(plan)])
    loop.run_until_quiet()
    assert cluster.get("ConfigMap", "default", "a")["data"] == {"k": "3"}
    assert not loop.failures


def test_a_failure_hurts_one_object_only_and_is_tried_later_and_later(cluster: Any) -> None:
    def plan(key: Any, view: Any) -> Any:
        if key.name == "bad":
            raise ZeroDivisionError
        return Plan()

    controller = Scripted(plan)
    loop = ControllerLoop(cluster, [controller], cluster.clock)
    cluster.create(config("bad"))
    cluster.create(config("good"))
    loop.run_until_quiet()
    assert [name for _, name in controller.looks] == ["bad", "good"]
    for _ in range(3):
        cluster.clock.step()
        loop.run_until_quiet()
    waits = [at for at, name in controller.looks if name == "bad"]
    assert waits == pytest.approx([0, 0.005, 0.015, 0.035])
    assert loop.attempts("scripted", Key("ConfigMap", "default", "bad")) == 4
    assert [type(f.error) for f in loop.failures] == [ZeroDivisionError] * 4


def test_effects_after_a_failed_one_are_left_out(cluster: Any) -> None:
    made = cluster.create(config("a"))
    old = {**made, "metadata": {**made["metadata"], "resourceVersion": "1"}}

    def plan(key: Any, view: Any) -> Any:
        return Plan([Update(old), Create(config("never"))] if key.name == "a" else [])

    loop = ControllerLoop(cluster, [Scripted(plan)])
    loop.run_until_quiet()
    assert [m["metadata"]["name"] for m in cluster.list("ConfigMap")[0]] == ["a"]
    assert loop.failures


def test_a_controller_that_cannot_say_what_concerns_it_is_reported(cluster: Any) -> None:
    class Confused(Scripted):
        def concerns(self, kind: Any, manifest: Any, view: Any) -> Any:
            raise KeyError(kind)

    other = Sets()
    loop = ControllerLoop(cluster, [Confused(None), other])
    cluster.create(config(pods="1"))
    loop.run_until_quiet()
    assert loop.failures[0].controller == "scripted"
    assert pods(cluster) == 1


def test_a_loop_without_end_stops_at_its_limit(cluster: Any) -> None:
    def plan(key: Any, view: Any) -> Any:
        present = view.get(key.kind, key.namespace, key.name)
        return Plan([Update({**present, "data": {"n": str(view.now) + str(cluster.version)}})])

    loop = ControllerLoop(cluster, [Scripted(plan)])
    cluster.create(config())
    assert loop.run_until_quiet(limit=20) == 20
    assert not loop.quiet
