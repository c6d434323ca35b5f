"""Admission in front of the embedded cluster, and the messages to kubectl."""

import http.client
import json
from typing import Any

import pytest

from pumice.apiserver.served_cluster import ServedCluster
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import DeniedError, RejectedError
from pumice.webhooks.embedded import EmbeddedAdmission

QUEUES = "Queue.scheduling.volcano.sh"
JOBS = "Job.batch.volcano.sh"


def queue(name: Any, **spec: Any) -> Any:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
            "metadata": {"name": name}, "spec": {"weight": 1, **spec}}  # fmt: skip


def job(name: str = "j", **spec: Any) -> Any:
    task = {"name": "w", "replicas": 2, "template": {"spec": {"containers": [
        {"name": "c", "image": "i"},
    ]}}}  # fmt: skip
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"queue": "default", "tasks": [task], **spec}}  # fmt: skip


@pytest.fixture
def cluster() -> Any:
    made = EmbeddedCluster()
    for name in ("root", "default"):
        made.create(queue(name))
        made.merge_status(QUEUES, "", name, {"state": "Open"})
    made.admission = EmbeddedAdmission(made)
    return made


def test_a_new_job_is_stored_with_the_defaults_of_the_webhook(cluster: Any) -> None:
    spec = cluster.create(job())["spec"]
    assert (spec["schedulerName"], spec["minAvailable"], spec["maxRetry"]) == ("volcano", 2, 3)
    assert spec["tasks"][0]["minAvailable"] == 2


def test_a_job_that_a_webhook_denies_is_not_stored(cluster: Any) -> None:
    with pytest.raises(DeniedError) as caught:
        cluster.create(job(queue="nowhere"))
    assert caught.value.problem == (
        'admission webhook "validatejob.volcano.sh" denied the request: unable to find job queue: '
        'queue.scheduling.volcano.sh "nowhere" not found;'
    )
    assert cluster.list(JOBS)[0] == []


def test_a_job_that_does_not_fit_its_schema_is_rejected(cluster: Any) -> None:
    with pytest.raises(RejectedError) as caught:
        cluster.create(job(minSuccess=0))
    assert (caught.value.code, caught.value.problem) == (
        422,
        (
            "spec.minSuccess: Invalid value: 0: "
            "spec.minSuccess in body should be greater than or equal to 1"
        ),
    )


def test_a_status_of_another_type_is_rejected(cluster: Any) -> None:
    cluster.create(job())
    stored = cluster.get(JOBS, "default", "j")
    with pytest.raises(RejectedError):
        cluster.update_status({**stored, "status": {"running": "many"}})
    assert cluster.update_status({**stored, "status": {"running": 1}})["status"]["running"] == 1


def test_an_update_may_scale_but_not_change_the_queue(cluster: Any) -> None:
    made = cluster.create(job())
    made["spec"]["tasks"][0]["replicas"] = 3
    made = cluster.update(made)
    with pytest.raises(DeniedError, match="may not change fields other than"):
        cluster.update({**made, "spec": {**made["spec"], "queue": "root"}})


def test_a_file_that_leaves_defaults_out_can_be_applied_twice(cluster: Any) -> None:
    cluster.create(job())
    again = cluster.patch(JOBS, "default", "j", {"spec": job()["spec"]})
    assert again["spec"]["tasks"][0]["maxRetry"] == 3


def test_a_queue_that_was_just_made_takes_jobs_although_nobody_opened_it_yet(cluster: Any) -> None:
    cluster.create(queue("fresh"))
    assert cluster.create(job(queue="fresh"))["spec"]["queue"] == "fresh"
    cluster.merge_status(QUEUES, "", "fresh", {"state": "Closed"})
    with pytest.raises(DeniedError, match="status is `Closed`"):
        cluster.create(job("k", queue="fresh"))


def test_queues_are_protected(cluster: Any) -> None:
    with pytest.raises(DeniedError, match="`default` queue can not be deleted"):
        cluster.delete(QUEUES, "", "default")
    cluster.create(queue("gone"))
    cluster.delete(QUEUES, "", "gone")
    assert cluster.peek(QUEUES, "", "gone") is None


def test_other_kinds_are_let_through(cluster: Any) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
        "data": {"b": "1"},
    }
    assert cluster.create(manifest)["data"] == {"b": "1"}


def test_a_client_is_reported_in_volcanos_words() -> None:
    served = ServedCluster()
    served.start()
    try:
        connection = http.client.HTTPConnection(served.url.removeprefix("http://"), timeout=30)
        path = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
        answers = []
        for bad in (job(queue="nowhere"), job(minSuccess=0)):
            connection.request("POST", path, json.dumps(bad))
            answer = json.loads(connection.getresponse().read())
            answers.append((answer["code"], answer.get("reason"), answer["message"]))
        connection.close()
    finally:
        served.stop()
    assert answers == [
        (
            400,
            None,
            (
                'admission webhook "validatejob.volcano.sh" denied the request: unable to find job '
                'queue: queue.scheduling.volcano.sh "nowhere" not found;'
            ),
        ),
        (
            422,
            "Invalid",
            (
                'Job.batch.volcano.sh "j" is invalid: spec.minSuccess: Invalid value: 0: '
                "spec.minSuccess in body should be greater than or equal to 1"
            ),
        ),
    ]


def pod(name: str, *, annotations: Any = None, labels: Any = None, **spec: Any) -> Any:
    metadata = {"name": name, "annotations": annotations or {}, "labels": labels or {}}
    containers = [{"name": "c", "image": "i"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
            "spec": {"containers": containers, **spec}}  # fmt: skip


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (pod("Upper"), "lowercase RFC 1123"),
        (pod("b", labels={"a b": "c"}), "name part must consist"),
        (pod("b", labels={"a": 1}), "cannot unmarshal number"),
        (pod("b", annotations={"kubernetes.io/config.mirror": "x"}), "must set spec.nodeName"),
        (pod("b", restartPolicy="Sometimes"), "restartPolicy"),
        (pod("b", hostNetwork=1), "cannot unmarshal number"),
    ],
)
def test_a_bad_pod_is_refused_in_the_same_words_after_a_good_one(
    cluster: Any, bad: Any, words: str
) -> None:
    with pytest.raises(RejectedError) as alone:
        cluster.create(bad)
    cluster.create(pod("a"))
    with pytest.raises(RejectedError) as after:
        cluster.create(bad)
    assert words in alone.value.problem
    assert after.value.problem == alone.value.problem


def test_what_a_changed_pod_may_hold_does_not_count_for_new_ones(cluster: Any) -> None:
    cluster.create(pod("a"))
    cluster.patch("Pod", "default", "a", {"spec": {"tolerations": [{"operator": "Perhaps"}]}})
    stored = cluster.get("Pod", "default", "a")
    with pytest.raises(RejectedError):
        cluster.create({**stored, "metadata": {"name": "b"}})


@pytest.mark.parametrize("spec", [{}, {"spec": None}])
@pytest.mark.parametrize(
    "head",
    [
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"},
        {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"},
    ],
)
def test_an_object_without_a_spec_is_refused_in_clear_words(
    cluster: Any, head: Any, spec: Any
) -> None:
    with pytest.raises(RejectedError, match="spec: Required value") as refused:
        cluster.create({**head, "metadata": {"name": "a"}, **spec})
    assert refused.value.code == 422


def test_a_job_cannot_lose_its_spec(cluster: Any) -> None:
    made = cluster.create(job("a"))
    with pytest.raises(RejectedError, match="spec: Required value"):
        cluster.patch("Job.batch.volcano.sh", "default", "a", {"spec": None})
    del made["spec"]
    with pytest.raises(RejectedError, match="spec: Required value"):
        cluster.update(made)


@pytest.mark.parametrize("annotations", [["a"], "x", 5])
def test_annotations_of_another_type_are_refused(cluster: Any, annotations: Any) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod",
           "metadata": {"name": "p", "namespace": "default", "annotations": annotations},
           "spec": {"containers": [{"name": "c", "image": "i"}]}}  # fmt: skip
    with pytest.raises(DeniedError, match="annotations"):
        cluster.create(pod)


def group(name: str, **spec: Any) -> Any:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"minMember": 1, "minResources": {"cpu": "1"}, **spec}}  # fmt: skip


def test_a_known_content_is_still_refused_for_its_name_its_queue_and_its_faults(
    cluster: Any,
) -> None:
    cluster.create(group("a"))
    with pytest.raises(RejectedError, match=r"metadata\.name"):
        cluster.create(group("A_B"))
    cluster.merge_status(QUEUES, "", "default", {"state": "Closed"})
    with pytest.raises(DeniedError, match="status is `Closed`"):
        cluster.create(group("b"))
    for _ in range(2):
        with pytest.raises(RejectedError, match="minMember"):
            cluster.create(group("b", minMember="one"))


def test_a_change_is_judged_by_what_was_there_before(cluster: Any) -> None:
    """Lists whose items have keys are only checked where they changed."""
    cluster.admission = None
    cluster.create(group("a", minMember=-1))
    cluster.admission = EmbeddedAdmission(cluster)
    place = ("PodGroup.scheduling.volcano.sh", "default", "a")
    cluster.patch(*place, {"spec": {"queue": "root"}})
    with pytest.raises(RejectedError):
        cluster.create(group("b", minMember=-1, queue="root"))
