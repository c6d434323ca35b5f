"""Pumice installed from the manifest users apply, except what needs containers to run.

Deployments and services are left out: the tests run the same commands as processes.  Webhooks are
registered with an address on loopback instead of a service.
"""

import base64
from pathlib import Path
from typing import Any, Final

import yaml

from tests.e2e_kube.kubectl import Kubectl
from tests.e2e_kube.waiting import until

Manifest = dict[str, Any]
MANIFEST: Final = Path(__file__).parents[2] / "deploy" / "pumice.yaml"
HOME: Final = "volcano-system"
_NEEDS_CONTAINERS: Final = ("Deployment", "Service", "Job")


def manifests() -> list[Manifest]:
    """Read everything that is deployed."""
    return [each for each in yaml.load_all(MANIFEST.read_text(), yaml.CSafeLoader) if each]


def install(kubectl: Kubectl) -> None:
    """Apply kinds, namespace, configuration, accounts and rights; wait until kinds are served."""
    found = [
        each
        for each in manifests()
        if each["kind"] not in _NEEDS_CONTAINERS and not is_webhook(each)
    ]
    kinds = [each for each in found if each["kind"] == "CustomResourceDefinition"]
    kubectl.apply(*kinds)
    # kubectl gives up at once on a definition that has no conditions yet.
    until(
        "kinds are served",
        lambda: kubectl.run("wait", "--for=condition=Established", "crd", "--all"),
        lambda done: done.returncode == 0,
    )
    kubectl.apply(*(each for each in found if each not in kinds))


def is_webhook(manifest: Manifest) -> bool:
    """Return whether a manifest registers webhooks."""
    return manifest["kind"].endswith("WebhookConfiguration")


def webhook_configurations(port: int, authority: Path) -> list[Manifest]:
    """Return the registrations of the manifest, sent to a port of loopback."""
    return on_loopback([each for each in manifests() if is_webhook(each)], port, authority)


def on_loopback(found: list[Manifest], port: int, authority: Path) -> list[Manifest]:
    """Send what registrations ask for to a port of loopback."""
    bundle = base64.b64encode(authority.read_bytes()).decode()
    for webhook in (webhook for each in found for webhook in each["webhooks"]):
        path = webhook["clientConfig"]["service"]["path"]
        webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}
    return found


def webhook_flags() -> dict[str, str]:
    """Return the flags of the deployment that configure the webhooks."""
    deployment = next(each for each in manifests() if _is_admission(each))
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    given = dict(argument.removeprefix("--").split("=", 1) for argument in arguments[2:])
    names = ("enabled-admission", "webhook-namespace", "webhook-service-name")
    return {name: given[name] for name in names}


def _is_admission(manifest: Manifest) -> bool:
    return manifest["kind"] == "Deployment" and manifest["metadata"]["name"] == "volcano-admission"
