"""Quotas that refuse pods, in the words of an API server."""

from typing import Any

import msgspec
import pytest

from pumice.apiserver.rest import Request, RestApi
from pumice.clock import VirtualClock
from pumice.cluster.embedded.quotas import PodQuotas
from pumice.cluster.embedded.status_upkeep import StatusUpkeep
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import ForbiddenError
from pumice.testing import pod


@pytest.fixture
def cluster() -> Any:
    made = EmbeddedCluster(VirtualClock(0.0))
    made.quotas = PodQuotas(made)
    return made


def quota(cluster: Any, name: str = "q", *, scopes: Any = None, **hard: str) -> None:
    spec = {"hard": {key.replace("__", "."): value for key, value in hard.items()}}
    if scopes:
        spec["scopes"] = scopes
    metadata = {"name": name, "namespace": "default"}
    cluster.create(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}
    )


def used(cluster: Any, name: str = "q") -> Any:
    return cluster.get("ResourceQuota", "default", name)["status"]["used"]


def refusal(cluster: Any, given: Any) -> str:
    with pytest.raises(ForbiddenError) as caught:
        cluster.create(given)
    assert cluster.peek("Pod", "default", given["metadata"]["name"]) is None
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
    return caught.value.problem


def asking(name: str, *containers: Any, **spec: Any) -> Any:
    listed = [{"name": f"c{i}", "resources": each} for i, each in enumerate(containers)]
    return pod(name, spec={"containers": listed, **spec})


def test_a_pod_over_a_quota_is_refused(cluster: Any) -> None:
    quota(cluster, cpu="2")
    cluster.create(pod("a", cpu=1))
    cluster.create(pod("b", cpu=1))
    assert refusal(cluster, pod("x", cpu=1)) == (
        'pods "x" is forbidden: exceeded quota: q, requested: cpu=1, used: cpu=2, limited: cpu=2'
    )
    assert used(cluster) == {"cpu": "2"}


def test_a_refusal_lists_only_what_is_exceeded(cluster: Any) -> None:
    quota(cluster, cpu="2", memory="1Gi", pods="5", requests__cpu="1500m")
    cluster.create(asking("a", {"requests": {"cpu": "1", "memory": "512Mi"}}))
    assert refusal(cluster, asking("x", {"requests": {"cpu": "600m", "memory": "1Gi"}})) == (
        'pods "x" is forbidden: exceeded quota: q, requested: memory=1Gi,requests.cpu=600m, '
        "used: memory=512Mi,requests.cpu=1, limited: memory=1Gi,requests.cpu=1500m"
    )


def test_every_container_must_state_what_a_quota_counts(cluster: Any) -> None:
    quota(cluster, limits__cpu="4", limits__memory="4Gi", pods="9")
    given = asking("x", {"limits": {"cpu": "1"}}, {}, initContainers=[{"name": "b"}])
    assert refusal(cluster, given) == (
        'pods "x" is forbidden: failed quota: q: must specify limits.cpu for: b,c1; '
        "limits.memory for: b,c0,c1"
    )
    cluster.create(asking("whole", {}, resources={"limits": {"cpu": "1", "memory": "1Gi"}}))
    assert used(cluster) == {"limits.cpu": "1", "limits.memory": "1Gi", "pods": "1"}


def limit_range(cluster: Any, name: str, **item: Any) -> None:
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"limits": [{"type": "Pod", "max": {"cpu": "9"}}, item]},
        }
    )


@pytest.mark.parametrize(
    ("item", "stated", "limit", "request_"),
    [
        ({"default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}, {}, "2", "1"),
        ({"default": {"cpu": "2"}}, {}, "2", "2"),
        ({"defaultRequest": {"cpu": "1"}}, {}, None, "1"),
        ({"max": {"cpu": "4"}, "min": {"cpu": "1"}}, {}, "4", "4"),
        ({"min": {"cpu": "1"}}, {}, None, "1"),
        ({"default": {"cpu": "2"}, "max": {"cpu": "4"}}, {}, "2", "2"),
        ({"defaultRequest": {"cpu": "1"}}, {"limits": {"cpu": "3"}}, "3", "3"),
        ({"default": {"cpu": "2"}}, {"requests": {"cpu": "1"}}, "2", "1"),
        ({"type": "Pod", "default": {"cpu": "2"}}, {}, None, None),
    ],
)
def test_containers_get_the_amounts_of_limit_ranges(
    cluster: Any, item: Any, stated: Any, limit: Any, request_: Any
) -> None:
    limit_range(cluster, "defaults", **{"type": "Container", **item})
    made = cluster.create(asking("x", stated, initContainers=[{"name": "i", "resources": stated}]))
    for one in (*made["spec"]["containers"], *made["spec"]["initContainers"]):
        found = one.get("resources") or {}
        assert (found.get("limits") or {}).get("cpu") == limit
        assert (found.get("requests") or {}).get("cpu") == request_


def test_quotas_count_the_amounts_of_limit_ranges(cluster: Any) -> None:
    limit_range(cluster, "b", type="Container", default={"cpu": "9", "memory": "1Gi"})
    limit_range(cluster, "a", type="Container", defaultRequest={"cpu": "1"})
    quota(cluster, requests__cpu="1")
    cluster.create(asking("a", {}))
    assert "requested: requests.cpu=1, used: requests.cpu=1" in refusal(cluster, asking("x", {}))


def test_devices_need_not_be_stated(cluster: Any) -> None:
    quota(cluster, **{"requests.nvidia.com/gpu": "1"})
    cluster.create(pod("plain", cpu=1))
    gpu = {"limits": {"nvidia.com/gpu": "1"}}
    cluster.create(asking("a", gpu))
    assert "requests.nvidia.com/gpu=1, limited" in refusal(cluster, asking("x", gpu))


def test_a_quota_limits_pods_of_its_scopes_and_its_namespace(cluster: Any) -> None:
    quota(cluster, pods="0", scopes=["BestEffort"])
    cluster.create(pod("asks", cpu=1))
    cluster.create(pod("elsewhere", namespace="other"))
    assert "exceeded quota: q, requested: pods=1, used: pods=0" in refusal(cluster, pod("x"))


ELSEWHERE = [
    {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"namespaces": ["a"]}]}},
    {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"namespaceSelector": {}}}
            ]
        }
    },
]
AT_HOME: list[Any] = [
    None,
    {"nodeAffinity": {}},
    {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}},
]


@pytest.mark.parametrize(
    ("affinity", "limited"), [(one, one in ELSEWHERE) for one in (*ELSEWHERE, *AT_HOME)]
)
def test_a_quota_may_limit_pods_that_depend_on_other_namespaces(
    cluster: Any, affinity: Any, *, limited: bool
) -> None:
    quota(cluster, pods="0", scopes=["CrossNamespacePodAffinity"])
    given = asking("x", {}, affinity=affinity)
    if limited:
        assert "exceeded quota: q," in refusal(cluster, given)
    else:
        cluster.create(given)


def test_the_first_quota_by_name_refuses(cluster: Any) -> None:
    quota(cluster, "z", pods="0")
    quota(cluster, "a", pods="0")
    assert "exceeded quota: a," in refusal(cluster, pod("x"))
    quota(cluster, "zz", cpu="1")
    assert "failed quota: zz: must specify cpu for: " in refusal(cluster, pod("x"))


def test_pods_that_were_there_before_a_quota_count(cluster: Any) -> None:
    cluster.create(pod("a", cpu=1))
    quota(cluster, cpu="1")
    assert "used: cpu=1" in refusal(cluster, pod("x", cpu=1))
    cluster.patch("ResourceQuota", "default", "q", {"spec": {"hard": {"cpu": "2"}}})
    cluster.create(pod("x", cpu=1))
    assert used(cluster) == {"cpu": "2"}


def test_room_returns_when_a_pod_is_deleted(cluster: Any) -> None:
    quota(cluster, pods="1")
    cluster.create(pod("a"))
    books = StatusUpkeep(cluster)
    assert books.sync() == 0
    refusal(cluster, pod("x"))
    cluster.delete("Pod", "default", "a", grace_s=0)
    books.sync()
    cluster.create(pod("x"))
    assert used(cluster) == {"pods": "1"}


def test_admission_and_controller_count_alike(cluster: Any) -> None:
    hard = {"cpu": "9", "memory": "9Gi", "pods": "9", "count/pods": "9", "services": "2"}
    quota(cluster, **hard, limits__memory="9Gi", **{"requests.nvidia.com/gpu": "4"})
    for name in "abc":
        limits = {"cpu": "700m", "memory": "1.5Gi", "nvidia.com/gpu": "1"}
        cluster.create(asking(name, {"limits": limits}))
    counted = used(cluster)
    assert StatusUpkeep(cluster).sync() == 0
    assert counted["cpu"] == "2100m"
    assert counted["limits.memory"] == "4608Mi"


def test_a_dry_run_is_refused_alike_and_counts_nothing(cluster: Any) -> None:
    quota(cluster, pods="1")
    api = RestApi(cluster, lambda: None)

    def post(name: str, **query: str) -> Any:
        body = msgspec.json.encode(pod(name))
        path = "/api/v1/namespaces/default/pods"
        kind = "application/json"
        return api.answer(Request("POST", path, query, kind, kind, body))

    assert post("a", dryRun="All").code == 201
    assert post("a").code == 201
    for query in ({"dryRun": "All"}, {}):
        answer = post("x", **query)
        assert answer.code == 403
        assert answer.content["reason"] == "Forbidden"
        assert answer.content["message"].startswith('pods "x" is forbidden: exceeded quota: q,')
    assert used(cluster) == {"pods": "1"}
