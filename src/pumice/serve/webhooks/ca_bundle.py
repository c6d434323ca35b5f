"""Writes the certificate to trust into the configurations of the webhooks.

The configurations come with the installation; a missing one is created only when the webhooks
have an address of their own, which no installation knows.
"""

import base64
from typing import Any, Final

from pumice import logs
from pumice.api.annotations import NAMESPACE_NAME
from pumice.api.kinds import Manifest
from pumice.cluster.base import Cluster
from pumice.errors import ClusterError, NotFoundError
from pumice.webhooks.admission_chain import KINDS
from pumice.webhooks.registry import SKIPPED_NAMESPACES, Service

GROUP: Final = "admissionregistration.k8s.io"
_PREFIX: Final = "volcano-admission-service"
_log = logs.get("webhooks")


def configuration_name(service: Service, service_name: str) -> str:
    """Return the name of a webhook's configuration."""
    return f"{service_name or _PREFIX}{service.path.replace('/', '-')}"


def register(
    cluster: Cluster, service: Service, *, ca_bundle: bytes, service_name: str, url: str
) -> bool:
    """Write the certificate into a configuration; return whether it is done."""
    bundle = base64.b64encode(ca_bundle).decode()
    kind = "MutatingWebhookConfiguration" if service.mutating else "ValidatingWebhookConfiguration"
    name = configuration_name(service, service_name)
    try:
        found = cluster.get(f"{kind}.{GROUP}", "", name)
    except NotFoundError:
        if not url:
            return False
        return _make(cluster, kind, name, _webhook(service, url, bundle))
    except ClusterError as error:
        _log.warning("cannot read webhook configuration", name=name, error=error)
        return True
    hooks = found.get("webhooks") or []
    trusted = [
        {**hook, "clientConfig": {**hook.get("clientConfig", {}), "caBundle": bundle}}
        for hook in hooks
    ]
    if trusted != hooks:
        try:
            cluster.patch(f"{kind}.{GROUP}", "", name, {"webhooks": trusted})
        except ClusterError as error:
            _log.warning("cannot update webhook configuration", name=name, error=error)
    return True


def _make(cluster: Cluster, kind: str, name: str, hook: dict[str, Any]) -> bool:
    manifest: Manifest = {
        "apiVersion": f"{GROUP}/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": [hook],
    }
    try:
        cluster.create(manifest)
    except ClusterError as error:
        _log.warning("cannot create webhook configuration", name=name, error=error)
    return True


def _webhook(service: Service, url: str, bundle: str) -> dict[str, Any]:
    kind = KINDS[service.kind]
    hook: dict[str, Any] = {
        "name": service.name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": f"{url.rstrip('/')}{service.path}", "caBundle": bundle},
        "rules": [
            {
                "apiGroups": [kind.group],
                "apiVersions": [kind.version],
                "operations": list(service.operations),
                "resources": [kind.plural],
            }
        ],
        "failurePolicy": "Fail",
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 10,
    }
    if kind.namespaced:
        names = {
            "key": NAMESPACE_NAME,
            "operator": "NotIn",
            "values": list(SKIPPED_NAMESPACES),
        }
        hook["namespaceSelector"] = {"matchExpressions": [names]}
    return hook
