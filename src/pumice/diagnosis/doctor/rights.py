"""The permissions of an installation's service accounts: every call that its processes make."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from pumice.api.kinds import SYSTEM_NAMESPACE, Manifest
from pumice.api.permissions import CONTROLLERS, SCHEDULER, Component, Grant
from pumice.api.wording import counted, first_of
from pumice.cluster.base import Cluster
from pumice.diagnosis.doctor.finding import Checked, ok, unknown, warning, wrong
from pumice.errors import ClusterError

COMPONENTS: Final = (SCHEDULER, CONTROLLERS)
_NEXT: Final = "apply deploy/pumice.yaml again, or upgrade the chart"


class _Call(NamedTuple):
    """One call that a service account makes."""

    verb: str
    group: str
    resource: str
    name: str
    namespace: str
    why_rare: str
    """Why an ordinary run does not make it; empty if it does."""

    def __str__(self) -> str:
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {what}{f' named {self.name}' if self.name else ''}"


def rights(cluster: Cluster) -> Iterator[Checked]:
    """Ask the API server whether the service accounts may do all that their processes do."""
    for component in COMPONENTS:
        account = f"volcano-{component.name}"
        check = f"rights of {account}"
        calls = [*_calls(component)]
        try:
            missing = [one for one in calls if not _may(cluster, account, one)]
        except ClusterError as error:
            yield unknown(check, f"cannot be checked: {error.problem}")
            continue
        needed = [str(one) for one in missing if not one.why_rare]
        rare = [f"{one} ({one.why_rare})" for one in missing if one.why_rare]
        if needed:
            yield wrong(check, f"it may not {first_of(needed, 3)}", _NEXT)
        if rare:
            yield warning(check, f"it may not {first_of(rare, 3)}", _NEXT)
        if not missing:
            yield ok(check, f"all {counted(len(calls), 'permission')} are granted")


def _calls(component: Component) -> Iterator[_Call]:
    """Return the calls of a component, except those in namespaces that an installation chooses."""
    for namespace, grants in (("", component.everywhere), (SYSTEM_NAMESPACE, component.at_home)):
        for grant in grants:
            yield from _of_grant(grant, namespace)


def _of_grant(grant: Grant, namespace: str) -> Iterator[_Call]:
    for verb, group, resource in sorted(grant.calls()):
        for name in grant.names or ("",):
            yield _Call(verb, group, resource, name, namespace, grant.unseen)


def _may(cluster: Cluster, account: str, wanted: _Call) -> bool:
    resource, _, subresource = wanted.resource.partition("/")
    about = {
        "verb": wanted.verb,
        "group": wanted.group,
        "resource": resource,
        "subresource": subresource,
        "name": wanted.name,
        "namespace": wanted.namespace,
    }
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
