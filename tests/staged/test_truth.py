"""The runner of staged situations itself: what it accepts, what it finds, what it tries."""

from typing import Any

import pytest

from tests.staged.truth import HERE, changed, differences, gets_going, read, world_of


def ideal(truth: Any) -> Any:
    """A true explanation without anything else."""
    codes = [truth["first"][0], *(each.split("|")[0] for each in truth["codes"])]
    named = {**truth["object"], "namespace": ""} if "object" in truth else None
    text = " ".join(["because", *truth.get("text", ())])
    rest: dict[str, Any] = {"text": text, "object": None, "numbers": {}}
    first = {**rest, "code": codes[0], "object": named, "numbers": {**truth.get("numbers", {})}}
    others = [{**rest, "code": code} for code in dict.fromkeys(codes) if code != codes[0]]
    kinds = truth["remedies"].get("kinds", [{"op": "conf"}])
    return {
        "state": "waits",
        "causes": [first, *others],
        "notEvicted": [
            {"code": each.split("|")[0], "pods": pods, "text": "because", "object": None}
            for each, pods in truth.get("notEvicted", {}).items()
        ],
        "funnel": [{**row, "text": ""} for row in truth.get("funnel", [])],
        "remedies": [{"text": "do it", "changes": kinds[:1], "result": "it starts"}],
    }


@pytest.mark.parametrize(
    "name",
    [
        "evict-mixed-refusals",
        "guarantee-of-a-sibling-eats-the-capability",
        "pair-gang-and-taint",
        "taint-on-every-node",
    ],
)
def test_what_is_true_passes(name: str) -> None:
    truth = read(HERE / f"{name}.yaml")["truth"]
    assert differences(truth, ideal(truth)) == []


def cause(code: str) -> Any:
    return {"code": code, "text": "because", "object": None, "numbers": {}}


TOO_WIDE = [{"constraint": "all nodes", "left": 1}, {"constraint": "Taint", "left": 2}]
SPOILT: dict[str, Any] = {
    "another state": lambda reported: reported.update(state="starts"),
    "no causes": lambda reported: reported["causes"].clear(),
    "another first cause": lambda reported: reported["causes"].insert(0, cause("GangShort")),
    "a cause that does not hold": lambda reported: reported["causes"].append(cause("JobAhead")),
    "a code of no list": lambda reported: reported["causes"].append(cause("BadLuck")),
    "a cause without a text": lambda reported: reported["causes"][0].update(text=""),
    "another object": lambda reported: reported["causes"][0]["object"].update(name="prod"),
    "another number": lambda reported: reported["causes"][0]["numbers"].update(used="2"),
    "no remedy": lambda reported: reported["remedies"].clear(),
    "another kind of remedy": lambda reported: reported["remedies"][0].update(
        changes=[{"op": "wait"}]
    ),
    "a funnel that widens": lambda reported: reported.update(funnel=TOO_WIDE),
    "a refusal of no list": lambda reported: reported["notEvicted"].append(
        {"code": "Mercy", "pods": 1}
    ),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_what_is_false_is_found(spoil: Any) -> None:
    truth = read(HERE / "over-capability-at-admission-capacity.yaml")["truth"]
    reported = ideal(truth)
    spoil(reported)
    assert differences(truth, reported)


def test_a_taint_that_is_not_named_is_found() -> None:
    truth = read(HERE / "taint-on-every-node.yaml")["truth"]
    reported = ideal(truth)
    reported["causes"][0]["text"] = "nodes are tainted"
    assert "dedicated=ml:NoSchedule" in differences(truth, reported)[0]


def test_refusals_are_counted() -> None:
    truth = read(HERE / "evict-mixed-refusals.yaml")["truth"]
    reported = ideal(truth)
    reported["notEvicted"][0]["pods"] += 1
    assert "NoLowerPriority" in differences(truth, reported)[0]


TOLERATION = [{"key": "dedicated", "operator": "Exists"}]
CLASS = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 5}
PLAIN = "actions: enqueue, allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]"


def patch(kind: str, name: str, path: str, value: Any) -> Any:
    space = "" if kind == "Queue" else "default"
    step = {"op": "add", "path": path, "value": value}
    return {"op": "patch", "kind": kind, "namespace": space, "name": name, "patch": [step]}


def remove(kind: str, name: str) -> Any:
    return {"op": "remove", "kind": kind, "namespace": "default", "name": name}


HELP: dict[str, Any] = {
    "queue-closed-at-allocation": patch("Queue", "team", "/status/state", "Open"),
    "over-capability-of-the-parent": patch("Queue", "dept", "/spec/capability/cpu", "5"),
    "taint-on-every-node": patch("Pod", "train-0", "/spec/tolerations", TOLERATION),
    "taint-volcano-job": patch(
        "Job", "train", "/spec/tasks/0/template/spec/tolerations", TOLERATION
    ),
    "suspended-job": patch("Job", "train", "/status/state/phase", "Pending"),
    "depends-on-gang-of-all": patch("Job", "flow", "/spec/minAvailable", 1),
    "full-by-pods-of-nobody": {"op": "wait", "pods": ["default/busy-n1"]},
    "action-missing-allocate": {"op": "conf", "text": PLAIN},
    "resource-quota": remove("ResourceQuota", "team-quota"),
    "priority-class-missing": {"op": "add", "object": {**CLASS, "metadata": {"name": "hihg"}}},
}


@pytest.mark.parametrize("name", HELP)
def test_a_change_that_helps_gets_the_job_going(name: str) -> None:
    content = read(HERE / f"{name}.yaml")
    assert gets_going(world_of(changed(content, [HELP[name]])), content["job"])


# the quota of that file counts pods that are not there; time alone corrects its status
@pytest.mark.parametrize("name", sorted({*HELP} - {"suspended-job", "resource-quota"}))
def test_a_change_that_does_not_help_is_found(name: str) -> None:
    content = read(HERE / f"{name}.yaml")
    more = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "more"}}
    better = changed(content, [{"op": "add", "object": more}])
    assert not gets_going(world_of(better), content["job"])


def test_a_change_of_something_that_is_not_there_is_found() -> None:
    content = read(HERE / "queue-missing.yaml")
    with pytest.raises(AssertionError, match="not there"):
        changed(content, [patch("Queue", "resaerch", "/spec/weight", 2)])
