"""The processes: whether their pods are ready, by the answer that the kubelet gets too."""

from collections.abc import Iterator
from typing import Final

from pumice.api.kinds import SYSTEM_NAMESPACE, Manifest
from pumice.api.wording import counted
from pumice.diagnosis.doctor.finding import Checked, ok, unknown, wrong
from pumice.diagnosis.doctor.server import ServedCluster
from pumice.errors import ClusterError

_APPS: Final = {
    "scheduler": "volcano-scheduler",
    "controllers": "volcano-controller",
    "webhooks": "volcano-admission",
}
"""The label ``app`` of a process's pods."""
_HEALTH_PORT: Final = 11251
_TIMEOUT_S: Final = 10.0
_MOST_BYTES: Final = 1 << 16


def processes(cluster: ServedCluster) -> Iterator[Checked]:
    """Check that the pods of each process are ready; one that runs elsewhere has none."""
    try:
        pods = [pod for pod in cluster.list("Pod", SYSTEM_NAMESPACE)[0] if _is_alive(pod)]
    except ClusterError as error:
        yield unknown("processes", error.problem)
        return
    for part, app in _APPS.items():
        ours = [pod for pod in pods if (pod["metadata"].get("labels") or {}).get("app") == app]
        waiting = [pod for pod in ours if not _is_ready(pod)]
        for pod in waiting:
            name = pod["metadata"]["name"]
            yield wrong(
                f"{part}: ready",
                f"{name} is not ready: {_why(cluster, pod)}",
                f"kubectl logs --namespace {SYSTEM_NAMESPACE} {name}",
            )
        if ours and not waiting:
            yield ok(f"{part}: ready", f"{counted(len(ours), 'pod')}, all ready")


def _is_alive(pod: Manifest) -> bool:
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return not ended and not pod["metadata"].get("deletionTimestamp")


def _is_ready(pod: Manifest) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _why(cluster: ServedCluster, pod: Manifest) -> str:
    """Return what the process itself answers, or how its container waits."""
    states = (pod.get("status") or {}).get("containerStatuses") or ()
    waiting = [(each.get("state") or {}).get("waiting") or {} for each in states]
    for each in waiting:
        if each.get("reason"):
            return f"{each['reason']} {each.get('message') or ''}".strip()
    if not any("running" in (each.get("state") or {}) for each in states):
        return f"it is {(pod.get('status') or {}).get('phase') or 'Pending'}"
    name = pod["metadata"]["name"]
    path = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/pods/{name}:{_HEALTH_PORT}/proxy/readyz"
    try:
        answer = cluster.read_text(path, timeout_s=_TIMEOUT_S, cap=_MOST_BYTES)
    except ClusterError as error:
        answer = error.problem
    return answer.strip().removeprefix("not ready: ")
