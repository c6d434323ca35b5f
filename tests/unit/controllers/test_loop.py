"""The controller loop: changes are reconciled, effects applied, one failure stays one."""

from collections.abc import Iterator
from typing import Any

import pytest

from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.controllers import all_controllers
from pumice.controllers.base import Create, Delete, Key, Patch, Plan, Record, Update, UpdateStatus
from pumice.controllers.loop import ControllerLoop
from pumice.errors import ConflictError
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


def test_what_was_there_before_the_loop_is_looked_at(cluster: Any) -> None:
    cluster.create(config(pods="2"))
    ControllerLoop(cluster, [Sets()]).run_until_quiet()
    assert pods(cluster) == 2


def test_a_plan_may_name_further_objects_to_look_at(cluster: Any) -> None:
    others = [Key("ConfigMap", "default", name) for name in ("x", "y")]
    controller = Scripted(lambda key, view: Plan(look_at=others if key.name == "a" else []))
    loop = ControllerLoop(cluster, [controller])
    cluster.create(config())
    assert loop.run_until_quiet() == 3
    assert [name for _, name in controller.looks] == ["a", "x", "y"]


def test_many_changes_of_one_object_are_one_look(cluster: Any) -> None:
    controller = Sets()
    loop = ControllerLoop(cluster, [controller])
    made = cluster.create(config(pods="0"))
    for number in range(5):
        made = cluster.update({**made, "data": {"pods": "0", "n": str(number)}})
    assert loop.run_until_quiet() == 1
    assert loop.run_until_quiet() == 0


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


def test_a_change_of_owner_concerns_both(cluster: Any) -> None:
    controller = Sets()
    loop = ControllerLoop(cluster, [controller])
    a, b = cluster.create(config("a", pods="1")), cluster.create(config("b", pods="0"))
    loop.run_until_quiet()
    controller.looks.clear()
    child = cluster.list("Pod")[0][0]
    owners = Sets.child(b)["metadata"]["ownerReferences"]
    cluster.update({**child, "metadata": {**child["metadata"], "ownerReferences": owners}})
    loop.run_until_quiet()
    assert {"a", "b"} == set(controller.looks)
    (left,) = cluster.list("Pod")[0]
    assert left["metadata"]["ownerReferences"][0]["uid"] == a["metadata"]["uid"]


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


def test_a_look_in_between_replaces_the_later_one(cluster: Any) -> None:
    controller = Scripted(lambda key, view: Plan(again_in_s=10 if view.now < 5 else None))
    loop = ControllerLoop(cluster, [controller])
    cluster.create(config())
    loop.run_until_quiet()
    cluster.clock.advance(6)
    cluster.update(config(k="v"))
    loop.run_until_quiet()
    cluster.clock.advance(100)
    loop.run_until_quiet()
    assert [at for at, _ in controller.looks] == [0, 6]


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


def test_success_ends_the_counting_of_failures(cluster: Any) -> None:
    failing = [True]

    def plan(key: Any, view: Any) -> Any:
        if failing.pop() if failing else False:
            raise ConflictError("ConfigMap", "default", "a", "not yet")
        return Plan()

    loop = ControllerLoop(cluster, [Scripted(plan)])
    cluster.create(config())
    assert loop.run_until_quiet() == 2
    assert loop.attempts("scripted", Key("ConfigMap", "default", "a")) == 0


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


def test_a_look_can_be_asked_for(cluster: Any) -> None:
    controller = Sets()
    loop = ControllerLoop(cluster, [controller])
    loop.look_at("sets", Key("ConfigMap", "default", "a"))
    loop.run_until_quiet()
    assert controller.looks == ["a"]


class Named:
    """Looks at each ConfigMap, and knows that there is nothing to do about those that say so."""

    name = "named"
    watches = ("ConfigMap",)

    def __init__(self) -> None:
        self.looks: list[str] = []

    def concerns(self, kind: Any, manifest: Any, view: Any) -> Any:
        yield Key(kind, manifest["metadata"]["namespace"], manifest["metadata"]["name"])

    def is_up_to_date(self, kind: Any, manifest: Any) -> bool:
        return bool(manifest["data"].get("content"))

    def reconcile(self, key: Any, view: Any) -> Any:
        self.looks.append(key.name)
        return Plan()


def test_what_is_up_to_date_is_not_reconciled() -> None:
    cluster, controller = EmbeddedCluster(VirtualClock()), Named()
    cluster.restore([config("a", content="yes"), config("b"), config("c", content="yes")])
    loop = ControllerLoop(cluster, [controller])
    assert loop.run_until_quiet() == 1
    assert controller.looks == ["b"]
    cluster.patch("ConfigMap", "default", "a", {"data": {"content": None}})
    cluster.patch("ConfigMap", "default", "b", {"data": {"content": "yes"}})
    assert loop.run_until_quiet() == 1
    assert controller.looks == ["b", "a"]


def test_an_object_is_reconciled_if_it_was_up_to_date_only_before_its_last_change() -> None:
    cluster, controller = EmbeddedCluster(VirtualClock()), Named()
    loop = ControllerLoop(cluster, [controller])
    loop.run_until_quiet()
    cluster.create(config("a", content="yes"))
    cluster.patch("ConfigMap", "default", "a", {"data": {"content": None}})
    loop.look_at("named", Key("ConfigMap", "default", "a"))
    assert loop.run_until_quiet() == 1
    assert controller.looks == ["a"]


def test_there_is_one_of_each() -> None:
    names = [controller.name for controller in all_controllers()]
    assert sorted(names) == [
        "cronjob",
        "garbage",
        "hypernode",
        "job",
        "jobflow",
        "jobtemplate",
        "podgroup",
        "queue",
    ]
