"""Builders write their arguments and nothing else."""

from pumice.testing import node, pdb, pod, pod_group, priority_class, queue


def test_a_pod_names_its_group_and_role_as_volcano_does() -> None:
    built = pod("p1", cpu=1, memory="1Gi", group="pg1", role="worker")
    assert built["metadata"]["annotations"] == {
        "scheduling.k8s.io/group-name": "pg1",
        "volcano.sh/task-spec": "worker",
    }
    assert built["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "1", "memory": "1Gi"}
    }


def test_a_pod_on_a_node_runs_unless_a_phase_is_given() -> None:
    assert pod("p1", node="n1")["status"] == {"phase": "Running"}
    assert pod("p1", node="n1", phase="Pending")["status"] == {"phase": "Pending"}
    assert pod("p1")["status"] == {"phase": "Pending"}
    assert "nodeName" not in pod("p1")["spec"]


def test_a_pod_without_requests_is_best_effort() -> None:
    assert pod("p1")["spec"]["containers"][0]["resources"] == {}


def test_priority_zero_is_written_and_absent_priority_is_not() -> None:
    assert pod("p1", priority=0)["spec"]["priority"] == 0
    assert "priority" not in pod("p1")["spec"]


def test_preemptable_false_is_an_annotation() -> None:
    built = pod("p1", preemptable=False)
    assert built["metadata"]["annotations"] == {"volcano.sh/preemptable": "false"}


def test_extra_spec_is_laid_over_the_built_one() -> None:
    gates = [{"name": "wait"}]
    assert pod("p1", spec={"schedulingGates": gates})["spec"]["schedulingGates"] == gates


def test_a_node_has_capacity_labels_and_taints() -> None:
    taint = {"key": "gpu", "effect": "NoSchedule"}
    built = node("n1", cpu=8, labels={"zone": "a"}, taints=[taint], resources={"nvidia.com/gpu": 2})
    assert built["status"]["capacity"] == built["status"]["allocatable"]
    assert built["status"]["allocatable"] == {
        "cpu": "8",
        "memory": "8Gi",
        "pods": "110",
        "nvidia.com/gpu": "2",
    }
    assert built["metadata"]["labels"] == {"kubernetes.io/hostname": "n1", "zone": "a"}
    assert built["spec"] == {"taints": [taint]}


def test_a_pod_group_states_its_minimum() -> None:
    built = pod_group("pg1", min_member=3, queue="q1", min_resources={"cpu": 3})
    assert built["spec"] == {"minMember": 3, "queue": "q1", "minResources": {"cpu": "3"}}
    assert built["status"] == {"phase": "Pending"}


def test_a_queue_is_open_and_may_guarantee() -> None:
    built = queue("q1", weight=2, guarantee={"cpu": 1}, reclaimable=False)
    assert built["spec"] == {
        "weight": 2,
        "guarantee": {"resource": {"cpu": "1"}},
        "reclaimable": False,
    }
    assert built["status"] == {"state": "Open"}


def test_priority_classes_and_budgets() -> None:
    assert priority_class("high", value=10, global_default=True)["globalDefault"] is True
    budget = pdb("b", match_labels={"app": "x"}, disruptions_allowed=2)
    assert budget["status"] == {"disruptionsAllowed": 2}
    assert budget["spec"] == {"selector": {"matchLabels": {"app": "x"}}}
