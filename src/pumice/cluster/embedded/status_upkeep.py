"""Keeps the status of disruption budgets and resource quotas up to date, as controllers do."""

from collections.abc import Iterable, Mapping
from typing import Any

from pumice.api.kinds import RESOURCE_QUOTA, Manifest
from pumice.api.pod_resources import Amounts
from pumice.api.quantity import Amount
from pumice.api.times import rfc3339
from pumice.cluster.embedded.pods import with_condition
from pumice.cluster.embedded.quotas import quota_status, usage_of
from pumice.cluster.embedded.store import EmbeddedCluster

BUDGETS = "PodDisruptionBudget.policy"


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Return whether a label selector selects; none selects nothing, an empty one everything."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_fits(term, labels) for term in selector.get("matchExpressions") or ())


def _fits(term: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = term.get("key", ""), term.get("values") or ()
    operator = term.get("operator")
    if operator == "In":
        return labels.get(key) in values
    if operator == "NotIn":
        return labels.get(key) not in values
    return (key in labels) == (operator == "Exists")


def covers(budget: Manifest, pod: Manifest) -> bool:
    """Return whether a budget covers a pod."""
    meta = pod["metadata"]
    if meta.get("namespace") != budget["metadata"].get("namespace"):
        return False
    return selects((budget.get("spec") or {}).get("selector"), meta.get("labels") or {})


def budget_status(budget: Manifest, pods: Iterable[Manifest], now: str) -> Manifest:
    """Compute the status of a budget from the pods of its namespace."""
    mine = [pod for pod in pods if covers(budget, pod)]
    expected, healthy = len(mine), sum(map(_is_healthy, mine))
    spec, old = budget.get("spec") or {}, budget.get("status") or {}
    if spec.get("maxUnavailable") is not None:
        desired = max(0, expected - _scaled(spec["maxUnavailable"], expected))
    else:
        desired = _scaled(spec.get("minAvailable", 0), expected)
    allowed = max(0, healthy - desired) if expected else 0
    condition = {
        "type": "DisruptionAllowed",
        "status": "True" if allowed else "False",
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "observedGeneration": budget["metadata"].get("generation", 1),
    }
    return {
        "observedGeneration": budget["metadata"].get("generation", 1),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": list(with_condition(old.get("conditions"), condition, now)),
    }


def _is_healthy(pod: Manifest) -> bool:
    if pod["metadata"].get("deletionTimestamp"):
        return False
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one.get("status") == "True" for one in conditions)


_DIGITS = 10
"""Of a number of pods; more is no number of 32 bits."""


def _scaled(bound: Any, expected: int) -> int:
    """Read a number, or a percentage of the expected pods, rounded up."""
    number, percent, rest = str(bound).partition("%")
    if rest or not number.isdecimal() or len(number) > _DIGITS:
        return 0
    return -(-expected * int(number) // 100) if percent else int(number)


def refusal(pod: Manifest, budgets: Iterable[Manifest]) -> str:
    """Return why a pod may not be evicted now, in an API server's words; empty if it may.

    A pod that does not run takes nothing from a budget.
    """
    if (pod.get("status") or {}).get("phase") != "Running":
        return ""
    mine = [budget for budget in budgets if covers(budget, pod)]
    if len(mine) > 1:
        return (
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not support."
        )
    if mine and (mine[0].get("status") or {}).get("disruptionsAllowed", 0) <= 0:
        return "Cannot evict pod as it would violate the pod's disruption budget."
    return ""


class StatusUpkeep:
    """Works on one embedded cluster; ``sync`` costs nothing while there is nothing to keep."""

    def __init__(
        self, cluster: EmbeddedCluster, elsewhere: Mapping[str, Mapping[str, Amount]] | None = None
    ) -> None:
        """Make one; ``elsewhere`` is what quotas, by key, count besides the pods of the cluster."""
        self._cluster = cluster
        self._elsewhere = elsewhere or {}
        self._usage: dict[int, tuple[Manifest, Amounts]] = {}
        """By the identity of pods; and that of the last time."""
        self._usage_before: dict[int, tuple[Manifest, Amounts]] = {}
        self._seen = -1

    def sync(self) -> int:
        """Bring every status up to date; return how many were not."""
        cluster = self._cluster
        if cluster.version == self._seen:
            return 0
        written = 0
        self._usage_before, self._usage = self._usage, {}
        for kind, work_out in ((BUDGETS, self._budget), (RESOURCE_QUOTA, self._quota)):
            for manifest in cluster.list(kind)[0]:
                meta, old = manifest["metadata"], manifest.get("status") or {}
                try:
                    status = work_out(manifest)
                except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
                    continue  # an object of odd content affects only itself: its status stays
                if any(old.get(key) != value for key, value in status.items()):
                    cluster.merge_status(kind, meta["namespace"], meta["name"], status)
                    written += 1
        self._seen = cluster.version
        return written

    def _budget(self, budget: Manifest) -> Manifest:
        pods = self._cluster.list("Pod", budget["metadata"]["namespace"])[0]
        return budget_status(budget, pods, rfc3339(self._cluster.now()))

    def _quota(self, quota: Manifest) -> Manifest:
        meta = quota["metadata"]
        beyond = self._elsewhere.get(f"{meta['namespace']}/{meta['name']}", {})
        return quota_status(
            quota,
            lambda kind: self._cluster.list(kind, meta["namespace"])[0],
            beyond,
            self._usage_of,
        )

    def _usage_of(self, pod: Manifest) -> Amounts:
        """Return what a pod uses of quotas; of one that has not changed since it is known."""
        known = self._usage.get(id(pod)) or self._usage_before.get(id(pod))
        # the pod is kept with it, so that its identity is not reused
        known = self._usage[id(pod)] = known or (pod, usage_of(pod))
        return known[1]
