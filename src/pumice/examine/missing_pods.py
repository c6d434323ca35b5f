"""Resource quotas that have no room for the pods that a gang lacks.

A session does not know the pods that an API server refused, nor the job that they are made for.
What the gang needs at least is stated by its pod group, in the names of quotas.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from pumice.api.codes import Cause
from pumice.api.decisions import Short
from pumice.api.groups import ResourceQuota
from pumice.api.kinds import ENDED_PHASES, RESOURCE_QUOTA
from pumice.api.objects import to_manifest
from pumice.api.pods import Pod
from pumice.api.quantity import parse_quantity
from pumice.api.quota_amounts import limits_pods, pod_usage
from pumice.api.wording import counted
from pumice.cluster.embedded.quotas import in_scope
from pumice.examine.findings import Finding, ObjectRef
from pumice.examine.limits import compared_numbers
from pumice.framework.session import Session
from pumice.framework.waiting import compared_amounts


def refused_by_quotas(ssn: Session, job: int, lacking: int) -> Iterator[Finding]:
    """Yield the quotas without room for what the gang of a job needs beside the pods it has."""
    view = ssn.job(job)
    namespace = view.key.partition("/")[0]
    quotas = [
        quota
        for quota in ssn.snapshot.kind("ResourceQuota").values()
        if isinstance(quota, ResourceQuota) and quota.metadata.namespace == namespace
    ]
    if not quotas:
        return
    pods = [to_manifest(one) for row in view.tasks if (one := _counted(ssn, row)) is not None]
    needs = _amounts(view.group.spec.min_resources)
    for pod in pods:
        needs.subtract({name: each.nano for name, each in pod_usage(pod["spec"]).items()})
    for quota in sorted(quotas, key=lambda one: one.metadata.name):
        plain = {"spec": msgspec.to_builtins(quota.spec)}
        if _has_scopes(quota) and not (pods and all(in_scope(plain, pod) for pod in pods)):
            continue  # whether it counts the pods that are missing is not known
        shorts = list(_shorts(quota, needs))
        if shorts:
            compared = "; ".join(map(compared_amounts, shorts))
            text = (
                f"resource quota {quota.metadata.name} has no room for "
                f"{counted(lacking, 'more pod')}, which the gang needs: {compared}"
            )
            about = ObjectRef(RESOURCE_QUOTA, quota.metadata.name, namespace)
            numbers: dict[str, Any] = {"needed": lacking, **compared_numbers(shorts)}
            yield Finding(Cause.QUOTA_EXCEEDED, text, about, numbers)


def _counted(ssn: Session, row: int) -> Pod | None:
    """Return a pod that quotas count."""
    pod = ssn.snapshot.tasks.pods[row]
    return pod if isinstance(pod, Pod) and pod.status.phase not in ENDED_PHASES else None


def _has_scopes(quota: ResourceQuota) -> bool:
    return bool(quota.spec.scopes or quota.spec.scope_selector)


def _shorts(quota: ResourceQuota, needs: Counter[str]) -> Iterator[Short]:
    hard, used = _amounts(quota.status.hard or quota.spec.hard), _amounts(quota.status.used)
    for entry in sorted(hard.keys() & needs.keys()):
        over = used[entry] + needs[entry] > hard[entry]
        if over and needs[entry] > 0 and limits_pods(entry):
            yield Short.of_nano(entry, used[entry], needs[entry], hard[entry])


def _amounts(quantities: Mapping[str, Any] | None) -> Counter[str]:
    """Read amounts exactly, in nano units."""
    return Counter({name: parse_quantity(each) for name, each in (quantities or {}).items()})
