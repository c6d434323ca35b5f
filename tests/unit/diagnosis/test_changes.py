"""Changes as data: what they make of a world, and what admission refuses of them."""

import json
from typing import Any

import pytest

from pumice.api.conf import DEFAULT_CONF
from pumice.diagnosis.changes import Add, Change, Conf, Patch, Remove, Wait, chain, patched
from pumice.diagnosis.cluster_state import group_of
from pumice.diagnosis.runner import Replay
from pumice.diagnosis.settings import add_nodes, drain_node, remove_node, setting_from_text
from pumice.diagnosis.sources import load_world
from pumice.errors import ConfError, InputError
from pumice.testing import node, pod, pod_group, priority_class, queue
from tests.present import present

WORLD = [queue("default"), node("n1", cpu=4)]


def volcano_job(name: str = "train", **spec: Any) -> Any:
    template = {
        "spec": {
            "restartPolicy": "OnFailure",
            "containers": [
                {"name": "a", "image": "b", "resources": {"requests": {"cpu": "1"}}},
            ],
        }
    }
    task = {"name": "worker", "replicas": 2, "template": template}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": 2, "schedulerName": "volcano", "tasks": [task], **spec},
    }


def loaded(*objects: Any) -> Any:
    return load_world(["\n---\n".join(json.dumps(one) for one in (*WORLD, *objects)) + "\n"])


def pods(world: Any) -> list[str]:
    return sorted(world.of_kind("Pod"))


OPS = [
    {
        "op": "patch",
        "kind": "Queue",
        "namespace": "",
        "name": "default",
        "patch": [{"op": "replace", "path": "/spec/weight", "value": 3}],
    },
    {"op": "add", "object": node("n2", cpu=8)},
    {"op": "remove", "kind": "Node", "namespace": "", "name": "n1"},
    {"op": "conf", "text": DEFAULT_CONF},
    {"op": "wait", "pods": ["default/old-0"]},
]


def test_changes_are_written_and_read_as_the_same_data() -> None:
    change = Change.from_data(json.loads(json.dumps(OPS)))
    assert change.to_data() == OPS
    assert [type(op) for op in change.ops] == [Patch, Add, Remove, Conf, Wait]
    assert change.text.startswith("change spec/weight of Queue default and add Node n2 and remove")


def test_all_operations_are_carried_out_in_order(world: Any, job: Any) -> None:
    there = world([*WORLD, *job("old", cpu=1, nodes=["n1"])])
    changed = Change.from_data([*OPS[:2], OPS[4], OPS[2], OPS[3]])(there)
    assert changed.of_kind("Queue")["default"]["spec"]["weight"] == 3
    assert sorted(changed.of_kind("Node")) == ["n2"]
    assert pods(changed) == []
    assert changed.conf == DEFAULT_CONF
    assert there.of_kind("Queue")["default"]["spec"]["weight"] == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"op": "add"}, "expected a list of changes"),
        ([{"op": "move"}], r"changes\[0\]: expected a change with op patch, add"),
        ([{"op": "patch", "kind": "Queue", "name": "q"}], r"changes\[0\]: patch: expected a list"),
        ([{"op": "wait", "pods": "a"}], "pods: expected a list of pods, got 'a'"),
        ([{"op": "conf", "text": "", "file": "x"}], "expected the fields text, got 'file'"),
        ([{"op": "add", "object": {"kind": "Node"}}], "object.apiVersion: expected a text"),
    ],
)
def test_data_that_is_no_change_is_refused_with_its_place(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Change.from_data(data)


def test_a_difference_becomes_steps_and_lists_are_replaced_whole() -> None:
    before = {"spec": {"a": 1, "b/c": {"x": 1}, "gone": 0, "items": [1, 2]}}
    after = {"spec": {"a": 1, "b/c": {"x": 2, "y~": 3}, "items": [1]}}
    op = patched("Pod", "ns/name", before, after)
    assert (op.namespace, op.name) == ("ns", "name")
    assert op.patch == [
        {"op": "replace", "path": "/spec/b~1c/x", "value": 2},
        {"op": "add", "path": "/spec/b~1c/y~0", "value": 3},
        {"op": "remove", "path": "/spec/gone"},
        {"op": "replace", "path": "/spec/items", "value": [1]},
    ]


# Volcano jobs


def test_a_job_that_is_scaled_has_the_pods_and_the_group_that_its_controller_makes() -> None:
    world = loaded(volcano_job())
    assert pods(world) == ["default/train-worker-0", "default/train-worker-1"]
    more = setting_from_text(world, "job/default/train.tasks.worker.replicas=3")(world)
    assert pods(more) == [*pods(world), "default/train-worker-2"]
    least = setting_from_text(more, "job/default/train.minAvailable=1")
    fewer = chain([setting_from_text(more, "job/default/train.tasks.worker.minAvailable=1"), least])
    changed = fewer(more)
    assert changed.groups["default/train"]["spec"]["minMember"] == 1
    assert changed.groups["default/train"]["spec"]["minTaskMember"] == {"worker": 1}
    assert changed.groups["default/train"]["spec"]["minResources"]["cpu"] == "1"


def test_a_template_cannot_change_but_the_job_can_be_submitted_again() -> None:
    seen = volcano_job()
    seen["metadata"]["uid"] = "u"
    world = loaded(seen)
    old = world.jobs["default/train"]
    new = json.loads(json.dumps(old))
    new["spec"]["tasks"][0]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    with pytest.raises(
        InputError,
        match=r"ssd only: Job default/train: spec\.tasks\[0\]\.template\.spec\.nodeSelector",
    ):
        Change("ssd only", (patched("Job", "default/train", old, new),))(world)
    again = (Remove(kind="Job", namespace="default", name="train"), Add(object=new))
    changed = Change("ssd only", again)(world)
    group = changed.find_job("train")
    assert [*changed.groups] == [group]
    assert {group_of(one) for one in changed.of_kind("Pod").values()} == {group}
    found = changed.of_kind("Pod")["default/train-worker-0"]
    assert found["spec"]["nodeSelector"] == {"disk": "ssd"}


def test_a_draft_that_no_cluster_has_seen_may_change_anywhere() -> None:
    world = loaded(volcano_job())
    old = world.jobs["default/train"]
    new = json.loads(json.dumps(old))
    new["spec"]["tasks"][0]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    changed = Change("ssd only", (patched("Job", "default/train", old, new),))(world)
    found = changed.of_kind("Pod")["default/train-worker-0"]
    assert found["spec"]["nodeSelector"] == {"disk": "ssd"}


def test_a_job_that_is_removed_takes_its_group_and_pods_along() -> None:
    changed = Change("x", (Remove(kind="Job", namespace="default", name="train"),))(
        loaded(volcano_job(), volcano_job("other"))
    )
    assert [*changed.jobs] == ["default/other"] == [*changed.groups]
    assert pods(changed) == ["default/other-worker-0", "default/other-worker-1"]


def test_a_new_job_is_checked_as_lint_does() -> None:
    with pytest.raises(InputError, match=r"add Job default/train: Job default/train: spec\.queue"):
        Change.from_data([{"op": "add", "object": volcano_job(queue="nowhere")}])(loaded())
    wrong = volcano_job()
    wrong["spec"]["tasks"][0]["replica"] = 3
    with pytest.raises(InputError, match="replica"):
        Change.from_data([{"op": "add", "object": wrong}])(loaded())
    with pytest.raises(InputError, match="an object that does not exist yet"):
        Change.from_data([{"op": "add", "object": volcano_job()}])(loaded(volcano_job()))


def test_pods_of_a_job_that_are_waited_for_stay_as_ended_ones_and_others_are_gone(
    job: Any,
) -> None:
    world = loaded(volcano_job(), *job("bare", cpu=1, nodes=["n1"]))
    changed = Change("x", (Wait(pods=["default/train-worker-0", "default/bare-0"]),))(world)
    assert pods(changed) == ["default/train-worker-0", "default/train-worker-1"]
    assert changed.of_kind("Pod")["default/train-worker-0"]["status"]["phase"] == "Succeeded"


# Pods and nodes


def test_pods_of_a_lost_node_are_lost_and_drained_ones_too(world: Any, job: Any) -> None:
    there = world([*WORLD, node("n2"), *job("a", cpu=1, nodes=["n1"]), *job("b", cpu=1)])
    assert pods(remove_node("n1")(there)) == ["default/b-0"]
    drained = drain_node(there, "n1")(there)
    assert pods(drained) == ["default/b-0"]
    assert drained.of_kind("Node")["n1"]["spec"]["unschedulable"] is True


def test_a_pod_without_a_group_gets_one_and_its_priority(world: Any) -> None:
    there = world([*WORLD, priority_class("high", value=7)])
    new = pod("p", cpu=1, spec={"priorityClassName": "high"})
    changed = Change("x", (Add(object=new),))(there)
    made = changed.of_kind("Pod")["default/p"]
    assert made["spec"]["priority"] == 7
    assert [*changed.groups] == [group_of(made)]


def test_the_pod_group_of_a_plain_pod_is_that_of_the_controller(world: Any) -> None:
    marks = {"scheduling.volcano.sh/queue-name": "default", "volcano.sh/preemptable": "true"}
    changed = Change("x", (Add(object=pod("lone", cpu=1, annotations=marks)),))(world(WORLD))
    [group] = changed.groups.values()
    assert (group["spec"]["queue"], group["spec"]["minMember"]) == ("default", 1)
    assert group["metadata"]["annotations"] == {"volcano.sh/preemptable": "true"}
    assert changed.title(changed.find_job("lone")) == "default/lone"


REFUSED = {
    "queue/b.parent=a": (InputError, r"spec\.parent: expected a queue that is not below b itself"),
    "queue/a.weight=-1": (InputError, r"spec\.weight: expected at least 1, got -1"),
    "queue/a.capability.cpus=1": (InputError, r"spec\.capability: expected a resource that exists"),
    "pod/default/j-0.nodeSelector.disk=ssd": (InputError, "cannot change in a pod that exists"),
    "podgroup/default/j.minMember=-2": (InputError, r"spec\.minMember: expected"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_setting_that_admission_refuses_names_change_field_found_and_wanted(
    world: Any, job: Any, text: str
) -> None:
    there = world([queue("b"), queue("a", parent="b"), node("n1"), *job("j", cpu=1)])
    change = setting_from_text(there, text)
    error, message = REFUSED[text]
    with pytest.raises(error, match=message) as refused:
        change(there)
    assert str(refused.value).startswith(f"{change.text}: ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("queue/a.weight=", "expected a value after '=', got nothing (null removes the field"),
        ("queue/a.weight= ", "expected a value after '=', got nothing"),
        ("queue/a.capability.cpu=", "expected an amount such as 2 or 4Gi, got nothing"),
        ("job/x.queue=a", "unknown job 'x'; it has no jobs"),
    ],
)
def test_a_setting_without_a_value_or_an_object_is_refused(
    world: Any, text: str, problem: str
) -> None:
    with pytest.raises(InputError) as refused:
        setting_from_text(world([queue("a"), node("n1")]), text)
    assert problem in str(refused.value)


def test_a_pod_may_lose_its_gates_but_get_no_new_ones(world: Any) -> None:
    gates = [{"name": "a"}, {"name": "b"}]
    there = world([*WORLD, pod("p", cpu=1, group="g", spec={"schedulingGates": gates})])
    old = there.of_kind("Pod")["default/p"]

    def with_gates(names: str) -> Change:
        new = {**old, "spec": {**old["spec"], "schedulingGates": [{"name": n} for n in names]}}
        return Change("x", (patched("Pod", "default/p", old, new),))

    changed = with_gates("a")(there)
    assert changed.of_kind("Pod")["default/p"]["spec"]["schedulingGates"] == [{"name": "a"}]
    with pytest.raises(InputError, match=r"spec\.schedulingGates"):
        with_gates("abc")(there)


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ({"op": "remove", "kind": "Queue", "name": "defaults"}, "did you mean 'default'"),
        ({"op": "remove", "kind": "Queue", "name": "default"}, "can not be deleted"),
        ({"op": "wait", "pods": ["a/b"]}, "expected pods of this cluster, got 'a/b'"),
        (
            {
                "op": "patch",
                "kind": "Node",
                "name": "n1",
                "patch": [{"op": "remove", "path": "/x"}],
            },
            "expected a patch that can be applied",
        ),
        (
            {
                "op": "patch",
                "kind": "Node",
                "name": "n1",
                "patch": [{"op": "replace", "path": "/metadata/name", "value": "n2"}],
            },
            "a patch that leaves kind and name",
        ),
    ],
)
def test_an_operation_that_cannot_be_done_is_refused(world: Any, op: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Change.from_data([op])(world(WORLD))


def test_a_configuration_of_no_use_is_refused(world: Any) -> None:
    with pytest.raises(ConfError):
        Change.from_data([{"op": "conf", "text": "actions: [1"}])(world(WORLD))


def test_a_wider_quota_counts_at_once(world: Any, job: Any) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {"hard": {"requests.cpu": "2"}},
        "status": {"hard": {"requests.cpu": "2"}, "used": {"requests.cpu": "1"}},
    }
    there = world([*WORLD, quota, *job("a", cpu=1, nodes=["n1"])])
    step = {"op": "replace", "path": "/spec/hard/requests.cpu", "value": "5"}
    op = {"op": "patch", "kind": "ResourceQuota", "namespace": "default", "name": "team"}
    changed = Change.from_data([{**op, "patch": [step]}])(there)
    status = present(changed.get("ResourceQuota", "default/team"))["status"]
    assert status == {"hard": {"requests.cpu": "5"}, "used": {"requests.cpu": "1"}}


def test_the_running_pods_of_a_removed_job_are_not_created_again() -> None:
    job = volcano_job()
    job["metadata"]["uid"] = "u1"
    job["status"] = {"state": {"phase": "Running"}}
    owner = {"apiVersion": job["apiVersion"], "kind": "Job", "name": "train", "uid": "u1"}
    group = pod_group("train-u1", min_member=2, phase="Running")
    running = pod("train-worker-0", group="train-u1", cpu=1, node="n1")
    for one in (group, running):
        one["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    change = Change("remove it", (Remove(kind="Job", namespace="default", name="train"),))
    assert pods(change(loaded(job, group, running))) == []


# Changes that are joined


def test_a_patch_of_what_admission_sets_joins_the_object_that_is_added() -> None:
    fresh = pod("j-0", group="j", cpu=1)
    world = loaded(pod_group("j"), pod("j-0", group="j", cpu=2))
    again = Change(
        "again", (Remove(kind="Pod", namespace="default", name="j-0"), Add(object=fresh))
    )
    stored = again(world).of_kind("Pod")["default/j-0"]
    assert stored["spec"]["tolerations"], "set by admission, and not in what is added"
    taint = {"key": "dedicated", "operator": "Exists"}
    new = {**stored["spec"], "tolerations": [*stored["spec"]["tolerations"], taint]}
    tolerant = patched("Pod", "default/j-0", stored, {**stored, "spec": new})
    both = chain([again, Change("tolerate", (tolerant,))])
    assert [type(op) for op in both.ops] == [Remove, Add]
    assert taint in both(world).of_kind("Pod")["default/j-0"]["spec"]["tolerations"]


def test_a_patch_of_a_job_that_no_cluster_has_seen_sets_what_its_file_may_lack() -> None:
    job = volcano_job()
    del job["spec"]["minAvailable"]
    world = loaded(job)
    old = world.jobs["default/train"]
    new = {**old, "spec": {**old["spec"], "minAvailable": 1}}
    (step,) = patched("Job", "default/train", old, new).patch
    assert step == {"op": "add", "path": "/spec/minAvailable", "value": 1}


def test_limits_of_a_quota_can_be_set() -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {"hard": {"requests.cpu": "1"}},
    }
    world = loaded(volcano_job(), quota)
    change = setting_from_text(world, "resourcequota/default/team.hard.requests.cpu=9")
    assert change.text == "set hard.requests.cpu of resourcequota default/team to 9"
    assert len(world.refusals) == 1
    assert change(world).refusals == {}


def test_quotas_count_again_once_pods_have_ended(world: Any, job: Any) -> None:
    stated = {"requests.cpu": "3", "pods": "2"}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {"hard": {"requests.cpu": "3", "pods": "9"}},
        "status": {"hard": {"requests.cpu": "3", "pods": "9"}, "used": stated},
    }
    new = pod_group("new", min_resources={"requests.cpu": "2"})
    member = pod("new-0", group="new", cpu=2)
    old = job("old", cpu=2, nodes=["n1"])
    there = world([*WORLD, quota, *old, new, member], "gang resourcequota", actions="enqueue")
    assert Replay(there).decide().pod_groups["default/new"].phase == "Pending"
    ended = Change("wait", (Wait(pods=("default/old-0",)),))(there)
    used = ended.of_kind("ResourceQuota")["default/team"]["status"]["used"]
    assert used == {"requests.cpu": "1", "pods": "1"}  # that of a pod elsewhere stays
    assert Replay(ended).decide().pod_groups["default/new"].phase == "Inqueue"


def test_nodes_that_several_changes_add_are_counted_together(world: Any) -> None:
    there = world(WORLD)
    like = there.of_kind("Node")["n1"]
    first = add_nodes(there, 1, like)
    more = add_nodes(first(there), 3, like)
    large = add_nodes(there, 2, like, {"cpu": "64"})
    assert chain([first, more]).text == "add 4 nodes like n1"
    assert len(chain([first, more])(there).of_kind("Node")) == 1 + 4
    assert chain([first, large]).text == "add a node like n1 and 2 nodes like n1 with cpu 64"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"op": ["patch"]}, "a change with op"),
        ({"op": "wait", "pods": [1]}, r"pods\[0\]: expected a pod as namespace/name"),
        ({"op": "wait", "pods": [], "namespace": "a"}, "expected the fields pods, got 'namespace'"),
        (
            {"op": "patch", "kind": "Queue", "name": "default", "patch": ["x"]},
            r"patch\[0\]: expected a step of RFC 6902",
        ),
    ],
)
def test_what_is_no_change_is_refused(change: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Change.from_data([change])


@pytest.mark.parametrize(
    "step",
    [
        {"op": "remove", "path": ""},
        {"op": "remove", "path": "/metadata"},
        {"op": "remove", "path": "/metadata/name"},
        {"op": "remove", "path": "/kind"},
        {"op": "remove", "path": "/apiVersion"},
        {"op": "add", "path": "/apiVersion", "value": "v1"},
        {"op": "add", "path": "/metadata", "value": 1},
        {"op": "add", "path": "", "value": []},
        {"op": "remove", "path": "/kind/0"},
        {"op": "remove", "path": 1},
    ],
)
def test_a_patch_leaves_the_object_that_it_is(step: Any) -> None:
    patch = Patch(kind="Queue", name="default", patch=[step])
    with pytest.raises(InputError, match="expected a patch that"):
        Change("x", (patch,))(loaded())


def test_a_patch_cannot_take_all_memory() -> None:
    steps = [{"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * 20}}]
    steps += [
        {"op": "copy", "from": "/metadata", "path": f"/metadata/annotations/{i}"} for i in range(40)
    ]
    change = Change("x", (Patch(kind="Queue", name="default", patch=steps),))
    with pytest.raises(InputError, match="bytes to copy"):
        change(loaded())
