"""A cluster looked over: each thing that can be wrong is named, with what to do."""

import base64
import datetime as dt
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pumice.api.kinds import BUILT_IN
from pumice.api.permissions import CONTROLLERS, SCHEDULER
from pumice.api.times import rfc3339
from pumice.apiserver.discovery import VERSION
from pumice.diagnosis.doctor import examine_cluster
from pumice.errors import (
    ClusterError,
    NotFoundError,
    RejectedError,
    ServiceError,
    UnauthorizedError,
    UnavailableError,
)
from pumice.testing import node, pod, pod_group, queue

NOW = 1_800_000_000.0
CONTAINER = {"name": "main", "image": "busybox:1"}
CONF = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n'


def certificate(days: float) -> str:
    """Make an authority that ends so many days from now."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    end = dt.datetime.fromtimestamp(NOW, dt.UTC) + dt.timedelta(days=days)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(end - dt.timedelta(days=400))
        .not_valid_after(end)
        .sign(key, hashes.SHA256())
    )
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415

    return base64.b64encode(made.public_bytes(Encoding.PEM)).decode()


def webhook(bundle: str) -> Any:
    service = {"namespace": "volcano-system", "name": "volcano-admission-service"}
    rules = [{"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"]}]
    client = {"service": service, "caBundle": bundle}
    return {"metadata": {"name": "jobs"}, "webhooks": [{"clientConfig": client, "rules": rules}]}


def crd(kind: Any, version: str = "") -> Any:
    versions = [{"name": version or kind.version, "served": True}]
    return {"metadata": {"name": f"{kind.plural}.{kind.group}"}, "spec": {"versions": versions}}


def lease(age: float = 2.0, holder: str = "one") -> Any:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": rfc3339(NOW - age)}
    return {"spec": spec}


VOLCANO = [kind for kind in BUILT_IN if ".volcano.sh" in kind.group]


def _namespace(manifest: Any) -> str:
    return str(manifest["metadata"].get("namespace") or "")


class Api:
    """The part of a real API server that the doctor uses."""

    def __init__(self) -> None:
        self.objects: dict[str, list[Any]] = {
            "CustomResourceDefinition.apiextensions.k8s.io": [crd(kind) for kind in VOLCANO],
            "ValidatingWebhookConfiguration.admissionregistration.k8s.io": [
                webhook(certificate(300))
            ],
            "MutatingWebhookConfiguration.admissionregistration.k8s.io": [],
            "Queue.scheduling.volcano.sh": [queue("root"), queue("default")],
            "PodGroup.scheduling.volcano.sh": [pod_group("g", queue="default", phase="Pending")],
            "Pod": [pod("g-0", group="g")],
            "Node": [node("n")],
        }
        self.objects["Node"][0]["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        conf = {"data": {"volcano-scheduler.conf": CONF}}
        conf["metadata"] = {"namespace": "volcano-system", "name": "volcano-scheduler-configmap"}
        self.single: dict[tuple[str, str], Any] = {
            ("Lease.coordination.k8s.io", "volcano"): lease(),
            ("Lease.coordination.k8s.io", "vc-controller-manager"): lease(),
            ("Service", "volcano-admission-service"): {},
            ("ConfigMap", "volcano-scheduler-configmap"): conf,
        }
        self.server = "https://api.test:6443"
        self.version: Any = {"gitVersion": "v1.34.1"}
        self.refused: set[tuple[str, str, str]] = set()
        self.ready: dict[str, str] = {}
        self.admission: ClusterError | None = None
        self.errors: dict[str, ClusterError] = {}

    def now(self) -> float:
        return NOW

    def read_path(self, target: str, **_: Any) -> Any:
        assert target == "/version"
        if isinstance(self.version, ClusterError):
            raise self.version
        return self.version

    def list(self, kind: str, namespace: str = "") -> Any:
        if kind in self.errors:
            raise self.errors[kind]
        found = self.objects.get(kind, [])
        return [one for one in found if not namespace or _namespace(one) == namespace], "1"

    def read_text(self, target: str, **_: Any) -> str:
        raise UnavailableError(problem=self.ready[target])

    def try_create(self, manifest: Any) -> Any:
        if self.admission is not None:
            raise self.admission
        return manifest

    def get(self, kind: str, namespace: str, name: str) -> Any:
        if kind in self.errors:
            raise self.errors[kind]
        if (kind, name) not in self.single:
            raise NotFoundError(kind, namespace, name)
        return self.single[kind, name]

    def create(self, manifest: Any) -> Any:
        about = manifest["spec"]["resourceAttributes"]
        subresource = f"/{about['subresource']}" if about["subresource"] else ""
        call = (about["verb"], about["group"], about["resource"] + subresource)
        return {"status": {"allowed": call not in self.refused}}


@pytest.fixture
def api() -> Api:
    return Api()


def found(api: Any, check: str) -> Any:
    return [each for each in examine_cluster(api) if each.check.startswith(check)]


def test_nothing_is_wrong_with_a_cluster_that_has_everything(api: Any) -> None:
    assert {each.state for each in examine_cluster(api)} == {"ok"}


def test_missing_and_stale_kinds_are_named(api: Any) -> None:
    kinds = api.objects["CustomResourceDefinition.apiextensions.k8s.io"]
    kinds[:] = [crd(VOLCANO[0], "v9"), *kinds[2:]]
    stale, gone = VOLCANO[0], VOLCANO[1]
    texts = " ".join(each.text for each in found(api, "CRDs"))
    assert f"{gone.plural}.{gone.group}" in texts
    assert f"other versions only: {stale.plural}.{stale.group}" in texts


@pytest.mark.parametrize(
    ("held", "state", "text"),
    [
        (lease(age=60), "wrong", "lost the lease after 15 s"),
        (lease(age=-90), "warning", "in the future"),
        (lease(holder=""), "wrong", "no process holds"),
        (None, "wrong", "no process has ever held"),
    ],
)
def test_a_lease_that_nobody_keeps_is_wrong(api: Any, held: Any, state: str, text: str) -> None:
    key = ("Lease.coordination.k8s.io", "volcano")
    api.single.pop(key)
    if held is not None:
        api.single[key] = held
    [one] = found(api, "scheduler: leader")
    assert one.state == state
    assert text in one.text
    assert one.next_step


@pytest.mark.parametrize("component", [SCHEDULER, CONTROLLERS])
def test_every_permission_of_the_roles_is_asked_for(api: Any, component: Any) -> None:
    for grant in component.everywhere + component.at_home:
        for call in grant.calls():
            api.refused = {call}
            bad = found(api, f"permissions of volcano-{component.name}")
            assert [one.state for one in bad] == ["warning" if grant.unseen else "wrong"], call
            assert f"{call[0]} {call[2]}" in bad[0].text


def ours(name: str, *, ready: bool, **state: Any) -> Any:
    one = pod(name, namespace="volcano-system", labels={"app": "volcano-scheduler"})
    one["status"] = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        "containerStatuses": [{"state": state or {"running": {}}}],
    }
    return one


def test_a_process_that_is_not_ready_is_wrong_for_the_reason_it_gives(api: Any) -> None:
    api.objects["Pod"].append(ours("s-1", ready=True))
    assert [each.state for each in found(api, "scheduler: ready")] == ["ok"]
    api.objects["Pod"].append(ours("s-2", ready=False))
    path = "/api/v1/namespaces/volcano-system/pods/s-2:11251/proxy/readyz"
    api.ready[path] = "not ready: waits for ResourceQuota"
    [one] = found(api, "scheduler: ready")
    assert (one.state, one.text) == ("wrong", "s-2 is not ready: waits for ResourceQuota")
    assert "s-2" in one.next_step


def test_a_process_that_does_not_start_is_named_with_its_state(api: Any) -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    api.objects["Pod"].append(ours("s", ready=False, waiting=waiting))
    [one] = found(api, "scheduler: ready")
    assert one.text == "s is not ready: ImagePullBackOff no such image"


def test_webhooks_that_do_not_answer_are_wrong(api: Any) -> None:
    problem = 'failed calling webhook "validatequeue.volcano.sh": connection refused'
    api.admission = UnavailableError(problem=problem)
    [one] = found(api, "webhooks: answer")
    assert (one.state, problem in one.text) == ("wrong", True)
    api.admission = RejectedError(problem="queues is forbidden: User me cannot create")
    assert [each.state for each in found(api, "webhooks: answer")] == ["unknown"]
    api.admission = RejectedError(problem="admission webhook denied the request: weight")
    assert [each.state for each in found(api, "webhooks: answer")] == ["ok"]


def test_queues_that_the_scheduler_never_created_are_wrong(api: Any) -> None:
    api.objects["Queue.scheduling.volcano.sh"] = []
    [one] = found(api, "queues")
    assert (one.state, one.text) == (
        "wrong",
        "the scheduler has not created root and default yet",
    )


@pytest.mark.parametrize(
    ("bundle", "state", "text"),
    [
        (certificate(-3), "wrong", "expired 3 days ago"),
        (certificate(2), "warning", "expires in 2.0 days"),
        ("", "wrong", "no caBundle"),
        (base64.b64encode(b"junk").decode(), "wrong", "holds no certificate"),
    ],
)
def test_a_certificate_that_ends_is_named(api: Any, bundle: str, state: str, text: str) -> None:
    kind = "ValidatingWebhookConfiguration.admissionregistration.k8s.io"
    api.objects[kind] = [webhook(bundle)]
    [one] = found(api, "webhook jobs")
    assert (one.state, text in one.text) == (state, True)


def test_a_webhook_without_its_service_is_wrong(api: Any) -> None:
    del api.single["Service", "volcano-admission-service"]
    [one] = found(api, "webhook jobs")
    assert one.state == "wrong"
    assert "does not exist" in one.text


def test_no_webhook_at_all_is_a_warning(api: Any) -> None:
    api.objects["ValidatingWebhookConfiguration.admissionregistration.k8s.io"] = []
    assert [each.state for each in found(api, "webhooks")] == ["warning"]


@pytest.mark.parametrize(
    ("text", "state"),
    [("tiers: 5\n", "wrong"), (CONF.replace("gang", "gnag"), "wrong"), (CONF, "ok")],
)
def test_the_configuration_is_read_as_a_scheduler_reads_it(api: Any, text: str, state: str) -> None:
    conf = api.single["ConfigMap", "volcano-scheduler-configmap"]
    conf["data"] = {"volcano-scheduler.conf": text}
    assert {each.state for each in found(api, "configuration")} == {state}


def test_queues_that_jobs_wait_for_in_vain_are_named(api: Any) -> None:
    groups = api.objects["PodGroup.scheduling.volcano.sh"]
    groups += [pod_group("a", queue="nowhere", phase="Pending")]
    groups += [pod_group("b", queue="shut", phase="Inqueue")]
    shut = queue("shut")
    shut["status"] = {"state": "Closed"}
    api.objects["Queue.scheduling.volcano.sh"].append(shut)
    missing, closed = found(api, "queues")
    assert (missing.state, "nowhere" in missing.text) == ("wrong", True)
    assert (closed.state, "shut" in closed.text) == ("warning", True)


def test_pods_that_quotas_refuse_are_a_warning(api: Any) -> None:
    metadata = {"name": "team", "namespace": "default"}
    api.objects["ResourceQuota"] = [
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": metadata,
            "spec": {"hard": {"pods": "3"}},
        }
    ]
    assert [each.state for each in found(api, "quotas")] == ["ok"]
    task = {"name": "w", "replicas": 4, "template": {"spec": {"containers": [CONTAINER]}}}
    job: dict[str, Any] = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
    job["metadata"] = {"name": "train", "namespace": "default", "uid": "u"}
    api.objects["Job.batch.volcano.sh"] = [{**job, "spec": {"minAvailable": 4, "tasks": [task]}}]
    [one] = found(api, "quotas")
    assert one.text == "resource quotas refuse pods: 2 pods of default/train (by team)"
    assert (one.state, one.next_step[:28]) == ("warning", "pumice explain default/train")
    api.errors["Job.batch.volcano.sh"] = RejectedError(problem="forbidden")
    assert [(each.state, each.text) for each in found(api, "quotas")] == [("unknown", "forbidden")]


def test_a_gang_that_names_another_scheduler_is_a_warning(api: Any) -> None:
    api.objects["Pod"].append(pod("x-0", group="x", scheduler="volcanoo"))
    [one] = found(api, "scheduler names")
    assert (one.state, "volcanoo" in one.text) == ("warning", True)


def test_a_cluster_whose_nodes_are_all_closed_is_wrong(api: Any) -> None:
    api.objects["Node"][0].setdefault("spec", {})["unschedulable"] = True
    assert [each.state for each in found(api, "nodes")] == ["wrong"]


@pytest.mark.parametrize(
    "kind",
    [
        "CustomResourceDefinition.apiextensions.k8s.io",
        "ValidatingWebhookConfiguration.admissionregistration.k8s.io",
        "ConfigMap",
        "Queue.scheduling.volcano.sh",
        "Pod",
        "Node",
    ],
)
def test_what_may_not_be_read_is_unknown_and_stops_no_other_check(api: Any, kind: str) -> None:
    api.errors[kind] = UnavailableError(kind, problem="no right to list")
    states = [each.state for each in examine_cluster(api)]
    assert states.count("unknown") == (2 if kind == "Pod" else 1)
    assert states.count("ok") >= 6


def test_an_odd_object_ends_its_check_and_no_other(api: Any) -> None:
    api.objects["Node"] = [{"status": {"conditions": [5]}}]
    states = {each.check: each.state for each in examine_cluster(api)}
    assert states["nodes"] == "unknown"
    assert states["queues"] == "ok"


def test_a_cluster_of_pumice_up_brings_its_processes(api: Any) -> None:
    api.version = VERSION
    assert found(api, "processes")[0].state == "ok"
    assert found(api, "rights") == []


@pytest.mark.parametrize(
    "error", [NotFoundError("CustomResourceDefinition"), UnavailableError(problem="no")]
)
def test_a_cluster_without_definitions_is_not_one_of_pumice_up(api: Any, error: Any) -> None:
    api.errors["CustomResourceDefinition.apiextensions.k8s.io"] = error
    assert found(api, "processes") == []
    assert [each.state for each in found(api, "CRDs")] == ["unknown"]


def test_a_server_that_hides_its_version_is_examined(api: Any) -> None:
    api.version = RejectedError(problem="forbidden: cannot get path")
    assert {each.state for each in examine_cluster(api)} == {"ok"}


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (UnavailableError(problem="connection refused"), "cannot reach the cluster at {}: conn"),
        (UnauthorizedError(problem="Unauthorized"), "the cluster at {} refuses the credentials"),
        (NotFoundError(), "no API server answers at {}"),
    ],
)
def test_a_server_that_does_not_answer_ends_it_all(api: Any, error: Any, text: str) -> None:
    api.version = error
    with pytest.raises(ServiceError) as raised:
        examine_cluster(api)
    assert raised.value.problem.startswith(text.format(api.server))
