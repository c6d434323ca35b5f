"""The defaults of new objects, kind by kind."""

from typing import Any

import pytest

from pumice.cluster.embedded.defaults import assign_cluster_ip, fill_in

JOB = "Job.batch.volcano.sh"
CRON_JOB = "CronJob.batch.volcano.sh"
POD_GROUP = "PodGroup.scheduling.volcano.sh"
QUEUE = "Queue.scheduling.volcano.sh"


def filled(kind: str, has_status: bool = True, **parts: Any) -> Any:
    manifest = {"metadata": {"name": "x"}, **parts}
    fill_in(kind, manifest, has_status=has_status)
    return manifest


POD = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
}


@pytest.mark.parametrize("spec", [None, {}, {"restartPolicy": "Never"}])
def test_a_pod_waits_and_has_every_default_that_it_does_not_state(spec: Any) -> None:
    made = filled("Pod", spec=spec, status={"phase": "Running"})
    assert made["spec"] == {**POD, **(spec or {})}
    assert made["status"] == {"phase": "Pending"}


def test_a_pod_with_a_gate_shows_it() -> None:
    (condition,) = filled("Pod", spec={"schedulingGates": [{"name": "g"}]})["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
    assert condition["reason"] == "SchedulingGated"
    assert "conditions" not in filled("Pod", spec={"schedulingGates": []})["status"]


def test_limits_without_requests_are_requested() -> None:
    container = {"name": "c", "resources": {"limits": {"cpu": "1"}}}
    (made,) = filled("Pod", spec={"containers": [container]})["spec"]["containers"]
    assert made["resources"]["requests"] == {"cpu": "1"}


@pytest.mark.parametrize(
    ("kind", "spec", "wanted"),
    [
        (JOB, None, {"queue": "default", "maxRetry": 3}),
        (JOB, {"queue": "q", "maxRetry": 0}, {"queue": "q", "maxRetry": 0}),
        (
            JOB,
            {
                "queue": "q",
                "maxRetry": 0,
                "networkTopology": {},
                "tasks": [
                    {"networkTopology": {"mode": "soft"}, "partitionPolicy": {}},
                    {"networkTopology": {}, "partitionPolicy": {"minPartitions": 1}},
                    {"networkTopology": None, "partitionPolicy": None},
                ],
            },
            {
                "queue": "q",
                "maxRetry": 0,
                "networkTopology": {"mode": "hard"},
                "tasks": [
                    {"networkTopology": {"mode": "soft"}, "partitionPolicy": {"minPartitions": 0}},
                    {"networkTopology": {"mode": "hard"}, "partitionPolicy": {"minPartitions": 1}},
                    {"networkTopology": None, "partitionPolicy": None},
                ],
            },
        ),
        (
            CRON_JOB,
            {"jobTemplate": {"spec": {}}},
            {
                "concurrencyPolicy": "Allow",
                "suspend": False,
                "successfulJobsHistoryLimit": 3,
                "failedJobsHistoryLimit": 1,
                "jobTemplate": {"spec": {"queue": "default", "maxRetry": 3}},
            },
        ),
        (POD_GROUP, None, {"queue": "default"}),
        (
            POD_GROUP,
            {"queue": "q", "subGroupPolicy": [{"subGroupSize": 2}, {"minSubGroups": 3}]},
            {
                "queue": "q",
                "subGroupPolicy": [
                    {"subGroupSize": 2, "minSubGroups": 0},
                    {"subGroupSize": 1, "minSubGroups": 3},
                ],
            },
        ),
        (QUEUE, None, {"weight": 1, "dequeueStrategy": "traverse"}),
        (QUEUE, {"weight": 4}, {"weight": 4, "dequeueStrategy": "traverse"}),
        (
            "Deployment.apps",
            None,
            {
                "replicas": 1,
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
                },
            },
        ),
        ("ReplicaSet.apps", {"replicas": 0}, {"replicas": 0}),
        (
            "StatefulSet.apps",
            {"updateStrategy": {"type": "OnDelete"}},
            {
                "replicas": 1,
                "revisionHistoryLimit": 10,
                "podManagementPolicy": "OrderedReady",
                "updateStrategy": {"type": "OnDelete"},
            },
        ),
        ("ConfigMap", {"a": 1}, {"a": 1}),
    ],
)
def test_a_spec_has_what_it_states_and_the_rest_by_default(
    kind: str, spec: Any, wanted: Any
) -> None:
    assert filled(kind, spec=spec)["spec"] == wanted


def test_a_namespace_is_active_and_labelled_with_its_name() -> None:
    made = filled("Namespace")
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}
    assert made["status"] == {"phase": "Active"}
    given = filled("Namespace", has_status=False, status={"phase": "Terminating"})
    assert given["status"] == {"phase": "Terminating"}


@pytest.mark.parametrize(
    ("kind", "has_status", "kept"),
    [
        ("Node", True, True),
        ("PersistentVolume", True, True),
        (QUEUE, True, False),
        (QUEUE, False, True),
        ("ConfigMap", False, True),
    ],
)
def test_a_first_status_counts_where_it_is_no_subresource(
    kind: str, has_status: bool, kept: bool
) -> None:
    assert ("status" in filled(kind, has_status, status={"a": 1})) == kept


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("Job.batch", {}),
        ("Deployment.apps", {}),
        ("ReplicaSet.apps", {"replicas": 0}),
        ("ResourceQuota", {}),
        (JOB, None),
    ],
)
def test_kinds_of_kubernetes_have_a_status_from_the_start(kind: str, status: Any) -> None:
    assert filled(kind, True, status={"a": 1}, spec={}).get("status") == status


CLUSTER_IP = {
    "type": "ClusterIP",
    "sessionAffinity": "None",
    "internalTrafficPolicy": "Cluster",
    "ipFamilyPolicy": "SingleStack",
    "ipFamilies": ["IPv4"],
}


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (None, CLUSTER_IP),
        (
            {"ports": [{"port": 80}, {"port": 81, "targetPort": "x", "protocol": "UDP"}, {}]},
            {
                **CLUSTER_IP,
                "ports": [
                    {"port": 80, "targetPort": 80, "protocol": "TCP"},
                    {"port": 81, "targetPort": "x", "protocol": "UDP"},
                    {"protocol": "TCP"},
                ],
            },
        ),
        (
            {"type": "ExternalName", "ports": [{"port": 80}]},
            {
                "type": "ExternalName",
                "sessionAffinity": "None",
                "ports": [{"port": 80, "protocol": "TCP"}],
            },
        ),
    ],
)
def test_a_service_is_one_of_the_cluster_unless_it_is_external(spec: Any, wanted: Any) -> None:
    made = filled("Service", spec=spec)
    assert made["spec"] == wanted
    assert made["status"] == {"loadBalancer": {}}


@pytest.mark.parametrize(
    ("number", "address"),
    [(0, "10.96.0.1"), (253, "10.96.0.254"), (254, "10.96.1.1"), (254 * 256, "10.96.0.1")],
)
def test_a_service_gets_an_address_of_its_own(number: int, address: str) -> None:
    service: Any = {"spec": {"type": "ClusterIP", "ports": [{}]}}
    assign_cluster_ip(service, number)
    assert service["spec"] == {
        "type": "ClusterIP",
        "ports": [{}],
        "clusterIP": address,
        "clusterIPs": [address],
    }


def test_an_external_service_and_one_with_an_address_get_none() -> None:
    service: Any = {"spec": {"type": "ExternalName"}}
    assign_cluster_ip(service, 3)
    assert service["spec"] == {"type": "ExternalName"}
    service = {"spec": {"type": "ClusterIP", "clusterIP": "None"}}
    assign_cluster_ip(service, 3)
    assert service["spec"]["clusterIPs"] == ["None"]


@pytest.mark.parametrize("sort", ["NodePort", "LoadBalancer"])
def test_ports_of_nodes_are_assigned_where_they_are_asked_for(sort: str) -> None:
    service: Any = {"spec": {"type": sort, "ports": [{}, {"nodePort": 5}, {}]}}
    assign_cluster_ip(service, 3)
    assert [port["nodePort"] for port in service["spec"]["ports"]] == [30021, 5, 30023]
    last: Any = {"spec": {"type": sort, "ports": [{}, {}]}}
    assign_cluster_ip(last, 1977)  # 7 * 1977 % 2768 == 2767, the last of the range
    assert [port["nodePort"] for port in last["spec"]["ports"]] == [32767, 30000]
