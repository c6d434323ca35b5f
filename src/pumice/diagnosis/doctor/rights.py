"""The rights of an installation's accounts: those without which nothing runs."""

from collections.abc import Iterator
from typing import Final

from pumice.api.kinds import SYSTEM_NAMESPACE, Manifest
from pumice.api.wording import first_of
from pumice.cluster.base import Cluster
from pumice.diagnosis.doctor.finding import Checked, ok, unknown, wrong
from pumice.errors import ClusterError

NEEDED: Final = {
    "volcano-scheduler": (
        ("list", "", "pods"),
        ("list", "", "nodes"),
        ("watch", "scheduling.volcano.sh", "podgroups"),
        ("create", "", "pods/binding"),
        ("delete", "", "pods"),
        ("patch", "scheduling.volcano.sh", "podgroups"),
    ),
    "volcano-controllers": (
        ("watch", "batch.volcano.sh", "jobs"),
        ("update", "batch.volcano.sh", "jobs/status"),
        ("create", "", "pods"),
        ("create", "scheduling.volcano.sh", "podgroups"),
    ),
}
"""By account: verb, group and resource."""


def rights(cluster: Cluster) -> Iterator[Checked]:
    """Ask the API server what the accounts may do."""
    for account, needed in NEEDED.items():
        check = f"rights of {account}"
        try:
            missing = [_text(one) for one in needed if not _may(cluster, account, one)]
        except ClusterError as error:
            yield unknown(check, f"cannot be checked: {error.problem}")
            continue
        if missing:
            text = f"it may not {first_of(missing, 3)}"
            yield wrong(check, text, "apply deploy/pumice.yaml again, or upgrade the chart")
        else:
            yield ok(check, f"the {len(needed)} rights it needs most are granted")


def _may(cluster: Cluster, account: str, wanted: tuple[str, str, str]) -> bool:
    verb, group, resource = wanted
    name, _, subresource = resource.partition("/")
    about = {"verb": verb, "group": group, "resource": name, "subresource": subresource}
    review: Manifest = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {"name": ""},
        "spec": {
            "user": f"system:serviceaccount:{SYSTEM_NAMESPACE}:{account}",
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{SYSTEM_NAMESPACE}"],
            "resourceAttributes": about,
        },
    }
    return bool((cluster.create(review).get("status") or {}).get("allowed"))


def _text(wanted: tuple[str, str, str]) -> str:
    verb, group, resource = wanted
    return f"{verb} {resource}.{group}" if group else f"{verb} {resource}"
