"""What resource quotas state as used, after a change: a controller counts pods again.

Plugins read it, and a world that was read from files has it as it was then.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from pumice.api.kinds import RESOURCE_QUOTA, Manifest
from pumice.api.pod_resources import Amounts
from pumice.api.quantity import Amount, amount_or_nothing
from pumice.cluster.embedded.quotas import in_scope
from pumice.controllers.expected import is_expected
from pumice.diagnosis.cluster_state import ClusterState

_Usage = Callable[[Manifest], Amounts]


def recounted(before: ClusterState, after: ClusterState) -> ClusterState:
    """Return a changed world whose quotas count the pods that came, and no longer those that went.

    A quota that was itself changed has been counted with that.
    """
    known = before.of_kind(RESOURCE_QUOTA)
    stated = [
        quota
        for key, quota in after.of_kind(RESOURCE_QUOTA).items()
        if (quota.get("status") or {}).get("used") and known.get(key) is quota
    ]
    if not stated:
        return after
    gone, came = _not_in(before, after), _not_in(after, before)
    if not gone and not came:
        return after
    new = (_with(quota, gone, came, after.quota_usage) for quota in stated)
    changed = [one for one, quota in zip(new, stated, strict=True) if one != quota]
    return after.with_objects(changed) if changed else after


def _not_in(world: ClusterState, other: ClusterState) -> list[Manifest]:
    """List the pods that exist in a world and are not the very same in another one."""
    others = set(map(id, other.pods))
    return [pod for pod in world.pods if id(pod) not in others and not is_expected(pod)]


def _with(
    quota: Manifest, gone: Iterable[Manifest], came: Iterable[Manifest], usage: _Usage
) -> Manifest:
    status = quota["status"]
    more, less = _sum(quota, came, usage), _sum(quota, gone, usage)
    used = {**status["used"]}
    for name, stated in status["used"].items():
        by = more[name] - less[name]
        if by:
            amount = amount_or_nothing(stated)
            used[name] = str(Amount(max(0, amount.nano + by), amount.form))
    return {**quota, "status": {**status, "used": used}}


def _sum(quota: Manifest, pods: Iterable[Manifest], usage: _Usage) -> Counter[str]:
    """Add up, in nano units, what a quota counts of pods."""
    home = quota["metadata"].get("namespace") or "default"
    found: Counter[str] = Counter()
    for pod in pods:
        if (pod["metadata"].get("namespace") or "default") == home and in_scope(quota, pod):
            found.update({name: amount.nano for name, amount in usage(pod).items()})
    return found
