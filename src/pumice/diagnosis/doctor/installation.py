"""The installation: custom resources, leaders, webhooks with their certificates."""

import base64
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cryptography import x509

from pumice.api.kinds import (
    BUILT_IN,
    CONTROLLERS_LEASE,
    LEASE,
    SCHEDULER_LEASE,
    SYSTEM_NAMESPACE,
    Manifest,
)
from pumice.api.times import epoch
from pumice.api.wording import counted, first_of
from pumice.cluster.base import Cluster
from pumice.diagnosis.doctor.finding import Checked, ok, unknown, warning, wrong
from pumice.diagnosis.doctor.server import ServedCluster
from pumice.errors import ClusterError, NotFoundError, RejectedError

CRDS: Final = "CustomResourceDefinition.apiextensions.k8s.io"
_VOLCANO: Final = ".volcano.sh"
_LEASES: Final = {"scheduler": SCHEDULER_LEASE, "controllers": CONTROLLERS_LEASE}
_WEBHOOKS: Final = tuple(
    f"{kind}WebhookConfiguration.admissionregistration.k8s.io"
    for kind in ("Mutating", "Validating")
)
_SOON_S: Final = 7 * 86400.0
"""A certificate that expires within this time causes a warning."""
_LARGEST_SKEW_S: Final = 5.0
_PROBE: Final[Manifest] = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "pumice-doctor"},
    "spec": {"weight": 1},
}
"""A queue that is tried and never created."""


def custom_resources(cluster: Cluster) -> Iterator[Checked]:
    """Check that the custom resources are served, in the versions that Pumice uses."""
    wanted = {f"{kind.plural}.{kind.group}": kind for kind in BUILT_IN if _VOLCANO in kind.group}
    try:
        found = {each["metadata"]["name"]: each for each in cluster.list(CRDS)[0]}
    except ClusterError as error:
        yield unknown("custom resources", error.problem)
        return
    missing = sorted(wanted.keys() - found.keys())
    stale = sorted(
        name
        for name, kind in wanted.items()
        if name in found and kind.version not in _served(found[name])
    )
    if missing:
        yield wrong(
            "custom resources",
            f"{counted(len(missing), 'kind')} not installed: {first_of(missing, 3)}",
            "kubectl apply --server-side -f deploy/crds",
        )
    if stale:
        yield wrong(
            "custom resources",
            f"served in other versions only: {first_of(stale, 3)}",
            "kubectl apply --server-side -f deploy/crds",
        )
    if not missing and not stale:
        yield ok("custom resources", f"all {len(wanted)} kinds are served")


def _served(definition: Manifest) -> set[str]:
    versions = definition.get("spec", {}).get("versions") or ()
    return {each["name"] for each in versions if each.get("served")}


def leaders(cluster: Cluster) -> Iterator[Checked]:
    """Check the holders of the leases, and whether they renew by a clock like ours."""
    for part, name in _LEASES.items():
        check = f"{part}: leader"
        try:
            spec = cluster.get(LEASE, SYSTEM_NAMESPACE, name).get("spec") or {}
        except NotFoundError:
            text = f"no process has ever held the lease {SYSTEM_NAMESPACE}/{name}"
            yield wrong(check, text, f"install Pumice, or start 'pumice serve {part}'")
            continue
        except ClusterError as error:
            yield unknown(check, error.problem)
            continue
        yield _leader(check, part, spec, cluster.now())


def _leader(check: str, part: str, spec: Mapping[str, Any], now: float) -> Checked:
    holder, renewed = spec.get("holderIdentity") or "", spec.get("renewTime") or ""
    if not holder or not renewed:
        return wrong(
            check, "no process holds the lease", f"start 'pumice serve {part}', read its log"
        )
    age, lasts = now - epoch(renewed), float(spec.get("leaseDurationSeconds") or 15)
    if age < -_LARGEST_SKEW_S:
        text = f"{holder} renewed {-age:.0f} s in the future: its clock or this one is wrong"
        return warning(check, text, "synchronise the clocks of the nodes")
    if age > lasts:
        text = f"{holder} renewed last {age:.0f} s ago and lost the lease after {lasts:.0f} s"
        return wrong(check, text, f"see why 'pumice serve {part}' ended or cannot write leases")
    return ok(check, f"{holder} leads")


def webhooks(cluster: ServedCluster) -> Iterator[Checked]:
    """Check the webhooks for our kinds: their service, their certificate, and their answers."""
    found: list[Manifest] = []
    for kind in _WEBHOOKS:
        try:
            found += cluster.list(kind)[0]
        except ClusterError as error:
            yield unknown("webhooks", error.problem)
            return
    ours = [
        (each["metadata"]["name"], webhook)
        for each in found
        for webhook in each.get("webhooks") or ()
        if any(_is_ours(rule) for rule in webhook.get("rules") or ())
    ]
    if not ours:
        yield warning(
            "webhooks",
            "none is registered: defaults are not filled in and bad jobs are not refused",
            "apply deploy/pumice.yaml or set custom.admission_enable in the chart",
        )
    for name, webhook in ours:
        yield from _webhook(cluster, name, webhook)
    if ours:
        yield _answers(cluster)


def _answers(cluster: ServedCluster) -> Checked:
    """Have the API server ask the webhooks about a queue that is not created."""
    check = "webhooks: answer"
    try:
        cluster.try_create(_PROBE)
    except ClusterError as error:
        if "failed calling webhook" in error.problem:
            next_step = "see that the pods of volcano-admission run and can be reached"
            return wrong(
                check, f"jobs and queues are refused meanwhile: {error.problem}", next_step
            )
        if not isinstance(error, RejectedError) or "forbidden" in error.problem:
            return unknown(check, error.problem)
    return ok(check, "a queue that was tried got an answer")


def _is_ours(rule: Mapping[str, Any]) -> bool:
    return any(_VOLCANO in group for group in rule.get("apiGroups") or ())


def _webhook(cluster: Cluster, name: str, webhook: Mapping[str, Any]) -> Iterator[Checked]:
    check, client = f"webhook {name}", webhook.get("clientConfig") or {}
    service = client.get("service")
    if service is not None:
        try:
            cluster.get("Service", service["namespace"], service["name"])
        except NotFoundError:
            text = f"its service {service['namespace']}/{service['name']} does not exist"
            yield wrong(
                check, text, "jobs are refused meanwhile: install it, or remove the webhook"
            )
            return
        except ClusterError as error:
            yield unknown(check, error.problem)
    yield _certificate(check, client.get("caBundle") or "", cluster.now())


def _certificate(check: str, bundle: str, now: float) -> Checked:
    next_step = "run the job volcano-admission-init again"
    if not bundle:
        return wrong(check, "it has no caBundle, so its certificate is not trusted", next_step)
    try:
        loaded = x509.load_pem_x509_certificates(base64.b64decode(bundle))
    except ValueError:
        return wrong(check, "its caBundle holds no certificate", next_step)
    ends = max(each.not_valid_after_utc.timestamp() for each in loaded)
    if ends < now:
        return wrong(check, f"its authority expired {(now - ends) / 86400:.0f} days ago", next_step)
    if ends - now < _SOON_S:
        return warning(
            check, f"its authority expires in {(ends - now) / 86400:.1f} days", next_step
        )
    return ok(check, f"trusted for {(ends - now) / 86400:.0f} days")
