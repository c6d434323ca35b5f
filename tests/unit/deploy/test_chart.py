"""The Helm chart: values used are there, values there are used; it renders as the manifest."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.alerts import ALERTS
from deploy.grafana import dashboard
from deploy.rbac import FOR_UI, FOR_UI_ACTIONS, FOR_UI_LOGIN, rules
from deploy.workloads import IMAGE, NAMESPACE
from pumice.serve.options import FLAGS, read_options
from tests.present import present
from tests.unit.deploy.hardening import pods_in, served, weaknesses

ROOT = Path(__file__).resolve().parents[3]
CHART = ROOT / "deploy" / "helm" / "pumice"
MANIFEST = ROOT / "deploy" / "pumice.yaml"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
PARTS = ("scheduler", "controller", "admission")
TEMPLATES = "\n".join(
    path.read_text(encoding="utf-8") for path in sorted((CHART / "templates").iterdir())
)
HELM = shutil.which(os.environ.get("HELM", "helm"))
needs_helm = pytest.mark.skipif(HELM is None, reason="renders the chart: install helm or set HELM")


def known() -> Any:
    return {f"{section}.{key}" for section, keys in VALUES.items() for key in keys}


def used() -> Any:
    """Return values that templates name, spelt out or put together from the part's name."""
    found = set(re.findall(r"\.Values\.((?:basic|custom|service)\.\w+)", TEMPLATES))
    found |= {f"custom.{key}" for key in re.findall(r"\$custom\.(\w+)", TEMPLATES)}
    found |= {f"basic.{key}" for key in re.findall(r"\$basic\.(\w+)", TEMPLATES)}
    found |= {f"custom.{key}" for key in re.findall(r'"csc" "(\w+)"', TEMPLATES)}
    for section, suffix in re.findall(r'get \$(basic|custom) \(printf "%s(_\w+)"', TEMPLATES):
        found |= {f"{section}.{part}{suffix}" for part in PARTS}
    for key in re.findall(r'dict "key" "(\w+)"', TEMPLATES):
        found |= {f"custom.{part}_{key}" for part in PARTS}
    return found


def test_every_value_that_is_used_has_a_default() -> None:
    assert used() - known() == set()


def test_every_default_is_used() -> None:
    assert known() - used() == set()


@pytest.mark.parametrize(
    ("file", "process"),
    [("scheduler", "scheduler"), ("controllers", "controllers"), ("admission", "webhooks")],
)
def test_every_flag_that_a_template_gives_exists(file: str, process: str) -> None:
    text = (CHART / "templates" / f"{file}.yaml").read_text(encoding="utf-8")
    for helper in re.findall(r'include "(pumice\.\w+)"', text):
        text += TEMPLATES.partition(f'define "{helper}"')[2].partition("{{- define ")[0]
    given = set(re.findall(r"^ *- --([\w-]+)=", text, flags=re.MULTILINE))
    assert len(given) > 3
    assert given - {flag.name for flag in FLAGS[process]} == set()


def test_chart_and_image_have_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    version = IMAGE.partition(":")[2]
    assert (chart["version"], chart["appVersion"]) == (version, version)


def test_pods_are_hardened_by_default() -> None:
    pod = {
        "securityContext": VALUES["custom"]["default_sc"],
        "containers": [
            {
                "name": part,
                "image": IMAGE,
                "securityContext": VALUES["custom"]["default_csc"],
                "resources": VALUES["custom"][f"{part}_resources"],
            }
            for part in PARTS
        ],
    }
    assert weaknesses(pod) == []


def render(*settings: Any, values: Path | None = None) -> Any:
    reported = [word for one in settings for word in ("--set", one)]
    reported += ["--values", str(values)] if values else []
    head = [present(HELM), "template", "volcano", str(CHART), "--namespace", NAMESPACE]
    done = subprocess.run(  # noqa: S603
        [*head, "--kube-version", "1.30.0", *reported], check=True, capture_output=True, text=True
    )
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def by_place(documents: Any) -> Any:
    return {
        (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]): one
        for one in documents
    }


@needs_helm
def test_the_chart_renders_the_manifest() -> None:
    """Except the namespace, which helm makes, and the job, whose name has the revision."""
    wanted = by_place(yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8")))
    found = by_place(render())
    del wanted["Namespace", None, NAMESPACE]
    job = found.pop(("Job", NAMESPACE, "volcano-admission-init-1"))
    job["metadata"]["name"] = "volcano-admission-init"
    found["Job", NAMESPACE, "volcano-admission-init"] = job
    assert found == wanted


@needs_helm
@pytest.mark.parametrize(
    "setting",
    [
        "custom.cert_manager_enable=true",
        "custom.network_policy_enable=true",
        "custom.scheduler_replicas=2",
        "custom.common_labels.team=a",
        "custom.enabled_admissions=/pods/validate",
        "custom.scheduler_percentage_nodes_to_find=0",
        "custom.crds_enable=false",
    ],
)
def test_a_setting_leaves_pods_hardened(setting: str) -> None:
    found = {name: weaknesses(pod) for name, pod in pods_in(render(setting))}
    assert {name for name in found if found[name]} == set()
    assert len(found) >= 3


@needs_helm
def test_with_cert_manager_there_is_no_job_and_no_right_to_secrets() -> None:
    documents = render("custom.cert_manager_enable=true")
    assert {one["kind"] for one in documents} >= {"Certificate", "Issuer"}
    assert [one for one in documents if one["kind"] == "Job"] == []
    hooks = [one for one in documents if one["kind"].endswith("WebhookConfiguration")]
    annotation = "cert-manager.io/inject-ca-from"
    assert {one["metadata"]["annotations"][annotation] for one in hooks} == {
        f"{NAMESPACE}/volcano-admission"
    }


@needs_helm
def test_secrets_of_jobs_are_granted_where_the_values_say() -> None:
    documents = render("custom.job_secret_namespaces={a,b}")
    roles = [one for one in documents if one["metadata"]["name"] == "volcano-job-secrets"]
    assert {one["metadata"]["namespace"] for one in roles} == {"a", "b"}


@needs_helm
def test_secrets_of_jobs_are_granted_everywhere_only_if_the_values_say_so() -> None:
    found = [
        place for place in by_place(render("custom.job_secret_namespaces={*}")) if _of_jobs(place)
    ]
    assert sorted(found) == [
        ("ClusterRole", None, "volcano-job-secrets"),
        ("ClusterRoleBinding", None, "volcano-job-secrets-role"),
    ]


def _of_jobs(place: tuple[str, str | None, str]) -> bool:
    return "job-secrets" in place[2]


# What Volcano's own end-to-end suite is installed with (hack/run-e2e-kind.sh).
SUITE: dict[str, Any] = {
    "basic": {
        "image_tag_version": "latest",
        "scheduler_config_file": "config/volcano-scheduler-ci.conf",
        "crd_version": "v1",
    },
    "custom": {
        "hypernode_controller_mode": "controller-manager",
        "hypernode_controller_replicas": 1,
        "hypernode_controller_tolerations": [{"operator": "Exists"}],
        "scheduler_feature_gates": "SchedulingGatesQueueAdmission=true",
        "scheduler_sharding_mode": "hard",
        "sharding_configmap_data": "shardSyncPeriod: 30s",
        "agent_scheduler_enable": True,
        "agent_scheduler_worker_count": 2,
        "vap_enable": False,
        "enabled_admissions": "/pods/mutate,/podgroups/mutate,/jobs/mutate,/jobflows/validate",
        "ignored_provisioners": "",
        "controller_config_override": {"networkTopologyDiscovery": [{"source": "label"}]},
    },
}


@needs_helm
def test_the_values_of_volcanos_own_suite_are_taken(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(SUITE), encoding="utf-8")
    found = by_place(render(values=values))
    text = found["ConfigMap", NAMESPACE, "volcano-scheduler-configmap"]["data"]
    assert yaml.safe_load(text.pop("volcano-scheduler-ci.conf"))["actions"].endswith("preempt")
    assert not text
    scheduler = found["Deployment", NAMESPACE, "volcano-scheduler"]["spec"]["template"]["spec"]
    reported = scheduler["containers"][0]["args"]
    assert "--scheduler-conf=/volcano.scheduler/volcano-scheduler-ci.conf" in reported
    assert "--agent-scheduler-name=agent-scheduler" in reported
    conf = found["ConfigMap", NAMESPACE, "volcano-controller-configmap"]["data"]
    given = SUITE["custom"]["controller_config_override"]
    assert yaml.safe_load(conf["volcano-controller.conf"]) == given


@needs_helm
def test_a_configuration_that_the_chart_does_not_have_is_named() -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render("basic.scheduler_config_file=config/none.conf")
    wanted = 'basic.scheduler_config_file: expected a file of the chart, got "config/none.conf"'
    assert wanted in refused.value.stderr


def refused(*settings: str) -> str:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        render(*settings)
    return str(caught.value.stderr)


@needs_helm
@pytest.mark.parametrize("part", ["scheduler", "controller"])
def test_several_replicas_that_would_all_work_are_refused(part: str) -> None:
    several = (f"custom.{part}_replicas=2", "custom.leader_elect_enable=false")
    assert f"custom.{part}_replicas is 2" in refused(*several)
    render("custom.leader_elect_enable=false")
    render(f"custom.{part}_replicas=3")


@needs_helm
@pytest.mark.parametrize(
    "setting",
    [
        "custom.scheduler_schedule_period=1",
        "custom.scheduler_schedule_period=soon",
        "custom.scheduler_resources.requests.cpu=lots",
        "custom.controller_resources.limits.memory=-1Gi",
        "custom.admission_resources.request.cpu=1",
        "custom.scheduler_feature_gates=NoSuchGate=true",
        "custom.scheduler_feature_gates=CSIStorage=perhaps",
        "custom.service_monitor_interval=often",
        "custom.hypernode_controller_mode=maybe",
        "custom.runbook_url=docs/runbook.md",
        "basic.image_pull_policy=Sometimes",
        "service.ipFamilyPolicy=Both",
    ],
)
def test_a_value_that_no_process_could_use_is_refused(setting: str) -> None:
    name = setting.partition("=")[0].split(".")[1]
    assert name in refused(setting)


@needs_helm
@pytest.mark.parametrize(
    "setting",
    [
        "custom.scheduler_schedule_period=1m30s",
        "custom.scheduler_schedule_period=500ms",
        "custom.scheduler_resources.requests.cpu=0.5",
        "custom.scheduler_resources.limits.ephemeral-storage=1e9",
        "custom.scheduler_feature_gates=CSIStorage=true\\,DynamicResourceAllocation=false",
        "basic.image_pull_policy=Always",
    ],
)
def test_a_value_that_processes_use_is_taken(setting: str) -> None:
    assert render(setting)


@needs_helm
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("actions: [", "is not YAML"),
        ("tiers: []", "has no actions"),
        ("actions: allocate", "no list of tiers"),
    ],
)
def test_a_configuration_that_no_scheduler_could_read_is_refused(text: str, problem: str) -> None:
    assert problem in refused(f"custom.scheduler_config_override={text}")


@needs_helm
def test_alerts_link_to_a_runbook_only_if_its_address_is_known() -> None:
    found = by_place(render("custom.prometheus_rule_enable=true"))
    rules = found["PrometheusRule", NAMESPACE, "volcano-alerts"]["spec"]["groups"][0]["rules"]
    assert [rule["alert"] for rule in rules] == [alert.name for alert in ALERTS]
    assert not [rule for rule in rules if "runbook_url" in rule["annotations"]]


@needs_helm
def test_the_namespace_of_podgroups_is_read_only_if_that_webhook_is_on() -> None:
    def resources(documents: Any) -> Any:
        role = by_place(documents)["ClusterRole", None, "volcano-admission"]
        return {resource for rule in role["rules"] for resource in rule["resources"]}

    assert "namespaces" not in resources(render())
    enabled = render("custom.enabled_admissions=/podgroups/mutate")
    assert "namespaces" in resources(enabled)


@needs_helm
def test_discovery_is_set_up_or_left_to_somebody_else() -> None:
    def arguments(documents: Any) -> Any:
        deployment = by_place(documents)["Deployment", NAMESPACE, "volcano-controllers"]
        return deployment["spec"]["template"]["spec"]["containers"][0]["args"]

    assert [one for one in arguments(render()) if one.startswith("--controllers")] == []
    reported = arguments(render("custom.hypernode_controller_mode=disabled"))
    assert "--controllers=*,-sharding-controller,-hyperNode-controller" in reported
    text = by_place(render("custom.controller_config_override=networkTopologyDiscovery: []"))[
        "ConfigMap", NAMESPACE, "volcano-controller-configmap"
    ]["data"]["volcano-controller.conf"]
    assert yaml.safe_load(text) == {"networkTopologyDiscovery": []}


@needs_helm
def test_parts_can_be_left_out() -> None:
    documents = render("custom.admission_enable=false", "custom.controller_enable=false")
    assert {*served(documents)} == {"scheduler"}
    assert [one for one in documents if one["kind"].endswith("WebhookConfiguration")] == []


@needs_helm
def test_monitoring_is_there_if_it_is_wanted() -> None:
    kinds = {"ServiceMonitor", "PrometheusRule", "PodDisruptionBudget", "NetworkPolicy"}
    assert not kinds & {one["kind"] for one in render()}
    found = by_place(
        render(
            "custom.service_monitor_enable=true",
            "custom.service_monitor_labels.release=prometheus",
            "custom.prometheus_rule_enable=true",
            "custom.runbook_url=https://wiki.example/pumice",
            "custom.grafana_dashboard_enable=true",
            "custom.grafana_dashboard_namespace=grafana",
            "custom.pod_disruption_budget_enable=true",
            "custom.network_policy_enable=true",
        )
    )
    monitor = found["ServiceMonitor", NAMESPACE, "volcano-controller"]
    assert monitor["metadata"]["labels"] == {"release": "prometheus"}
    service = found["Service", NAMESPACE, "volcano-controllers-service"]
    assert (
        monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    )
    assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
    rules = found["PrometheusRule", NAMESPACE, "volcano-alerts"]["spec"]["groups"][0]["rules"]
    assert [rule["alert"] for rule in rules] == [alert.name for alert in ALERTS]
    assert rules[1]["annotations"]["runbook_url"] == "https://wiki.example/pumice#pumicenoleader"
    assert "{{ $labels.job }}" in rules[1]["annotations"]["summary"]
    shown = found["ConfigMap", "grafana", "volcano-grafana-dashboard"]
    assert shown["metadata"]["labels"] == {"grafana_dashboard": "1"}
    assert json.loads(shown["data"]["pumice.json"]) == dashboard()
    for app in ("volcano-scheduler", "volcano-controller", "volcano-admission"):
        budget = found["PodDisruptionBudget", NAMESPACE, app]["spec"]
        assert budget == {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}}
        policy = found["NetworkPolicy", NAMESPACE, app]["spec"]
        assert policy["podSelector"] == {"matchLabels": {"app": app}}


UI = ("custom.ui_enable=true", "custom.ui_tls_secret_name=ui-tls", "custom.ui_hosts={a.example}")


@needs_helm
def test_the_dashboard_is_served_with_the_flags_and_rights_it_needs() -> None:
    documents = render(*UI, "custom.ui_allow_actions=true", "custom.network_policy_enable=true")
    found = by_place(documents)
    pod = served(documents)["scheduler"]["spec"]["template"]["spec"]
    assert weaknesses(pod) == []
    options = read_options("scheduler", pod["containers"][0]["args"][2:]).scheduler
    assert options is not None
    assert (options.ui, options.ui_cluster_login, options.ui_allow_actions) == (True, True, True)
    assert options.ui_host == ("a.example",)
    mounts = {one["name"]: one["mountPath"] for one in pod["containers"][0]["volumeMounts"]}
    assert options.ui_tls_cert_file == f"{mounts['ui-certificate']}/tls.crt"
    assert {one["name"] for one in pod["volumes"]} == {*mounts}
    role = found["ClusterRole", None, "volcano-scheduler"]["rules"]
    for needed in (*rules(FOR_UI), *rules(FOR_UI_LOGIN), *rules(FOR_UI_ACTIONS)):
        assert needed in role
    service = found["Service", NAMESPACE, "volcano-scheduler-ui"]["spec"]
    (port,) = {one["containerPort"] for one in pod["containers"][0]["ports"] if one["name"] == "ui"}
    assert service["ports"][0]["targetPort"] == port
    policy = found["NetworkPolicy", NAMESPACE, "volcano-scheduler"]["spec"]
    assert port in {one["port"] for one in policy["ingress"][0]["ports"]}


@needs_helm
def test_a_dashboard_that_only_shows_has_no_right_to_write() -> None:
    role = by_place(render(*UI))["ClusterRole", None, "volcano-scheduler"]["rules"]
    plain = by_place(render())["ClusterRole", None, "volcano-scheduler"]["rules"]
    assert [one for one in role if one not in plain] == [*rules(FOR_UI), *rules(FOR_UI_LOGIN)]


@needs_helm
@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (["custom.ui_enable=true"], "custom.ui_tls_secret_name"),
        ([*UI, "custom.ui_cluster_login=false"], "custom.ui_token_secret_name"),
        (["custom.ui_port=0"], "ui_port"),
    ],
)
def test_a_dashboard_that_whoever_asks_could_see_is_not_installed(
    settings: Any, problem: str
) -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        render(*settings)
    assert problem in caught.value.stderr


@needs_helm
def test_a_token_stands_in_for_the_cluster_s_login() -> None:
    documents = render(*UI, "custom.ui_cluster_login=false", "custom.ui_token_secret_name=ui-token")
    pod = served(documents)["scheduler"]["spec"]["template"]["spec"]
    args = pod["containers"][0]["args"]
    assert "--ui-token-file=/pumice.ui/token/token" in args
    assert "--ui-cluster-login=true" not in args
    role = by_place(documents)["ClusterRole", None, "volcano-scheduler"]["rules"]
    assert "tokenreviews" not in str(role)
