"""The Helm chart: values used are there, values there are used; it renders as the manifest."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.workloads import IMAGE, NAMESPACE
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
    told = [word for one in settings for word in ("--set", one)]
    told += ["--values", str(values)] if values else []
    head = [present(HELM), "template", "volcano", str(CHART), "--namespace", NAMESPACE]
    done = subprocess.run(  # noqa: S603
        [*head, "--kube-version", "1.30.0", *told], check=True, capture_output=True, text=True
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
        "agent_scheduler_enable": False,
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
    told = scheduler["containers"][0]["args"]
    assert "--scheduler-conf=/volcano.scheduler/volcano-scheduler-ci.conf" in told
    conf = found["ConfigMap", NAMESPACE, "volcano-controller-configmap"]["data"]
    given = SUITE["custom"]["controller_config_override"]
    assert yaml.safe_load(conf["volcano-controller.conf"]) == given


@needs_helm
def test_a_configuration_that_the_chart_does_not_have_is_named() -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render("basic.scheduler_config_file=config/none.conf")
    wanted = 'basic.scheduler_config_file: wanted a file of the chart, found "config/none.conf"'
    assert wanted in refused.value.stderr


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
    told = arguments(render("custom.hypernode_controller_mode=disabled"))
    assert "--controllers=*,-sharding-controller,-hyperNode-controller" in told
    text = by_place(render("custom.controller_config_override=networkTopologyDiscovery: []"))[
        "ConfigMap", NAMESPACE, "volcano-controller-configmap"
    ]["data"]["volcano-controller.conf"]
    assert yaml.safe_load(text) == {"networkTopologyDiscovery": []}


@needs_helm
def test_parts_can_be_left_out() -> None:
    documents = render("custom.admission_enable=false", "custom.controller_enable=false")
    assert {*served(documents)} == {"scheduler"}
    assert [one for one in documents if one["kind"].endswith("WebhookConfiguration")] == []
