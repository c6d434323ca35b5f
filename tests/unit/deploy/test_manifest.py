"""deploy/pumice.yaml: complete, hardened, and with flags that the processes understand."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.webhooks import DEFAULT, SERVICE, WEBHOOKS
from deploy.workloads import CONFIG, NAMESPACE, SECRET
from pumice.api.conf import parse_conf
from pumice.api.kinds import BUILT_IN
from pumice.scheduler import Scheduler
from pumice.serve.options import read_options
from pumice.webhooks.registry import SERVICES
from tests.present import present
from tests.unit.deploy.hardening import PORTS, pods_in, served, weaknesses

MANIFEST = Path(__file__).resolve().parents[3] / "deploy" / "pumice.yaml"
DOCUMENTS = [*yaml.load_all(MANIFEST.read_text(encoding="utf-8"), yaml.CSafeLoader)]
PODS = dict(pods_in(DOCUMENTS))
SERVED = served(DOCUMENTS)


def find(kind: Any, name: Any, namespace: Any = None) -> Any:
    for one in DOCUMENTS:
        metadata = one["metadata"]
        if (one["kind"], metadata["name"]) != (kind, name):
            continue
        if namespace is None or metadata.get("namespace") == namespace:
            return one
    raise LookupError(f"{kind} {name}")


@pytest.mark.parametrize("name", PODS)
def test_a_pod_can_do_nothing_but_its_work(name: Any) -> None:
    assert weaknesses(PODS[name]) == []


def test_a_weak_pod_is_noticed() -> None:
    """The check itself can fail."""
    weak = {"containers": [{"name": "c", "image": "x:latest", "securityContext": {}}]}
    assert len(weaknesses(weak)) == 9


@pytest.mark.parametrize("process", SERVED)
def test_flags_are_understood_without_a_warning(process: Any) -> None:
    args = SERVED[process]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert args[0] == "serve"
    reported = read_options(process, args[2:])
    assert reported.warnings == []


def test_all_three_processes_are_served() -> None:
    assert {*SERVED} == {"scheduler", "controllers", "webhooks"}


@pytest.mark.parametrize("process", SERVED)
def test_probes_ask_the_health_port(process: Any) -> None:
    container = SERVED[process]["spec"]["template"]["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    paths = {
        probe: (container[probe]["httpGet"]["path"], ports[container[probe]["httpGet"]["port"]])
        for probe in ("startupProbe", "livenessProbe", "readinessProbe")
    }
    assert paths == {
        "startupProbe": ("/healthz", 11251),
        "livenessProbe": ("/healthz", 11251),
        "readinessProbe": ("/readyz", 11251),
    }
    assert PORTS[process] in ports.values()


@pytest.mark.parametrize(
    ("name", "port", "target"),
    [
        ("volcano-scheduler-service", 8080, 8080),
        ("volcano-controllers-service", 8081, 8081),
        ("volcano-admission-service", 443, 8443),
    ],
)
def test_a_service_leads_to_its_pods(name: str, port: int, target: int) -> None:
    service = find("Service", name, NAMESPACE)
    assert [(one["port"], one["targetPort"]) for one in service["spec"]["ports"]] == [
        (port, target)
    ]
    selector = service["spec"]["selector"]
    pods = [
        one
        for one in DOCUMENTS
        if one["kind"] == "Deployment"
        and selector.items() <= one["spec"]["template"]["metadata"]["labels"].items()
    ]
    assert len(pods) == 1
    container = pods[0]["spec"]["template"]["spec"]["containers"][0]
    assert target in {one["containerPort"] for one in container["ports"]}


@pytest.mark.parametrize("process", ["scheduler", "controllers"])
def test_the_lease_that_is_asked_for_is_the_one_granted(process: str) -> None:
    deployment = SERVED[process]
    reported = read_options(
        process, deployment["spec"]["template"]["spec"]["containers"][0]["args"][2:]
    )
    leader = present(reported.leader)
    role = find("Role", deployment["metadata"]["name"], leader.leader_elect_resource_namespace)
    leases = [rule for rule in role["rules"] if rule["resources"] == ["leases"]]
    named = [rule for rule in leases if rule.get("resourceNames")]
    assert [rule["resourceNames"] for rule in named] == [[leader.leader_elect_resource_name]]
    assert {"get", "update"} == {*named[0]["verbs"]}


@pytest.mark.parametrize("name", PODS)
def test_a_pod_has_an_account_that_exists(name: Any) -> None:
    account = find("ServiceAccount", PODS[name]["serviceAccountName"], NAMESPACE)
    assert account["automountServiceAccountToken"] is False


def test_every_binding_binds_a_role_that_exists_to_an_account_that_exists() -> None:
    for one in DOCUMENTS:
        if one["kind"].endswith("Binding"):
            namespace = one["metadata"].get("namespace")
            assert find(one["roleRef"]["kind"], one["roleRef"]["name"], namespace)
            for subject in one["subjects"]:
                assert find("ServiceAccount", subject["name"], subject["namespace"])


@pytest.mark.parametrize("name", PODS)
def test_what_a_pod_mounts_is_there(name: Any) -> None:
    pod = PODS[name]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for mount in pod["containers"][0]["volumeMounts"]:
        assert mount["name"] in volumes
    for volume in volumes.values():
        if "configMap" in volume:
            assert find("ConfigMap", volume["configMap"]["name"], NAMESPACE)
        if "secret" in volume:
            assert volume["secret"]["secretName"] == SECRET


def test_files_that_flags_name_are_mounted() -> None:
    for deployment in SERVED.values():
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        mounted = tuple(mount["mountPath"] for mount in container["volumeMounts"])
        files = [arg.partition("=")[2] for arg in container["args"] if "=/" in arg]
        files = [file for file in files if "," not in file]
        assert [file for file in files if not file.startswith(mounted)] == []


def test_the_scheduler_configuration_is_one_the_scheduler_takes() -> None:
    text = find("ConfigMap", "volcano-scheduler-configmap")["data"]["volcano-scheduler.conf"]
    conf = parse_conf(text)
    assert [*Scheduler(conf).warnings] == []
    assert text == (CONFIG / "volcano-scheduler.conf").read_text(encoding="utf-8")


def test_the_namespace_comes_first_and_lets_only_restricted_pods_in() -> None:
    others = [one for one in DOCUMENTS if one["kind"] != "CustomResourceDefinition"]
    assert others[0]["kind"] == "Namespace"
    labels = others[0]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_no_object_is_there_twice() -> None:
    names = [
        (one["apiVersion"], one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
        for one in DOCUMENTS
    ]
    assert len(names) == len({*names})


@pytest.mark.parametrize("webhook", WEBHOOKS, ids=lambda one: one.path)
def test_a_webhook_asks_about_what_the_server_answers(webhook: Any) -> None:
    service = SERVICES[webhook.path]
    kind = next(one for one in BUILT_IN if one.name == service.kind)
    assert (webhook.name, webhook.operations) == (service.name, service.operations)
    assert (webhook.group, webhook.version) == (kind.group, kind.version)
    assert (webhook.resource, webhook.namespaced) == (kind.plural, kind.namespaced)


def test_every_path_of_the_server_can_be_enabled() -> None:
    assert {one.path for one in WEBHOOKS} == {*SERVICES}


def configurations() -> Any:
    return [one for one in DOCUMENTS if one["kind"].endswith("WebhookConfiguration")]


def test_a_webhook_fails_closed_soon_and_outside_the_system_namespaces() -> None:
    assert len(configurations()) == len(DEFAULT)
    for one in configurations():
        (webhook,) = one["webhooks"]
        assert webhook["failurePolicy"] == "Fail"
        assert webhook["timeoutSeconds"] <= 10
        assert webhook["clientConfig"]["service"]["name"] == SERVICE
        assert "caBundle" not in webhook["clientConfig"]
        if webhook["rules"][0]["scope"] == "Namespaced":
            (selector,) = webhook["namespaceSelector"]["matchExpressions"]
            assert {*selector["values"]} == {NAMESPACE, "kube-system"}


def test_no_webhook_stands_before_plain_pods() -> None:
    resources = {
        rule for one in configurations() for rule in one["webhooks"][0]["rules"][0]["resources"]
    }
    assert "pods" not in resources


def test_the_certificate_is_brought_to_every_webhook_and_to_no_other() -> None:
    args = PODS["volcano-admission-init"]["containers"][0]["args"]
    reported = {
        arg.partition("=")[2] for arg in args if arg.startswith(("--mutating", "--validating"))
    }
    names = {one["metadata"]["name"] for one in configurations()}
    assert reported == names
    (rule,) = find("ClusterRole", "volcano-admission-init")["rules"]
    assert {*rule["resourceNames"]} == names
